// One random stream per (purpose, member), seeded by SplitMix64 of (seed, purpose, member): a new consumer shifts
// nobody, and the order in which members are simulated does not matter.
#pragma once

#include <cstdint>
#include <string_view>

namespace tw {

// SplitMix64 (Steele, Lea, Flood 2014), a uniform random bit generator for Boost.Random distributions.
class SplitMix64 {
 public:
  using result_type = uint64_t;
  explicit constexpr SplitMix64(uint64_t seed) : state_(seed) {}
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  constexpr uint64_t operator()() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }

 private:
  uint64_t state_;
};

constexpr SplitMix64 random_stream(uint64_t seed, std::string_view purpose, uint64_t member = 0) {
  uint64_t h = SplitMix64(seed)();
  for (const char c : purpose) h = SplitMix64(h ^ static_cast<unsigned char>(c))();
  return SplitMix64(SplitMix64(h ^ member)());
}

// Uniform in (0, 1): the middle of one of 2^53 cells, never 0 or 1.
template <class Stream>
double uniform(Stream& stream) {
  return (static_cast<double>(stream() >> 11U) + 0.5) * 0x1.0p-53;
}

}  // namespace tw
