// The inputs of one case: files of its folder and the commands that read them. As in cases.py, "@/name" in a word is a
// file of that folder.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mutate.hpp"

namespace tw::fuzz {

using Words = std::vector<std::string>;

struct Case {
  std::string kind;
  std::map<std::string, std::string> files;
  std::vector<Words> commands;  // run in order while they succeed
  bool load_only = false;       // of a hall or a study: read and checked, not simulated
};

// Shipped inputs that cases are made of; read once.
class Corpus {
 public:
  // `simulated`: share of the cases that `check` took that are simulated.
  Corpus(std::string root, double simulated);
  ~Corpus();
  Case make(uint64_t seed, uint64_t number) const;
  void only(const std::string& kind) { only_ = kind; }  // for a fault of one kind

 private:
  struct Text {
    std::string path, text;
  };
  struct Tree {
    std::string path;
    nlohmann::json tree;
  };
  std::vector<Text> texts(const std::string& folder, const Words& endings) const;
  std::vector<Words> runs(const std::string& scenario, const Words& sets, Chance& c) const;
  Case settings(Chance& c) const;
  Case plan(Chance& c) const;
  Case whole_scenario(Chance& c) const;
  Case part(Chance& c) const;
  Case damaged_text(Chance& c) const;
  Case cluster(Chance& c) const;
  Case hall(Chance& c) const;
  Case study(Chance& c) const;
  Case foreign(Chance& c) const;
  Case logs(Chance& c) const;
  Case result(Chance& c) const;
  Case series(Chance& c) const;

  std::string root_;
  double simulated_;
  std::vector<Text> scenarios_, models_, topologies_, halls_, studies_, foreign_, logs_, meters_, tables_;
  std::vector<Tree> whole_, cluster_trees_, hall_trees_, study_trees_;
  std::string result_, only_;
};

}  // namespace tw::fuzz
