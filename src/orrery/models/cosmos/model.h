#pragma once
#include "orrery/models/cosmos/block.h"
#include "orrery/parallel/run.h"

namespace orrery::cosmos {

/// The token grid of a clip and what depends on nothing else. Latents [C, frames, 2·rows, 2·columns] for
/// patches of 2.
struct Grid {
  int64_t frames, rows, columns;
  Tensor rope;   // [S, D]
  Tensor frame;  // [S] int32
  int64_t tokens() const { return frames * rows * columns; }
};

/// Once per prompt and process, shared by its ranks: what cross-attention needs of the prompt.
struct Prepared {
  std::vector<CrossAttention> cross;  // one per block
  int64_t sequence_length = 0;        // tokens of the whole clip
};

/// Once per distinct set of times: the modulation of every block for one row, or two where given frames have
/// a time of their own.
struct Step {
  std::vector<BlockRows> blocks;
  Rows final;
  Tensor row_of_frame;  // [frames] int32
};

/// The Cosmos-Predict2.5 video transformer (spec cosmos-predict2.5 §2), "MinimalV1LVGDiT" of
/// nvidia-cosmos/cosmos-predict2.5 and CosmosTransformer3DModel of diffusers. Const and safe to share between
/// threads.
class Transformer {
 public:
  using Prepared = cosmos::Prepared;
  using Step = cosmos::Step;
  using Stream = cosmos::Stream;

  Transformer(TransformerConfig config, TransformerWeights weights)
      : config_(std::move(config)), weights_(std::move(weights)) {}

  const TransformerConfig& config() const { return config_; }
  at::ScalarType dtype() const { return weights_.time_embed.norm.scalar_type(); }

  /// latents [C, frames, H, W] with H and W multiples of the patch.
  Grid grid(int64_t frames, int64_t height, int64_t width) const;

  /// embeds [L, text_input_width]; image_features [N_img, image_input_width], or undefined, which means zeros
  /// to a model with image context. Error of kind request for other widths, and for features where the model
  /// has no image context.
  Prompt prompt(const Tensor& embeds, const Tensor& image_features = {}) const;

  /// The prompt's keys and values in every block.
  Prepared prepare(const Grid& grid, const Prompt& prompt) const;
  Prepared prepare(const Grid& grid, const Tensor& embeds) const { return prepare(grid, prompt(embeds)); }

  /// times: one per latent frame, in sigma units (0 … 1), at most a few distinct ones.
  Time time(const std::vector<float>& times) const;
  Step step(const Time& time) const;
  Step step(const std::vector<float>& times) const { return step(time(times)); }

  /// latents [C, F, H, W] float32, the first `given` frames conditioned → tokens of the whole clip, in the
  /// compute dtype.
  parallel::Tokens tokens(const Grid& grid, const Tensor& latents, int64_t given) const;

  /// [S, patch·C] as run() returns them → velocity [C, F, H, W] float32.
  Tensor velocity(const Grid& grid, const Tensor& tokens) const;

  int64_t block_count() const { return config_.layers; }
  Stream embed(const parallel::Context& ctx, const Prepared& prepared, const Step& step,
               const parallel::Tokens& tokens) const;
  void block(const parallel::Context& ctx, const Prepared& prepared, const Step& step, int64_t i,
             Stream& s) const;
  Tensor unembed(const parallel::Context& ctx, const Step& step, const Stream& s) const;

 private:
  TransformerConfig config_;
  TransformerWeights weights_;
};

}  // namespace orrery::cosmos
