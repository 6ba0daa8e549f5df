#include "orrery/pipeline/qwen_image_model.h"

#include <filesystem>

#include "orrery/base/error.h"
#include "orrery/media/read.h"
#include "orrery/models/load.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::pipeline {
namespace {

namespace fs = std::filesystem;
using qwen_vl::PromptTemplate;

// The sizes of the model card (spec qwen-image §1.4).
const std::vector<config::SizePreset> kSizes = {{"1:1", 1328, 1328}, {"16:9", 1664, 928}, {"9:16", 928, 1664},
                                                {"4:3", 1472, 1104}, {"3:4", 1104, 1472}, {"3:2", 1584, 1056},
                                                {"2:3", 1056, 1584}};

PromptTemplate template_of(const std::string& class_name) {
  if (class_name == "QwenImageEditPipeline") return PromptTemplate::kEdit;
  if (class_name == "QwenImageEditPlusPipeline") return PromptTemplate::kEditPlus;
  return PromptTemplate::kText;
}

NetworkFile open_transformer_file(const QwenImageModel& m) {
  if (!m.adapted.tensors.empty()) return m.adapted;
  return {weights::qwen_image_names(weights::open_weights(m.layout.transformer)), {}};
}

qwen_image::TransformerWeights read_transformer(const QwenImageModel& m, NetworkFile file) {
  return load<qwen_image::TransformerWeights>(std::move(file.tensors), m.config, m.dtype, m.storage,
                                              m.layout.transformer);
}

/// Of the transformer's folder; of the model's own where another file takes its place.
std::string config_path(const config::Settings& settings, const Layout& layout) {
  if (fs::is_directory(layout.transformer) || !settings.model) return layout.transformer + "/config.json";
  return *settings.model + "/transformer/config.json";
}

/// What the pipelines of diffusers and the model cards make when nothing is said (spec qwen-image §1.4, §1.5,
/// §9), and the negative prompt of the cards, without which there would be no guidance (§7).
config::Request defaults(const QwenImageModel& m) {
  config::Request r;
  r.reference = config::Reference::kDiffusers;
  r.num_frames = 1, r.num_images = 1, r.seed = 0;
  if (!m.edits()) r.width = 1024, r.height = 1024;
  r.num_inference_steps = m.prompt == PromptTemplate::kEditPlus ? 40 : 50;
  r.guidance = 4, r.negative_prompt = " ";
  return r;
}

config::Limits limits_of(const QwenImageModel& m) {
  config::Limits limits;
  limits.spatial_multiple = m.pixels_per_token();
  limits.max_width = limits.max_height = media::kMaxSide;
  limits.max_frames = 1, limits.max_sequence_length = 1024;
  limits.modes = {m.edits() ? config::Mode::kEdit : config::Mode::kText2Image};
  limits.official = false, limits.lightning = true;
  limits.max_images = m.prompt == PromptTemplate::kEditPlus ? 3 : 1, limits.max_num_images = 1000;
  limits.presets = kSizes;
  return limits;
}

}  // namespace

qwen_image::Transformer QwenImageModel::open_transformer() const {
  return {config, transformer ? *transformer : read_transformer(*this, open_transformer_file(*this))};
}

std::vector<float> QwenImageModel::sigmas(const config::Request& request, int64_t tokens) const {
  return sample::flow_sigmas(request.lightning ? sample::FlowShift::lightning() : shift,
                             config::evaluations(request, /*karras=*/false), tokens);
}

QwenImageModel open_qwen_image_model(const config::Settings& settings, at::ScalarType dtype) {
  QwenImageModel m;
  m.layout = layout_of(settings);
  m.dtype = dtype;
  m.prompt = template_of(m.layout.class_name);
  const std::string configuration = config_path(settings, m.layout);
  m.config = qwen_image::read_transformer_config(configuration);
  auto file = open_transformer_file(m);
  // ComfyUI's files say so with a tensor (spec qwen-image §2.9).
  if (file.tensors.erase("__index_timestep_zero__") > 0) m.config.zero_cond_t = true;
  m.mark(file.tensors);
  if (!settings.lora.empty()) {
    adapt(m, settings, file);
    m.adapted = file;
  }
  // Every name and shape is checked now; the weights are opened again when they are needed.
  check<qwen_image::TransformerWeights>(std::move(file.tensors), m.config, m.layout.transformer,
                                        std::move(file.spelling));
  open_vae(m, m.config.latent_channels);
  if (m.layout.scheduler.empty())
    throw Error(ErrorKind::kCheckpoint, "no scheduler/scheduler_config.json beside " + m.layout.transformer,
                "missing_file");
  m.shift = sample::read_flow_shift(m.layout.scheduler);
  m.limits = limits_of(m);
  m.limits.defaults = recommended(m.layout.recommended, defaults(m));
  m.mark_files({configuration, m.layout.scheduler, m.layout.recommended});
  return m;
}

void load_weights(QwenImageModel& m, config::WeightStorage storage) {
  m.storage = choose_storage(storage, size_of<qwen_image::TransformerWeights>(m.config).bytes(m.dtype));
  if (m.storage == weights::Storage::kWidened) {
    m.transformer = read_transformer(m, open_transformer_file(m));
    m.adapted = {};
  }
  load_vae(m, m.edits());
}

}  // namespace orrery::pipeline
