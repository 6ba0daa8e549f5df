#pragma once
#include <vector>

#include "orrery/models/qwen_image/weights.h"
#include "orrery/nn/rope.h"
#include "orrery/parallel/run.h"

namespace orrery::qwen_image {

using nn::PictureSize;

/// The pictures that one forward sees, the one that is made first, and what depends on nothing else.
struct Grid {
  std::vector<PictureSize> pictures;
  Tensor rope;   // [S, D]
  Tensor given;  // [S] int32: 0 for tokens of the picture that is made, 1 for those of the others
  int64_t tokens() const { return given.size(0); }
};

/// Once per prompt and process, shared by its ranks: the text as the first block takes it.
struct Prepared {
  Tensor text;                  // [L, E]
  Tensor text_rope;             // [L, D]
  int64_t sequence_length = 0;  // tokens of all pictures
};

/// Once per time: the modulation of every block. Rows: one for the time, and with zero_cond_t one for time 0.
/// Views of what steps() computed for all times.
struct Step {
  struct Rows {
    Tensor shift, scale, gate;  // [R, E] float32; the output head has no gate
  };
  struct SideRows {
    Rows attention, mlp;
  };
  struct BlockRows {
    SideRows text, image;
  };
  std::vector<BlockRows> blocks;
  Rows final;
  Tensor row_of_given;  // [2] int32: the row of a token of the made picture, and of a given one
};

/// One forward's hidden state on this rank: its image tokens, and all of the text, which is the same on every
/// rank.
struct Stream {
  struct Side {
    Tensor x;     // [S, E], advanced in place by block()
    Tensor rope;  // [S, D]
    Tensor row;   // [S] int32: the row of Step that each token uses
  };
  Side text, image;
  const Tensor& state() const { return image.x; }
};

/// The Qwen-Image transformer (Wu et al., arXiv 2508.02324; spec qwen-image §2): QwenImageTransformer2DModel
/// of diffusers, two streams with joint attention in every block. Const and safe to share between threads.
class Transformer {
 public:
  using Prepared = qwen_image::Prepared;
  using Step = qwen_image::Step;
  using Stream = qwen_image::Stream;

  Transformer(TransformerConfig config, TransformerWeights weights)
      : config_(std::move(config)), weights_(std::move(weights)) {}

  const TransformerConfig& config() const { return config_; }
  at::ScalarType dtype() const { return weights_.text_norm.scalar_type(); }

  /// pictures: at least one, sizes in tokens (of patch × patch latents).
  Grid grid(std::vector<PictureSize> pictures) const;

  /// embeds [L, text_width] floating, L ≥ 1, without padding → the prompt beside these pictures.
  Prepared prepare(const Grid& grid, const Tensor& embeds) const;

  /// times: σ in 0 … 1. Like the reference's, this network sees them rounded to the compute dtype (spec
  /// §2.8). A third of the network's weights are read for it, once for all times; a time's bits do not depend
  /// on the others'.
  std::vector<Step> steps(const std::vector<float>& times) const;

  /// packed: the latents of all pictures of the grid, [S, patch²·C] floating, packed by nn::patchify, in the
  /// grid's order.
  parallel::Tokens tokens(const Grid& grid, const Tensor& packed) const;

  int64_t block_count() const { return config_.layers; }
  Stream embed(const parallel::Context& ctx, const Prepared& prepared, const Step& step,
               const parallel::Tokens& tokens) const;
  void block(const parallel::Context& ctx, const Prepared& prepared, const Step& step, int64_t i,
             Stream& s) const;
  /// Packed velocity [S_r, patch²·C] float32, that of given pictures included.
  Tensor unembed(const parallel::Context& ctx, const Step& step, const Stream& s) const;

 private:
  TransformerConfig config_;
  TransformerWeights weights_;
};

}  // namespace orrery::qwen_image
