// Blocks of tiles are carried through the three stages by one thread: transform to the 4×4 domain, one matrix
// product for each of its 16 points, transform back. A block's intermediate values stay in the thread's
// cache. The products sum over temporal taps and channels in one fixed order for every row, so neither the
// block nor the thread count shows in the bits.
#include "orrery/ops/conv_winograd.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "orrery/ops/cpu/buffer.h"
#include "orrery/ops/cpu/isa.h"
#include "orrery/ops/cpu/lanes.h"
#include "orrery/ops/cpu/rows.h"

namespace orrery::ops::cpu {
namespace {

constexpr int64_t kPoints = 16;     // of the 4×4 domain
constexpr int64_t kPanel = 16;      // output channels whose weights lie together
constexpr int64_t kRowStep = 12;    // a multiple of every target's kRows
constexpr int64_t kBlockRows = 96;  // tiles × frames of a block: enough work for each read of the weights

/// How much of a product is kept in registers: kRows × kVectors vectors, the rest for one row of weights and
/// an input value.
template <int W>
struct Registers;
template <>
struct Registers<16> {
  static constexpr int kRows = 12, kVectors = 2;
};
template <>
struct Registers<8> {
  static constexpr int kRows = 6, kVectors = 2;
};
template <>
struct Registers<4> {
  static constexpr int kRows = 2, kVectors = 4;
};

/// What the stages of one call share.
struct Job {
  const float *x, *weight, *bias;
  float* y;
  int64_t frames, taps, rows, columns;  // of the output
  int64_t in, out;                      // channels
  bool add;

  int64_t tile_columns() const { return columns / 2; }
  int64_t tiles() const { return rows / 2 * tile_columns(); }
  int64_t past_and_frames() const { return frames + taps - 1; }
};

/// A thread's block: `spectrum` [16, frames + taps − 1, tiles, in] and `product` [16, frames, tiles, out].
/// Each of the 16 parts is followed by kRowStep rows of undefined content, which the last step of a product
/// may read and write.
struct Block {
  int64_t first, tiles;
  float *spectrum, *product;
  int64_t spectrum_stride, product_stride;
};

/// Bᵀ d of four vectors: (d₀ − d₂, d₁ + d₂, d₂ − d₁, d₁ − d₃).
template <int W>
ORRERY_INLINE void forward(Floats<W>& a, Floats<W>& b, Floats<W>& c, Floats<W>& d) {
  const Floats<W> first = a - c, second = b + c, third = c - b, fourth = b - d;
  a = first, b = second, c = third, d = fourth;
}

/// One tile's 4×4 pixels of x, whose strides are `channels` and `row`.
struct TransformTile {
  template <int W>
  static ORRERY_INLINE void run(const float* x, int64_t channels, int64_t row, float* out, int64_t point) {
    for (int64_t c = 0; c < channels; c += W) {
      Floats<W> d[4][4];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) d[i][j] = load<W>(x + i * row + j * channels + c);
      for (int j = 0; j < 4; ++j) forward<W>(d[0][j], d[1][j], d[2][j], d[3][j]);
      for (int i = 0; i < 4; ++i) forward<W>(d[i][0], d[i][1], d[i][2], d[i][3]);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) store<W>(out + (4 * i + j) * point + c, d[i][j]);
    }
  }
};

/// Aᵀ m A of one tile, + bias, into its 2×2 pixels of y, whose strides are `channels` and `row`.
struct RestoreTile {
  template <int W>
  static ORRERY_INLINE void run(const float* product, int64_t point, const float* bias, float* y,
                                int64_t channels, int64_t row, bool add) {
    for (int64_t c = 0; c < channels; c += W) {
      Floats<W> m[4][4], half[2][4];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) m[i][j] = load<W>(product + (4 * i + j) * point + c);
      for (int j = 0; j < 4; ++j) {
        half[0][j] = m[0][j] + m[1][j] + m[2][j];
        half[1][j] = m[1][j] - m[2][j] - m[3][j];
      }
      const Floats<W> offset = load<W>(bias + c);
      for (int i = 0; i < 2; ++i) {
        float* to = y + i * row + c;
        Floats<W> left = half[i][0] + half[i][1] + half[i][2] + offset;
        Floats<W> right = half[i][1] - half[i][2] - half[i][3] + offset;
        if (add) left += load<W>(to), right += load<W>(to + channels);
        store<W>(to, left);
        store<W>(to + channels, right);
      }
    }
  }
};

/// out[kRows, kVectors · W] = Σ over taps and depth of a[tap · a_tap + row · depth + k] · weight[tap · w_tap
/// + …]; vector v's weights are part v·W mod 16 of panel v·W div 16.
template <int W, int kRows, int kVectors>
ORRERY_INLINE void multiply_step(const float* a, int64_t a_tap, const float* weight, int64_t w_tap,
                                 int64_t w_panel, int64_t taps, int64_t depth, float* out, int64_t out_row) {
  Floats<W> sums[kRows][kVectors] = {};
  for (int64_t tap = 0; tap < taps; ++tap, a += a_tap, weight += w_tap)
    for (int64_t k = 0; k < depth; ++k) {
      Floats<W> w[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        w[v] = load<W>(weight + v * W / kPanel * w_panel + k * kPanel + v * W % kPanel);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const float value = a[r * depth + k];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[r][v] += value * w[v];
      }
    }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store<W>(out + r * out_row + v * W, sums[r][v]);
}

/// A block's 16 matrix products.
struct Multiply {
  template <int W>
  static ORRERY_INLINE void run(const Job* job, const Block* block) {
    constexpr int kRows = Registers<W>::kRows, kVectors = Registers<W>::kVectors;
    constexpr int64_t kPanels = kVectors * W / kPanel,
                      kRest = kPanel / W;  // kRest vectors: an odd last panel
    const int64_t rows = block->tiles * job->frames, panels = job->out / kPanel;
    const int64_t w_panel = job->in * kPanel, w_point = panels * w_panel, w_tap = kPoints * w_point;
    const int64_t a_tap = block->tiles * job->in;
    for (int64_t point = 0; point < kPoints; ++point) {
      const float* weight = job->weight + point * w_point;
      for (int64_t panel = 0; panel < panels; panel += kPanels)
        for (int64_t row = 0; row < rows; row += kRows) {
          const float* a = block->spectrum + point * block->spectrum_stride + row * job->in;
          const float* w = weight + panel * w_panel;
          float* to = block->product + point * block->product_stride + row * job->out + panel * kPanel;
          if (panel + kPanels <= panels)
            multiply_step<W, kRows, kVectors>(a, a_tap, w, w_tap, w_panel, job->taps, job->in, to, job->out);
          else
            multiply_step<W, kRows, kRest>(a, a_tap, w, w_tap, w_panel, job->taps, job->in, to, job->out);
        }
    }
  }
};

void transform(const Job& job, const Block& block) {
  const int64_t row = (job.columns + 2) * job.in, frame = (job.rows + 2) * row;
  for (int64_t f = 0; f < job.past_and_frames(); ++f)
    for (int64_t i = 0; i < block.tiles; ++i) {
      const int64_t tile = block.first + i, top = tile / job.tile_columns() * 2,
                    left = tile % job.tile_columns() * 2;
      run_for_isa<TransformTile>(job.x + f * frame + top * row + left * job.in, job.in, row,
                                 block.spectrum + (f * block.tiles + i) * job.in, block.spectrum_stride);
    }
}

void restore(const Job& job, const Block& block) {
  const int64_t row = job.columns * job.out, frame = job.rows * row;
  for (int64_t f = 0; f < job.frames; ++f)
    for (int64_t i = 0; i < block.tiles; ++i) {
      const int64_t tile = block.first + i, top = tile / job.tile_columns() * 2,
                    left = tile % job.tile_columns() * 2;
      run_for_isa<RestoreTile>(static_cast<const float*>(block.product + (f * block.tiles + i) * job.out),
                               block.product_stride, job.bias, job.y + f * frame + top * row + left * job.out,
                               job.out, row, job.add);
    }
}

/// Tiles of a block: about kBlockRows rows for the products, and equal shares for the threads.
int64_t block_tiles(const Job& job) {
  const int64_t largest = std::max<int64_t>(1, kBlockRows / job.frames), threads = at::get_num_threads();
  const int64_t rounds = (job.tiles() + threads * largest - 1) / (threads * largest);
  return (job.tiles() + threads * rounds - 1) / (threads * rounds);
}

void conv_winograd_cpu(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias, bool add) {
  const Tensor offsets = bias.contiguous();
  const Job job{x.const_data_ptr<float>(),
                weight.const_data_ptr<float>(),
                offsets.const_data_ptr<float>(),
                y.mutable_data_ptr<float>(),
                y.size(0),
                weight.size(0),
                y.size(1),
                y.size(2),
                x.size(3),
                y.size(3),
                add};
  const int64_t tiles = block_tiles(job);
  const int64_t spectrum_stride = (job.past_and_frames() * tiles + kRowStep) * job.in;
  const int64_t product_stride = (job.frames * tiles + kRowStep) * job.out;
  const int64_t flops = 2 * kPoints * tiles * job.frames * job.taps * job.in * job.out;
  at::parallel_for(0, (job.tiles() + tiles - 1) / tiles, grain(flops), [&](int64_t begin, int64_t end) {
    static thread_local Buffer buffer;
    float* spectrum = buffer.floats(kPoints * (spectrum_stride + product_stride));
    float* product = spectrum + kPoints * spectrum_stride;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * tiles;
      const Block block{
          first, std::min(tiles, job.tiles() - first), spectrum, product, spectrum_stride, product_stride};
      transform(job, block);
      run_for_isa<Multiply>(&job, &block);
      restore(job, block);
    }
  });
}

/// G w Gᵀ of a panel's kernels for one input channel and tap: `weight` strides over output channels, `out`
/// over the points.
void transform_kernels(const float* weight, int64_t stride, float* out, int64_t point) {
  double columns[4][3][kPanel];  // G w
  for (int64_t j = 0; j < 3; ++j)
    for (int64_t o = 0; o < kPanel; ++o) {
      const float* w = weight + o * stride + j;
      const double first = w[0], half = .5 * w[0], mid = .5 * w[3], last = w[6];
      columns[0][j][o] = first;
      columns[1][j][o] = half + mid + .5 * last;
      columns[2][j][o] = half - mid + .5 * last;
      columns[3][j][o] = last;
    }
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t o = 0; o < kPanel; ++o) {
      const double first = columns[i][0][o], half = .5 * first, mid = .5 * columns[i][1][o],
                   last = columns[i][2][o];
      float* to = out + 4 * i * point + o;
      to[0] = static_cast<float>(first);
      to[point] = static_cast<float>(half + mid + .5 * last);
      to[2 * point] = static_cast<float>(half - mid + .5 * last);
      to[3 * point] = static_cast<float>(last);
    }
}

Tensor winograd_weight_cpu(const Tensor& weight) {
  const Tensor kernels = weight.contiguous();
  const int64_t panels = kernels.size(0) / kPanel, in = kernels.size(1), taps = kernels.size(2);
  const Tensor domain = at::empty({taps, kPoints, panels, in, kPanel}, kernels.options());
  const float* from = kernels.const_data_ptr<float>();
  float* to = domain.mutable_data_ptr<float>();
  const int64_t stride = in * taps * 9, point = panels * in * kPanel;
  at::parallel_for(0, panels * in, row_grain(taps * kPoints * kPanel), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t tap = 0; tap < taps; ++tap)
        transform_kernels(from + i / in * kPanel * stride + (i % in * taps + tap) * 9, stride,
                          to + tap * kPoints * point + i * kPanel, point);
  });
  return domain;
}

}  // namespace
}  // namespace orrery::ops::cpu

TORCH_LIBRARY_IMPL(orrery, CPU, m) {
  m.impl("winograd_weight", TORCH_FN(orrery::ops::cpu::winograd_weight_cpu));
  m.impl("conv_winograd", TORCH_FN(orrery::ops::cpu::conv_winograd_cpu));
}
