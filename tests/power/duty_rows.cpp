// The board's watts against the laboratory's duty cycles; its steady phases are suite gpu-lab-power.
#include <catch2/catch.hpp>

#include "core/csv.hpp"
#include "core/document.hpp"
#include "hardware/gpu_power.hpp"
#include "reference_cluster.hpp"

using namespace tw;

TEST_CASE("duty rows: uncapped watts within the spread of the lab's boards") {
  // Two boards of one row differ by up to 20 %, and shares below 0.2 are uncertain by 10 % (the lab's README).
  const CsvTable table = CsvTable::load(test::reference_file("gpu_lab/power_duty.csv"));
  const Accelerator board = test::board("gpu-h100-sxm.json");
  double sum = 0;
  for (size_t i = 0; i < table.rows(); ++i) {
    const std::string op = table.text(i, "op");
    const Activity a = op == "gemm_bf16"       ? Activity::gemm_bf16
                       : op == "gemm_fp8"      ? Activity::gemm_fp8
                       : op == "attention_fwd" ? Activity::attention_forward
                       : op == "attention_bwd" ? Activity::attention_backward
                       : op == "hbm_copy"      ? Activity::copy
                                               : Activity::memory_bound;
    ActivityTimes mix = ActivityTimes::only(a, table.value(i, "busy_share"));
    mix[Activity::context] = 1 - table.value(i, "busy_share");
    Accelerator used = board;
    if (op == "hbm_copy") used.power = with_toggling(board.power, 0);  // memory not filled
    const double predicted = board_power(used, mix, used.board_limit).watts;
    const double measured = table.value(i, "watts_mean");
    INFO(op << " " << table.text(i, "busy_share") << ": " << predicted);
    CHECK(predicted == Approx(measured).epsilon(0.14));
    sum += std::abs(predicted / measured - 1);
  }
  CHECK(sum / static_cast<double>(table.rows()) < 0.05);
}
