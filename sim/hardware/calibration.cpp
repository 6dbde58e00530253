#include "hardware/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/files.hpp"
#include "hardware/kernels.hpp"

namespace tw {
namespace {

// Kernels launched one by one below this are bound by their launch (reference/gpu_lab/README.md).
constexpr double kLaunchBound_s = 30e-6;
constexpr double kFar = 4;  // times outside the measured range

using Shape = std::tuple<long, long, long>;

// Times of one shape, as logarithms.
class Mean {
 public:
  void add(double time_s) {
    sum_ += std::log(time_s);
    ++count_;
  }
  std::optional<Time> value() const {
    return count_ == 0 ? std::nullopt : std::optional<Time>(seconds(std::exp(sum_ / count_)));
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

struct GemmMeans {
  Mean bf16, fp8;
};
struct AttentionMeans {
  Mean forward, backward;
};

std::optional<CsvTable> table_of(const std::string& dir, const char* name) {
  const auto path = find_input_file(dir + "/" + name, "");
  return path ? std::optional<CsvTable>(CsvTable::load(*path)) : std::nullopt;
}

// Cells of a lab's tables are sizes and times: nothing else than a positive number is one.
std::optional<double> positive(const CsvTable& t, size_t row, const char* column) {
  const auto v = t.number(row, column);
  if (v && *v <= 0) t.refuse(row, column, fmt::format("{:g} is not above 0", *v));
  return v;
}
long size_of(const CsvTable& t, size_t row, const char* column) {
  const double v = t.value(row, column);
  if (!(v >= 1 && v <= 1e12)) t.refuse(row, column, fmt::format("{:g} is no size", v));
  return std::lround(v);
}

void read_gemm(const CsvTable& t, const std::string& gpu, std::map<Shape, GemmMeans>& means) {
  for (size_t row = 0; row < t.rows(); ++row) {
    if (t.text(row, "gpu") != gpu || t.text(row, "form") != "y=x*w^T") continue;
    GemmMeans& at = means[{size_of(t, row, "m"), size_of(t, row, "n"), size_of(t, row, "k")}];
    const auto graph = positive(t, row, "bf16_graph_s"), single = positive(t, row, "bf16_s"),
               fp8 = positive(t, row, "fp8_e4m3_s");
    if (graph)
      at.bf16.add(*graph);
    else if (single && *single >= kLaunchBound_s)
      at.bf16.add(*single);
    if (fp8 && *fp8 >= kLaunchBound_s) at.fp8.add(*fp8);
  }
}

void read_attention(const CsvTable& t, const std::string& gpu, std::map<Shape, AttentionMeans>& means) {
  for (size_t row = 0; row < t.rows(); ++row) {
    if (t.text(row, "gpu") != gpu || t.text(row, "mask") != "causal") continue;
    const auto forward = positive(t, row, "fwd_s"), backward = positive(t, row, "bwd_s");
    if (!forward || !backward) continue;
    AttentionMeans& at = means[{size_of(t, row, "batch") * size_of(t, row, "heads"), size_of(t, row, "seq"),
                                size_of(t, row, "head_dim")}];
    at.forward.add(*forward);
    at.backward.add(*backward);
  }
}

struct MemoryFigures {
  std::optional<double> copy, norm;  // bytes/s
  std::optional<double> graph_s;
};

MemoryFigures read_memory(const CsvTable& t, const std::string& gpu) {
  MemoryFigures f;
  double largest = 0;
  Mean norm;
  for (size_t row = 0; row < t.rows(); ++row) {
    if (t.text(row, "gpu") != gpu) continue;
    const std::string& op = t.text(row, "op");
    const auto bytes = t.number(row, "bytes_read_plus_written"), time_s = positive(t, row, "seconds");
    if (!time_s) continue;
    if (op == "copy" && bytes && *bytes > largest) {
      largest = *bytes;
      f.copy = *bytes / *time_s;
    }
    if ((op == "rmsnorm_8192x8192" || op == "rms_norm_fwd_8192x8192") && bytes) norm.add(*time_s / *bytes);
    if (op == "tiny_kernel_graph_each") f.graph_s = *time_s;
  }
  if (const auto per_byte = norm.value()) f.norm = 1 / per_byte->value();
  return f;
}

// Rounded as profiles are written, so that a profile read back is the one that was made.
double rounded(double value, int digits) {
  return std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
}

double roofline_s(const Accelerator& a, const Precision& p, const GemmPoint& g) {
  const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
  const double bytes = p.operand_bytes * (m * k + k * n) + 2 * m * n;
  return std::max(2 * m * n * k / a.peak(p).value(), bytes / a.memory_bandwidth.value());
}

LeaveOneOut summary(const std::string& kernel, std::vector<std::pair<double, std::string>> errors) {
  LeaveOneOut out{kernel, errors.size(), 0, 0, 0, ""};
  if (errors.empty()) return out;
  std::sort(errors.begin(), errors.end());
  const auto at = [&](double q) {
    return errors[static_cast<size_t>(q * static_cast<double>(errors.size() - 1))].first;
  };
  out.median_pct = at(0.5), out.p90_pct = at(0.9), out.worst_pct = errors.back().first;
  out.worst = errors.back().second;
  return out;
}

}  // namespace

std::vector<std::string> lab_gpus(const std::vector<std::string>& lab_dirs) {
  std::vector<std::string> names;
  for (const std::string& dir : lab_dirs)
    if (const auto t = table_of(dir, "gemm.csv"))
      for (size_t row = 0; row < t->rows(); ++row)
        if (std::find(names.begin(), names.end(), t->text(row, "gpu")) == names.end())
          names.push_back(t->text(row, "gpu"));
  return names;
}

Accelerator calibrated(const std::vector<std::string>& lab_dirs, const std::string& gpu, Accelerator a) {
  std::map<Shape, GemmMeans> gemm;
  std::map<Shape, AttentionMeans> attention;
  MemoryFigures memory;
  for (const std::string& dir : lab_dirs) {
    if (const auto t = table_of(dir, "gemm.csv")) read_gemm(*t, gpu, gemm);
    if (const auto t = table_of(dir, "attention.csv")) read_attention(*t, gpu, attention);
    if (const auto t = table_of(dir, "memory_ops.csv")) {
      const MemoryFigures f = read_memory(*t, gpu);
      if (!memory.copy) memory.copy = f.copy;
      if (!memory.norm) memory.norm = f.norm;
      if (!memory.graph_s) memory.graph_s = f.graph_s;
    }
  }
  a.gemm.clear();
  for (const auto& [shape, means] : gemm) {
    const GemmPoint point{std::get<0>(shape), std::get<1>(shape), std::get<2>(shape),
                          means.bf16.value(), means.fp8.value(),  {}};
    if (point.bf16 || point.fp8) a.gemm.push_back(point);
  }
  if (a.gemm.empty()) {
    std::string known;
    for (const std::string& name : lab_gpus(lab_dirs)) known += (known.empty() ? "" : ", ") + name;
    throw InputError({{lab_dirs.empty() ? "LAB_DIR" : lab_dirs.front() + "/gemm.csv", "",
                       fmt::format("no matrix products of GPU \"{}\"", gpu),
                       known.empty() ? "a folder with gemm.csv" : "measured there: " + known}});
  }
  a.attention.clear();
  for (const auto& [shape, means] : attention)
    a.attention.push_back(
        {std::get<0>(shape), std::get<1>(shape), std::get<2>(shape), *means.forward.value(), *means.backward.value()});
  if (memory.copy) a.copy_bandwidth = bytes_per_second(rounded(*memory.copy, 4));
  if (memory.norm) a.norm_bandwidth = bytes_per_second(rounded(*memory.norm, 3));
  if (memory.graph_s) a.graph_floor = seconds(rounded(*memory.graph_s, 3));
  a.transferred_from.clear();
  return a;
}

Accelerator transferred(const Accelerator& measured, Accelerator a) {
  const double bandwidth = a.memory_bandwidth.value() / measured.memory_bandwidth.value();
  a.copy_bandwidth = bytes_per_second(rounded(measured.copy_bandwidth.value() * bandwidth, 4));
  a.norm_bandwidth = bytes_per_second(rounded(measured.norm_bandwidth.value() * bandwidth, 3));
  a.graph_floor = measured.graph_floor;
  a.gemm.clear();
  for (const GemmPoint& g : measured.gemm) {
    GemmPoint here{g.m, g.n, g.k, std::nullopt, std::nullopt, {}};
    const auto scaled = [&](const Precision& p, const Time& there) {
      return seconds(there.value() * roofline_s(a, p, g) / roofline_s(measured, p, g));
    };
    if (g.bf16) here.bf16 = scaled(Precision::bf16, *g.bf16);
    if (g.fp8 && a.peak_fp8.value() > 0) here.fp8 = scaled(Precision::fp8, *g.fp8);
    for (const auto& [name, time] : g.times)
      if (const auto p = a.precision(name); p && a.peak(*p).value() > 0) here.times[name] = scaled(*p, time);
    if (here.bf16 || here.fp8 || !here.times.empty()) a.gemm.push_back(here);
  }
  a.attention.clear();
  const double peaks = measured.peak_bf16.value() / a.peak_bf16.value();
  for (AttentionPoint p : measured.attention) {
    p.forward = seconds(p.forward.value() * peaks);
    p.backward = seconds(p.backward.value() * peaks);
    a.attention.push_back(p);
  }
  a.transferred_from = measured.name;
  return a;
}

std::vector<LeaveOneOut> leave_one_out(const Accelerator& a) {
  std::vector<std::pair<double, std::string>> bf16, fp8, forward, backward;
  const auto error = [](double predicted, double measured) { return 100 * std::abs(predicted / measured - 1); };
  Accelerator others = a;
  for (size_t i = 0; i < a.gemm.size(); ++i) {
    const GemmPoint& g = a.gemm[i];
    const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
    others.gemm = a.gemm;
    others.gemm.erase(others.gemm.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string shape = fmt::format("{} x {} x {}", g.m, g.n, g.k);
    if (g.bf16) bf16.emplace_back(error(gemm_time_s(others, Precision::bf16, m, n, k), g.bf16->value()), shape);
    if (g.fp8) fp8.emplace_back(error(gemm_time_s(others, Precision::fp8, m, n, k), g.fp8->value()), shape);
  }
  others = a;
  for (size_t i = 0; i < a.attention.size(); ++i) {
    const AttentionPoint& p = a.attention[i];
    others.attention = a.attention;
    others.attention.erase(others.attention.begin() + static_cast<std::ptrdiff_t>(i));
    const auto tokens = static_cast<double>(p.sequence);
    const AttentionShape s{1, static_cast<double>(p.heads), tokens, tokens, static_cast<double>(p.head_dim), true};
    const std::string shape = fmt::format("{} heads of {}, {} tokens", p.heads, p.head_dim, p.sequence);
    forward.emplace_back(error(attention_forward_time_s(others, s), p.forward.value()), shape);
    backward.emplace_back(error(attention_backward_time_s(others, s), p.backward.value()), shape);
  }
  return {summary("BF16 matrix products", std::move(bf16)), summary("FP8 matrix products", std::move(fp8)),
          summary("attention forward", std::move(forward)), summary("attention backward", std::move(backward))};
}

std::vector<PowerRow> power_rows(const std::vector<std::string>& lab_dirs, const std::string& gpu,
                                 const Accelerator& a) {
  // Phases of power.csv that show one activity without the board limit in the way. A share of the time gives the draw
  // while busy: (W - context) / share + context.
  struct Phase {
    const char* name;
    Activity activity;
    double share;
  };
  constexpr Phase phases[] = {{"idle_no_context", Activity::idle, 1},
                              {"idle_with_context", Activity::context, 1},
                              {"tiny_eager", Activity::launch_bound, 1},
                              {"tiny_graph", Activity::launch_bound, 1},
                              {"gemm_bf16_duty_0.25", Activity::gemm_bf16, 0.25},
                              {"gemm_bf16_duty_0.5", Activity::gemm_bf16, 0.5},
                              {"hbm_copy", Activity::copy, 1},
                              {"rms_norm_fwd_8192x8192", Activity::memory_bound, 1},
                              {"all_reduce_512MiB", Activity::collective, 1}};
  std::vector<PowerRow> rows;
  for (const std::string& dir : lab_dirs) {
    const auto t = table_of(dir, "power.csv");
    if (!t) continue;
    for (size_t row = 0; row < t->rows(); ++row) {
      if (t->text(row, "gpu") != gpu) continue;
      const auto watts = t->number(row, "watts_mean");
      for (const Phase& phase : phases)
        if (watts && t->text(row, "phase") == phase.name) {
          const double context = a.power.context.value();
          rows.push_back({phase.name, choice_name(phase.activity), (*watts - context) / phase.share + context,
                          a.power.of(phase.activity).value()});
        }
    }
  }
  return rows;
}

std::string GemmRange::text() const {
  return fmt::format("m {:.0f} to {:.0f}, n {:.0f} to {:.0f}, k {:.0f} to {:.0f}", low[0], high[0], low[1], high[1],
                     low[2], high[2]);
}

GemmRange gemm_range(const Accelerator& a) {
  GemmRange r;
  for (const GemmPoint& g : a.gemm) {
    const double sides[3] = {static_cast<double>(g.m), static_cast<double>(g.n), static_cast<double>(g.k)};
    for (int i = 0; i < 3; ++i) {
      r.low[i] = r.measured ? std::min(r.low[i], sides[i]) : sides[i];
      r.high[i] = r.measured ? std::max(r.high[i], sides[i]) : sides[i];
    }
    r.measured = true;
  }
  return r;
}

bool far_outside(const GemmRange& r, double m, double n, double k) {
  const double sides[3] = {m, n, k};
  for (int i = 0; r.measured && i < 3; ++i)
    if (sides[i] * kFar < r.low[i] || sides[i] > kFar * r.high[i]) return true;
  return false;
}

}  // namespace tw
