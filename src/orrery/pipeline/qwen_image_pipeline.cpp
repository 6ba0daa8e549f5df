// What `inspect`, `plan` and the engine ask of a checkpoint of Qwen-Image or of its editing models.
#include "orrery/base/error.h"
#include "orrery/media/read.h"
#include "orrery/models/load.h"
#include "orrery/models/qwen_vl/vision_weights.h"
#include "orrery/models/qwen_vl/weights.h"
#include "orrery/pipeline/qwen_image.h"
#include "orrery/pipeline/qwen_image_prompt.h"

namespace orrery::pipeline {
namespace {

class QwenImage final : public Pipeline {
 public:
  explicit QwenImage(QwenImageModel model) : model_(std::move(model)) {}

  const Checkpoint& checkpoint() const override { return model_; }

  std::vector<Part> parts() const override {
    const auto& c = model_.config;
    std::vector<Part> parts = {
        {"transformer", model_.layout.transformer, size_of<qwen_image::TransformerWeights>(c)},
        {"vae", model_.layout.vae, size_of<wan_vae::Weights>(model_.vae_config)}};
    parts[0].facts = {{"blocks", c.layers},
                      {"width", c.width()},
                      {"heads", c.heads},
                      {"head_dim", c.head_dim},
                      {"text_features", c.text_width}};
    if (const auto& folder = model_.layout.text_encoder; !folder.empty()) {
      const auto text = qwen_vl::read_text_config(folder + "/config.json");
      parts.push_back({"text_encoder",
                       folder,
                       size_of<qwen_vl::TextWeights>(text),
                       {{"layers", text.layers}, {"width", text.hidden_size}}});
      if (!model_.edits()) return parts;
      const auto vision = qwen_vl::read_vision_config(folder + "/config.json");
      parts.push_back({"vision_tower",
                       "",
                       size_of<qwen_vl::VisionWeights>(vision),
                       {{"layers", vision.depth}, {"width", vision.hidden_size}}});
    }
    return parts;
  }

  std::string sigmas() const override {
    return model_.shift.dynamic ? "flow, shifted by the size" : "flow, shifted";
  }

  Work work(const config::Request& request) const override {
    const auto& m = model_.config;
    const int64_t width = m.width(), pixels = model_.pixels_per_token() * model_.pixels_per_token();
    // Given pictures are taken to be of the area that they are brought to.
    const int64_t given = model_.edits() ? std::max<int64_t>(std::ssize(request.images), 1) : 0;
    const int64_t made = request.width && request.height ? *request.width * *request.height / pixels
                                                         : model_.vae_area / pixels;
    Work w{.blocks = m.layers, .heads = m.heads, .head_dim = m.head_dim};
    w.tokens = made + given * model_.vae_area / pixels;
    w.joint_text_tokens = request.max_sequence_length.value_or(512);
    w.velocity_channels = m.token_channels();
    w.velocity_values = made * m.token_channels();
    w.token_flops = multiply(1, width, 4 * width + 2 * m.mlp_width());
    w.text_flops = static_cast<double>(w.joint_text_tokens) * w.token_flops;
    w.edge_flops = 2 * multiply(1, m.token_channels(), width);
    w.token_values = std::max(5 * width, 2 * width + m.mlp_width());
    w.text_values = w.joint_text_tokens * width;
    w.guided = *request.guidance > 1;
    w.element_bytes = model_.dtype == at::kFloat ? 4 : 2;
    w.weight_bytes = size_of<qwen_image::TransformerWeights>(m).bytes(model_.dtype);
    return w;
  }

  Given read_given(config::Request& request) const override {
    Given pictures;
    for (const auto& path : request.images) {
      pictures.push_back(media::read_frames(path, media::Selection::first(1)));
      (void)size_of_area(pictures.back(), model_.vae_area);  // refuses it, if it is too narrow
    }
    if (pictures.empty()) return pictures;
    const auto like_last = size_of_area(pictures.back(), model_.vae_area);
    request.height = request.height.value_or(like_last.height);
    request.width = request.width.value_or(like_last.width);
    return pictures;
  }

  void load(const config::Request&, config::WeightStorage storage) override {
    if (!loaded_) load_weights(model_, storage);
    loaded_ = true;
  }

  Media make(const parallel::Team& team, const config::Request& request, const Given& given,
             const Hooks& hooks) const override {
    return make_pictures(model_, team, request, given, hooks);
  }

 private:
  QwenImageModel model_;
  bool loaded_ = false;
};

}  // namespace

std::unique_ptr<Pipeline> open_qwen_image(const config::Settings& settings, at::ScalarType dtype) {
  return std::make_unique<QwenImage>(open_qwen_image_model(settings, dtype));
}

}  // namespace orrery::pipeline
