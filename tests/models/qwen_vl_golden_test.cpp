#include "orrery/base/error.h"
#include "orrery/models/qwen_vl/image_prompt.h"
#include "orrery/models/tokenizer/chat_template.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"
#include "tests/support/every_weight.h"
#include "tests/support/golden.h"

namespace orrery::qwen_vl {
namespace {

namespace fs = std::filesystem;
using testing::Json;
using Ids = std::vector<int32_t>;

// Float32 rounding of the reference itself is 3.5e-6 of rms (float32_rounding in case.json).
constexpr double kStates = 2e-5;      // max |difference| / rms
constexpr double kEmbeddings = 5e-5;  // max |difference|; the values have deviation 1

struct Golden {
  fs::path folder;
  Json cases;
  std::map<std::string, Tensor> tensors;
  TextEncoder encoder;

  const Tensor& operator()(const Json& c, const std::string& name) const {
    return tensors.at(c["name"].get<std::string>() + "/" + name);
  }
};

/// Calls f(golden) for every golden folder with each of the encoder's three file layouts.
template <class F>
void for_each_layout(const F& f) {
  int layouts = 0;
  for (const fs::path& folder : testing::golden_folders("text_encoder"))
    for (const char* layout : {"text_encoder_flat", "text_encoder_nested", "text_encoder_mixed"})
      for (const auto storage : {weights::Storage::kMapped, weights::Storage::kWidened}) {
        SCOPED_TRACE((folder / layout).string());
        f(Golden{folder, testing::read_json(folder / "case.json"),
                 testing::read_tensors(folder / "golden.safetensors"),
                 open_text_encoder((folder / layout).string(), (folder / "tokenizer").string(), at::kFloat,
                                   storage)});
        ++layouts;
      }
  EXPECT_GE(layouts, 6);
}

Ids ids_of(const Tensor& ids) {
  const Tensor flat = ids.to(at::kInt).contiguous();
  return {flat.data_ptr<int32_t>(), flat.data_ptr<int32_t>() + flat.numel()};
}

std::vector<Tensor> all_states(const TextEncoder& e, const Ids& ids) {
  std::vector<Tensor> states;
  run_text(e.weights, e.config, ids, at::kFloat, [&](int64_t i, const Tensor& state) {
    ASSERT_EQ(i, static_cast<int64_t>(states.size()));
    states.push_back(state);
  });
  return states;
}

/// Rows of the batch one by one, of each only the tokens under its mask: a batch has no padding here.
TEST(QwenVlGolden, HiddenStates) {
  double worst = 0;
  int rows = 0;
  for_each_layout([&](const Golden& g) {
    for (const Json& c : g.cases["cases"]) {
      if (!c["shapes"].contains("hidden_states.0")) continue;
      const bool masked = c["shapes"].contains("mask");
      for (int64_t row = 0; row < g(c, "ids").size(0); ++row) {
        SCOPED_TRACE(concat(c["name"], " row ", row));
        const auto valid = [&](const Tensor& t) {
          return masked ? t[row].index({g(c, "mask")[row] == 1}) : t[row];
        };
        const auto states = all_states(g.encoder, ids_of(valid(g(c, "ids"))));
        ASSERT_EQ(static_cast<int64_t>(states.size()), g.encoder.config.layers + 1);
        for (size_t i = 0; i < states.size(); ++i) {
          const double off = testing::max_abs_over_rms(states[i], valid(g(c, concat("hidden_states.", i))));
          EXPECT_LE(off, kStates) << "hidden state " << i;
          worst = std::max(worst, off);
        }
        ++rows;
      }
    }
  });
  EXPECT_GT(rows, 0);
  std::printf("hidden states: max |difference| / rms %.2e in %d rows\n", worst, rows);
}

TEST(QwenVlGolden, CosmosEmbeddings) {
  double worst = 0;
  int prompts = 0;
  for_each_layout([&](const Golden& g) {
    for (const Json& c : g.cases["cases"]) {
      if (!c.contains("prompt")) continue;
      SCOPED_TRACE(c["name"].get<std::string>());
      const auto length = c["max_sequence_length"].get<int64_t>();
      const PromptIds ids = cosmos_prompt_ids(g.encoder.tokenizer, c["prompt"].get<std::string>(), length);
      EXPECT_EQ(ids.ids, ids_of(g(c, "ids")));
      const auto prompt = encode_cosmos_prompt(g.encoder, c["prompt"].get<std::string>(), length, at::kFloat);
      EXPECT_EQ(prompt.embeddings.size(0), length);
      const auto tokens = static_cast<int64_t>(
          g.encoder.tokenizer.encode(tokenizer::render_cosmos_prompt(c["prompt"].get<std::string>())).size());
      EXPECT_EQ(prompt.kept, std::min(tokens, length));
      EXPECT_EQ(prompt.dropped, tokens - prompt.kept);
      Tensor got = prompt.embeddings;
      const Tensor& expected = g(c, "prompt_embeds")[0];
      if (expected.size(0) != length)
        got = got.slice(0, 0, std::nullopt, 37);  // the case keeps rows 0, 37, 74, …
      const double off = testing::max_abs(got, expected);
      EXPECT_LE(off, kEmbeddings);
      worst = std::max(worst, off);
      ++prompts;
    }
  });
  EXPECT_GT(prompts, 0);
  std::printf("Cosmos embeddings: max |difference| %.2e in %d prompts\n", worst, prompts);
}

TEST(QwenVlGolden, EveryWeightMatters) {
  const fs::path folder = testing::golden_folders("text_encoder").at(0);
  const auto tensors = testing::read_tensors(folder / "golden.safetensors");
  const TextConfig config = read_text_config(folder / "text_encoder_flat/config.json");
  const Json cases = testing::read_json(folder / "case.json")["cases"];
  const Json c = *std::find_if(cases.begin(), cases.end(), [&](const Json& one) {
    return one.contains("prompt") && one["shapes"]["prompt_embeds"][1][1] == one["max_sequence_length"];
  });
  const std::string name = c["name"];
  const Ids ids = ids_of(tensors.at(name + "/ids"));
  const Tensor expected = tensors.at(name + "/prompt_embeds")[0];
  auto original = weights::qwen_vl_names(weights::open_weights(folder / "text_encoder_flat"));
  std::erase_if(original, [](const auto& one) { return one.first.starts_with("visual."); });
  testing::for_each_disturbed(
      original, [&](const std::string& changed, const weights::TensorMap& with_change) {
        weights::Loader loader(with_change, at::kFloat, weights::Storage::kWidened, changed);
        TextWeights weights;
        bind(loader, weights, config);
        loader.finish();
        const Tensor embeddings = cosmos_embeddings(weights, config, ids, at::kFloat);
        EXPECT_GT(testing::max_abs(embeddings, expected), 10 * kEmbeddings) << changed;
      });
}

/// What Qwen-Image conditions on (spec qwen-image §8); a batch is one prompt after the other.
TEST(QwenVlGolden, QwenImageEmbeddings) {
  double worst = 0;
  int rows = 0;
  for_each_layout([&](const Golden& g) {
    for (const Json& c : g.cases["cases"]) {
      if (!c.contains("prompts")) continue;
      for (size_t row = 0; row < c["prompts"].size(); ++row) {
        SCOPED_TRACE(concat(c["name"], " row ", row));
        const auto prompt = c["prompts"][row].get<std::string>();
        const auto limit = c["max_sequence_length"].get<int64_t>();
        const auto whole = image_prompt_ids(g.encoder.tokenizer, g.encoder.config.image_token, prompt, {},
                                            PromptTemplate::kText, 1 << 20);
        const auto encoded =
            encode_image_prompt(g.encoder, prompt, {}, PromptTemplate::kText, limit, at::kFloat);
        EXPECT_EQ(encoded.kept, std::min(whole.kept, limit));
        EXPECT_EQ(encoded.dropped, whole.kept - encoded.kept);
        const Tensor& got = encoded.embeddings;
        const Tensor expected = g(c, "prompt_embeds")[static_cast<int64_t>(row)].slice(0, 0, got.size(0));
        EXPECT_EQ(c["mask"] == "given"
                      ? g(c, "prompt_embeds_mask")[static_cast<int64_t>(row)].sum().item<int64_t>()
                      : g(c, "prompt_embeds").size(1),
                  encoded.kept);
        const double off = testing::max_abs(got, expected);
        EXPECT_LE(off, kEmbeddings);
        worst = std::max(worst, off);
        ++rows;
      }
    }
  });
  EXPECT_GT(rows, 0);
  std::printf("Qwen-Image embeddings: max |difference| %.2e in %d rows\n", worst, rows);
}

}  // namespace
}  // namespace orrery::qwen_vl
