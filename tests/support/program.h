#pragma once
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace orrery::testing {

/// A program as a shell starts it: its stdout can be read line by line, stderr goes to a file.
class Program {
 public:
  /// words[0] is looked up in PATH. variables are added to the environment.
  Program(std::vector<std::string> words, const std::string& errors,
          const std::map<std::string, std::string>& variables = {}) {
    std::vector<std::string> environment;
    for (char** v = environ; *v; ++v)
      if (const std::string text = *v; !variables.contains(text.substr(0, text.find('='))))
        environment.push_back(text);
    for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0644);
    // Shells have programs in the background ignore SIGINT; this one is in the foreground.
    posix_spawnattr_t attributes;
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &interrupt);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int failed = posix_spawnp(&pid_, words[0].c_str(), &actions, &attributes, list(words).data(),
                                    list(environment).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
    if (failed) throw std::runtime_error("cannot start " + words[0]);
  }
  Program(Program&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), out_(std::exchange(other.out_, nullptr)) {}
  ~Program() {
    if (out_) fclose(out_);
  }

  pid_t pid() const { return pid_; }

  /// The next line, or nothing at the end.
  std::optional<std::string> line() {
    std::string text;
    for (int c; (c = fgetc(out_)) != EOF;) {
      if (c == '\n') return text;
      text += static_cast<char>(c);
    }
    return text.empty() ? std::nullopt : std::optional(text);
  }

  void signal(int number) const { kill(pid_, number); }

  /// Reads to the end and gives the exit code (128 + signal if it was killed).
  int wait() {
    while (line()) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  static std::vector<char*> list(std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    for (auto& s : strings) pointers.push_back(s.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  pid_t pid_ = 0;
  FILE* out_ = nullptr;
};

/// The processes whose parent is `pid`, in the order in which they were started.
inline std::vector<pid_t> children(pid_t pid) {
  std::vector<pid_t> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "stat");
    std::string text;
    std::getline(in, text);
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;
    if (std::stoi(text.substr(name_end + 4)) == pid) all.push_back(std::stoi(entry.path().filename()));
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace orrery::testing
