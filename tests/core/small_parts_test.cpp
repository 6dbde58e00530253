#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/files.hpp"
#include "core/random.hpp"
#include "core/sum.hpp"
#include "core/text.hpp"

namespace tw {
namespace fs = std::filesystem;

TEST_CASE("CSV: quotes, blanks, line ends") {
  const auto t = CsvTable::parse("a,b,c\r\n1,\"x, \"\"y\"\"\",\r\n\n2.5e3,\"two\nlines\",7", "t.csv");
  REQUIRE(t.rows() == 2);
  CHECK(t.value(0, "a") == 1);
  CHECK(t.text(0, "b") == "x, \"y\"");
  CHECK(!t.number(0, "c"));
  CHECK(t.value(1, "a") == 2500);
  CHECK(t.text(1, "b") == "two\nlines");
  CHECK(t.has("c"));
  CHECK(!t.has("d"));
  CHECK(CsvTable::parse("\xef\xbb\xbf"
                        "a\n1\n",
                        "t.csv")
            .value(0, "a") == 1);
}

TEST_CASE("CSV: what is wrong is said with file and place") {
  CHECK_THROWS_WITH(CsvTable::parse("a,b\n1\n", "t.csv"), Catch::Contains("t.csv: record 2: 1 fields"));
  CHECK_THROWS_WITH(CsvTable::parse("a,b\n1,\"2\n", "t.csv"), Catch::Contains("a quote is not closed"));
  CHECK_THROWS_AS(CsvTable::parse("", "t.csv"), InputError);
  CHECK_THROWS_AS(CsvTable::load("no/such.csv"), InputError);
  const auto t = CsvTable::parse("alpha,b\n1x,\nnan,inf\n", "t.csv");
  CHECK_THROWS_WITH(t.value(0, "alpha"), Catch::Contains("row 1, column alpha: \"1x\" is not a number"));
  CHECK_THROWS_WITH(t.value(0, "b"), Catch::Contains("is blank"));
  CHECK_THROWS_WITH(t.value(0, "alpa"), Catch::Contains("did you mean \"alpha\"?"));
  CHECK_THROWS_AS(t.value(1, "alpha"), InputError);
  CHECK_THROWS_AS(t.value(1, "b"), InputError);
}

TEST_CASE("files are written whole or not at all") {
  const fs::path folder = fs::temp_directory_path() / ("trainwatt_files_" + std::to_string(::getpid()));
  fs::remove_all(folder);
  const auto count = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
  const std::string target = (folder / "sub" / "x.txt").string();
  write_file(target, "one");
  CHECK(read_file(target) == "one");
  write_file(target, "two");
  CHECK(read_file(target) == "two");
  // The target is a folder: refused, and no partial file stays.
  fs::create_directories(folder / "taken" / "inside");
  CHECK_THROWS_AS(write_file((folder / "taken").string(), "x"), InputError);
  CHECK(count() == 2);
  // A file stands where a folder is due.
  CHECK_THROWS_AS(write_file(target + "/y.txt", "x"), InputError);
  CHECK(read_file(target) == "two");
  // A device is written to, never replaced; a link goes on pointing at its file.
  write_file("/dev/null", "gone");
  CHECK(fs::is_character_file("/dev/null"));
  fs::create_symlink(target, folder / "link");
  write_file((folder / "link").string(), "through");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(target) == "through");
  // A full disk.
  if (fs::is_character_file("/dev/full")) {
    for (int n = 0; n < 64; ++n)
      fs::create_symlink("/dev/full",
                         folder / ("full." + std::to_string(::getpid()) + "." + std::to_string(n) + ".part"));
    CHECK_THROWS_AS(write_file((folder / "full").string(), std::string(1 << 20, 'x')), InputError);
    CHECK(!fs::exists(folder / "full"));
  }
  fs::remove_all(folder);
}

TEST_CASE("reading a folder or nothing is the user's fault") {
  CHECK_THROWS_AS(read_file("/tmp"), InputError);
  CHECK_THROWS_AS(read_file("/nonexistent/x"), InputError);
  CHECK(!find_input_file("", ""));
  CHECK(!find_input_file("/tmp", ""));
}

TEST_CASE("SHA-256 of known texts") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("random streams: known values, independent of each other") {
  // First outputs of SplitMix64 seeded with 1234567, as published with the reference code.
  SplitMix64 g(1234567);
  CHECK(g() == 6457827717110365317ULL);
  CHECK(g() == 3203168211198807973ULL);
  CHECK(g() == 9817491932198370423ULL);
  auto a = random_stream(1, "jitter", 0), again = random_stream(1, "jitter", 0), b = random_stream(1, "jitter", 1),
       c = random_stream(2, "jitter", 0), d = random_stream(1, "stalls", 0);
  const auto first = a();
  CHECK(first == again());
  CHECK(first != b());
  CHECK(first != c());
  CHECK(first != d());
  double mean = 0, square = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double u = uniform(a);
    CHECK_FALSE((u <= 0 || u >= 1));
    mean += u / n;
    square += u * u / n;
  }
  CHECK(mean == Approx(0.5).margin(0.005));
  CHECK(square - mean * mean == Approx(1.0 / 12).margin(0.002));
}

TEST_CASE("a compensated sum keeps small terms") {
  Sum s;
  s.add(1);
  s.add(1e100);
  s.add(1);
  s.add(-1e100);
  CHECK(s.value() == 2);
  Sum energy;
  for (int i = 0; i < 1000000; ++i) energy.add(0.1);
  CHECK(energy.value() == Approx(100000).epsilon(1e-15));
}

TEST_CASE("suggestions") {
  CHECK(suggest("lyers", {"heads", "layers"}) == "did you mean \"layers\"?");
  CHECK(suggest("zzzzzz", {"heads", "layers"}) == "known: heads, layers");
  CHECK(suggest("zz", {"tp", "cp"}) == "known: tp, cp");
  CHECK(suggest("tpp", {"tp", "cp"}) == "did you mean \"tp\"?");
  CHECK(suggest(std::string(100000, 'x'), {"heads"}) == "known: heads");
  CHECK(one_of({"a"}) == "a");
  CHECK(one_of({"a", "b", "c"}) == "a, b or c");
  CHECK(split("a//b", '/') == std::vector<std::string>{"a", "", "b"});
}

TEST_CASE("faults are told once and together") {
  Faults faults;
  CHECK_NOTHROW(faults.throw_if_any());
  faults.add({"f", "/a", "wrong", "right"});
  faults.add({"f", "/a", "wrong", "right"});
  faults.add({"g", "", "missing", ""});
  CHECK(faults.size() == 2);
  CHECK_THROWS_WITH(faults.throw_if_any(), "f: /a: wrong; right\ng: missing");
}

}  // namespace tw
