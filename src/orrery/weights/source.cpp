#include "orrery/weights/source.h"

#include <algorithm>
#include <filesystem>

#include "orrery/base/text.h"
#include "orrery/weights/refuse.h"
#include "orrery/weights/safetensors.h"
#include "orrery/weights/torch_file.h"

namespace orrery::weights {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndex = ".safetensors.index.json";
constexpr std::string_view kStems[] = {"diffusion_pytorch_model", "model"};

TensorMap open_one(const fs::path& file) {
  const std::string path = file.string(), extension = file.extension().string();
  if (extension == ".safetensors") return open_safetensors(path);
  if (extension == ".pt" || extension == ".pth" || extension == ".bin") return open_torch_file(path);
  const std::string name = file.filename().string();
  if (name.ends_with(kIndex))
    return open_indexed(file.parent_path().string(), name.substr(0, name.size() - kIndex.size()));
  refuse(Fault::kUnsupported, path,
         ": expected a .safetensors, .safetensors.index.json, .pt, .pth or .bin file");
}

std::vector<std::string> files_with(const fs::path& folder,
                                    std::initializer_list<std::string_view> extensions) {
  std::vector<std::string> found;
  std::error_code failed;
  const fs::directory_iterator entries(folder, failed);
  if (failed) refuse(Fault::kMissingFile, "cannot list ", folder.string(), ": ", failed.message());
  for (const auto& entry : entries)
    if (std::ranges::find(extensions, entry.path().extension().string()) != extensions.end())
      found.push_back(entry.path().filename().string());
  std::ranges::sort(found);
  return found;
}

TensorMap open_folder(const fs::path& folder) {
  std::error_code ignored;  // what cannot be looked at is not there
  for (std::string_view stem : kStems)
    for (std::string_view ending : {std::string_view(".safetensors"), kIndex})
      if (fs::exists(folder / concat(stem, ending), ignored))
        return open_indexed(folder.string(), std::string(stem));
  auto candidates = files_with(folder, {".safetensors"});
  if (candidates.empty()) candidates = files_with(folder, {".pt", ".pth"});
  if (candidates.size() == 1) return open_one(folder / candidates.front());
  refuse(Fault::kMissingFile, folder.string(),
         ": looked for diffusion_pytorch_model.safetensors, model.safetensors, ",
         "an index of one of them, exactly one other .safetensors, or exactly one .pt or .pth; found ",
         candidates.empty() ? "none" : join(candidates));
}

}  // namespace

TensorMap open_weights(const std::string& path) {
  std::error_code failed;
  const bool folder = fs::is_directory(path, failed);
  if (failed) refuse(Fault::kMissingFile, "cannot open ", path, ": ", failed.message());
  return folder ? open_folder(path) : open_one(path);
}

}  // namespace orrery::weights
