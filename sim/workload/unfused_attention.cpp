// Attention as Megatron ran it before flash attention: batched products, softmax and dropout are kernels of their own,
// and every score goes through memory between them (Megatron-LM, ParallelAttention and FusedScaleMaskSoftmax).
#include <cmath>

#include "workload/layer_builder.hpp"

namespace tw {
namespace {

// The fused softmax works on four rows of heads at a time; where heads and sequences of a micro-batch do not divide so,
// casts to FP32, scaling, mask and softmax are kernels of their own.
constexpr double kRowsOfKernel = 4;

}  // namespace

void unfused_attention(Builder& b, const AttentionShape& s, double dropout, bool backward) {
  const double groups = s.batch * s.heads, scores = groups * s.query_tokens * s.key_tokens;
  const bool fused_softmax = std::fmod(groups, kRowsOfKernel) == 0;
  const auto product = [&](const char* name, double m, double n, double k) {
    b.grouped(name, Precision::bf16, groups, m, n, k);
  };
  if (!backward) {
    product("scores", s.query_tokens, s.key_tokens, s.head_dim);
    if (fused_softmax)
      b.memory("softmax", 2 * kBf16 * scores);
    else
      b.memory("softmax in parts", (2 * kBf16 + 8 * kFp32) * scores, 5);
    if (dropout > 0) b.memory("attention dropout", (2 * kBf16 + 1) * scores);  // and a mask of one byte
    product("use of scores", s.query_tokens, s.head_dim, s.key_tokens);
    b.memory("join heads", 2 * kBf16 * groups * s.query_tokens * s.head_dim);
    return;
  }
  b.memory("part heads", 2 * kBf16 * groups * s.query_tokens * s.head_dim);
  product("scores' gradient", s.query_tokens, s.key_tokens, s.head_dim);
  product("values' gradient", s.key_tokens, s.head_dim, s.query_tokens);
  if (dropout > 0) b.memory("attention dropout gradient", (2 * kBf16 + 1) * scores, 2);
  if (fused_softmax)
    b.memory("softmax gradient", 3 * kBf16 * scores);
  else
    b.memory("softmax gradient in parts", (2 * kBf16 + 9 * kFp32) * scores, 6);
  product("queries' gradient", s.query_tokens, s.head_dim, s.key_tokens);
  product("keys' gradient", s.key_tokens, s.head_dim, s.query_tokens);
}

}  // namespace tw
