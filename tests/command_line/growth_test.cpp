// What the program needs does not run away: limits far above today's needs, far below those of the faults that they
// hold.
#include "program.hpp"

using namespace program;

// Visits are events once, whatever schedule they stand in: 1,152 micro-batches of 8 chunks took 36.8 s, now 0.6.
TEST_CASE("the processor time of a step grows with its micro-batches, however many chunks they visit") {
  const auto cpu_s = [](int micro_batches) {
    const std::string plan = R"(/plan={"nodes": 12, "tp": 8, "pp": 12, "vp": 8, "mbs": 1, "gbs": )" +
                             std::to_string(micro_batches) + R"(, "sharding": "zero1"})";
    const Run r = run({"run", "scenarios/llama3.1-pretraining.json", "--set", "/network=models/networks/gpt3-175b.json",
                       "--set", "/cluster=topologies/eos-h100.json", "--set", plan, "-q"});
    CHECK(r.code == 0);
    return r.cpu_s;
  };
  const double quarter_s = cpu_s(288), whole_s = cpu_s(1152);
  CHECK(whole_s < 0.5 + 8 * quarter_s);
}

// It took more than 200 s of wall time, now 1.
TEST_CASE("a whole benchmark with every replica on its own takes seconds of the processor") {
  const Run r = run({"run", "scenarios/mlperf-gpt3.json", "--level", "2", "-q"});
  CHECK(r.code == 0);
  CHECK(r.cpu_s < 40);
}

// Every router looked at every cable: a torus of 400 x 500 took 70 s, now 4.
TEST_CASE("the processor time of a look at a torus grows with its nodes") {
  const auto cpu_s = [](const char* dimensions) {
    const Run r =
        run({"topology", "topologies/tpu-v4-pod.json", "--set", std::string("/fabric/dimensions=") + dimensions});
    CHECK(r.code == 0);
    return r.cpu_s;
  };
  const double quarter_s = cpu_s("[150, 150]"), whole_s = cpu_s("[300, 300]");
  CHECK(whole_s < 0.5 + 6 * quarter_s);
}

// Ways between all nodes of a job were sought one node after the other: 16,384 of those nodes took 57 s, now 6.
TEST_CASE("the processor time of a run on part of a torus grows with its nodes") {
  const auto cpu_s = [](const std::string& dimensions, const std::string& nodes) {
    std::vector<std::string> words{"run", "scenarios/llama3.1-pretraining.json", "-q"};
    for (const std::string& set :
         {std::string("/cluster=topologies/tpu-v4-pod.json"), "/cluster/fabric/dimensions=" + dimensions,
          "/plan/nodes=" + nodes, "/plan/gbs=" + nodes, std::string("/plan/sharding=zero3")})
      words.insert(words.end(), {"--set", set});
    const Run r = run(words);
    CHECK(r.code == 0);
    return r.cpu_s;
  };
  const double quarter_s = cpu_s("[150, 150]", "2250"), whole_s = cpu_s("[300, 300]", "9000");
  CHECK(whole_s < 0.5 + 6 * quarter_s);
}

TEST_CASE("telemetry streams: ten times the readings take no more memory; too many are refused with their number") {
  const Folder folder;
  double peak_bytes[2] = {0, 0}, size[2] = {0, 0};
  for (const int i : {0, 1}) {
    const std::string file = folder / ("t" + std::to_string(i) + ".csv");
    const Run r = run({"run", k64, "-q", "--telemetry", file, "--telemetry-interval", i == 0 ? "1" : "0.1"});
    REQUIRE(r.code == 0);
    peak_bytes[i] = r.peak_bytes, size[i] = static_cast<double>(fs::file_size(file));
  }
  CHECK(size[1] > 8 * size[0]);
  CHECK(size[1] > 5e6);
  CHECK(peak_bytes[1] < peak_bytes[0] + 4e6);
  const std::string never = folder / "never.sqlite";
  const Run r = run({"run", "scenarios/llama3.1-70b-1t-tokens.json", "-q", "--telemetry", never});
  CHECK(r.code == 2);
  CHECK(r.error_lines() == 1);
  CHECK(holds(r.err, "readings are more than anybody reads; at most 1e+09: --telemetry-interval of "));
  CHECK_FALSE(fs::exists(never));
}
