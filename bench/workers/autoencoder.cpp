// The VAE alone; an operation's half of the weights is prepared when it is first run, as the engine does.
// INPUT holds latents [z, T, h, w] as decode() takes them and pixels [3, F, H, W] in −1 … 1.
#include <ATen/ops/clamp.h>

#include "bench/workers/worker.h"
#include "orrery/models/load.h"
#include "orrery/models/wan_vae/wan_vae.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::bench {
namespace {

struct Model {
  wan_vae::Config config;
  wan_vae::Weights weights;
};

std::shared_ptr<Model> open(const Arguments& arguments) {
  auto model = std::make_shared<Model>();
  model->config = wan_vae::read_config(arguments.model + "/config.json");
  model->weights =
      orrery::load<wan_vae::Weights>(weights::wan_vae_names(weights::open_weights(arguments.model)),
                                     model->config, at::kFloat, weights::Storage::kMapped, arguments.model);
  return model;
}

Operations load(const Arguments& arguments) {
  const auto model = open(arguments);
  const auto input = weights::open_safetensors(arguments.input);
  const Tensor latents = input.at("latents"), pixels = input.at("pixels");
  const auto dtype = arguments.dtype;
  // diffusers clamps what it decodes; so does our caller, which makes bytes of it.
  const auto decode = [=] {
    wan_vae::prepare_decoder(model->weights, dtype);
    return at::clamp(wan_vae::decode(model->weights, model->config, latents), -1, 1);
  };
  const auto encode = [=] {
    wan_vae::prepare_encoder(model->weights, dtype);
    return wan_vae::encode(model->weights, model->config, pixels);
  };
  return {{"decode", timed(decode)}, {"encode", timed(encode)}};
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) { return orrery::bench::worker_main(argc, argv, orrery::bench::load); }
