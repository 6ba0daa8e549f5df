#pragma once
#include "orrery/comm/group.h"

namespace orrery::comm {

/// The group of one rank: what it sends is what it receives, the same tensors.
class Solo final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Exchange> exchange(std::vector<Message> to, std::span<const Extents> from) override;
};

}  // namespace orrery::comm
