// Every output is described once, beside the code that computes it, as inputs are (core/codec.hpp):
//
//   void StepResult::describe(Outputs<StepResult>& d) {
//     d.output("time_s", &StepResult::time_s, "s", "one training step, mean");
//     d.computed("ratio", [](const StepResult& r) { return r.a / r.b; }, "1", "a over b");
//   }
//
// JSON, the table of keys, the reference page, columns, quantities that measurements name and the bytes that cross a
// pipe come from it. A key with dots stands inside objects: "node_dc_w.mean".
#pragma once

#include <array>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/describe.hpp"

namespace tw {

// `path` as in the columns of sweep.csv: "step.time_s". A list element is "[]", any key of a map "*":
// "power.per_node[].mean_w", "memory.parts_bytes.*". `unit` is empty for texts and "1" for ratios; `meaning` says after
// "null" when there is no value.
struct OutputKey {
  std::string path, unit, meaning;
};

template <class T>
class Outputs;
template <class T, class = void>
struct OutputCodec;

namespace detail {

using OutputJson = nlohmann::ordered_json;  // keys in the order of the contract
class ObjectOutputs;

enum class OutputShape { value, object, list, map };

// A C++ type as an output: one table of functions for each type, whatever structs hold it.
struct OutputOps {
  OutputShape shape;
  const ObjectOutputs* (*object)();             // of a struct or of a list's elements, else null
  const void* (*struct_of)(const void* value);  // the struct itself; null where an optional one is absent
  // For readers, with null for what is no number; exact: for unpack(), nothing is lost.
  void (*write)(const void* value, OutputJson& out, bool exact);
  void (*unpack)(void* value, const OutputJson& in);
};

// One described output; the calls say more about it.
class OutputMember {
 public:
  OutputMember& whole() { return whole_ = true, *this; }                  // a count: an integer wherever it is one
  OutputMember& null_if_empty() { return null_if_empty_ = true, *this; }  // of texts

 private:
  friend class ObjectOutputs;
  OutputKey key_;
  std::vector<std::string> tokens_;  // of the key
  size_t offset_ = 0;
  const OutputOps* ops_ = nullptr;
  std::function<void(const void* object, OutputJson& out)> computed_;
  std::function<bool(const void* object)> present_;
  bool whole_ = false, null_if_empty_ = false, written_ = true;
};

class ObjectOutputs {
 public:
  void write(const void* object, OutputJson& out) const;
  void pack(const void* object, OutputJson& out) const;
  void unpack(void* object, const OutputJson& in) const;
  // All keys, in the order in which they are written. A unit that a nested struct leaves open is that of its member.
  std::vector<OutputKey> keys() const;
  // The number at a path ("step.time_s"), whether it is written or only carried.
  std::optional<double> number(const void* object, std::string_view path) const;
  // The numbers of the struct itself, by key.
  std::vector<std::pair<std::string, double>> numbers(const void* object) const;

 protected:
  OutputMember& add(const std::string& key, size_t offset, const OutputOps& ops, const std::string& unit,
                    const std::string& meaning);
  std::function<bool(const void*)> absent_;
  std::string absent_meaning_;
  static void hide(OutputMember& m) { m.written_ = false; }
  static void compute(OutputMember& m, std::function<void(const void*, OutputJson&)> f) { m.computed_ = std::move(f); }
  static void when(OutputMember& m, std::function<bool(const void*)> f) { m.present_ = std::move(f); }

 private:
  void write_member(const OutputMember& m, const void* object, OutputJson& out) const;
  void list_keys(const std::string& prefix, const std::string& unit, const std::string& note,
                 std::vector<OutputKey>& out) const;
  std::vector<OutputMember> members_;
};

// Access to JSON from templates, so that this header needs only json_fwd.hpp.
void put_number(OutputJson& out, double v, bool exact);
void put_integer(OutputJson& out, int64_t v);
void put_unsigned(OutputJson& out, uint64_t v);
void put_bool(OutputJson& out, bool v);
void put_text(OutputJson& out, const std::string& v);
void put_list(OutputJson& out, size_t size, const std::function<void(size_t, OutputJson&)>& element);
void begin_map(OutputJson& out);
OutputJson& at_key(OutputJson& out, const std::string& key);
double get_number(const OutputJson& in);
int64_t get_integer(const OutputJson& in);
uint64_t get_unsigned(const OutputJson& in);
bool get_bool(const OutputJson& in);
std::string get_text(const OutputJson& in);
bool is_null(const OutputJson& in);
size_t size_of(const OutputJson& in);
const OutputJson& element_at(const OutputJson& in, size_t i);
void each_key(const OutputJson& in, const std::function<void(const std::string&, const OutputJson&)>& take);

std::string pack_bytes(const ObjectOutputs& description, const void* object);
void unpack_bytes(const ObjectOutputs& description, void* object, const std::string& bytes);

template <class M>
const OutputOps& output_ops() {
  using C = OutputCodec<M>;
  static const OutputOps ops{
      C::shape, [] { return C::object(); }, [](const void* v) { return C::struct_of(*static_cast<const M*>(v)); },
      [](const void* v, OutputJson& out, bool exact) { C::write(*static_cast<const M*>(v), out, exact); },
      [](void* v, const OutputJson& in) { C::unpack(*static_cast<M*>(v), in); }};
  return ops;
}

struct NoStruct {
  template <class T>
  static const void* struct_of(const T&) {
    return nullptr;
  }
};
struct ValueCodec : NoStruct {
  static constexpr OutputShape shape = OutputShape::value;
  static const ObjectOutputs* object() { return nullptr; }
};
}  // namespace detail

template <class T>
const Outputs<T>& outputs();

template <class T, class>
struct OutputCodec {  // a described struct
  static constexpr auto shape = detail::OutputShape::object;
  static const detail::ObjectOutputs* object() { return &outputs<T>(); }
  static const void* struct_of(const T& v) { return &v; }
  static void write(const T& v, detail::OutputJson& out, bool exact) {
    exact ? outputs<T>().pack(&v, out) : outputs<T>().write(&v, out);
  }
  static void unpack(T& v, const detail::OutputJson& in) { outputs<T>().unpack(&v, in); }
};

template <>
struct OutputCodec<double> : detail::ValueCodec {
  static void write(double v, detail::OutputJson& out, bool exact) { detail::put_number(out, v, exact); }
  static void unpack(double& v, const detail::OutputJson& in) { v = detail::get_number(in); }
};

template <>
struct OutputCodec<bool> : detail::ValueCodec {
  static void write(bool v, detail::OutputJson& out, bool) { detail::put_bool(out, v); }
  static void unpack(bool& v, const detail::OutputJson& in) { v = detail::get_bool(in); }
};

template <class T>
struct OutputCodec<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> : detail::ValueCodec {
  static void write(T v, detail::OutputJson& out, bool) {
    if constexpr (std::is_unsigned_v<T>)
      detail::put_unsigned(out, v);
    else
      detail::put_integer(out, v);
  }
  static void unpack(T& v, const detail::OutputJson& in) {
    if constexpr (std::is_unsigned_v<T>)
      v = static_cast<T>(detail::get_unsigned(in));
    else
      v = static_cast<T>(detail::get_integer(in));
  }
};

template <>
struct OutputCodec<std::string> : detail::ValueCodec {
  static void write(const std::string& v, detail::OutputJson& out, bool) { detail::put_text(out, v); }
  static void unpack(std::string& v, const detail::OutputJson& in) { v = detail::get_text(in); }
};

template <class T>
struct OutputCodec<T, std::enable_if_t<std::is_enum_v<T>>> : detail::ValueCodec {  // written by its name in inputs
  static void write(T v, detail::OutputJson& out, bool exact) {
    exact ? detail::put_integer(out, static_cast<int64_t>(v)) : detail::put_text(out, choice_name(v));
  }
  static void unpack(T& v, const detail::OutputJson& in) { v = static_cast<T>(detail::get_integer(in)); }
};

template <class T>
struct OutputCodec<T, std::void_t<decltype(DimensionOf<T>::info)>> : detail::ValueCodec {  // in SI
  static void write(const T& v, detail::OutputJson& out, bool exact) { detail::put_number(out, v.value(), exact); }
  static void unpack(T& v, const detail::OutputJson& in) { v = T::from_value(detail::get_number(in)); }
};

template <class T>
struct OutputCodec<std::optional<T>> {  // null where absent
  static constexpr auto shape = OutputCodec<T>::shape;
  static const detail::ObjectOutputs* object() { return OutputCodec<T>::object(); }
  static const void* struct_of(const std::optional<T>& v) { return v ? OutputCodec<T>::struct_of(*v) : nullptr; }
  static void write(const std::optional<T>& v, detail::OutputJson& out, bool exact) {
    if (v) OutputCodec<T>::write(*v, out, exact);
  }
  static void unpack(std::optional<T>& v, const detail::OutputJson& in) {
    if (!detail::is_null(in)) OutputCodec<T>::unpack(v.emplace(), in);
  }
};

template <class T, class List>
struct OutputListCodec : detail::NoStruct {
  static constexpr auto shape = detail::OutputShape::list;
  static const detail::ObjectOutputs* object() { return OutputCodec<T>::object(); }
  static void write(const List& v, detail::OutputJson& out, bool exact) {
    detail::put_list(out, v.size(), [&](size_t i, detail::OutputJson& e) { OutputCodec<T>::write(v[i], e, exact); });
  }
  static void unpack(List& v, const detail::OutputJson& in) {
    if constexpr (requires { v.resize(0); }) v.resize(detail::size_of(in));
    for (size_t i = 0; i < v.size(); ++i) OutputCodec<T>::unpack(v[i], detail::element_at(in, i));
  }
};
template <class T>
struct OutputCodec<std::vector<T>> : OutputListCodec<T, std::vector<T>> {};
template <class T, size_t N>
struct OutputCodec<std::array<T, N>> : OutputListCodec<T, std::array<T, N>> {};

template <class T>
struct OutputCodec<std::map<std::string, T>> : detail::NoStruct {
  static constexpr auto shape = detail::OutputShape::map;
  static const detail::ObjectOutputs* object() { return OutputCodec<T>::object(); }
  static void write(const std::map<std::string, T>& v, detail::OutputJson& out, bool exact) {
    detail::begin_map(out);
    for (const auto& [key, value] : v) OutputCodec<T>::write(value, detail::at_key(out, key), exact);
  }
  static void unpack(std::map<std::string, T>& v, const detail::OutputJson& in) {
    v.clear();
    detail::each_key(in,
                     [&](const std::string& key, const detail::OutputJson& e) { OutputCodec<T>::unpack(v[key], e); });
  }
};

// The described outputs of T. Built once by T::describe().
template <class T>
class Outputs : public detail::ObjectOutputs {
 public:
  // A member. An empty key puts the keys of a struct among those of this one; the meaning of a nested struct is said
  // after that of each of its keys.
  template <class M>
  detail::OutputMember& output(const std::string& key, M T::*member, const std::string& unit = "",
                               const std::string& meaning = "") {
    return add(key, offset(member), detail::output_ops<M>(), unit, meaning);
  }
  // Null wherever `present` says so.
  template <class M>
  detail::OutputMember& output_if(bool (*present)(const T&), const std::string& key, M T::*member,
                                  const std::string& unit, const std::string& meaning) {
    detail::OutputMember& m = output(key, member, unit, meaning);
    when(m, [present](const void* object) { return present(*static_cast<const T*>(object)); });
    return m;
  }
  // What follows from the members.
  template <class F>
  detail::OutputMember& computed(const std::string& key, F f, const std::string& unit = "",
                                 const std::string& meaning = "") {
    using M = std::decay_t<std::invoke_result_t<F, const T&>>;
    detail::OutputMember& m = add(key, 0, detail::output_ops<M>(), unit, meaning);
    compute(m, [f](const void* object, detail::OutputJson& out) {
      const M value = f(*static_cast<const T*>(object));
      OutputCodec<M>::write(value, out, false);
    });
    return m;
  }
  // Members that cross a pipe and can be asked for by their path, but are not written; with a meaning, for the key
  // table alone.
  template <class M>
  void carried(const std::string& key, M T::*member, const std::string& unit = "", const std::string& meaning = "") {
    hide(output(key, member, unit, meaning));
  }
  // The whole struct is null where this member has no value.
  template <class M>
  void null_without(std::optional<M> T::*member, const std::string& meaning) {
    absent_ = [member](const void* object) { return !(static_cast<const T*>(object)->*member).has_value(); };
    absent_meaning_ = meaning;
  }
  // The key table's line for a struct that its owner may lack.
  void null_meaning(const std::string& meaning) { absent_meaning_ = meaning; }

 private:
  template <class M>
  size_t offset(M T::*member) const {
    return static_cast<size_t>(reinterpret_cast<const char*>(&(defaults_.*member)) -
                               reinterpret_cast<const char*>(&defaults_));
  }
  T defaults_{};
};

template <class T>
const Outputs<T>& outputs() {
  static const Outputs<T> built = [] {
    Outputs<T> d;
    T::describe(d);
    return d;
  }();
  return built;
}

// A described struct, or a number that may be absent, as JSON: for files that include nlohmann/json.hpp.
template <class T, class Json = nlohmann::ordered_json>
Json described_json(const T& value) {
  Json out;
  OutputCodec<T>::write(value, out, false);
  return out;
}

// A described struct as bytes (CBOR) and back, for a pipe between two processes of this program.
template <class T>
std::string packed(const T& value) {
  return detail::pack_bytes(outputs<T>(), &value);
}
template <class T>
T unpacked(const std::string& bytes) {
  T value{};
  detail::unpack_bytes(outputs<T>(), &value, bytes);
  return value;
}

}  // namespace tw
