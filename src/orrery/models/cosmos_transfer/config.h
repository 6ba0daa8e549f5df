#pragma once
#include <map>
#include <string>
#include <vector>

#include "orrery/models/cosmos/config.h"

namespace orrery::cosmos_transfer {

/// What a Cosmos-Transfer2.5 transformer is: a Cosmos-Predict2.5 transformer and one control branch per kind
/// of control that it was opened for, of equal shape (spec cosmos-transfer2.5 §2.1). Initial values are the
/// published ones.
struct TransformerConfig {
  cosmos::TransformerConfig base;  // several branches share a base without image context (§2.6)
  std::vector<std::string> branches = {"edge"};  // in the order in which their hints are summed
  int64_t control_blocks = 4;                    // of each branch
  int64_t every = 7;                             // control block k acts behind base block k · every
  int64_t control_channels = 128;                // of the control's embedding: a hint, then zeros

  /// Features of a patch of hint.
  int64_t hint_inputs() const { return base.latent_channels * base.patch * base.patch; }
  /// What the checkpoint's control embedding takes: hint, zeros and the masks that the base takes, too.
  int64_t control_inputs() const {
    return base.patch_inputs() + (control_channels - base.latent_channels) * base.patch * base.patch;
  }
};

/// transformer/config.json of the diffusers layout, and the config.json of each branch's ControlNet, in the
/// order of `branches`. Errors as cosmos::read_transformer_config, and of kind checkpoint where ControlNets
/// differ from each other.
TransformerConfig read_transformer_config(const std::string& transformer,
                                          const std::vector<std::string>& controlnets,
                                          std::vector<std::string> branches);

/// The configuration that the tensors of assemble() (weights.h) imply: the base as
/// cosmos::infer_transformer_config, `every` from the numbers of blocks. Error of kind checkpoint, code
/// missing_key, if they lack a branch.
TransformerConfig infer_transformer_config(const std::map<std::string, Tensor>& tensors,
                                           std::vector<std::string> branches);

}  // namespace orrery::cosmos_transfer
