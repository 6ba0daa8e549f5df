#include "orrery/models/tokenizer/bpe.h"

#include <queue>

#include "orrery/base/error.h"

namespace orrery::tokenizer {
namespace {

bool is_printable(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
}

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

int32_t id_of(const Bpe::Vocabulary& vocabulary, const std::string& token, size_t rank) {
  const auto found = vocabulary.find(token);
  if (found == vocabulary.end())
    fail(ErrorKind::kCheckpoint, "merge ", rank, ": the token \"", token, "\" is not in the vocabulary");
  return found->second;
}

}  // namespace

std::string byte_character(uint8_t byte) {
  unsigned code = byte;
  if (!is_printable(byte)) {
    code = 256;
    for (unsigned b = 0; b < byte; ++b) code += !is_printable(b);
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

Bpe::Bpe(const Vocabulary& vocabulary, const Merges& merges) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto found = vocabulary.find(byte_character(static_cast<uint8_t>(byte)));
    if (found == vocabulary.end())
      fail(ErrorKind::kCheckpoint, "the vocabulary has no token for byte ", byte, " (\"",
           byte_character(static_cast<uint8_t>(byte)), "\")");
    byte_ids_[byte] = found->second;
  }
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const Merge merge{static_cast<int32_t>(rank), id_of(vocabulary, left + right, rank)};
    merges_.insert_or_assign(pair_key(id_of(vocabulary, left, rank), id_of(vocabulary, right, rank)), merge);
  }
}

const Bpe::Merge* Bpe::merge_of(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  // A linked list of tokens, and a queue of the merges that were possible at some time: an entry whose tokens
  // have changed since is dropped when its turn comes.
  struct Node {
    int32_t id, previous, next;
  };
  struct Candidate {
    int32_t rank, at, left, right;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const auto count = static_cast<int32_t>(piece.size());
  std::vector<Node> nodes(piece.size());
  for (int32_t i = 0; i < count; ++i)
    nodes[static_cast<size_t>(i)] = {byte_ids_[static_cast<uint8_t>(piece[static_cast<size_t>(i)])], i - 1,
                                     i + 1};
  const auto node = [&](int32_t i) -> Node& { return nodes[static_cast<size_t>(i)]; };

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](int32_t at) {
    if (at < 0 || node(at).next >= count) return;
    const int32_t left = node(at).id, right = node(node(at).next).id;
    if (const Merge* merge = merge_of(left, right)) queue.push({merge->rank, at, left, right});
  };
  for (int32_t i = 0; i < count; ++i) consider(i);
  while (!queue.empty()) {
    const auto [rank, at, left, right] = queue.top();
    queue.pop();
    if (node(at).id != left || node(at).next >= count || node(node(at).next).id != right) continue;
    const int32_t gone = node(at).next;
    node(at).id = merge_of(left, right)->id;
    node(at).next = node(gone).next;
    node(gone).id = -1;
    if (node(at).next < count) node(node(at).next).previous = at;
    consider(node(at).previous);
    consider(at);
  }
  for (int32_t i = 0; i < count; i = node(i).next) ids.push_back(node(i).id);
}

}  // namespace orrery::tokenizer
