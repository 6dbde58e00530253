// Lists of thousands of moments, each a few numbers, carried from child to parent as one block. For the sources that
// describe such a list: include it before they do.
#pragma once

#include <array>
#include <vector>

#include "core/outputs.hpp"

namespace tw {

namespace detail {
void put_block(OutputJson& out, const void* bytes, size_t size);
size_t block_size(const OutputJson& in);
void get_block(const OutputJson& in, void* bytes);
}  // namespace detail

template <size_t N>
struct OutputCodec<std::vector<std::array<double, N>>>
    : OutputListCodec<std::array<double, N>, std::vector<std::array<double, N>>> {
  using List = std::vector<std::array<double, N>>;
  static void write(const List& v, detail::OutputJson& out, bool exact) {
    if (exact) return detail::put_block(out, v.data(), v.size() * sizeof v[0]);
    OutputListCodec<std::array<double, N>, List>::write(v, out, exact);
  }
  static void unpack(List& v, const detail::OutputJson& in) {
    v.resize(detail::block_size(in) / sizeof v[0]);
    detail::get_block(in, v.data());
  }
};

}  // namespace tw
