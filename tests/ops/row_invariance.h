#pragma once
// The property on which equal results on any number of ranks rest: a row of the result has the same bits
// whatever other rows are in the call, and on any number of threads. To put an op under it, add a line to
// invariant_ops().
#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "orrery/ops/attention.h"
#include "orrery/ops/linear.h"
#include "orrery/ops/modulate.h"
#include "orrery/ops/rms_norm.h"
#include "orrery/ops/silu_mul.h"
#include "tests/support/threads.h"

namespace orrery::testing {

using Tensors = std::vector<Tensor>;

/// Draws sizes for one try.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  int64_t one_of(std::initializer_list<int64_t> values) {
    return values.begin()[between(0, std::ssize(values) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

struct InvariantOp {
  std::string name;
  int64_t most_rows;
  std::function<Tensors(Dice&, int64_t rows)> by_row;  // tensors whose first dimension is cut
  std::function<Tensors(Dice&, const Tensors& by_row)> shared;
  std::function<Tensor(const Tensors& by_row, const Tensors& shared)> run;
};

inline void PrintTo(const InvariantOp& op, std::ostream* os) { *os << op.name; }

inline Tensor random(at::ScalarType dtype, at::IntArrayRef shape) { return at::randn(shape).to(dtype); }

inline InvariantOp linear_op(const std::string& name, at::ScalarType weights, ops::Activation activation) {
  return {
      name, 400,
      [](Dice& dice, int64_t rows) {
        return Tensors{at::randn({rows, dice.one_of({32, 100, 385, 1024, 1153, 2048, 5000, 8192})})};
      },
      [weights](Dice& dice, const Tensors& x) {
        const int64_t columns = dice.one_of({1, 16, 33, 47, 48, 64, 128, 257, 512});
        return Tensors{random(weights, {columns, x[0].size(1)}), at::randn({columns})};
      },
      [activation](const Tensors& x, const Tensors& w) { return ops::linear(x[0], w[0], w[1], activation); }};
}

inline InvariantOp attention_op(const std::string& name, at::ScalarType dtype, int64_t heads_per_key_head) {
  return {name, 2000,
          [dtype, heads_per_key_head](Dice& dice, int64_t rows) {
            return Tensors{random(dtype, {rows, heads_per_key_head * dice.between(1, 2),
                                          dice.one_of({16, 20, 40, 64, 72, 128})})};
          },
          [dtype, heads_per_key_head](Dice& dice, const Tensors& q) {
            const int64_t keys = dice.between(1, 1500), heads = q[0].size(1) / heads_per_key_head;
            return Tensors{random(dtype, {keys, heads, q[0].size(2)}),
                           random(dtype, {keys, heads, q[0].size(2)})};
          },
          [](const Tensors& q, const Tensors& kv) { return ops::attention(q[0], kv[0], kv[1]); }};
}

/// x [rows, width], and what else is per row, for an elementwise op or a norm.
inline InvariantOp row_op(const std::string& name, at::ScalarType dtype,
                          std::function<Tensor(const Tensors&, const Tensors&)> run) {
  return {name, 600,
          [dtype](Dice& dice, int64_t rows) {
            const int64_t width = dice.one_of({2, 30, 64, 72, 128, 1000, 2048});
            return Tensors{random(dtype, {rows, 3, width}), at::randn({rows, width}),
                           at::randint(3, {rows}, at::kInt)};
          },
          [](Dice&, const Tensors& x) {
            return Tensors{at::randn({x[0].size(2)}), at::randn({3, x[0].size(2)})};
          },
          run};
}

inline std::vector<InvariantOp> invariant_ops() {
  using ops::Activation;
  const auto f32 = at::kFloat, bf16 = at::kBFloat16;
  return {
      linear_op("linear", f32, Activation::kNone),
      linear_op("linear_gelu", f32, Activation::kGelu),
      linear_op("linear_gelu_tanh", f32, Activation::kGeluTanh),
      linear_op("linear_silu", f32, Activation::kSilu),
      linear_op("linear_mapped_bfloat16", bf16, Activation::kNone),
      linear_op("linear_mapped_float16", at::kHalf, Activation::kNone),
      attention_op("attention", f32, 1),
      attention_op("attention_grouped", f32, 3),
      row_op("rms_norm", f32,
             [](const Tensors& x, const Tensors& w) { return ops::rms_norm(x[0], w[0], 1e-6); }),
      row_op("rms_norm_bfloat16", bf16,
             [](const Tensors& x, const Tensors& w) { return ops::rms_norm(x[0], w[0], 1e-6); }),
      row_op("rms_norm_rope", f32,
             [](const Tensors& x, const Tensors& w) { return ops::rms_norm_rope(x[0], w[0], x[1], 1e-6); }),
      row_op("rms_norm_rope_bfloat16", bf16,
             [](const Tensors& x, const Tensors& w) { return ops::rms_norm_rope(x[0], w[0], x[1], 1e-6); }),
      row_op("rms_norm_rope_adjacent", f32,
             [](const Tensors& x, const Tensors& w) {
               return ops::rms_norm_rope(x[0], w[0], x[1], 1e-6, ops::Pairs::kAdjacent);
             }),
      row_op("layer_norm_modulate", f32,
             [](const Tensors& x, const Tensors& w) {
               return ops::layer_norm_modulate(x[0].select(1, 1), w[1], w[1], x[2], 1e-6);
             }),
      row_op("add_gated", f32,
             [](const Tensors& x, const Tensors& w) {
               const Tensor sum = x[1].clone();
               ops::add_gated_(sum, w[1], x[0].select(1, 0).contiguous(), x[2]);
               return sum;
             }),
      row_op("silu", f32, [](const Tensors& x, const Tensors&) { return ops::silu(x[0]); }),
      row_op("silu_mul_bfloat16", bf16,
             [](const Tensors& x, const Tensors&) { return ops::silu_mul(x[0], x[0]); }),
  };
}

/// The bits of random slices equal those rows of the whole, on random numbers of threads.
inline void expect_row_invariant(const InvariantOp& op, int tries, uint64_t seed) {
  Dice dice(seed);
  at::manual_seed(seed);
  for (int i = 0; i < tries; ++i) {
    const int64_t rows = dice.between(1, op.most_rows), from = dice.between(0, rows - 1);
    const int64_t count = dice.between(0, 2) ? dice.between(1, rows - from)
                                             : std::min<int64_t>(dice.between(1, 20), rows - from);
    const Tensors by_row = op.by_row(dice, rows), shared = op.shared(dice, by_row);
    Tensors part;
    for (const Tensor& t : by_row) part.push_back(t.slice(0, from, from + count));
    const int whole_threads = static_cast<int>(dice.between(1, 4)),
              part_threads = static_cast<int>(dice.between(1, 4));
    const auto run = [&](const Tensors& inputs, int count_of_threads) {
      const Threads threads(count_of_threads);
      return op.run(inputs, shared);
    };
    const Tensor whole = run(by_row, whole_threads), got = run(part, part_threads);
    ASSERT_TRUE(at::equal(got, whole.slice(0, from, from + count)))
        << op.name << ": rows " << from << " + " << count << " of " << by_row[0].sizes() << " on "
        << part_threads << " threads against " << whole_threads << ", try " << i;
  }
}

}  // namespace orrery::testing
