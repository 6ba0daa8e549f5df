#include "orrery/pipeline/predict_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/comm/hash.h"
#include "orrery/config/json.h"
#include "orrery/models/catalog.h"
#include "orrery/models/json_config.h"
#include "orrery/models/load.h"
#include "orrery/platform/memory.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::pipeline {
namespace {

// Of our own wording; the references' paragraph is theirs (spec cosmos-predict2.5 §4.5).
constexpr const char* kNegativePrompt =
    "A video of poor quality: frozen or barely moving pictures, blur, harsh over-saturated colours, a "
    "shaking camera, low "
    "resolution, film grain, visible pixels and blocks, wrong exposure, banded colours, jerky motion, visual "
    "noise, flicker, "
    "duplicated frames and cuts that do not belong.";

/// What each reference makes when nothing is said (spec §9.1 to §9.3, §12.1).
config::Request defaults(const cosmos::Reference& reference, bool own_conditional_time) {
  config::Request r;
  r.width = 1280, r.height = 704, r.num_frames = 93, r.fps = 16;
  r.guidance = 7, r.seed = 0, r.negative_prompt = kNegativePrompt;
  if (reference.name == cosmos::kOfficial.name)
    r.reference = config::Reference::kOfficial, r.steps = 35;
  else
    r.reference = config::Reference::kDiffusers, r.num_inference_steps = 36;
  r.conditional_frame_timestep = own_conditional_time ? reference.conditional_time : -1.0;
  return r;
}

/// The checkpoint's own recommendations laid over the reference's defaults.
config::Request recommended(const std::string& path, const config::Request& base) {
  if (path.empty()) return base;
  try {
    return config::overlay(base, config::from_json<config::Request>(JsonConfig(path).json()));
  } catch (const Error& e) {
    throw Error(ErrorKind::kCheckpoint, path + ": " + e.message(), "invalid_header");
  }
}

// On a CPU bfloat16 convolutions are slow where the hardware lacks it, and the VAE is small
// (docs/numerics.md).
constexpr auto kVaeType = at::kFloat;

weights::Storage choose(config::WeightStorage wanted, int64_t widened_bytes) {
  if (wanted == config::WeightStorage::kMapped) return weights::Storage::kMapped;
  if (wanted == config::WeightStorage::kWidened) return weights::Storage::kWidened;
  // Half of what is free: activations and the text encoder need room too.
  return widened_bytes <= platform::system_memory().available / 2 ? weights::Storage::kWidened
                                                                  : weights::Storage::kMapped;
}

std::string variant(const config::Settings& settings, const Layout& layout) {
  if (!settings.variant) return layout.variant;
  return std::string(config::names_of(*settings.variant)[static_cast<size_t>(*settings.variant)]);
}

/// Adds a checkpoint's tensors or a configuration to the fingerprint.
void mark(PredictModel& m, const std::string& text) {
  m.fingerprint = comm::hash_of(concat(m.fingerprint, text));
}

void mark(PredictModel& m, const weights::TensorMap& tensors) {
  std::ostringstream all;
  for (const auto& [name, tensor] : tensors)
    all << name << ' ' << tensor.scalar_type() << ' ' << tensor.sizes() << '\n';
  mark(m, all.str());
}

/// The transformer's tensors under their diffusers names, and what its file calls them.
struct TransformerFile {
  weights::TensorMap tensors;
  weights::Loader::Spelling spelling;
};

TransformerFile open_transformer_file(const Layout& layout) {
  auto tensors = weights::open_weights(layout.transformer);
  const bool official = weights::cosmos_naming(tensors) == weights::Naming::kOfficial;
  return {weights::cosmos_names(std::move(tensors)),
          official ? weights::official_cosmos_name : weights::Loader::Spelling()};
}

cosmos::TransformerConfig transformer_config(const Layout& layout, const weights::TensorMap& tensors) {
  return layout.kind == Layout::Kind::kDiffusers
             ? cosmos::read_transformer_config(layout.transformer + "/config.json")
             : cosmos::infer_transformer_config(tensors);
}

cosmos::TransformerWeights read_transformer(const PredictModel& m, TransformerFile file) {
  return load<cosmos::TransformerWeights>(std::move(file.tensors), m.config, m.dtype, m.storage,
                                          m.layout.transformer, std::move(file.spelling));
}

void read_vae(PredictModel& m) {
  auto tensors = weights::wan_vae_names(weights::open_weights(m.layout.vae));
  mark(m, tensors);
  if (m.layout.kind == Layout::Kind::kDiffusers)
    m.vae_config = wan_vae::read_config(m.layout.vae + "/config.json");
  else if (const auto first = tensors.find("encoder.conv_in.weight"); first != tensors.end())
    m.vae_config.base_dim =
        first->second.size(0);  // the official file has no configuration: its width is all that varies
  m.vae = load<wan_vae::Weights>(std::move(tensors), m.vae_config, kVaeType, weights::Storage::kMapped,
                                 m.layout.vae);
  if (m.vae_config.z_dim != m.config.latent_channels)
    fail(ErrorKind::kCheckpoint, "the VAE makes ", m.vae_config.z_dim,
         " latent channels, the transformer takes ", m.config.latent_channels);
}

/// Sizes follow from the networks: the VAE's factors, the transformer's patch and the grid that its positions
/// were trained for.
config::Limits limits_of(const PredictModel& m) {
  config::Limits limits;
  limits.spatial_multiple = m.vae_config.spatial_factor() * m.config.patch;
  limits.temporal_multiple = m.vae_config.temporal_factor();
  limits.max_frames = m.vae_config.frames(m.config.max_size[0]);
  limits.max_height = m.config.max_size[1] * m.vae_config.spatial_factor();
  limits.max_width = m.config.max_size[2] * m.vae_config.spatial_factor();
  return limits;
}

}  // namespace

SchedulerConfig read_scheduler_config(const std::string& path) {
  const JsonConfig json(path);
  const auto unsupported = [&](const char* field, const std::string& wanted) {
    fail(ErrorKind::kUnsupported, path, ": ", field, " is ",
         json.json().value(field, nlohmann::json()).dump(), "; Cosmos-Predict2.5 uses ", wanted);
  };
  if (json.get("_class_name", std::string("UniPCMultistepScheduler")) != "UniPCMultistepScheduler")
    unsupported("_class_name", "UniPCMultistepScheduler");
  if (!json.get("use_flow_sigmas", false)) unsupported("use_flow_sigmas", "true");
  if (json.get("prediction_type", std::string()) != "flow_prediction")
    unsupported("prediction_type", "flow_prediction");
  if (json.get("solver_order", 2) != 2) unsupported("solver_order", "2");
  if (json.get("solver_type", std::string("bh2")) != "bh2") unsupported("solver_type", "bh2");
  SchedulerConfig c;
  c.karras = json.get("use_karras_sigmas", false);
  c.sigma_max = json.get("sigma_max", c.sigma_max);
  c.sigma_min = json.get("sigma_min", c.sigma_min);
  c.shift = json.get("flow_shift", 1.0);
  if (!(c.sigma_min > 0 && c.sigma_max > c.sigma_min)) unsupported("sigma_min", "0 < sigma_min < sigma_max");
  return c;
}

const cosmos::Reference& PredictModel::reference(const config::Request& request) const {
  const auto chosen = request.reference ? request.reference : limits.defaults.reference;
  return chosen == config::Reference::kOfficial ? cosmos::kOfficial : cosmos::kDiffusers;
}

sample::Schedule PredictModel::schedule(const config::Request& request) const {
  const int64_t n = config::evaluations(request, scheduler.karras);
  if (scheduler.karras) return sample::karras_flow(n, scheduler.sigma_max, scheduler.sigma_min);
  return request.reference == config::Reference::kOfficial ? sample::shifted_linear(n, scheduler.shift)
                                                           : sample::flow_shift(n, scheduler.shift);
}

cosmos::Transformer PredictModel::open_transformer(const cosmos::Reference& reference) const {
  return {with_arithmetic(config, reference),
          transformer ? *transformer : read_transformer(*this, open_transformer_file(layout))};
}

PredictModel open_predict_model(const config::Settings& settings, at::ScalarType dtype) {
  require(settings.model || settings.checkpoint_path, "model: expected a checkpoint (--model), found none");
  LayoutOverrides overrides;
  overrides.vae = settings.vae.value_or(""), overrides.text_encoder = settings.text_encoder.value_or("");
  overrides.tokenizer = settings.tokenizer.value_or("");
  if (settings.model) overrides.transformer = settings.checkpoint_path.value_or("");
  PredictModel m;
  m.layout = find_layout(settings.model ? *settings.model : *settings.checkpoint_path, overrides);
  m.family = family_of(m.layout.class_name).name;
  m.dtype = dtype;
  auto file = open_transformer_file(m.layout);
  m.config = transformer_config(m.layout, file.tensors);
  mark(m, file.tensors);
  // Every name and shape is checked now; the weights are opened again when they are needed.
  (void)read_transformer(m, std::move(file));
  read_vae(m);
  m.limits = limits_of(m);
  for (const auto& path :
       {m.layout.kind == Layout::Kind::kDiffusers ? m.layout.transformer + "/config.json" : "",
        m.layout.scheduler, m.layout.recommended})
    if (!path.empty()) mark(m, read_file(path));
  if (m.layout.kind == Layout::Kind::kOfficial) {
    m.scheduler.karras = variant(settings, m.layout) != "pre-trained";
    m.limits.defaults = defaults(cosmos::kOfficial, m.scheduler.karras);
  } else {
    if (!m.layout.scheduler.empty()) m.scheduler = read_scheduler_config(m.layout.scheduler);
    m.limits.defaults = recommended(m.layout.recommended, defaults(cosmos::kDiffusers, true));
  }
  return m;
}

void load_weights(PredictModel& m, config::WeightStorage storage) {
  weights::Sizer sizer;
  cosmos::TransformerWeights shape;
  bind(sizer, shape, m.config);
  m.storage = choose(storage, sizer.bytes(m.dtype));
  if (m.storage == weights::Storage::kWidened)
    m.transformer = read_transformer(m, open_transformer_file(m.layout));
  wan_vae::prepare_decoder(m.vae, kVaeType);
  platform::release_free_memory();
}

void load_encoder(PredictModel& m) {
  wan_vae::prepare_encoder(m.vae, kVaeType);
  platform::release_free_memory();
}

}  // namespace orrery::pipeline
