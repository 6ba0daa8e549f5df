#include "orrery/engine/inspect.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "orrery/app/commands.h"
#include "orrery/app/model_path.h"
#include "orrery/config/flags.h"

namespace orrery::app {

int inspect(const std::vector<std::string>& words, const Environment& environment) {
  config::Settings settings;
  std::string model, transformer, vae, text_encoder;
  CLI::App app("Says what a checkpoint is: family, sizes, types, parameters, and the memory of each plan.",
               "orrery inspect");
  app.add_option("model,-m,--model", model,
                 "folder, file or published name (default: the checkpoint that comes with orrery)")
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
