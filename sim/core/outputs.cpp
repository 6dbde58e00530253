#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/output_block.hpp"
#include "core/text.hpp"

namespace tw::detail {

void put_number(OutputJson& out, double v, bool exact) {
  if (exact || std::isfinite(v)) out = v;
}
void put_integer(OutputJson& out, int64_t v) {
  out = v;
}
void put_unsigned(OutputJson& out, uint64_t v) {
  out = v;
}
void put_bool(OutputJson& out, bool v) {
  out = v;
}
void put_text(OutputJson& out, const std::string& v) {
  out = v;
}
void put_list(OutputJson& out, size_t size, const std::function<void(size_t, OutputJson&)>& element) {
  out = OutputJson::array_t(size);
  for (size_t i = 0; i < size; ++i) element(i, out[i]);
}
void begin_map(OutputJson& out) {
  out = OutputJson::object();
}
OutputJson& at_key(OutputJson& out, const std::string& key) {
  return out[key];
}
double get_number(const OutputJson& in) {
  return in.get<double>();
}
int64_t get_integer(const OutputJson& in) {
  return in.get<int64_t>();
}
uint64_t get_unsigned(const OutputJson& in) {
  return in.get<uint64_t>();
}
bool get_bool(const OutputJson& in) {
  return in.get<bool>();
}
std::string get_text(const OutputJson& in) {
  return in.get<std::string>();
}
bool is_null(const OutputJson& in) {
  return in.is_null();
}
size_t size_of(const OutputJson& in) {
  return in.size();
}
void put_block(OutputJson& out, const void* bytes, size_t size) {
  const auto* const from = static_cast<const uint8_t*>(bytes);
  out = OutputJson::binary(std::vector<uint8_t>(from, from + size));
}
size_t block_size(const OutputJson& in) {
  return in.get_binary().size();
}
void get_block(const OutputJson& in, void* bytes) {
  std::copy(in.get_binary().begin(), in.get_binary().end(), static_cast<uint8_t*>(bytes));
}
const OutputJson& element_at(const OutputJson& in, size_t i) {
  return in.at(i);
}
void each_key(const OutputJson& in, const std::function<void(const std::string&, const OutputJson&)>& take) {
  for (const auto& [key, value] : in.items()) take(key, value);
}

std::string pack_bytes(const ObjectOutputs& description, const void* object) {
  OutputJson packed;
  description.pack(object, packed);
  std::string bytes;
  OutputJson::to_cbor(packed, bytes);
  return bytes;
}

void unpack_bytes(const ObjectOutputs& description, void* object, const std::string& bytes) {
  try {
    description.unpack(object, OutputJson::from_cbor(bytes));
  } catch (const OutputJson::exception& e) {
    throw std::runtime_error(std::string("a result arrived garbled: ") + e.what());
  }
}

namespace {
const void* at_offset(const void* object, size_t offset) {
  return static_cast<const char*>(object) + offset;
}
// Counts are written as integers.
void make_whole(OutputJson& value) {
  if (!value.is_number_float()) return;
  const auto v = value.get<double>();
  if (v == std::floor(v) && std::abs(v) < 9e15) value = static_cast<int64_t>(v);
}
// What is left of a path below a key; none when the path is elsewhere.
std::optional<std::string_view> below(std::string_view path, const std::string& key) {
  if (key.empty()) return path;
  if (path.size() <= key.size() || path.substr(0, key.size()) != key || path[key.size()] != '.') return std::nullopt;
  return path.substr(key.size() + 1);
}
}  // namespace

OutputMember& ObjectOutputs::add(const std::string& key, size_t offset, const OutputOps& ops, const std::string& unit,
                                 const std::string& meaning) {
  OutputMember& m = members_.emplace_back();
  m.key_ = {key, unit, meaning};
  if (!key.empty()) m.tokens_ = split(key, '.');
  m.offset_ = offset;
  m.ops_ = &ops;
  return m;
}

void ObjectOutputs::write_member(const OutputMember& m, const void* object, OutputJson& out) const {
  if (m.present_ && !m.present_(object)) return;
  if (m.computed_)
    m.computed_(object, out);
  else
    m.ops_->write(at_offset(object, m.offset_), out, false);
  if (m.whole_) make_whole(out);
  if (m.null_if_empty_ && out.is_string() && out.get_ref<const std::string&>().empty()) out = nullptr;
}

void ObjectOutputs::write(const void* object, OutputJson& out) const {
  if (absent_ && absent_(object)) return;
  for (const OutputMember& m : members_) {
    if (!m.written_) continue;
    OutputJson* place = &out;
    for (const std::string& token : m.tokens_) place = &(*place)[token];
    write_member(m, object, *place);
  }
}

void ObjectOutputs::pack(const void* object, OutputJson& out) const {
  out = OutputJson::array();
  for (const OutputMember& m : members_)
    if (!m.computed_) m.ops_->write(at_offset(object, m.offset_), out.emplace_back(), true);
}

void ObjectOutputs::unpack(void* object, const OutputJson& in) const {
  size_t i = 0;
  for (const OutputMember& m : members_)
    if (!m.computed_) m.ops_->unpack(static_cast<char*>(object) + m.offset_, in.at(i++));
}

void ObjectOutputs::list_keys(const std::string& prefix, const std::string& unit, const std::string& note,
                              std::vector<OutputKey>& out) const {
  if (!absent_meaning_.empty()) out.push_back({prefix, "", absent_meaning_});
  for (const OutputMember& m : members_) {
    const ObjectOutputs* nested = m.ops_->object();
    if (!m.written_ && m.key_.meaning.empty()) continue;
    std::string path = m.key_.path.empty() ? prefix : prefix.empty() ? m.key_.path : prefix + "." + m.key_.path;
    if (m.ops_->shape == OutputShape::list) path += "[]";
    if (m.ops_->shape == OutputShape::map) path += ".*";
    std::string own_unit = m.key_.unit.empty() ? unit : m.key_.unit;
    std::string meaning = m.key_.meaning;
    if (!note.empty()) meaning += (meaning.empty() ? "" : "; ") + note;
    if (nested != nullptr)
      nested->list_keys(path, own_unit, meaning, out);
    else
      out.push_back({path, own_unit, meaning});
  }
}

std::vector<OutputKey> ObjectOutputs::keys() const {
  std::vector<OutputKey> list;
  list_keys("", "", "", list);
  return list;
}

std::optional<double> ObjectOutputs::number(const void* object, std::string_view path) const {
  if (absent_ && absent_(object)) return std::nullopt;
  for (const OutputMember& m : members_) {
    const auto rest = below(path, m.key_.path);
    if (rest && m.ops_->shape == OutputShape::object && !m.computed_) {
      const void* nested = m.ops_->struct_of(at_offset(object, m.offset_));
      if (const auto found = nested ? m.ops_->object()->number(nested, *rest) : std::nullopt) return found;
    } else if ((rest && m.ops_->shape == OutputShape::map) || path == m.key_.path) {
      OutputJson value;
      write_member(m, object, value);
      if (path != m.key_.path) value = value.value(std::string(*rest), OutputJson());
      return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, double>> ObjectOutputs::numbers(const void* object) const {
  std::vector<std::pair<std::string, double>> list;
  OutputJson all;
  write(object, all);
  for (const auto& [key, value] : all.items())
    if (value.is_number()) list.emplace_back(key, value.get<double>());
  return list;
}

}  // namespace tw::detail
