#include "run/data_loading.hpp"

#include <tuple>

#include "core/codec.hpp"

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

void DataLoading::describe(Description<DataLoading>& d) {
  d.object("data", "How training samples are read.");
  d.optional("sample_bytes", &DataLoading::sample_bytes, "bytes read from storage for one sample");
  d.optional("workers", &DataLoading::workers, "loader workers of one accelerator", between(1, 4096));
  d.optional("samples_per_worker", &DataLoading::samples_per_worker,
             "samples that one worker reads, decodes and batches in a second; absent: no limit");
}

}  // namespace tw
