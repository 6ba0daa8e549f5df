#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>

#include "orrery/app/commands.h"
#include "orrery/app/report.h"
#include "orrery/app/requests.h"
#include "orrery/base/log.h"
#include "orrery/base/text.h"
#include "orrery/comm/agreement.h"

namespace orrery::app {
namespace {

namespace fs = std::filesystem;
using config::Request;

/// clip.mp4 → clip.json, frames/ → frames.json
std::string record_beside(const std::string& output) {
  fs::path path = output;
  if (!path.has_filename()) path = path.parent_path();
  return path.replace_extension(".json").string();
}

/// Makes the samples with one engine and shows how it goes.
class Batch {
 public:
  Batch(const Session& session, const config::Settings& settings, const config::Plan& plan,
        ProgressView& view)
      : session_(session),
        keep_going_(settings.keep_going),
        from_files_(!settings.input.empty()),
        view_(view),
        engine_(Engine::open(settings, plan, session.mesh())) {}

  /// Every sample is checked before the first is made: a mistake in the last is told at once. Returns the
  /// exit code of the first that failed.
  int run(std::vector<Request> requests) {
    session_.together([&] { place_outputs(requests, from_files_, engine_->makes_pictures()); });
    std::vector<int> codes(requests.size(), 0);
    const auto failed = [&] { return std::ssize(codes) - std::count(codes.begin(), codes.end(), 0); };
    if (requests.size() > 1)
      for (size_t i = 0; i < requests.size(); ++i)
        codes[i] = attempt("checking", requests[i], [&] { engine_->check(requests[i]); });
    for (size_t i = 0; i < requests.size() && (failed() == 0 || keep_going_); ++i) {
      if (codes[i] != 0) continue;
      view_.begin(requests[i].output.value_or("output"), i, requests.size());
      codes[i] = attempt("making", requests[i], [&] { make(requests[i]); });
      if (codes[i] == exit_code(ErrorKind::kCancelled)) return codes[i];
    }
    if (failed() > 0 && requests.size() > 1 && session_.leads())
      log::error(failed(), " of ", requests.size(), " samples failed");
    const auto first = std::find_if(codes.begin(), codes.end(), [](int code) { return code != 0; });
    return first == codes.end() ? 0 : *first;
  }

 private:
  /// Calls fn for a sample; 0, or the exit code of its error, which has then been reported. An error of this
  /// process alone comes out: the ranks cannot go on together.
  int attempt(const char* doing, const Request& request, const std::function<void()>& fn) {
    try {
      fn();
      return 0;
    } catch (const std::exception& e) {
      if (session_.mesh() && !dynamic_cast<const comm::AgreedError*>(&e)) throw;
      Error error = current_error();
      if (request.name) error.with(concat(doing, " ", *request.name));
      if (session_.leads()) {
        view_.fail(error);
        std::cerr << error_line(error) << std::endl;
      }
      return exit_code(error.kind());
    }
  }

  void make(const Request& request) {
    EndIfStuck stuck;
    auto callbacks = callbacks_for(view_, stuck);
    callbacks.written = [](const Output& output) {
      write_file(record_beside(output.files.front()), output.json);
    };
    const Output output = engine_->run(request, callbacks);
    if (session_.leads()) view_.finish(output, to_string(session_.factors()));
  }

  const Session& session_;
  const bool keep_going_, from_files_;
  ProgressView& view_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

int generate(const std::vector<std::string>& words, const Environment& environment) {
  return run_session("generate", words, environment,
                     [&](const Session& session, config::Arguments& arguments) {
                       auto view = progress_view(session, arguments.settings, environment);
                       try {
                         const auto requests = find_requests(session, arguments, environment);
                         return Batch(session, arguments.settings, arguments.plan, view).run(requests);
                       } catch (...) {
                         if (session.leads()) view.fail(current_error());
                         throw;
                       }
                     });
}

}  // namespace orrery::app
