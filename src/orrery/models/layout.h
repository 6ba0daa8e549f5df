#pragma once
#include <string>
#include <vector>

#include "orrery/config/settings.h"

namespace orrery {

/// Where the parts of a checkpoint lie. Paths are empty where a part was not found and can be done without
/// until it is needed.
struct Layout {
  enum class Kind { kDiffusers, kOfficial };
  Kind kind = Kind::kDiffusers;
  std::string
      class_name;  // of the diffusers pipeline: from model_index.json, or by an official file's tensors
  config::Variant variant = {};  // official: from the file's path
  std::string transformer;       // a folder, or a .pt file
  std::string vae;               // a folder, or tokenizer.pth
  std::string text_encoder;      // a folder
  std::string tokenizer;         // a folder
  std::string processor;         // a folder: how pictures are brought to the text encoder
  std::string scheduler;         // scheduler_config.json
  std::string image_encoder;     // a folder: how a style picture is seen
  /// Cosmos-Transfer's control branches: official files, which hold the base too, by the kind of control in
  /// their path (config::kControls), or one ControlNet folder, or one file, of a kind that is not known ("").
  struct Control {
    std::string name, path;
  };
  std::vector<Control> controls;
  std::string recommended;  // the checkpoint's own recommended settings: a JSON object of request fields
};

/// Parts that the user names instead of those found; empty ones are looked for.
struct LayoutOverrides {
  std::string transformer, vae, text_encoder, tokenizer, controlnet, image_encoder;
};

/// Looks at `path`: a folder in the diffusers layout (model_index.json), an official .pt file, or a folder
/// that holds one (spec cosmos-predict2.5 §0, §3; cosmos-transfer2.5 §1.4). Error of kind checkpoint, code
/// missing_file, that says what was looked for where.
Layout find_layout(const std::string& path, const LayoutOverrides& overrides = {});

}  // namespace orrery
