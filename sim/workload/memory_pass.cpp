#include "workload/memory_pass.hpp"

namespace tw {

void HeldPass::then(const HeldStretch& one, double work) {
  HeldBytes most = all.end;
  for (size_t i = 0; i < kHeld; ++i) most[i] += one.at_peak[i];
  moments.push_back({flops + work / 2, most});
  all.then(one), flops += work;
  moments.push_back({flops, all.end});
}

// The buffer of a gather lives until the next one has come (PyTorch FSDP2; reference/gpu_lab_6/trace.csv).
void HeldPass::forward(const MemoryUnit& u, double& before, bool keeps) {
  HeldStretch one;
  one.add(Held::gather_buffer, u.whole);
  one.add(Held::gathered, u.whole);
  one.add(Held::gather_buffer, -before);
  one.then(u.forward);
  if (!keeps) one.add(Held::gathered, -u.whole);
  before = u.whole;
  then(one, u.flops);
}

// Weights came with the layer after; those of the one before (`next` in this direction) come meanwhile. Gradients are
// whole until the layer is done, and then leave in a buffer that lives until the next layer is done.
void HeldPass::backward(const MemoryUnit& u, const MemoryUnit* next, double& before, bool kept) {
  HeldStretch one;
  if (!kept) {
    one.add(Held::gathered, u.whole);
    one.add(Held::gather_buffer, -u.whole);
    if (next != nullptr) one.add(Held::gather_buffer, next->whole);
  }
  one.then(u.backward);
  if (u.whole > 0) {
    one.add(Held::reduce_buffer, -before);
    one.add(Held::gathered, -u.whole);
    one.add(Held::reduce_buffer, u.reduced);
    one.add(Held::gradients, -u.backward.end[static_cast<size_t>(Held::gradients)]);
    one.add(Held::shard_gradients, u.shard);
    before = u.reduced;
  }
  then(one, 2 * u.flops);
}

}  // namespace tw
