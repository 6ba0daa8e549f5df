#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/fields.h"

namespace orrery::config {

/// Which switches an official .pt was trained for; the file does not say (spec cosmos-predict2.5 §0,
/// cosmos-transfer2.5 §5.4). post-trained: karras sigmas and a time of their own for the given frames.
/// pre-trained (and both 14B): neither. distilled (Cosmos-Transfer2.5's edge): few steps without guidance.
enum class Variant { kPostTrained, kPreTrained, kDistilled };
constexpr std::array<std::string_view, 3> names_of(Variant) {
  return {"post-trained", "pre-trained", "distilled"};
}

/// Where things lie, and how the program talks. `app/` turns published names into paths before anyone else
/// reads them.
struct Settings {
  std::optional<std::string> model, checkpoint_path, vae, text_encoder, tokenizer, controlnet, image_encoder,
      from_image;
  std::optional<Variant> variant;
  std::vector<std::string> controls, lora, input;
  bool keep_going = true;
  bool json = false, quiet = false;
  bool offload_diffusion_model = false, offload_tokenizer = false, offload_text_encoder = false,
       offload_guardrail_models = false;
  bool disable_guardrails = false;

  bool operator==(const Settings&) const = default;

  template <class Visitor>
  static void fields(Visitor&& visit) {
    using S = Settings;
    constexpr bool kPath = true;
    visit(
        &S::model,
        Field{"model",
              "folder, file, published name (nvidia/Cosmos-Predict2.5-2B) or official name (2B/post-trained)",
              "m"});
    visit(&S::checkpoint_path,
          Field{"checkpoint_path", "transformer file to use instead of the model's own", "", kPath});
    visit(&S::vae, Field{"vae", "VAE file or folder to use instead of the model's own", "", kPath});
    visit(&S::text_encoder,
          Field{"text_encoder", "text encoder folder to use instead of the model's own", "", kPath});
    visit(&S::tokenizer, Field{"tokenizer", "tokenizer folder to use instead of the model's own", "", kPath});
    visit(
        &S::controls,
        Field{"controls", "control branches to open: edge, vis, depth, seg (default: those that are used)"});
    visit(&S::controlnet,
          Field{"controlnet", "ControlNet folder to use instead of the model's own", "", kPath});
    visit(&S::image_encoder,
          Field{"image_encoder", "SigLIP2 folder for style pictures, instead of the model's own", "", kPath});
    visit(&S::lora, Field{"lora", "LoRA file or folder, with a strength if not 1: PATH:0.8 (may be repeated)",
                          "lora_path"});
    visit(&S::variant, Field{"variant", "switches of an official .pt (default: by the model's name)"});
    visit(&S::input, Field{"input", "parameter files: .json, .jsonl, .yaml, .yml", "i,input_files"});
    visit(&S::from_image,
          Field{"from_image", "PNG whose request is made again; other options change it", "", kPath});
    visit(&S::keep_going, Field{"keep_going", "go on with the next sample after one failed"});
    visit(&S::json, Field{"json", "progress as JSON lines on stdout"});
    visit(&S::quiet, Field{"quiet", "no progress, warnings and errors only", "q"});
    visit(&S::offload_diffusion_model,
          Field{"offload_diffusion_model", "accepted: on the CPU there is nowhere to move it"});
    visit(&S::offload_tokenizer,
          Field{"offload_tokenizer", "accepted: on the CPU there is nowhere to move it"});
    visit(&S::offload_text_encoder,
          Field{"offload_text_encoder", "accepted: its memory is always released after the prompt"});
    visit(&S::offload_guardrail_models,
          Field{"offload_guardrail_models", "accepted: there are no guardrail models here"});
    visit(&S::disable_guardrails,
          Field{"disable_guardrails", "accepted: there are no guardrail models here"});
  }
};

}  // namespace orrery::config
