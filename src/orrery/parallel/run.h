#pragma once
#include <concepts>
#include <functional>

#include "orrery/base/tensor.h"
#include "orrery/parallel/context.h"

namespace orrery::parallel {

/// The tokens of a clip with what belongs to each of them. Sharded together, so that a model never asks where
/// its tokens lie.
struct Tokens {
  Tensor values;  // [S, C]
  Tensor rope;    // [S, D] float32: cos, sin of the token's rotary angles (ops::rms_norm_rope)
  Tensor frame;   // [S] int32: the latent frame, or what else decides which row of Step it uses
};

/// This rank's contiguous share, as views. Uneven if the ranks do not divide the tokens; the last ranks may
/// have none.
Tokens shard(const comm::Group& group, const Tokens& tokens);

/// [S_r, C] of every rank → [S, C] on every rank.
Tensor gather(comm::Group& group, const Tensor& mine, int64_t length);

/// Acts around every block: caches, offload, tracing. `compute` advances the stream by block i; not calling
/// it skips the block.
class BlockPolicy {
 public:
  virtual ~BlockPolicy() = default;
  virtual void step(int64_t /*i*/, const Tensor& /*state*/, const std::function<void()>& compute) {
    compute();
  }
};

/// A diffusion transformer: embed, N × block, unembed over this rank's tokens. Prepared lives as long as a
/// request, Step as long as one time, Stream as long as one forward; Stream gives its hidden state [S_r, E]
/// as state().
template <class M>
concept BlockModel = requires(const M& m, const Context& ctx, const typename M::Prepared& prepared,
                              const typename M::Step& step, typename M::Stream& stream, const Tokens& tokens,
                              int64_t i) {
  { m.block_count() } -> std::convertible_to<int64_t>;
  { m.embed(ctx, prepared, step, tokens) } -> std::same_as<typename M::Stream>;
  {m.block(ctx, prepared, step, i, stream)};
  { m.unembed(ctx, step, stream) } -> std::same_as<Tensor>;
  { stream.state() } -> std::convertible_to<Tensor>;
};

/// One forward of the whole clip: the only loop over blocks. Tokens are sharded before embed and gathered
/// after unembed. Returns [S, patch·C] on every rank. Every rank of the sequence group makes the call with
/// equal arguments.
template <BlockModel M>
Tensor run(const Context& ctx, const M& model, const typename M::Prepared& prepared,
           const typename M::Step& step, const Tokens& tokens, BlockPolicy& policy) {
  auto stream = model.embed(ctx, prepared, step, shard(ctx.mesh.sequence(), tokens));
  for (int64_t i = 0; i < model.block_count(); ++i)
    policy.step(i, stream.state(), [&] { model.block(ctx, prepared, step, i, stream); });
  return gather(ctx.mesh.sequence(), model.unembed(ctx, step, stream), tokens.values.size(0));
}

}  // namespace orrery::parallel
