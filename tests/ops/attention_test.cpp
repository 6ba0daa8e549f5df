#include "orrery/ops/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "tests/ops/implementations.h"
#include "tests/support/expect_error.h"

namespace orrery::testing {
namespace {

struct Shapes {
  int64_t queries, keys, heads, key_heads, width;
  bool causal;
};

void PrintTo(const Shapes& s, std::ostream* os) {
  *os << s.queries << "×" << s.keys << " heads " << s.heads << "/" << s.key_heads << " of " << s.width
      << (s.causal ? " causal" : "");
}

const Shapes kShapes[] = {
    {1, 1, 1, 1, 1, false},      {9, 17, 2, 2, 16, false},   {70, 385, 2, 2, 128, false},
    {33, 1000, 1, 1, 72, false}, {600, 50, 3, 3, 20, false}, {40, 64, 6, 2, 24, false},
    {50, 50, 2, 1, 32, true},    {500, 500, 1, 1, 8, true},  {20, 450, 4, 2, 16, true},
    {450, 20, 2, 2, 16, true},
};

struct Inputs {
  Tensor q, k, v;
  Inputs(const Shapes& s, at::ScalarType dtype)
      : q(at::randn({s.queries, s.heads, s.width}).to(dtype)),
        k(at::randn({s.keys, s.key_heads, s.width}).to(dtype)),
        v(at::randn({s.keys, s.key_heads, s.width}).to(dtype)) {}
};

ops::PartialAttention in_double(const Inputs& in, bool causal) {
  const int64_t queries = in.q.size(0), keys = in.k.size(0), repeat = in.q.size(1) / in.k.size(1);
  const Tensor q = wide(in.q).transpose(0, 1), k = wide(in.k).repeat_interleave(repeat, 1).permute({1, 2, 0});
  const Tensor v = wide(in.v).repeat_interleave(repeat, 1).transpose(0, 1);
  Tensor scores = at::matmul(q, k) / std::sqrt(static_cast<double>(q.size(2)));
  if (causal)
    scores.masked_fill_(at::arange(keys).unsqueeze(0) > at::arange(queries).unsqueeze(1) + (keys - queries),
                        -std::numeric_limits<double>::infinity());
  const Tensor weights = scores.softmax(-1).nan_to_num(0);  // rows without keys
  return {at::matmul(weights, v).transpose(0, 1), at::logsumexp(scores, -1).transpose(0, 1)};
}

using Param = std::tuple<Implementation, at::ScalarType, Shapes>;
class Attention : public ::testing::TestWithParam<Param> {};

TEST_P(Attention, AgreesWithFloat64) {
  const auto& [implementation, dtype, shapes] = GetParam();
  const Inputs in(shapes, dtype);
  const double scale = 1 / std::sqrt(static_cast<double>(shapes.width));
  const auto got = implementation == Implementation::kReference
                       ? ops::reference::attention(in.q, in.k, in.v, scale, shapes.causal)
                       : ops::partial_attention(in.q, in.k, in.v, 0, shapes.causal);
  const auto expected = in_double(in, shapes.causal);
  EXPECT_EQ(got.out.scalar_type(), dtype);
  EXPECT_EQ(got.lse.scalar_type(), at::kFloat);
  EXPECT_LE(distance(got.out, expected.out),
            2 * rounding(dtype));  // libtorch rounds the weights to bfloat16 too
  EXPECT_TRUE(at::equal(got.lse.isinf(), expected.lse.isinf()));
  EXPECT_LE(
      distance(got.lse.masked_fill(got.lse.isinf(), 0), expected.lse.masked_fill(expected.lse.isinf(), 0)),
      rounding(dtype));
}

std::string name(const ::testing::TestParamInfo<Param>& test) {
  const auto& [implementation, dtype, s] = test.param;
  return case_name(implementation, dtype, s.queries, s.keys, s.heads, s.key_heads, s.width, s.causal);
}

INSTANTIATE_TEST_SUITE_P(All, Attention,
                         ::testing::Combine(::testing::ValuesIn(kImplementations),
                                            ::testing::Values(at::kFloat, at::kBFloat16),
                                            ::testing::ValuesIn(kShapes)),
                         name);

TEST(AttentionInputs, MayBeViews) {
  const Tensor qkv = at::randn({60, 3, 4, 32});
  const Tensor q = qkv.select(1, 0), k = qkv.select(1, 1), v = qkv.select(1, 2);
  EXPECT_TRUE(
      at::equal(ops::attention(q, k, v), ops::attention(q.contiguous(), k.contiguous(), v.contiguous())));
  const Tensor by_head = at::randn({4, 60, 32}).transpose(0, 1);
  EXPECT_TRUE(at::equal(ops::attention(by_head, k, v), ops::attention(by_head.contiguous(), k, v)));
}

TEST(AttentionInputs, EmptyOnesGiveZerosAndNoMass) {
  const auto none = ops::partial_attention(at::randn({3, 2, 8}), at::empty({0, 2, 8}), at::empty({0, 2, 8}));
  EXPECT_TRUE(at::equal(none.out, at::zeros({3, 2, 8})));
  EXPECT_TRUE(none.lse.isneginf().all().item<bool>());
  EXPECT_EQ(ops::attention(at::empty({0, 2, 8}), at::randn({5, 2, 8}), at::randn({5, 2, 8})).sizes(),
            at::IntArrayRef({0, 2, 8}));
  EXPECT_EQ(ops::attention(at::empty({4, 0, 8}), at::empty({5, 0, 8}), at::empty({5, 0, 8})).sizes(),
            at::IntArrayRef({4, 0, 8}));
}

TEST(AttentionInputs, OnMetaGiveTheShapes) {
  const auto options = at::TensorOptions(at::kMeta).dtype(at::kBFloat16);
  const Tensor k = at::empty({9, 2, 16}, options);
  const auto got = ops::partial_attention(at::empty({5, 4, 16}, options), k, k);
  EXPECT_EQ(got.out.sizes(), at::IntArrayRef({5, 4, 16}));
  EXPECT_EQ(got.out.scalar_type(), at::kBFloat16);
  EXPECT_EQ(got.lse.sizes(), at::IntArrayRef({5, 4}));
  EXPECT_EQ(got.lse.scalar_type(), at::kFloat);
}

TEST(AttentionInputs, OfWrongShapesAreNamed) {
  const Tensor q = at::zeros({3, 4, 8}), k = at::zeros({5, 4, 8});
  expect_error(ErrorKind::kInternal, "[3, 4, 8], [5, 4, 8], [6, 4, 8]", [&] {
    ops::attention(q, k, at::zeros({6, 4, 8}));
  });
  expect_error(ErrorKind::kInternal, "multiple of key heads", [&] {
    ops::attention(q, at::zeros({5, 3, 8}), at::zeros({5, 3, 8}));
  });
  expect_error(ErrorKind::kInternal, "one dtype", [&] { ops::attention(q, k.to(at::kBFloat16), k); });
  expect_error(ErrorKind::kInternal, "contiguous last", [&] {
    ops::attention(at::zeros({3, 8, 4}).transpose(1, 2), k, k);
  });
}

TEST(AttentionMerge, OfDisjointKeysIsTheWhole) {
  const Inputs in({45, 300, 3, 3, 40, false}, at::kFloat);
  const auto part = [&](int64_t begin, int64_t end) {
    return ops::partial_attention(in.q, in.k.slice(0, begin, end), in.v.slice(0, begin, end));
  };
  const auto whole = part(0, 300);
  auto sum = part(110, 290);
  ops::merge(sum, part(0, 110));
  ops::merge(sum, part(290, 300));
  EXPECT_LE(distance(sum.lse, whole.lse), 1e-6);
  EXPECT_LE(distance(sum.out, whole.out), 1e-6);
}

TEST(AttentionMerge, OfScoresFarApartStaysFinite) {
  const Inputs in({20, 8, 2, 2, 16, false}, at::kFloat);
  const auto loud = ops::partial_attention(in.q, in.q.slice(0, 0, 8) * 1e4, in.v);
  for (const bool loud_first : {false, true}) {
    const auto quiet = ops::partial_attention(in.q, in.k * 1e-4, in.v);
    auto sum = loud_first ? loud : quiet;
    sum.out = sum.out.clone();  // merge overwrites it
    ops::merge(sum, loud_first ? quiet : loud);
    EXPECT_TRUE(sum.out.isfinite().all().item<bool>());
    const Tensor heard = (loud.lse > 100).unsqueeze(-1);  // there nothing of the other is left
    EXPECT_TRUE(heard.any().item<bool>());
    EXPECT_TRUE(at::equal(sum.out * heard, loud.out * heard));
  }
}

TEST(AttentionMerge, IgnoresSidesWithoutKeys) {
  const Inputs in({5, 7, 2, 2, 16, false}, at::kFloat);
  const auto some = ops::partial_attention(in.q, in.k, in.v);
  const auto none = ops::partial_attention(in.q, at::empty({0, 2, 16}), at::empty({0, 2, 16}));
  const auto copy = [](const ops::PartialAttention& p) {
    return ops::PartialAttention{p.out.clone(), p.lse};
  };
  auto right = copy(some), left = copy(none), nothing = copy(none);  // merge overwrites
  ops::merge(right, none);
  ops::merge(left, some);
  ops::merge(nothing, none);
  EXPECT_TRUE(at::equal(right.out, some.out));
  EXPECT_TRUE(at::equal(left.out, some.out));
  EXPECT_TRUE(at::equal(right.lse, some.lse));
  EXPECT_TRUE(at::equal(nothing.out, none.out));
  EXPECT_TRUE(nothing.lse.isneginf().all().item<bool>());
}

TEST(AttentionMerge, OfBFloat16IsFloat32) {
  const Inputs in({30, 40, 2, 2, 16, false}, at::kBFloat16);
  auto sum = ops::partial_attention(in.q, in.k.slice(0, 0, 9), in.v.slice(0, 0, 9));
  ops::merge(sum, ops::partial_attention(in.q, in.k.slice(0, 9), in.v.slice(0, 9)));
  EXPECT_EQ(sum.out.scalar_type(), at::kFloat);
  EXPECT_LE(distance(sum.out, in_double(in, false).out), 2 * rounding(at::kBFloat16));
}

TEST(AttentionScores, MayBeHuge) {
  const Tensor q = at::randn({20, 1, 64}) * 1e3, k = at::randn({900, 1, 64}) * 1e3,
               v = at::randn({900, 1, 64});
  const auto got = ops::partial_attention(q, k, v);
  const auto best = at::matmul(wide(q).squeeze(1), wide(k).squeeze(1).t()).argmax(-1);
  EXPECT_TRUE(at::equal(got.out.squeeze(1), v.squeeze(1).index_select(0, best)));  // all weight on one key
  EXPECT_TRUE(got.lse.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace orrery::testing
