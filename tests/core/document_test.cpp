#include "core/document.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "toys.hpp"

namespace tw {
namespace fs = std::filesystem;
using toys::Farm;
using toys::faults_of;
using toys::holds;
using toys::text_of;

namespace {

// A folder of its own for each test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("trainwatt_core_" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string put(const std::string& name, const std::string& text) const {
    write_file(*this / name, text);
    return *this / name;
  }

 private:
  fs::path path_;
};

struct Loaded {
  Farm farm;
  Document document;
  std::string faults;
};

Loaded load_farm(const std::string& file, const std::vector<std::string>& overrides = {}) {
  Faults faults;
  Document document = Document::load(file, description<Farm>().info(), overrides, faults);
  Farm farm = read<Farm>(document, faults);
  return {std::move(farm), std::move(document), text_of(faults)};
}

const std::string kBarn = R"({"doors": 2, "lamp": "60 W", "roof": "gabled"})";
const std::string kFarm = R"({"name": "n", "barn": {"doors": 1, "lamp": "1 W"}})";

}  // namespace

TEST_CASE("an object may stand in a file of its own") {
  const Folder folder;
  folder.put("barns/big.json", kBarn);
  const auto loaded = load_farm(folder.put("farm.json", R"({"name": "n", "barn": "barns/big.json"})"));
  CHECK(loaded.faults.empty());
  CHECK(loaded.farm.barn.doors == 2);
  CHECK(loaded.document.origin("/barn/doors").file == folder / "barns/big.json");
  CHECK(loaded.document.origin("/barn/doors").pointer == "/doors");
  CHECK(loaded.document.origin("/name").file == folder / "farm.json");
}

TEST_CASE("use draws a file in and overrides it key by key") {
  const Folder folder;
  folder.put("big.json", kBarn);
  const auto loaded =
      load_farm(folder.put("farm.json", R"({"name": "n", "barn": {"use": "big.json", "lamp": "80 W"}})"));
  CHECK(loaded.faults.empty());
  CHECK(loaded.farm.barn.doors == 2);
  CHECK(loaded.farm.barn.lamp.value() == 80);
  CHECK(loaded.document.origin("/barn/lamp").file == folder / "farm.json");
  CHECK(loaded.document.origin("/barn/lamp").pointer == "/barn/lamp");
  CHECK(loaded.document.origin("/barn/doors").file == folder / "big.json");
}

TEST_CASE("a whole input may build on another") {
  const Folder folder;
  folder.put("big.json", kBarn);
  folder.put("base.json", R"({"name": "base", "share": 0.25, "barn": "big.json", "limits": {"low": 0.1, "high": 2}})");
  const auto loaded = load_farm(folder.put(
      "farm.json", R"({"use": "base.json", "name": "mine", "barn": {"doors": 9}, "limits": {"high": 3}, "nmae": 1})"));
  CHECK(loaded.farm.name == "mine");
  CHECK(loaded.farm.share == 0.25);
  CHECK(loaded.farm.barn.doors == 9);
  CHECK(loaded.farm.barn.lamp.value() == 60);
  CHECK(loaded.farm.limits.low == 0.1);
  CHECK(loaded.farm.limits.high == 3);
  CHECK(loaded.document.origin("/barn/doors").file == folder / "farm.json");
  CHECK(loaded.document.origin("/barn/lamp").file == folder / "big.json");
  CHECK(loaded.document.origin("/share").file == folder / "base.json");
  CHECK(holds(loaded.faults, folder / "farm.json" + ": /nmae: unknown key"));
}

TEST_CASE("a file put in place of a used one replaces it as a whole") {
  const Folder folder;
  folder.put("big.json", kBarn);
  folder.put("small.json", R"({"doors": 1, "lamp": "5 W"})");
  folder.put("base.json", R"({"name": "base", "barn": "big.json"})");
  const auto loaded = load_farm(folder.put("farm.json", R"({"use": "base.json", "barn": "small.json"})"));
  CHECK(loaded.faults.empty());
  CHECK(loaded.farm.barn.doors == 1);
  CHECK(loaded.farm.barn.roof == toys::Roof::flat);
  CHECK(loaded.document.origin("/barn/lamp").file == folder / "small.json");
}

TEST_CASE("null over a used file takes a key away") {
  const Folder folder;
  folder.put("base.json", R"({"name": "base", "share": 0.25, "barn": {"doors": 1, "lamp": "1 W"}, "counts": [1]})");
  const auto loaded = load_farm(folder.put("farm.json", R"({"use": "base.json", "share": null, "counts": null})"));
  CHECK(loaded.faults.empty());
  CHECK(loaded.farm.share == 0.5);
  CHECK(loaded.farm.counts.empty());
  CHECK(holds(load_farm(folder.put("bare.json", R"({"use": "base.json", "name": null})")).faults,
              "missing key \"name\""));
}

TEST_CASE("uses chain over several files") {
  const Folder folder;
  folder.put("a.json", kBarn);
  folder.put("b.json", R"({"use": "a.json", "doors": 5})");
  const auto loaded = load_farm(folder.put("farm.json", R"({"name": "n", "barn": {"use": "b.json", "lamp": "9 W"}})"));
  CHECK(loaded.faults.empty());
  CHECK(loaded.farm.barn.doors == 5);
  CHECK(loaded.farm.barn.lamp.value() == 9);
  CHECK(loaded.farm.barn.roof == toys::Roof::gabled);
  CHECK(loaded.document.origin("/barn/doors").file == folder / "b.json");
  CHECK(loaded.document.origin("/barn/doors").pointer == "/doors");
  CHECK(loaded.document.origin("/barn/roof").file == folder / "a.json");
}

TEST_CASE("faults name the file the value stands in") {
  const Folder folder;
  folder.put("big.json", R"({"doors": "two", "lamp": "60 W"})");
  CHECK(holds(load_farm(folder.put("farm.json", R"({"name": "n", "barn": "big.json"})")).faults,
              folder / "big.json" + ": /doors: \"two\" is not an integer"));
  CHECK(holds(load_farm(folder.put("over.json", R"({"name": "n", "barn": {"use": "big.json", "doors": 1.5}})")).faults,
              folder / "over.json" + ": /barn/doors: 1.5 is not an integer"));
}

TEST_CASE("a missing file is named with its neighbours, once, and the other faults are told too") {
  const Folder folder;
  folder.put("big.json", kBarn);
  const auto loaded = load_farm(folder.put("farm.json", R"({"name": 3, "barn": "bigg.json", "spare": {"use": "no"}})"));
  CHECK(holds(loaded.faults, folder / "farm.json" + ": /barn: there is no file \"bigg.json\" (for a barn)"));
  CHECK(holds(loaded.faults, folder / "farm.json" + ": /spare/use: there is no file \"no\""));
  CHECK(holds(loaded.faults, "/name: 3 is not a text"));
  CHECK(std::count(loaded.faults.begin(), loaded.faults.end(), '\n') == 2);
  CHECK(holds(load_farm(folder / "frm.json").faults, "there is no such file (for a farm)"));
  CHECK(holds(load_farm(folder / "frm.json").faults, "farm.json"));
}

TEST_CASE("a cut-off, empty or circular file is a fault, not a crash") {
  const Folder folder;
  folder.put("cut.json", R"({"doors": 2, "lam)");
  folder.put("empty.json", "");
  folder.put("self.json", R"({"use": "self.json"})");
  folder.put("ping.json", R"({"use": "pong.json"})");
  folder.put("pong.json", R"({"use": "ping.json"})");
  folder.put("deep.json", std::string(10000, '['));
  const auto fault_of = [&](const std::string& barn) {
    return load_farm(folder.put("farm.json", R"({"name": "n", "barn": ")" + barn + "\"}")).faults;
  };
  CHECK(holds(fault_of("cut.json"), folder / "cut.json" + ": line 1, column"));
  CHECK(holds(fault_of("empty.json"), folder / "empty.json" + ": line 1, column 1: the file is empty"));
  CHECK(holds(fault_of("self.json"), "draws itself in"));
  CHECK(holds(fault_of("ping.json"), "draws itself in"));
  CHECK(holds(fault_of("deep.json"), "nested deeper than 64"));
  CHECK(holds(fault_of("."), "there is no file"));
  CHECK(holds(load_farm(folder.put("farm.json", R"({"name": "n", "barn": {"use": 3}})")).faults, "not a file name"));
}

TEST_CASE("overrides reach any value, also in files drawn in") {
  const Folder folder;
  folder.put("big.json", kBarn);
  folder.put("small.json", R"({"doors": 1, "lamp": "5 W"})");
  const auto file = folder.put("farm.json", R"({"name": "n", "barn": "big.json", "counts": [1, 2]})");
  const auto loaded =
      load_farm(file, {"/barn/doors=7", "/barn/lamp=1.5 kW", "/barn/roof=flat", "/counts/1=5", "/name=12", "/open=true",
                       "/spare=" + folder / "small.json", R"(/sheds={"a": {"doors": 1, "lamp": "2 W"}})",
                       "/sheds/a/doors=4", "/limits/high=8", "/share=0.125"});
  CHECK(loaded.faults.empty());
  CHECK(loaded.farm.barn.doors == 7);
  CHECK(loaded.farm.barn.lamp.value() == 1500);
  CHECK(loaded.farm.barn.roof == toys::Roof::flat);
  CHECK(loaded.farm.counts == std::vector<int>{1, 5});
  CHECK(loaded.farm.name == "12");
  CHECK(loaded.farm.open);
  CHECK(loaded.farm.spare->lamp.value() == 5);
  CHECK(loaded.farm.sheds.at("a").doors == 4);
  CHECK(loaded.farm.limits.high == 8);
  CHECK(loaded.farm.share == 0.125);
  CHECK(loaded.document.origin("/barn/doors").file == "--set");
  CHECK(loaded.document.origin("/spare/lamp").file == folder / "small.json");
  const auto without = load_farm(file, {"/counts=null", "/barn/roof=null"});
  CHECK(without.faults.empty());
  CHECK(without.farm.counts.empty());
  CHECK(without.farm.barn.roof == toys::Roof::flat);
  // later overrides win
  CHECK(load_farm(file, {"/barn/doors=7", "/barn/doors=8"}).farm.barn.doors == 8);
}

TEST_CASE("bad overrides are faults with the nearest key, and the rest of the input is checked too") {
  const std::string all = faults_of(R"({"name": 3, "barn": {"doors": 1, "lamp": "1 W"}, "counts": [1]})",
                                    {"/barn/dors=3", "barn/doors=3", "/barn/doors", "/counts/4=1", "/name/x=1",
                                     "/barn/lamp=60", "/share=7", "=3", "", "/barn={\"doors\": 1", "/open=maybe"});
  CHECK(holds(all, "--set: /barn/dors: \"dors\" names nothing; did you mean \"doors\"?"));
  CHECK(holds(all, "\"barn/doors=3\" is not of the form /pointer=value"));
  CHECK(holds(all, "\"/barn/doors\" is not of the form"));
  CHECK(holds(all, "\"4\" is not an index of this list; it has 1 elements"));
  CHECK(holds(all, "--set: /name/x: \"x\" names nothing"));
  CHECK(holds(all, "--set: /barn/lamp: \"60\" has no unit"));
  CHECK(holds(all, "--set: /share: 7 is out of range"));
  CHECK(holds(all, "--set /barn: line 1"));
  CHECK(holds(all, "--set: /open: \"maybe\" is not true or false"));
  CHECK(holds(all, "toy.json: /name: 3 is not a text"));
  CHECK(holds(faults_of(kFarm, {"/counts=" + std::string(10000, '[')}), "nested deeper"));
  CHECK(holds(faults_of(kFarm, {"/barn={\"doors\": 1, \"doors\": 2}"}), "duplicate key"));
  CHECK(holds(faults_of(kFarm, {"/share=NaN"}), "is not a number"));
  CHECK(holds(faults_of(kFarm, {"/share=-1"}), "out of range"));
  CHECK(holds(faults_of(kFarm, {std::string("/name=\xff")}), "not UTF-8"));
  CHECK(holds(faults_of(kFarm, {"/barn=nowhere.json"}), "--set: /barn: there is no file \"nowhere.json\""));
}

TEST_CASE("the canonical text depends on values alone") {
  Faults faults;
  const auto& info = description<Farm>().info();
  const auto a = Document::from_text("// c\n{\"name\": \"n\", \"barn\": {\"lamp\": \"1 W\", \"doors\": 1}}", "a", info,
                                     {}, faults);
  const auto b = Document::from_text(kFarm, "b", info, {}, faults);
  const auto c = Document::from_text(kFarm, "b", info, {"/barn/doors=2"}, faults);
  CHECK(a.canonical() == b.canonical());
  CHECK(b.canonical() != c.canonical());
}

TEST_CASE("explain names every value and where it comes from") {
  const Folder folder;
  folder.put("big.json", kBarn);
  const auto file = folder.put("farm.json", R"({"name": "n", "barn": {"use": "big.json", "doors": 3}})");
  const std::string text = load_farm(file, {"/limits/low=0.5"}).document.explain(description<Farm>().info());
  CHECK(holds(text, "/name = \"n\"    (" + file + ")"));
  CHECK(holds(text, "/barn/doors = 3    (" + file + ")"));
  CHECK(holds(text, "/barn/lamp = \"60 W\"    (" + folder / "big.json" + " /lamp)"));
  CHECK(holds(text, "/limits/low = 0.5    (--set)"));
  CHECK(holds(text, "/share = 0.5    (default)"));
}

}  // namespace tw
