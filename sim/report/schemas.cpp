#include "report/schemas.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/codec.hpp"
#include "hall/hall_input.hpp"
#include "run/benchmark.hpp"
#include "study/scenario.hpp"
#include "study/study_values.hpp"
#include "study/sweep.hpp"
#include "study/validate.hpp"

namespace tw::report {
namespace {

void collect(const ObjectInfo& info, std::map<std::string, const ObjectInfo*>& kinds) {
  const auto [at, fresh] = kinds.emplace(info.name, &info);
  if (!fresh) {
    if (at->second != &info) throw std::logic_error("two input kinds are called \"" + info.name + "\"");
    return;
  }
  for (const KeyInfo& key : info.keys) {
    const TypeInfo* type = &key.type;
    while (type->element) type = type->element.get();
    if (type->object != nullptr) collect(*type->object, kinds);
  }
}

}  // namespace

std::map<std::string, const ObjectInfo*> input_kinds() {
  std::map<std::string, const ObjectInfo*> kinds;
  collect(description<Scenario>().info(), kinds);
  collect(description<Benchmark>().info(), kinds);
  collect(description<Suite>().info(), kinds);
  collect(description<KnownGaps>().info(), kinds);
  collect(description<Study>().info(), kinds);
  collect(description<StudyRange>().info(), kinds);
  collect(description<hall::HallInput>().info(), kinds);
  return kinds;
}

std::map<std::string, std::string> schemas() {
  std::map<std::string, std::string> texts;
  for (const auto& [name, info] : input_kinds()) texts[name] = schema_text(*info);
  return texts;
}

std::string schema_file_name(const std::string& kind) {
  std::string name = kind;
  std::replace(name.begin(), name.end(), '_', '-');
  return name + ".json";
}

}  // namespace tw::report
