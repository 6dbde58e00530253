// trainwatt merge: the shards of a study as one.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/sweep_outputs.hpp"
#include "core/files.hpp"
#include "study/sweep_run.hpp"

namespace tw::cli {
namespace {

struct MergeArguments {
  std::vector<std::string> folders;
  std::string output;
  bool overwrite = false, quiet = false;
};

ExitCode run(const MergeArguments& a, Console& console) {
  console.faults.throw_if_any();
  const FolderLock lock(a.output);
  const size_t missing = merge_sweeps(a.folders, a.output, a.overwrite);
  write_sweep_outputs(console, a.output);
  // All shards ran one study: what the first says of its inputs holds for the whole.
  const std::string how = (std::filesystem::path(a.folders.front()) / "inputs.json").string();
  if (std::filesystem::exists(how)) write_file(in_folder(a.output, "inputs.json"), read_file(how));
  if (missing > 0)
    console.error(
        fmt::format("{} points of the study are in none of the folders; trainwatt sweep STUDY -o {} --resume "
                    "simulates them",
                    missing, a.output));
  return ExitCode::done;
}

}  // namespace

Command merge_command() {
  const auto a = std::make_shared<MergeArguments>();
  return {
      "merge",
      "Joins the shards of a study into one folder",
      "  trainwatt merge out/1 out/2 out/3 -o out/all\n"
      "  trainwatt merge shard-* -o all\n"
      "\n"
      "The folders have to hold parts of the same study (trainwatt sweep --shard I/N). The result is, byte for byte,\n"
      "the sweep.csv of a study that ran in one piece.",
      {argument("folder", "DIR", "folders that trainwatt sweep wrote", &a->folders),
       required(output_folder("-o,--output", "folder of the whole study", &a->output)),
       flag("--overwrite", "forget the results in the output folder", &a->overwrite), quiet(&a->quiet, "no remarks")},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
