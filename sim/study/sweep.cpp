#include "study/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/codec.hpp"
#include "core/csv.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/pointer.hpp"
#include "core/version.hpp"
#include "study/hall_study.hpp"
#include "study/scenario.hpp"

namespace tw {
namespace {

constexpr size_t kMostPoints = 1000000;

using nlohmann::json;

// What a study changes.
struct Base {
  std::string file;
  bool hall = false;
  const ObjectInfo& info() const {
    return hall ? description<hall::HallInput>().info() : description<Scenario>().info();
  }
};
Base base_of(const LoadedStudy& loaded) {
  return {loaded.scenario_file, loaded.of_hall()};
}

// The declared type of what a pointer names. Where it names nothing, reading it as an override says so, with what may
// have been meant.
const TypeInfo* known_type(const std::string& pointer, const Base& base, const ReadContext& at) {
  if (const TypeInfo* type = type_at(base.info(), pointer)) return type;
  Faults faults;
  Document::load(base.file, base.info(), {pointer + "=null"}, faults);
  std::string what = "names nothing", allowed = base.hall ? "a pointer into the hall, such as \"/budget/power\""
                                                          : "a pointer into the scenario, such as \"/plan/nodes\"";
  for (const Fault& fault : faults.list())
    if (fault.file == "--set") what = fault.what, allowed = fault.allowed;
  at.fault(what, allowed);
  return nullptr;
}

StudyValues values_of_set(const StudyAxis& axis, const Base& base, const ReadContext& at) {
  StudyValues out;
  size_t length = 0;
  for (const auto& [pointer, column] : axis.set) {
    const ReadContext here = at.at(pointer);
    if (pointer.empty() || pointer.front() != '/') {
      here.fault("is not a JSON pointer", "such as \"/plan/nodes\"");
      continue;
    }
    const TypeInfo* type = known_type(pointer, base, here);
    if (type == nullptr) continue;
    const size_t before = at.faults->size();
    std::vector<std::string> texts;
    if (column.range) {
      texts = range_values(*column.range, *type, here);
    } else {
      for (size_t i = 0; i < column.values.size(); ++i) {
        check_value(column.values[i].text, *type, here.at(i));
        texts.push_back(column.values[i].text);
      }
      if (texts.empty()) here.fault("has no values", "at least one");
    }
    if (at.faults->size() != before) continue;
    if (!out.pointers.empty() && texts.size() != length) {
      here.fault(fmt::format("{} values beside {} of {}", texts.size(), length, out.pointers.front()),
                 "columns that change together have as many values each");
      continue;
    }
    length = texts.size();
    out.pointers.push_back(pointer);
    out.rows.resize(length);
    for (size_t i = 0; i < length; ++i) out.rows[i].push_back(texts[i]);
  }
  return out;
}

StudyValues values_of_csv(const StudyAxis& axis, const std::string& study_file, const Base& base,
                          const ReadContext& at) {
  StudyValues out;
  const auto found = find_input_file(axis.csv, study_file);
  if (!found) {
    at.fault(fmt::format("there is no file \"{}\"", axis.csv), "a CSV beside the study, pointers in its first line");
    return out;
  }
  try {
    const CsvTable table = CsvTable::load(*found);
    const auto fault = [&](const std::string& place, const Fault& f) {
      at.faults->add({*found, place, f.what, f.allowed});
    };
    std::vector<const TypeInfo*> types;
    for (const std::string& column : table.columns()) {
      Faults mine;
      const ReadContext here{at.document, "", &mine, {}};
      if (column.empty() || column.front() != '/')
        here.fault("is not a JSON pointer", "such as \"/plan/nodes\", one a column");
      else
        types.push_back(known_type(column, base, here));
      for (const Fault& f : mine.list()) fault(fmt::format("column {}", column), f);
      out.pointers.push_back(column);
    }
    if (types.size() != out.pointers.size() || std::count(types.begin(), types.end(), nullptr) > 0) return {};
    for (size_t row = 0; row < table.rows(); ++row) {
      std::vector<std::string> texts;
      for (size_t k = 0; k < types.size(); ++k) {
        texts.push_back(json_of_cell(table.text(row, out.pointers[k]), *types[k]));
        if (texts.back().empty()) continue;
        Faults mine;
        check_value(texts.back(), *types[k], {at.document, "", &mine, {}});
        for (const Fault& f : mine.list()) fault(fmt::format("row {}, column {}", row + 1, out.pointers[k]), f);
      }
      out.rows.push_back(std::move(texts));
    }
    if (out.rows.empty()) at.fault(fmt::format("{} holds no case", *found), "a line of pointers, then a case a line");
  } catch (const InputError& error) {
    for (const Fault& f : error.faults()) at.faults->add(f);
  }
  return out;
}

void check_study(const Study& study, const std::vector<StudyValues>& axes, const ReadContext& root) {
  if (axes.empty() && study.seeds.empty())
    root.fault("an empty study: neither \"axes\" nor \"seeds\" is given", "at least one input with its values");
  double points = std::max<double>(1, static_cast<double>(study.seeds.size()));
  std::set<std::string> seen;
  for (size_t i = 0; i < axes.size(); ++i) {
    const ReadContext at = root.at("axes").at(i);
    for (const std::string& pointer : axes[i].pointers)
      if (!seen.insert(pointer).second) at.at("set").at(pointer).fault("changes on two axes", "each input on one axis");
    points *= static_cast<double>(std::max<size_t>(1, axes[i].rows.size()));
  }
  if (points > kMostPoints)
    root.at("axes").fault(fmt::format("{:.0f} points, more than a million", points),
                          "fewer values, or several studies");
  for (size_t i = 0; i < study.figures.size(); ++i) {
    const StudyFigure& figure = study.figures[i];
    const ReadContext at = root.at("figures").at(i);
    for (const auto& [key, pointer] : {std::pair{"x", figure.x}, std::pair{"series", figure.series}}) {
      // The front of two outputs has an output along its horizontal axis.
      const bool output = figure.kind == FigureKind::pareto && std::string(key) == "x";
      if (!pointer.empty() && seen.count(pointer) == 0 && !output)
        at.at(key).fault(fmt::format("{} does not change in this study", pointer), "a pointer of one of the axes");
    }
    if (figure.kind == FigureKind::heatmap && figure.series.empty())
      at.fault("a heat map needs \"series\", the input along its vertical axis", "a pointer of one of the axes");
  }
}

// What values that stand for whole parts of the scenario draw in from files, so that a resumed study sees that one of
// them changed.
void add_parts(LoadedStudy& loaded, const ReadContext& root) {
  for (size_t i = 0; i < loaded.axes.size(); ++i) {
    const StudyValues& axis = loaded.axes[i];
    for (size_t k = 0; k < axis.pointers.size(); ++k) {
      const TypeInfo* type = type_at(base_of(loaded).info(), axis.pointers[k]);
      if (type->kind != TypeInfo::Kind::object && type->kind != TypeInfo::Kind::array &&
          type->kind != TypeInfo::Kind::map)
        continue;
      for (const auto& row : axis.rows) {
        const std::string name = axis.pointers[k] + "=" + row[k];
        if (row[k].empty() || row[k] == "null" || loaded.identity.count(name) > 0) continue;
        std::vector<std::string> set = loaded.study.set;
        set.push_back(name);
        Faults faults;
        const Document d = Document::load(loaded.scenario_file, base_of(loaded).info(), set, faults);
        for (const Fault& f : faults.list())
          if (f.file == "--set" || f.file == "--set " + axis.pointers[k])
            root.at("axes").at(i).at("set").at(axis.pointers[k]).fault(f.what, f.allowed);
          else
            root.faults->add(f);
        if (faults.empty())
          loaded.identity[name] = sha256_hex(d.root().at(json::json_pointer(axis.pointers[k])).dump());
      }
    }
  }
}

void add_identity(LoadedStudy& loaded, const std::string& scenario_inputs) {
  const Study& s = loaded.study;
  auto& id = loaded.identity;
  id["trainwatt"] = version();
  id["scenario"] = scenario_inputs;
  id["seed"] = std::to_string(s.seed), id["runs"] = std::to_string(s.runs), id["level"] = std::to_string(s.level);
  id["seeds"] = json(s.seeds).dump(), id["where"] = json(s.where).dump();
  std::string skip;
  for (const StudySkip what : s.skip) skip += choice_name(what) + " ";
  id["skip"] = skip;
  json axes = json::array();
  for (const StudyValues& axis : loaded.axes) axes.push_back({{"pointers", axis.pointers}, {"rows", axis.rows}});
  id["axes"] = axes.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

size_t LoadedStudy::points() const {
  size_t count = std::max<size_t>(1, study.seeds.size());
  for (const StudyValues& axis : axes) count *= axis.rows.size();
  return count;
}

StudyPoint LoadedStudy::point(size_t index) const {
  StudyPoint p;
  p.seed = study.seed;
  if (!study.seeds.empty()) {
    p.seed = study.seeds[index % study.seeds.size()];
    p.values["seed"] = std::to_string(p.seed);
    index /= study.seeds.size();
  }
  for (size_t i = axes.size(); i-- > 0;) {
    const auto& row = axes[i].rows[index % axes[i].rows.size()];
    index /= axes[i].rows.size();
    for (size_t k = 0; k < row.size(); ++k)
      if (!row[k].empty()) p.values[axes[i].pointers[k]] = row[k];
  }
  return p;
}

std::vector<std::string> LoadedStudy::columns() const {
  std::vector<std::string> list;
  for (const StudyValues& axis : axes) list.insert(list.end(), axis.pointers.begin(), axis.pointers.end());
  if (!study.seeds.empty()) list.emplace_back("seed");
  return list;
}

std::string left_out(const LoadedStudy& loaded, const StudyPoint& point) {
  std::map<std::string, const TypeInfo*> types;
  for (const auto& [pointer, value] : point.values) types[pointer] = type_at(base_of(loaded).info(), pointer);
  for (const StudyCondition& c : loaded.where)
    if (!meets(c, point.values, types)) return "left out by \"" + c.text + "\"";
  return "";
}

Study study_from_canonical(const std::string& text) {
  Faults faults;
  const Document document = Document::from_text(text, "study", description<Study>().info(), {}, faults);
  Study study = read<Study>(document, faults);
  faults.throw_if_any();
  return study;
}

LoadedStudy load_study(const std::string& file, const std::vector<std::string>& overrides, Faults& faults) {
  LoadedStudy loaded;
  loaded.file = file;
  Faults mine;
  const Document document = Document::load(file, description<Study>().info(), overrides, mine);
  loaded.study = read<Study>(document, mine);
  const ReadContext root{&document, "", &mine, {}};
  const Study& study = loaded.study;
  const auto good = [&] { return document.complete() && mine.empty(); };
  if (good()) {
    const char* key = loaded.of_hall() ? "hall" : "scenario";
    const std::string& name = loaded.of_hall() ? study.hall : study.scenario;
    const auto found = find_input_file(name, document.origin(std::string("/") + key).file);
    if (study.scenario.empty() == study.hall.empty())
      root.fault("a study changes one of \"scenario\" and \"hall\"", "exactly one");
    else if (found)
      loaded.scenario_file = *found;
    else
      root.at(key).fault(fmt::format("there is no file \"{}\"", name), suggest_file(name));
  }
  // The scenario without any change has to be right; a point that is not becomes a row with its error.
  if (good() && loaded.of_hall()) load_hall(loaded.scenario_file, study.set, mine);
  if (good() && !loaded.of_hall()) load_scenario(loaded.scenario_file, study.set, mine);
  if (good()) {
    for (size_t i = 0; i < study.axes.size(); ++i) {
      const StudyAxis& axis = study.axes[i];
      const ReadContext at = root.at("axes").at(i);
      if (axis.set.empty() == axis.csv.empty())
        at.fault(axis.csv.empty() ? "nothing changes" : "both \"set\" and \"csv\" are given",
                 "pointers with their values, or a CSV of cases");
      else if (axis.csv.empty())
        loaded.axes.push_back(values_of_set(axis, base_of(loaded), at.at("set")));
      else
        loaded.axes.push_back(
            values_of_csv(axis, document.origin(at.pointer + "/csv").file, base_of(loaded), at.at("csv")));
    }
    if (good()) check_study(study, loaded.axes, root);
  }
  if (good()) {
    std::map<std::string, const TypeInfo*> types;
    for (const std::string& pointer : loaded.columns()) types[pointer] = type_at(base_of(loaded).info(), pointer);
    for (size_t i = 0; i < study.where.size(); ++i)
      if (auto condition = parse_condition(study.where[i], types, root.at("where").at(i)))
        loaded.where.push_back(std::move(*condition));
  }
  if (good()) {
    add_parts(loaded, root);
    add_identity(loaded, Document::load(loaded.scenario_file, base_of(loaded).info(), study.set, mine).canonical());
    loaded.canonical = document.canonical();
  }
  // What one value at a time cannot show: a pointer into a list that is not there.
  if (good()) {
    std::vector<std::string> set = study.set;
    for (const auto& [pointer, value] : loaded.point(0).values)
      if (pointer != "seed") set.push_back(pointer + "=" + value);
    Faults first;
    Document::load(loaded.scenario_file, base_of(loaded).info(), set, first);
    for (const Fault& f : first.list())
      if (f.file == "--set") root.at("axes").fault(fmt::format("{}: {}", f.place, f.what), f.allowed);
  }
  for (const Fault& fault : mine.list()) faults.add(fault);
  return loaded;
}

void StudyAxis::describe(Description<StudyAxis>& d) {
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

void StudyFigure::describe(Description<StudyFigure>& d) {
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

void Study::describe(Description<Study>& d) {
  d.object("study", "One scenario or hall with many values of some of its inputs.");
  d.required("name", &Study::name, "name of the study");
  d.optional("description", &Study::description, "what it asks");
  d.optional("scenario", &Study::scenario, "scenario file");
  d.optional("hall", &Study::hall, "or hall file: each point is a hall, its pointers go into it");
  d.optional("set", &Study::set, "overrides of all points, /pointer=value");
  d.optional("axes", &Study::axes, "what changes; the last axis changes fastest");
  d.optional("seed", &Study::seed, "seed of all random draws", between(0, 1e15));
  d.optional("runs", &Study::runs, "seeded repetitions of each point; 0: as many as its scenario asks for",
             between(0, 1e6));
  d.optional("level", &Study::level, "1: one rank a class; 2: every node", between(1, 2));
  d.optional("figures", &Study::figures, "figures to draw");
  d.optional("seeds", &Study::seeds, "each point once for each of these seeds, in place of seed", between(0, 1e15));
  d.optional("skip", &Study::skip,
             "points that are left out without a failure: refused (inputs that do not go together, such as plans that "
             "do not divide) and does_not_fit (memory, a power rating); their rows say why");
  d.optional("where", &Study::where,
             "only points that meet all of these, as \"/plan/tp * /plan/pp <= 16\": products of changing inputs and "
             "numbers, quantities in SI units");
}

}  // namespace tw
