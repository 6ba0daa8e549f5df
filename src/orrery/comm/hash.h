#pragma once
#include <cstdint>
#include <string_view>

namespace orrery::comm {

/// FNV-1a, 64 bits: the same number on every machine.
constexpr uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace orrery::comm
