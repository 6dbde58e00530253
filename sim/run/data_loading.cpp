#include "run/data_loading.hpp"

#include <tuple>

namespace tw {

InputTime input_time(const StepInputs& in, const DataLoading& data) {
  const double samples = in.plan->gbs, bytes = samples * data.sample_bytes.value();
  const Storage& storage = in.cluster->storage;
  const double node_Bps = in.plan->nodes * storage.node_bandwidth.value();
  const double workers = static_cast<double>(in.plan->nodes) * in.cluster->node.gpus * data.workers;
  InputTime longest;
  for (const auto& [name, rate, amount] : {std::tuple{"storage", storage.read_bandwidth.value(), bytes},
                                           std::tuple{"storage adapters of the nodes", node_Bps, bytes},
                                           std::tuple{"loader workers", workers * data.samples_per_worker, samples}})
    if (rate > 0 && amount / rate > longest.batch_s) longest = {amount / rate, name};
  return longest;
}

}  // namespace tw
