// A small described input for the tests of the reader.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/document.hpp"
#include "core/units.hpp"

namespace toys {
enum class Roof { flat, gabled };
}
namespace tw {
template <>
struct Choices<toys::Roof> {
  static std::vector<std::pair<std::string, toys::Roof>> table() {
    return {{"flat", toys::Roof::flat}, {"gabled", toys::Roof::gabled}};
  }
};
}  // namespace tw

namespace toys {

struct Barn {
  int doors = 0;
  tw::Power lamp;
  Roof roof = Roof::flat;
  static void describe(tw::Description<Barn>& d) {
    d.object("barn", "A barn.");
    d.required("doors", &Barn::doors, "doors of it", tw::at_least(1));
    d.required("lamp", &Barn::lamp, "lamp in it");
    d.optional("roof", &Barn::roof, "roof on it");
  }
};

struct Limits {
  double low = 0, high = 1;
  static void describe(tw::Description<Limits>& d) {
    d.object("limits", "Limits.");
    d.optional("low", &Limits::low, "lower");
    d.optional("high", &Limits::high, "upper");
  }
};

struct Farm {
  std::string name;
  Barn barn;
  double share = 0.5;
  long long seed = 7;
  bool open = false;
  std::vector<int> counts;
  std::vector<double> offsets;
  std::vector<Barn> annexes;
  std::map<std::string, Barn> sheds;
  std::optional<Barn> spare;
  Limits limits;
  static void describe(tw::Description<Farm>& d) {
    d.object("farm", "A farm.");
    d.required("name", &Farm::name, "its name");
    d.required("barn", &Farm::barn, "its barn");
    d.optional("share", &Farm::share, "a share", tw::between(0, 1));
    d.optional("seed", &Farm::seed, "a seed");
    d.optional("open", &Farm::open, "open or not");
    d.optional("counts", &Farm::counts, "counts");
    d.optional("offsets", &Farm::offsets, "offsets", tw::at_least(-5));
    d.optional("annexes", &Farm::annexes, "annexes");
    d.optional("sheds", &Farm::sheds, "sheds by name");
    d.optional("spare", &Farm::spare, "a second barn");
    d.optional("limits", &Farm::limits, "limits");
  }
};

inline Farm read_farm(const std::string& text, const std::vector<std::string>& overrides, tw::Faults& faults) {
  const auto document = tw::Document::from_text(text, "toy.json", tw::description<Farm>().info(), overrides, faults);
  return tw::read<Farm>(document, faults);
}

// All faults, a line each; empty when there are none.
inline std::string text_of(const tw::Faults& faults) {
  try {
    faults.throw_if_any();
  } catch (const tw::InputError& error) {
    return error.what();
  }
  return "";
}

inline std::string faults_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  tw::Faults faults;
  read_farm(text, overrides, faults);
  return text_of(faults);
}

inline bool holds(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) UNSCOPED_INFO("\"" << part << "\" is not in:\n" << text);
  return found;
}

}  // namespace toys
