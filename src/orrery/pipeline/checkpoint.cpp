#include "orrery/pipeline/checkpoint.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/base/text.h"
#include "orrery/comm/hash.h"
#include "orrery/config/json.h"
#include "orrery/models/json_config.h"
#include "orrery/models/load.h"
#include "orrery/platform/memory.h"
#include "orrery/weights/lora_merge.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::pipeline {
namespace {

// On a CPU bfloat16 convolutions are slow where the hardware lacks it, and the VAE is small
// (docs/numerics.md).
constexpr auto kVaeType = at::kFloat;

}  // namespace

void Checkpoint::mark(const std::string& text) { fingerprint = comm::hash_of(concat(fingerprint, text)); }

void Checkpoint::mark(const weights::TensorMap& tensors) {
  std::ostringstream all;
  for (const auto& [name, tensor] : tensors)
    all << name << ' ' << tensor.scalar_type() << ' ' << tensor.sizes() << '\n';
  mark(all.str());
}

void Checkpoint::mark_files(const std::vector<std::string>& paths) {
  for (const auto& path : paths)
    if (!path.empty()) mark(read_file(path));
}

Layout layout_of(const config::Settings& settings) {
  require(settings.model || settings.checkpoint_path, "model: expected a checkpoint (--model), found none");
  LayoutOverrides overrides;
  overrides.vae = settings.vae.value_or(""), overrides.text_encoder = settings.text_encoder.value_or("");
  overrides.tokenizer = settings.tokenizer.value_or("");
  overrides.controlnet = settings.controlnet.value_or("");
  overrides.image_encoder = settings.image_encoder.value_or("");
  if (settings.model) overrides.transformer = settings.checkpoint_path.value_or("");
  return find_layout(settings.model ? *settings.model : *settings.checkpoint_path, overrides);
}

void adapt(Checkpoint& c, const config::Settings& settings, NetworkFile& network) {
  if (settings.lora.empty()) return;
  for (const auto& text : settings.lora) {
    c.loras.push_back(weights::parse_lora_choice(text));
    c.mark(concat(c.loras.back().strength));
    for (const auto& m : weights::open_lora(c.loras.back().path).modules)
      c.mark(concat(m.name, m.down.sizes(), m.up.sizes(), m.scale));
  }
  const int64_t bytes = weights::merge_loras(network.tensors, c.loras, c.dtype, network.spelling);
  log::info("LoRA: ", c.loras.size(), " merged into the transformer; the changed weights take ",
            human_bytes(bytes));
}

void open_vae(Checkpoint& c, int64_t latent_channels) {
  auto tensors = weights::wan_vae_names(weights::open_weights(c.layout.vae));
  c.mark(tensors);
  if (c.layout.kind == Layout::Kind::kDiffusers)
    c.vae_config = wan_vae::read_config(c.layout.vae + "/config.json");
  else if (const auto first = tensors.find("encoder.conv_in.weight"); first != tensors.end())
    c.vae_config.base_dim =
        first->second.size(0);  // the official file has no configuration: its width is all that varies
  c.vae = load<wan_vae::Weights>(std::move(tensors), c.vae_config, kVaeType, weights::Storage::kMapped,
                                 c.layout.vae);
  if (c.vae_config.z_dim != latent_channels)
    fail(ErrorKind::kCheckpoint, "the VAE makes ", c.vae_config.z_dim,
         " latent channels, the transformer takes ", latent_channels);
}

void load_vae(Checkpoint& c, bool encodes) {
  wan_vae::prepare_decoder(c.vae, kVaeType);
  if (encodes) wan_vae::prepare_encoder(c.vae, kVaeType);
  platform::release_free_memory();
}

weights::Storage choose_storage(config::WeightStorage wanted, int64_t widened_bytes) {
  if (wanted == config::WeightStorage::kMapped) return weights::Storage::kMapped;
  if (wanted == config::WeightStorage::kWidened) return weights::Storage::kWidened;
  // Half of what is free: activations and the text encoder need room too.
  return widened_bytes <= platform::system_memory().available / 2 ? weights::Storage::kWidened
                                                                  : weights::Storage::kMapped;
}

config::Request recommended(const std::string& path, const config::Request& defaults) {
  if (path.empty()) return defaults;
  try {
    return config::overlay(defaults, config::from_json<config::Request>(JsonConfig(path).json()));
  } catch (const Error& e) {
    throw Error(ErrorKind::kCheckpoint, path + ": " + e.message(), "invalid_header");
  }
}

}  // namespace orrery::pipeline
