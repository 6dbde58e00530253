// Files of other tools, told apart by what stands in them, and what each becomes here: a network, a cluster, a power
// series. A kind is one file (read_*.cpp) and one line in the table of foreign.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace tw::foreign {

struct Source {
  std::string name;  // as the user named it
  std::string text;
};

// What the file leaves open.
struct Options {
  std::string base;         // cluster file that gives what the file does not say; empty: chosen and said
  std::string name;         // of the cluster; empty: after the file
  std::string accelerator;  // profile; empty: as the file or the base says
  int nodes = 1;            // of a file that describes one node
  std::string node_prefix;  // names of cables' ends that begin so are nodes; empty: by the usual names of switches
  std::string place;        // of power readings: node or gpu; empty: as the file says
  std::map<std::string, std::string> columns;  // time, watts, source -> column of a CSV; empty: by their usual names
};

struct Reading {
  std::string text;               // of the file to write
  std::vector<std::string> said;  // what was inferred, a line each
};

struct Kind {
  const char* name;     // "NCCL topology XML"
  const char* becomes;  // "a cluster"
  bool (*fits)(const Source&);
  Reading (*read)(const Source&, const Options&, Faults&);
};
const std::vector<Kind>& kinds();

// "config.json of a Hugging Face repository, NCCL topology XML, ..."
std::string kind_names();

// The first kind that fits; a fault that names the kinds where none does.
Reading read_any(const Source& source, const Options& options, Faults& faults);

}  // namespace tw::foreign
