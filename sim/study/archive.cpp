#include "study/archive.hpp"

#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace tw {
namespace {

class Writer {
 public:
  template <class... Fields>
  void operator()(Fields&... fields) {
    (one(fields), ...);
  }
  std::string take() { return std::move(out_); }

 private:
  template <class T>
  void one(T& v);
  void raw(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  std::string out_;
};

class Reader {
 public:
  explicit Reader(const std::string& in) : in_(in) {}
  template <class... Fields>
  void operator()(Fields&... fields) {
    (one(fields), ...);
  }

 private:
  template <class T>
  void one(T& v);
  void raw(void* data, size_t size) {
    if (in_.size() - at_ < size) throw std::runtime_error("a result arrived cut off");
    std::memcpy(data, in_.data() + at_, size);
    at_ += size;
  }
  const std::string& in_;
  size_t at_ = 0;
};

template <class A>
void fields(A& a, PlanResult& r) {
  a(r.nodes, r.gpus, r.tp, r.pp, r.vp, r.cp, r.dp, r.ep, r.mbs, r.gbs, r.ga);
}
template <class A>
void fields(A& a, Breakdown& r) {
  a(r.compute, r.host, r.tp, r.cp, r.pp, r.dp, r.ep, r.bubble, r.optimizer, r.jitter, r.other);
}
template <class A>
void fields(A& a, StepResult& r) {
  a(r.time_s, r.tokens_per_s, r.samples_per_s, r.mfu, r.breakdown_s);
}
template <class A>
void fields(A& a, MemoryResult& r) {
  a(r.per_gpu_bytes, r.capacity_bytes, r.parts_bytes);
}
template <class A>
void fields(A& a, Distribution& r) {
  a(r.mean, r.sd, r.p5, r.p50, r.p95, r.olympic, r.official);
}
template <class A>
void fields(A& a, Spread& r) {
  a(r.mean, r.sd, r.p5, r.p50, r.p95);
}
template <class A>
void fields(A& a, CheckpointResult& r) {
  a(r.bytes, r.count, r.interval_s, r.write_s, r.read_s, r.blocked_s, r.wait_s, r.bottleneck);
}
template <class A>
void fields(A& a, FailuresResult& r) {
  a(r.mtbf_s, r.count, r.rework_s, r.restart_s, r.spare_wait_s, r.by_component, r.daly_interval_s, r.best_interval_s,
    r.best_goodput, r.present_goodput);
}
template <class A>
void fields(A& a, DataResult& r) {
  a(r.batch_s, r.wait_s, r.bottleneck);
}
template <class A>
void fields(A& a, SeriesResult& r) {
  a(r.count, r.finished, r.samples, r.total_dc_j, r.total_ac_j, r.facility_j, r.kg_co2e, r.goodput, r.lost_s, r.official_dc_j,
    r.rcp_factor, r.rcp_rule, r.half_width_pct, r.needed_1pct, r.needed_2pct, r.needed_5pct);
}
template <class A>
void fields(A& a, RunResult& r) {
  a(r.status, r.stopped_at_s, r.time_to_train_s, r.steps, r.samples, r.evaluations, r.eval_s, r.eval_first_s, r.init_s, r.first_step_s, r.wait_s,
    r.checkpoint_s, r.lost_s, r.days_per_1T_tokens, r.target_samples, r.goodput, r.slow_s, r.days, r.tokens,
    r.days_per_1T_tokens_effective, r.checkpoints, r.failures, r.data);
}
template <class A>
void fields(A& a, NodePowerResult& r) {
  a(r.node, r.mean_w, r.peak_w, r.dc_j);
}
template <class A>
void fields(A& a, SwitchShare& r) {
  a(r.vertex, r.share, r.watts);
}
template <class A>
void fields(A& a, PowerResult& r) {
  a(r.mean, r.min, r.max, r.steady, r.idle, r.wait, r.evaluation, r.gpu_steady, r.per_node, r.network_w,
    r.network_w_per_node, r.network_rule, r.network_w_by_rule, r.peak_bus_w, r.shelf_headroom, r.train, r.switches);
}
template <class A>
void fields(A& a, EnergyResult& r) {
  a(r.nodes_dc_j, r.network_j, r.total_dc_j, r.rectifier_loss_j, r.total_ac_j, r.facility_j, r.ppue_j, r.rcp_factor);
}
template <class A>
void fields(A& a, CarbonResult& r) {
  a(r.kg_co2e, r.kg_co2e_mlperf_v4_0, r.intensity_kg_per_kwh);
}
template <class A>
void fields(A& a, JobResult& r) {
  a(r.name, r.alone_s, r.together_s, r.slow_down, r.bottleneck, r.narrowest);
}
template <class A>
void fields(A& a, ReferenceRow& r) {
  a(r.quantity, r.unit, r.kind, r.measured, r.predicted, r.error_pct);
}
template <class A>
void fields(A& a, ReferenceResult& r) {
  a(r.source, r.rows);
}
template <class A>
void fields(A& a, PowerSeries& r) {
  a(r.time_s, r.mean_w, r.p5_w, r.p95_w, r.p50_w);
}
template <class A>
void fields(A& a, ActivityTimes& r) {
  for (size_t i = 0; i < kActivities; ++i) a(r[static_cast<Activity>(i)]);
}
template <class A>
void fields(A& a, PhasePart& r) {
  a(r.share, r.shares);
}
template <class A>
void fields(A& a, Phase& r) {
  a(r.kind, r.begin_s, r.end_s, r.shares, r.steps, r.parts, r.gpu_limit_w);
}
template <class A>
void fields(A& a, NodeGroup& r) {
  a(r.role, r.nodes, r.phases);
}
template <class A>
void fields(A& a, Timeline& r) {
  a(r.run_begin_s, r.run_end_s, r.groups);
}
template <class A>
void fields(A& a, Ramp& r) {
  a(r.window_s, r.up_w_per_s, r.up_at_s, r.down_w_per_s, r.down_at_s);
}
template <class A>
void fields(A& a, PowerSwings& r) {
  a(r.mean_w, r.sd_w, r.least_w, r.peak_w, r.p5_w, r.p50_w, r.p95_w, r.p99_w, r.largest_step_w, r.largest_step_at_s,
    r.ramps);
}
template <class A>
void fields(A& a, StageTotals& r) {
  a(r.stage, r.units, r.output_j, r.loss_j, r.peak_w, r.peak_unit, r.peak_at_s, r.rating_w, r.headroom_w,
    r.spare_headroom_w, r.redundant);
}
template <class A>
void fields(A& a, HourlyResult& r) {
  a(r.start, r.kg_co2e, r.kg_co2e_market, r.cost_usd, r.least_carbon_start, r.least_cost_start, r.least_kg_co2e,
    r.most_kg_co2e, r.least_cost_usd, r.most_cost_usd);
}
template <class A, size_t N>
void fields(A& a, std::array<double, N>& r) {
  for (double& v : r) a(v);
}
template <class A>
void fields(A& a, StepPower& r) {
  a(r.begin_s, r.watts, r.end_s);
}
template <class A>
void fields(A& a, GridResult& r) {
  a(r.facility, r.step_swing_w, r.stages, r.grid_j, r.parts_j, r.failures, r.stopped, r.lost_s, r.dc_per_sample_j,
    r.dc_per_token_j, r.facility_per_sample_j, r.facility_per_token_j, r.kg_co2e_market, r.hourly, r.step);
}
template <class A>
void fields(A& a, RectifierFailure& r) {
  a(r.bus, r.count, r.at_s);
}
template <class A>
void fields(A& a, Power& r) {
  double w = r.value();
  a(w);
  r = watts(w);
}
template <class A>
void fields(A& a, NodeCap& r) {
  a(r.nodes, r.from_s, r.gpu_limit);
}
template <class A>
void fields(A& a, PowerOptions& r) {
  a(r.gpu_limit, r.seed, r.caps, r.failures);
}
template <class A>
void fields(A& a, Result& r) {
  a(r.scenario, r.seed, r.inputs_sha256, r.plan, r.step, r.memory, r.run, r.series_of_runs, r.power, r.energy,
    r.energy_mlperf_v4_0, r.carbon, r.grid, r.cost, r.jobs, r.reference, r.warnings, r.error, r.timeline,
    r.power_options, r.series);
}

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

template <class T>
void Writer::one(T& v) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    raw(&v, sizeof v);
  } else if constexpr (std::is_same_v<T, std::string>) {
    const uint64_t size = v.size();
    raw(&size, sizeof size);
    raw(v.data(), v.size());
  } else if constexpr (IsVector<T>::value) {
    const uint64_t size = v.size();
    raw(&size, sizeof size);
    for (auto& e : v) one(e);
  } else if constexpr (IsOptional<T>::value) {
    const bool present = v.has_value();
    raw(&present, sizeof present);
    if (present) one(*v);
  } else if constexpr (IsMap<T>::value) {
    const uint64_t size = v.size();
    raw(&size, sizeof size);
    for (auto& [key, e] : v) {
      std::string copy = key;
      one(copy);
      one(e);
    }
  } else {
    fields(*this, v);
  }
}

template <class T>
void Reader::one(T& v) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    raw(&v, sizeof v);
  } else if constexpr (std::is_same_v<T, std::string> || IsVector<T>::value) {
    uint64_t size = 0;
    raw(&size, sizeof size);
    if (size > in_.size() * 8) throw std::runtime_error("a result arrived garbled");
    v.resize(size);
    if constexpr (std::is_same_v<T, std::string>)
      raw(v.data(), size);
    else
      for (auto& e : v) one(e);
  } else if constexpr (IsOptional<T>::value) {
    bool present = false;
    raw(&present, sizeof present);
    if (present) one(v.emplace());
  } else if constexpr (IsMap<T>::value) {
    uint64_t size = 0;
    raw(&size, sizeof size);
    for (uint64_t i = 0; i < size; ++i) {
      std::string key;
      one(key);
      one(v[key]);
    }
  } else {
    fields(*this, v);
  }
}

}  // namespace

std::string to_bytes(const Result& result) {
  Writer w;
  Result copy = result;  // the one list of fields serves both ways, so it takes them mutable
  w(copy);
  return w.take();
}

Result from_bytes(const std::string& bytes) {
  Result result;
  Reader r(bytes);
  r(result);
  return result;
}

}  // namespace tw
