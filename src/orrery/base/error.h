#pragma once
#include <exception>
#include <sstream>
#include <string>
#include <string_view>

namespace orrery {

/// Whose fault it is; the command line's exit code and an HTTP status follow from it.
enum class ErrorKind { kRequest, kCheckpoint, kUnsupported, kResource, kPeer, kCancelled, kInternal };

std::string_view to_string(ErrorKind kind);

/// The process's exit code: request 2, checkpoint 3, unsupported 4, resource 5, peer 6, internal 70,
/// cancelled 130.
int exit_code(ErrorKind kind);

/// Every failure that orrery reports. `message` is one line that says what was expected and what was found;
/// `trail` says what was being done, innermost first; `code` is a short fixed word for machines ("" if none).
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, std::string code = {});

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& code() const { return code_; }

  /// Adds what was being done ("loading blocks.3.to_q"); what() then ends with it.
  Error& with(std::string_view doing);

  /// message, then " (while …)" for each step of the trail.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_, code_, what_;
};

/// The exception being handled as an Error: one of ours as it is, std::bad_alloc as resource, any other as
/// internal with its first line (libtorch appends a backtrace). To be called in a catch block.
Error current_error();

/// The arguments, printed one after the other.
template <class... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, const Args&... args) {
  throw Error(kind, concat(args...));
}

/// The caller's mistake: an Error of kind request unless the condition holds.
template <class... Args>
void require(bool condition, const Args&... args) {
  if (!condition) [[unlikely]]
    fail(ErrorKind::kRequest, args...);
}

/// Our own mistake: an Error of kind internal unless the condition holds.
template <class... Args>
void ensure(bool condition, const Args&... args) {
  if (!condition) [[unlikely]]
    fail(ErrorKind::kInternal, args...);
}

}  // namespace orrery
