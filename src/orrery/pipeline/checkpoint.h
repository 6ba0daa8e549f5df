#pragma once
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/plan.h"
#include "orrery/config/settings.h"
#include "orrery/config/validate.h"
#include "orrery/models/layout.h"
#include "orrery/models/wan_vae/wan_vae.h"
#include "orrery/weights/lora.h"
#include "orrery/weights/visitors.h"

namespace orrery::pipeline {

/// What is known of an opened checkpoint, whatever its family. Const and safe to share between threads.
struct Checkpoint {
  Layout layout;
  std::vector<weights::LoraChoice> loras;
  config::Limits limits;     // what it can make, and its defaults
  uint64_t fingerprint = 0;  // of its configurations and of its tensors' names, shapes and dtypes
  at::ScalarType dtype = at::kFloat;
  weights::Storage storage = weights::Storage::kMapped;
  wan_vae::Config vae_config;
  wan_vae::Weights vae;

  /// Adds a configuration or tensors to the fingerprint.
  void mark(const std::string& text);
  void mark(const weights::TensorMap& tensors);
  /// Adds the files that exist; an empty path is none.
  void mark_files(const std::vector<std::string>& paths);
};

/// The layout of the checkpoint that `settings` names. Errors of find_layout; request if none is named.
Layout layout_of(const config::Settings& settings);

/// A network's tensors under the names of its bind, and what its file calls them.
struct NetworkFile {
  weights::TensorMap tensors;
  weights::Loader::Spelling spelling;
};

/// Takes the settings' LoRA files into the checkpoint and merges them into the network
/// (weights/lora_merge.h); nothing where there are none. Errors of parse_lora_choice and merge_loras.
void adapt(Checkpoint& checkpoint, const config::Settings& settings, NetworkFile& network);

/// Reads the VAE's configuration and tensors, which stay in their file until load_vae. latent_channels: what
/// the transformer takes. Error of kind checkpoint if they do not fit.
void open_vae(Checkpoint& checkpoint, int64_t latent_channels);

/// Brings the VAE's decoder into the form that its convolutions take, for requests that give pixels its
/// encoder too; what is done already stays.
void load_vae(Checkpoint& checkpoint, bool encodes);

/// widened if the plan says so, or leaves it open and `widened_bytes` fit in half of the free memory.
weights::Storage choose_storage(config::WeightStorage wanted, int64_t widened_bytes);

/// The recommendations in a checkpoint's own file laid over the defaults; path may be empty.
config::Request recommended(const std::string& path, const config::Request& defaults);

}  // namespace orrery::pipeline
