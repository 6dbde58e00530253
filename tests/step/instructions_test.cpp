// Kernels that are bound by their instructions beside the memory (reference/gpu_lab_14).
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "core/csv.hpp"
#include "core/document.hpp"
#include "hardware/kernels.hpp"
#include "hardware/transfer.hpp"
#include "step/chunk_program.hpp"
#include "workload/operations.hpp"

using namespace tw;

namespace {

using Times = std::map<std::string, double>;

// Seconds by `key` columns of rows of one board.
Times seconds_of(const std::string& path, const std::string& gpu, const std::vector<std::string>& key) {
  const CsvTable table = CsvTable::load(path);
  Times times;
  for (size_t row = 0; row < table.rows(); ++row) {
    if (table.text(row, "gpu") != gpu) continue;
    std::string name;
    for (const std::string& column : key) name += table.text(row, column) + " ";
    times[name] = table.value(row, "seconds");
  }
  return times;
}

struct Gained {
  std::string operation;
  bool backward;
  double measured;  // time on an H100 over that on an H200
};

}  // namespace

TEST_CASE("kernels gain from an H100 to an H200 what was measured: the memory's 1.41 only where it alone binds") {
  const Times biases_h100 =
      seconds_of("reference/gpu_lab_8/expert_biases.csv", "H100", {"op", "way", "rows", "experts"});
  const Times biases_h200 =
      seconds_of("reference/gpu_lab_14/expert_biases.csv", "H200", {"op", "way", "rows", "experts"});
  const Times turned_h100 = seconds_of("reference/gpu_lab_9/rotary_scaled.csv", "H100", {"way", "tokens", "heads"});
  const Times turned_h200 = seconds_of("reference/gpu_lab_14/rotary_scaled.csv", "H200", {"way", "tokens", "heads"});
  const Times h100 = seconds_of("reference/gpu_lab_2/memory_ops.csv", "H100", {"op"});
  const Times h200 = seconds_of("reference/gpu_lab_14/memory_ops.csv", "H200", {"op"});
  const auto bias = [&](const std::string& row) { return biases_h100.at(row) / biases_h200.at(row); };
  const auto turned = [&](const std::string& row) { return turned_h100.at(row) / turned_h200.at(row); };
  const auto plain = [&](const std::string& op) { return h100.at(op + " ") / h200.at(op + " "); };
  const std::vector<Gained> all = {{"clamp activation input", false, bias("clamp_halves forward 65536 2 ")},
                                   {"clamp gradient", true, bias("clamp_halves backward 65536 2 ")},
                                   {"experts' biases", false, bias("down_bias forward 65536 2 ")},
                                   {"experts' biases' gradient", true, bias("down_bias backward 65536 2 ")},
                                   {"rotary", false, turned("forward 16384 64 ")},
                                   {"rotary gradient", true, turned("backward 16384 64 ")},
                                   {"norm 1", false, plain("rms_norm_fwd_triton_8192x8192")},
                                   {"norm 1 gradient and residual", true, plain("rms_norm_bwd_triton_8192x8192")},
                                   {"SwiGLU", false, plain("swiglu_fwd_triton_8192x14336")},
                                   {"residual 1", false, plain("add_8192x8192")},
                                   {"loss", false, plain("cross_entropy_fwd_triton_8192x128256")},
                                   {"loss gradient", true, plain("cross_entropy_bwd_triton_8192x128256")}};
  const auto slow = load<Accelerator>("models/accelerators/h100-sxm.json");
  const auto fast = load<Accelerator>("models/accelerators/h200-sxm.json");
  const auto software = load<Software>("models/software/nemo-experts.json");
  const auto network = load<Architecture>("models/networks/gpt-oss-120b.json");
  Training t;
  t.sequence = 16384;
  Plan plan;
  plan.ep = 64;  // two experts a rank
  const auto layer = layer_operations(network, t, plan, software), head = head_operations(network, t, plan, software);
  for (const Gained& g : all) {
    INFO(g.operation);
    double ratio = 0;
    for (const auto* list :
         {g.backward ? &layer.backward : &layer.forward, g.backward ? &head.backward : &head.forward})
      for (const Operation& o : *list)
        if (o.name == g.operation) ratio = kernel_time_s(o, slow, software, 1) / kernel_time_s(o, fast, software, 1);
    CHECK(ratio == Approx(g.measured).epsilon(0.05));
  }
}

TEST_CASE("instructions never shorten a kernel, and stretch nothing on boards whose multiprocessors are not known") {
  auto b200 = load<Accelerator>("models/accelerators/b200-sxm-180gb.json");
  complete_transfer(b200, b200.board_limit);
  const auto h100 = load<Accelerator>("models/accelerators/h100-sxm.json");
  CHECK(instruction_stretch(h100, 0.5) == Approx(1).epsilon(1e-3));
  CHECK(instruction_stretch(b200, 0) == 1);
  double before = 1;
  for (const double share : {0.1, 0.3, 0.6, 1.0}) {
    const double stretch = instruction_stretch(b200, share);
    CHECK(stretch > before);
    before = stretch;
  }
  // Bound by instructions alone: by multiprocessors and clock over an H100's.
  const double gained = b200.copy_bandwidth.value() / h100.copy_bandwidth.value();
  CHECK(instruction_stretch(b200, 1) == Approx(gained / (148 * 1.965 / (132 * 1.98))).epsilon(1e-3));
  Accelerator few = h100, unknown = b200;
  few.memory_bandwidth = few.copy_bandwidth = bytes_per_second(1e12);
  CHECK(instruction_stretch(few, 0.7) == 1);
  unknown.multiprocessors = 0;
  CHECK(instruction_stretch(unknown, 0.7) == 1);
}
