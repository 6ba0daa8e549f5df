#include "orrery/app/model_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "orrery/base/error.h"

namespace orrery::app {
namespace {

namespace fs = std::filesystem;
using config::Settings;
using config::Variant;
using testing::HasSubstr;

constexpr const char* kPost = "base/post-trained/81edfebe-bd6a-4039-8c1d-737df1a790bf_ema_bf16.pt";
constexpr const char* kPre14 = "base/pre-trained/54937b8c-29de-4f04-862c-e67b04ec41e8_ema_bf16.pt";

class FindModel : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "orrery_hub_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    root_ = folder;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string hub() const { return (root_ / "hub").string(); }

  static void write(const fs::path& path, const std::string& content = "x") {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }

  /// A downloaded revision as the hf command leaves it.
  fs::path download(const std::string& folder, const std::string& revision, const std::string& commit,
                    const std::vector<std::string>& files) {
    const fs::path repository = root_ / "hub" / folder;
    write(repository / "refs" / revision, commit + "\n");
    for (const std::string& file : files) write(repository / "snapshots" / commit / file);
    return repository / "snapshots" / commit;
  }

  Settings find(const std::string& model, bool needs_text = true) const {
    Settings settings;
    if (!model.empty()) settings.model = model;
    return find_model(settings, hub(), (root_ / "bin").string(), needs_text);
  }

  std::string refusal(const std::string& model, ErrorKind kind = ErrorKind::kCheckpoint) const {
    try {
      ADD_FAILURE() << "found " << *find(model).model;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.message();
    }
    return "";
  }

  fs::path root_;
};

TEST_F(FindModel, TakesAPathAsItIs) {
  write(root_ / "some/model_index.json");
  EXPECT_EQ(find((root_ / "some").string()).model, (root_ / "some").string());
  EXPECT_EQ(find((root_ / "some/model_index.json").string()).model,
            (root_ / "some/model_index.json").string());
}

TEST_F(FindModel, WithoutANameTheOneThatComesWithTheProgram) {
  EXPECT_THAT(refusal("", ErrorKind::kRequest),
              HasSubstr("expected --model with a folder, a file or a published name"));
  write(root_ / "share/orrery/models/tiny-world/model_index.json");
  EXPECT_EQ(find("").model, (root_ / "share/orrery/models/tiny-world").string());
  write(root_ / "models/tiny-world/model_index.json");
  EXPECT_EQ(find("").model, (root_ / "models/tiny-world").string());
}

TEST_F(FindModel, APublishedNameInTheCache) {
  EXPECT_EQ(
      refusal("nvidia/Cosmos-Predict2.5-2B"),
      "nvidia/Cosmos-Predict2.5-2B is not in the Hugging Face cache " + hub() +
          "; fetch it with: hf download nvidia/Cosmos-Predict2.5-2B --revision diffusers/base/post-trained");
  const auto folder = download("models--nvidia--Cosmos-Predict2.5-2B", "diffusers/base/post-trained",
                               "c0ffee", {"model_index.json"});
  const Settings settings = find("nvidia/Cosmos-Predict2.5-2B");
  EXPECT_EQ(settings.model, folder.string());
  EXPECT_EQ(settings.variant, std::nullopt);
  EXPECT_EQ(find("nvidia/Cosmos-Predict2.5-2B@c0ffee").model, folder.string());
}

TEST_F(FindModel, ARevisionOfAPublishedName) {
  EXPECT_THAT(refusal("nvidia/Cosmos-Predict2.5-2B@diffusers/base/pre-trained"),
              HasSubstr("hf download nvidia/Cosmos-Predict2.5-2B --revision diffusers/base/pre-trained"));
  const auto folder = download("models--nvidia--Cosmos-Predict2.5-2B", "diffusers/base/pre-trained", "beef",
                               {"model_index.json"});
  EXPECT_EQ(find("nvidia/Cosmos-Predict2.5-2B@diffusers/base/pre-trained").model, folder.string());
}

TEST_F(FindModel, AnyRepositoryInTheDiffusersLayout) {
  EXPECT_THAT(refusal("someone/world"), HasSubstr("fetch it with: hf download someone/world"));
  const auto folder = download("models--someone--world", "main", "1", {"model_index.json"});
  EXPECT_EQ(find("someone/world").model, folder.string());
}

TEST_F(FindModel, APublishedNameInTheOfficialLayout) {
  const auto folder = download("models--nvidia--Cosmos-Predict2.5-2B", "main", "1", {kPost, "tokenizer.pth"});
  const auto text = download("models--nvidia--Cosmos-Reason1-7B", "main", "2", {"config.json"});
  const Settings settings = find("nvidia/Cosmos-Predict2.5-2B");
  EXPECT_EQ(settings.model, (folder / kPost).string());
  EXPECT_EQ(settings.vae, (folder / "tokenizer.pth").string());
  EXPECT_EQ(settings.text_encoder, text.string());
  EXPECT_EQ(settings.variant, Variant::kPostTrained);
}

TEST_F(FindModel, AnOfficialNameNamesEveryMissingPart) {
  EXPECT_EQ(refusal("2B/post-trained"), "2B/post-trained is not in the Hugging Face cache " + hub() +
                                            "; fetch it with: hf download nvidia/Cosmos-Predict2.5-2B " +
                                            kPost +
                                            " && hf download nvidia/Cosmos-Predict2.5-2B tokenizer.pth && hf "
                                            "download nvidia/Cosmos-Reason1-7B");
  download("models--nvidia--Cosmos-Predict2.5-2B", "main", "1", {kPost, "tokenizer.pth"});
  EXPECT_THAT(refusal("2B/post-trained"), HasSubstr("fetch it with: hf download nvidia/Cosmos-Reason1-7B"));
  const Settings settings = find("2B/post-trained", /*needs_text=*/false);
  EXPECT_EQ(settings.text_encoder, std::nullopt);
}

TEST_F(FindModel, TheLargeModelTakesTheSmallOnesVaeAndThePreTrainedSwitches) {
  const auto large = download("models--nvidia--Cosmos-Predict2.5-14B", "main", "1", {kPre14});
  const auto small = download("models--nvidia--Cosmos-Predict2.5-2B", "main", "2", {"tokenizer.pth"});
  const Settings settings = find("14B/pre-trained", /*needs_text=*/false);
  EXPECT_EQ(settings.model, (large / kPre14).string());
  EXPECT_EQ(settings.vae, (small / "tokenizer.pth").string());
  EXPECT_EQ(settings.variant, Variant::kPreTrained);
}

TEST_F(FindModel, ControlBranchesOfATransferModel) {
  const char* edge = "general/edge/61f5694b-0ad5-4ecd-8ad7-c8545627d125_ema_bf16.pt";
  const fs::path transfer = download("models--nvidia--Cosmos-Transfer2.5-2B", "main", "t1",
                                     {edge, "general/blur/ba2f44f2-c726-4fe7-949f-597069d9b91c_ema_bf16.pt"});
  const fs::path predict = download("models--nvidia--Cosmos-Predict2.5-2B", "main", "p1", {"tokenizer.pth"});
  download("models--nvidia--Cosmos-Reason1-7B", "main", "r1", {"config.json"});
  EXPECT_EQ(find("edge").model, (transfer / edge).string());
  EXPECT_THAT(refusal("depth"), HasSubstr("hf download nvidia/Cosmos-Transfer2.5-2B general/depth/626e6618"));
  const auto all = find("nvidia/Cosmos-Transfer2.5-2B");
  EXPECT_EQ(all.model, transfer.string()) << "the samples choose";
  EXPECT_EQ(all.vae, (predict / "tokenizer.pth").string());
}

TEST_F(FindModel, TheDistilledTransferModelByItsNameOnly) {
  const char* edge = "distilled/general/edge/41f07f13-f2e4-4e34-ba4c-86f595acbc20_ema_bf16.pt";
  const char* vis = "general/blur/ba2f44f2-c726-4fe7-949f-597069d9b91c_ema_bf16.pt";
  const auto transfer = download("models--nvidia--Cosmos-Transfer2.5-2B", "main", "t1", {edge, vis});
  download("models--nvidia--Cosmos-Predict2.5-2B", "main", "p1", {"tokenizer.pth"});
  const auto settings = find("edge/distilled", /*needs_text=*/false);
  EXPECT_EQ(settings.model, (transfer / edge).string());
  EXPECT_EQ(settings.variant, Variant::kDistilled);
  EXPECT_EQ(find("nvidia/Cosmos-Transfer2.5-2B", /*needs_text=*/false).variant, Variant::kPreTrained);
  EXPECT_THAT(refusal("edge/quick"), HasSubstr("edge/quick"));
}

TEST_F(FindModel, WhatTheUserNamesWins) {
  write(root_ / "mine.pt"), write(root_ / "vae.pth"), write(root_ / "reason/config.json");
  Settings settings;
  settings.checkpoint_path = (root_ / "mine.pt").string(), settings.vae = (root_ / "vae.pth").string();
  settings.text_encoder = (root_ / "reason").string(), settings.variant = Variant::kPreTrained;
  const Settings found = find_model(settings, hub(), "", true);
  EXPECT_EQ(found.model, settings.checkpoint_path);
  EXPECT_EQ(found.vae, settings.vae);
  EXPECT_EQ(found.text_encoder, settings.text_encoder);
  EXPECT_EQ(found.variant, Variant::kPreTrained);
}

TEST_F(FindModel, PartsThatAreNotThere) {
  Settings settings;
  settings.vae = "/nowhere/vae.pth";
  try {
    find_model(settings, hub(), "", true);
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "vae: expected a file or folder that exists, found \"/nowhere/vae.pth\"");
    EXPECT_EQ(error.code(), "missing_file");
  }
}

TEST_F(FindModel, NamesThatAreNone) {
  EXPECT_THAT(refusal("2B/post-traind"),
              HasSubstr("found \"2B/post-traind\" (did you mean 2B/post-trained?)"));
  for (const char* name : {"./nothing", "/no/where", "a/b/c", "word", "~/model", "../x", "x/../y"})
    EXPECT_THAT(refusal(name),
                HasSubstr("model: expected a file or folder that exists, a published name such as"))
        << name;
}

}  // namespace
}  // namespace orrery::app
