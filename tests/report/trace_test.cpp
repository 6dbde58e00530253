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
