#pragma once
#include <string>

namespace orrery {

/// Where the parts of a checkpoint lie. Paths are empty where a part was not found and can be done without
/// until it is needed.
struct Layout {
  enum class Kind { kDiffusers, kOfficial };
  Kind kind = Kind::kDiffusers;
  std::string class_name;    // of model_index.json; "Cosmos2_5_PredictBasePipeline" for the official layout
  std::string variant;       // official: "post-trained" or "pre-trained", from the file's path
  std::string transformer;   // a folder, or a .pt file
  std::string vae;           // a folder, or tokenizer.pth
  std::string text_encoder;  // a folder
  std::string tokenizer;     // a folder
  std::string processor;     // a folder: how pictures are brought to the text encoder
  std::string scheduler;     // scheduler_config.json
  std::string recommended;   // the checkpoint's own recommended settings: a JSON object of request fields
};

/// Parts that the user names instead of those found; empty ones are looked for.
struct LayoutOverrides {
  std::string transformer, vae, text_encoder, tokenizer;
};

/// Looks at `path`: a folder in the diffusers layout (model_index.json), an official .pt file, or a folder
/// that holds one (spec cosmos-predict2.5 §0, §3). Error of kind checkpoint, code missing_file, that says
/// what was looked for where.
Layout find_layout(const std::string& path, const LayoutOverrides& overrides = {});

}  // namespace orrery
