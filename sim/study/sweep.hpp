// A study: one scenario or hall, many values of some of its inputs, every combination simulated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "study/study_values.hpp"

namespace tw {

// Inputs that change together: the first values of all columns, then the second ones, and so on.
struct StudyAxis {
  std::map<std::string, StudyColumn> set;
  std::string csv;
  static void describe(Description<StudyAxis>& d);
};

// What a point may be without the study having failed.
enum class StudySkip { refused, does_not_fit };

enum class FigureKind { line, scaling, heatmap, pareto, breakdown };

struct StudyFigure {
  std::string x, y = "step.time_s", series, label;
  FigureKind kind = FigureKind::line;
  std::string title, x_label;
  static void describe(Description<StudyFigure>& d);
};

struct Study {
  std::string name;
  std::string description;
  std::string scenario, hall;  // one of them
  std::vector<std::string> set;
  std::vector<StudyAxis> axes;
  uint64_t seed = 1;
  int runs = 0, level = 1;
  std::vector<StudyFigure> figures;
  std::vector<uint64_t> seeds;
  std::vector<StudySkip> skip;
  std::vector<std::string> where;
  static void describe(Description<Study>& d);
};

// The columns of one axis after ranges and tables were read: rows[i] holds the i-th value of each pointer as JSON text
// ("\"400 Gbit/s\"", "8"); an empty text leaves the scenario's value.
struct StudyValues {
  std::vector<std::string> pointers;
  std::vector<std::vector<std::string>> rows;
};

// One combination.
struct StudyPoint {
  std::map<std::string, std::string> values;  // by pointer, as JSON text
  uint64_t seed = 1;
};

struct LoadedStudy {
  Study study;
  std::string file;           // as named
  std::string scenario_file;  // found; the hall's where the study is of one
  bool of_hall() const { return !study.hall.empty(); }
  std::vector<StudyValues> axes;
  std::vector<StudyCondition> where;
  // What the results depend on, by name, to tell whether a folder holds results of this very study: the program's
  // version, the scenario's effective inputs and whatever of the study changes a number (figures do not).
  std::map<std::string, std::string> identity;
  std::string canonical;  // the study itself, for tables and figures of merged shards

  size_t points() const;
  StudyPoint point(size_t index) const;      // the last axis changes fastest, seeds faster still
  std::vector<std::string> columns() const;  // pointers in the order of the axes; "seed" last where the study has seeds
};

// Reads and checks a study, its scenario, and that every pointer names an input and every value is of its kind. More
// than a million points are refused. All faults go to `faults`; the value is then not to be used.
LoadedStudy load_study(const std::string& file, const std::vector<std::string>& overrides, Faults& faults);

// A study read back from `canonical`, for its name and figures.
Study study_from_canonical(const std::string& text);

// Why `where` leaves a point out; empty when it does not.
std::string left_out(const LoadedStudy& loaded, const StudyPoint& point);

}  // namespace tw
