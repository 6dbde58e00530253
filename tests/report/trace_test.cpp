#include "report/trace.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

using namespace tw;

TEST_CASE("slices of one track never overlap, every track has a name, FLOPs and bytes are told") {
  std::vector<Span> spans(4);
  spans[0] = {0, Span::Stream::device, 0, 0.010, {false, 0, 0}, "forward", 0, 5e12};
  spans[1] = {0, Span::Stream::network, 0.010, 0.020, {false, 0, 0}, "hand-over", 1e6};
  spans[2] = {0, Span::Stream::network, 0.015, 0.030, {true, 0, 0}, "gradients", 2e6};
  spans[3] = {0, Span::Stream::network, 0.020, 0.025, {false, 0, 1}, "hand-over", 1e6};
  const auto trace = nlohmann::json::parse(report::chrome_trace("toy", 0.03, spans));
  std::map<int, std::string> names;
  std::map<int, std::vector<std::pair<double, double>>> slices;
  double flops = 0, bytes = 0;
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] == "M" && e["name"] == "thread_name") names[e["tid"]] = e["args"]["name"];
    if (e["ph"] != "X") continue;
    slices[e["tid"]].emplace_back(e["ts"], e["ts"].get<double>() + e["dur"].get<double>());
    flops += e["args"].value("flops", 0.0);
    bytes += e["args"].value("bytes", 0.0);
  }
  CHECK(flops == 5e12);
  CHECK(bytes == 4e6);
  CHECK(slices.size() == 3);
  for (auto& [track, list] : slices) {
    CHECK_FALSE(names[track].empty());
    std::sort(list.begin(), list.end());
    for (size_t i = 1; i < list.size(); ++i) CHECK(list[i].first >= list[i - 1].second - 1e-6);
  }
}

TEST_CASE("a trace shows the exchanges inside visits with their bytes, watts to the end, and ends with the step") {
  std::vector<Span> spans(2);
  spans[0] = {0, Span::Stream::device, 0, 0.010, {false, 0, 0}, "forward", 0, 5e12};
  spans[1] = {0, Span::Stream::device, 0.010, 0.030, {true, 0, 0}, "backward", 0, 1e13};
  report::TraceDetail detail;
  VisitTask kernel, exchange;
  kernel.task.name = "experts up", kernel.task.activity = Activity::gemm_fp8, kernel.end_s = 0.004;
  exchange.task.stream = Stream::tp, exchange.task.bytes = 3e6;
  exchange.begin_s = 0.004, exchange.end_s = 0.006;  // the kernels after it are done at 5 ms
  detail.visits.forward = {{{kernel, exchange}, 0.005}};
  detail.visits.backward = detail.visits.forward;
  detail.power.begin_s = {0, 0.01};
  detail.power.watts = {{5000, 500, 0, 0, 300, 1000, 200}, {6000, 500, 0, 0, 300, 1000, 200}};
  detail.power.end_s = 0.04;
  const auto trace = nlohmann::json::parse(report::chrome_trace("toy", 0.04, spans, detail));
  double last_us = 0, payload = 0, counter_us = 0;
  int exchanges = 0;
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] == "C") counter_us = e["ts"];
    if (e["ph"] != "X") continue;
    const double end_us = e["ts"].get<double>() + e["dur"].get<double>();
    last_us = std::max(last_us, end_us);
    if (e["cat"] == "kernel") {
      CHECK(e["name"] == "experts up");
      CHECK(e["args"]["activity"] == "gemm_fp8");
    }
    if (e["cat"] != "exchange") continue;
    ++exchanges;
    payload += e["args"]["payload_bytes"].get<double>();
    CHECK(e["name"] == "TP exchanges");
    // Stretched to the visit's length, and inside it.
    CHECK(e["ts"].get<double>() == Approx(exchanges == 1 ? 8000 : 10000 + 16000));
    CHECK(end_us == Approx(exchanges == 1 ? 10000 : 30000));
  }
  CHECK(exchanges == 2);
  CHECK(payload == 6e6);
  CHECK(last_us == Approx(40000));
  CHECK(counter_us == Approx(40000));
  CHECK(trace["otherData"]["detail"] == "every visit");
}
