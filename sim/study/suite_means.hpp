// What the rows of a suite say together: mean errors, the order of plans, and a null model beside them.
#pragma once

#include <vector>

#include "study/validate.hpp"

namespace tw {

// The null model: every accelerator reaches the share of its peak that the smallest fitted row reached (the suite's
// null_mfu where none is fitted); profiled workloads keep the samples a second and accelerator of their own smallest
// fitted row. It knows no network, no host and no kernel; a simulation has to beat it. Fills null_predicted of the rows
// of steps. `outcomes` holds one result a case.
void add_null_model(const Suite& suite, const std::vector<Outcome>& outcomes, SuiteOutcome& out);

// Mean errors over the predicted rows of steps and runs, by group, and how plans are ordered.
std::vector<MeanOutcome> suite_means(const Suite& suite, const SuiteOutcome& out);

// Spearman's rank correlation; ties share their mean rank. Absent for fewer than two values or without any spread.
Maybe spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tw
