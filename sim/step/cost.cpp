#include "step/cost.hpp"

#include <algorithm>

namespace tw {

double TaskCost::from_host() const {
  return std::max({from_host_s, device_s(), host_s});
}

TaskCost& TaskCost::operator+=(const TaskCost& o) {
  for (VisitExchange x : o.shared) {
    x.begin_s += device_s();
    shared.push_back(x);
  }
  const double after_s = device_s() + o.device_s(), device = std::max(after_s, to_host_s + o.from_host());
  const double host = std::max(host_s + o.host_s, from_host() + o.to_host_s);
  from_host_s = std::max(from_host() + o.device_s(), host_s + o.from_host());
  to_host_s = std::max({kNoWay, device_s() + o.to_host_s, to_host_s + o.host_s});
  gap_s += device - after_s;
  busy += o.busy;
  tp_s += o.tp_s, cp_s += o.cp_s, ep_s += o.ep_s, dp_s += o.dp_s, gap_s += o.gap_s, host_s = host;
  host_exchange_s += o.host_exchange_s, flops += o.flops, launches += o.launches;
  return *this;
}

TaskCost TaskCost::repeated(int times) const {
  if (to_host_s > kNoWay) {
    TaskCost all = *this;
    for (int i = 1; i < times; ++i) all += *this;
    return all;
  }
  const double f = times;
  TaskCost c;
  c.busy = busy.scaled(f);
  c.tp_s = tp_s * f, c.cp_s = cp_s * f, c.ep_s = ep_s * f, c.dp_s = dp_s * f;
  c.gap_s = gap_s * f, c.host_s = host_s * f, c.flops = flops * f, c.launches = launches * f;
  c.host_exchange_s = host_exchange_s * f;
  c.from_host_s = from_host() + (f - 1) * std::max(device_s(), host_s);
  for (int i = 0; i < times; ++i)
    for (VisitExchange x : shared) {
      x.begin_s += i * device_s();
      c.shared.push_back(x);
    }
  return c;
}

const TaskCost& PassCost::of(const Visit& v) const {
  if (!v.backward) return forward;
  return v.part == Part::whole ? backward : v.part == Part::input ? input : weight;
}

std::vector<ParameterGroup> groups_of(const StepInputs& in) {
  return parameter_groups(*in.network, *in.training, *in.plan, *in.software, layers_of_chunks(*in.network, *in.plan));
}

SharedSum exchanged_gradients(const StepInputs& in, const std::vector<ParameterGroup>& groups, int chunk) {
  SharedSum bytes;
  for (const ParameterGroup& g : groups)
    if (g.trained && g.chunk == chunk && g.exchanged > 1)
      bytes.of(g) += g.held * in.software->memory.gradient_bytes_per_parameter;
  return bytes;
}

}  // namespace tw
