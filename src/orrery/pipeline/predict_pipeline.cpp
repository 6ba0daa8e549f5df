// What `inspect`, `plan` and the engine ask of a Cosmos-Predict2.5 checkpoint.
#include "orrery/models/load.h"
#include "orrery/models/qwen_vl/weights.h"
#include "orrery/pipeline/given_frames.h"
#include "orrery/pipeline/predict.h"

namespace orrery::pipeline {
namespace {

class Predict final : public Pipeline {
 public:
  explicit Predict(PredictModel model) : model_(std::move(model)) {}

  const Checkpoint& checkpoint() const override { return model_; }

  std::vector<Part> parts() const override {
    const auto& c = model_.config;
    std::vector<Part> parts = {
        {"transformer", model_.layout.transformer, size_of<cosmos::TransformerWeights>(c)},
        {"vae", model_.layout.vae, size_of<wan_vae::Weights>(model_.vae_config)}};
    parts[0].facts = {{"blocks", c.layers},
                      {"width", c.width()},
                      {"heads", c.heads},
                      {"head_dim", c.head_dim},
                      {"text_features", c.text_input_width}};
    if (const auto& folder = model_.layout.text_encoder; !folder.empty()) {
      const auto text = qwen_vl::read_text_config(folder + "/config.json");
      parts.push_back({"text_encoder",
                       folder,
                       size_of<qwen_vl::TextWeights>(text),
                       {{"layers", text.layers}, {"width", text.hidden_size}}});
    }
    return parts;
  }

  std::string sigmas() const override { return model_.scheduler.karras ? "karras" : "linear"; }

  Work work(const config::Request& request) const override {
    const auto& m = model_.config;
    const int64_t f = model_.vae_config.spatial_factor(), width = m.width();
    const int64_t frames = model_.vae_config.latent_frames(*request.num_frames);
    const int64_t rows = *request.height / f, columns = *request.width / f;
    const int64_t text = request.max_sequence_length.value_or(512);
    Work w{.blocks = m.layers, .heads = m.heads, .head_dim = m.head_dim};
    w.tokens = frames * (rows / m.patch) * (columns / m.patch);
    w.velocity_channels = m.latent_channels * m.patch * m.patch;
    w.velocity_values = model_.vae_config.z_dim * frames * rows * columns;
    w.token_flops = multiply(1, width, 6 * width + 2 * m.mlp_width()) + 2 * multiply(1, text, width);
    w.edge_flops = multiply(1, m.patch_inputs() + w.velocity_channels, width);
    // The stream, its normed copy, q, k and v, or the MLP's inner activations; keys and values of the text.
    w.token_values = std::max(5 * width, 2 * width + m.mlp_width());
    w.text_values = m.layers * 2 * text * width;
    w.guided = *request.guidance > model_.reference(request).skip_guidance_up_to;
    w.element_bytes = model_.dtype == at::kFloat ? 4 : 2;
    w.weight_bytes = size_of<cosmos::TransformerWeights>(m).bytes(model_.dtype);
    return w;
  }

  Given read_given(config::Request& request) const override {
    return {read_given_frames(request, model_.reference(request))};
  }

  void load(const config::Request& request, config::WeightStorage storage) override {
    if (!loaded_) load_weights(model_, storage);
    loaded_ = true;
    if (encodes(request)) load_encoder(model_);
  }

  Media make(const parallel::Team& team, const config::Request& request, const Given& given,
             const Hooks& hooks) const override {
    auto video = predict(model_, model_.reference(request), team, request, given.at(0), hooks);
    video.latents = video.latents.unsqueeze(0);
    return video;
  }

 private:
  PredictModel model_;
  bool loaded_ = false;
};

}  // namespace

std::unique_ptr<Pipeline> open_predict(const config::Settings& settings, at::ScalarType dtype) {
  return std::make_unique<Predict>(open_predict_model(settings, dtype));
}

}  // namespace orrery::pipeline
