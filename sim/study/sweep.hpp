// A study: one scenario, many values of some of its inputs, every combination simulated.
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
  static void describe(Description<StudyAxis>& d) {
    d.object("study_axis", "Inputs that change together; axes are combined, each value with each.");
    d.optional(
        "set", &StudyAxis::set,
        "values by JSON pointer into the scenario, as {\"/plan/nodes\": [8, 16]}, or a range (study_range); several "
        "columns go in step");
    d.optional(
        "csv", &StudyAxis::csv,
        "or a CSV of cases, found beside the study: pointers in its first line, a case a row; an empty cell leaves "
        "the scenario's value");
  }
};

// What a point may be without the study having failed.
enum class StudySkip { refused, does_not_fit };
template <>
struct Choices<StudySkip> {
  static std::vector<std::pair<std::string, StudySkip>> table() {
    return {{"refused", StudySkip::refused}, {"does_not_fit", StudySkip::does_not_fit}};
  }
};

enum class FigureKind { line, scaling, heatmap, pareto, breakdown };
template <>
struct Choices<FigureKind> {
  static std::vector<std::pair<std::string, FigureKind>> table() {
    return {{"line", FigureKind::line},
            {"scaling", FigureKind::scaling},
            {"heatmap", FigureKind::heatmap},
            {"pareto", FigureKind::pareto},
            {"breakdown", FigureKind::breakdown}};
  }
};

struct StudyFigure {
  std::string x, y = "step.time_s", series, label;
  FigureKind kind = FigureKind::line;
  std::string title, x_label;
  static void describe(Description<StudyFigure>& d) {
    d.object("study_figure", "A figure of a study.");
    d.required("x", &StudyFigure::x,
               "the input along the horizontal axis, as its pointer; of a Pareto front an output, a column of sweep.csv");
    d.optional("y", &StudyFigure::y,
               "the output, a column of sweep.csv such as step.time_s; of a breakdown a group such as step.breakdown_s");
    d.optional("series", &StudyFigure::series,
               "the input that tells the lines apart, as its pointer; of a heat map the vertical axis");
    d.optional("label", &StudyFigure::label, "text of the vertical axis (default: what the column means)");
    d.optional("kind", &StudyFigure::kind,
               "line (bars where x is no number), scaling (with its efficiency), heatmap, pareto or breakdown (stacked)");
    d.optional("title", &StudyFigure::title, "title (default: the study's name)");
    d.optional("x_label", &StudyFigure::x_label, "text of the horizontal axis (default: name and unit of x)");
  }
};

struct Study {
  std::string name;
  std::string description;
  std::string scenario;
  std::vector<std::string> set;
  std::vector<StudyAxis> axes;
  uint64_t seed = 1;
  int runs = 0, level = 1;
  std::vector<StudyFigure> figures;
  std::vector<uint64_t> seeds;
  std::vector<StudySkip> skip;
  std::vector<std::string> where;
  static void describe(Description<Study>& d) {
    d.object("study", "One scenario with many values of some of its inputs.");
    d.required("name", &Study::name, "name of the study");
    d.optional("description", &Study::description, "what it asks");
    d.required("scenario", &Study::scenario, "scenario file");
    d.optional("set", &Study::set, "overrides of all points, /pointer=value");
    d.optional("axes", &Study::axes, "what changes; the last axis changes fastest");
    d.optional("seed", &Study::seed, "seed of all random draws", between(0, 1e15));
    d.optional("runs", &Study::runs, "seeded repetitions of each point; 0: as many as its scenario asks for",
               between(0, 1e6));
    d.optional("level", &Study::level, "1: one rank a class; 2: every node", between(1, 2));
    d.optional("figures", &Study::figures, "figures to draw");
    d.optional("seeds", &Study::seeds, "each point once for each of these seeds, in place of seed", between(0, 1e15));
    d.optional(
        "skip", &Study::skip,
        "points that are left out without a failure: refused (inputs that do not go together, such as plans that "
        "do not divide) and does_not_fit (memory, a power rating); their rows say why");
    d.optional("where", &Study::where,
               "only points that meet all of these, as \"/plan/tp * /plan/pp <= 16\": products of changing inputs and "
               "numbers, quantities in SI units");
  }
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
  std::string scenario_file;  // found
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
