#include "hardware/calibration.hpp"

#include <catch2/catch.hpp>

#include "core/document.hpp"
#include "core/error.hpp"
#include "hardware/kernels.hpp"
#include "hardware/transfer.hpp"

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
  for (const char* name :
       {"a100-sxm-40gb", "h100-pcie-80gb", "h100-96gb", "h800",     "h20",    "b200-sxm-180gb", "b300",
        "gb200",         "gb300",          "l40s",      "rtx-4090", "a30",    "tpu-v4",         "tpu-v5p",
        "tpu-v6e",       "gaudi2",         "gaudi3",    "mi300x",   "mi325x", "mi355x"}) {
    INFO(name);
    Accelerator a = profile(name);
    const Accelerator made = transferred(h100, a);
    complete_transfer(a, a.board_limit);
    CHECK(a.transferred_from == h100.name);
    REQUIRE(made.gemm.size() == a.gemm.size());
    for (size_t i = 0; i < made.gemm.size(); ++i) {
      same(made.gemm[i].bf16, a.gemm[i].bf16);
      same(made.gemm[i].fp8, a.gemm[i].fp8);
    }
    CHECK(made.copy_bandwidth == a.copy_bandwidth);
    if (std::string(name) != "a100-sxm-80gb")  // which gives watts of its own
      CHECK(a.power.gemm_bf16.value() ==
            // The same chip on another board draws the same, up to the board's limit.
            Approx(870 * (a.peak_bf16 == h100.peak_bf16 ? 1 : a.board_limit.value() / 700)).epsilon(1e-9));
    // A cap caps, and makes no other board.
    Accelerator capped = profile(name);
    capped.board_limit = watts(0.6 * capped.board_limit.value());
    complete_transfer(capped, a.board_limit);
    CHECK(capped.power.gemm_bf16 == a.power.gemm_bf16);
  }
}

TEST_CASE("precisions are keys of data: a board's peaks, kernels and efficiency") {
  Accelerator a = profile("gb200");
  complete_transfer(a, a.board_limit);
  CHECK(a.peak(Precision::mxfp8).value() == 5e15);
  CHECK(a.peak(Precision::nvfp4).value() == 1e16);
  CHECK(profile("h100-sxm").peak(Precision::mxfp8).value() == 0);
  // Kernels of MXFP8 are FP8's at its own peak until it has its own.
  const double fp8 = gemm_time_s(a, Precision::fp8, 8192, 8192, 8192);
  a.efficiency = {};
  const double table = gemm_time_s(a, Precision::mxfp8, 8192, 8192, 8192);
  a.efficiency = {{"mxfp8", 0.5}};
  CHECK(gemm_time_s(a, Precision::mxfp8, 8192, 8192, 8192) == Approx(2 * table));
  CHECK(fp8 > 0);
  a.efficiency = {};
  a.gemm = {{8192, 8192, 8192, std::nullopt, std::nullopt, {{"mxfp8", seconds(1e-3)}}}};
  CHECK(gemm_time_s(a, Precision::mxfp8, 8192, 8192, 8192) == Approx(1e-3));
  // One of its own has the kernels of the one it is like, at its share of that peak.
  a.precisions["own"] = {Precision::mxfp8, 0.75, 2, true, false};
  const auto own = a.precision("own");
  REQUIRE(own.has_value());
  CHECK(own->name() == "own");
  CHECK(own->activity == Activity::gemm_fp8);
  CHECK(a.peak(*own).value() == 1e16);
  CHECK(gemm_time_s(a, *own, 8192, 8192, 8192) == Approx(0.5e-3));
  CHECK_FALSE(a.precision("other").has_value());
  CHECK(a.precision("nvfp4") == Precision::nvfp4);
  CHECK_THAT(schema_text(description<PrecisionFormat>().info()),
             Catch::Contains("\"examples\": [") && Catch::Contains("\"nvfp4\""));
}
