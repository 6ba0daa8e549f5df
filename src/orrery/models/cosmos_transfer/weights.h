#pragma once
// Names: the base has those of diffusers' CosmosTransformer3DModel, a branch those of
// weights::cosmos_control_names under its own name: `edge.control_blocks.0.attn1.to_q.weight` (spec
// cosmos-transfer2.5 §2.9).
#include <string_view>

#include "orrery/models/cosmos/weights.h"
#include "orrery/models/cosmos_transfer/config.h"
#include "orrery/weights/tensor_map.h"

namespace orrery::cosmos_transfer {

struct ControlBlock {
  cosmos::Block block;
  nn::Linear after_proj;
};

struct Branch {
  nn::Linear patch_embed, before_proj;
  std::vector<ControlBlock> blocks;
};

struct TransformerWeights {
  cosmos::TransformerWeights base;
  std::vector<Branch> branches;
};

template <class B>
void bind(B& b, ControlBlock& w, const cosmos::TransformerConfig& c) {
  bind(b, w.block, c);
  b("after_proj", w.after_proj, c.width(), c.width(), nn::Bias::kYes);
}

template <class B>
void bind(B& b, Branch& w, const TransformerConfig& c) {
  b("control_embedder.proj", w.patch_embed, c.base.width(), c.control_inputs());
  b("control_blocks.0.before_proj", w.before_proj, c.base.width(), c.base.width(), nn::Bias::kYes);
  b.list("control_blocks", w.blocks, c.control_blocks, c.base);
}

template <class B>
void bind(B& b, TransformerWeights& w, const TransformerConfig& c) {
  bind(b, w.base, c.base);
  w.branches.resize(c.branches.size());
  for (size_t i = 0; i < c.branches.size(); ++i) b(c.branches[i], w.branches[i], c);
}

/// A control's checkpoint under the names of weights::cosmos_control_names.
struct BranchTensors {
  std::string name;  // of the branch
  weights::TensorMap tensors;
};

/// One map, as bind names it, of the base (under the names of weights::cosmos_names; its own control branch
/// is dropped) and its branches. Several branches share a base without image context: those tensors are
/// dropped everywhere, as the reference does (spec §2.6). Tensors are shared, nothing is copied.
weights::TensorMap assemble(const weights::TensorMap& base, const std::vector<BranchTensors>& branches);

/// What released official files call a tensor of assemble(): for messages.
std::string official_name(std::string_view name);

}  // namespace orrery::cosmos_transfer
