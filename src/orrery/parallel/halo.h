#pragma once
#include "orrery/base/tensor.h"
#include "orrery/comm/group.h"
#include "orrery/comm/split.h"

namespace orrery::parallel {

/// The rows of a picture, shared by the ranks of a group: a contiguous run for each (comm::split), cut at the
/// picture's coarsest resolution. At a resolution `scale` times as fine a rank has `scale` times as many
/// rows, so that whatever halves or doubles the rows stays within a rank. Ranks beyond the number of rows
/// have none: they make the same calls with empty tensors, and nothing is sent to them or by them. A group of
/// one has all rows, and no call here does anything.
///
/// Every rank of the group makes the same calls in the same order.
class Rows {
 public:
  /// count: of the coarsest resolution. No group: this rank has all rows. The group outlives the object.
  explicit Rows(int64_t count, comm::Group* group = nullptr) : count_(count), group_(group) {}

  /// This rank's rows.
  comm::Range own(int64_t scale = 1) const;

  /// Fills the border of a convolution's input [F, above + rows + below, W, C], above and below 0 or 1: its
  /// first and last rows become the neighbours' last and first. At the picture's edges they stay as they are.
  /// One exchange, none for a border of 0. The input is given away: nobody writes to its rows afterwards.
  void fill_border(const Tensor& input, int64_t above, int64_t below) const;

  /// The rows of all ranks, joined along `dim`, on every rank.
  Tensor gather(const Tensor& rows, int64_t dim, int64_t scale = 1) const;

  /// The same on the group's first rank; undefined on the others.
  Tensor gather_to_first(const Tensor& rows, int64_t dim, int64_t scale = 1) const;

 private:
  bool shared() const { return group_ && group_->size() > 1; }
  std::vector<int64_t> sizes(int64_t scale) const;

  int64_t count_;
  comm::Group* group_;
};

}  // namespace orrery::parallel
