// Samples to the target quality as a function of the global batch size: reference convergence points of MLPerf Training
// (RCP, models/convergence/*.json), and what a seeded run draws from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/describe.hpp"

namespace tw {

// Reference runs at one global batch size.
struct ConvergencePoint {
  int gbs = 1;
  double samples = 0;    // mean over the runs
  double sd = 0;         // standard deviation over the runs
  double reference = 0;  // mean without the least and the greatest run: what the scorer compares with; 0: as samples
  int runs = 0;
  double learning_rate = 0;
  static void describe(Description<ConvergencePoint>& d);
};

struct Convergence {
  std::string name;
  std::string sample = "sample";
  std::string rcp_version;
  std::vector<ConvergencePoint> points;
  double first_evaluation = 0, evaluation_interval = 0, evaluation_interval_per_gbs = 0, evaluation_samples = 0;
  double reference_interval = 0;
  std::string note, source;
  static void describe(Description<Convergence>& d);
};

// Mean and standard deviation of the samples to the target. Between points: samples along a straight line of logarithms
// (convergence curves are close to power laws piece by piece), relative spread along the logarithm of the batch size.
// Beyond the ends: along the last piece. Points in any order; at least one.
struct SamplesToTarget {
  double mean = 0, sd = 0;
};
SamplesToTarget samples_to_target(const Convergence& convergence, double gbs);

// Why the model cannot say anything for this batch size (more than twice beyond its points); empty when it can.
std::string convergence_problem(const Convergence& convergence, double gbs);
// What a result has to say about it: extrapolation, with the range; empty inside the points.
std::string convergence_warning(const Convergence& convergence, double gbs);

// Samples between evaluations by the model itself.
double evaluation_interval(const Convergence& convergence, double gbs);

// Samples at which a seeded run meets its target: a draw of the underlying need (log-normal, with the reference runs'
// own rounding to evaluations taken out of mean and spread), rounded up to the next evaluation at first + k * interval.
// interval 0: not rounded.
double draw_samples(const Convergence& convergence, double gbs, double first, double interval, uint64_t seed);

// Samples that the scorer holds a submission against: between the points, linear in the batch size, over points that
// lie on or below the line through their neighbours (slower ones do not count). Rule: mlcommons/logging rcp_checker.
double reference_samples(const Convergence& convergence, double gbs);

}  // namespace tw
