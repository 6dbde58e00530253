// The collective library of a step: its release's, where that drives the accelerator, else the accelerator's.
#include <catch2/catch.hpp>

#include "simulated.hpp"

using namespace tw;

namespace {

const std::vector<std::string> kJob{"/cluster=\"topologies/smc-h100.json\"", "/cluster/hosts/noise=null",
                                    "/run={\"steps\": 2}", "/training/precision=bf16",
                                    R"(/plan={"nodes": 4, "tp": 8, "cp": 1, "gbs": 8, "sharding": "none"})"};

std::vector<std::string> job(const std::vector<std::string>& more) {
  std::vector<std::string> set = kJob;
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

double step_s(const std::vector<std::string>& more) {
  return *result(kLlama, job(more)).step.time_s;
}

bool warned(const Result& r, const std::string& what) {
  for (const std::string& w : r.warnings)
    if (w.find(what) != std::string::npos) return true;
  return false;
}

const std::string kAmd = "/cluster/node/accelerator=models/accelerators/mi300x.json",
                  kRccl = "models/collectives/rccl-2.22-mi300x.json";

}  // namespace

TEST_CASE("a step's exchanges take the accelerator's library; a release's own takes its place where it drives it") {
  const double nccl_s = step_s({});
  // What is written out is what stands for itself.
  CHECK(step_s({"/software/collectives=models/collectives/nccl-2.27.json"}) == nccl_s);
  CHECK(step_s({"/software/collectives=models/collectives/nccl-2.27.json",
                "/software/collectives/algorithms/ring/simple/base=\"10 ms\""}) > nccl_s + 5e-3);
  const double amd_s = step_s({kAmd});
  CHECK(step_s({kAmd, "/software/collectives=" + kRccl}) == amd_s);
  CHECK(step_s({kAmd, "/cluster/node/accelerator/collectives=null"}) != amd_s);
  CHECK(step_s({kAmd, "/cluster/node/accelerator/collectives/algorithms/ring/simple/base=\"10 ms\""}) > amd_s + 5e-3);
}

TEST_CASE("a library that does not drive the accelerator is not taken, and said so; a wrong table is refused") {
  const std::string nccl = "/software/collectives=models/collectives/nccl-2.12.json";
  const Result r = result(kLlama, job({kAmd, nccl}));
  CHECK(*r.step.time_s == step_s({kAmd}));
  CHECK(warned(r, "does not drive AMD MI300X: exchanges are those of RCCL 2.22"));
  CHECK(!warned(result(kLlama, job({nccl})), "does not drive"));
  Faults faults;
  (void)load_scenario(
      kLlama, job({nccl, R"(/software/collectives/choices=[{"operation": "all-reduce", "algorithm": "rign"}])"}),
      faults);
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults.list().front().text(), Catch::Contains("/software/collectives/choices") &&
                                               Catch::Contains("unknown choice \"rign\"") && Catch::Contains("ring"));
}
