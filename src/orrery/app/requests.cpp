#include "orrery/app/requests.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "orrery/app/commands.h"
#include "orrery/app/interrupt.h"
#include "orrery/app/model_path.h"
#include "orrery/base/log.h"
#include "orrery/config/json.h"
#include "orrery/config/spec_file.h"
#include "orrery/config/validate.h"
#include "orrery/engine/write.h"
#include "orrery/media/read.h"

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

/// Which control branches the requests use, all together: one model makes them all (spec cosmos-transfer2.5
/// §6.3).
std::vector<std::string> controls_of(const std::vector<Request>& requests) {
  std::vector<std::string> used;
  for (const std::string_view name : config::kControls)
    if (std::any_of(requests.begin(), requests.end(), [&](const Request& r) {
          const auto controls = config::controls_of(r);
          return std::any_of(controls.begin(), controls.end(),
                             [&](const auto& control) { return control.name == name; });
        }))
      used.emplace_back(name);
  return used;
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
      config::validate(request, config::Limits::of_any_model(), plan);
    } catch (Error& error) {
      if (requests.size() > 1) error.with("checking " + request.name.value_or(""));
      throw;
    }
  }
}

/// Takes over what a picture was made from: the request, where the command line does not say otherwise, and,
/// if that names no model, the settings.
void repeat(const std::string& path, config::Arguments& arguments) {
  const auto text = media::read_text(path);
  const auto found = text.find(kRecordKey);
  require(found != text.end(), "from_image: ", path,
          " does not say what it was made from; expected a PNG that ", "orrery wrote");
  const auto record = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  require(record.is_object() && record.contains("request") && record.contains("settings"),
          "from_image: ", path, " holds something else under ", kRecordKey);
  arguments.request =
      config::overlay(config::from_json<Request>(record["request"]), config::expand(arguments.request));
  auto& ours = arguments.settings;
  if (ours.model || ours.checkpoint_path) return;
  const auto theirs = config::from_json<config::Settings>(record["settings"]);
  config::Settings::fields([&](auto member, const config::Field& field) {
    if (record["settings"].contains(field.name) && !config::is_set(ours.*member))
      ours.*member = theirs.*member;
  });
}

}  // namespace

void place_outputs(std::vector<Request>& requests, bool from_files, bool pictures) {
  for (Request& request : requests) {
    const bool still = request.num_frames == 1 || request.max_frames == 1;
    const char* suffix = pictures ? ".png" : still ? ".jpg" : ".mp4";
    const std::string file = request.name.value_or("") + suffix;
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

ProgressView progress_view(const Session& session, const config::Settings& settings,
                           const Environment& environment) {
  return {settings.json ? std::cout : std::cerr,
          session.leads() ? style_of(settings, environment) : ProgressStyle::kQuiet, environment.columns};
}

std::vector<Request> find_requests(const Session& session, config::Arguments& arguments,
                                   const Environment& environment) {
  std::vector<Request> requests;
  config::Settings& settings = arguments.settings;
  session.together([&] {
    if (settings.from_image) repeat(*settings.from_image, arguments);
    requests = config::read_requests(settings.input, arguments.request);
    check(requests, arguments.plan);
    require_one_writer(requests);
    if (settings.controls.empty()) settings.controls = controls_of(requests);
    settings = find_model(settings, environment.hub, environment.program_folder, needs_text(requests));
  });
  if (session.leads()) explain(settings);
  return requests;
}

Callbacks callbacks_for(ProgressView& view, EndIfStuck& stuck) {
  Callbacks callbacks;
  callbacks.progress = [&](const Progress& p) { view.update(p); };
  callbacks.cancelled = interrupted;
  callbacks.failed = [&](const Error& error) { stuck.after(error); };
  return callbacks;
}

}  // namespace orrery::app
