#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace orrery::comm {

/// A connection to the key-value store of a run (c10d's TCPStore): how processes find each other and hear of
/// each other's state. All calls wait for the server's answer; one thread at a time uses a connection. Errors
/// are of kind peer and name the address. Making one changes the process: c10d's own log is turned off, and
/// SIGPIPE is ignored.
class Store {
 public:
  struct State;  // c10d_state.h: for the files that see c10d

  /// Serves a store from this process at `port` (0: a free one) and connects to it. Error of kind resource if
  /// the port is taken. The server ends with this object.
  static std::unique_ptr<Store> serve(int port, std::chrono::milliseconds timeout);

  /// Connects to the store at address:port, for which it waits up to `timeout`. The timeout also bounds every
  /// later wait for a key, but not a call whose server is stopped: that blocks.
  static std::unique_ptr<Store> connect(const std::string& address, int port,
                                        std::chrono::milliseconds timeout);

  explicit Store(std::unique_ptr<State> state);
  ~Store();

  int port() const;

  void set(const std::string& key, const std::string& value);

  /// The values of all keys, in order, once every one of them has been set.
  std::vector<std::string> get(const std::vector<std::string>& keys);

  bool has(const std::string& key);

  /// Sets the key if it is not set yet. What it is then.
  std::string set_first(const std::string& key, const std::string& value);

  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace orrery::comm
