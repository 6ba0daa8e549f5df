#pragma once
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/engine/engine.h"

namespace orrery::app {

/// kBar redraws one line of a terminal per stage; kLines prints a line now and then; kJson prints an object
/// per event.
enum class ProgressStyle { kBar, kLines, kJson, kQuiet };

/// "denoise  12/36 [######------------] 4.3 s, 8.6 s left", at most `columns` wide.
std::string progress_bar(const Progress& progress, int columns);

/// "denoise 12/36, 4.3 s, 8.6 s left"
std::string progress_line(const Progress& progress);

/// Shows runs on one stream; used from one thread. A run is begin, update …, then finish or fail.
class ProgressView {
 public:
  ProgressView(std::ostream& out, ProgressStyle style, int columns)
      : out_(out), style_(style), columns_(columns) {}

  void begin(const std::string& output, size_t index, size_t count);
  void update(const Progress& progress);
  void finish(const Output& output, const std::string& plan);
  void fail(const Error& error);

  /// Ends a run about which there is nothing more to say.
  void end() { end_bar(); }

 private:
  void end_bar();
  bool is_due(const Progress& progress) const;

  std::ostream& out_;
  ProgressStyle style_;
  int columns_;
  std::optional<Progress> shown_;
  bool bar_open_ = false;
};

}  // namespace orrery::app
