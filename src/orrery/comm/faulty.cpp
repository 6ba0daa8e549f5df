#include "orrery/comm/faulty.h"

#include <utility>

namespace orrery::comm {

Faulty::Faulty(std::unique_ptr<Group> inside, int64_t at, std::function<void()> fault)
    : inside_(std::move(inside)), left_(at), fault_(std::move(fault)) {}

std::unique_ptr<Exchange> Faulty::exchange(std::vector<Message> to, std::span<const Extents> from) {
  if (--left_ == 0) fault_();
  return inside_->exchange(std::move(to), from);
}

}  // namespace orrery::comm
