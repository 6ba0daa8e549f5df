#include "orrery/pipeline/transfer_model.h"

#include <algorithm>
#include <limits>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/base/text.h"
#include "orrery/config/controls.h"
#include "orrery/media/read.h"
#include "orrery/models/load.h"
#include "orrery/models/siglip/model.h"
#include "orrery/pipeline/transfer_input.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::pipeline {
namespace {

// Of our own wording; the reference's paragraph is theirs (spec cosmos-transfer2.5 §5.3).
constexpr const char* kNegativePrompt =
    "A video that looks like an old computer game: simple shapes, flat textures, plastic surfaces, wrong "
    "light and shadows, cartoon colours, low resolution, blocky compression, blur, flicker and jerky motion.";

TransferReference official() {
  auto reference = cosmos::kOfficial;
  reference.conditional_time = -1;  // given frames have the time of the others (§4.2)
  return {.cosmos = reference, .chained_seeds = true, .mirrored = true, .carries_bytes = true};
}

TransferReference distilled() {
  auto reference = official();
  reference.cosmos.integer_time = reference.cosmos.numpy_noise = false;
  reference.cosmos.skip_guidance_up_to = std::numeric_limits<double>::infinity();  // it is built in
  // sin t / (cos t + sin t) at t = atan 1e-4.
  reference.cosmos.conditional_time = static_cast<float>(1e-4 / (1 + 1e-4));
  reference.few_step = true;
  return reference;
}

TransferReference diffusers() {
  auto reference = cosmos::kDiffusers;
  reference.conditional_time = 0.1f;
  reference.truncate_pixels = true;
  return {.cosmos = reference, .chained_seeds = false, .mirrored = false, .carries_bytes = false};
}

const TransferReference kOfficial = official(), kDiffusers = diffusers(), kDistilled = distilled();

/// What each reference makes when nothing is said (§5.3, §12).
config::Request defaults(bool is_official) {
  config::Request r;
  const auto& reference = is_official ? kOfficial : kDiffusers;
  r.guidance = 3, r.seed = 2025, r.negative_prompt = kNegativePrompt;
  r.chunk_size = 93, r.chunk_overlap = 1, r.resolution = "720";
  if (is_official)
    r.reference = config::Reference::kOfficial, r.steps = 35;
  else
    r.reference = config::Reference::kDiffusers, r.num_inference_steps = 36;
  r.conditional_frame_timestep = reference.cosmos.conditional_time;
  r.keep_input_resolution = is_official;
  r.guided_generation_step_threshold = 25;
  return r;
}

config::Request distilled_defaults() {
  auto r = defaults(/*is_official=*/true);
  r.guidance = 0, r.steps = 4;
  r.conditional_frame_timestep = kDistilled.cosmos.conditional_time;
  return r;
}

/// The checkpoint's controls that are wanted, in the order in which their hints are added.
std::vector<Layout::Control> chosen(const Layout& layout, const std::vector<std::string>& wanted) {
  std::vector<std::string> known;
  for (const auto& control : layout.controls) known.push_back(control.name);
  for (const auto& name : wanted)
    require(std::find(config::kControls.begin(), config::kControls.end(), name) != config::kControls.end(),
            "controls: expected edge, vis, depth or seg, found \"", name, "\"");
  if (layout.controls.size() == 1) {
    require(wanted.size() <= 1 && (wanted.empty() || known[0].empty() || known[0] == wanted[0]),
            "this checkpoint follows one control, ", known[0].empty() ? "of one kind" : known[0], "; found ",
            join(wanted));
    return {{wanted.empty() ? known[0] : wanted[0], layout.controls[0].path}};
  }
  for (const auto& name : wanted)
    require(std::find(known.begin(), known.end(), name) != known.end(), "this checkpoint has no control ",
            name, "; it has ", join(known));
  std::vector<Layout::Control> controls;
  for (const auto& control : layout.controls)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), control.name) != wanted.end())
      controls.push_back(control);
  return controls;
}

/// Base and branches; the base of official files is the last one's (§2.6).
NetworkFile open_network(const TransferModel& m) {
  const bool is_official = m.layout.kind == Layout::Kind::kOfficial;
  std::vector<cosmos_transfer::BranchTensors> branches;
  weights::TensorMap base;
  if (!is_official) base = weights::cosmos_names(weights::open_weights(m.layout.transformer));
  for (const auto& control : m.layout.controls) {
    const auto tensors = weights::open_weights(control.path);
    branches.push_back({control.name, weights::cosmos_control_names(tensors)});
    if (is_official) base = weights::cosmos_names(tensors);
  }
  return {cosmos_transfer::assemble(base, branches),
          is_official ? cosmos_transfer::official_name : weights::Loader::Spelling()};
}

cosmos_transfer::TransformerConfig read_config(const TransferModel& m, const weights::TensorMap& tensors) {
  std::vector<std::string> names, files;
  for (const auto& control : m.layout.controls)
    names.push_back(control.name), files.push_back(control.path + "/config.json");
  return m.layout.kind == Layout::Kind::kOfficial
             ? cosmos_transfer::infer_transformer_config(tensors, names)
             : cosmos_transfer::read_transformer_config(m.layout.transformer + "/config.json", files, names);
}

cosmos_transfer::TransformerWeights read_transformer(const TransferModel& m, NetworkFile file) {
  return load<cosmos_transfer::TransformerWeights>(std::move(file.tensors), m.config, m.dtype, m.storage,
                                                   m.layout.transformer, std::move(file.spelling));
}

bool has_style(const TransferModel& m, const config::Request& r) {
  return m.config.base.image_width > 0 && (r.image_context_path || r.context_frame_index);
}

siglip::Model open_image_encoder(const TransferModel& m, weights::Storage storage) {
  const auto& folder = m.layout.image_encoder;
  if (folder.empty())
    throw Error(
        ErrorKind::kCheckpoint,
        "this checkpoint has no picture encoder beside it, which a style picture needs: name a SigLIP2 "
        "folder with --image-encoder",
        "missing_file");
  auto model = siglip::open_model(folder, m.dtype, storage);
  if (model.config.width != m.config.base.image_input_width)
    fail(ErrorKind::kCheckpoint, folder, ": features of width ", model.config.width,
         "; the transformer takes ", m.config.base.image_input_width);
  return model;
}

config::Limits limits_of(const TransferModel& m) {
  config::Limits limits;
  limits.modes = {config::Mode::kTransfer};
  for (const auto& name : m.config.branches)
    if (name != kAnyControl) limits.controls.push_back(name);
  limits.spatial_multiple = m.vae_config.spatial_factor() * m.config.base.patch;
  limits.temporal_multiple = m.vae_config.temporal_factor();
  limits.max_frames = sample::kMaxInputFrames;
  limits.max_height = m.config.base.max_size[1] * m.vae_config.spatial_factor();
  limits.max_width = m.config.base.max_size[2] * m.vae_config.spatial_factor();
  return limits;
}

}  // namespace

const TransferReference& TransferModel::reference(const config::Request& request) const {
  return distilled ? kDistilled : official(request) ? kOfficial : kDiffusers;
}

size_t TransferModel::branch(const std::string& control) const {
  const auto& names = config.branches;
  if (names.size() == 1 && names[0] == kAnyControl) return 0;
  const auto found = std::find(names.begin(), names.end(), control);
  require(found != names.end(), control, ": this model is controlled by ", join(names), " only");
  return static_cast<size_t>(found - names.begin());
}

cosmos_transfer::Transformer TransferModel::open_transformer(const cosmos::Reference& reference) const {
  auto arithmetic = config;
  arithmetic.base = with_arithmetic(config.base, reference);
  return {arithmetic, transformer ? *transformer : read_transformer(*this, open_network(*this))};
}

sample::Schedule TransferModel::schedule(const config::Request& request) const {
  constexpr double kOfficialShift = 5;
  if (distilled) return sample::distilled(config::evaluations(request, /*karras=*/false));
  if (!official(request)) return CosmosCheckpoint::schedule(request);
  return sample::shifted_linear(config::evaluations(request, /*karras=*/false), kOfficialShift);
}

TransferModel open_transfer_model(const config::Settings& settings, at::ScalarType dtype) {
  require(settings.lora.empty(), "lora: orrery merges LoRA files into Cosmos-Predict2.5 and Qwen-Image only");
  TransferModel m;
  m.layout = layout_of(settings);
  m.layout.controls = chosen(m.layout, settings.controls);
  for (auto& control : m.layout.controls)
    if (control.name.empty()) control.name = kAnyControl;
  m.dtype = dtype;
  auto file = open_network(m);
  m.config = read_config(m, file.tensors);
  m.text_input_width = m.config.base.text_input_width;
  m.mark(file.tensors);
  // Every name and shape is checked now; the weights are opened again when they are needed.
  check<cosmos_transfer::TransformerWeights>(std::move(file.tensors), m.config, m.layout.transformer,
                                             std::move(file.spelling));
  open_vae(m, m.config.base.latent_channels);
  m.limits = limits_of(m);
  const bool is_official = m.layout.kind == Layout::Kind::kOfficial;
  m.mark_files(
      {is_official ? "" : m.layout.transformer + "/config.json", m.layout.scheduler, m.layout.recommended});
  if (!is_official && !m.layout.scheduler.empty()) m.scheduler = read_scheduler_config(m.layout.scheduler);
  m.distilled = settings.variant.value_or(m.layout.variant) == config::Variant::kDistilled;
  m.limits.defaults =
      m.distilled ? distilled_defaults() : recommended(m.layout.recommended, defaults(is_official));
  return m;
}

void check_style(const TransferModel& m, const config::Request& r) {
  if (has_style(m, r)) (void)open_image_encoder(m, weights::Storage::kUnread);
}

Tensor style_of(const TransferModel& m, const config::Request& r) {
  if (!has_style(m, r)) {
    if (r.image_context_path || r.context_frame_index)
      log::warn("this model does not look at style pictures: the one that is given has no effect");
    return {};
  }
  const auto picture = r.image_context_path ? media::read_on_white(*r.image_context_path)
                                            : input_frame(r, *r.context_frame_index);
  return siglip::features(open_image_encoder(m, weights::Storage::kMapped), picture, *r.height, *r.width);
}

void load_weights(TransferModel& m, config::WeightStorage storage) {
  m.storage = choose_storage(storage, size_of<cosmos_transfer::TransformerWeights>(m.config).bytes(m.dtype));
  if (m.storage == weights::Storage::kWidened) m.transformer = read_transformer(m, open_network(m));
  load_vae(m, /*encodes=*/true);
}

}  // namespace orrery::pipeline
