// Releases of Megatron Bridge set what their recipes set (reference/megatron_bridge/recipes.csv).
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "core/csv.hpp"
#include "core/document.hpp"
#include "paths.hpp"
#include "workload/software.hpp"

using namespace tw;

namespace {

std::map<std::string, size_t> rows_by_id(const CsvTable& table) {
  std::map<std::string, size_t> rows;
  for (size_t r = 0; r < table.rows(); ++r) rows[table.text(r, "row_id")] = r;
  return rows;
}

// Parts that a recipe names by the graphs' scope; "preprocess" is the router's end.
std::vector<GraphPart> parts_of(const std::string& scope) {
  const std::map<std::string, GraphPart> names = {
      {"attn", GraphPart::attention}, {"mamba", GraphPart::mamba}, {"moe_router", GraphPart::router}};
  std::vector<GraphPart> parts;
  std::istringstream words(scope);
  for (std::string word; words >> word;)
    if (names.count(word) > 0) parts.push_back(names.at(word));
  std::sort(parts.begin(), parts.end());
  return parts;
}

}  // namespace

TEST_CASE("a release of Megatron Bridge sets what its recipes for GB200 set") {
  const CsvTable rows = CsvTable::load(source_folder() + "/reference/megatron_bridge/throughput.csv");
  const CsvTable recipes = CsvTable::load(source_folder() + "/reference/megatron_bridge/recipes.csv");
  const auto recipe_of = rows_by_id(recipes);
  // Networks whose recipes each release's file stands for; later ones set graphs alone.
  const std::map<std::string, std::vector<std::string>> networks = {
      {"25.11", {"deepseek-v3", "qwen3-30b-a3b"}},
      {"26.02", {"deepseek-v3", "qwen3-235b-a22b"}},
      {"26.04", {"nemotron-3-nano", "nemotron-3-super"}},
      {"26.06", {"deepseek-v3", "qwen3-30b-a3b", "qwen3-235b-a22b", "gpt-oss-120b"}},
  };
  std::map<std::string, int> held;
  for (size_t r = 0; r < rows.rows(); ++r) {
    const std::string& release = rows.text(r, "release");
    const auto wanted = networks.find(release);
    if (rows.text(r, "system") != "GB200" || wanted == networks.end()) continue;
    const auto& list = wanted->second;
    if (std::find(list.begin(), list.end(), rows.text(r, "network")) == list.end()) continue;
    const size_t recipe = recipe_of.at(rows.text(r, "row_id"));
    const auto software = load<Software>("models/software/nemo-" + release + ".json");
    INFO(rows.text(r, "row_id"));
    const bool whole = recipes.text(recipe, "cuda_graph_impl") == "full_iteration";
    CHECK(software.host.graphs_training == whole);
    auto parts = software.host.graph_parts;
    std::sort(parts.begin(), parts.end());
    if (!whole) CHECK(parts == parts_of(recipes.text(recipe, "cuda_graph_scope")));
    CHECK(software.streams.dispatcher ==
          (recipes.text(recipe, "moe_dispatcher") == "flex" ? Dispatcher::once_a_node : Dispatcher::all_to_all));
    CHECK(software.streams.dispatch_beside == (recipes.text(recipe, "moe_1f1b_a2a_overlap") == "True"));
    CHECK(software.kernels.fused_experts == (recipes.text(recipe, "op_fuser") == "True"));
    ++held[release];
  }
  for (const auto& [release, list] : networks) CHECK(held[release] >= static_cast<int>(list.size()));
}
