#include "orrery/weights/visitors.h"

#include <span>

#include "orrery/base/text.h"
#include "orrery/weights/refuse.h"

namespace orrery::weights {
namespace {

constexpr size_t kListed = 10;

std::string count_and_names(std::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const auto first = std::span(names).first(std::min(names.size(), kListed));
  return concat("; ", names.size(), " ", what, ": ", join(first), names.size() > kListed ? ", …" : "");
}

}  // namespace

Loader::Loader(TensorMap tensors, at::ScalarType compute, Storage storage, std::string origin,
               Spelling spelling)
    : unused_(std::move(tensors)),
      compute_(compute),
      storage_(storage),
      origin_(std::move(origin)),
      spelling_(std::move(spelling)) {}

std::string Loader::spelled(const std::string& name) const {
  const std::string other = spelling_ ? spelling_(name) : name;
  return other == name ? name : concat(name, " (", other, " in the file)");
}

void Loader::tensor(const std::string& name, Tensor& t, const Shape& shape) {
  const auto found = unused_.extract(name);
  if (found.empty()) return missing_.push_back(spelled(name));
  const Tensor& stored = found.mapped();
  if (stored.sizes() != at::IntArrayRef(shape))
    return misshaped_.push_back(
        concat(spelled(name), " (expected ", at::IntArrayRef(shape), ", found ", stored.sizes(), ")"));
  if (!stored.is_floating_point())
    return misshaped_.push_back(
        concat(spelled(name), " (expected floating point, found ", c10::toString(stored.scalar_type()), ")"));
  if (storage_ == Storage::kUnread) return;
  // Once the checkpoint is known to be refused, converting the rest would waste minutes.
  if (missing_.empty() && misshaped_.empty()) t = prepared(stored);
}

Tensor Loader::prepared(const Tensor& t) const {
  const auto dtype = t.scalar_type();
  const bool readable =
      dtype == compute_ || (compute_ == at::kFloat && (dtype == at::kBFloat16 || dtype == at::kHalf));
  if (storage_ == Storage::kMapped && t.dim() >= 2 && readable) return t.contiguous();
  return t.to(compute_).contiguous();
}

void Loader::finish(const Predicate& may_stay_unused) const {
  std::vector<std::string> unknown;
  for (const auto& [name, t] : unused_)
    if (!may_stay_unused || !may_stay_unused(name)) unknown.push_back(shown(name));
  if (missing_.empty() && misshaped_.empty() && unknown.empty()) return;
  const Fault fault = !missing_.empty()     ? Fault::kMissingKey
                      : !misshaped_.empty() ? Fault::kInvalidShape
                                            : Fault::kUnknownKey;
  refuse(fault, origin_, " does not fit the model's configuration", count_and_names("missing", missing_),
         count_and_names("of the wrong shape or type", misshaped_), count_and_names("unknown", unknown));
}

void Sizer::tensor(const std::string&, Tensor&, const Shape& shape) {
  ++tensors_;
  (shape.size() >= 2 ? matrices_ : vectors_) += c10::multiply_integers(shape);
}

int64_t Sizer::bytes(at::ScalarType dtype) const {
  return parameters() * static_cast<int64_t>(c10::elementSize(dtype));
}

}  // namespace orrery::weights
