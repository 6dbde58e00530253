#include "foreign/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "core/text.hpp"
#include "foreign/lines.hpp"

namespace tw::foreign {
namespace {

// Programs of nccl-tests and the operation each times.
constexpr std::pair<const char*, const char*> kPrograms[] = {
    {"all_reduce", "all-reduce"}, {"all_gather", "all-gather"}, {"reduce_scatter", "reduce-scatter"},
    {"alltoall", "all-to-all"},   {"broadcast", "broadcast"},   {"sendrecv", "send-recv"}};

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// "#  Rank  3 Group  0 Pid  1234 on  dgx-01 device  3 [0x9b] NVIDIA H100"
void see_head(const std::string& line, NcclTest& test, std::set<std::string>& hosts) {
  const std::string low = lower(line);
  const auto words = words_in(line);
  if (words.size() > 2 && words[0] == "#" && words[1] == "Rank") {
    ++test.ranks;
    for (size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "on") hosts.insert(words[i + 1]);
  }
  for (const auto& [program, operation] : kPrograms)
    if (test.operation.empty() && contains(low, std::string(program) + "_perf")) test.operation = operation;
}

Reading read_nccl_test(const Source& s, const Options&, Faults& faults) {
  const NcclTest test = parse_nccl_test(s, faults);
  if (faults.empty())
    faults.add({s.name, "",
                fmt::format("is nccl-tests output ({}, {} ranks): it calibrates a cluster's links", test.operation,
                            test.ranks),
                "trainwatt calibrate --nccl-tests FILE --cluster CLUSTER -o mine.json"});
  return {};
}

}  // namespace

bool is_nccl_test(const Source& s) {
  return contains(s.text, "busbw") && contains(s.text, "algbw");
}

NcclTest parse_nccl_test(const Source& s, Faults& faults) {
  NcclTest test;
  std::set<std::string> hosts;
  double ratio = 0;
  bool reduces = false;
  for (const Line& line : lines_of(s.text)) {
    const std::string text = trimmed(line.text);
    if (text.empty()) continue;
    if (text.front() == '#' || std::isdigit(static_cast<unsigned char>(text.front())) == 0) {
      see_head(text, test, hosts);
      continue;
    }
    // size count type [redop] root time algbw busbw #wrong, and the same in place; older ones lack redop or root.
    const auto words = words_in(text);
    const size_t fields = words.size();
    const auto refuse = [&](const std::string& what) {
      faults.add(
          {s.name, line_place(line.number), what, "size, count, type, redop, root, time, algbw, busbw, #wrong, twice"});
    };
    if (fields < 9) {
      refuse(fmt::format("{} fields of a result line", fields));
      continue;
    }
    const size_t first = fields - 8;  // of the out-of-place numbers
    const auto bytes = number_of(words[0]), time_us = number_of(words[first]), alg = number_of(words[first + 1]),
               bus = number_of(words[first + 2]);
    if (!bytes || !time_us || !alg || !bus || *bytes < 0 || *time_us <= 0) {
      const size_t bad = !bytes ? 0 : !time_us || *time_us <= 0 ? first : !alg ? first + 1 : first + 2;
      refuse(fmt::format("\"{}\" is no number of this column", printable(words[bad], 30)));
      continue;
    }
    reduces = reduces || (words.size() > 3 && words[3] == "sum");
    if (*alg > 1) ratio = *bus / *alg;
    if (*bytes > 0) test.rows.push_back({line.number, *bytes, *time_us * 1e-6, *bus * 1e9});
  }
  test.hosts = static_cast<int>(hosts.size());
  if (test.operation.empty()) {
    test.operation_said = false;
    // Bus over algorithm bandwidth: 2 (n - 1) / n of an all-reduce, (n - 1) / n of the others (nccl-tests,
    // PERFORMANCE.md).
    test.operation = reduces && ratio > 1 ? "all-reduce" : reduces ? "reduce-scatter" : "all-gather";
  }
  if (faults.empty() && test.rows.empty())
    faults.add({s.name, "", "holds no result line", "output of all_reduce_perf or its kin"});
  if (faults.empty() && test.ranks == 0 && test.operation == "all-reduce" && ratio > 1 && ratio < 2)
    test.ranks = static_cast<int>(std::lround(2 / (2 - ratio)));
  return test;
}

extern const Kind nccl_tests_kind{"output of nccl-tests (for calibrate --nccl-tests)", "link efficiencies",
                                  is_nccl_test, read_nccl_test};

}  // namespace tw::foreign
