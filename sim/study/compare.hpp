// Two or more runs side by side: which inputs and which outputs differ.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace tw {

// Values by the path of their keys ("plan.tp", "step.time_s"), as JSON text without the quotes of plain texts.
using FlatValues = std::vector<std::pair<std::string, std::string>>;
FlatValues flat_json(const std::string& json_text);

struct Comparand {
  std::string name;
  FlatValues inputs, outputs;
};

// A file of results (run --json): one comparand for each of its scenarios; plan, seed and the hash of the inputs are
// its inputs. Nothing when the text is no result, which may then be a scenario.
std::optional<std::vector<Comparand>> comparands_of_results(const std::string& text, const std::string& file,
                                                            Faults& faults);

// A comparand of a simulated scenario: `inputs` the effective input, `result` one result, both as JSON. Without
// `inputs`: beside results, which hold but their plan, seed and hash.
Comparand comparand_of(const std::string& name, const std::string& inputs, const std::string& result);

// One path that is not the same everywhere; an absent value has no text.
struct Difference {
  std::string path;
  std::vector<std::optional<std::string>> values;
  std::vector<std::optional<double>> changes_pct;  // of each against the first, where both are numbers
};
// What a part of the step has to do with the difference of two steps.
struct StepPart {
  std::string name;  // key of breakdown_s
  double first_s = 0, other_s = 0;
  double change_s() const { return other_s - first_s; }
};
// The parts of the steps of two comparands that differ, by size of their difference; they add up to `change_s`, the
// difference of the step times. Empty where one of them has no breakdown.
std::vector<StepPart> step_parts(const Comparand& first, const Comparand& other, double& change_s);

// How far the time to train of two comparands is apart, beside what their seeded runs leave open (95 %): the half
// widths of their means; of single runs with failures, what the failures of another seed would change. Nothing where
// neither is known, or where a time is missing.
struct TimeDifference {
  double change_pct = 0, noise_pct = 0;
  bool within_noise() const;
};
std::optional<TimeDifference> time_difference(const Comparand& first, const Comparand& other);

// In the order of the first that has the path. Numbers that agree to `tolerance` (relative) are the same.
std::vector<Difference> differences(const std::vector<FlatValues>& all, double tolerance = 1e-12);

}  // namespace tw
