// One simulation, one process: SimGrid allows one engine a process and aborts on some errors. A child is forked before
// any engine, thread or open database exists; its answer comes back over a pipe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace tw {

struct ChildResult {
  std::string value;               // what the work returned
  std::string error;               // empty when it returned
  ExitCode code = ExitCode::done;  // what the error stands for
  double cpu_s = 0;
  double peak_bytes = 0;  // resident memory
};

struct ChildOptions {
  int jobs = 1;                                           // children at once
  double deadline_s = 0;                                  // of one child; 0 = none
  std::function<bool()> interrupted;                      // asked now and then; true ends all children
  std::function<void(size_t done, size_t all)> progress;  // in the parent, after each child and while it waits
};

// Runs work(0) .. work(count - 1), each in a child of its own; results in that order whatever order they end in. A
// child that throws gives the text and the exit code that its exception stands for; one that is killed, aborts or
// passes the deadline gives simulation_failed and the last lines it wrote to stderr; after an interruption the rest
// gives interrupted.
std::vector<ChildResult> in_children(size_t count, const std::function<std::string(size_t)>& work,
                                     const ChildOptions& options = {});

// The same for work whose results are taken as they come, in the order they end, and kept by nobody else. The children
// descend from a process of their own that is forked first and where `prepare` (may be empty) runs once: what `taken`
// opens here, a database say, is in none of them. An exception of `taken` ends all of them and goes on to the caller.
void stream_from_children(size_t count, const std::function<void()>& prepare,
                          const std::function<std::string(size_t)>& work,
                          const std::function<void(size_t index, ChildResult&& result)>& taken,
                          const ChildOptions& options = {});

// The same for one child.
ChildResult in_child(const std::function<std::string()>& work, double deadline_s = 0);

// Throws the exception that the error stands for (SimulationError, DoesNotFit, std::runtime_error), if there is one.
void rethrow(const ChildResult& result);

}  // namespace tw
