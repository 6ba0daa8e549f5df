#include "orrery/parallel/halo.h"

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/comm/collectives.h"

namespace orrery::parallel {

comm::Range Rows::own(int64_t scale) const {
  const comm::Range rows =
      shared() ? comm::split(count_, group_->size(), group_->rank()) : comm::Range{0, count_};
  return {rows.begin * scale, rows.end * scale};
}

void Rows::fill_border(const Tensor& input, int64_t above, int64_t below) const {
  if (!shared() || (above == 0 && below == 0)) return;
  const int64_t rows = input.size(1) - above - below;
  ensure(std::max(above, below) == 1 && std::min(above, below) >= 0 && rows >= 0,
         "fill_border: expected a border of 0 or 1 rows within ", input.sizes(), ", got ", above, " and ",
         below);
  ensure((rows == 0) == (own().size() == 0), "fill_border: expected an input of this rank's rows, got ", rows,
         " where it has ", own().size());
  const auto size = static_cast<size_t>(group_->size()), self = static_cast<size_t>(group_->rank());
  const auto row = [&](int64_t i) { return input.narrow(1, i, 1); };
  std::vector<comm::Message> to(size);
  std::vector<comm::Extents> from(size);
  // The ranks with rows come first; the next one has some if the rows do not end here.
  const bool first = self == 0 || rows == 0, last = rows == 0 || own().end == count_;
  const TensorSpec spec{{input.size(0), 1, input.size(2), input.size(3)}, input.scalar_type()};
  if (!first && below == 1) to[self - 1] = {row(above)};
  if (!last && above == 1) to[self + 1] = {row(above + rows - 1)};
  if (!first && above == 1) from[self - 1] = {spec};
  if (!last && below == 1) from[self + 1] = {spec};
  const auto messages = group_->exchange(std::move(to), from)->wait();
  if (!first && above == 1) row(0).copy_(messages[self - 1][0]);
  if (!last && below == 1) row(above + rows).copy_(messages[self + 1][0]);
}

std::vector<int64_t> Rows::sizes(int64_t scale) const {
  auto sizes = comm::split_sizes(count_, group_->size());
  for (int64_t& size : sizes) size *= scale;
  return sizes;
}

Tensor Rows::gather(const Tensor& rows, int64_t dim, int64_t scale) const {
  return shared() ? comm::all_gather(*group_, rows, dim, sizes(scale)) : rows;
}

Tensor Rows::gather_to_first(const Tensor& rows, int64_t dim, int64_t scale) const {
  return shared() ? comm::gather_to(*group_, 0, rows, dim, sizes(scale)) : rows;
}

}  // namespace orrery::parallel
