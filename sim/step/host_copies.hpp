// Activations that wait in the host's memory from a chunk's forward to its backward: copies beside the kernels of a
// visit, each over the layers that workload/memory.hpp (offload_due) gives it. Forward waits for one at the end of its
// last layer and begins the next; backward begins one before that layer, when the one before it has come.
#pragma once

#include <utility>
#include <vector>

#include "step/task_list.hpp"
#include "workload/memory.hpp"

namespace tw {

class HostCopies {
 public:
  // `copy_s`: seconds of the copy of each of the chunk's first layers, as many as are offloaded; empty: nothing is.
  HostCopies(TaskList& list, std::vector<double> copy_s, int layers, bool backward)
      : list_(list),
        copy_s_(std::move(copy_s)),
        due_(offload_due(static_cast<int>(copy_s_.size()), layers)),
        moved_(copy_s_.size(), -1),
        layers_(layers),
        backward_(backward),
        next_(backward ? due_.size() : 0) {}

  // Before and after the `l`-th layer of the pass.
  void before(int l);
  void after(int l);

 private:
  void move(Stream stream, size_t k);
  void wait(size_t k);

  TaskList& list_;
  std::vector<double> copy_s_;
  std::vector<int> due_;
  std::vector<int> moved_;  // the copies
  int layers_;
  bool backward_;
  size_t next_;  // forward: is to leave; backward: one before this one is to come
};

}  // namespace tw
