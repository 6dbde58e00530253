// What submitters of MLPerf Training v2.0 derived from their results, recomputed from the logged rows beside each claim
// (reference/mlperf/v2.0_claims.csv) and from the boards' power limits.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>

#include "core/csv.hpp"
#include "core/document.hpp"
#include "hardware/accelerator.hpp"

namespace tw {
namespace {

// Minutes of the rows that a claim rests on, in the order of its cell.
std::vector<double> minutes_of(const CsvTable& table, size_t row) {
  std::vector<double> minutes;
  const std::string& cell = table.text(row, "match_time_min");
  for (size_t begin = 0; begin < cell.size();) {
    const size_t end = std::min(cell.find("||", begin), cell.size());
    minutes.push_back(std::strtod(cell.substr(begin, end - begin).c_str(), nullptr));
    begin = end + 2;
  }
  return minutes;
}

double board_w(const std::string& accelerator) {
  return load<Accelerator>("models/accelerators/" + accelerator + ".json").board_limit.value();
}

double flops_per_watt(const std::string& accelerator) {
  const auto a = load<Accelerator>("models/accelerators/" + accelerator + ".json");
  return a.peak_bf16.value() / a.board_limit.value();
}

using Times = std::vector<double>;
double faster(const Times& t) {  // more work in the same time, in percent
  return 100 * (t[0] / t[1] - 1);
}
double shorter(const Times& t) {  // less time for the same work, in percent
  return 100 * (1 - t[1] / t[0]);
}
double ratio(const Times& t) {
  return t[0] / t[1];
}
double longer(const Times& t) {
  return 100 * (t[0] / t[1] - 1);
}

struct Claim {
  const char* submitter;
  const char* claim;
  std::function<double(const Times&)> recomputed;  // in the unit of the claim
};

}  // namespace

TEST_CASE("derived claims of round v2.0 follow from the logged rows, but one") {
  const CsvTable table = CsvTable::load("reference/mlperf/v2.0_claims.csv");
  const double a5000 = 2 * board_w("rtx-a5000"), a30 = 2 * board_w("a30"), a100 = board_w("a100-pcie-80gb");
  const double others = 200;  // W of the rest of the machine, as the claim takes it
  const auto more_energy = [](double w, double than_w) {
    return [=](const Times& t) { return 100 * (w * t[0] / (than_w * t[1]) - 1); };
  };
  const std::vector<Claim> claims{
      {"Samsung", "improvement over v1.1 at 1024 GPUs", faster},
      {"NVIDIA", "up to 13% more performance than the same system in the previous round", faster},
      {"Google", "TPU v4 peak FLOPs per watt vs v3",
       [](const Times&) { return flops_per_watt("tpu-v4") / flops_per_watt("tpu-v3"); }},
      {"Krai", "A5000 pair: more power than A30 pair", [=](const Times&) { return 100 * (a5000 / a30 - 1); }},
      {"Krai", "A5000 pair: slower than A30 pair", longer},
      {"Krai", "A5000 pair: more energy than A30 pair", more_energy(a5000, a30)},
      {"Krai", "energy difference with 200 W of other components", more_energy(a5000 + others, a30 + others)},
      {"Krai", "A5000 pair: more power than one A100", [=](const Times&) { return 100 * (a5000 / a100 - 1); }},
      {"Krai", "A5000 pair: faster than one A100", [](const Times& t) { return 100 * (1 - t[0] / t[1]); }},
      {"Krai", "A5000 pair: more energy than one A100", more_energy(a5000, a100)},
      {"Krai", "A5000 energy in kWh (GPU TDP x time)", [=](const Times& t) { return a5000 * t[0] / 60 / 1000; }},
      {"Habana Labs", "Gaudi2 vs first-gen Gaudi, ResNet-50", ratio},
      {"Habana Labs", "Gaudi2 vs first-gen Gaudi, BERT", ratio},
      {"Habana Labs", "128 and 256 first-gen accelerators, \"impressive linear scaling\"", ratio},
      {"Graphcore", "decrease in time-to-train, BERT", shorter},
      {"Graphcore", "decrease in time-to-train, ResNet-50", shorter},
      {"Graphcore", "(check) ResNet-50 Pod64 change", shorter},
      {"Graphcore", "(check) ResNet-50 Pod128 change", shorter},
      {"Graphcore", "(check) ResNet-50 Pod256 change", shorter},
      {"Graphcore", "(check) BERT Pod64 change", shorter},
      {"Graphcore", "(check) BERT Pod128 change", shorter},
      {"MosaicML", "speed-up over own baseline", ratio},
      {"Inspur", "improvement over own best v1.1, bert", shorter},
      {"Inspur", "improvement over own best v1.1, rnnt", shorter},
      {"Inspur", "improvement over own best v1.1, dlrm", shorter},
      {"Inspur", "improvement over own best v1.1, resnet", shorter},
      {"Inspur", "improvement over own best v1.1, maskrcnn", shorter},
      {"Inspur", "improvement over own best v1.1, unet3d", shorter},
      {"HazyResearch", "faster than the best one-node BERT of v1.1", faster},
      {"Azure", "(check) BERT 1 -> 8 VMs", ratio},
  };
  std::set<size_t> seen;
  std::vector<std::string> contradicted;
  for (const Claim& c : claims) {
    INFO(c.submitter << ": " << c.claim);
    size_t row = 0;
    while (row < table.rows() && !(table.text(row, "submitter") == c.submitter && table.text(row, "claim") == c.claim))
      ++row;
    REQUIRE(row < table.rows());
    REQUIRE(seen.insert(row).second);
    const double found = c.recomputed(minutes_of(table, row));
    const std::string& claimed = table.text(row, "claimed_value");
    if (claimed.empty() || claimed.find('/') != std::string::npos) {
      // No figure in the text: what was computed beside it has to be ours.
      const std::string& text = table.text(row, "calculated");
      const double listed = std::strtod(text.c_str() + text.find_first_of("0123456789"), nullptr);
      CHECK(found == Approx(listed).margin(0.006));
      continue;
    }
    // Texts round, or cut, to a point or to a digit: a tenth of the figure is more than that.
    const double value = std::strtod(claimed.c_str(), nullptr);
    if (std::abs(found - value) > std::max(0.1 * value, table.text(row, "unit") == "%" ? 1.0 : 0.0)) {
      contradicted.push_back(fmt::format("{}: {}: claimed {} %, found {:.1f} %", c.submitter, c.claim, value, found));
      CHECK(table.text(row, "verdict") == "CONTRADICTED");
    }
  }
  CHECK(contradicted ==
        std::vector<std::string>{"Krai: energy difference with 200 W of other components: claimed 25 %, found 50.1 %"});
  // Every derived figure of the table is in the list, but those of several systems at once.
  for (size_t row = 0; row < table.rows(); ++row) {
    if (table.text(row, "kind") != "derived" || seen.count(row) > 0) continue;
    INFO(table.text(row, "submitter") << ": " << table.text(row, "claim"));
    CHECK((table.text(row, "claim").find("same work") != std::string::npos ||
           table.text(row, "claim").find("PaddlePaddle") != std::string::npos));
  }
}

TEST_CASE("the rows of round v2.0 are those that the statements name") {
  const CsvTable claims = CsvTable::load("reference/mlperf/v2.0_claims.csv");
  const CsvTable rows = CsvTable::load("reference/mlperf/v2.0_rows.csv");
  const auto cells = [](const std::string& text) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find("||", begin), text.size());
      std::string part = text.substr(begin, end - begin);
      while (!part.empty() && part.front() == ' ') part.erase(0, 1);
      while (!part.empty() && part.back() == ' ') part.pop_back();
      parts.push_back(part);
      begin = end + 2;
    }
    return parts;
  };
  std::set<std::string> named;
  for (size_t c = 0; c < claims.rows(); ++c) {
    if (claims.text(c, "match_rows").empty()) continue;
    const auto names = cells(claims.text(c, "match_rows")), minutes = cells(claims.text(c, "match_time_min")),
               counts = cells(claims.text(c, "match_accelerators")),
               samples = cells(claims.text(c, "match_samples_to_converge"));
    for (size_t i = 0; i < names.size(); ++i) {
      named.insert(names[i]);
      size_t row = 0;
      while (row < rows.rows() && rows.text(row, "row") != names[i]) ++row;
      INFO(names[i]);
      REQUIRE(row < rows.rows());
      CHECK(rows.text(row, "time_min") == minutes[i]);
      CHECK(rows.text(row, "accelerators") == counts[i]);
      if (i < samples.size() && !samples[i].empty())
        CHECK(rows.value(row, "samples") == Approx(std::strtod(samples[i].c_str(), nullptr)));
    }
  }
  CHECK(named.size() == rows.rows());
}

}  // namespace tw
