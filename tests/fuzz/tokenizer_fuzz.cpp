// libFuzzer: hostile tokenizer files and prompts. The first byte chooses the parser, the rest is its input;
// only an Error may come out. Whatever tokenizer.json is accepted must also encode.
#include "orrery/base/error.h"
#include "orrery/models/tokenizer/tokenizer.h"

using namespace orrery;

namespace {

const tokenizer::Tokenizer& byte_tokenizer() {
  static const tokenizer::Tokenizer kTokenizer = [] {
    tokenizer::Tables tables;
    for (int byte = 0; byte < 256; ++byte)
      tables.vocabulary[tokenizer::byte_character(static_cast<uint8_t>(byte))] = byte;
    tables.added.push_back({tables.pad_token, 256});
    return tokenizer::Tokenizer(tables);
  }();
  return kTokenizer;
}

void run(uint8_t choice, std::string_view content) {
  tokenizer::Tables tables;
  switch (choice % 6) {
    case 0:
      tokenizer::parse_tokenizer_json(content, "tokenizer.json", tables);
      tokenizer::Tokenizer(tables).encode("a cat's  12\n<|endoftext|>");
      break;
    case 1:
      tokenizer::parse_vocabulary(content, "vocab.json", tables);
      break;
    case 2:
      tokenizer::parse_merges(content, "merges.txt", tables);
      break;
    case 3:
      tokenizer::parse_added_tokens(content, "added_tokens.json", tables);
      break;
    case 4:
      tokenizer::parse_tokenizer_config(content, "tokenizer_config.json", tables);
      break;
    default:
      byte_tokenizer().encode(content);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    run(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const Error&) {
  }
  return 0;
}
