#pragma once
#include "orrery/models/cosmos/weights.h"
#include "orrery/parallel/context.h"

namespace orrery::cosmos {

// One block of the transformer (spec cosmos-predict2.5 §2.3; its image context: cosmos-transfer2.5 §2.3) and
// what it is given. Blocks of control branches are the same blocks. All functions are pure; any thread.

/// What every block attends to besides the clip, in the compute dtype.
struct Prompt {
  Tensor text;   // [L, text_width]
  Tensor image;  // [N_img, image_width]: one row instead of many equal ones; undefined without image context
};

/// What one block's cross-attention needs of a prompt.
struct CrossAttention {
  Tensor k, v;              // of the text: [L, N, D], k after its norm
  Tensor image_k, image_v;  // of the image, likewise; no k where there is one image token only
};

CrossAttention cross_attention(const Block& w, const TransformerConfig& c, const Prompt& prompt);

/// One time or two, as the modulations take them: [R, E] and [R, 3·E], float32 whatever the compute dtype.
struct Time {
  Tensor conditioning, lora;
  Tensor row_of_frame;  // [frames] int32
};

struct Rows {
  Tensor shift, scale, gate;  // [R, E] float32; the final layer has no gate
};

/// A block's modulation.
struct BlockRows {
  Rows self, cross, mlp;
};

BlockRows block_rows(const Block& w, const Time& time);

/// [R, count·E] → shift, scale and, if there are three, gate.
Rows split_rows(const Tensor& modulation, int64_t count);

/// One forward's hidden state on this rank.
struct Stream {
  Tensor x;     // [S_r, E], advanced in place by block()
  Tensor rope;  // [S_r, D]
  Tensor row;   // [S_r] int32: the row of BlockRows that each token uses
  const Tensor& state() const { return x; }
};

/// Advances the stream by one block. sequence_length: tokens of the whole clip. Every rank of the sequence
/// group makes the call.
void block(const parallel::Context& ctx, const TransformerConfig& c, const Block& w,
           const CrossAttention& cross, const BlockRows& rows, int64_t sequence_length, Stream& s);

/// Layer norms and the norm of the time embedding (spec §2.1, §2.2).
inline constexpr double kNormEps = 1e-6;

}  // namespace orrery::cosmos
