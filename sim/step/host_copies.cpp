#include "step/host_copies.hpp"

#include <map>

#include "step/chunk_program.hpp"
#include "workload/memory.hpp"

namespace tw {

void HostCopies::before(int l) {
  const int layer = layers_ - 1 - l;
  if (copy_s_.empty() || !backward_) return;
  if (next_ > 0 && due_[next_ - 1] == layer) {
    if (next_ < due_.size()) wait(next_);
    move(Stream::from_host, --next_);
  }
  if (layer == 0) wait(0);
}

void HostCopies::after(int l) {
  if (copy_s_.empty() || backward_) return;
  if (l == 0) move(Stream::to_host, 0);
  if (next_ == due_.size() || due_[next_] != l) return;
  wait(next_);
  if (++next_ < due_.size()) move(Stream::to_host, next_);
}

void HostCopies::move(Stream stream, size_t k) {
  if (copy_s_[k] > 0) moved_[k] = list_.beside(stream, {copy_s_[k], copy_s_[k]}, list_.copy(0, -1));
}

void HostCopies::wait(size_t k) {
  if (moved_[k] >= 0) list_.copy(0, moved_[k]);
}

std::vector<double> ChunkProgram::host_copies_s(const ChunkShape& shape) const {
  const double Bps = in_.cluster->node.host_copy_Bps();
  if (pass_ == Pass::evaluation || in_.training->offload_layers < 1 || Bps <= 0) return {};
  std::map<LayerKind, double> of_kind;
  std::vector<double> copy_s(offload_due(in_.training->offload_layers, shape.layers()).size());
  for (size_t l = 0; l < copy_s.size(); ++l) {
    const LayerKind& kind = shape.kinds[l];
    const auto [at, fresh] = of_kind.try_emplace(kind, 0.0);
    if (fresh) at->second = kept_activation_bytes(*in_.network, kind, *in_.training, *in_.plan, *in_.software) / Bps;
    copy_s[l] = at->second;
  }
  return copy_s;
}

}  // namespace tw
