#pragma once
// Visitors over a model's bind functions (nn/bind.h).
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/nn/bind.h"
#include "orrery/weights/tensor_map.h"

namespace orrery::weights {

enum class Storage {
  kMapped,   // matrices (two dimensions or more) stay in the file, in its dtype; vectors are converted
  kWidened,  // every tensor is converted to the compute dtype, once
  kUnread,   // names, shapes and types are checked, from headers alone; every tensor stays undefined
};

/// Gives a weight struct the tensors of a checkpoint:
///
///   Loader loader(std::move(tensors), at::kFloat, Storage::kMapped, path);
///   bind(loader, weights, config);
///   loader.finish();
///
/// Every tensor that it hands out is contiguous and has the compute dtype, or (kMapped, matrices) stays in
/// the file if its dtype is the compute dtype or bfloat16 or float16 under float32. Conversions run on all of
/// the thread's cores, and a widened tensor lets go of its file. A tensor that already is as it should be is
/// handed on without a copy. A tensor that is missing or has another shape is left undefined: the struct is
/// usable only after finish().
class Loader final : public nn::Visitor<Loader> {
 public:
  using Spelling = std::function<std::string(std::string_view name)>;

  /// For messages: `origin` is the file or folder that the tensors came from, `spelling` says what it calls a
  /// tensor where that is another name than bind's (names.h).
  Loader(TensorMap tensors, at::ScalarType compute, Storage storage, std::string origin,
         Spelling spelling = {});

  void tensor(const std::string& name, Tensor& t, const Shape& shape);

  using Predicate = std::function<bool(std::string_view name)>;

  /// Throws one Error of kind checkpoint unless checkpoint and struct agree completely: it gives the number
  /// of missing, mis-shaped and unused tensors and the first ten of each. Its code is missing_key,
  /// invalid_shape or unknown_key, the first that applies. Tensors for which `may_stay_unused` holds may be
  /// left over (the vision tower of a text encoder).
  void finish(const Predicate& may_stay_unused = {}) const;

 private:
  Tensor prepared(const Tensor& t) const;
  std::string spelled(const std::string& name) const;

  TensorMap unused_;
  at::ScalarType compute_;
  Storage storage_;
  std::string origin_;
  Spelling spelling_;
  std::vector<std::string> missing_, misshaped_;
};

/// Counts what a configuration asks for; no files, no memory for weights (the struct's tensors stay
/// undefined).
class Sizer final : public nn::Visitor<Sizer> {
 public:
  void tensor(const std::string& name, Tensor& t, const Shape& shape);

  int64_t tensors() const { return tensors_; }
  int64_t parameters() const { return matrices_ + vectors_; }
  /// Parameters of tensors with two dimensions or more: those that Storage::kMapped leaves in the file.
  int64_t matrices() const { return matrices_; }
  /// All parameters in this dtype.
  int64_t bytes(at::ScalarType dtype) const;

 private:
  int64_t tensors_ = 0, matrices_ = 0, vectors_ = 0;
};

/// Lists names and shapes, in the order of bind.
class Names final : public nn::Visitor<Names> {
 public:
  void tensor(const std::string& name, Tensor&, const Shape& shape) { entries.emplace_back(name, shape); }

  std::vector<std::pair<std::string, Shape>> entries;
};

}  // namespace orrery::weights
