// What the numbers of logs count, by round, benchmark and submitter; what cannot be; which runs count. Forms and
// figures follow public logs of rounds v2.0 to v5.1 (mlcommons/training_results_*) and the rules of mlcommons/logging.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "core/error.hpp"
#include "mlperf/made_logs.hpp"

using namespace tw;
using namespace made;

namespace {

using Findings = std::vector<LogFinding>;

// Epochs of `epoch_s` with an evaluation after each that logs `accuracy` in the last one.
std::string epochs(int n, double epoch_s, const std::string& accuracy, const std::string& bad) {
  std::string text;
  for (int e = 0; e < n; ++e) {
    const double begin = e * (epoch_s + 5);
    text += at(begin, "epoch_start", "null", count_of("epoch_num", e)) +
            at(begin + epoch_s, "epoch_stop", "null", count_of("epoch_num", e)) +
            at(begin + epoch_s, "eval_start", "null", count_of("epoch_num", e + 1)) +
            at(begin + epoch_s + 5, "eval_accuracy", e + 1 < n ? bad : accuracy, count_of("epoch_num", e + 1)) +
            at(begin + epoch_s + 5, "eval_stop", "null", count_of("epoch_num", e + 1));
  }
  return text + stop(n * (epoch_s + 5));
}

// Stable Diffusion: blocks of 100 steps of 2,048 in 5.4 s, checkpoints evaluated when all is over, run_stop at the end
// of the file with the stamp of the checkpoint that met the target.
std::string diffusion(int blocks, int evaluated) {
  std::string text = head("stable_diffusion", 2048, 6513144);
  for (int b = 0; b < blocks; ++b)
    text += at(5.4 * b, "block_start", "\"training_step\"", count_of("samples_count", 204800.0 * b)) +
            at(5.4 * (b + 1), "block_stop", "\"training_step\"", count_of("samples_count", 204800.0 * (b + 1)));
  for (int e = 0; e < evaluated; ++e) {
    const std::string where = count_of("samples_count", 3584000 - 512000.0 * (evaluated - 1 - e));
    text += at(300 + 50 * e, "eval_start", "null", where) + at(320 + 50 * e, "eval_stop", "null", where);
    text += at(330 + 50 * e, "eval_accuracy", e + 1 < evaluated ? "95.5" : "84.2", where + ", \"metric\": \"FID\"");
    text += at(331 + 50 * e, "eval_accuracy", "0.17", where + ", \"metric\": \"CLIP\"");
  }
  return text + stop(94.5, count_of("step_num", 1750));
}

Import imported(const Tree& t) {
  return import_submission(t.root(), {}, {});
}

}  // namespace

TEST_CASE("Stable Diffusion: the stamp of run_stop ends the run, its step_num says how far; evaluations come later") {
  Findings findings;
  const ImportedRun run = read(diffusion(22, 3), findings);
  CHECK(run.samples == 3584000.0);
  CHECK(run.steps == 1750.0);
  CHECK(run.step_s == Approx(0.054).epsilon(1e-6));
  CHECK(run.step_source == "block_wall");
  CHECK(run.evaluations == 0);
  CHECK(run.evaluation_times.empty());
  CHECK(run.accuracy == 84.2);
  CHECK(run.not_compliant.empty());
  CHECK(findings.empty());
}

TEST_CASE("RetinaNet: train_samples holds the steps of an epoch with most submitters, its images with some") {
  Findings findings;
  const ImportedRun steps = read(head("retinanet", 256, 4572) + epochs(4, 300, "0.35", "0.2"), findings);
  CHECK(steps.samples == 4681728.0);
  CHECK(steps.step_s == Approx(300.0 / 4572));
  const ImportedRun images = read(head("ssd", 2048, 1170301) + epochs(6, 50, "0.35", "0.2"), findings);
  CHECK(images.samples == 6 * 1170301.0);
  CHECK(images.step_s == Approx(50.0 * 2048 / 1170301));
  CHECK(findings.empty());
}

// Round v2.0, one submitter: images in train_samples, blocks of epochs without a throughput, and a bare run_stop.
TEST_CASE("RetinaNet in blocks of epochs: images are not taken for steps of 2,048 of them") {
  std::string text = head("ssd", 2048, 1170301);
  const auto part = [](int epoch) { return count_of("first_epoch_num", epoch) + ", \"epoch_count\": 1"; };
  for (int e = 0; e < 9; ++e) {
    const std::string where = count_of("epoch_num", e + 1);
    text += at(14 * e, "block_start", "null", part(e)) + at(14 * e + 5, "block_stop", "null", part(e)) +
            at(14 * e + 5, "eval_start", "null", where) +
            at(14 * e + 14, "eval_accuracy", e < 8 ? "0.3359" : "0.3459", where) +
            at(14 * e + 14, "eval_stop", "null", where);
  }
  Findings findings;
  const ImportedRun run = read(text + stop(14 * 9), findings);
  CHECK(run.samples == 9 * 1170301.0);
  CHECK(run.step_s == Approx(5.0 * 2048 / 1170301));
  CHECK(run.evaluations == 9);
  CHECK(run.eval_s == 9.0);
  CHECK(run.not_compliant.empty());
  CHECK(findings.empty());
}

TEST_CASE("3D U-Net: epoch_num counts epochs up to v3.1 and volumes in v4.0") {
  const auto log = [](double last, const std::string& throughput) {
    const std::string where = count_of("epoch_num", last);
    return head("unet3d", 56, 168) + at(0, "block_start") +
           at(600, "tracked_stats", "{\"throughput\": " + throughput + "}") + at(600, "eval_start", "null", where) +
           at(602, "eval_accuracy", "0.909", where) + at(602, "eval_stop", "null", where) + stop(602);
  };
  Findings findings;
  CHECK(read(log(2130, "596.4"), findings).samples == 357840.0);
  CHECK(read(log(2130, "0"), findings).samples_from == "epoch_num x train_samples");
  const ImportedRun volumes = read(log(241920, "400"), findings);
  CHECK(volumes.samples == 241920.0);
  CHECK(volumes.samples_from == "epoch_num, in samples");
  CHECK(findings.empty());
  // A throughput that says otherwise is told.
  read(log(241920, "4000"), findings);
  REQUIRE(found(findings, "unclear_samples") != nullptr);
  CHECK(found(findings, "unclear_samples")->what ==
        "241920 samples to the target, but 2400000 by the logged throughput");
}

TEST_CASE("rounds v5.1 and v6.0: blocks tell their own samples, evaluations how far the run is") {
  std::string text = head("flux1", 2048, 1099776);
  for (int b = 0; b < 4; ++b) {
    const double begin = 130 * b;
    const std::string block = count_of("samples_count", 262144), where = count_of("samples_count", 262144.0 * (b + 1));
    text += at(begin, "block_start", "null", block) +
            at(begin + 125, "tracked_stats", "{\"throughput\": " + std::string(b == 0 ? "2048" : "2097.152") + "}") +
            at(begin + 126, "block_stop", "null", block) + at(begin + 126, "eval_start", "null", where) +
            at(begin + 130, "eval_accuracy", b == 3 ? "0.5859" : "0.6", where) +
            at(begin + 130, "eval_stop", "null", where);
  }
  Findings findings;
  const ImportedRun run = read(text + stop(520, count_of("samples_count", 1048576) + ", \"step\": 512"), findings);
  CHECK(run.samples == 1048576.0);
  CHECK(run.step_s == Approx(2048 / 2097.152));
  CHECK(*run.first_gap_s == Approx(126 - 128.0));
  CHECK(run.evaluations == 4);
  CHECK(run.not_compliant.empty());
  CHECK(findings.empty());
}

TEST_CASE("Mask R-CNN: the data set counts where train_samples is neither its images nor its steps, with a word") {
  Findings findings;
  CHECK(read(head("maskrcnn", 96, 117312) + epochs(15, 200, "0.38", "0.3"), findings).samples == 15 * 117266.0);
  CHECK(findings.empty());
  CHECK(read(head("maskrcnn", 96, 40000) + epochs(15, 200, "0.38", "0.3"), findings).samples == 15 * 117266.0);
  REQUIRE(count(findings, "unclear_samples") == 1);
  CHECK(findings[0].what == "train_samples is 40000, an epoch of maskrcnn has 117266 samples, which count");
}

TEST_CASE("an epoch that the end of the run cuts short counts for what it is") {
  Findings findings;
  std::string text =
      head("gnn", 65536, 94605581) + at(0, "epoch_start", "null", count_of("epoch_num", 1)) +
      at(100, "epoch_stop", "null", count_of("epoch_num", 1)) +
      at(100, "epoch_start", "null", count_of("epoch_num", 2)) + at(120, "eval_start", "null", "\"epoch_num\": 1.2") +
      at(121, "eval_accuracy", "0.73", "\"epoch_num\": 1.2") + at(121, "eval_stop", "null", "\"epoch_num\": 1.2") +
      at(121, "epoch_stop", "null", "\"epoch_num\": 1.2") + stop(121, "\"epoch_num\": 1.2");
  const ImportedRun run = read(text, findings);
  CHECK(run.samples == Approx(1.2 * 94605581));
  CHECK(run.step_s == Approx(21 * 65536 / (0.2 * 94605581)));
  CHECK(findings.empty());
}

TEST_CASE("lines of several processes that are out of order are no fault; intervals that end before they begin are") {
  Findings findings;
  std::string text = head("bert", 8, 80000) + at(90, "eval_start", "null", count_of("epoch_num", 800000)) +
                     at(95, "eval_accuracy", "0.73", count_of("epoch_num", 800000)) +
                     at(92, "tracked_stats", "{\"loss\": 1}") +
                     at(95, "eval_stop", "null", count_of("epoch_num", 800000)) + stop(100);
  CHECK(read(text, findings).eval_s == 5.0);
  CHECK(findings.empty());
  text = head("bert", 8, 80000) + at(95, "eval_start", "null", count_of("epoch_num", 800000)) +
         at(96, "eval_accuracy", "0.73", count_of("epoch_num", 800000)) +
         at(90, "eval_stop", "null", count_of("epoch_num", 800000)) + stop(100);
  const ImportedRun run = read(text, findings);
  CHECK_FALSE(run.eval_s.has_value());
  CHECK(run.evaluation_times.empty());
  CHECK(count(findings, "impossible_value") == 1);
}

TEST_CASE("values that cannot be are findings and no numbers") {
  Findings findings;
  std::string text = head("bert", -8, 80000) + stop(1e12);
  for (const char* throughput : {"-1e308", "1e-300"})
    text += at(50, "tracked_stats", std::string("{\"throughput\": ") + throughput + "}");
  const ImportedRun run = read(text, findings);
  CHECK_FALSE(run.global_batch_size.has_value());
  CHECK_FALSE(run.run_s.has_value());
  CHECK_FALSE(run.finished());
  CHECK(count(findings, "impossible_value") == 4);
}

TEST_CASE("runs that the compliance checker drops are named and count as failed") {
  const auto why = [](const std::string& text) {
    Findings findings;
    const ImportedRun run = read(text, findings);
    CHECK(run.finished());
    CHECK_FALSE(run.succeeded());
    REQUIRE(found(findings, "not_compliant") != nullptr);
    return run.not_compliant;
  };
  CHECK(why(diffusion(22, 1)) == "1 evaluation, the rules ask for 2");
  const std::string good = head("retinanet", 256, 4572) + epochs(4, 300, "0.35", "0.2");
  CHECK(why(head("retinanet", 256, 4572) + epochs(4, 300, "0.33", "0.2")) ==
        "no eval_accuracy meets the target of 0.34");
  CHECK(why(good + stop(1300)) == "run_stop is logged 2 times, not once");
  std::string no_cache = good;
  no_cache.replace(no_cache.find("cache_clear"), 11, "cache_claer");
  CHECK(why(no_cache) == "cache_clear is not logged");

  // The summarizer takes such a run for the slowest.
  const Tree t;
  const std::string folder = "org/results/sys/ssd/";
  for (int i = 0; i < 5; ++i)
    t.put(folder + "result_" + std::to_string(i) + ".txt",
          head("ssd", 256, 4572) + epochs(4, 300 + i, i == 0 ? "0.33" : "0.35", "0.2"));
  const ImportedBenchmark b = imported(t).benchmarks.at(0);
  CHECK(b.score.failed == 1);
  CHECK(*b.score.time_s == Approx(4 * (303 + 5)));  // of 301 to 304 the fastest goes, the failed one is the slowest
  CHECK(b.score.remark.empty());
}

TEST_CASE("the measurement of a node ends with power_measurement_stop, later than its last reading or before") {
  const auto energy = [](const std::vector<double>& readings_s, double stop_s) {
    const Tree t;
    const std::string folder = "org/results/sys/bert/";
    t.put(folder + "result_0.txt", head("bert", 8, 80000) + stop(6));
    std::string text = at(0, "power_measurement_start");
    for (const double s : readings_s) text += at(s, "power_reading", "1000");
    t.put(folder + "power/result_0/node_0.txt", text + at(stop_s, "power_measurement_stop"));
    const Import import = imported(t);
    return import.benchmarks.at(0).runs.at(0).nodes.at(0);
  };
  CHECK(energy({0, 2, 4}, 6).mlperf_j == Approx(4000));
  CHECK(energy({0, 2, 4}, 6).run_j == Approx(6000));
  CHECK(energy({0, 2, 4, 6}, 6).mlperf_j == Approx(6000));
  CHECK(energy({0, 2, 4, 6, 8}, 6).mlperf_j == Approx(6000));
}

TEST_CASE("meters that read what cannot be give no energy") {
  const auto node = [](const std::string& more) {
    const Tree t;
    const std::string folder = "org/results/sys/bert/";
    t.put(folder + "result_0.txt", head("bert", 8, 80000) + stop(6));
    std::string text = at(0, "power_measurement_start");
    for (const int s : {0, 2, 4, 6}) text += at(s, "power_reading", "1000");
    t.put(folder + "power/result_0/node_0.txt", text + more + at(6, "power_measurement_stop"));
    const Import import = imported(t);
    CHECK(made::count(import.findings, "odd_reading") == 1);
    return import.benchmarks.at(0).runs.at(0).nodes.at(0);
  };
  for (const std::string& more :
       {at(3, "power_reading", "-5000"), at(3, "power_reading", "1e308"), at(3, "conversion_eff", "-3"),
        at(3, "power_reading", "\"many\""), at(3e9, "power_reading", "1000"), at(-3e9, "power_reading", "1000")}) {
    CAPTURE(more);
    const NodeMeter n = node(more);
    CHECK_FALSE(n.run_j.has_value());
    CHECK_FALSE(n.mlperf_j.has_value());
  }
}

TEST_CASE("a file of switches with readings but no estimate says so") {
  const Tree t;
  const std::string folder = "org/results/sys/bert/";
  t.put(folder + "result_0.txt", head("bert", 8, 80000) + stop(6));
  for (const char* node : {"node_0.txt", "node_1.txt"})
    t.put(folder + "power/result_0/" + node, at(0, "power_measurement_start") + at(0, "power_reading", "900") +
                                                 at(6, "power_reading", "900") + at(6, "power_measurement_stop"));
  t.put(folder + "power/result_0/sw_0.txt", at(0, "power_reading", "900"));
  const Import import = imported(t);
  CHECK(made::count(import.findings, "no_switch_estimate") == 0);
  REQUIRE(made::found(import.findings, "no_readings") != nullptr);
  CHECK(made::found(import.findings, "no_readings")->what ==
        "holds no interconnect_power_est (readings alone do not count by the rules); its switches count as 0 W");
}

TEST_CASE("pipes and giant files without lines do not hold an import up") {
  const Tree t;
  REQUIRE(::mkfifo((t / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_AS(import_submission(t / "pipe", {}, {}), InputError);
  const std::string folder = "org/results/sys/bert/";
  t.put(folder + "result_0.txt", head("bert", 8, 80000) + stop(6));
  REQUIRE(::mkfifo((t / (folder + "result_1.txt")).c_str(), 0600) == 0);
  { std::ofstream(t / (folder + "result_2.txt")) << "x"; }
  fs::resize_file(t / (folder + "result_2.txt"), 6'000'000'000);  // sparse
  const Import import = imported(t);
  REQUIRE(import.benchmarks.at(0).runs.size() == 2);
  REQUIRE(made::found(import.findings, "no_lines") != nullptr);
  CHECK(made::found(import.findings, "no_lines")->file == folder + "result_2.txt");
}
