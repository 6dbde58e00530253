#include "core/pointer.hpp"

#include "core/text.hpp"

namespace tw {

std::string pointer_key(std::string token) {
  for (size_t at = 0; (at = token.find('~', at)) != std::string::npos; ++at) {
    if (token.compare(at, 2, "~1") == 0)
      token.replace(at, 2, "/");
    else if (token.compare(at, 2, "~0") == 0)
      token.replace(at, 2, "~");
  }
  return token;
}

const TypeInfo* type_at(const ObjectInfo& info, const std::string& pointer) {
  if (pointer.empty() || pointer.front() != '/') return nullptr;
  const ObjectInfo* object = &info;
  const TypeInfo* type = nullptr;
  for (const std::string& token : split(pointer.substr(1), '/')) {
    const TypeInfo* next = nullptr;
    if (object != nullptr) {
      const std::string key = pointer_key(token);
      for (const KeyInfo& k : object->keys)
        if (k.name == key) next = &k.type;
    } else if (type != nullptr && (type->kind == TypeInfo::Kind::array || type->kind == TypeInfo::Kind::map)) {
      next = type->element.get();
    }
    if (next == nullptr) return nullptr;
    type = next;
    object = type->kind == TypeInfo::Kind::object ? type->object : nullptr;
  }
  return type;
}

}  // namespace tw
