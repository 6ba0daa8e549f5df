#include "orrery/app/progress.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "orrery/base/text.h"

namespace orrery::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBarSeconds = 0.05;  // between two drawings of the bar
constexpr size_t kStageWidth = 8;
constexpr double kLineSeconds = 10.0;  // between two lines of a log

std::string padded(std::string text, size_t width, bool right) {
  if (text.size() < width) text.insert(right ? 0 : text.size(), width - text.size(), ' ');
  return text;
}

std::string counter(const Progress& p) {
  if (p.steps == 0) return "";
  const std::string steps = std::to_string(p.steps);
  return concat(padded(std::to_string(p.step), steps.size(), /*right=*/true), "/", steps);
}

double seconds_left(const Progress& p) {
  return p.seconds / static_cast<double>(p.step) * static_cast<double>(p.steps - p.step);
}

bool has_estimate(const Progress& p) { return p.step > 0 && p.step < p.steps; }

std::string times(const Progress& p) {
  std::string text = human_seconds(p.seconds);
  if (has_estimate(p)) text += concat(", ", human_seconds(seconds_left(p)), " left");
  return text;
}

void print(std::ostream& out, const Json& json) {
  // Paths may be any bytes.
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

}  // namespace

std::string progress_bar(const Progress& p, int columns) {
  constexpr int64_t kNarrowest = 8, kWidest = 40;
  const std::string count = counter(p);
  std::string line =
      padded(p.stage, kStageWidth, /*right=*/false) + (count.empty() ? "" : concat(" ", count));
  const std::string tail = concat(" ", times(p));
  // A space, two brackets, and the last column, which some terminals wrap at.
  const int64_t room =
      std::min<int64_t>(columns - static_cast<int64_t>(line.size() + tail.size()) - 4, kWidest);
  if (p.steps > 0 && room >= kNarrowest) {
    std::string bar(static_cast<size_t>(room), '-');
    std::fill_n(bar.begin(), room * std::clamp<int64_t>(p.step, 0, p.steps) / p.steps, '#');
    line += " [" + bar + "]";
  }
  line += tail;
  line.resize(std::min(line.size(), static_cast<size_t>(std::max(columns - 1, 1))));
  return line;
}

std::string progress_line(const Progress& p) {
  return concat(p.stage, p.steps > 0 ? concat(" ", p.step, "/", p.steps) : "",
                p.seconds >= 0.05 ? concat(", ", times(p)) : "");
}

void ProgressView::begin(const std::string& output, size_t index, size_t count) {
  shown_.reset();
  if (style_ == ProgressStyle::kJson)
    print(out_, {{"event", "start"}, {"output", output}, {"sample", index + 1}, {"samples", count}});
  if (style_ != ProgressStyle::kJson && style_ != ProgressStyle::kQuiet && count > 1)
    out_ << "[" << index + 1 << "/" << count << "] " << output << std::endl;
}

bool ProgressView::is_due(const Progress& p) const {
  if (!shown_ || shown_->stage != p.stage) return true;
  if (style_ == ProgressStyle::kJson) return true;
  const bool last = p.steps > 0 && p.step == p.steps && shown_->step != p.step;
  return last || p.seconds - shown_->seconds >= (style_ == ProgressStyle::kBar ? kBarSeconds : kLineSeconds);
}

void ProgressView::update(const Progress& p) {
  if (style_ == ProgressStyle::kQuiet || !is_due(p)) return;
  if (style_ == ProgressStyle::kBar) {
    if (shown_ && shown_->stage != p.stage) end_bar();
    out_ << "\r" << progress_bar(p, columns_) << "\x1b[K" << std::flush;
    bar_open_ = true;
  } else if (style_ == ProgressStyle::kLines) {
    out_ << progress_line(p) << std::endl;
  } else {
    Json json = {
        {"event", "step"}, {"stage", p.stage}, {"step", p.step}, {"steps", p.steps}, {"seconds", p.seconds}};
    if (has_estimate(p)) json["seconds_left"] = seconds_left(p);
    print(out_, json);
  }
  shown_ = p;
}

void ProgressView::finish(const Output& output, const std::string& plan) {
  end_bar();
  if (style_ == ProgressStyle::kQuiet) return;
  if (style_ == ProgressStyle::kJson) {
    Json stages = Json::object();
    for (const auto& [stage, seconds] : output.stage_seconds) stages[stage] = seconds;
    return print(out_, {{"event", "done"},
                        {"files", output.files},
                        {"seed", output.seed},
                        {"evaluations", output.evaluations},
                        {"plan", plan},
                        {"seconds", stages}});
  }
  std::string stages;
  for (const auto& [stage, seconds] : output.stage_seconds)
    stages += concat(", ", stage, " ", human_seconds(seconds));
  out_ << "wrote " << join(output.files) << " (seed " << output.seed << ", " << output.evaluations
       << " evaluations, plan " << plan << stages << ")" << std::endl;
}

void ProgressView::fail(const Error& error) {
  end_bar();
  if (style_ == ProgressStyle::kJson)
    print(out_, {{"event", "error"},
                 {"kind", to_string(error.kind())},
                 {"code", error.code()},
                 {"message", error.what()}});
}

void ProgressView::end_bar() {
  if (bar_open_) out_ << std::endl;
  bar_open_ = false;
}

}  // namespace orrery::app
