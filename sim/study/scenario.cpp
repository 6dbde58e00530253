#include "study/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/document.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "facility/facility.hpp"
#include "hardware/transfer.hpp"
#include "network/collective.hpp"
#include "power/check_power.hpp"
#include "power/failure.hpp"
#include "power/network_rule.hpp"
#include "run/benchmark.hpp"
#include "run/slow_step.hpp"
#include "step/schedule.hpp"
#include "study/idle_inputs.hpp"
#include "study/profiled_chip.hpp"
#include "study/what_if_accelerator.hpp"
#include "topology/fabric.hpp"
#include "topology/placement.hpp"
#include "workload/parameters.hpp"
#include "workload/pattern.hpp"

namespace tw {
namespace {

// Activities that the workload spends time in: power data must have watts for them.
std::vector<Activity> used_activities(const Scenario& s) {
  using A = Activity;
  std::vector<Activity> used{A::idle, A::context, A::spin, A::collective};
  if (s.workload) {
    for (const auto* mix : {&s.workload->activities, &s.workload->fixed_activities, &s.workload->evaluation_activities})
      for (const auto& [name, activity] : Choices<Activity>::table())
        if (mix->count(name) > 0) used.push_back(activity);
    return used;
  }
  used.insert(used.end(), {A::memory_bound, A::attention_forward, A::attention_backward, A::gemm_bf16});
  if (s.training) used.push_back(s.training->precision.activity);
  return used;
}

// The precision that the training names, as the field or the accelerator has it. A run has one beside BF16, so that its
// own watts take the place of FP8's.
void follow_precision(Precision& p, Accelerator& a, const ReadContext& at) {
  const auto known = a.precision(p.name());
  if (!known)
    at.fault(fmt::format("unknown choice \"{}\"", printable(p.name())), "allowed: " + one_of(a.precision_names()));
  p = known.value_or(Precision::bf16);
  const auto own = a.power.gemm_other.find(p.name());
  if (own == a.power.gemm_other.end()) return;
  p.activity = Activity::gemm_fp8;
  a.power.gemm_fp8 = own->second;
}

// Target, evaluations, checkpoints, failures. Fills in what the convergence data say where the scenario says nothing.
void check_run(Scenario& s, const ReadContext& at, const ReadContext& plan) {
  RunPlan& run = s.run;
  std::string targets;
  for (const auto& [name, given] :
       {std::pair{"samples", run.samples.has_value()}, std::pair{"samples_by_run", !run.samples_by_run.empty()},
        std::pair{"steps", run.steps.has_value()}, std::pair{"tokens", run.tokens.has_value()},
        std::pair{"convergence", run.convergence.has_value()}})
    if (given) targets += fmt::format("{}\"{}\"", targets.empty() ? "" : " and ", name);
  if (targets.find(" and ") != std::string::npos) at.fault(targets + " are given", "one of them");
  if (run.tokens && !s.training) at.at("tokens").fault("a profiled workload has no tokens", "\"samples\"");
  if (run.convergence && run.convergence->points.empty()) {
    at.at("convergence").at("points").fault("convergence data without points", "at least one");
  } else if (run.convergence) {
    const Convergence& c = *run.convergence;
    const std::string outside = convergence_problem(c, s.plan.gbs);
    if (!outside.empty()) plan.at("gbs").fault(outside, "a batch at most twice beyond, or \"samples\" given");
    if (run.evaluation_interval <= 0) {
      run.evaluation_interval = evaluation_interval(c, s.plan.gbs);
      if (run.first_evaluation_at <= 0) run.first_evaluation_at = c.first_evaluation;
    }
    if (run.evaluation_samples <= 0) run.evaluation_samples = c.evaluation_samples;
  } else if (run.evaluation_interval > 0 && run.evaluation_samples <= 0) {
    at.at("evaluation_samples").fault("evaluations need samples", "above 0");
  }
  if (run.asynchronous_evaluation && s.plan.evaluation_nodes == 0)
    at.at("asynchronous_evaluation").fault("no nodes of their own evaluate", "set /plan/evaluation_nodes");
  if (!run.start.empty() && !parse_time(run.start, parse_utc_offset(s.site.utc_offset)))
    at.at("start").fault(fmt::format("\"{}\" is no time with its offset from UTC", run.start),
                         "such as \"2024-05-16T08:00+08:00\"");
  if (run.checkpoints) {
    const CheckpointPlan& c = *run.checkpoints;
    if ((c.interval.value() > 0) == (c.every_steps > 0))
      at.at("checkpoints")
          .fault(c.every_steps > 0 ? "both \"interval\" and \"every_steps\" are given"
                                   : "neither \"interval\" nor \"every_steps\" is given",
                 "one of them");
    if (s.workload && c.size.value() <= 0)
      at.at("checkpoints").fault("missing key \"size\": a profiled workload does not tell it", "such as \"1.2 GB\"");
  }
  for (size_t i = 0; i < run.slow_nodes.size(); ++i) {
    const SlowNode& slow = run.slow_nodes[i];
    const ReadContext here = at.at("slow_nodes").at(i);
    if (slow.slowdown.has_value() == slow.gpu_limit.has_value())
      here.fault(slow.slowdown ? "both \"slowdown\" and \"gpu_limit\" are given"
                               : "neither \"slowdown\" nor \"gpu_limit\" is given",
                 "one of them");
    if (slow.to && slow.to->value() <= slow.from.value())
      here.at("to").fault("it ends before it begins", fmt::format("after {}", to_text(slow.from)));
    for (const int node : slow.nodes)
      if (node >= s.plan.nodes)
        here.at("nodes").fault(fmt::format("the job has no node {}", node), fmt::format("0 to {}", s.plan.nodes - 1));
  }
  for (size_t i = 0; i < run.slow_cables.size(); ++i) {
    const SlowCable& slow = run.slow_cables[i];
    const ReadContext here = at.at("slow_cables").at(i);
    if (slow.to && slow.to->value() <= slow.from.value())
      here.at("to").fault("it ends before it begins", fmt::format("after {}", to_text(slow.from)));
    try {
      (void)build_fabric(with_slow_cables(s.cluster, {slow}, {true}));
    } catch (const InputError& e) {
      here.at("cable").fault(e.faults().front().what, e.faults().front().allowed);
    }
  }
}

// A rule that the scenario names must be defined for its fabric; the cluster's own gives way to one that is.
void choose_rule(Scenario& s, const ReadContext& at) {
  const FabricType& type = s.cluster.fabric;
  if (!s.network_rule) {
    s.network_rule = rule_defined(type.network_rule, type) ? type.network_rule : NetworkRule::as_stated;
  } else if (!rule_defined(*s.network_rule, type)) {
    std::string others;
    for (const auto& [name, rule] : Choices<NetworkRule>::table())
      if (rule_defined(rule, type)) others += (others.empty() ? "" : ", ") + name;
    at.fault(fmt::format("{} is undefined for a fabric of kind {}{}", choice_name(*s.network_rule), type.kind,
                         type.spines > 0 ? "" : " without spines"),
             others);
  }
}

// What fails must feed a node of the job.
void check_power_failures(const Scenario& s, int own_nodes, const ReadContext& at) {
  if (s.run.power_failures.empty()) return;
  const std::vector<int> placed = place(build_fabric(s.cluster), s.placement, own_nodes);
  for (size_t i = 0; i < s.run.power_failures.size(); ++i) {
    try {
      (void)Supply(s.cluster, placed, static_cast<size_t>(s.plan.nodes), {s.run.power_failures[i]});
    } catch (const InputError& e) {
      const Fault& f = e.faults().front();
      at.at(i).at(f.place.substr(1)).fault(f.what, f.allowed);
    }
  }
}

// What waits in the host's memory needs one, and a link to it.
void check_offload(const Scenario& s, const ReadContext& at) {
  const Training& t = *s.training;
  const HostMemory& host = s.cluster.node.host_memory;
  for (const auto& [key, used] :
       {std::pair{"offload_states", t.offload_states > 0}, std::pair{"offload_layers", t.offload_layers > 0}})
    if (used && (host.capacity.value() <= 0 || s.cluster.node.host_copy_Bps() <= 0))
      at.at(key).fault(fmt::format("the host memory of {} is not known", s.cluster.name),
                       "0, or a cluster with /node/host_memory: capacity, bandwidth, copy_bandwidth");
  if (t.offload_states > 0 && t.offload_update == OffloadUpdate::host && t.optimizer &&
      t.optimizer->update == Update::muon)
    at.at("offload_update").fault("the host's processors update AdamW's states only", "device");
}

// Modules to compute again are parts of the network's layers, and the loss has tokens to take in parts.
void check_training(const Scenario& s, const ReadContext& at) {
  const Training& t = *s.training;
  const auto kinds = layer_kinds(*s.network);
  const auto some = [&](auto test) { return std::any_of(kinds.begin(), kinds.end(), test); };
  for (size_t i = 0; i < t.recompute_modules.size() && t.recompute == Recompute::selective; ++i) {
    const Module m = t.recompute_modules[i];
    const bool there =
        m == Module::mla_up    ? s.network->mla.has_value()
        : m == Module::experts ? some([](const LayerKind& k) { return k.feed == Feed::experts; })
        : m == Module::mlp     ? some([](const LayerKind& k) { return k.feed == Feed::mlp; })
        : m == Module::attention
            ? some([](const LayerKind& k) { return k.mixer == Mixer::attention || k.mixer == Mixer::window; })
            : true;
    if (!there)
      at.at("recompute_modules")
          .at(i)
          .fault(fmt::format("{} has no layer with {}", s.network->name, choice_name(m)), "modules of its layers");
  }
  const double tokens = static_cast<double>(t.sequence) * s.plan.mbs / s.plan.cp;
  if (t.loss_chunks > std::max(1.0, tokens))
    at.at("loss_chunks")
        .fault(fmt::format("loss_chunks = {} of a micro-batch of {} tokens", t.loss_chunks, tokens),
               "at most its tokens");
}

// Everything that one value cannot tell by itself: what belongs together, what divides, what fits the cluster.
void check_scenario(Scenario& s, const ReadContext& root) {
  if (s.network.has_value() == s.workload.has_value())
    root.fault(
        s.network ? "both \"network\" and \"workload\" are given" : "neither \"network\" nor \"workload\" is given",
        "exactly one: a transformer or a profiled workload");
  if (s.network && !s.training)
    root.fault("missing key \"training\" (how the transformer is trained)", "at least {\"sequence\": 8192}");
  if (s.training)
    follow_precision(s.training->precision, s.cluster.node.accelerator, root.at("training").at("precision"));
  const ReadContext plan = root.at("plan");
  const std::string problem = nodes_problem(s.cluster, s.plan.nodes + s.plan.evaluation_nodes);
  if (!problem.empty()) plan.at("nodes").fault(problem);
  if (s.training && s.training->optimizer && s.training->optimizer->gradients == StatePrecision::none)
    root.at("training")
        .at("optimizer")
        .at("gradients")
        .fault("weights are not trained without gradients", "fp8, bf16 or fp32");
  if (s.training) s.software = with_optimizer(s.software, *s.training), check_offload(s, root.at("training"));
  complete_plan(s.plan, s.cluster.node.gpus, plan);
  if (s.network && s.training) {
    check_architecture(*s.network, root.at("network"));
    if (s.network->window > s.training->sequence)
      root.at("network").at("window").fault(
          fmt::format("a window of {} tokens exceeds the sequence ({})", s.network->window, s.training->sequence),
          "at most the sequence");
    check_plan(s.plan, *s.network, *s.training, s.cluster.node.gpus, plan);
    check_training(s, root.at("training"));
    check_towers(*s.network, *s.training, root);
    if (s.cluster.node.accelerator.peak(s.training->precision).value() <= 0)
      root.at("training")
          .at("precision")
          .fault(fmt::format("{} has no peak for {}", s.cluster.node.accelerator.name, s.training->precision.name()),
                 "bf16");
  }
  check_schedule(s.plan, plan);  // of profiled work, too: it has one stage
  if (s.workload) {
    std::vector<std::string> known;
    for (const auto& entry : Choices<Activity>::table()) known.push_back(entry.first);
    for (const auto& [key, mix] : {std::pair{"activities", &s.workload->activities},
                                   std::pair{"fixed_activities", &s.workload->fixed_activities},
                                   std::pair{"evaluation_activities", &s.workload->evaluation_activities}}) {
      double sum = 0;
      const ReadContext at = root.at("workload").at(key);
      for (const auto& [name, share] : *mix) {
        sum += share;
        if (std::find(known.begin(), known.end(), name) == known.end())
          at.at(name).fault(fmt::format("unknown activity \"{}\"", name), suggest(name, known));
      }
      if (sum > 1 + 1e-9) at.fault(fmt::format("the shares add up to {:.3f}", sum), "at most 1");
    }
    if (s.plan.pp * s.plan.cp * s.plan.ep != 1)
      plan.fault("a profiled workload is data parallel only", "pp = cp = ep = 1; tp accelerators may share a sample");
  }
  if (!s.benchmark.empty() && find_benchmark(s.benchmark) == nullptr)
    root.at("benchmark")
        .fault(fmt::format("unknown benchmark \"{}\"", printable(s.benchmark)),
               suggest(s.benchmark, benchmark_names()));
  check_run(s, root.at("run"), plan);
  for (const auto& [library, at] :
       {std::pair{&s.software.collectives, "/software/collectives"},
        std::pair{&s.cluster.node.accelerator.collectives, "/cluster/node/accelerator/collectives"}})
    if (*library)
      for (const Fault& f : network::library_faults(**library))
        ReadContext{root.document, at + f.place, root.faults, {}}.fault(f.what, f.allowed);
  check_accelerator(s.cluster.node.accelerator, root.at("cluster").at("node").at("accelerator"));
  check_power(s.cluster, used_activities(s), root.at("cluster"));
  const size_t before = root.faults->size();
  check_fabric(s.cluster, root.at("cluster"));
  choose_rule(s, root.at("network_rule"));
  const int own_nodes = s.plan.nodes + s.plan.evaluation_nodes;
  check_placement(s.placement, s.cluster.nodes(), own_nodes, root.at("placement"));
  if (root.faults->size() == before && problem.empty()) {
    check_neighbours({s.jobs, s.traffic}, s.cluster, library_of(s.software, s.cluster.node.accelerator), s.placement,
                     own_nodes, root);
    check_power_failures(s, own_nodes, root.at("run").at("power_failures"));
  }
  check_site(s.site, root.at("site"));
}

// The limit that the board's own profile gives it, whatever cap a scenario sets.
Power rated_limit(const Accelerator& a, const Document& document) {
  const std::string at = "/cluster/node/accelerator";
  const std::string profile = document.origin(at + "/name").file;
  if (document.origin(at + "/board_limit").file == profile) return a.board_limit;
  Faults faults;
  const auto original =
      read<Accelerator>(Document::load(profile, description<Accelerator>().info(), {}, faults), faults);
  return faults.empty() ? original.board_limit : a.board_limit;
}

// What is transferred from a measured chip, or scaled to another one.
void follow_chip(LoadedScenario& loaded, const Document& document, Faults& faults) {
  Accelerator& a = loaded.scenario.cluster.node.accelerator;
  try {
    if (!a.transfer_from.empty()) complete_transfer(a, rated_limit(a, document));
    // A slower attention kernel keeps less of the chip busy.
    const double still_w = a.power.context.value(), share = loaded.scenario.software.kernels.attention_watts;
    for (Power* w : {&a.power.attention_forward, &a.power.attention_backward})
      *w = watts(still_w + share * (w->value() - still_w));
    if (!loaded.scenario.workload) return;
    const std::string warning = scale_to_chip(*loaded.scenario.workload, a);
    if (!warning.empty()) loaded.warnings.push_back(warning);
  } catch (const InputError& e) {
    for (const Fault& fault : e.faults()) faults.add(fault);
  }
}

LoadedScenario finish(const Document& document, const std::string& file, Faults& faults, bool explain) {
  LoadedScenario loaded;
  loaded.file = file;
  Faults mine;
  loaded.scenario = read<Scenario>(document, mine);
  if (document.complete() && mine.empty()) follow_chip(loaded, document, mine);
  // Values that could not be read would only give follow-up faults.
  if (document.complete() && mine.empty()) check_scenario(loaded.scenario, ReadContext{&document, "", &mine, {}});
  if (document.complete() && mine.empty())
    follow_what_if(loaded.scenario.cluster.node.accelerator, document, "/cluster/node/accelerator");
  if (document.complete() && mine.empty())
    loaded.site_series = load_site_series(loaded.scenario.site, document.origin("/site").file, mine);
  for (const Fault& fault : mine.list()) faults.add(fault);
  if (!document.complete()) return loaded;
  if (mine.empty())
    for (std::string& line : idle_inputs(loaded.scenario, document)) loaded.warnings.push_back(std::move(line));
  loaded.sha256 = sha256_hex(document.canonical());
  if (explain) loaded.explain = document.explain(description<Scenario>().info());
  return loaded;
}

}  // namespace

LoadedScenario load_scenario(const std::string& file, const std::vector<std::string>& overrides, Faults& faults,
                             bool explain) {
  return finish(Document::load(file, description<Scenario>().info(), overrides, faults), file, faults, explain);
}

void Measured::describe(Description<Measured>& d) {
  d.object("measured", "A measured figure.");
  d.required("quantity", &Measured::quantity, "a quantity of the result contract, such as step_s or dc_mlperf_j");
  d.required("value", &Measured::value, "what was measured, in the unit of the result");
  d.required("unit", &Measured::unit, "its unit");
  d.optional("kind", &Measured::kind, "fitted, predicted or given");
}

void Reference::describe(Description<Reference>& d) {
  d.object("reference", "What was measured.");
  d.required("source", &Reference::source, "where the measurement comes from");
  d.optional("rows", &Reference::rows, "measured figures");
  d.optional("trace", &Reference::trace, "CSV with a measured power trace");
}

void Scenario::describe(Description<Scenario>& d) {
  d.object("scenario", "What runs where, for how long, compared with what.");
  d.required("name", &Scenario::name, "name of the scenario");
  d.optional("description", &Scenario::description, "what it shows");
  d.optional("network", &Scenario::network, "the transformer that is trained");
  d.optional("workload", &Scenario::workload, "or a profiled workload");
  d.optional("training", &Scenario::training, "how a transformer is trained");
  d.required("cluster", &Scenario::cluster, "the cluster");
  d.required("software", &Scenario::software, "the software release");
  d.required("plan", &Scenario::plan, "the parallel plan");
  d.optional("run", &Scenario::run, "how long it runs");
  d.required("site", &Scenario::site, "the site");
  d.optional("placement", &Scenario::placement, "which nodes of the cluster the job gets (default: the first)");
  d.optional("jobs", &Scenario::jobs, "other jobs on the same fabric");
  d.optional("traffic", &Scenario::traffic, "storage or background traffic on the same fabric");
  d.optional("network_rule", &Scenario::network_rule,
             "how switch power is apportioned to the job (default: as the cluster's fabric block says)");
  d.optional("reference", &Scenario::reference, "what was measured");
  d.optional("benchmark", &Scenario::benchmark,
             "the MLPerf Training benchmark that this is (models/benchmarks), for its scores and logs in its form");
}

}  // namespace tw
