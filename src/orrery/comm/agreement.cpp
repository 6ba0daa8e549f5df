#include "orrery/comm/agreement.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/comm/collectives.h"
#include "orrery/comm/hash.h"

namespace orrery::comm {
namespace {

/// Every rank's numbers, in rank order.
std::vector<std::vector<int64_t>> all_numbers(Group& group, const std::vector<int64_t>& mine) {
  const auto size = static_cast<size_t>(group.size());
  const Tensor all =
      all_gather(group, at::tensor(mine, at::kLong).unsqueeze(0), 0, std::vector<int64_t>(size, 1))
          .contiguous();
  std::vector<std::vector<int64_t>> numbers;
  for (int64_t r = 0; r < all.size(0); ++r) {
    const auto* row = all[r].const_data_ptr<int64_t>();
    numbers.emplace_back(row, row + all.size(1));
  }
  return numbers;
}

/// Rank `root`'s text, of that many bytes, on every rank.
std::string broadcast_text(Group& group, int root, const std::string& text, int64_t bytes) {
  Tensor mine;
  if (group.rank() == root) {
    mine = at::empty({bytes}, at::kByte);
    std::ranges::copy(text, static_cast<char*>(mine.mutable_data_ptr()));
  }
  const Tensor all = broadcast(group, root, mine, {{bytes}, at::kByte}).contiguous();
  return {static_cast<const char*>(all.const_data_ptr()), static_cast<size_t>(bytes)};
}

}  // namespace

void compare(Group& control, const std::string& what, uint64_t hash) {
  const auto all = all_numbers(control, {static_cast<int64_t>(hash)});
  std::vector<std::string> others;
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0]) others.push_back(std::to_string(r));
  if (others.empty()) return;
  const bool many = others.size() > 1;
  fail_together(ErrorKind::kRequest, "the ranks of a run must have the same ", what, ": rank",
                many ? "s " : " ", join(others), many ? " differ" : " differs", " from rank 0");
}

void compare(Group& control, const std::string& what, std::string_view text) {
  compare(control, what, hash_of(text));
}

void together(Group& control, const std::function<void()>& fn) {
  if (control.size() == 1) return fn();
  std::optional<Error> failure;
  try {
    fn();
  } catch (...) {
    failure = current_error();
  }
  const std::string mine = failure ? failure->what() : "", code = failure ? failure->code() : "";
  const auto kind = static_cast<int64_t>(failure ? failure->kind() : ErrorKind::kInternal);
  const auto all = all_numbers(control, {failure.has_value(), kind, std::ssize(mine), std::ssize(code)});
  const auto first = std::ranges::find_if(all, [](const auto& numbers) { return numbers[0] != 0; });
  if (first == all.end()) return;
  const int root = static_cast<int>(first - all.begin());
  const std::string text = broadcast_text(control, root, mine + code, (*first)[2] + (*first)[3]);
  const auto length = static_cast<size_t>((*first)[2]);
  throw AgreedError(static_cast<ErrorKind>((*first)[1]),
                    (root == control.rank() ? "" : concat("rank ", root, ": ")) + text.substr(0, length),
                    text.substr(length));
}

}  // namespace orrery::comm
