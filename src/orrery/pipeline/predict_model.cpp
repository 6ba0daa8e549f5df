#include "orrery/pipeline/predict_model.h"

#include "orrery/base/error.h"
#include "orrery/models/load.h"
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

NetworkFile open_transformer_file(const PredictModel& m) {
  if (!m.adapted.tensors.empty()) return m.adapted;
  auto tensors = weights::open_weights(m.layout.transformer);
  const bool official = weights::cosmos_naming(tensors) == weights::Naming::kOfficial;
  return {weights::cosmos_names(std::move(tensors)),
          official ? weights::official_cosmos_name : weights::Loader::Spelling()};
}

cosmos::TransformerConfig transformer_config(const Layout& layout, const weights::TensorMap& tensors) {
  return layout.kind == Layout::Kind::kDiffusers
             ? cosmos::read_transformer_config(layout.transformer + "/config.json")
             : cosmos::infer_transformer_config(tensors);
}

cosmos::TransformerWeights read_transformer(const PredictModel& m, NetworkFile file) {
  return load<cosmos::TransformerWeights>(std::move(file.tensors), m.config, m.dtype, m.storage,
                                          m.layout.transformer, std::move(file.spelling));
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

const cosmos::Reference& PredictModel::reference(const config::Request& request) const {
  return official(request) ? cosmos::kOfficial : cosmos::kDiffusers;
}

cosmos::Transformer PredictModel::open_transformer(const cosmos::Reference& reference) const {
  return {with_arithmetic(config, reference),
          transformer ? *transformer : read_transformer(*this, open_transformer_file(*this))};
}

PredictModel open_predict_model(const config::Settings& settings, at::ScalarType dtype) {
  PredictModel m;
  m.layout = layout_of(settings);
  m.dtype = dtype;
  const bool published = m.layout.kind == Layout::Kind::kDiffusers;
  auto file = open_transformer_file(m);
  m.config = transformer_config(m.layout, file.tensors);
  m.text_input_width = m.config.text_input_width;
  m.mark(file.tensors);
  if (!settings.lora.empty()) {
    adapt(m, settings, file);
    m.adapted = file;
  }
  // Every name and shape is checked now; the weights are opened again when they are needed.
  check<cosmos::TransformerWeights>(std::move(file.tensors), m.config, m.layout.transformer,
                                    std::move(file.spelling));
  open_vae(m, m.config.latent_channels);
  m.limits = limits_of(m);
  m.mark_files(
      {published ? m.layout.transformer + "/config.json" : "", m.layout.scheduler, m.layout.recommended});
  if (published) {
    if (!m.layout.scheduler.empty()) m.scheduler = read_scheduler_config(m.layout.scheduler);
    m.limits.defaults = recommended(m.layout.recommended, defaults(cosmos::kDiffusers, true));
  } else {
    const auto variant = settings.variant.value_or(m.layout.variant);
    if (variant == config::Variant::kDistilled)
      throw Error(ErrorKind::kUnsupported,
                  "variant: orrery runs the distilled Cosmos-Transfer2.5, not a distilled Cosmos-Predict2.5");
    m.scheduler.karras = variant != config::Variant::kPreTrained;
    m.limits.defaults = defaults(cosmos::kOfficial, m.scheduler.karras);
  }
  return m;
}

void load_weights(PredictModel& m, config::WeightStorage storage) {
  m.storage = choose_storage(storage, size_of<cosmos::TransformerWeights>(m.config).bytes(m.dtype));
  if (m.storage == weights::Storage::kWidened) {
    m.transformer = read_transformer(m, open_transformer_file(m));
    m.adapted = {};
  }
  load_vae(m, /*encodes=*/false);
}

void load_encoder(PredictModel& m) { load_vae(m, /*encodes=*/true); }

}  // namespace orrery::pipeline
