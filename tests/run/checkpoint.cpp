#include "run/checkpoint.hpp"

#include <catch2/catch.hpp>

#include "inputs.hpp"
#include "run/data_loading.hpp"

using namespace tw;

namespace {

struct Job {
  Architecture network;
  Training training;
  Cluster cluster = input<Cluster>("topologies/eos-h100.json");
  Software software = input<Software>("models/software/nemo-25.04.json");
  Plan plan;
  explicit Job(const std::string& model) : network(input<Architecture>("models/networks/" + model + ".json")) {
    plan.nodes = 8;
    plan.gbs = 1024;
  }
  StepInputs inputs() const { return {&network, &training, nullptr, &cluster, &software, &plan}; }
};

}  // namespace

TEST_CASE("checkpoints hold fourteen bytes of every trained parameter") {
  CHECK(checkpoint_bytes(Job("llama3.1-8b").inputs()) / gib == Approx(105).epsilon(0.005));
  CHECK(checkpoint_bytes(Job("llama3.1-70b").inputs()) / gib == Approx(920).epsilon(0.005));
  CHECK(checkpoint_bytes(Job("llama3.1-405b").inputs()) / gib / 1024 == Approx(5.2).epsilon(0.01));
  Job lora("llama2-70b");
  lora.training.lora = Lora{};
  // 44.6 million adapter parameters of rank 16 on QKV and projection.
  CHECK(checkpoint_bytes(lora.inputs()) == Approx(14 * 44564480.0));
}

TEST_CASE("a checkpoint takes the narrower of storage and the nodes' adapters") {
  Job job("llama3.1-70b");
  CheckpointPlan plan;
  const CheckpointCost shared = checkpoint_cost(job.inputs(), plan);
  CHECK(shared.bottleneck == "storage");
  CHECK(shared.write_s == Approx(shared.bytes / 250e9));
  CHECK(shared.read_s == Approx(shared.bytes / 500e9));
  CHECK(shared.snapshot_s == Approx(shared.bytes / (64 * 10e9)));
  job.cluster.storage.node_bandwidth = bytes_per_second(1e9);
  const CheckpointCost own = checkpoint_cost(job.inputs(), plan);
  CHECK(own.bottleneck == "storage adapters of the nodes");
  CHECK(own.write_s == Approx(own.bytes / 8e9));
}

TEST_CASE("what does not fit the storage is refused by name") {
  Job job("llama3.1-405b");
  CheckpointPlan plan;
  CHECK_NOTHROW(check_capacity(job.inputs(), plan, "x"));
  job.cluster.storage.capacity = bytes(6e12);
  try {
    check_capacity(job.inputs(), plan, "big");
    FAIL("two checkpoints of 5.7 TB");
  } catch (const DoesNotFit& e) {
    CHECK(std::string(e.what()).find("big: 2 checkpoints of 5682 GB do not fit the storage of") == 0);
  }
  plan.keep = 1;
  CHECK_NOTHROW(check_capacity(job.inputs(), plan, "x"));
}

TEST_CASE("data are read as fast as the narrowest part allows") {
  Job job("llama3.1-8b");
  DataLoading data;
  CHECK(input_time(job.inputs(), data).batch_s == 0);
  data.sample_bytes = bytes(1e9);
  CHECK(input_time(job.inputs(), data).batch_s == Approx(1024 / 500.0));
  CHECK(input_time(job.inputs(), data).bottleneck == "storage");
  data.samples_per_worker = 0.5;
  CHECK(input_time(job.inputs(), data).batch_s == Approx(1024 / (64 * 8 * 0.5)));
  CHECK(input_time(job.inputs(), data).bottleneck == "loader workers");
}
