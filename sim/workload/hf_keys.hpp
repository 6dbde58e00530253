// Keys of Hugging Face configurations, and the lines of a network file that are made of them (hf_config.cpp).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace tw {

// One object of a configuration; `at`: its place in the file.
class HfConfig {
 public:
  // A part of a configuration has only the keys that differ from its class's defaults; `family`: where it names none.
  HfConfig(const nlohmann::json& json, std::string file, Faults& faults, std::string at = "",
           const std::string& family = "");

  bool has(const char* key) const;
  // A whole number; `otherwise` below 0: the key has to be there.
  long number(const char* key, long otherwise = -1) const;
  bool flag(const char* key, bool otherwise = false) const;
  double share(const char* key, double otherwise) const;
  std::string text(const char* key) const;
  std::vector<std::string> texts(const char* key) const;
  std::set<long> numbers(const char* key) const;
  bool is(std::initializer_list<const char*> families) const;  // of one of these
  // The first of the keys that is there, as families name the same differently; of none the first.
  const char* first(std::initializer_list<const char*> keys) const;
  void fault(const std::string& key, const std::string& what, const std::string& allowed = "") const;

 private:
  const nlohmann::json& json_;
  std::string file_, at_;
  Faults& faults_;

 public:
  std::string named;   // its model_type
  std::string family;  // whose rules it follows
};

// Keys of the network file, in order.
class HfWriter {
 public:
  void line(const std::string& text) { lines_.push_back("  " + text); }
  void number(const char* key, long value);
  void text(const char* key, const std::string& value);
  void truth(const char* key) { line('"' + std::string(key) + "\": true"); }
  std::string file() const;

 private:
  std::vector<std::string> lines_;
};

// A text as JSON has it.
std::string hf_quoted(const std::string& text);

// Which of its layers hold experts, windows or gated delta rules (which Qwen3-Next calls linear attention: all but
// every fourth, or as listed); letters of a hybrid's layers: as they stand, or from their names.
std::vector<bool> hf_expert_layers(const HfConfig& c, long layers);
std::vector<bool> hf_window_layers(const HfConfig& c, long layers);
std::vector<bool> hf_delta_layers(const HfConfig& c, long layers);
std::string hf_layer_letters(const HfConfig& c, const char* letters, const char* names);

// "3*attention+mlp 58*attention+experts" of layers in order; a short period is written as a group.
std::string hf_pattern(const std::vector<std::string>& layers);

// A vision tower by its own configuration, beside a network of that hidden size. Qwen's take images of any size: those
// of 32 x 32 patches, or as many as have positions, stand for them. Returns whether its family is known.
bool write_hf_tower(HfWriter& w, const HfConfig& vision, long hidden);

}  // namespace tw
