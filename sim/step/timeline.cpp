#include "step/timeline.hpp"

#include "core/outputs.hpp"

namespace tw {

template <>
struct OutputCodec<ActivityTimes> : detail::NoStruct {
  using List = std::array<double, kActivities + 1>;  // each activity, then what runs beside kernels
  using Values = OutputCodec<List>;
  static constexpr auto shape = detail::OutputShape::list;
  static const detail::ObjectOutputs* object() { return nullptr; }
  static List values(const ActivityTimes& t) {
    List list{};
    for (size_t i = 0; i < kActivities; ++i) list[i] = t[static_cast<Activity>(i)];
    list[kActivities] = t.beside;
    return list;
  }
  static void write(const ActivityTimes& t, detail::OutputJson& out, bool exact) {
    Values::write(values(t), out, exact);
  }
  static void unpack(ActivityTimes& t, const detail::OutputJson& in) {
    List list{};
    Values::unpack(list, in);
    for (size_t i = 0; i < kActivities; ++i) t[static_cast<Activity>(i)] = list[i];
    t.beside = list[kActivities];
  }
};

void PhasePart::describe(Outputs<PhasePart>& d) {
  d.output("share", &PhasePart::share);
  d.output("shares", &PhasePart::shares);
}

void Phase::describe(Outputs<Phase>& d) {
  d.output("kind", &Phase::kind);
  d.output("begin_s", &Phase::begin_s);
  d.output("end_s", &Phase::end_s);
  d.output("shares", &Phase::shares);
  d.output("steps", &Phase::steps);
  d.output("parts", &Phase::parts);
  d.output("gpu_limit_w", &Phase::gpu_limit_w);
}

void NodeGroup::describe(Outputs<NodeGroup>& d) {
  d.output("role", &NodeGroup::role);
  d.output("nodes", &NodeGroup::nodes);
  d.output("phases", &NodeGroup::phases);
}

void Timeline::describe(Outputs<Timeline>& d) {
  d.output("run_begin_s", &Timeline::run_begin_s);
  d.output("run_end_s", &Timeline::run_end_s);
  d.output("groups", &Timeline::groups);
}

}  // namespace tw
