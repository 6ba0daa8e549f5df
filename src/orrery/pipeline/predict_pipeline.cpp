// What `inspect`, `plan` and the engine ask of a Cosmos-Predict2.5 checkpoint.
#include "orrery/models/load.h"
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
    if (auto text = text_encoder_part(model_)) parts.push_back(std::move(*text));
    return parts;
  }

  std::string sigmas() const override { return model_.scheduler.karras ? "karras" : "linear"; }

  Work work(const config::Request& request) const override {
    Work w = cosmos_work(model_, model_.config, request, *request.num_frames,
                         model_.reference(request).skip_guidance_up_to);
    w.weight_bytes = size_of<cosmos::TransformerWeights>(model_.config).bytes(model_.dtype);
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
