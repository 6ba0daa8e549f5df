#include "orrery/ops/cpu/gemm.h"

#include <ATen/Parallel.h>

#include "orrery/ops/cpu/buffer.h"
#include "orrery/ops/cpu/pack.h"
#include "orrery/ops/cpu/rows.h"
#include "orrery/ops/cpu/tile.h"

namespace orrery::ops::cpu {
namespace {

constexpr int kPanelsAtOnce = 4;  // column panels that a thread packs together: 4·48·384 floats, 0.3 MB
constexpr int64_t kPackedFloats = int64_t{8} << 20;    // the most of x that is packed at a time, 32 MB
constexpr int64_t kMostRows = 2048, kFewestRows = 64;  // for which a panel of w is packed once

/// What the threads share while they compute rows [first, first + rows) of the result.
struct Job {
  Matrix x, w;
  int64_t depth;
  const float* bias;
  Activation activation;
  void* y;
  at::ScalarType y_dtype;
  int64_t first, rows;
  float* packed;   // x: for each block of depth, for each kPanelRows rows, [block][kPanelRows]
  int64_t splits;  // the column panels are given out `splits` times, each time for another part of the rows

  int64_t row_panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  float* packed_panel(int64_t k, int64_t panel) const {
    return packed + k * row_panels() * kPanelRows + panel * std::min(kDepthBlock, depth - k) * kPanelRows;
  }
};

template <class T>
ORRERY_INLINE void pack_matrix(const Matrix& m, int64_t row, int64_t rows, int64_t k, int64_t depth,
                               float* to, int64_t width) {
  pack(static_cast<const T*>(m.data) + row * m.stride + k, m.stride, rows, depth, to, width);
}

ORRERY_INLINE void pack_any(const Matrix& m, int64_t row, int64_t rows, int64_t k, int64_t depth, float* to,
                            int64_t width) {
  if (m.dtype == at::kFloat) return pack_matrix<float>(m, row, rows, k, depth, to, width);
  if (m.dtype == at::kBFloat16) return pack_matrix<c10::BFloat16>(m, row, rows, k, depth, to, width);
  pack_matrix<c10::Half>(m, row, rows, k, depth, to, width);
}

struct PackRows {
  template <int W>
  static ORRERY_INLINE void run(const Job* job, int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel)
      for (int64_t k = 0; k < job->depth; k += kDepthBlock)
        pack_any(job->x, job->first + panel * kPanelRows,
                 std::min<int64_t>(kPanelRows, job->rows - panel * kPanelRows), k,
                 std::min(kDepthBlock, job->depth - k), job->packed_panel(k, panel), kPanelRows);
  }
};

template <int W>
ORRERY_INLINE Floats<W> activate(const Floats<W>& v, Activation activation) {
  if (activation == Activation::kGelu) return 0.5f * v * (1.0f + erf<W>(v * 0.70710678f));
  // 0.5·(1 + tanh(u)) = sigmoid(2u), which keeps its accuracy where the sum cancels.
  if (activation == Activation::kGeluTanh) return v * sigmoid<W>(1.59576912f * (v + 0.044715f * v * v * v));
  if (activation == Activation::kSilu) return v * sigmoid<W>(v);
  return v;
}

template <int W, class T>
ORRERY_INLINE void finish(const Job& job, const float* sums, int64_t sums_stride, int64_t row, int64_t rows,
                          int64_t column, int64_t columns) {
  const int64_t width = job.w.rows;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; j += W) {
      Floats<W> v = load<W>(sums + r * sums_stride + j, columns - j);
      if (job.bias) v += load<W>(job.bias + column + j, columns - j);
      store<W>(static_cast<T*>(job.y) + (job.first + row + r) * width + column + j,
               activate<W>(v, job.activation), columns - j);
    }
}

struct Multiply {
  /// Units [begin, end) of splits × column panels.
  template <int W>
  static ORRERY_INLINE void run(const Job* job, int64_t begin, int64_t end) {
    constexpr int64_t kColumns = kPanelColumns<W>;
    const int64_t panels = (job->w.rows + kColumns - 1) / kColumns;
    while (begin < end) {
      const int64_t split = begin / panels, panel = begin % panels;
      const int64_t count = std::min<int64_t>({kPanelsAtOnce, panels - panel, end - begin});
      const int64_t parts = job->row_panels();
      columns<W>(*job, panel * kColumns, std::min(count * kColumns, job->w.rows - panel * kColumns),
                 parts * split / job->splits, parts * (split + 1) / job->splits);
      begin += count;
    }
  }

  /// Columns [column, column + columns) for row panels [from, to).
  template <int W>
  static ORRERY_INLINE void columns(const Job& job, int64_t column, int64_t columns, int64_t from,
                                    int64_t to) {
    constexpr int64_t kColumns = kPanelColumns<W>, kWidth = kPanelsAtOnce * kColumns;
    static thread_local Buffer buffer;
    const int64_t rows = (to - from) * kPanelRows;
    float* const weights = buffer.floats(kWidth * (std::min(kDepthBlock, job.depth) + rows));
    float* const sums = weights + kWidth * std::min(kDepthBlock, job.depth);
    for (int64_t k = 0; k < job.depth; k += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, job.depth - k);
      for (int64_t j = 0; j < columns; j += kColumns)
        pack_any(job.w, column + j, std::min(kColumns, columns - j), k, depth, weights + j * depth, kColumns);
      for (int64_t panel = from; panel < to; ++panel) {
        float* const c = sums + (panel - from) * kPanelRows * kWidth;
        for (int64_t j = 0; j < columns; j += kColumns)
          tile<W, 1, kPanelRows>(static_cast<int>((std::min(kColumns, columns - j) + W - 1) / W), depth,
                                 job.packed_panel(k, panel), weights + j * depth, kColumns, c + j, kWidth,
                                 k > 0);
        if (k + depth < job.depth) continue;
        const int64_t row = panel * kPanelRows, count = std::min<int64_t>(kPanelRows, job.rows - row);
        if (job.y_dtype == at::kFloat)
          finish<W, float>(job, c, kWidth, row, count, column, columns);
        else
          finish<W, c10::BFloat16>(job, c, kWidth, row, count, column, columns);
      }
    }
  }
};

}  // namespace

void gemm(const Matrix& x, const Matrix& w, int64_t depth, const float* bias, Activation activation, void* y,
          at::ScalarType y_dtype) {
  static thread_local Buffer buffer;
  const int64_t most_rows =
      std::clamp<int64_t>(kPackedFloats / depth / kPanelRows * kPanelRows, kFewestRows, kMostRows);
  const int64_t panel_columns = isa() == Isa::kAvx512 ? kPanelColumns<16>
                                : isa() == Isa::kAvx2 ? kPanelColumns<8>
                                                      : kPanelColumns<4>;
  const int64_t panels = (w.rows + panel_columns - 1) / panel_columns;
  for (int64_t first = 0; first < x.rows; first += most_rows) {
    Job job{x,       w, depth, bias, activation, y, y_dtype, first, std::min(most_rows, x.rows - first),
            nullptr, 1};
    job.packed = buffer.floats(job.row_panels() * kPanelRows * depth);
    // Enough units that the last thread to finish has at most an eighth more than the others.
    const int64_t wanted = (8 * at::get_num_threads() + panels - 1) / panels;
    job.splits = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, job.rows / kFewestRows));
    const int64_t flops = 2 * job.rows * w.rows * depth;
    // Packing touches each element of x once where the product takes 2·N flops with it, and parallelises or
    // not with it.
    at::parallel_for(0, job.row_panels(), grain(flops / job.row_panels()),
                     [&](int64_t begin, int64_t end) { run_for_isa<PackRows>(&job, begin, end); });
    at::parallel_for(0, job.splits * panels, grain(flops / (job.splits * panels)),
                     [&](int64_t begin, int64_t end) { run_for_isa<Multiply>(&job, begin, end); });
  }
}

}  // namespace orrery::ops::cpu
