#include "orrery/models/qwen_vl/text_encoder.h"

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/models/tokenizer/chat_template.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::qwen_vl {

TextEncoder open_text_encoder(const std::string& folder, const std::string& tokenizer_folder,
                              at::ScalarType compute, weights::Storage storage) {
  TextEncoder encoder{
      read_text_config(folder + "/config.json"), {}, tokenizer::Tokenizer::open(tokenizer_folder)};
  if (encoder.tokenizer.id_count() > encoder.config.vocab_size)
    fail(ErrorKind::kCheckpoint, tokenizer_folder, " has ", encoder.tokenizer.id_count(),
         " ids; the embedding of ", folder, " has ", encoder.config.vocab_size, " rows");
  weights::Loader loader(weights::qwen_vl_names(weights::open_weights(folder)), compute, storage, folder);
  bind(loader, encoder.weights, encoder.config);
  loader.finish([](std::string_view name) { return name.starts_with("visual."); });
  return encoder;
}

PromptIds cosmos_prompt_ids(const tokenizer::Tokenizer& tokenizer, std::string_view prompt, int64_t length) {
  require(length >= 1, "the text length is ", length, "; expected at least 1 token");
  PromptIds out;
  out.ids = tokenizer.encode(tokenizer::render_cosmos_prompt(prompt));
  const auto tokens = static_cast<int64_t>(out.ids.size());
  out.kept = std::min(tokens, length);
  out.dropped = tokens - out.kept;
  out.ids.resize(static_cast<size_t>(length), tokenizer.pad_id());
  return out;
}

EncodedPrompt encode_cosmos_prompt(const TextEncoder& encoder, std::string_view prompt, int64_t length,
                                   at::ScalarType dtype) {
  const PromptIds ids = cosmos_prompt_ids(encoder.tokenizer, prompt, length);
  return {cosmos_embeddings(encoder.weights, encoder.config, ids.ids, dtype), ids.kept, ids.dropped};
}

}  // namespace orrery::qwen_vl
