#pragma once
// Numbers that follow from names (spec qwen-image §11.2), and the ones that the specification prints for
// them.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "orrery/nn/bind.h"

namespace orrery::qwen_vl {

/// Fills weights from names alone.
class HashFill final : public nn::Visitor<HashFill> {
 public:
  explicit HashFill(std::string prefix) : key_prefix_(std::move(prefix)) {}

  void tensor(const std::string& name, Tensor& t, const Shape& shape) {
    t = at::empty(shape, at::kFloat);
    const double fan_in = static_cast<double>(t.numel()) / static_cast<double>(t.size(0));
    const bool bias = name.ends_with(".bias"), norm = t.dim() == 1 && name.ends_with(".weight");
    fill(t, key_prefix_ + name, norm ? 1 : 0, bias || norm ? 0.1 : std::sqrt(3 / fan_in));
  }

  static void fill(const Tensor& t, const std::string& key, double base, double amplitude) {
    const uint32_t hash = fnv(key);
    for (int64_t i = 0; i < t.numel(); ++i)
      t.data_ptr<float>()[i] = static_cast<float>(base + amplitude * unit(hash, static_cast<uint32_t>(i)));
  }

  static uint32_t fnv(const std::string& key) {
    uint32_t hash = 0x811C9DC5;
    for (const char c : key) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193;
    return hash;
  }

  static double unit(uint32_t hash, uint32_t i) {
    uint32_t x = hash + i * 0x9E3779B9;
    x = (x ^ x >> 16) * 0x85EBCA6B;
    x = (x ^ x >> 13) * 0xC2B2AE35;
    return static_cast<double>(x ^ x >> 16) / 2147483648.0 - 1;
  }

 private:
  std::string key_prefix_;
};

inline Tensor hashed(const std::string& key, const Shape& shape, double amplitude) {
  Tensor t = at::empty(shape, at::kFloat);
  HashFill::fill(t, key, 0, amplitude);
  return t;
}

/// What the specification prints of a tensor.
struct Printed {
  double sum, norm;
  std::vector<float> first, last;
};

inline void expect_printed(const Tensor& t, const Printed& printed) {
  const Tensor flat = t.flatten();
  EXPECT_NEAR(flat.sum(at::kDouble).item<double>(), printed.sum, 3e-4);
  EXPECT_NEAR(flat.to(at::kDouble).norm().item<double>(), printed.norm, 3e-5);
  for (size_t i = 0; i < printed.first.size(); ++i)
    EXPECT_NEAR(flat[static_cast<int64_t>(i)].item<float>(), printed.first[i], 1e-5);
  const int64_t start = flat.numel() - static_cast<int64_t>(printed.last.size());
  for (size_t i = 0; i < printed.last.size(); ++i)
    EXPECT_NEAR(flat[start + static_cast<int64_t>(i)].item<float>(), printed.last[i], 1e-5);
}

inline std::vector<int64_t> longs(const Tensor& t) {
  const Tensor flat = t.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

}  // namespace orrery::qwen_vl
