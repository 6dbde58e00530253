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
  std::vector<std::string> choices;          // choice
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

// Specialise for each enum that inputs may hold: static std::vector<std::pair<std::string, E>> table();
template <class E>
struct Choices;

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
