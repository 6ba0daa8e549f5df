#include "orrery/engine/inspect.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "orrery/app/commands.h"
#include "orrery/app/model_path.h"
#include "orrery/base/error.h"
#include "orrery/config/flags.h"
#include "orrery/engine/write.h"
#include "orrery/media/read.h"

namespace orrery::app {
namespace {

bool is_picture(const std::string& path) {
  return std::filesystem::is_regular_file(path) && std::filesystem::path(path).extension() == ".png";
}

/// What a picture was made from, as JSON.
std::string record_of(const std::string& path) {
  const auto text = media::read_text(path);
  const auto found = text.find(kRecordKey);
  require(found != text.end(), path, " does not say what it was made from; expected a PNG that orrery wrote");
  const auto json = nlohmann::ordered_json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? found->second : json.dump(2);
}

}  // namespace

int inspect(const std::vector<std::string>& words, const Environment& environment) {
  config::Settings settings;
  std::string model, transformer, vae, text_encoder;
  CLI::App app(
      "Says what a checkpoint is: family, sizes, types, parameters, and the memory of each plan; and of "
      "a PNG that orrery wrote, what it was made from.",
      "orrery inspect");
  app.add_option("model,-m,--model", model,
                 "folder, file or published name (default: the checkpoint that comes with orrery); or a PNG")
      ->type_name("TEXT");
  app.add_option("--checkpoint-path", transformer, "transformer file to use instead of the model's own")
      ->type_name("PATH");
  app.add_option("--vae", vae, "VAE file or folder to use instead of the model's own")->type_name("PATH");
  app.add_option("--text-encoder", text_encoder, "text encoder folder to use instead of the model's own")
      ->type_name("PATH");
  app.add_flag("--json", settings.json, "as JSON");
  if (const std::string help = config::parse_words(app, words); !help.empty()) {
    std::cout << help;
    return 0;
  }
  if (is_picture(model)) {
    std::cout << record_of(model) << std::endl;
    return 0;
  }
  const auto set = [](std::optional<std::string>& field, const std::string& value) {
    if (!value.empty()) field = value;
  };
  set(settings.model, model);
  set(settings.checkpoint_path, transformer);
  set(settings.vae, vae);
  set(settings.text_encoder, text_encoder);
  settings = find_model(settings, environment.hub, environment.program_folder, /*needs_text=*/false);
  std::cout << orrery::inspect(settings, settings.json) << std::endl;
  return 0;
}

}  // namespace orrery::app
