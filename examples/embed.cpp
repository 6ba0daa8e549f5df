// orrery as a library: opens a checkpoint, makes a clip, shows how far it is, and gives up when it takes too
// long.
//   embed MODEL PROMPT OUTPUT [SECONDS]
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <string>

#include "orrery/config/plan.h"
#include "orrery/config/request.h"
#include "orrery/config/settings.h"
#include "orrery/engine/engine.h"

namespace {

void show(const orrery::Progress& progress) {
  std::cerr << progress.stage;
  if (progress.steps > 0) std::cerr << " " << progress.step << "/" << progress.steps;
  std::cerr << std::fixed << std::setprecision(2) << ", " << progress.seconds << " s\n";
}

/// True when `seconds` have gone by since it was made.
std::function<bool()> after(double seconds) {
  using Clock = std::chrono::steady_clock;
  return [seconds, start = Clock::now()] {
    return std::chrono::duration<double>(Clock::now() - start).count() >= seconds;
  };
}

void make_clip(const std::string& model, const std::string& prompt, const std::string& output,
               double seconds) {
  orrery::config::Settings settings;  // where things lie
  settings.model = model;
  orrery::config::Plan plan;  // how to run: here both guidance branches at the same time
  plan.parallel = "cfg2";
  const auto engine = orrery::Engine::open(settings, plan);  // once; then as many runs as wanted

  orrery::config::Request request;  // what to make; the checkpoint answers what is not set
  request.prompt = prompt;
  request.output = output;
  request.seed = 7;
  const orrery::Output made = engine->run(request, {.progress = show, .cancelled = after(seconds)});

  for (const std::string& file : made.files) std::cout << file << ", seed " << made.seed << "\n";
  for (const auto& [stage, taken] : made.stage_seconds) std::cout << stage << " " << taken << " s\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: embed MODEL PROMPT OUTPUT [SECONDS]\n";
    return 2;
  }
  try {
    make_clip(argv[1], argv[2], argv[3],
              argc == 5 ? std::atof(argv[4]) : std::numeric_limits<double>::infinity());
    return 0;
  } catch (const std::exception& error) {  // orrery::Error (base/error.h) also has a kind and a code
    std::cerr << "embed: " << error.what() << "\n";
    return 1;
  }
}
