#include "orrery/comm/recording.h"

#include <numeric>

#include "orrery/base/clock.h"
#include "orrery/base/error.h"

namespace orrery::comm {
namespace {

class RecordingExchange final : public Exchange {
 public:
  RecordingExchange(std::unique_ptr<Exchange> inside, Traffic& traffic)
      : inside_(std::move(inside)), traffic_(traffic) {}

  std::vector<Message> wait() override {
    const Stopwatch watch;
    auto messages = inside_->wait();
    traffic_.waited += watch.seconds();
    return messages;
  }

 private:
  std::unique_ptr<Exchange> inside_;
  Traffic& traffic_;
};

class RecordingGroup final : public Group {
 public:
  RecordingGroup(std::unique_ptr<Group> inside, Traffic& traffic)
      : inside_(std::move(inside)), traffic_(traffic) {
    traffic_.bytes.assign(static_cast<size_t>(inside_->size()), 0);
  }

  int rank() const override { return inside_->rank(); }
  int size() const override { return inside_->size(); }

  std::unique_ptr<Exchange> exchange(std::vector<Message> to, std::span<const Extents> from) override {
    ++traffic_.exchanges;
    for (size_t i = 0; i < to.size(); ++i)
      for (const Tensor& t : to[i]) traffic_.bytes.at(i) += static_cast<int64_t>(t.nbytes());
    return std::make_unique<RecordingExchange>(inside_->exchange(std::move(to), from), traffic_);
  }

 private:
  std::unique_ptr<Group> inside_;
  Traffic& traffic_;
};

}  // namespace

int64_t Traffic::bytes_out(int own_rank) const {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) - bytes.at(static_cast<size_t>(own_rank));
}

Decorate Recorder::decorate(Decorate inside) {
  return [this, inside = std::move(inside)](int rank, std::string_view axis, std::unique_ptr<Group> group) {
    if (inside) group = inside(rank, axis, std::move(group));
    return std::make_unique<RecordingGroup>(std::move(group), traffic_[{rank, std::string(axis)}]);
  };
}

const Traffic& Recorder::at(int rank, std::string_view axis) const {
  const auto found = traffic_.find({rank, std::string(axis)});
  ensure(found != traffic_.end(), "no group ", axis, " of rank ", rank, " was recorded");
  return found->second;
}

double Recorder::waited(int rank) const {
  double seconds = 0;
  for (const auto& [place, traffic] : traffic_)
    if (place.first == rank) seconds += traffic.waited;
  return seconds;
}

}  // namespace orrery::comm
