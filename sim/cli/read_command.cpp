// trainwatt read: inputs from files of other tools.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "foreign/foreign.hpp"
#include "report/run_lines.hpp"
#include "topology/fabric.hpp"
#include "topology/inspect.hpp"
#include "workload/hf_config.hpp"

namespace tw::cli {
namespace {

struct ReadArguments {
  std::string file, output = "-", svg;
  std::vector<std::string> map;
  foreign::Options options;
};

// "time=When,watts=Power" to columns.
void read_map(const ReadArguments& a, foreign::Options& options, Faults& faults) {
  for (const std::string& list : a.map)
    for (const std::string& word : words_of(list)) {
      const size_t equals = word.find('=');
      const std::string what = word.substr(0, equals);
      if (equals == std::string::npos || (what != "time" && what != "watts" && what != "source"))
        faults.add({"--map", "", fmt::format("\"{}\" names no column", printable(word, 40)),
                    "time=COLUMN, watts=COLUMN or source=COLUMN"});
      else
        options.columns[what] = word.substr(equals + 1);
    }
}

ExitCode run(const ReadArguments& a, Console& console) {
  Faults& faults = console.faults;
  foreign::Options options = a.options;
  read_map(a, options, faults);
  const auto path = named_file(a.file, faults);
  faults.throw_if_any();
  const foreign::Reading reading = foreign::read_any({a.file, read_file(*path)}, options, faults);
  faults.throw_if_any();
  if (!a.svg.empty()) {
    const Document document = Document::from_text(reading.text, a.file, description<Cluster>().info(), {}, faults);
    const auto cluster = read<Cluster>(document, faults);
    if (!faults.empty()) throw InputError({{"--svg", "", a.file + " is no cluster, and nothing else is drawn", ""}});
    write_output(console, a.svg, svg_text(build_fabric(cluster)));
  }
  write_output(console, a.output, reading.text);
  std::string said;
  for (const std::string& line : reading.said) said += report::wrapped(line, "", "  ");
  if (a.output == "-" || a.svg == "-")
    console.message(said.substr(0, said.size() - 1));
  else
    console.result(said);
  return ExitCode::done;
}

}  // namespace

Command read_command() {
  const auto a = std::make_shared<ReadArguments>();
  const auto place = [a](const std::string& word) {
    a->options.place = word;
    return word == "node" || word == "gpu" ? std::string() : choice_problem(word, {"node", "gpu"});
  };
  return {
      "read",
      "Makes an input from a file of another tool: a network, a cluster, a power series",
      "  trainwatt read config.json -o my-network.json\n"
      "  trainwatt read nccl-topo.xml --nodes 4 -o my-cluster.json\n"
      "  trainwatt read cables.csv -o my-cluster.json --svg my-cluster.svg\n"
      "  trainwatt read outlets.csv --map \"time=When,watts=Load (W),source=Outlet\" -o measured.csv\n"
      "\n"
      "Networks: config.json of a Hugging Face repository (families " +
          hf_families() +
          ").\n"
          "Clusters: NCCL topology XML (NCCL_TOPO_DUMP_FILE), Slurm's topology.conf, network files of ASTRA-sim (yml, "
          "json), a CSV of cables (from, port, to, port, speed). What such a file leaves open, as watts and storage, "
          "comes from "
          "a known cluster (--base), and is said.\n"
          "Power: CSV of nvidia-smi, DCGM, IPMI, a PDU, RAPL; samples of Prometheus (DCGM, Kepler), as text with time "
          "stamps or the json of /api/v1/query_range. The series can be compared with a simulation (compare) or drawn "
          "under it (/reference/trace of a scenario).",
      {argument("file", "FILE", "file of another tool; its kind is told by what stands in it", &a->file),
       output_file("-o,--output", "file to write (default: stdout)", &a->output),
       output_file("--svg", "draw the cluster; - is stdout", &a->svg),
       option("--base", "CLUSTER", "cluster file that gives what the file does not say (default: chosen and said)",
              &a->options.base),
       option("--accelerator", "PROFILE", "accelerator profile of a node, such as models/accelerators/h200-sxm.json",
              &a->options.accelerator),
       option("--nodes", "N", "nodes of a cluster whose file describes one (default 1)", &a->options.nodes,
              between(1, 100000)),
       option("--node-names", "PREFIX", "ends of cables whose names begin so are nodes, all others switches",
              &a->options.node_prefix),
       option("--name", "NAME", "name of the cluster (default: of the file)", &a->options.name),
       option("--map", "WHAT=COLUMN", "columns of a power CSV: time, watts, source; may be repeated", &a->map),
       option("--place", "PLACE", "where the power was measured: node or gpu (default: as the file says)",
              Reader(place))},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
