#pragma once
// Ranks that are processes: the test program starts itself again, once per rank, and each plays a part by
// name.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "orrery/base/clock.h"
#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/comm/processes.h"
#include "tests/support/temp_dir.h"

extern char** environ;

namespace orrery::comm::testing {

/// What the program was asked to play: --rank PART RANK SIZE PORT ELSEWHERE ARGUMENT…
struct Role {
  std::string part;
  Place place;
  std::vector<std::string> arguments;

  int number(size_t i) const { return std::stoi(arguments.at(i)); }
};

inline Role parse_role(int argc, char** argv) {
  Role role{.part = argv[2], .place = {}, .arguments = {argv + 7, argv + argc}};
  role.place.rank = role.place.local_rank = std::stoi(argv[3]);
  role.place.size = role.place.local_size = std::stoi(argv[4]);
  role.place.port = std::stoi(argv[5]);
  role.place.store_elsewhere = std::stoi(argv[6]) != 0;
  return role;
}

/// Plays the part. What it throws is printed ("peer: message") and gives the exit code.
inline int play(const Role& role, const std::map<std::string, std::function<void(const Role&)>>& parts) {
  try {
    parts.at(role.part)(role);
    return 0;
  } catch (const Error& e) {
    std::printf("%s: %s\n", std::string(to_string(e.kind())).c_str(), e.what());
    return exit_code(e.kind());
  } catch (const std::exception& e) {
    std::printf("other: %s\n", e.what());
    return 1;
  }
}

/// One running rank. Killed, if need be, at the end.
class RankProcess {
 public:
  struct End {
    int code = -1;       // the exit code, or minus the signal
    double seconds = 0;  // from the start
    std::string said;    // on stdout and stderr
  };

  RankProcess(const Role& role, const std::string& output) : output_(output) {
    std::vector<std::string> words = {"/proc/self/exe",
                                      "--rank",
                                      role.part,
                                      std::to_string(role.place.rank),
                                      std::to_string(role.place.size),
                                      std::to_string(role.place.port),
                                      role.place.store_elsewhere ? "1" : "0"};
    words.insert(words.end(), role.arguments.begin(), role.arguments.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0)
      throw std::runtime_error("cannot start a rank");
    posix_spawn_file_actions_destroy(&actions);
  }
  ~RankProcess() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  /// Waits until the rank is stopped or has ended; how many seconds after the start that was.
  double fallen() {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOWAIT) != 0) {
    }
    return watch_.seconds();
  }

  /// Waits for the end, at most that long; a rank that is still there then has the code −1.
  End end(double at_most) {
    End end;
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (watch_.seconds() > at_most) {
        end.seconds = watch_.seconds();
        end.said = read_file(output_);
        return end;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), watch_.seconds(),
            read_file(output_)};
  }

 private:
  pid_t pid_ = -1;
  std::string output_;
  Stopwatch watch_;
};

/// A port that nobody uses now.
inline int free_port() {
  StoreServer server;
  return server.port();
}

/// The ranks of one run.
class Launch {
 public:
  /// port 0: the store is served by this object, as a launcher does it; else rank 0 serves it at that port.
  Launch(const std::string& part, int size, std::vector<std::string> arguments = {}, int port = 0) {
    if (port == 0) server_ = std::make_unique<StoreServer>();
    for (int r = 0; r < size; ++r) {
      Role role{.part = part, .place = {}, .arguments = arguments};
      role.place.rank = role.place.local_rank = r;
      role.place.size = role.place.local_size = size;
      role.place.port = server_ ? server_->port() : port;
      role.place.store_elsewhere = server_ != nullptr;
      ranks_.push_back(std::make_unique<RankProcess>(role, folder_ / std::to_string(r)));
    }
  }

  std::vector<RankProcess::End> ends(double at_most = 60) {
    std::vector<RankProcess::End> ends;
    for (auto& rank : ranks_) ends.push_back(rank->end(at_most));
    return ends;
  }

  RankProcess& rank(int r) { return *ranks_[static_cast<size_t>(r)]; }
  StoreServer& server() { return *server_; }

 private:
  orrery::testing::TempDir folder_;
  std::unique_ptr<StoreServer> server_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
};

}  // namespace orrery::comm::testing
