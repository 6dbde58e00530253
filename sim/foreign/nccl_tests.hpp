// Output of nccl-tests (all_reduce_perf and its kin): sizes, times, bus bandwidths; ranks and hosts from its head.
#pragma once

#include <string>
#include <vector>

#include "foreign/foreign.hpp"

namespace tw::foreign {

struct NcclTestRow {
  size_t line = 0;
  double bytes = 0, time_s = 0, bus_Bps = 0;  // out of place
};
struct NcclTest {
  std::string operation;  // "all-reduce"; of the head, else by the ratio of bus and algorithm bandwidth and by redop
  bool operation_said = true;  // by the file itself
  int ranks = 0, hosts = 0;
  std::vector<NcclTestRow> rows;
};

bool is_nccl_test(const Source& source);
NcclTest parse_nccl_test(const Source& source, Faults& faults);

}  // namespace tw::foreign
