#include <algorithm>
#include <filesystem>
#include <iostream>

#include "orrery/app/commands.h"
#include "orrery/app/interrupt.h"
#include "orrery/app/model_path.h"
#include "orrery/app/progress.h"
#include "orrery/app/report.h"
#include "orrery/base/log.h"
#include "orrery/base/text.h"
#include "orrery/config/flags.h"
#include "orrery/config/spec_file.h"
#include "orrery/config/validate.h"

namespace orrery::app {
namespace {

namespace fs = std::filesystem;
using config::Request;

/// What the official programs' options mean here.
void explain(const config::Settings& settings) {
  if (settings.offload_diffusion_model || settings.offload_tokenizer)
    log::info(
        "offload: on the CPU there is nowhere to move a model to; --weights mapped leaves the weights in "
        "their file");
  if (settings.offload_text_encoder)
    log::info("offload: the text encoder is always released once the prompt is encoded");
  if (settings.disable_guardrails || settings.offload_guardrail_models)
    log::info("guardrails: there are no guardrail models here");
}

ProgressStyle style_of(const config::Settings& settings, const Environment& environment) {
  if (settings.json) return ProgressStyle::kJson;
  if (settings.quiet) return ProgressStyle::kQuiet;
  return environment.terminal ? ProgressStyle::kBar : ProgressStyle::kLines;
}

bool needs_text(const std::vector<Request>& requests) {
  return std::any_of(requests.begin(), requests.end(),
                     [](const Request& r) { return !r.prompt_embeds || !r.negative_prompt_embeds; });
}

void require_one_writer(const std::vector<Request>& requests) {
  for (size_t i = 1; i < requests.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      require(!requests[i].save_latents || requests[i].save_latents != requests[j].save_latents,
              "save_latents: ", *requests[i].save_latents, " would be written by ", *requests[j].name,
              " and by ", *requests[i].name);
}

/// What needs no checkpoint is refused before one is looked for; the engine checks again, with the
/// checkpoint's limits.
void check(const std::vector<Request>& requests, const config::Plan& plan) {
  for (const Request& request : requests) {
    try {
      config::validate(request, {}, plan);
    } catch (Error& error) {
      if (requests.size() > 1) error.with("checking " + request.name.value_or(""));
      throw;
    }
  }
}

/// clip.mp4 → clip.json, frames/ → frames.json
std::string record_beside(const std::string& output) {
  fs::path path = output;
  if (!path.has_filename()) path = path.parent_path();
  return path.replace_extension(".json").string();
}

/// One sample. Returns 0 or the exit code of its error, which has then been reported.
int run_sample(Engine& engine, const Request& request, const std::string& plan, ProgressView& view) {
  try {
    const Output output = engine.run(request, {[&](const Progress& p) { view.update(p); }, interrupted});
    write_file(record_beside(output.files.front()), output.json);
    view.finish(output, plan);
    return 0;
  } catch (...) {
    Error error = current_error();
    if (request.name) error.with("making " + *request.name);
    view.fail(error);
    std::cerr << error_line(error) << std::endl;
    return exit_code(error.kind());
  }
}

int run_all(const config::Settings& settings, const config::Plan& plan, const std::vector<Request>& requests,
            ProgressView& view) {
  const std::string factors = to_string(config::resolve(plan));
  const auto engine = Engine::open(settings, plan);
  int result = 0;
  size_t failed = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    view.begin(requests[i].output.value_or("output"), i, requests.size());
    const int code = run_sample(*engine, requests[i], factors, view);
    if (code == 0) continue;
    ++failed;
    if (result == 0) result = code;
    if (code == exit_code(ErrorKind::kCancelled)) return code;
    if (!settings.keep_going) break;
  }
  if (failed > 0 && requests.size() > 1) log::error(failed, " of ", requests.size(), " samples failed");
  return result;
}

}  // namespace

void place_outputs(std::vector<Request>& requests, bool from_files) {
  for (Request& request : requests) {
    const std::string file = request.name.value_or("") + (request.num_frames == 1 ? ".jpg" : ".mp4");
    if (!from_files) {
      if (request.name && !request.output) request.output = file;
      continue;
    }
    require(request.output.has_value(),
            "output: expected --output with a folder for the samples of the input files");
    const fs::path folder = *request.output;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      fail(ErrorKind::kResource, "output: cannot make the folder ", folder.string(), ": ", error.message());
    request.output = (folder / file).string();
  }
}

int generate(const std::vector<std::string>& words, const Environment& environment) {
  config::Arguments arguments = config::parse_arguments(words);
  if (!arguments.help.empty()) {
    std::cout << arguments.help;
    return 0;
  }
  config::Settings& settings = arguments.settings;
  if (settings.quiet || settings.json) log::set_level(log::Level::kWarn);
  ProgressView view(settings.json ? std::cout : std::cerr, style_of(settings, environment),
                    environment.columns);
  try {
    if (environment.processes > 1)
      fail(ErrorKind::kUnsupported, "WORLD_SIZE is ", environment.processes,
           ", but this version runs in one process; start it once with --ranks ", environment.processes);
    std::vector<Request> requests = config::read_requests(settings.input, arguments.request);
    check(requests, arguments.plan);
    require_one_writer(requests);
    settings = find_model(settings, environment.hub, environment.program_folder, needs_text(requests));
    place_outputs(requests, !settings.input.empty());
    explain(settings);
    watch_interrupts();
    return run_all(settings, arguments.plan, requests, view);
  } catch (...) {
    view.fail(current_error());
    throw;
  }
}

}  // namespace orrery::app
