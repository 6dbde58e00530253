#include "run/slow_node.hpp"

#include "core/codec.hpp"

namespace tw {

void SlowNode::describe(Description<SlowNode>& d) {
  d.object("slow_node", "Nodes that are slower for some time: a straggler, or thermal throttling.");
  d.required("nodes", &SlowNode::nodes, "nodes of the job, counted from 0", between(0, 1e6));
  d.optional("from", &SlowNode::from, "time from run_start");
  d.optional("to", &SlowNode::to, "time from run_start; absent: to the end");
  d.optional("slowdown", &SlowNode::slowdown,
             "time of a step on these nodes over that on the others; of a pipeline, of the work of their stages",
             between(1, 1000));
  d.optional("gpu_limit", &SlowNode::gpu_limit,
             "or the power that each of their accelerators is throttled to; the power model gives the slow-down",
             above(0));
  d.optional("cause", &SlowNode::cause,
             "what slows them, for their power: clock, accelerators at a lower clock draw less; host, accelerators "
             "at full clock wait for their host or adapter");
}

void SlowCable::describe(Description<SlowCable>& d) {
  d.object("slow_cable", "A cable of the training network that is slower, or fails, for some time of the run.");
  d.required("cable", &SlowCable::cable,
             "as in /cluster/fabric/cable_changes: \"node-3 nic 0\", \"leaf-0-A - spine-2\"");
  d.optional("bandwidth", &SlowCable::bandwidth, "meanwhile, one direction; absent: it fails", above(0));
  d.optional("from", &SlowCable::from, "time from run_start");
  d.optional("to", &SlowCable::to, "time from run_start; absent: to the end");
}

}  // namespace tw
