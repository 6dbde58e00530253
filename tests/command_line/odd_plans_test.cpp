// Plans and releases at the edge of what can be said, as tests/fuzz found them.
#include <nlohmann/json.hpp>

#include "program.hpp"

using namespace program;
using nlohmann::json;

namespace {

const std::string kLlama = "scenarios/llama3.1-pretraining.json";

std::string plan_with(const std::string& more) {
  return R"(/plan={"nodes": 8, "mbs": 1, "gbs": 64, )" + more + "}";
}

}  // namespace

TEST_CASE("orders of two chunks are refused on one stage") {
  const std::string schedule = GENERATE("zbv", "dualpipev", "dualpipe");
  const Run r = run({"check", kLlama, "--set", plan_with(R"("sharding": "zero3", "schedule": ")" + schedule + "\"")});
  CHECK(r.code == 2);
  CHECK(holds(r.err, schedule + " needs pipeline parallelism; pp above 1, or 1f1b"));
}

TEST_CASE("a shard group that does not divide is said once") {
  const Run r = run({"check", kLlama, "--set", plan_with(R"("sharding": "zero1", "shard_group": 3)")});
  CHECK(r.code == 2);
  CHECK(r.error_lines() == 1);
}

TEST_CASE("weights are not trained without gradients") {
  const Run r = run({"check", kLlama, "--set", R"(/training/optimizer={"gradients": "none"})"});
  CHECK(r.code == 2);
  CHECK(holds(r.err, "/training/optimizer/gradients: weights are not trained without gradients"));
}

TEST_CASE("a host that needs seconds for a kernel is slow, its simulation is not") {
  const Run r = run({"run", "scenarios/smc-llama2-70b-lora-1n.json", "--set", "/software/host_per_operation=1 s", "-q",
                     "--json", "-"});
  REQUIRE(r.code == 0);
  CHECK(json::parse(r.out).front()["step"]["time_s"].get<double>() > 1000);
}

// 8 ranks of a node share the optimizer's states; their pieces are summed over 8 nodes. Inside the node an exchange
// takes as long as its bucket asks for: many small buckets together hardly longer than few large ones.
TEST_CASE("hybrid sharding inside a node pays for its bytes, not for each bucket as for a large one") {
  const auto dp_s = [&](const std::string& bucket) {
    const Run r = run({"run", kLlama, "--set", plan_with(R"("sharding": "zero2", "shard_group": 8)"), "--set",
                       "/training/recompute=full", "--set", "/software/bucket_per_rank=0 B", "--set",
                       "/software/bucket=" + bucket, "-q", "--json", "-"});
    REQUIRE(r.code == 0);
    return json::parse(r.out).front()["step"]["breakdown_s"]["dp"].get<double>();
  };
  const double small = dp_s("160 MB"), large = dp_s("1600 MB"), whole = dp_s("100 GB");
  // Reduced at once, after backward: 32 GB inside the node, then 4 GB a rank over 50 GB/s and 2 x 7 / 8 ways.
  CHECK(whole > 0.15);
  CHECK(small < whole);
  CHECK(small < large + 0.02);
}
