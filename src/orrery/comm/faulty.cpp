#include "orrery/comm/faulty.h"

#include <thread>
#include <utility>

namespace orrery::comm {
namespace {

class DelayedExchange final : public Exchange {
 public:
  DelayedExchange(std::unique_ptr<Exchange> inside, std::chrono::microseconds delay)
      : inside_(std::move(inside)), delay_(delay) {}
  std::vector<Message> wait() override {
    std::this_thread::sleep_for(delay_);
    return inside_->wait();
  }

 private:
  std::unique_ptr<Exchange> inside_;
  std::chrono::microseconds delay_;
};

}  // namespace

Faulty::Faulty(std::unique_ptr<Group> inside, int64_t at, std::function<void()> fault)
    : inside_(std::move(inside)), left_(at), fault_(std::move(fault)) {}

std::unique_ptr<Exchange> Faulty::exchange(std::vector<Message> to, std::span<const Extents> from) {
  if (--left_ == 0) fault_();
  return inside_->exchange(std::move(to), from);
}

Delayed::Delayed(std::unique_ptr<Group> inside, uint64_t seed, std::chrono::microseconds at_most)
    : inside_(std::move(inside)), random_(seed), length_(0, at_most.count()) {}

std::chrono::microseconds Delayed::a_while() { return std::chrono::microseconds(length_(random_)); }

std::unique_ptr<Exchange> Delayed::exchange(std::vector<Message> to, std::span<const Extents> from) {
  std::this_thread::sleep_for(a_while());
  return std::make_unique<DelayedExchange>(inside_->exchange(std::move(to), from), a_while());
}

}  // namespace orrery::comm
