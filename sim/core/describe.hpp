// Every input is described once, where its struct stands:
//
//   struct Switch {
//     int ports = 0;
//     Power nameplate;
//     static void describe(Description<Switch>& d);
//   };
//
// and beside it, in a file that includes core/codec.hpp:
//
//   void Switch::describe(Description<Switch>& d) {
//     d.object("switch", "A network switch.");
//     d.required("ports", &Switch::ports, "ports of one switch", at_least(1));
//     d.optional("nameplate", &Switch::nameplate, "nameplate power");   // default: the member's initializer
//   }
//
// The reader, its error messages, schemas/*.json and the reference pages all come from that declaration.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"

namespace tw {

class Document;

// Bounds of a number or quantity, in SI.
struct Range {
  double low = 0;  // inputs are non-negative unless their declaration says otherwise
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;  // low itself is excluded
};
constexpr Range at_least(double low) {
  return {low, std::numeric_limits<double>::infinity(), false};
}
constexpr Range above(double low) {
  return {low, std::numeric_limits<double>::infinity(), true};
}
constexpr Range between(double low, double high) {
  return {low, high, false};
}

struct ObjectInfo;

struct TypeInfo {
  enum class Kind { boolean, integer, number, text, quantity, choice, object, array, map, any };
  Kind kind = Kind::any;
  const DimensionInfo* dimension = nullptr;  // quantity
  std::vector<std::string> choices;          // choice; text: those that need no data
  const ObjectInfo* object = nullptr;        // object; also readable from a file
  std::shared_ptr<TypeInfo> element;         // array, map
  std::string name() const;                  // "power such as \"1610 W\"", for people
};

struct KeyInfo {
  std::string name;
  TypeInfo type;
  bool required = false;
  std::string default_text;  // JSON text; empty when required or absent by default
  Range range;
  std::string meaning;
  std::vector<std::string> only;  // alternatives of a tagged union that have it; empty: all
};

struct ObjectInfo {
  std::string name;
  std::string meaning;
  std::vector<KeyInfo> keys;
  std::string tag;  // of a tagged union: the key that says which alternative it is
};

// Is the key one of the alternative that `object` is?
bool applies(const ObjectInfo& info, const KeyInfo& key, const nlohmann::json& object);

// Where reading stands: document, JSON pointer, and the list that faults go to.
struct ReadContext {
  const Document* document = nullptr;
  std::string pointer;
  Faults* faults = nullptr;
  Range range;

  ReadContext at(const std::string& key) const;
  ReadContext at(size_t index) const;
  void fault(std::string what, std::string allowed = "") const;
};

namespace detail {
// What the compiler calls an enumerator; empty where there is none with that number, or where its name ends with an
// underscore: that is no choice. GCC and clang write "[... value = tw::Loss::eager ...]", and "(tw::Loss)7" for others.
template <class E, E value>
constexpr std::string_view enumerator_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("value = ") + 8);
  text = text.substr(0, text.find_first_of(";]"));
  const size_t colon = text.rfind(':');
  if (text.front() == '(' || colon == std::string_view::npos || text.back() == '_') return {};
  return text.substr(colon + 1);
}

template <class E, size_t... numbers>
std::vector<std::pair<std::string, E>> enumerators(std::index_sequence<numbers...>) {
  std::vector<std::pair<std::string, E>> list;
  const auto add = [&](std::string_view name, size_t number) {
    if (!name.empty()) list.emplace_back(name, static_cast<E>(number));
  };
  (add(enumerator_name<E, static_cast<E>(numbers)>(), numbers), ...);
  return list;
}
}  // namespace detail

// The words by which inputs name the values of an enum: its enumerators, counted from 0. Specialised where a word is no
// name of C++ ("1f1b", "all-reduce").
template <class E>
struct Choices {
  static std::vector<std::pair<std::string, E>> table() {
    return detail::enumerators<E>(std::make_index_sequence<16>());
  }
};

template <class E>
std::string choice_name(E value) {
  for (const auto& [name, entry] : Choices<E>::table())
    if (entry == value) return name;
  return "?";
}

template <class T>
class Description;  // core/codec.hpp
template <class T, class = void>
struct Codec;

// JSON Schema (draft 7) of an input kind, for editors.
std::string schema_text(const ObjectInfo& info);

}  // namespace tw
