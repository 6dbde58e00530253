// How described structs are read: included where a describe() stands or a document is read, not in headers of inputs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/describe.hpp"

namespace tw {

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
std::string json_text(bool v);
std::string json_text(long long v);
std::string json_text(double v);
std::string json_text(const std::string& v);

// A C++ type as an input: one table of functions for each type, whatever structs hold it.
struct TypeOps {
  TypeInfo (*type)();
  void (*read)(void* out, const nlohmann::json& j, const ReadContext& c);
  std::string (*default_text)(const void* value);
};
template <class M>
const TypeOps& type_ops() {
  static const TypeOps ops{
      [] { return Codec<M>::type(); },
      [](void* out, const nlohmann::json& j, const ReadContext& c) { Codec<M>::read(*static_cast<M*>(out), j, c); },
      [](const void* value) { return Codec<M>::default_text(*static_cast<const M*>(value)); }};
  return ops;
}

// The declared keys of a struct; a member is known by its distance from the struct's beginning.
class ObjectDescription {
 public:
  const ObjectInfo& info() const { return info_; }
  void read(void* object, const nlohmann::json& j, const ReadContext& c) const;

 protected:
  void add(const char* key, size_t offset, const TypeOps& ops, const char* meaning, Range range,
           const void* default_value);
  void add_tag(const char* key, size_t offset, const std::string& value, std::vector<std::string> alternatives,
               const char* meaning);
  void add_part(const ObjectDescription& part, size_t offset);
  ObjectInfo info_;
  std::vector<std::string> only_;

 private:
  struct Member {
    size_t offset;
    const TypeOps* ops;
  };
  std::vector<Member> members_;
};
}  // namespace detail

template <class T>
const Description<T>& description();

// How a C++ type is read from JSON and described. default_text() is empty where a default cannot be shown.
template <class T, class>
struct Codec {  // a described struct
  static TypeInfo type() {
    TypeInfo t;
    t.kind = TypeInfo::Kind::object;
    t.object = &description<T>().info();
    return t;
  }
  static void read(T& out, const nlohmann::json& j, const ReadContext& c) { description<T>().read(&out, j, c); }
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
class Description : public detail::ObjectDescription {
 public:
  void object(std::string name, std::string meaning) {
    info_.name = std::move(name);
    info_.meaning = std::move(meaning);
  }
  template <class M>
  void required(const char* key, M T::*member, const char* meaning, Range range = {}) {
    add(key, offset(member), detail::type_ops<M>(), meaning, range, nullptr);
  }
  template <class M>
  void optional(const char* key, M T::*member, const char* meaning, Range range = {}) {
    add(key, offset(member), detail::type_ops<M>(), meaning, range, &(defaults_.*member));
  }
  // A member struct whose keys stand beside this one's own.
  template <class M>
  void part(M T::*member) {
    add_part(description<M>(), offset(member));
  }
  // A tagged union: `tag` names one of the alternatives. Keys declared after when() belong to those that it names,
  // after when({}) to all; a key may be declared for one alternative after another. Keys of another alternative are
  // refused.
  void variant(const char* tag, std::string T::*member, std::vector<std::string> alternatives, const char* meaning) {
    add_tag(tag, offset(member), defaults_.*member, std::move(alternatives), meaning);
  }
  void when(std::vector<std::string> alternatives) { only_ = std::move(alternatives); }

 private:
  template <class M>
  size_t offset(M T::*member) const {
    return static_cast<size_t>(reinterpret_cast<const char*>(&(defaults_.*member)) -
                               reinterpret_cast<const char*>(&defaults_));
  }
  T defaults_{};
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

}  // namespace tw
