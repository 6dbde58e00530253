// trainwatt calibrate: an accelerator profile from a laboratory's CSV files, or from another board's profile.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibrate_links.hpp"
#include "cli/calibrate_power.hpp"
#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "hardware/calibration.hpp"

namespace tw::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CalibrateArguments {
  std::vector<std::string> labs;
  std::string gpu, datasheet, transfer, output, nccl_tests, cluster, power, scenario;
  double offset_s = 0;
};

std::string terabytes(const Bandwidth& b, int digits) {
  return fmt::format("{:.{}g} TB/s", b.value() / 1e12, digits);
}
std::string micros(const Time& t, int digits = 6) {
  return fmt::format("{:.{}g} us", t.value() * 1e6, digits);
}

// The lines of comment that the datasheet's file begins with.
std::string opening_comment(const std::string& text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    if (line.rfind("//", 0) != 0) break;
    out += line + "\n";
  }
  return out;
}

// The profile as a file. What the datasheet says is kept as it was written there.
std::string profile_text(const Accelerator& a, const std::string& datasheet_text, const std::string& source) {
  const Json sheet = Json::parse(datasheet_text, nullptr, true, true);
  std::string out = opening_comment(datasheet_text) + "{\n";
  const auto line = [&](const std::string& key, const std::string& value) {
    out += fmt::format("  \"{}\": {},\n", key, value);
  };
  const auto text = [&](const std::string& key, const std::string& value) { line(key, Json(value).dump()); };
  for (const char* key :
       {"name", "memory", "board_limit", "peak_bf16", "peak_fp8", "peak_fp32", "peaks", "memory_bandwidth"})
    if (sheet.contains(key)) line(key, sheet[key].dump());
  text("copy_bandwidth", terabytes(a.copy_bandwidth, 4));
  text("norm_bandwidth", terabytes(a.norm_bandwidth, 3));
  text("graph_floor", micros(a.graph_floor, 3));
  // Watts that the datasheet leaves to another board's stay left to it.
  for (const char* key : {"power", "transfer_from"})
    if (sheet.contains(key)) line(key, sheet[key].dump());
  if (!a.transferred_from.empty()) text("transferred_from", a.transferred_from);
  text("source", source);
  out += "  \"gemm\": [";
  for (size_t i = 0; i < a.gemm.size(); ++i) {
    const GemmPoint& g = a.gemm[i];
    out += fmt::format("{}\n    {{\"m\": {}, \"n\": {}, \"k\": {}", i == 0 ? "" : ",", g.m, g.n, g.k);
    if (g.bf16) out += fmt::format(", \"bf16\": \"{}\"", micros(*g.bf16));
    if (g.fp8) out += fmt::format(", \"fp8\": \"{}\"", micros(*g.fp8));
    out += "}";
  }
  out += "\n  ],\n  \"attention\": [";
  for (size_t i = 0; i < a.attention.size(); ++i) {
    const AttentionPoint& p = a.attention[i];
    out += fmt::format(
        "{}\n    {{\"heads\": {}, \"sequence\": {}, \"head_dim\": {}, \"forward\": \"{}\", \"backward\": \"{}\"}}",
        i == 0 ? "" : ",", p.heads, p.sequence, p.head_dim, micros(p.forward), micros(p.backward));
  }
  return out + "\n  ]\n}\n";
}

std::string report(const Accelerator& a, const std::vector<PowerRow>& power) {
  std::string out =
      fmt::format("{}: {} matrix products, {} attention shapes\n", a.name, a.gemm.size(), a.attention.size());
  out += fmt::format("  copy {}, norm {}, shortest kernel {}\n", terabytes(a.copy_bandwidth, 4),
                     terabytes(a.norm_bandwidth, 3), micros(a.graph_floor, 3));
  out += "Error of a shape predicted from the others, each left out in turn:\n";
  out += fmt::format("  {:<20} {:>6} {:>8} {:>6} {:>7}\n", "", "shapes", "median %", "p90 %", "worst %");
  for (const LeaveOneOut& e : leave_one_out(a))
    if (e.points > 0)
      out += fmt::format("  {:<20} {:>6} {:>8.1f} {:>6.1f} {:>7.1f} {}\n", e.kernel, e.points, e.median_pct, e.p90_pct,
                         e.worst_pct, e.worst);
  if (power.empty()) return out;
  out += "Watts of a board, while busy, beside those of the profile's power block (not\nchanged):\n";
  for (const PowerRow& r : power)
    out += fmt::format("  {:<24} {:<17} {:6.1f} W, profile {:6.1f} W, {:+.1f} %\n", r.phase, r.activity, r.measured_w,
                       r.profile_w, 100 * (r.profile_w / r.measured_w - 1));
  return out;
}

ExitCode run(const CalibrateArguments& a, Console& console) {
  Faults& faults = console.faults;
  if (!a.power.empty()) return calibrate_power({a.power, a.scenario, a.output, a.offset_s}, console);
  if (!a.nccl_tests.empty()) return calibrate_links({a.nccl_tests, a.cluster, a.output}, console);
  if (a.datasheet.empty())
    faults.add({"--datasheet", "", "is missing", "the profile that gives memory, peaks and power"});
  if (a.labs.empty() == a.transfer.empty())
    faults.add({"LAB_DIR", "", a.labs.empty() ? "nothing to calibrate from" : "both LAB_DIR and --transfer are given",
                "either folders of measurements, or --transfer PROFILE"});
  const auto path = find_input_file(a.datasheet, "");
  if (!path && !a.datasheet.empty()) faults.add({a.datasheet, "", "no such profile", suggest_file(a.datasheet)});
  faults.throw_if_any();
  const auto datasheet = load<Accelerator>(a.datasheet);
  Accelerator profile;
  std::string source;
  std::vector<PowerRow> power;
  if (a.transfer.empty()) {
    const std::vector<std::string> gpus = lab_gpus(a.labs);
    if (a.gpu.empty() && gpus.size() > 1)
      throw InputError(
          {{"--gpu", "", fmt::format("{} GPUs were measured there", gpus.size()), "one of " + one_of(gpus)}});
    const std::string gpu = a.gpu.empty() && !gpus.empty() ? gpus.front() : a.gpu;
    profile = calibrated(a.labs, gpu, datasheet);
    power = power_rows(a.labs, gpu, profile);
    std::string labs;
    for (const std::string& lab : a.labs) labs += (labs.empty() ? "" : ", ") + lab;
    source = fmt::format(
        "datasheet (capacity as the driver reports it); gemm, attention: trainwatt calibrate from {}, geometric mean "
        "where "
        "a shape was measured more than once; bandwidths and floors: memory_ops.csv of the first that has them",
        labs);
  } else {
    const auto measured = load<Accelerator>(a.transfer);
    for (const auto& [file, sheet] : {std::pair{&a.transfer, &measured}, std::pair{&a.datasheet, &datasheet}})
      for (const auto& [key, value] : {std::pair{"/peak_bf16", sheet->peak_bf16.value()},
                                       std::pair{"/memory_bandwidth", sheet->memory_bandwidth.value()},
                                       std::pair{"/copy_bandwidth", sheet->copy_bandwidth.value()}})
        if (!(value > 0) && (sheet == &measured || std::string(key) != "/copy_bandwidth"))
          faults.add({*file, key, "is 0: kernels are scaled by it", "the value of its datasheet"});
    faults.throw_if_any();
    profile = transferred(measured, datasheet);
    source = datasheet.source;
  }
  const std::string text = profile_text(profile, read_file(*path), source);
  write_output(console, a.output, text);
  const std::string said = report(profile, power);
  if (a.output == "-")
    console.message(said);
  else
    console.result(said);
  return ExitCode::done;
}

}  // namespace

Command calibrate_command() {
  const auto a = std::make_shared<CalibrateArguments>();
  return {
      "calibrate",
      "Fits a profile to measurements: an accelerator's kernels, a cluster's links, a node's power",
      "  trainwatt calibrate reference/gpu_lab reference/gpu_lab_2 --gpu H100 --datasheet "
      "models/accelerators/h100-sxm.json -o mine.json\n"
      "  trainwatt calibrate --transfer models/accelerators/h100-sxm.json --datasheet "
      "models/accelerators/a100-sxm-80gb.json -o mine.json\n"
      "  trainwatt calibrate --nccl-tests all_reduce_perf.txt --cluster topologies/smc-h100.json -o mine.json\n"
      "  trainwatt calibrate --power pdu.csv --scenario mine.json --offset 312 -o node-power.json",
      {option("lab_dirs", "LAB_DIR",
              "folders with gemm.csv, attention.csv, memory_ops.csv, power.csv (tools/measure_gpu.py)", &a->labs),
       option("--gpu", "NAME", "the rows to take, by their column gpu; needed when several GPUs were measured",
              &a->gpu),
       option("--datasheet", "PROFILE",
              "profile that gives name, memory, board limit, peaks, bandwidth and power; its tables are replaced",
              &a->datasheet),
       option("--transfer", "PROFILE",
              "instead of measurements: scale this measured profile's kernels to the datasheet by their roofline "
              "times",
              &a->transfer),
       option("--nccl-tests", "FILE",
              "output of all_reduce_perf or its kin: link efficiency of --cluster, or the speed of its NVLink domain "
              "where the ranks share one",
              &a->nccl_tests),
       option("--cluster", "CLUSTER", "cluster file that --nccl-tests was measured on", &a->cluster),
       option("--power", "SERIES",
              "power of nodes or GPUs over time (DCGM, Prometheus, IPMI, PDU: what read makes a series of): the node "
              "power profile of --scenario",
              &a->power),
       option("--scenario", "FILE", "what ran while --power was measured", &a->scenario),
       option("--offset", "S", "seconds into the series of --power at which the run starts (default 0)", &a->offset_s,
              between(0, 1e9)),
       required(output_file("-o,--output", "profile or cluster to write; - is stdout", &a->output))},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
