// Sources: CPython 3.12, Modules/_randommodule.c (init_by_array, getrandbits) and Lib/random.py
// (_randbelow_with_getrandbits). The generator is Matsumoto and Nishimura's MT19937.
#include "orrery/sample/chunk_seed.h"

#include <ATen/core/MT19937RNGEngine.h>

#include "orrery/base/error.h"

namespace orrery::sample {
namespace {

/// init_by_array of a key of one word.
at::mt19937 python_generator(uint32_t key) {
  constexpr int n = at::MERSENNE_STATE_N;
  constexpr uint32_t kArraySeed = 19650218;
  at::mt19937_data_pod data = at::mt19937(kArraySeed).data();
  auto& state = data.state_;
  int i = 1;
  const auto mix = [&](uint32_t factor, uint32_t add) {
    const uint32_t before = state[static_cast<size_t>(i - 1)];
    auto& word = state[static_cast<size_t>(i)];
    word = (word ^ ((before ^ (before >> 30)) * factor)) + add;
    if (++i == n) state[0] = state[n - 1], i = 1;
  };
  for (int k = 0; k < n; ++k) mix(1664525, key);
  for (int k = 0; k < n - 1; ++k) mix(1566083941, -static_cast<uint32_t>(i));
  state[0] = 0x80000000;
  data.left_ = 1;  // the next number begins a new state
  at::mt19937 generator;
  generator.set_data(data);
  return generator;
}

}  // namespace

int64_t next_chunk_seed(int64_t seed) {
  require(seed >= 0 && seed <= int64_t{UINT32_MAX}, "expected a seed from 0 to ", UINT32_MAX, ", got ", seed);
  constexpr uint32_t kLargest = 1000000;
  constexpr int kUnusedBits = 32 - 20;  // of 1000001
  auto generator = python_generator(static_cast<uint32_t>(seed));
  for (;;)
    if (const uint32_t drawn = static_cast<uint32_t>(generator()) >> kUnusedBits; drawn <= kLargest)
      return drawn;
}

}  // namespace orrery::sample
