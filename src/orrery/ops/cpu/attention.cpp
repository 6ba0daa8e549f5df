// FlashAttention-2 (T. Dao, 2023, algorithm 1) for float32 registers: a tile of eight queries meets one block
// of keys at a time.
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <limits>

#include "orrery/ops/attention.h"
#include "orrery/ops/cpu/buffer.h"
#include "orrery/ops/cpu/pack.h"
#include "orrery/ops/cpu/rows.h"
#include "orrery/ops/cpu/tile.h"

namespace orrery::ops::cpu {
namespace {

constexpr int kRows = kPanelRows;  // queries in a tile
constexpr int64_t kKeyBlock =
    384;  // keys met at a time: part of the definition, since sums are taken by blocks
constexpr int64_t kTilesAtOnce = 64;  // tiles that share a packed block of keys and values

struct Strided {
  const void* data;
  int64_t row, head;  // strides in elements
};

struct Job {
  Strided q, k, v;
  at::ScalarType dtype;
  int64_t queries, keys, heads, key_heads, width;
  float scale;  // to base 2: softmax(x) is taken as 2^(x·log2 e)
  bool causal;
  void* out;
  float* lse;

  int64_t tiles_per_head() const { return (queries + kRows - 1) / kRows; }
  /// Keys that query i sees.
  int64_t visible(int64_t i) const {
    return causal ? std::clamp<int64_t>(i + keys - queries + 1, 0, keys) : keys;
  }
};

/// What a thread keeps for the tiles that it works on, and the block of keys and values that they share.
struct Scratch {
  float *queries, *out, *largest, *sums;  // per tile: [width][kRows], [kRows][padded], [kRows], [kRows]
  float *keys, *values, *scores;  // panels of [width][columns], [kKeyBlock][padded], [kRows][kKeyBlock]
  int64_t padded;                 // width, rounded up to whole vectors
};

template <int W>
ORRERY_INLINE Scratch carve(Buffer& buffer, int64_t width) {
  constexpr int64_t kColumns = kPanelColumns<W>;
  const int64_t padded = (width + W - 1) / W * W, columns = (kKeyBlock + kColumns - 1) / kColumns * kColumns;
  float* next = buffer.floats(kTilesAtOnce * kRows * (width + padded + 2) + columns * width +
                              kKeyBlock * padded + kRows * columns);
  Scratch s;
  s.padded = padded;
  s.queries = std::exchange(next, next + kTilesAtOnce * kRows * width);
  s.out = std::exchange(next, next + kTilesAtOnce * kRows * padded);
  s.largest = std::exchange(next, next + kTilesAtOnce * kRows);
  s.sums = std::exchange(next, next + kTilesAtOnce * kRows);
  s.keys = std::exchange(next, next + columns * width);
  s.values = std::exchange(next, next + kKeyBlock * padded);
  s.scores = next;
  return s;
}

template <class T>
struct Attend {
  /// Tiles [begin, end) of heads × tiles_per_head(): neighbours share their keys.
  template <int W>
  static ORRERY_INLINE void run(const Job* job, int64_t begin, int64_t end) {
    static thread_local Buffer buffer;
    const Scratch s = carve<W>(buffer, job->width);
    const int64_t per_key_head = job->heads / job->key_heads * job->tiles_per_head();
    while (begin < end) {
      const int64_t key_head = begin / per_key_head;
      const int64_t count = std::min({end - begin, kTilesAtOnce, (key_head + 1) * per_key_head - begin});
      some_tiles<W>(*job, s, key_head, begin, count);
      begin += count;
    }
  }

  template <int W>
  static ORRERY_INLINE void some_tiles(const Job& job, const Scratch& s, int64_t key_head, int64_t first,
                                       int64_t count) {
    int64_t keys = 0;  // that any of these tiles sees
    for (int64_t t = 0; t < count; ++t) {
      const int64_t head = (first + t) / job.tiles_per_head(),
                    query = (first + t) % job.tiles_per_head() * kRows;
      const int64_t rows = std::min<int64_t>(kRows, job.queries - query);
      keys = std::max(keys, job.visible(query + rows - 1));
      float* const packed = s.queries + t * kRows * job.width;
      pack(static_cast<const T*>(job.q.data) + query * job.q.row + head * job.q.head, job.q.row, rows,
           job.width, packed, kRows);
      for (int64_t i = 0; i < kRows * job.width; i += W)
        store<W>(packed + i, load<W>(packed + i, kRows * job.width - i) * job.scale, kRows * job.width - i);
      std::fill_n(s.out + t * kRows * s.padded, kRows * s.padded, 0.0f);
      std::fill_n(s.largest + t * kRows, kRows, -std::numeric_limits<float>::infinity());
      std::fill_n(s.sums + t * kRows, kRows, 0.0f);
    }
    for (int64_t key = 0; key < keys; key += kKeyBlock) {
      const int64_t block = std::min(kKeyBlock, keys - key);
      pack_keys<W>(job, s, key_head, key, block);
      for (int64_t t = 0; t < count; ++t)
        one_tile<W>(job, s, t, (first + t) % job.tiles_per_head() * kRows, key, block);
    }
    for (int64_t t = 0; t < count; ++t)
      finish<W>(job, s, t, (first + t) / job.tiles_per_head(), (first + t) % job.tiles_per_head() * kRows);
  }

  template <int W>
  static ORRERY_INLINE void pack_keys(const Job& job, const Scratch& s, int64_t head, int64_t key,
                                      int64_t block) {
    constexpr int64_t kColumns = kPanelColumns<W>;
    const T* const k = static_cast<const T*>(job.k.data) + key * job.k.row + head * job.k.head;
    for (int64_t j = 0; j < block; j += kColumns)
      pack(k + j * job.k.row, job.k.row, std::min(kColumns, block - j), job.width, s.keys + j * job.width,
           kColumns);
    const T* const v = static_cast<const T*>(job.v.data) + key * job.v.row + head * job.v.head;
    for (int64_t i = 0; i < block; ++i)
      for (int64_t j = 0; j < job.width; j += W)
        store<W>(s.values + i * s.padded + j, load<W>(v + i * job.v.row + j, job.width - j));
  }

  /// Lets tile t (queries from `query`) see keys [key, key + block), which are packed.
  template <int W>
  static ORRERY_INLINE void one_tile(const Job& job, const Scratch& s, int64_t t, int64_t query, int64_t key,
                                     int64_t block) {
    constexpr int64_t kColumns = kPanelColumns<W>;
    constexpr int kStride = static_cast<int>((kKeyBlock + kColumns - 1) / kColumns * kColumns);
    const int64_t seen = std::min(block, job.visible(std::min(query + kRows, job.queries) - 1) - key);
    if (seen <= 0) return;
    for (int64_t j = 0; j < seen; j += kColumns)
      tile<W, 1, kRows>(static_cast<int>((std::min(kColumns, seen - j) + W - 1) / W), job.width,
                        s.queries + t * kRows * job.width, s.keys + j * job.width, kColumns, s.scores + j,
                        kStride, false);
    float* const out = s.out + t * kRows * s.padded;
    for (int r = 0; r < kRows; ++r)
      soften<W>(s.scores + r * kStride, std::min(seen, job.visible(query + r) - key), seen,
                s.largest + t * kRows + r, s.sums + t * kRows + r, out + r * s.padded, s.padded);
    for (int64_t j = 0; j < s.padded; j += kColumns)
      tile<W, kStride, 1>(static_cast<int>(std::min(kColumns, s.padded - j) / W), seen, s.scores,
                          s.values + j, s.padded, out + j, s.padded, true);
  }

  /// Turns one query's scores into weights relative to the largest score so far, and brings what was summed
  /// before to that scale. Of `seen` scores the first `own` count; a block without any changes nothing.
  template <int W>
  static ORRERY_INLINE void soften(float* scores, int64_t own, int64_t seen, float* largest_so_far,
                                   float* sum_so_far, float* out, int64_t padded) {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    for (int64_t j = std::max<int64_t>(own, 0); j < (seen + W - 1) / W * W; ++j) scores[j] = kNone;
    Floats<W> most = load<W>(scores);
    for (int64_t j = W; j < seen; j += W) most = larger<W>(most, load<W>(scores + j));
    const float before = *largest_so_far, now = std::max(before, largest<W>(most));
    const float base = now == kNone ? 0 : now;
    Floats<W> total = {};
    for (int64_t j = 0; j < seen; j += W) {
      const Floats<W> weight = exp2<W>(load<W>(scores + j) - base);
      store<W>(scores + j, weight);
      total += weight;
    }
    const Floats<W> change = exp2<W>(Floats<W>{} + before - base);
    *largest_so_far = now;
    *sum_so_far = *sum_so_far * change[0] + sum<W>(total);
    for (int64_t j = 0; j < padded; j += W) store<W>(out + j, load<W>(out + j) * change);
  }

  template <int W>
  static ORRERY_INLINE void finish(const Job& job, const Scratch& s, int64_t t, int64_t head, int64_t query) {
    for (int64_t r = 0; r < std::min<int64_t>(kRows, job.queries - query); ++r) {
      const float total = s.sums[t * kRows + r], inverse = total > 0 ? 1 / total : 0;
      const int64_t row = (query + r) * job.heads + head;
      const float* const from = s.out + (t * kRows + r) * s.padded;
      for (int64_t j = 0; j < job.width; j += W)
        store<W>(static_cast<T*>(job.out) + row * job.width + j, load<W>(from + j) * inverse, job.width - j);
      job.lse[row] = (s.largest[t * kRows + r] + std::log2(total)) * 0.69314718f;
    }
  }
};

Strided strided(const Tensor& t) { return {t.const_data_ptr(), t.stride(0), t.stride(1)}; }

/// libtorch's kernel for bfloat16 hardware. Its bits depend on the number of queries.
std::tuple<Tensor, Tensor> by_library(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                                      bool causal) {
  const int64_t repeat = q.size(1) / k.size(1);
  const auto as_batch = [](const Tensor& t) { return t.transpose(0, 1).unsqueeze(0); };  // [1, N, S, D]
  const auto keys = repeat == 1 ? k : k.repeat_interleave(repeat, 1),
             values = repeat == 1 ? v : v.repeat_interleave(repeat, 1);
  auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(as_batch(q), as_batch(keys),
                                                                    as_batch(values), 0.0, causal, {}, scale);
  return {out.squeeze(0).transpose(0, 1).contiguous(), lse.squeeze(0).transpose(0, 1).contiguous()};
}

std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                                     bool causal) {
  // The library aligns its causal mask at the first key, so it serves squares only.
  if (q.scalar_type() == at::kBFloat16 && has_fast_bfloat16() && (!causal || q.size(0) == k.size(0)))
    return by_library(q, k, v, scale, causal);
  Tensor out = at::empty(q.sizes(), q.options()),
         lse = at::empty({q.size(0), q.size(1)}, q.options().dtype(at::kFloat));
  constexpr double kLog2E = 1.4426950408889634;
  const Job job{strided(q),
                strided(k),
                strided(v),
                q.scalar_type(),
                q.size(0),
                k.size(0),
                q.size(1),
                k.size(1),
                q.size(2),
                static_cast<float>(scale * kLog2E),
                causal,
                out.data_ptr(),
                lse.data_ptr<float>()};
  const int64_t flops_per_tile = 4 * kRows * job.keys * job.width;
  at::parallel_for(0, job.heads * job.tiles_per_head(), grain(flops_per_tile),
                   [&](int64_t begin, int64_t end) {
                     if (job.dtype == at::kFloat) return run_for_isa<Attend<float>>(&job, begin, end);
                     run_for_isa<Attend<c10::BFloat16>>(&job, begin, end);
                   });
  return {out, lse};
}

}  // namespace
}  // namespace orrery::ops::cpu

TORCH_LIBRARY_IMPL(orrery, CPU, m) { m.impl("attention", TORCH_FN(orrery::ops::cpu::attention)); }
