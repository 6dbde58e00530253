#include "hardware/calibration.hpp"

#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "core/error.hpp"
#include "hardware/kernels.hpp"

using namespace tw;

namespace {
const std::vector<std::string> kLabs{"reference/gpu_lab", "reference/gpu_lab_2"};

Accelerator profile(const std::string& name) {
  return load<Accelerator>("models/accelerators/" + name + ".json");
}

void same(const std::optional<Time>& a, const std::optional<Time>& b) {
  REQUIRE(a.has_value() == b.has_value());
  // Profiles are written with six digits.
  if (a) CHECK(a->value() == Approx(b->value()).epsilon(5e-6));
}
}  // namespace

TEST_CASE("the shipped H100 and H200 profiles come out of the laboratory's files") {
  for (const auto& [gpu, name] : {std::pair<std::string, std::string>{"H100", "h100-sxm"}, {"H200", "h200-sxm"}}) {
    const Accelerator shipped = profile(name), made = calibrated(kLabs, gpu, shipped);
    REQUIRE(made.gemm.size() == shipped.gemm.size());
    for (size_t i = 0; i < made.gemm.size(); ++i) {
      const GemmPoint &a = made.gemm[i], &b = shipped.gemm[i];
      REQUIRE(std::tuple(a.m, a.n, a.k) == std::tuple(b.m, b.n, b.k));
      same(a.bf16, b.bf16);
      same(a.fp8, b.fp8);
    }
    REQUIRE(made.attention.size() == shipped.attention.size());
    for (size_t i = 0; i < made.attention.size(); ++i) {
      const AttentionPoint &a = made.attention[i], &b = shipped.attention[i];
      REQUIRE(std::tuple(a.heads, a.sequence, a.head_dim) == std::tuple(b.heads, b.sequence, b.head_dim));
      same(a.forward, b.forward);
      same(a.backward, b.backward);
    }
    CHECK(made.copy_bandwidth.value() == Approx(shipped.copy_bandwidth.value()).epsilon(1e-9));
    CHECK(made.norm_bandwidth.value() == Approx(shipped.norm_bandwidth.value()).epsilon(1e-9));
    CHECK(made.launch_floor.value() == Approx(shipped.launch_floor.value()).epsilon(1e-9));
    CHECK(made.graph_floor.value() == Approx(shipped.graph_floor.value()).epsilon(1e-9));
  }
}

TEST_CASE("a GPU that was not measured is refused with those that were") {
  CHECK(lab_gpus(kLabs) == std::vector<std::string>{"H200", "H100"});
  try {
    calibrated(kLabs, "B300", profile("h100-sxm"));
    FAIL("accepted");
  } catch (const InputError& e) {
    CHECK(std::string(e.what()).find("H200, H100") != std::string::npos);
  }
}

TEST_CASE("shapes are predicted from the others, matrix products within a few percent") {
  const auto errors = leave_one_out(profile("h100-sxm"));
  REQUIRE(errors.size() == 4);
  for (const LeaveOneOut& e : errors) {
    CHECK(e.points > 40);
    // Attention was measured on a coarse grid of shapes, two or three times apart.
    CHECK(e.median_pct < (e.kernel.find("attention") == std::string::npos ? 4 : 18));
    CHECK(e.worst_pct >= e.p90_pct);
    CHECK_FALSE(e.worst.empty());
  }
}

TEST_CASE("a transferred board keeps each kernel's distance from the roofline") {
  const Accelerator h100 = profile("h100-sxm");
  Accelerator half = h100;
  half.peak_bf16 = flops_per_second(h100.peak_bf16.value() / 2);
  half.peak_fp8 = flops_per_second(h100.peak_fp8.value() / 2);
  half.memory_bandwidth = bytes_per_second(h100.memory_bandwidth.value() / 2);
  const Accelerator t = transferred(h100, half);
  CHECK(t.transferred_from == h100.name);
  for (const auto& [m, n, k] : {std::tuple{8192., 8192., 8192.}, {512., 4096., 4096.}, {3000., 5000., 7000.}})
    CHECK(gemm_time_s(t, Precision::bf16, m, n, k) ==
          Approx(2 * gemm_time_s(h100, Precision::bf16, m, n, k)).epsilon(1e-9));
  CHECK(t.copy_bandwidth.value() == Approx(h100.copy_bandwidth.value() / 2).epsilon(1e-3));
  half.peak_fp8 = FlopRate{};
  CHECK_FALSE(transferred(h100, half).gemm.front().fp8);
}

TEST_CASE("shapes far outside the measured ones are told apart") {
  const GemmRange r = gemm_range(profile("h100-sxm"));
  REQUIRE(r.measured);
  CHECK_FALSE(far_outside(r, 8192, 8192, 8192));
  CHECK_FALSE(far_outside(r, 2 * r.high[0], 8192, 8192));
  CHECK(far_outside(r, 8192, 5 * r.high[1], 8192));
  CHECK(far_outside(r, 8192, 8192, r.low[2] / 5));
  CHECK_FALSE(far_outside(GemmRange{}, 1, 1, 1));
}

TEST_CASE("profiles that were not measured say so, and follow from the H100's") {
  const Accelerator h100 = profile("h100-sxm");
  for (const char* name : {"a100-sxm-80gb", "a100-sxm-40gb", "a100-pcie-80gb", "h100-pcie-80gb", "b200-sxm-180gb",
                           "gb200", "l40s", "a30", "tpu-v3", "tpu-v4", "gaudi2", "mi300x", "mi325x"}) {
    INFO(name);
    const Accelerator shipped = profile(name), made = transferred(h100, shipped);
    CHECK(shipped.transferred_from == h100.name);
    REQUIRE(made.gemm.size() == shipped.gemm.size());
    for (size_t i = 0; i < made.gemm.size(); ++i) {
      same(made.gemm[i].bf16, shipped.gemm[i].bf16);
      same(made.gemm[i].fp8, shipped.gemm[i].fp8);
    }
    CHECK(made.copy_bandwidth.value() == Approx(shipped.copy_bandwidth.value()).epsilon(1e-9));
    CHECK(shipped.power.gemm_bf16.value() == Approx(870 * shipped.board_limit.value() / 700).margin(1));
  }
}
