// Every input is described once, where its struct stands:
//
//   struct Switch {
//     int ports = 0;
//     Power nameplate;
//     static void describe(Description<Switch>& d) {
//       d.object("switch", "A network switch.");
//       d.required("ports", &Switch::ports, "ports of one switch", at_least(1));
//       d.optional("nameplate", &Switch::nameplate, "nameplate power");   // default: the member's initializer
//     }
//   };
//
// The reader, its error messages, schemas/*.json and the reference pages all come from that declaration.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <type_traits>
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
};

struct ObjectInfo {
  std::string name;
  std::string meaning;
  std::vector<KeyInfo> keys;
};

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
// Type-erased access to nlohmann::json, so that input headers need only json_fwd.hpp.
bool read_bool(bool& out, const nlohmann::json& j, const ReadContext& c);
bool read_integer(long long& out, const nlohmann::json& j, const ReadContext& c, long long low, long long high);
bool read_number(double& out, const nlohmann::json& j, const ReadContext& c);
bool read_text(std::string& out, const nlohmann::json& j, const ReadContext& c);
bool read_quantity(double& out, const nlohmann::json& j, const ReadContext& c, const DimensionInfo& dimension);
bool read_choice(size_t& out, const nlohmann::json& j, const ReadContext& c, const std::vector<std::string>& names);
void read_array(const nlohmann::json& j, const ReadContext& c,
                const std::function<void(const nlohmann::json&, const ReadContext&)>& element);
void read_map(const nlohmann::json& j, const ReadContext& c,
              const std::function<void(const std::string&, const nlohmann::json&, const ReadContext&)>& element);
using KeyReader = std::function<void(void* object, const nlohmann::json& j, const ReadContext& c)>;
void read_object(void* object, const ObjectInfo& info, const std::vector<KeyReader>& readers, const nlohmann::json& j,
                 const ReadContext& c);
std::string json_text(bool v);
std::string json_text(long long v);
std::string json_text(double v);
std::string json_text(const std::string& v);
}  // namespace detail

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
class Description;
template <class T>
const Description<T>& description();

// How a C++ type is read from JSON and described. default_text() is empty where a default cannot be shown.
template <class T, class = void>
struct Codec {  // a described struct
  static TypeInfo type() {
    TypeInfo t;
    t.kind = TypeInfo::Kind::object;
    t.object = &description<T>().info();
    return t;
  }
  static void read(T& out, const nlohmann::json& j, const ReadContext& c) { description<T>().read(out, j, c); }
  static std::string default_text(const T&) { return ""; }
};

template <>
struct Codec<bool> {
  static TypeInfo type() { return {TypeInfo::Kind::boolean, nullptr, {}, nullptr, nullptr}; }
  static void read(bool& out, const nlohmann::json& j, const ReadContext& c) { detail::read_bool(out, j, c); }
  static std::string default_text(bool v) { return detail::json_text(v); }
};

template <class T>
struct Codec<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static TypeInfo type() { return {TypeInfo::Kind::integer, nullptr, {}, nullptr, nullptr}; }
  static void read(T& out, const nlohmann::json& j, const ReadContext& c) {
    long long v = 0;
    constexpr auto high = static_cast<long long>(
        sizeof(T) >= 8 ? 9007199254740992 : static_cast<long long>(std::numeric_limits<T>::max()));
    if (detail::read_integer(v, j, c, -high, high)) out = static_cast<T>(v);
  }
  static std::string default_text(T v) { return detail::json_text(static_cast<long long>(v)); }
};

template <>
struct Codec<double> {
  static TypeInfo type() { return {TypeInfo::Kind::number, nullptr, {}, nullptr, nullptr}; }
  static void read(double& out, const nlohmann::json& j, const ReadContext& c) { detail::read_number(out, j, c); }
  static std::string default_text(double v) { return detail::json_text(v); }
};

template <>
struct Codec<std::string> {
  static TypeInfo type() { return {TypeInfo::Kind::text, nullptr, {}, nullptr, nullptr}; }
  static void read(std::string& out, const nlohmann::json& j, const ReadContext& c) { detail::read_text(out, j, c); }
  static std::string default_text(const std::string& v) { return detail::json_text(v); }
};

template <class T>
struct Codec<T, std::void_t<decltype(DimensionOf<T>::info)>> {
  static TypeInfo type() { return {TypeInfo::Kind::quantity, &DimensionOf<T>::info, {}, nullptr, nullptr}; }
  static void read(T& out, const nlohmann::json& j, const ReadContext& c) {
    double v = 0;
    if (detail::read_quantity(v, j, c, DimensionOf<T>::info)) out = T::from_value(v);
  }
  static std::string default_text(const T& v) { return detail::json_text(to_text(v)); }
};

template <class T>
struct Codec<T, std::enable_if_t<std::is_enum_v<T>>> {
  static std::vector<std::string> names() {
    std::vector<std::string> list;
    for (const auto& entry : Choices<T>::table()) list.push_back(entry.first);
    return list;
  }
  static TypeInfo type() { return {TypeInfo::Kind::choice, nullptr, names(), nullptr, nullptr}; }
  static void read(T& out, const nlohmann::json& j, const ReadContext& c) {
    size_t index = 0;
    if (detail::read_choice(index, j, c, names())) out = Choices<T>::table()[index].second;
  }
  static std::string default_text(const T& v) { return detail::json_text(choice_name(v)); }
};

template <class T>
struct Codec<std::optional<T>> {
  static TypeInfo type() { return Codec<T>::type(); }
  static void read(std::optional<T>& out, const nlohmann::json& j, const ReadContext& c) {
    out.emplace();
    Codec<T>::read(*out, j, c);
  }
  static std::string default_text(const std::optional<T>& v) { return v ? Codec<T>::default_text(*v) : ""; }
};

template <class T>
struct Codec<std::vector<T>> {
  static TypeInfo type() {
    return {TypeInfo::Kind::array, nullptr, {}, nullptr, std::make_shared<TypeInfo>(Codec<T>::type())};
  }
  static void read(std::vector<T>& out, const nlohmann::json& j, const ReadContext& c) {
    out.clear();
    detail::read_array(j, c, [&](const nlohmann::json& e, const ReadContext& at) {
      T value{};
      Codec<T>::read(value, e, at);
      out.push_back(std::move(value));
    });
  }
  static std::string default_text(const std::vector<T>& v) { return v.empty() ? "[]" : ""; }
};

template <class T>
struct Codec<std::map<std::string, T>> {
  static TypeInfo type() {
    return {TypeInfo::Kind::map, nullptr, {}, nullptr, std::make_shared<TypeInfo>(Codec<T>::type())};
  }
  static void read(std::map<std::string, T>& out, const nlohmann::json& j, const ReadContext& c) {
    out.clear();
    detail::read_map(j, c, [&](const std::string& key, const nlohmann::json& e, const ReadContext& at) {
      Codec<T>::read(out[key], e, at);
    });
  }
  static std::string default_text(const std::map<std::string, T>& v) { return v.empty() ? "{}" : ""; }
};

// The declared keys of T. Built once by T::describe().
template <class T>
class Description {
 public:
  void object(std::string name, std::string meaning) {
    info_.name = std::move(name);
    info_.meaning = std::move(meaning);
  }
  template <class M>
  void required(const char* key, M T::*member, const char* meaning, Range range = {}) {
    add(key, member, meaning, range, true);
  }
  template <class M>
  void optional(const char* key, M T::*member, const char* meaning, Range range = {}) {
    add(key, member, meaning, range, false);
  }
  const ObjectInfo& info() const { return info_; }
  void read(T& out, const nlohmann::json& j, const ReadContext& c) const {
    detail::read_object(&out, info_, readers_, j, c);
  }

 private:
  template <class M>
  void add(const char* key, M T::*member, const char* meaning, Range range, bool required) {
    const std::string shown = required ? "" : Codec<M>::default_text(defaults_.*member);
    info_.keys.push_back({key, Codec<M>::type(), required, shown, range, meaning});
    readers_.push_back([member, range](void* object, const nlohmann::json& j, const ReadContext& c) {
      ReadContext here = c;
      here.range = range;
      Codec<M>::read(static_cast<T*>(object)->*member, j, here);
    });
  }
  T defaults_{};
  ObjectInfo info_;
  std::vector<detail::KeyReader> readers_;
};

template <class T>
const Description<T>& description() {
  static const Description<T> built = [] {
    Description<T> d;
    T::describe(d);
    return d;
  }();
  return built;
}

// JSON Schema (draft 7) of an input kind, for editors.
std::string schema_text(const ObjectInfo& info);

}  // namespace tw
