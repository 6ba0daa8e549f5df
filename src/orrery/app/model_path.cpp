#include "orrery/app/model_path.h"

#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/value.h"

namespace orrery::app {
namespace {

namespace fs = std::filesystem;
using config::Settings;
using config::Variant;

constexpr const char* kTransferRepository = "nvidia/Cosmos-Transfer2.5-2B";

/// spec cosmos-predict2.5 §0, "Released checkpoints", and cosmos-transfer2.5 §1.4. 14B/post-trained runs with
/// the switches of pre-training.
struct Official {
  const char* name;
  const char* repository;
  const char* file;
  Variant variant;
};
constexpr Official kOfficial[] = {
    {"2B/post-trained", "nvidia/Cosmos-Predict2.5-2B",
     "base/post-trained/81edfebe-bd6a-4039-8c1d-737df1a790bf_ema_bf16.pt", Variant::kPostTrained},
    {"2B/pre-trained", "nvidia/Cosmos-Predict2.5-2B",
     "base/pre-trained/d20b7120-df3e-4911-919d-db6e08bad31c_ema_bf16.pt", Variant::kPreTrained},
    {"14B/post-trained", "nvidia/Cosmos-Predict2.5-14B",
     "base/post-trained/e21d2a49-4747-44c8-ba44-9f6f9243715f_ema_bf16.pt", Variant::kPreTrained},
    {"14B/pre-trained", "nvidia/Cosmos-Predict2.5-14B",
     "base/pre-trained/54937b8c-29de-4f04-862c-e67b04ec41e8_ema_bf16.pt", Variant::kPreTrained},
    {"edge", kTransferRepository, "general/edge/61f5694b-0ad5-4ecd-8ad7-c8545627d125_ema_bf16.pt",
     Variant::kPreTrained},
    {"vis", kTransferRepository, "general/blur/ba2f44f2-c726-4fe7-949f-597069d9b91c_ema_bf16.pt",
     Variant::kPreTrained},
    {"depth", kTransferRepository, "general/depth/626e6618-bfcd-4d9a-a077-1409e2ce353f_ema_bf16.pt",
     Variant::kPreTrained},
    {"seg", kTransferRepository, "general/seg/5136ef49-6d8d-42e8-8abf-7dac722a304a_ema_bf16.pt",
     Variant::kPreTrained},
    {"edge/distilled", kTransferRepository,
     "distilled/general/edge/41f07f13-f2e4-4e34-ba4c-86f595acbc20_ema_bf16.pt", Variant::kDistilled},
};
constexpr const char* kDefaultOfficial = "2B/post-trained";
constexpr const char* kVaeRepository = "nvidia/Cosmos-Predict2.5-2B";
constexpr const char* kVaeFile = "tokenizer.pth";
constexpr const char* kTextRepository = "nvidia/Cosmos-Reason1-7B";
// The 2B repository holds the diffusers layout on this branch, the official one on main.
constexpr const char* kDiffusersRevision = "diffusers/base/post-trained";

[[noreturn]] void not_cached(const std::string& what, const std::string& hub, const std::string& command) {
  throw Error(ErrorKind::kCheckpoint,
              concat(what, " is not in the Hugging Face cache ", hub, "; fetch it with: ", command),
              "missing_file");
}

/// The folder of one downloaded revision (a branch, a tag or a commit), or nothing.
std::optional<fs::path> snapshot(const std::string& hub, const std::string& repository,
                                 const std::string& revision) {
  std::string folder = "models--" + repository;
  if (const size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  const fs::path root = fs::path(hub) / folder;
  std::error_code error;
  const fs::path reference = root / "refs" / revision;
  const std::string commit =
      fs::is_regular_file(reference, error) ? std::string(strip(read_file(reference.string()))) : revision;
  const fs::path found = root / "snapshots" / commit;
  if (commit.empty() || !fs::is_directory(found, error)) return std::nullopt;
  return found;
}

/// Looks parts up in the cache and remembers what is missing, so that one message can name all of it.
class CachedParts {
 public:
  explicit CachedParts(const std::string& hub) : hub_(hub) {}

  /// The path of a file in the repository, or of the whole repository, which `proof` shows to be there.
  std::string file(const std::string& repository, const std::string& file) {
    return find(repository, file, " " + file, "/" + file);
  }
  std::string folder(const std::string& repository, const std::string& proof) {
    return find(repository, proof, "", "");
  }

  void require_all(const std::string& model) const {
    if (!missing_.empty()) not_cached(model, hub_, join(missing_, " && "));
  }

 private:
  std::string find(const std::string& repository, const std::string& needed, const std::string& download,
                   const std::string& below) {
    const auto folder = snapshot(hub_, repository, "main");
    std::error_code error;
    if (folder && fs::exists(*folder / needed, error)) return folder->string() + below;
    missing_.push_back(concat("hf download ", repository, download));
    return "";
  }

  const std::string& hub_;
  std::vector<std::string> missing_;
};

Settings official_model(Settings settings, const Official& official, const std::string& hub,
                        bool needs_text) {
  CachedParts parts(hub);
  // A transformer of the user's own takes the place of the published one, which then need not be there.
  settings.model =
      settings.checkpoint_path ? *settings.checkpoint_path : parts.file(official.repository, official.file);
  if (!settings.vae) settings.vae = parts.file(kVaeRepository, kVaeFile);
  if (!settings.text_encoder && needs_text)
    settings.text_encoder = parts.folder(kTextRepository, "config.json");
  if (!settings.variant) settings.variant = official.variant;
  parts.require_all(official.name);
  return settings;
}

/// A folder in the diffusers layout, or the official file of the same repository.
Settings published_model(Settings settings, const std::string& hub, bool needs_text) {
  const std::string name = *settings.model;
  const size_t at = name.find('@');
  const std::string repository = name.substr(0, at);
  const bool chosen = at != std::string::npos;
  std::vector<std::string> revisions = {"main"};
  if (chosen) revisions = {name.substr(at + 1)};
  const bool cosmos = repository == kVaeRepository && !chosen;
  if (cosmos) revisions.insert(revisions.begin(), kDiffusersRevision);
  for (const std::string& revision : revisions) {
    const auto folder = snapshot(hub, repository, revision);
    std::error_code error;
    if (folder && fs::exists(*folder / "model_index.json", error)) {
      settings.model = folder->string();
      return settings;
    }
    if (!folder) continue;
    for (const Official& official : kOfficial)
      if (repository == official.repository && fs::exists(*folder / official.file, error)) {
        settings = official_model(std::move(settings), official, hub, needs_text);
        // The samples choose among its control branches.
        if (repository == kTransferRepository) settings.model = folder->string();
        return settings;
      }
  }
  const std::string& revision = revisions.front();
  not_cached(name, hub,
             concat("hf download ", repository, revision == "main" ? "" : " --revision " + revision));
}

bool is_published_name(const std::string& model) {
  const size_t slash = model.find('/');
  const std::string repository = model.substr(0, model.find('@'));
  const bool one_slash =
      slash != std::string::npos && slash > 0 && repository.find('/', slash + 1) == std::string::npos;
  return one_slash && slash + 1 < repository.size() && model[0] != '.' && model[0] != '~' &&
         model.find("..") == std::string::npos;
}

/// models/tiny-world above the program (a build tree) or below share/orrery (an installed one).
std::string embedded_model(const std::string& program_folder) {
  constexpr int kLevelsUp = 5;
  fs::path folder = program_folder;
  std::error_code error;
  for (int level = 0; level < kLevelsUp && !folder.empty(); ++level, folder = folder.parent_path())
    for (const char* place : {"models/tiny-world", "share/orrery/models/tiny-world"})
      if (fs::exists(folder / place / "model_index.json", error)) return (folder / place).string();
  throw Error(ErrorKind::kRequest,
              "model: expected --model with a folder, a file or a published name; the checkpoint that comes "
              "with orrery is not near " +
                  (program_folder.empty() ? std::string("the program") : program_folder));
}

}  // namespace

Settings find_model(Settings settings, const std::string& hub, const std::string& program_folder,
                    bool needs_text) {
  const auto check = [](const std::optional<std::string>& path, const char* field) {
    std::error_code error;
    if (path && !fs::exists(*path, error))
      throw Error(ErrorKind::kCheckpoint,
                  concat(field, ": expected a file or folder that exists, found ", config::in_quotes(*path)),
                  "missing_file");
  };
  check(settings.checkpoint_path, "checkpoint_path");
  check(settings.vae, "vae");
  check(settings.text_encoder, "text_encoder");
  check(settings.tokenizer, "tokenizer");
  if (!settings.model && !settings.checkpoint_path) settings.model = embedded_model(program_folder);
  if (!settings.model) settings.model = kDefaultOfficial;
  std::error_code error;
  if (fs::exists(*settings.model, error)) return settings;
  std::vector<std::string> names;
  for (const Official& official : kOfficial) {
    if (*settings.model == official.name)
      return official_model(std::move(settings), official, hub, needs_text);
    names.emplace_back(official.name);
  }
  if (is_published_name(*settings.model)) {
    // "2B/post-traind" looks like owner/name; nobody publishes under such an owner.
    const std::string owner = settings.model->substr(0, settings.model->find('/'));
    if (owner != "2B" && owner != "14B") return published_model(std::move(settings), hub, needs_text);
  }
  throw Error(ErrorKind::kCheckpoint,
              concat("model: expected a file or folder that exists, a published name such as ",
                     kVaeRepository, ", or one of ", join(names), "; found ",
                     config::in_quotes(*settings.model), did_you_mean(*settings.model, names)),
              "missing_file");
}

}  // namespace orrery::app
