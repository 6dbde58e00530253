#include "core/document.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/files.hpp"
#include "core/pointer.hpp"
#include "core/strict_json.hpp"
#include "core/text.hpp"

namespace tw {

using nlohmann::json;

std::string pointer_token(const std::string& key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

Document::Document() : root_(std::make_unique<json>(json::object())) {}
Document::~Document() = default;
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;

Origin Document::origin(const std::string& pointer) const {
  std::string up = pointer;
  while (true) {
    const auto found = origins_.find(up);
    if (found != origins_.end()) return {found->second.file, found->second.pointer + pointer.substr(up.size())};
    if (up.empty()) return {"", pointer};
    up.resize(up.rfind('/'));
  }
}

bool Document::broken(const std::string& pointer) const {
  if (broken_.empty()) return false;
  for (std::string up = pointer;; up.resize(up.rfind('/'))) {
    if (broken_.count(up) != 0) return true;
    if (up.empty()) return false;
  }
}

std::string Document::canonical() const {
  return root_->dump();
}

namespace {

// What a file holds; null when faults were added. Files that many inputs draw in are parsed once, as long as they stay
// as they are: the points of a sweep, the candidates of a plan and the scenarios of a suite share them.
std::shared_ptr<const json> parsed_file(const std::string& path, Faults& faults) {
  struct Kept {
    struct stat seen {};
    std::shared_ptr<const json> tree;
  };
  static std::map<std::string, Kept> known;
  constexpr size_t most = 512;
  Kept now;
  const bool file = ::stat(path.c_str(), &now.seen) == 0 && S_ISREG(now.seen.st_mode);
  const auto same = [&](const struct stat& s) {
    return s.st_ino == now.seen.st_ino && s.st_dev == now.seen.st_dev && s.st_size == now.seen.st_size &&
           s.st_mtim.tv_sec == now.seen.st_mtim.tv_sec && s.st_mtim.tv_nsec == now.seen.st_mtim.tv_nsec;
  };
  if (const auto found = known.find(path); file && found != known.end() && same(found->second.seen))
    return found->second.tree;
  try {
    now.tree = parse_strict_json(read_file(path), path, faults);
  } catch (const InputError& error) {
    for (const Fault& fault : error.faults()) faults.add(fault);
  }
  if (!file || !now.tree) return now.tree;
  if (known.size() >= most) known.clear();
  return (known[path] = now).tree;
}

// The declared type of what a pointer names, or null: walks objects, lists and maps of the declaration.
const TypeInfo* element_of(const TypeInfo& type, const std::string& token) {
  if (type.kind == TypeInfo::Kind::object) {
    for (const KeyInfo& key : type.object->keys)
      if (key.name == token) return &key.type;
    return nullptr;
  }
  if (type.kind == TypeInfo::Kind::array || type.kind == TypeInfo::Kind::map) return type.element.get();
  return nullptr;
}

TypeInfo object_type(const ObjectInfo& info) {
  return {TypeInfo::Kind::object, nullptr, {}, &info, nullptr};
}

}  // namespace

// Draws files into a document.
class Composer {
 public:
  Composer(Document& document, Faults& faults) : document_(document), faults_(faults) {}

  static Document composed(const json* parsed, const std::string& name, const ObjectInfo& info,
                           const std::vector<std::string>& overrides, Faults& faults) {
    Document document;
    Composer composer(document, faults);
    composer.load_root(parsed, name, info);
    if (document.readable_)
      for (const std::string& o : overrides) composer.apply_override(o, info);
    return document;
  }

  void load_root(const json* parsed, const std::string& name, const ObjectInfo& info) {
    if (parsed == nullptr) {
      document_.readable_ = false;
      return fail();
    }
    *document_.root_ = *parsed;
    document_.origins_[""] = {name, ""};
    compose(*document_.root_, object_type(info), "", {name});
  }

  void apply_override(const std::string& text, const ObjectInfo& info) {
    const auto equals = text.find('=');
    const std::string pointer = text.substr(0, equals);
    if (equals == std::string::npos || pointer.empty() || pointer.front() != '/')
      return fault(
          {"--set", "", fmt::format("\"{}\" is not of the form /pointer=value", text), "example: --set /plan/tp=8"});
    const TypeInfo root = object_type(info);
    const TypeInfo* type = &root;
    json* node = document_.root_.get();
    json* parent = nullptr;
    std::vector<std::string> tokens = split(pointer.substr(1), '/');
    std::string walked;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string token = pointer_key(tokens[i]);
      const TypeInfo* next = element_of(*type, token);
      if (next == nullptr) {
        std::vector<std::string> known;
        if (type->kind == TypeInfo::Kind::object)
          for (const KeyInfo& key : type->object->keys) known.push_back(key.name);
        return fault({"--set", pointer, fmt::format("\"{}\" names nothing", token), suggest(token, known)});
      }
      parent = node;
      if (node->is_array()) {
        const bool digits =
            !token.empty() && token.size() < 9 && token.find_first_not_of("0123456789") == std::string::npos;
        const size_t index = digits ? std::stoul(token) : node->size();
        if (index >= node->size())
          return fault({"--set", pointer, fmt::format("\"{}\" is not an index of this list", token),
                        fmt::format("it has {} elements", node->size())});
        node = &(*node)[index];
      } else if (node->is_object() || node->is_null()) {
        node = &(*node)[token];
      } else {
        return fault({"--set", pointer, fmt::format("nothing can stand below {}", walked), ""});
      }
      walked += "/" + tokens[i];
      type = next;
    }
    forget_origins_below(pointer);
    document_.origins_[pointer] = {"--set", pointer};
    auto value = override_value(text.substr(equals + 1), *type, pointer);
    if (!value) return fail();
    if (value->is_null()) {
      if (parent->is_array())
        parent->erase(std::stoul(tokens.back()));
      else
        parent->erase(pointer_key(tokens.back()));
      return;
    }
    *node = std::move(*value);
    compose(*node, *type, pointer, {"--set"});
  }

 private:
  // A bare word or a quantity needs no quotes: --set /plan/schedule=gpipe, --set "/nic/bandwidth=50 GB/s". Null when a
  // fault was added.
  std::unique_ptr<json> override_value(const std::string& text, const TypeInfo& type, const std::string& pointer) {
    using Kind = TypeInfo::Kind;
    const bool literal = type.kind == Kind::text || type.kind == Kind::quantity || type.kind == Kind::choice;
    const char first = text.empty() ? ' ' : text.front();
    if (first == '"' || (!literal && (first == '{' || first == '[')))
      return parse_strict_json(text, "--set " + pointer, faults_);
    json parsed = literal && text != "null" ? json(text) : json::parse(text, nullptr, false);
    if (parsed.is_discarded()) parsed = json(text);
    try {
      (void)parsed.dump();
    } catch (const json::exception&) {
      faults_.add({"--set", pointer, "the value is not UTF-8 text", ""});
      return nullptr;
    }
    return std::make_unique<json>(std::move(parsed));
  }

  void fail() { document_.complete_ = false; }
  void fault(Fault f) {
    faults_.add(std::move(f));
    fail();
  }
  void forget_origins_below(const std::string& pointer) {
    auto it = document_.origins_.lower_bound(pointer);
    while (it != document_.origins_.end() && it->first.compare(0, pointer.size(), pointer) == 0) {
      const bool below = it->first.size() == pointer.size() || it->first[pointer.size()] == '/';
      it = below ? document_.origins_.erase(it) : std::next(it);
    }
  }

  // `chain` holds the files that led here, innermost last.
  void compose(json& node, const TypeInfo& type, const std::string& pointer, const std::vector<std::string>& chain) {
    if (type.kind == TypeInfo::Kind::object) {
      if (node.is_string()) {
        draw_in(node, node.get<std::string>(), type, pointer, document_.origin(pointer), chain);
        return;
      }
      if (node.is_object() && node.contains("use")) return compose_over(node, type, pointer, chain);
      if (!node.is_object()) return;
      const std::vector<std::string> here = chain_at(pointer, chain);
      for (const KeyInfo& key : type.object->keys) {
        const auto found = node.find(key.name);
        if (found != node.end() && (found->is_structured() || found->is_string()))
          compose(*found, key.type, pointer + "/" + key.name, here);
      }
    } else if (type.kind == TypeInfo::Kind::array && node.is_array()) {
      for (size_t i = 0; i < node.size(); ++i)
        compose(node[i], *type.element, pointer + "/" + std::to_string(i), chain);
    } else if (type.kind == TypeInfo::Kind::map && node.is_object()) {
      for (auto& [key, value] : node.items()) compose(value, *type.element, pointer + "/" + pointer_token(key), chain);
    }
  }

  // {"use": FILE, ...}: the file's values, and on top of them those that stand here.
  void compose_over(json& node, const TypeInfo& type, const std::string& pointer,
                    const std::vector<std::string>& chain) {
    const Origin place = document_.origin(pointer);
    const Origin named{place.file, place.pointer + "/use"};
    if (!node["use"].is_string()) {
      document_.broken_.insert(pointer);
      return fault({named.file, named.pointer, "\"use\" is not a file name", ""});
    }
    json over = std::move(node);
    const std::string file = over["use"].get<std::string>();
    over.erase("use");
    node = json::object();
    const auto drawn_before = std::exchange(drawn_, {});
    for (auto& [key, value] : over.items()) {
      const TypeInfo* next = element_of(type, key);
      if (next != nullptr) compose(value, *next, pointer + "/" + pointer_token(key), chain);
    }
    const auto replaced = std::exchange(drawn_, {});
    const auto origins = std::exchange(document_.origins_, {});
    const bool found = draw_in(node, file, type, pointer, named, chain);
    const auto drawn_origins = std::exchange(document_.origins_, origins);
    drawn_ = drawn_before;
    drawn_.insert(pointer);
    if (!found) return;
    forget_origins_below(pointer);
    for (const auto& [at, origin] : drawn_origins) document_.origins_[at] = origin;
    merge(node, over, pointer, place, origins, replaced);
  }

  std::vector<std::string> chain_at(const std::string& pointer, std::vector<std::string> chain) const {
    const std::string file = document_.origin(pointer).file;
    if (!chain.empty() && chain.back() != file) chain.push_back(file);
    return chain;
  }

  bool draw_in(json& node, const std::string& file, const TypeInfo& type, const std::string& pointer,
               const Origin& named, const std::vector<std::string>& chain) {
    drawn_.insert(pointer);
    const auto refuse = [&](const std::string& what, const std::string& allowed) {
      fault({named.file, named.pointer.empty() ? "/" : named.pointer, what, allowed});
      document_.broken_.insert(pointer);
      return false;
    };
    const auto path = find_input_file(file, chain.back());
    if (!path)
      return refuse(fmt::format("there is no file \"{}\" (for {})", file, with_article(type.object->name)),
                    suggest_file(file));
    if (std::find(chain.begin(), chain.end(), *path) != chain.end() || chain.size() > 16)
      return refuse(fmt::format("\"{}\" draws itself in", file), "");
    const auto parsed = parsed_file(*path, faults_);
    if (!parsed) {
      document_.broken_.insert(pointer);
      return fail(), false;
    }
    node = *parsed;
    forget_origins_below(pointer);
    document_.origins_[pointer] = {*path, ""};
    auto deeper = chain;
    deeper.push_back(*path);
    compose(node, type, pointer, deeper);
    return true;
  }

  // Puts `over` on top of `node`; lists and plain values are replaced, objects merged key by key.
  void merge(json& node, json& over, const std::string& pointer, const Origin& place,
             const std::map<std::string, Origin>& kept, const std::set<std::string>& replaced) {
    for (auto& [key, value] : over.items()) {
      const std::string at = pointer + "/" + pointer_token(key);
      if (value.is_null()) {  // takes the key away, as in RFC 7396
        forget_origins_below(at);
        node.erase(key);
        continue;
      }
      if (value.is_object() && node.contains(key) && node[key].is_object() && replaced.count(at) == 0) {
        const Origin deeper{place.file, place.pointer + "/" + pointer_token(key)};
        merge(node[key], value, at, deeper, kept, replaced);
      } else {
        forget_origins_below(at);
        document_.origins_[at] = {place.file, place.pointer + "/" + pointer_token(key)};
        for (auto it = kept.lower_bound(at); it != kept.end() && it->first.compare(0, at.size(), at) == 0; ++it)
          document_.origins_[it->first] = it->second;
        node[key] = std::move(value);
      }
    }
  }

  Document& document_;
  Faults& faults_;
  std::set<std::string> drawn_;  // pointers of what came from a file
};

Document Document::from_text(const std::string& text, const std::string& name, const ObjectInfo& info,
                             const std::vector<std::string>& overrides, Faults& faults) {
  return Composer::composed(parse_strict_json(text, name, faults).get(), name, info, overrides, faults);
}

Document Document::load(const std::string& file, const ObjectInfo& info, const std::vector<std::string>& overrides,
                        Faults& faults) {
  const auto path = find_input_file(file, "");
  if (!path)
    faults.add({file, "", fmt::format("there is no such file (for {})", with_article(info.name)), suggest_file(file)});
  return Composer::composed(path ? parsed_file(*path, faults).get() : nullptr, path.value_or(file), info, overrides,
                            faults);
}

namespace {
void explain_value(const Document& d, const json& node, const TypeInfo& type, const std::string& pointer,
                   std::string& out) {
  if (type.kind == TypeInfo::Kind::object && node.is_object()) {
    for (const KeyInfo& key : type.object->keys) {
      const auto found = node.find(key.name);
      const std::string at = pointer + "/" + pointer_token(key.name);
      if (found != node.end())
        explain_value(d, *found, key.type, at, out);
      else if (!key.default_text.empty() && applies(*type.object, key, node))
        out += fmt::format("{} = {}    (default)\n", at, key.default_text);
    }
  } else if (type.kind == TypeInfo::Kind::map && node.is_object()) {
    for (const auto& [key, value] : node.items())
      explain_value(d, value, *type.element, pointer + "/" + pointer_token(key), out);
  } else {
    std::string text = node.dump();
    if (text.size() > 100) text = fmt::format("{}... ({} elements)", text.substr(0, 60), node.size());
    const Origin o = d.origin(pointer);
    out += fmt::format("{} = {}    ({}{})\n", pointer, text, o.file, o.pointer == pointer ? "" : " " + o.pointer);
  }
}
}  // namespace

std::string Document::explain(const ObjectInfo& info) const {
  std::string out;
  explain_value(*this, *root_, object_type(info), "", out);
  return out;
}

}  // namespace tw
