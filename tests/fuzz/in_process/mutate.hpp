// Random values for random places of an input, drawn from its declaration, and random damage to texts.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/describe.hpp"
#include "core/random.hpp"

namespace tw::fuzz {

// One case has one stream: the same seed and number make the same case.
class Chance {
 public:
  Chance(uint64_t seed, uint64_t number) : stream_(random_stream(seed, "fuzz", number)) {}
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(stream_() % n); }
  double share() { return uniform(stream_); }
  bool in(double probability) { return share() < probability; }
  template <class List>
  const typename List::value_type& of(const List& list) {
    return *(list.begin() + static_cast<long>(below(list.size())));
  }
  template <class T>
  T of(std::initializer_list<T> list) {
    return *(list.begin() + below(list.size()));
  }

 private:
  SplitMix64 stream_;
};

nlohmann::json random_value(const TypeInfo& type, const Range& range, Chance& chance, int depth = 0);

// One random change somewhere in a tree of this kind: a value, a key more or less, an entry of a list.
void change(nlohmann::json& tree, const ObjectInfo& info, Chance& chance);

// "/plan/tp=8": a random place and a random value for it.
std::string setting(const ObjectInfo& info, Chance& chance);

// "/plan={...}" that might be valid: sizes that divide, a schedule with the chunks that it wants.
std::string odd_plan(Chance& chance);

// One to four random changes of bytes: flips, cuts, repeats, tokens, numbers, lines.
std::string damaged(std::string text, Chance& chance);

}  // namespace tw::fuzz
