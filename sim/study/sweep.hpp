// A study: one scenario, many values of some of its inputs, every combination simulated.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "study/simulate.hpp"

namespace tw {

// A value of any kind, as the text that an override takes.
struct StudyValue {
  std::string text;
};
template <>
struct Codec<StudyValue> {
  static TypeInfo type() { return {TypeInfo::Kind::any, nullptr, {}, nullptr, nullptr}; }
  static void read(StudyValue& out, const nlohmann::json& j, const ReadContext& c);
  static std::string default_text(const StudyValue&) { return ""; }
};

// Inputs that change together: the first values of all columns, then the second ones, and so on.
struct StudyAxis {
  std::map<std::string, std::vector<StudyValue>> set;
  static void describe(Description<StudyAxis>& d) {
    d.object("study_axis", "Inputs that change together; axes are combined, each value with each.");
    d.required("set", &StudyAxis::set,
               "values by JSON pointer into the scenario, as {\"/plan/nodes\": [8, 16]}; several columns go in step");
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
  int runs = 1, level = 1;
  std::vector<StudyFigure> figures;
  static void describe(Description<Study>& d) {
    d.object("study", "One scenario with many values of some of its inputs.");
    d.required("name", &Study::name, "name of the study");
    d.optional("description", &Study::description, "what it asks");
    d.required("scenario", &Study::scenario, "scenario file");
    d.optional("set", &Study::set, "overrides of all points, /pointer=value");
    d.required("axes", &Study::axes, "what changes; the last axis changes fastest");
    d.optional("seed", &Study::seed, "seed of all random draws", between(0, 1e15));
    d.optional("runs", &Study::runs, "seeded repetitions of each point", between(1, 1e6));
    d.optional("level", &Study::level, "1: one rank a class; 2: every node", between(1, 2));
    d.optional("figures", &Study::figures, "figures to draw");
  }
};

// One combination.
struct StudyPoint {
  std::map<std::string, std::string> values;  // by pointer
};

// Points in order. More than a million are refused by load_study().
std::vector<StudyPoint> points_of(const Study& study);

// The value of an input as a reader writes it: without the quotes of JSON.
std::string plain_value(const std::string& json_text);

struct LoadedStudy {
  Study study;
  std::string file;           // as named
  std::string scenario_file;  // found
};
LoadedStudy load_study(const std::string& file, const std::vector<std::string>& overrides, Faults& faults);

// Every point in a forked child, at most `jobs` at once, in the order of the points. A point whose inputs are refused
// or whose simulation fails gives an Outcome with its error.
std::vector<Outcome> run_study(const LoadedStudy& loaded, const std::vector<StudyPoint>& points, int jobs,
                               double deadline_s, const std::function<void(size_t done, size_t all)>& progress);

}  // namespace tw
