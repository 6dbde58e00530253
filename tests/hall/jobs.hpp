// Jobs of halls that are made by hand.
#pragma once

#include <string>

#include "hall/hall.hpp"

namespace tw::test {

// Watts and work as given, at one point that nothing slows.
inline hall::Job plain_job(const std::string& name, int nodes, double arrival_s, double work_s, double node_w) {
  hall::Job job;
  job.name = job.kind = name;
  job.nodes = nodes, job.arrival_s = arrival_s, job.work_s = work_s;
  job.points = {{0, 1, node_w}};
  return job;
}

}  // namespace tw::test
