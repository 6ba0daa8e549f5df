// Real launchers: torchrun from the torch wheel, mpirun from Debian.
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "orrery/base/text.h"
#include "orrery/weights/safetensors.h"
#include "tests/support/golden.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using testing::Program;

class LauncherTest : public ::testing::Test {
 protected:
  int run(std::vector<std::string> launcher, const std::string& output,
          const std::string& parallel = "") const {
    std::vector<std::string> words = {
        ORRERY_PROGRAM,          "generate", "-p", "a red circle", "--dtype", "float32",
        "--num-inference-steps", "2",        "-o", temp_ / output};
    if (!parallel.empty()) words.insert(words.end(), {"--parallel", parallel});
    launcher.insert(launcher.end(), words.begin(), words.end());
    return Program(launcher, temp_ / "errors").wait();
  }
  static std::vector<std::string> torchrun(const std::string& count) {
    return {ORRERY_PYTHON,      "-m", "torch.distributed.run", "--standalone", "--no-python",
            "--nproc-per-node", count};
  }
  std::string errors() const { return read_file(temp_ / "errors"); }

  testing::TempDir temp_;
};

TEST_F(LauncherTest, TorchrunGivesTheFileOfOneRank) {
  ASSERT_EQ(run({}, "one.mp4"), 0) << errors();
  for (const auto& [count, parallel] : {std::pair("2", "u2"), {"2", "cfg2"}, {"4", "cfg2,u2"}, {"4", "u4"}}) {
    ASSERT_EQ(run(torchrun(count), "many.mp4", parallel), 0) << parallel << ": " << errors();
    EXPECT_TRUE(read_file(temp_ / "many.mp4") == read_file(temp_ / "one.mp4")) << parallel;
  }
}

TEST_F(LauncherTest, MpirunGivesTheFileOfOneRank) {
  ASSERT_EQ(run({}, "one.mp4"), 0) << errors();
  for (const char* parallel : {"u2", "cfg2"}) {
    ASSERT_EQ(run({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"}, "many.mp4", parallel), 0)
        << errors();
    EXPECT_TRUE(read_file(temp_ / "many.mp4") == read_file(temp_ / "one.mp4")) << parallel;
  }
}

// A random model of 5 heads, 140 tokens: neither divides. Every factorisation of up to 4 processes.
TEST(Processes, GiveTheLatentsOfOneRankWhateverDivides) {
  const c10::InferenceMode guard;
  const testing::TempDir temp;
  const std::string source = ORRERY_SOURCE_DIR;
  weights::write_safetensors(temp / "prompt", {{"prompt_embeds", at::randn({7, 64})}});
  weights::write_safetensors(temp / "negative", {{"negative_prompt_embeds", at::randn({5, 64})}});
  const auto latents = [&](const std::vector<std::string>& plan) {
    std::vector<std::string> words = {ORRERY_PROGRAM,
                                      "generate",
                                      "-m",
                                      source + "/models/tiny-world",
                                      "--checkpoint-path",
                                      source + "/tests/golden/cosmos_dit/heads5/transformer",
                                      "--prompt-embeds",
                                      temp / "prompt",
                                      "--negative-prompt-embeds",
                                      temp / "negative",
                                      "--dtype",
                                      "float32",
                                      "--num-inference-steps",
                                      "2",
                                      "-W",
                                      "112",
                                      "-H",
                                      "80",
                                      "--num-frames",
                                      "13",
                                      "-q",
                                      "-o",
                                      temp / "x.mp4",
                                      "--save-latents",
                                      temp / "latents"};
    words.insert(words.end(), plan.begin(), plan.end());
    EXPECT_EQ(Program(words, temp / "errors").wait(), 0) << read_file(temp / "errors");
    return weights::open_safetensors(temp / "latents").at("latents").clone();
  };
  const Tensor one = latents({});
  for (const char* parallel : {"u2", "u3", "u4", "cfg2", "cfg2,u2", "r2", "r3", "r4", "u2,r2", "cfg2,r2"}) {
    const Tensor many = latents({"--launch", "processes", "--parallel", parallel});
    if (std::string(parallel).find('r') == std::string::npos)
      EXPECT_TRUE(at::equal(many, one)) << parallel;
    else
      EXPECT_LE(testing::max_abs_over_rms(many, one), 1e-4) << parallel;
  }
  for (const char* chunks : {"--alltoall-cut", "--alltoall-overlap"})
    EXPECT_TRUE(at::equal(latents({"--launch", "processes", "--parallel", "u2", chunks, "3"}), one))
        << chunks;
}

}  // namespace
}  // namespace orrery
