#include "core/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/document.hpp"
#include "core/text.hpp"

namespace tw {

using nlohmann::json;

namespace {

constexpr size_t kMaximumDepth = 64;

std::string line_and_column(const std::string& text, size_t byte) {
  const size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(end), '\n');
  const size_t start = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const size_t column = end - (start == std::string::npos ? 0 : start + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

// Builds nothing: looks for what the library accepts silently.
class StrictReader : public nlohmann::json_sax<json> {
 public:
  StrictReader(const std::string& text, const std::string& name, Faults& faults)
      : text_(text), name_(name), faults_(faults) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override { return open(false); }
  bool start_array(size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& k) override {
    levels_.back().token = pointer_token(k);
    if (!levels_.back().keys.insert(k).second) {
      faults_.add({name_, pointer(), "duplicate key", "each key may stand once in an object"});
      good_ = false;
    }
    return true;
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& e) override {
    std::string why = e.what();
    const auto at = why.find("syntax error");
    const auto tag = why.find("] ");
    if (at != std::string::npos)
      why = why.substr(at);
    else if (tag != std::string::npos)
      why = why.substr(tag + 2);  // "[json.exception.out_of_range.406] number overflow ..."
    why = printable(why);
    if (text_.find_first_not_of(" \t\r\n") == std::string::npos) why = "the file is empty";
    faults_.add({name_, line_and_column(text_, byte), why, ""});
    return good_ = false;
  }
  bool good() const { return good_; }

 private:
  struct Level {
    std::set<std::string> keys;
    std::string token;
    size_t index = 0;
    bool array = false;
  };
  bool value() {
    if (!levels_.empty() && levels_.back().array) ++levels_.back().index;
    return true;
  }
  bool open(bool array) {
    if (levels_.size() >= kMaximumDepth) {
      faults_.add({name_, "/", fmt::format("nested deeper than {} levels", kMaximumDepth), ""});
      return good_ = false;
    }
    levels_.push_back({{}, "", 0, array});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return value();
  }
  std::string pointer() const {
    std::string p;
    for (const Level& level : levels_) p += "/" + (level.array ? std::to_string(level.index) : level.token);
    return p;
  }
  const std::string& text_;
  const std::string& name_;
  Faults& faults_;
  std::vector<Level> levels_;
  bool good_ = true;
};

}  // namespace

std::unique_ptr<json> parse_strict_json(const std::string& text, const std::string& name, Faults& faults) {
  StrictReader reader(text, name, faults);
  json::sax_parse(text, &reader, json::input_format_t::json, true, true);
  if (!reader.good()) return nullptr;
  return std::make_unique<json>(json::parse(text, nullptr, true, true));
}

}  // namespace tw
