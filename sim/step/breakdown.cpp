#include "step/breakdown.hpp"

#include "core/outputs.hpp"

namespace tw {

void Breakdown::describe(Outputs<Breakdown>& d) {
  d.output("compute", &Breakdown::compute, "s", "kernels on the critical path");
  d.output("host", &Breakdown::host, "s", "GPUs wait for the host to issue kernels");
  d.output("tp", &Breakdown::tp, "s", "exposed tensor-parallel collectives");
  d.output("cp", &Breakdown::cp, "s", "exposed context-parallel exchange");
  d.output("pp", &Breakdown::pp, "s", "exposed hand-over between pipeline stages");
  d.output("dp", &Breakdown::dp, "s", "exposed gradient exchange and gathers of sharded weights");
  d.output("ep", &Breakdown::ep, "s", "exposed all-to-all of experts");
  d.output("bubble", &Breakdown::bubble, "s", "pipeline bubble");
  d.output("optimizer", &Breakdown::optimizer, "s", "optimizer");
  d.output("jitter", &Breakdown::jitter, "s", "waits for the slowest member");
  d.output("other", &Breakdown::other, "s", "the rest");
}

}  // namespace tw
