#pragma once
#include "orrery/models/cosmos/weights.h"
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

/// Once per prompt and process, shared by its ranks: what cross-attention needs of the text.
struct Prepared {
  struct CrossAttention {
    Tensor k, v;  // [L, N, D], k after its norm
  };
  std::vector<CrossAttention> cross;  // one per block
  int64_t sequence_length = 0;        // tokens of the whole clip
};

/// Once per distinct set of times: the modulation of every block for one row, or two where given frames have
/// a time of their own.
struct Step {
  struct Rows {
    Tensor shift, scale, gate;  // [R, E] float32; the final layer has no gate
  };
  struct BlockRows {
    Rows self, cross, mlp;
  };
  std::vector<BlockRows> blocks;
  Rows final;
  Tensor row_of_frame;  // [frames] int32
};

/// One forward's hidden state on this rank.
struct Stream {
  Tensor x;     // [S_r, E], advanced in place by block()
  Tensor rope;  // [S_r, D]
  Tensor row;   // [S_r] int32: the row of Step that each token uses
  const Tensor& state() const { return x; }
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

  /// embeds [L, text_input_width] → the prompt's keys and values in every block.
  Prepared prepare(const Grid& grid, const Tensor& embeds) const;

  /// times: one per latent frame, in sigma units (0 … 1), at most a few distinct ones.
  Step step(const std::vector<float>& times) const;

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
