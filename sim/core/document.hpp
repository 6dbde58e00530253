// JSON inputs: comments allowed, duplicate keys and deep nesting refused, other files drawn in, and for every value the
// file it came from, so that an error names the place where the user has to look.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/error.hpp"

namespace tw {

// Where a value stands: a file and the JSON pointer inside it; or "--set" and the pointer it was given.
struct Origin {
  std::string file;
  std::string pointer;
};

// A key as one JSON pointer token (~ and / escaped).
std::string pointer_token(const std::string& key);

// A composed input. Wherever an object of a described kind may stand, a file name may stand instead, or an object whose
// key "use" names a file whose values it overrides: objects key by key, lists, plain values and whatever comes from a
// file of its own as a whole; null takes a key away. Files are looked for beside the naming file, then in the data
// folders (data_folders()).
class Document {
 public:
  Document();
  ~Document();
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;

  // Reads and composes `file` as an object of kind `info`, then applies the overrides "/pointer=value" in order; a
  // value null takes a key away. Faults are added to `faults`; the document is then incomplete and only good for
  // finding more.
  static Document load(const std::string& file, const ObjectInfo& info, const std::vector<std::string>& overrides,
                       Faults& faults);
  static Document from_text(const std::string& text, const std::string& name, const ObjectInfo& info,
                            const std::vector<std::string>& overrides, Faults& faults);

  const nlohmann::json& root() const { return *root_; }
  Origin origin(const std::string& pointer) const;
  bool complete() const { return complete_; }     // no fault so far
  bool readable() const { return readable_; }     // the file itself could be parsed; reading finds further faults
  bool broken(const std::string& pointer) const;  // it, or what it stands in, could not be drawn in

  // Canonical text of the effective input: sorted keys, no comments. Its hash identifies the inputs.
  std::string canonical() const;

  // One line a value: pointer, value, origin.
  std::string explain(const ObjectInfo& info) const;

 private:
  std::unique_ptr<nlohmann::json> root_;
  std::map<std::string, Origin> origins_;  // pointer -> origin of it and of all below it that have none of their own
  std::set<std::string> broken_;
  bool complete_ = true;
  bool readable_ = true;
  friend class Composer;
};

// Reads T out of a document. Faults are added; the value is meaningful only if none were.
template <class T>
T read(const Document& document, Faults& faults) {
  T value{};
  if (document.readable()) Codec<T>::read(value, document.root(), ReadContext{&document, "", &faults, {}});
  return value;
}

// Loads a file of kind T on its own; throws InputError with all faults.
template <class T>
T load(const std::string& file) {
  Faults faults;
  const Document document = Document::load(file, description<T>().info(), {}, faults);
  T value = read<T>(document, faults);
  faults.throw_if_any();
  return value;
}

}  // namespace tw
