// What the wiring does to a whole training step: placement, failed and slow parts, neighbours, and the levels of
// detail.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "study/simulated.hpp"

using namespace tw;

namespace {

// Llama 3.1 8B, data parallel on the reference cluster, nothing hidden behind the backward pass and nothing random: the
// exposed gradient exchange is the whole of it.
std::vector<std::string> data_parallel(int nodes, const std::vector<std::string>& more = {}) {
  std::vector<std::string> set{"/cluster=\"topologies/smc-h100.json\"",
                               "/cluster/hosts/noise=null",
                               fmt::format("/plan/nodes={}", nodes),
                               fmt::format("/plan/gbs={}", 4 * nodes),
                               "/plan/sharding=none",
                               "/plan/tp=8",
                               "/plan/cp=1",
                               "/software/gradients_beside_backward=false",
                               "/run/steps=3"};
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

std::string faults_of(const std::string& file, const std::vector<std::string>& set) {
  Faults faults;
  load_scenario(file, set, faults);
  std::string text;
  for (const Fault& f : faults.list()) text += f.text() + "\n";
  return text;
}

}  // namespace

TEST_CASE("wiring changes the gradient exchange of a step as calculated by hand") {
  // TP 8 fills a node, so each of 8 rails carries a ring of its own over the nodes, 25 GB/s an adapter.
  const Result whole = result(kLlama, data_parallel(24));
  const double dp_s = whole.step.breakdown_s.dp;
  REQUIRE(dp_s > 0.01);
  const auto ratio = [&](const std::vector<std::string>& more) {
    return result(kLlama, data_parallel(24, more)).step.breakdown_s.dp / dp_s;
  };
  // 24 nodes packed are four units; an adapter is the narrowest link, and 4 rails x 25 GB/s fill two uplinks of 50
  // GB/s. One uplink a leaf: twice the time. Latencies, 0.6 % of it, stay.
  const std::vector<std::string> two{"/cluster/fabric/spines=2", "/cluster/fabric/uplinks_per_leaf=2"};
  const std::vector<std::string> one{"/cluster/fabric/spines=1", "/cluster/fabric/uplinks_per_leaf=1"};
  CHECK(ratio(two) == Approx(1).epsilon(1e-9));
  CHECK(ratio(one) == Approx(2).epsilon(0.03));
  // Spread over twelve units, both nodes of each send up: 8 x 25 GB/s on two uplinks of 50.
  auto spread = two;
  spread.push_back(R"(/placement={"rule": "spread"})");
  CHECK(ratio(spread) == Approx(2).epsilon(0.03));
  // One adapter at half speed holds the whole ring of its rail, and the step waits for it.
  CHECK(ratio({R"(/cluster/fabric/cable_changes=[{"cable": "node-3 nic 2", "bandwidth": "100 Gbit/s"}])"}) ==
        Approx(2).epsilon(0.03));
  // Without leaf A the nodes of its unit send 8 rails over 4 adapters.
  CHECK(ratio({R"(/cluster/fabric/failed=["leaf-0-A"])"}) == Approx(2).epsilon(0.03));
}

TEST_CASE("a job gets the nodes that its placement names, in time and in power") {
  const Result r = result(kLlama, data_parallel(2, {R"(/placement={"nodes": ["node-7", "node-40"]})"}));
  REQUIRE(r.power.per_node.size() == 2);
  CHECK(r.power.per_node[0].node == "node-7");
  CHECK(r.power.per_node[1].node == "node-40");
  // Two units are used instead of one: two leaves more, as the published rule counts them.
  const Result near = result(kLlama, data_parallel(2));
  CHECK(*r.power.network_w > *near.power.network_w);
  CHECK_THAT(faults_of(kLlama, data_parallel(2, {R"(/placement={"nodes": ["node-7", "node-400"]})"})),
             Catch::Contains("there is no node \"node-400\""));
  CHECK_THAT(faults_of(kLlama, data_parallel(2, {R"(/placement={"nodes": ["node-7", "node-7"]})"})),
             Catch::Contains("stands twice"));
  CHECK_THAT(faults_of(kLlama, data_parallel(2, {R"(/placement={"nodes": ["node-7"]})"})),
             Catch::Contains("1 nodes are named, but the plan has 2"));
}

TEST_CASE("a second job on the same uplinks slows both, one in its own unit slows nobody") {
  // Nodes 0 to 2 and 6 to 8; the neighbour has the other halves of the same two units and sends without a pause. A
  // sharded optimizer and an all-gather both go in rings: the one uplink of each leaf is what binds either.
  const auto with = [&](const std::string& jobs) {
    return result(kLlama,
                  data_parallel(6, {R"(/placement={"nodes": ["node-0","node-1","node-2","node-6","node-7","node-8"]})",
                                    "/plan/sharding=zero1", "/cluster/fabric/spines=1",
                                    "/cluster/fabric/uplinks_per_leaf=1", "/jobs=" + jobs}));
  };
  const auto neighbour = [](const std::string& nodes) {
    return R"([{"name": "other", "operation": "all-gather", "size": "10 GB", "nodes": )" + nodes + "}]";
  };
  const Result alone = with("[]"), shared = with(neighbour(R"(["node-3", "node-4", "node-9", "node-10"])"));
  CHECK(alone.jobs.empty());
  REQUIRE(shared.jobs.size() == 2);
  CHECK(shared.jobs[0].bottleneck == "leaf-spine");
  CHECK(shared.jobs[1].bottleneck == "leaf-spine");
  CHECK(shared.jobs[1].name == "other");
  // Each gets half of the uplinks while both communicate: what the job exchanges takes twice as long, and some of what
  // had hidden behind the first forward shows.
  CHECK(*shared.jobs[0].alone_s == Approx(*alone.step.time_s).epsilon(1e-9));
  const double longer_s = *shared.jobs[0].together_s - *shared.jobs[0].alone_s;
  CHECK(longer_s >= alone.step.breakdown_s.dp * (1 - 1e-9));
  CHECK(longer_s <= 1.15 * alone.step.breakdown_s.dp);
  CHECK(*shared.step.time_s == Approx(*shared.jobs[0].together_s).epsilon(1e-9));
  // The neighbour has the whole of them for the rest of the step: its mean turn, up to the one at the end.
  const double half_s = 2 * alone.step.breakdown_s.dp, whole_s = *shared.step.time_s - half_s;
  CHECK(*shared.jobs[1].slow_down == Approx((half_s + whole_s) / (half_s / 2 + whole_s)).epsilon(0.08));

  const Result apart = with(neighbour(R"(["node-12", "node-13", "node-14"])"));
  CHECK(*apart.jobs[0].slow_down == Approx(1).epsilon(1e-9));
  CHECK(*apart.jobs[1].slow_down == Approx(1).epsilon(1e-9));
}

TEST_CASE("storage traffic takes what it offers of the job's adapters, and no more") {
  // Node 10 sends 50 GB/s to nodes 0 and 1: 25 GB/s a node, 3.125 of the 25 GB/s of each adapter. 21.875 remain.
  const Result base = result(kLlama, data_parallel(4));
  const Result r = result(kLlama, data_parallel(4, {R"(/traffic=[{"name": "reads", "from": ["node-10"],
      "to": ["node-0", "node-1"], "rate": "50 GB/s"}])"}));
  REQUIRE(r.jobs.size() == 2);
  CHECK(r.step.breakdown_s.dp == Approx(base.step.breakdown_s.dp * 25 / 21.875).epsilon(0.01));
  CHECK(r.jobs[0].bottleneck == "NIC");
  CHECK(*r.jobs[1].slow_down == Approx(1).epsilon(0.01));
  CHECK_THAT(faults_of(kLlama, data_parallel(4, {R"(/traffic=[{"name": "reads", "from": ["node-10"],
      "to": ["node-99"], "rate": "50 GB/s"}])"})),
             Catch::Contains("/traffic/0/to/0") && Catch::Contains("node-99"));
  CHECK_THAT(
      faults_of(kLlama, data_parallel(4, {R"(/jobs=[{"name": "o", "size": "1 GB", "nodes": ["node-3", "node-9"]}])"})),
      Catch::Contains("\"node-3\" belongs to this job"));
}

TEST_CASE("without noise a representative and every replica on its own take the same step") {
  const std::string gpt = "scenarios/mlperf-gpt3.json", lora = "scenarios/smc-llama2-70b-lora-8n.json";
  const std::vector<std::string> quiet{"/cluster/hosts/noise=null", "/run={\"steps\": 3}"};
  auto pipeline = quiet, small = quiet, sharded = data_parallel(8);
  pipeline.insert(pipeline.end(), {"/plan/gbs=512"});
  small.insert(small.end(), {"/plan/nodes=16", "/plan/gbs=144", "/plan/vp=1", "/cluster=\"topologies/smc-h100.json\"",
                             "/cluster/hosts/noise=null"});
  sharded.push_back("/plan/sharding=zero1");
  for (const auto& [file, set] :
       {std::pair{lora, quiet}, std::pair{gpt, pipeline}, std::pair{gpt, small}, std::pair{kLlama, sharded}}) {
    SimulationOptions every;
    every.level = 2;
    const double one_s = *result(file, set).step.time_s, all_s = *result(file, set, every).step.time_s;
    INFO(file << ": " << one_s << " and " << all_s);
    CHECK(all_s == Approx(one_s).epsilon(1e-9));
  }
}
