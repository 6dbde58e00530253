#include "cases.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/codec.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/strict_json.hpp"
#include "hall/hall_input.hpp"
#include "report/result_json.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "study/sweep.hpp"

namespace tw::fuzz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Words sets_of(const Words& settings) {
  Words words;
  for (const std::string& s : settings)
    if (s.find('\0') == std::string::npos) words.insert(words.end(), {"--set", s});  // no command line holds a zero
  return words;
}

Words joined(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The keys of a scenario that a model file can stand for, by its folder.
const std::map<std::string, std::string> kPlaces{{"networks", "/network"},
                                                 {"accelerators", "/cluster/node/accelerator"},
                                                 {"software", "/software"},
                                                 {"sites", "/site"},
                                                 {"convergence", "/run/convergence"},
                                                 {"power", "/cluster/power_delivery"},
                                                 {"reliability", "/run/reliability"},
                                                 {"collectives", "/software/collectives"},
                                                 {"topologies", "/cluster"}};

}  // namespace

std::vector<Corpus::Text> Corpus::texts(const std::string& folder, const Words& endings) const {
  std::vector<Text> list;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(root_) / folder)) {
    const std::string path = fs::relative(entry.path(), root_).string();
    for (const std::string& ending : endings)
      if (entry.is_regular_file() && path.size() > ending.size() &&
          path.compare(path.size() - ending.size(), ending.size(), ending) == 0)
        list.push_back({path, read_file(entry.path().string())});
  }
  std::sort(list.begin(), list.end(), [](const Text& a, const Text& b) { return a.path < b.path; });
  return list;
}

Corpus::Corpus(std::string root, double simulated) : root_(std::move(root)), simulated_(simulated) {
  for (Text& t : texts("scenarios", {".json"})) {
    auto& list = t.path.find("/halls/") != std::string::npos     ? halls_
                 : t.path.find("/studies/") != std::string::npos ? studies_
                                                                 : scenarios_;
    list.push_back(std::move(t));
  }
  models_ = texts("models", {".json"});
  topologies_ = texts("topologies", {".json"});
  foreign_ = texts("tests/files", {""});
  logs_ = texts("reference/mlperf_logs", {"0.txt", "1.txt"});
  std::copy_if(logs_.begin(), logs_.end(), std::back_inserter(meters_),
               [](const Text& t) { return t.path.find("/power/") != std::string::npos; });
  logs_.erase(std::remove_if(logs_.begin(), logs_.end(),
                             [](const Text& t) { return t.path.find("/power/") != std::string::npos; }),
              logs_.end());
  tables_ = texts("scenarios/halls", {".csv"});
  const auto grow = [](const std::vector<Text>& from, const ObjectInfo& info, std::vector<Tree>& trees) {
    for (const Text& t : from) {
      Faults faults;
      const Document document = Document::load(t.path, info, {}, faults);
      if (faults.empty()) trees.push_back({t.path, document.root()});
    }
  };
  grow(scenarios_, description<Scenario>().info(), whole_);
  grow(topologies_, description<Cluster>().info(), cluster_trees_);
  grow(halls_, description<hall::HallInput>().info(), hall_trees_);
  grow(studies_, description<Study>().info(), study_trees_);
  Faults faults;
  const LoadedScenario small = load_scenario("scenarios/smc-llama2-70b-lora-1n.json", {}, faults);
  faults.throw_if_any();
  result_ = report::results_json(simulate_all({small}, {}, 1, 60, {}));
}

Corpus::~Corpus() = default;

Case Corpus::make(uint64_t seed, uint64_t number) const {
  struct Kind {
    const char* name;
    size_t share;
    Case (Corpus::*made)(Chance&) const;
  };
  // Shares follow what a case costs: a hall reads the scenarios of all its jobs.
  static const std::vector<Kind> mix{
      {"scenario", 8, &Corpus::settings}, {"plan", 6, &Corpus::plan},          {"inputs", 12, &Corpus::whole_scenario},
      {"model", 8, &Corpus::part},        {"text", 14, &Corpus::damaged_text}, {"cluster", 1, &Corpus::cluster},
      {"hall", 1, &Corpus::hall},         {"study", 3, &Corpus::study},        {"foreign", 20, &Corpus::foreign},
      {"logs", 14, &Corpus::logs},        {"result", 12, &Corpus::result},     {"series", 1, &Corpus::series}};
  Chance c(seed, number);
  for (const Kind& k : mix)
    if (k.name == only_) return (this->*k.made)(c);
  size_t all = 0;
  for (const Kind& k : mix) all += k.share;
  size_t drawn = c.below(all), at = 0;
  while (drawn >= mix[at].share) drawn -= mix[at++].share;
  return (this->*mix[at].made)(c);
}

std::vector<Words> Corpus::runs(const std::string& scenario, const Words& sets, Chance& c) const {
  std::vector<Words> commands{joined({"check", scenario, "-q"}, sets)};
  if (!c.in(simulated_)) return commands;
  commands.push_back(joined({"run", scenario, "-q", "--json", "-", "--jobs", "1"}, sets));
  if (c.in(0.1)) commands.push_back(joined({"timeline", scenario, "-o", "@/trace.json"}, sets));
  if (c.in(0.1)) commands.push_back(joined({"run", scenario, "-q", "--jobs", "1"}, sets));
  return commands;
}

Case Corpus::settings(Chance& c) const {
  Words settings;
  for (int n = c.of({1, 1, 1, 2, 3}); n > 0; --n) settings.push_back(setting(description<Scenario>().info(), c));
  return {"scenario", {}, runs(c.of(scenarios_).path, sets_of(settings), c)};
}

Case Corpus::plan(Chance& c) const {
  const char* scenario =
      c.of({"scenarios/llama3.1-pretraining.json", "scenarios/mixtral-8x7b.json",
            "scenarios/smc-llama2-70b-lora-8n.json", "scenarios/mlperf-gpt3.json", "scenarios/nemo-pretraining.json"});
  Words settings{odd_plan(c)};
  if (c.in(0.6))
    settings.push_back(std::string("/training/recompute=") + c.of({"full", "selective", "none", "alternate"}));
  if (c.in(0.3)) settings.push_back(setting(description<Scenario>().info(), c));
  return {"plan", {}, runs(scenario, sets_of(settings), c)};
}

// A scenario with everything that it draws in: clusters, networks, accelerators, software and sites change alike.
Case Corpus::whole_scenario(Chance& c) const {
  json tree = c.of(whole_).tree;
  for (int n = c.of({1, 1, 1, 2, 4}); n > 0; --n) change(tree, description<Scenario>().info(), c);
  return {"inputs", {{"in.json", tree.dump()}}, runs("@/in.json", {}, c)};
}

// A damaged model file in its place.
Case Corpus::part(Chance& c) const {
  const Text& model = c.in(0.3) ? c.of(topologies_) : c.of(models_);
  const fs::path path(model.path);
  const std::string folder = path.parent_path().filename().string();
  const auto place = kPlaces.find(folder);
  const std::string file = "in" + path.extension().string();
  const Words sets = sets_of({(place == kPlaces.end() ? "/benchmark" : place->second) + "=@/" + file});
  return {"model", {{file, damaged(model.text, c)}}, runs(c.of(scenarios_).path, sets, c)};
}

Case Corpus::damaged_text(Chance& c) const {
  return {"text", {{"in.json", damaged(c.of(scenarios_).text, c)}}, runs("@/in.json", {}, c)};
}

Case Corpus::cluster(Chance& c) const {
  Case made{"cluster", {}, {}};
  std::string text = c.of(topologies_).text;
  if (c.in(0.8)) {
    json tree = c.of(cluster_trees_).tree;
    for (int n = c.of({1, 1, 2, 3}); n > 0; --n) change(tree, description<Cluster>().info(), c);
    text = tree.dump();
  } else {
    text = damaged(text, c);
  }
  made.files["in.json"] = text;
  made.commands.push_back({"topology", "@/in.json", "--json", "-"});
  if (c.in(0.3)) {
    Words words{
        "collective", "@/in.json",
        "--json",     "-",
        "--op",       c.of({"all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all", "send-recv"}),
        "--size",     c.of({"1 B", "0 B", "1 KiB", "64 MB", "1 GiB", "1e18 B"}),
        "--ranks",    c.of({"1", "2", "8", "16", "24", "64"})};
    if (c.in(0.3))
      words = joined(words, {"--algorithm", c.of({"ring", "tree", "hierarchical", "nvls", "sharp", "direct"})});
    made.commands.push_back(words);
  }
  return made;
}

Case Corpus::hall(Chance& c) const {
  json tree = c.of(hall_trees_).tree;
  std::string text;
  if (c.in(0.75)) {
    for (int n = c.of({1, 1, 2, 3}); n > 0; --n) change(tree, description<hall::HallInput>().info(), c);
    text = tree.dump();
  } else {
    text = damaged(c.of(halls_).text, c);
  }
  return {"hall",
          {{"in.json", text}},
          {{"hall", "@/in.json", "-q", "--json", "-", "--jobs", "1", "--set", "/lasts=12 h"}},
          !c.in(simulated_ / 4)};
}

Case Corpus::study(Chance& c) const {
  json tree = c.of(study_trees_).tree;
  if (c.in(0.5)) {
    json values = json::array();
    const std::string set = setting(description<Scenario>().info(), c);
    for (int n = c.of({1, 2, 3}); n > 0; --n) values.push_back(set.substr(set.find('=') + 1));
    tree["axes"] = json::array({{{"set", {{set.substr(0, set.find('=')), values}}}}});
  }
  for (int n = c.of({0, 1, 2}); n > 0; --n) change(tree, description<Study>().info(), c);
  return {"study",
          {{"study.json", c.in(0.8) ? tree.dump() : damaged(c.of(studies_).text, c)}},
          {{"sweep", "@/study.json", "-o", "@/out", "-q", "--jobs", "1"}},
          true};
}

Case Corpus::foreign(Chance& c) const {
  const Text& from = c.of(foreign_);
  const std::string name = "in" + fs::path(from.path).extension().string();
  Case made{"foreign", {{name, damaged(from.text, c)}}, {{"read", "@/" + name, "-o", "@/read.json"}}};
  if (c.in(0.2))
    made.commands[0] = joined(
        made.commands[0],
        c.of({Words{"--nodes", "2"}, Words{"--nodes", "100000"}, Words{"--node-names", "n"}, Words{"--svg", "@/d.svg"},
              Words{"--place", "gpu"}, Words{"--map", "time=Timestamp,watts=Power"}, Words{"--name", ""}}));
  if (c.in(0.3) &&
      (name == "in.xml" || name == "in.conf" || name == "in.yml" || from.path.find("cables") != std::string::npos))
    made.commands.push_back({"topology", "@/read.json", "--json", "-"});
  return made;
}

// One run of a submission with the readings of one node.
Case Corpus::logs(Chance& c) const {
  const bool log = c.in(0.75);
  const std::string text = c.of(logs_).text, meter = c.of(meters_).text.substr(0, 6000);
  const std::string folder = "m/results/1xSMC-H100-SXM-80GB/llama2_70b_lora/";
  return {"logs",
          {{folder + "result_0.txt", log ? damaged(text, c) : text},
           {folder + "power/result_0/node_0.txt", log ? meter : damaged(meter, c)}},
          {{"import", "@/m", "--json", "-", "-q"}}};
}

Case Corpus::result(Chance& c) const {
  const Words command =
      c.of({Words{"check", "@/r.json"}, Words{"compare", "@/r.json", "@/good.json"},
            Words{"compare", "@/good.json", "@/r.json"}, Words{"report", "@/folder", "-o", "@/page.html"}});
  const std::string name = command[0] == "report" ? "folder/result.json" : "r.json";
  std::string text = result_;
  if (c.in(0.5)) {
    json tree = json::parse(result_);
    for (json* node = &tree; node->is_structured() && !node->empty();) {
      auto at = node->begin();
      std::advance(at, static_cast<long>(c.below(node->size())));
      if (!at->is_structured() || c.in(0.2)) {
        static const std::vector<json> values{nullptr, json::array(), json::object(),  "x", -1, 1e300, true,
                                              0,       {1},           {{"a", nullptr}}};
        *at = c.of(values);
        break;
      }
      node = &*at;
    }
    text = tree.dump();
  } else {
    text = damaged(text, c);
  }
  return {"result", {{name, text}, {"good.json", result_}}, {command}};
}

// Hourly prices, carbon, weather and signals with gaps and nonsense.
Case Corpus::series(Chance& c) const {
  const Text& table = c.of(tables_);
  const char* key = table.path.find("price") != std::string::npos     ? "/site/price_series"
                    : table.path.find("carbon") != std::string::npos  ? "/site/carbon_series"
                    : table.path.find("weather") != std::string::npos ? "/cooling/weather"
                                                                      : "/budget/signal";
  const std::string set = std::string(key) + "=@/s.csv";
  return {"series",
          {{"s.csv", damaged(table.text, c)}},
          {{"hall", "scenarios/halls/two-megawatts.json", "--set", set, "--set", "/lasts=12 h", "-q", "--json", "-",
            "--jobs", "1"}},
          !c.in(simulated_ / 4)};
}

}  // namespace tw::fuzz
