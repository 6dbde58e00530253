// trainwatt plan: which parallel plan is best, and how many nodes a hall carries.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "report/plan_report.hpp"
#include "study/hall_fit.hpp"
#include "study/plan_space.hpp"

namespace tw::cli {
namespace {

namespace fs = std::filesystem;

struct PlanArguments {
  std::string scenario, json, save, output;
  std::vector<std::string> set;
  PlanSearchOptions search;
  std::optional<double> memory_bytes;
  double derate = 0.8;
  int max_nodes = 0, jobs = 0, simulate = 64, top = 10;
  bool fit = false, quiet = false;
};

// How a scenario saved at `file` names the one it builds on: so that it is found from any folder.
std::string use_of(const std::string& scenario, const std::string& file) {
  std::error_code ignored;
  for (const std::string& folder : data_folders())
    if (fs::is_regular_file(fs::path(folder) / scenario, ignored)) return scenario;
  const fs::path folder = fs::absolute(file).parent_path();
  const auto direct = find_input_file(scenario, "");
  return fs::proximate(fs::absolute(direct.value_or(scenario)), folder, ignored).string();
}

// "none,norms+activation,full".
Reader recomputations(std::vector<RecomputeWay>& out) {
  return [&out](const std::string& list) {
    std::vector<std::string> names;
    for (const auto& entry : Choices<Recompute>::table()) names.push_back(entry.first);
    for (const auto& entry : Choices<Module>::table()) names.push_back(entry.first);
    for (const std::string& word : words_of(list)) {
      RecomputeWay way;
      bool whole = false;
      for (const auto& [name, recompute] : Choices<Recompute>::table())
        if (name == word) way.recompute = recompute, whole = true;
      for (const std::string& part : whole ? std::vector<std::string>{} : split(word, '+')) {
        way.recompute = Recompute::selective;
        const size_t before = way.modules.size();
        for (const auto& [name, module] : Choices<Module>::table())
          if (name == part) way.modules.push_back(module);
        for (size_t i = 0; i < before; ++i)
          if (way.modules.size() > before && way.modules[i] == way.modules[before])
            return fmt::format("{} stands twice in \"{}\"", part, printable(word, 40));
        if (way.modules.size() > before) continue;
        if (std::find(names.begin(), names.end(), part) == names.end()) return choice_problem(part, names);
        return fmt::format("{} is a way of its own in \"{}\": modules are joined by +, ways by commas", part,
                           printable(word, 40));
      }
      if (std::find(out.begin(), out.end(), way) != out.end()) return fmt::format("\"{}\" stands twice", word);
      out.push_back(way);
    }
    return std::string();
  };
}

// Numbers of nodes to look at, and whether the cluster has them.
void check_nodes(const PlanArguments& a, const Scenario& s, std::vector<int>& nodes, Faults& faults) {
  if (a.max_nodes > 0 && nodes.empty()) counts(nodes)(fmt::format("1..{}", a.max_nodes));
  if (a.max_nodes > 0) std::erase_if(nodes, [&](int n) { return n > a.max_nodes; });
  if (a.max_nodes > 0 && nodes.empty())
    faults.add({"--nodes", "", fmt::format("none is within --max-nodes {}", a.max_nodes), ""});
  for (const int n : nodes)
    if (const std::string problem = nodes_problem(s.cluster, n + s.plan.evaluation_nodes); !problem.empty())
      faults.add({"--nodes", "", problem, ""});
}

ExitCode fit(const PlanArguments& a, const LoadedScenario& scenario, const PlanSearchOptions& o, Console& console) {
  HallFit found;
  {
    Progress progress(console, "nodes");
    found = fit_hall(scenario, a.set, {*o.limits.facility_w, a.derate, o.deadline_s, o.seed},
                     [&](size_t done, size_t all) { progress.update(done, all); });
  }
  if (!a.json.empty()) write_output(console, a.json, report::fit_json(found));
  if (a.json != "-") console.result(report::fit_table(found));
  return found.answers.empty() ? ExitCode::does_not_fit : ExitCode::done;
}

ExitCode run(const PlanArguments& a, Console& console) {
  Faults& faults = console.faults;
  PlanSearchOptions o = a.search;
  if (o.objectives.empty()) o.objectives = {PlanObjective::time};
  if (o.objectives.size() > 2)
    faults.add({"--objective", "", "more than two objectives", "one, or two for their Pareto front"});
  if (!o.space.gbs.empty() && !o.space.gbs_per_node.empty())
    faults.add({"--gbs-per-node", "", "cannot be combined with --gbs", "one of them"});
  if (a.fit && !o.limits.facility_w)
    faults.add({"--fit", "", "needs the power of the hall", "--facility-power \"2 MW\""});
  o.limits.memory_bytes = a.memory_bytes.value_or(0);
  const LoadedScenario scenario = load_scenario(a.scenario, a.set, faults);
  faults.throw_if_any();
  const Scenario& s = scenario.scenario;
  if (!s.network && !a.fit)
    throw InputError({{a.scenario, "/workload", "a profiled workload is data parallel only: there is nothing to plan",
                       "a scenario with a network"}});
  check_nodes(a, s, o.space.nodes, faults);
  if (!a.fit && faults.empty()) check_plan_space(scenario, a.set, o.space, faults);
  faults.throw_if_any();
  o.most_simulated = static_cast<size_t>(a.simulate), o.wanted = static_cast<size_t>(a.top);
  o.jobs = workers(a.jobs), o.deadline_s = kDeadline_s;
  if (a.fit) return fit(a, scenario, o, console);
  PlanSearch found;
  {
    Progress progress(console, "plans");
    o.progress = [&](const char*, size_t done, size_t all) { progress.update(done, all); };
    found = search_plans(scenario, a.set, o);
  }
  if (!a.json.empty()) write_output(console, a.json, report::plan_json(found, s.name));
  const std::string table = report::plan_table(found, o.wanted);
  if (!a.output.empty()) {
    write_file(in_folder(a.output, "plan.json"), report::plan_json(found, s.name));
    write_file(in_folder(a.output, "plan.txt"), table);
    for (const std::string& text : report::draw(report::plan_figure(a.output, found, s.name))) console.message(text);
  }
  if (a.json != "-") console.result(table);
  if (found.answers.empty()) return ExitCode::does_not_fit;
  if (a.save.empty()) return ExitCode::done;
  write_file(a.save,
             report::plan_scenario(found.answers.front().candidate, use_of(a.scenario, a.save), s.name + "-planned"));
  console.message(fmt::format("the best plan is in {}; trainwatt run {} simulates it", a.save, a.save));
  if (!a.set.empty()) console.message("overrides of --set are not part of it");
  return ExitCode::done;
}

}  // namespace

Command plan_command() {
  const auto a = std::make_shared<PlanArguments>();
  PlanSpace& space = a->search.space;
  PlanLimits& limits = a->search.limits;
  return {
      "plan",
      "Finds the best parallel plans of a scenario under limits, or how many nodes a hall carries",
      "  trainwatt plan scenarios/smc-llama2-70b-lora-64n.json\n"
      "  trainwatt plan mine.json --objective energy --nodes 8..64 --deadline \"2 h\"\n"
      "  trainwatt plan mine.json --objective time --objective carbon --nodes 8..64     the front of both\n"
      "  trainwatt plan mine.json --nodes 8..512 --gbs-per-node 16 --facility-power \"1.2 MW\" --save best.json\n"
      "  trainwatt plan mine.json --fit --facility-power \"2 MW\"        how many nodes the hall carries\n"
      "\n"
      "All TP, PP, VP, CP, EP and MBS that divide are considered, with the least recomputation that fits. What\n"
      "passes is estimated in closed form (hand-overs meet no other exchange there); what is estimated beyond a limit\n"
      "falls, and is counted; the best are simulated, in which exchanges meet, until no\n"
      "estimate left can beat the plans found. A run told in steps is taken as that many samples, so that plans with\n"
      "another batch train equally long. Exit code 3 when no plan fits or keeps the limits.",
      {argument("scenario", "FILE", "scenario: network, training, cluster, software, site and how long it runs",
                &a->scenario),
       option("--objective", "WHAT",
              "time (default), energy, cost or carbon; twice, or \"time,carbon\": the Pareto front",
              choices(a->search.objectives)),
       option("--nodes", "LIST", "numbers of nodes, such as 8,16 or 8..64 (doubling); default: the scenario's",
              counts(space.nodes)),
       option("--max-nodes", "N", "at most so many nodes; without --nodes: 1, 2, 4 ... N", &a->max_nodes,
              between(1, 1e6)),
       option("--gbs", "LIST", "global batch sizes, such as 512,1024 or 512..2048; default: the scenario's",
              counts(space.gbs)),
       option("--gbs-per-node", "LIST", "or samples of the global batch for each node: the batch follows the nodes",
              counts(space.gbs_per_node)),
       option("--sharding", "LIST", "none, zero1, zero2, zero3; default: the scenario's, or none and zero1",
              choices(space.sharding)),
       option("--shard-group", "LIST",
              "ranks that share states (hybrid sharding), such as 0,8,16; 0: all; default: the scenario's",
              counts(space.shard_group, 0)),
       option("--context", "LIST",
              "what context-parallel ranks exchange: ring, all_gather, heads; default: the scenario's",
              choices(space.context)),
       option(
           "--offload-layers", "LIST",
           "layers of each chunk whose activations wait in the host's memory, such as 0,4,8; default: the scenario's",
           counts(space.offload_layers, 0)),
       option(
           "--offload-states", "LIST",
           "shares of the optimizer's states that wait in the host's memory, such as 0,0.5,1; default: the scenario's",
           shares(space.offload_states)),
       option("--recompute", "LIST",
              "ways of recomputation, least first, such as none,norms+activation,attention+mlp,full: of each plan the "
              "first that fits; default: none, the scenario's modules, full",
              recomputations(space.recompute)),
       option("--max-memory", "SIZE", "memory of a GPU that a plan may use, such as \"75 GB\"; default: 90 % of it",
              quantity<Bytes>(a->memory_bytes)),
       option("--facility-power", "W",
              "the building's peak power for the job at most, switches and cooling included, such as \"1 MW\"",
              quantity<Power>(limits.facility_w)),
       option("--shelf-power", "W", "the peak power of a bus of nodes (its power shelves) at most, such as \"60 kW\"",
              quantity<Power>(limits.bus_w)),
       option("--deadline", "T", "time to train at most, such as \"2 h\"", quantity<Time>(limits.deadline_s)),
       flag("--unusual", "consider pipelines inside a node as well, which practice avoids where there is NVLink",
            &space.unusual),
       flag(
           "--fit",
           "instead of a plan: how many nodes the power of --facility-power carries, the batch following the nodes, by "
           "simulated peak and by nameplate, whole and derated",
           &a->fit),
       option("--derate", "SHARE", "share of its power that a hall is loaded with continuously (default 0.8)",
              &a->derate, between(0.01, 1)),
       option("--simulate", "N", "plans simulated at most (default 64)", &a->simulate, between(1, 1e6)),
       option("--top", "N", "plans wanted (default 10)", &a->top, between(1, 1e5)),
       output_folder("-o,--output",
                     "write plan.json, plan.txt and a figure of memory against time into DIR, for report", &a->output),
       json_file("all that was simulated", &a->json),
       output_file("--save", "write the best plan as a scenario that builds on the given one", &a->save),
       overrides("the scenario", &a->set),
       seed(&a->search.seed),
       jobs("plans simulated", &a->jobs),
       quiet(&a->quiet)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
