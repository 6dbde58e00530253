// trainwatt plan: which parallel plan is best.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "report/plan_report.hpp"

namespace tw::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string scenario, json, save;
  std::vector<std::string> set, objectives, nodes, gbs, sharding;
  std::string memory, facility_power, shelf_power, deadline;
  int max_nodes = 0, jobs = 0, simulate = 64, top = 10;
  uint64_t seed = 1;
  bool unusual = false, quiet = false;
};

template <class E>
std::vector<E> choices(const char* option, const std::vector<std::string>& given, Faults& faults) {
  std::vector<E> list;
  for (const std::string& words : given)
    for (const std::string& word : split(words, ',')) {
      std::vector<std::string> names;
      bool known = false;
      for (const auto& [name, value] : Choices<E>::table()) {
        names.push_back(name);
        if (name != word) continue;
        known = true;
        if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
      }
      if (!known)
        faults.add(
            {option, "", fmt::format("unknown choice \"{}\"", printable(word, 40)), "allowed: " + one_of(names)});
    }
  return list;
}

std::optional<int> whole(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= 1000000
             ? std::optional(value)
             : std::nullopt;
}

// "8,16" or "8..64": the first, doubled as long as it stays within the last, and the last.
std::vector<int> numbers(const char* option, const std::vector<std::string>& given, Faults& faults) {
  std::vector<int> list;
  for (const std::string& words : given)
    for (const std::string& word : split(words, ',')) {
      const auto dots = word.find("..");
      const auto from = whole(word.substr(0, dots));
      const auto to = dots == std::string::npos ? from : whole(word.substr(dots + 2));
      if (!from || !to || *to < *from) {
        faults.add({option, "", fmt::format("\"{}\" is neither a number nor a range", printable(word, 40)),
                    "such as 8, \"8,16\" or \"8..64\", doubling"});
        continue;
      }
      for (int v = *from; v < *to; v *= 2) list.push_back(v);
      list.push_back(*to);
    }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

template <class Q>
std::optional<double> quantity(const char* option, const std::string& text, Faults& faults) {
  if (text.empty()) return std::nullopt;
  const ParsedQuantity q = parse_quantity(text, DimensionOf<Q>::info);
  if (!q.problem.empty())
    faults.add({option, "", q.problem, ""});
  else if (!(q.value > 0))
    faults.add({option, "", fmt::format("\"{}\" is not above 0", text), ""});
  return q.value;
}

// How a scenario saved at `file` names the one it builds on.
std::string use_of(const std::string& scenario, const std::string& file) {
  std::error_code ignored;
  const auto found = find_input_file(scenario, file);
  if (found && fs::equivalent(*found, scenario, ignored)) return scenario;
  const fs::path folder = fs::absolute(file).parent_path();
  const auto direct = find_input_file(scenario, "");
  return fs::relative(fs::absolute(direct.value_or(scenario)), folder, ignored).string();
}

ExitCode run(const Arguments& a, Console& console) {
  console.quiet = a.quiet;
  Faults faults;
  check_output_file("--json", a.json, faults);
  check_output_file("--save", a.save, faults);
  PlanSearchOptions o;
  o.objectives = choices<PlanObjective>("--objective", a.objectives, faults);
  if (o.objectives.empty()) o.objectives = {PlanObjective::time};
  if (o.objectives.size() > 2)
    faults.add({"--objective", "", "more than two objectives", "one, or two for their Pareto front"});
  o.space.nodes = numbers("--nodes", a.nodes, faults);
  o.space.gbs = numbers("--gbs", a.gbs, faults);
  o.space.sharding = choices<Sharding>("--sharding", a.sharding, faults);
  if (const auto bytes = quantity<Bytes>("--max-memory", a.memory, faults)) o.limits.memory_bytes = *bytes;
  o.limits.facility_w = quantity<Power>("--facility-power", a.facility_power, faults);
  o.limits.bus_w = quantity<Power>("--shelf-power", a.shelf_power, faults);
  o.limits.deadline_s = quantity<Time>("--deadline", a.deadline, faults);
  LoadedScenario scenario = load_scenario(a.scenario, a.set, faults);
  faults.throw_if_any();
  const Scenario& s = scenario.scenario;
  if (!s.network)
    throw InputError({{a.scenario, "/workload", "a profiled workload is data parallel only: there is nothing to plan",
                       "a scenario with a network"}});
  if (a.max_nodes > 0 && o.space.nodes.empty())
    o.space.nodes = numbers("--max-nodes", {fmt::format("1..{}", a.max_nodes)}, faults);
  if (a.max_nodes > 0)
    o.space.nodes.erase(
        std::remove_if(o.space.nodes.begin(), o.space.nodes.end(), [&](int n) { return n > a.max_nodes; }),
        o.space.nodes.end());
  if (a.max_nodes > 0 && o.space.nodes.empty())
    faults.add({"--nodes", "", fmt::format("none is within --max-nodes {}", a.max_nodes), ""});
  for (const int n : o.space.nodes)
    if (const std::string problem = nodes_problem(s.cluster, n + s.plan.evaluation_nodes); !problem.empty())
      faults.add({"--nodes", "", problem, ""});
  faults.throw_if_any();
  o.space.unusual = a.unusual;
  o.most_simulated = static_cast<size_t>(a.simulate), o.wanted = static_cast<size_t>(a.top);
  o.jobs = a.jobs > 0 ? a.jobs : default_jobs();
  o.deadline_s = kDeadline_s, o.seed = a.seed;
  PlanSearch found;
  {
    Progress progress(console, "plans");
    o.progress = [&](const char*, size_t done, size_t all) { progress.update(done, all); };
    found = search_plans(scenario, a.set, o);
  }
  if (!a.json.empty()) write_output(console, a.json, report::plan_json(found, s.name));
  if (a.json != "-") console.result(report::plan_table(found, o.wanted));
  if (found.answers.empty()) return ExitCode::does_not_fit;
  if (!a.save.empty()) {
    write_file(a.save,
               report::plan_scenario(found.answers.front().candidate, use_of(a.scenario, a.save), s.name + "-planned"));
    console.message(fmt::format("the best plan is in {}; trainwatt run {} simulates it", a.save, a.save));
    if (!a.set.empty()) console.message("overrides of --set are not part of it");
  }
  return ExitCode::done;
}

}  // namespace

Command plan_command() {
  const auto a = std::make_shared<Arguments>();
  return {
      "plan",
      "Finds the best parallel plans of a scenario under limits",
      "  trainwatt plan scenarios/smc-llama2-70b-lora-64n.json\n"
      "  trainwatt plan mine.json --objective energy --nodes 8..64 --deadline \"2 h\"\n"
      "  trainwatt plan mine.json --objective time --objective carbon --nodes 8..64     the front of both\n"
      "  trainwatt plan mine.json --gbs 512..2048 --facility-power \"1 MW\" --save best.json\n"
      "\n"
      "All TP, PP, VP, CP, EP and MBS that divide are considered, with the least recomputation that fits. What passes "
      "is\n"
      "estimated in closed form; the best are simulated, until no estimate left can beat the plans found. A run told "
      "in\n"
      "steps is taken as that many samples, so that plans with another batch train equally long. Exit code 3 when no\n"
      "plan fits or keeps the limits.",
      {{"scenario",
        "FILE",
        "scenario: network, training, cluster, software, site and how long it runs",
        &a->scenario,
        true,
        {}},
       {"--objective",
        "WHAT",
        "time (default), energy, cost or carbon; twice, or \"time,carbon\": the Pareto front",
        &a->objectives,
        false,
        {}},
       {"--nodes",
        "LIST",
        "numbers of nodes, such as 8,16 or 8..64 (doubling); default: the scenario's",
        &a->nodes,
        false,
        {}},
       {"--max-nodes", "N", "at most so many nodes; without --nodes: 1, 2, 4 ... N", &a->max_nodes, false,
        between(1, 1e6)},
       {"--gbs",
        "LIST",
        "global batch sizes, such as 512,1024 or 512..2048; default: the scenario's",
        &a->gbs,
        false,
        {}},
       {"--sharding",
        "LIST",
        "none, zero1, zero2, zero3; default: the scenario's, or none and zero1",
        &a->sharding,
        false,
        {}},
       {"--max-memory",
        "SIZE",
        "memory of a GPU that a plan may use, such as \"75 GB\"; default: 90 % of it",
        &a->memory,
        false,
        {}},
       {"--facility-power",
        "W",
        "the building's peak power for the job at most, such as \"1 MW\"",
        &a->facility_power,
        false,
        {}},
       {"--shelf-power",
        "W",
        "the peak power of a bus of nodes (its power shelves) at most, such as \"60 kW\"",
        &a->shelf_power,
        false,
        {}},
       {"--deadline", "T", "time to train at most, such as \"2 h\"", &a->deadline, false, {}},
       {"--unusual",
        "",
        "consider pipelines inside a node as well, which practice avoids where there is NVLink",
        &a->unusual,
        false,
        {}},
       {"--simulate", "N", "plans simulated at most (default 64)", &a->simulate, false, between(1, 1e6)},
       {"--top", "N", "plans wanted (default 10)", &a->top, false, between(1, 1e5)},
       {"--json",
        "FILE",
        "write all that was simulated as JSON; - is stdout, in place of the table",
        &a->json,
        false,
        {}},
       {"--save", "FILE", "write the best plan as a scenario that builds on the given one", &a->save, false, {}},
       {"--set", "POINTER=VALUE", "override a value of the scenario; may be repeated", &a->set, false, {}},
       {"--seed", "N", "seed of all random draws (default 1)", &a->seed, false, {}},
       {"--jobs", "N", "plans simulated at once (default: one a processor)", &a->jobs, false, between(1, 4096)},
       {"-q,--quiet", "", "no progress bar and no remarks", &a->quiet, false, {}}},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
