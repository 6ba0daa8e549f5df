#include "orrery/comm/c10d_store.h"

#include <c10/util/Logging.h>

#include <csignal>
#include <utility>

#include "orrery/base/error.h"
#include "orrery/comm/c10d_state.h"

namespace orrery::comm {
namespace {

void prepare_process() {
  // c10d reports every lost connection on stderr; who is lost is ours to say, once.
  FLAGS_caffe2_log_level = c10::GLOG_FATAL;
  // libuv and gloo write to connections whose other end may be gone, with calls that cannot say "no signal".
  ::signal(SIGPIPE, SIG_IGN);
}

template <class Call>
auto asked(c10d::TCPStore& store, const Call& call) {
  try {
    return call();
  } catch (const std::exception& e) {
    throw Error(ErrorKind::kPeer,
                concat("the store at ", store.getHost(), ":", store.getPort(), " is lost: ", reason_of(e)),
                "store");
  }
}

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::unique_ptr<Store> open(const std::string& address, const c10d::TCPStoreOptions& options) {
  return std::make_unique<Store>(
      std::make_unique<Store::State>(Store::State{c10::make_intrusive<c10d::TCPStore>(address, options)}));
}

c10d::TCPStoreOptions options_for(int port, std::chrono::milliseconds timeout) {
  require(port >= 0 && port <= 65535, "expected a port from 0 to 65535, got ", port);
  prepare_process();
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.timeout = timeout;
  options.waitWorkers = false;  // join() waits, and knows the names of those that are missing
  return options;
}

}  // namespace

std::unique_ptr<Store> Store::serve(int port, std::chrono::milliseconds timeout) {
  auto options = options_for(port, timeout);
  options.isServer = true;
  try {
    return open("127.0.0.1", options);
  } catch (const std::exception& e) {
    fail(ErrorKind::kResource, "cannot serve the store of this run at port ", port,
         " (does another run use it?): ", reason_of(e));
  }
}

std::unique_ptr<Store> Store::connect(const std::string& address, int port,
                                      std::chrono::milliseconds timeout) {
  const auto options = options_for(port, timeout);
  try {
    return open(address, options);
  } catch (const std::exception& e) {
    fail(ErrorKind::kPeer, "cannot reach the store of this run at ", address, ":", port, ": ", reason_of(e));
  }
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::~Store() = default;

int Store::port() const { return state_->store->getPort(); }

void Store::set(const std::string& key, const std::string& value) {
  asked(*state_->store, [&] { state_->store->set(key, bytes_of(value)); });
}

std::vector<std::string> Store::get(const std::vector<std::string>& keys) {
  return asked(*state_->store, [&] {
    std::vector<std::string> values;
    for (const auto& value : state_->store->multiGet(keys)) values.push_back(text_of(value));
    return values;
  });
}

bool Store::has(const std::string& key) {
  return asked(*state_->store, [&] { return state_->store->check({key}); });
}

std::string Store::set_first(const std::string& key, const std::string& value) {
  return asked(*state_->store, [&] { return text_of(state_->store->compareSet(key, {}, bytes_of(value))); });
}

}  // namespace orrery::comm
