// What a GPU does of its work alone on more of them, against published tables: levels may be off, growth may not.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "study/simulated.hpp"

using namespace tw;

namespace {

struct OnMore {
  int nodes;
  double rate;  // of a GPU, over that of the fewest
  std::string more = "/plan/vp=1";
};

void check_growth(const std::vector<std::string>& job, int batch, const std::vector<OnMore>& sizes) {
  double first = 0;
  for (const OnMore& size : sizes) {
    std::vector<std::string> set = job;
    set.insert(set.end(), {"/training/precision=bf16", "/training/sequence=2048", "/plan/pp=1", "/plan/vp=1",
                           "/plan/sharding=zero1", fmt::format("/plan/nodes={}", size.nodes),
                           fmt::format("/plan/gbs={}", batch > 0 ? batch : 64 * size.nodes), size.more});
    const double step_s = *result("scenarios/nemo-pretraining.json", set, {}).step.time_s;
    const double rate = (batch > 0 ? batch : 64 * size.nodes) / step_s / size.nodes;
    if (first == 0) first = rate;
    INFO(size.nodes << " nodes: " << rate / first << " of the rate on the fewest, measured " << size.rate);
    CHECK(std::abs(rate / first - size.rate) < 0.1);
  }
}

}  // namespace

TEST_CASE(
    "growth over Ethernet within 10 points of what was measured: InternLM on 8 to 1,024, Megatron-LLaMA on 32 to 512") {
  // reference/field/steps.csv, tokens per second and GPU.
  check_growth(
      {"/network=models/networks/internlm-7b.json", "/cluster=topologies/internlm-a100.json",
       "/software=models/software/internlm-2023.json", "/plan/sequence_parallel=false", "/plan/tp=1", "/plan/mbs=2"},
      0,
      {{1, 1},
       {8, 3690.0 / 4062},
       {32, 3209.0 / 4062},
       {128, 2271.0 / 4062},
       {128, 3625.0 / 4062, "/plan/shard_group=8"}});
  // reference/field/megatron_llama.csv
  check_growth({"/network=models/networks/llama-13b.json", "/cluster=topologies/megatron-llama-a100.json",
                "/software=models/software/megatron-2023.json", "/plan/tp=2", "/plan/mbs=4"},
               2048, {{4, 1}, {32, 1630.0 / 2154}, {64, 1430.0 / 2154}});
}
