#include "orrery/comm/solo.h"

#include <utility>

#include "orrery/base/error.h"

namespace orrery::comm {
namespace {

class Arrived final : public Exchange {
 public:
  explicit Arrived(std::vector<Message> messages) : messages_(std::move(messages)) {}
  std::vector<Message> wait() override { return std::move(messages_); }

 private:
  std::vector<Message> messages_;
};

}  // namespace

std::unique_ptr<Exchange> Solo::exchange(std::vector<Message> to, std::span<const Extents> from) {
  ensure(to.size() == 1 && from.size() == 1, "exchange: expected one message for a group of one, got ",
         to.size(), " and ", from.size());
  const Extents sent = extents_of(to[0]);
  if (sent != from[0])
    fail(ErrorKind::kInternal, "exchange: rank 0 sends itself ", to_string(sent), " but expects ",
         to_string(from[0]));
  return std::make_unique<Arrived>(std::move(to));
}

}  // namespace orrery::comm
