#pragma once
#include "orrery/models/cosmos/model.h"
#include "orrery/models/cosmos_transfer/weights.h"

namespace orrery::cosmos_transfer {

using cosmos::Grid;

/// One control of a clip.
struct Control {
  size_t branch = 0;                  // index into TransformerConfig::branches
  Tensor hint;                        // [C, T, h, w] floating, VAE latents of the control, of the clip's size
  std::vector<double> weights = {1};  // its hints are multiplied with: one per control block, or one for all
  Tensor map = {};                    // [T, R, C] floating, on the token grid, or undefined: what the hints
                                      // are multiplied with, too; weight_maps() has the weight in it
};

/// The controls that act, in the order of their branches. Left out are those whose weights are all 0, whose
/// map is 0 everywhere, and whose hint is all 0, which is how an absent control comes (spec §2.6, §3.1).
std::vector<Control> active(std::vector<Control> controls);

/// Once per prompt and process, shared by its ranks.
struct Prepared {
  struct Branch {
    size_t index;                               // into TransformerConfig::branches
    std::vector<double> weights;                // one per control block
    std::vector<cosmos::CrossAttention> cross;  // likewise
  };
  cosmos::Prepared base;
  std::vector<Branch> branches;  // of the active controls
};

/// Once per distinct set of times.
struct Step {
  cosmos::Step base;
  std::vector<std::vector<cosmos::BlockRows>> branches;  // [active control][control block]
};

/// One forward's hidden states on this rank: the clip's, and one of each active control.
struct Stream {
  struct Branch {
    cosmos::Stream state;
    Tensor map;  // [S_r, 1]: of each token, in the compute dtype
  };
  cosmos::Stream base;
  std::vector<Branch> branches;
  const Tensor& state() const { return base.x; }
};

/// The Cosmos-Transfer2.5 video transformer (spec cosmos-transfer2.5 §2), "MinimalV4LVGDiT" with control
/// branches of nvidia-cosmos/cosmos-transfer2.5, and CosmosControlNetModel beside CosmosTransformer3DModel of
/// diffusers. Beside the base, each branch runs its own blocks on clip and hint, and adds what comes out of
/// control block k to the clip behind base block k · every. Controls that are not active() cost nothing.
/// Const and safe to share between threads.
///
/// Members that take controls throw an Error of kind request for a branch that the model lacks or that comes
/// twice, for another number of weights, weights that are not finite, and hints and maps of another size. A
/// request gives the same controls to all of them.
class Transformer {
 public:
  using Prepared = cosmos_transfer::Prepared;
  using Step = cosmos_transfer::Step;
  using Stream = cosmos_transfer::Stream;

  Transformer(TransformerConfig config, TransformerWeights weights);

  const TransformerConfig& config() const { return config_; }
  at::ScalarType dtype() const { return base_.dtype(); }

  /// latents [C, frames, H, W] with H and W multiples of the patch.
  Grid grid(int64_t frames, int64_t height, int64_t width) const { return base_.grid(frames, height, width); }

  /// embeds [L, text_input_width]; image_features [N_img, image_input_width], or undefined: zeros, as without
  /// a style picture. Errors as cosmos::Transformer::prompt.
  Prepared prepare(const Grid& grid, const Tensor& embeds, const Tensor& image_features,
                   const std::vector<Control>& controls) const;

  /// times: one per latent frame, in sigma units. For all prompts that were prepared with these controls.
  Step step(const Prepared& prepared, const std::vector<float>& times) const;

  /// latents [C, F, H, W] float32, the first `given` frames conditioned → tokens of the whole clip, in the
  /// compute dtype: the base's columns, then of each active control a patch of hint and the map's value.
  parallel::Tokens tokens(const Grid& grid, const Tensor& latents, int64_t given,
                          const std::vector<Control>& controls) const;

  /// [S, patch·C] as run() returns them → velocity [C, F, H, W] float32.
  Tensor velocity(const Grid& grid, const Tensor& tokens) const { return base_.velocity(grid, tokens); }

  int64_t block_count() const { return base_.block_count(); }
  Stream embed(const parallel::Context& ctx, const Prepared& prepared, const Step& step,
               const parallel::Tokens& tokens) const;
  void block(const parallel::Context& ctx, const Prepared& prepared, const Step& step, int64_t i,
             Stream& s) const;
  Tensor unembed(const parallel::Context& ctx, const Step& step, const Stream& s) const {
    return base_.unembed(ctx, step.base, s.base);
  }

 private:
  std::vector<Control> checked(const Grid& grid, const std::vector<Control>& controls) const;

  TransformerConfig config_;
  cosmos::Transformer base_;
  std::vector<Branch> branches_;
};

}  // namespace orrery::cosmos_transfer
