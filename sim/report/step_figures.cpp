#include "report/step_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "core/csv_field.hpp"
#include "core/files.hpp"
#include "report/columns.hpp"
#include "report/numbers.hpp"

namespace tw::report {
namespace {

namespace fs = std::filesystem;

std::string step_stem(const std::string& folder, const char* kind, const Result& r) {
  return (fs::path(folder) / fmt::format("{}-{}", kind, file_name_of(r.scenario))).string();
}

std::string memory_header() {
  std::string text = "time_ms";
  for (const std::string_view name : kMemoryParts) text += fmt::format(",{}_bytes", name);
  return text + "\n";
}

std::string memory_row(const StepMemory& m, size_t i) {
  std::string text = fmt::format("{}", 1e3 * m.at_s[i]);
  for (const double bytes : m.bytes[i]) text += fmt::format(",{}", std::round(bytes));
  return text + "\n";
}

// Moments worth drawing: no more than twice so many, with what each stretch of the step holds at most and at least.
std::vector<size_t> drawn_moments(const StepMemory& m) {
  constexpr size_t kStretches = 400;
  std::vector<size_t> kept;
  const size_t all = m.at_s.size();
  if (all <= 2 * kStretches) {
    for (size_t i = 0; i < all; ++i) kept.push_back(i);
    return kept;
  }
  for (size_t i = 0; i < all;) {
    const double end_s = m.at_s.back() * static_cast<double>(kept.size() / 2 + 1) / kStretches;
    size_t least = i, most = i, next = i + 1;
    for (; next < all && m.at_s[next] < end_s; ++next) {
      if (m.total(next) < m.total(least)) least = next;
      if (m.total(next) > m.total(most)) most = next;
    }
    kept.insert(kept.end(), {std::min(least, most), std::max(least, most)});
    i = next;
  }
  if (kept.back() + 1 < all) kept.push_back(all - 1);
  return kept;
}

// Name and TFLOP/s of the peaks that the kernels of this training may reach.
std::string roofs(const Accelerator& a, const Precision& precision) {
  std::string list = fmt::format("BF16 {}", a.peak(Precision::bf16).value() / 1e12);
  if (precision != Precision::bf16 && a.peak(precision).value() > 0) {
    std::string name = precision.name();
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    list += fmt::format(" {} {}", name, a.peak(precision).value() / 1e12);
  }
  return list;
}

}  // namespace

Figures memory_figure(const std::string& folder, const Result& r) {
  const StepMemory& m = r.step_detail.memory;
  if (m.at_s.size() < 3) return {};
  std::string data = memory_header();
  for (const size_t i : drawn_moments(m)) data += memory_row(m, i);
  const std::string stem = step_stem(folder, "memory", r);
  write_file(stem + ".csv", data);
  return {{{"memory.gp",
            stem,
            {fmt::format("{}: memory of a GPU{} through one training step", r.scenario,
                         r.plan.pp > 1 ? fmt::format(" of stage {}", m.stage) : ""),
             fmt::format("{}", r.memory.capacity_bytes.value_or(0))}}},
          {}};
}

Figures roofline_figure(const std::string& folder, const Scenario& s, const Result& r) {
  if (!s.training) return {};
  double all_s = 0;
  std::vector<const StepKernel*> kernels;
  for (const StepKernel& k : r.step_detail.kernels) {
    all_s += k.time_s;
    if (k.flops > 0 && k.bytes > 0 && k.time_s > 0) kernels.push_back(&k);
  }
  if (kernels.size() < 2) return {};
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const StepKernel* a, const StepKernel* b) { return a->time_s > b->time_s; });
  // The longest have their names where these do not lie on one another.
  std::vector<std::pair<double, double>> named;
  std::string data = "flop_per_byte,flops,share_of_kernel_time,backward,label,name\n";
  for (const StepKernel* k : kernels) {
    const double x = std::log10(k->flops / k->bytes), y = std::log10(k->flops / k->time_s);
    const bool room = named.size() < 5 && std::none_of(named.begin(), named.end(), [&](const auto& other) {
                        return std::abs(x - other.first) < 0.35 && std::abs(y - other.second) < 0.06;
                      });
    if (room) named.emplace_back(x, y);
    const std::string name = csv_field(k->name);
    data += fmt::format("{},{},{},{},{},{}\n", k->flops / k->bytes, k->flops / k->time_s, k->time_s / all_s,
                        k->backward ? 1 : 0, room ? name : "", name);
  }
  const std::string stem = step_stem(folder, "roofline", r);
  write_file(stem + ".csv", data);
  const Accelerator& a = s.cluster.node.accelerator;
  return {{{"roofline.gp",
            stem,
            {r.scenario + ": kernels of a step under the roof of " + a.name,
             fmt::format("{}", a.memory_bandwidth.value()), roofs(a, s.training->precision)}}},
          {}};
}

Figures link_load_figure(const std::string& folder, const Result& r) {
  const std::vector<TierLoad>& tiers = r.step_detail.tiers;
  if (tiers.size() < 2) return {};
  std::string data = "class,links,capacity_Bps,busiest_Bps,mean_Bps\n";
  for (const TierLoad& t : tiers)
    data += fmt::format("{},{},{},{},{}\n", csv_field(t.tier), t.links, t.capacity_Bps, t.busiest_Bps, t.mean_Bps);
  const std::string stem = step_stem(folder, "link-load", r);
  write_file(stem + ".csv", data);
  return {{{"link_load.gp",
            stem,
            {r.scenario + ": load of the links over a training step", fmt::format("{}", tiers.size())}}},
          {}};
}

std::string memory_csv(const Result& r) {
  const StepMemory& m = r.step_detail.memory;
  std::string text = memory_header();
  for (size_t i = 0; i < m.at_s.size(); ++i) text += memory_row(m, i);
  return text;
}

std::string memory_table(const Result& r) {
  const StepMemory& m = r.step_detail.memory;
  if (m.at_s.empty()) return "";
  constexpr size_t kMoments = 7;
  std::vector<size_t> rows{m.peak(), m.at_s.size() - 1};
  for (size_t i = 0, k = 0; i < m.at_s.size() && k < kMoments; ++i)
    if (m.at_s[i] >= m.at_s.back() * static_cast<double>(k) / kMoments) rows.push_back(i), ++k;
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::vector<TableColumn> columns{{"ms", true}};
  for (const size_t i : rows)
    columns.push_back(
        {fmt::format("{:.{}f}{}", 1e3 * m.at_s[i], m.at_s.back() < 1 ? 1 : 0, i == m.peak() ? " peak" : "")});
  std::vector<std::vector<std::string>> cells;
  const auto part_row = [&](std::string_view name, const auto& bytes) {
    cells.push_back({std::string(name)});
    for (const size_t i : rows) cells.back().push_back(fmt::format("{:.2f}", bytes(i) / gib));
  };
  for (size_t p = 0; p < kMemoryParts.size(); ++p) part_row(kMemoryParts[p], [&](size_t i) { return m.bytes[i][p]; });
  part_row("total", [&](size_t i) { return m.total(i); });
  const std::string out = fmt::format("Memory of a GPU{} through one step (GiB)\n",
                                      r.plan.pp > 1 ? fmt::format(" of stage {}", m.stage) : "") +
                          columns_text(columns, cells, 0);
  return out + "\n";
}

}  // namespace tw::report
