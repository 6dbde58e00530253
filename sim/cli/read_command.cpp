// trainwatt read: inputs from files of other tools.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "core/files.hpp"
#include "workload/hf_config.hpp"

namespace tw::cli {
namespace {

struct Arguments {
  std::string file, output = "-";
};

ExitCode run(const Arguments& a, Console& console) {
  Faults& faults = console.faults;
  check_output_file("-o", a.output, faults);
  const auto path = find_input_file(a.file, "");
  if (!path) faults.add({a.file, "", "there is no such file", suggest_file(a.file)});
  faults.throw_if_any();
  const std::string text = network_of_hf_config(read_file(*path), a.file, faults);
  faults.throw_if_any();
  write_output(console, a.output, text);
  return ExitCode::done;
}

}  // namespace

Command read_command() {
  const auto a = std::make_shared<Arguments>();
  return {
      "read",
      "Makes a network file from the config.json of a Hugging Face repository",
      "  trainwatt read config.json -o my-network.json\n"
      "\n"
      "Families: llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, deepseek_v3, gpt_oss, nemotron_h, llama4, olmo2, "
      "olmo3.",
      {argument("file", "FILE", "config.json", &a->file),
       output_file("-o,--output", "network file to write (default: stdout)", &a->output)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
