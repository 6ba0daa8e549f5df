#include "orrery/models/layout.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/models/json_config.h"
#include "orrery/weights/source.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void missing(const std::string& message) {
  throw Error(ErrorKind::kCheckpoint, message, "missing_file");
}

// Names under which checkpoints ship their recommended settings.
constexpr const char* kRecommended[] = {"orrery.json", "tiny_world.json"};
// How far above an official .pt its repository's root may be: base/post-trained/NAME.pt.
constexpr int kLevelsUp = 3;

constexpr const char* kPredict = "Cosmos2_5_PredictBasePipeline";
constexpr const char* kTransfer = "Cosmos2_5_TransferPipeline";

/// Where the published repository has the control branches, and how the file that is not outdated begins
/// (spec cosmos-transfer2.5 §1.4).
struct PublishedControl {
  const char *name, *folder, *file;
};
constexpr PublishedControl kPublishedControls[] = {{"edge", "general/edge", "61f5694b"},
                                                   {"vis", "general/blur", "ba2f44f2"},
                                                   {"depth", "general/depth", "626e6618"},
                                                   {"seg", "general/seg", "5136ef49"}};

std::string first_existing(const std::vector<fs::path>& candidates) {
  const auto found =
      std::find_if(candidates.begin(), candidates.end(), [](const fs::path& p) { return fs::exists(p); });
  return found == candidates.end() ? std::string() : found->string();
}

Layout diffusers(const fs::path& root) {
  const JsonConfig index(root / "model_index.json");
  Layout layout;
  layout.class_name = index.get("_class_name", std::string());
  if (layout.class_name.empty())
    throw Error(ErrorKind::kCheckpoint, index.path() + ": has no _class_name", "missing_key");
  for (const char* part : {"transformer", "vae"})
    if (!fs::exists(root / part / "config.json"))
      missing(concat(root.string(), " is incomplete: ", part, "/config.json is not there"));
  layout.transformer = root / "transformer", layout.vae = root / "vae";
  layout.text_encoder = first_existing({root / "text_encoder"});
  layout.tokenizer = first_existing({root / "tokenizer", root / "processor"});
  layout.processor = first_existing({root / "processor"});
  layout.image_encoder = first_existing({root / "image_encoder"});
  if (fs::exists(root / "controlnet/config.json")) layout.controls = {{"", root / "controlnet"}};
  layout.scheduler = first_existing({root / "scheduler/scheduler_config.json"});
  for (const char* name : kRecommended)
    if (layout.recommended.empty()) layout.recommended = first_existing({root / name});
  return layout;
}

/// The official .pt below a folder: base/post-trained first, else the only one there is.
fs::path official_file(const fs::path& root) {
  std::vector<fs::path> found;
  for (const auto& entry :
       fs::recursive_directory_iterator(root, fs::directory_options::skip_permission_denied))
    if (entry.path().extension() == ".pt") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  const auto post = std::find_if(found.begin(), found.end(), [](const fs::path& p) {
    return p.string().find("post-trained") != std::string::npos;
  });
  if (post != found.end()) return *post;
  if (found.size() == 1) return found[0];
  if (found.empty())
    missing(concat(
        root.string(),
        " is no checkpoint: expected model_index.json (diffusers layout) or a .pt file (official layout)"));
  missing(concat(root.string(), " holds ", found.size(), " .pt files; name one of them, for example ",
                 found[0].string()));
}

/// The control that a path speaks of: general/edge/NAME.pt, edge_ema_bf16.pt.
std::string control_of(const fs::path& file) {
  const auto speaks_of = [](const std::string& text, const PublishedControl& control) {
    return text.find(control.name) != std::string::npos ||
           text.find(fs::path(control.folder).filename().string()) != std::string::npos;
  };
  for (const auto& text : {file.filename().string(), file.parent_path().filename().string()})
    for (const auto& control : kPublishedControls)
      if (speaks_of(text, control)) return control.name;
  return "";
}

/// The files of a folder like the published repository's; empty if it is none.
std::vector<Layout::Control> published_controls(const fs::path& root) {
  std::vector<Layout::Control> controls;
  for (const auto& control : kPublishedControls) {
    if (!fs::is_directory(root / control.folder)) continue;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(root / control.folder))
      if (entry.path().extension() == ".pt") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    const auto current = std::find_if(files.begin(), files.end(), [&](const fs::path& p) {
      return p.filename().string().starts_with(control.file);
    });
    if (!files.empty()) controls.push_back({control.name, current == files.end() ? files[0] : *current});
  }
  return controls;
}

/// As the published repositories are laid out: base/pre-trained/NAME.pt, distilled/general/edge/NAME.pt.
config::Variant variant_of(const fs::path& file) {
  using config::Variant;
  if (std::find(file.begin(), file.end(), "distilled") != file.end()) return Variant::kDistilled;
  return file.string().find("pre-trained") != std::string::npos ? Variant::kPreTrained
                                                                : Variant::kPostTrained;
}

bool has_control_branch(const fs::path& file) {
  const auto tensors = weights::open_weights(file.string());
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& entry) {
    return entry.first.find("control_embedder.") != std::string::npos;
  });
}

Layout official(const fs::path& file) {
  Layout layout;
  layout.kind = Layout::Kind::kOfficial;
  layout.class_name = kPredict;
  if (has_control_branch(file)) layout.class_name = kTransfer, layout.controls = {{control_of(file), file}};
  layout.variant = variant_of(file);
  layout.transformer = file;
  fs::path folder = fs::absolute(file).parent_path();
  for (int level = 0; level < kLevelsUp && !folder.empty(); ++level, folder = folder.parent_path()) {
    if (layout.vae.empty())
      layout.vae = first_existing({folder / "tokenizer.pth", folder / "Wan2.1_VAE.pth"});
    if (layout.text_encoder.empty())
      layout.text_encoder = first_existing(
          {folder / "Cosmos-Reason1-7B", folder / "nvidia/Cosmos-Reason1-7B", folder / "text_encoder"});
    if (layout.image_encoder.empty())
      layout.image_encoder = first_existing(
          {folder / "siglip2-so400m-patch16-naflex", folder / "google/siglip2-so400m-patch16-naflex"});
  }
  if (!layout.text_encoder.empty()) layout.tokenizer = layout.text_encoder;
  return layout;
}

}  // namespace

Layout find_layout(const std::string& path, const LayoutOverrides& overrides) {
  if (!fs::exists(path)) missing(concat("no checkpoint at ", path));
  const auto controls = published_controls(path);
  Layout layout = !fs::is_directory(path)                           ? official(path)
                  : fs::exists(fs::path(path) / "model_index.json") ? diffusers(path)
                  : !controls.empty()                               ? official(controls.back().path)
                                                                    : official(official_file(path));
  if (!controls.empty() && layout.kind == Layout::Kind::kOfficial) layout.controls = controls;
  const auto take = [](const std::string& chosen, std::string& part, const char* what) {
    if (chosen.empty()) return;
    if (!fs::exists(chosen)) missing(concat("no ", what, " at ", chosen));
    part = chosen;
  };
  take(overrides.transformer, layout.transformer, "transformer");
  take(overrides.vae, layout.vae, "VAE");
  take(overrides.text_encoder, layout.text_encoder, "text encoder");
  if (!overrides.text_encoder.empty()) layout.tokenizer = layout.text_encoder;
  take(overrides.tokenizer, layout.tokenizer, "tokenizer");
  take(overrides.image_encoder, layout.image_encoder, "picture encoder");
  if (!overrides.controlnet.empty()) {
    layout.controls = {{control_of(overrides.controlnet), ""}};
    take(overrides.controlnet, layout.controls[0].path, "ControlNet");
  }
  if (layout.class_name == kTransfer && layout.controls.empty())
    missing(concat(
        path, " is incomplete: controlnet/config.json is not there; name a ControlNet with --controlnet"));
  if (layout.vae.empty())
    missing(concat("no VAE for ", path, ": looked for tokenizer.pth beside it and ", kLevelsUp - 1,
                   " folders up; name one with --vae"));
  return layout;
}

}  // namespace orrery
