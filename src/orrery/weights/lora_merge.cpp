// At load, and not as two narrow layers beside each linear at run time: those cost up to 14 % of every
// evaluation in float32 and a fifth in bfloat16 (bench/lora.cpp has the numbers), and models would have to
// know of them.
#include "orrery/weights/lora_merge.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>

#include <set>

#include "orrery/base/text.h"
#include "orrery/nn/linear.h"
#include "orrery/weights/lora_family.h"
#include "orrery/weights/lora_key.h"
#include "orrery/weights/refuse.h"

namespace orrery::weights {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr size_t kListed = 10;
constexpr int64_t kRows = 512;  // merged at a time: the float32 copies stay small

/// The matrices of a network by every name that a LoRA may use for their modules.
class Targets {
 public:
  Targets(const TensorMap& base, const Loader::Spelling& spelling) {
    for (const auto& [name, t] : base) {
      if (t.dim() != 2 || !t.is_floating_point() || !name.ends_with(kWeight)) continue;
      add(name, name);
      if (spelling) add(spelling(name), name);
    }
  }

  /// The name of the tensor that `module` adapts, "" if there is none.
  std::string find(const std::string& module) const {
    const auto found = tensors_.find(bare_module(module));
    return found == tensors_.end() ? "" : found->second;
  }

  const std::vector<std::string>& modules() const { return modules_; }

 private:
  void add(const std::string& spelled, const std::string& tensor) {
    const std::string module(bare_module(spelled.substr(0, spelled.size() - kWeight.size())));
    modules_.push_back(module);
    tensors_.emplace(module, tensor);
    // Two modules whose names differ in dots and underscores only cannot be told apart: neither is meant.
    const auto [flat, fresh] = tensors_.emplace(flattened(module), tensor);
    if (!fresh && flat->second != tensor) flat->second.clear();
  }

  std::map<std::string, std::string, std::less<>> tensors_;
  std::vector<std::string> modules_;
};

[[noreturn]] void refuse_unknown(const Lora& lora, const std::vector<std::string>& unknown,
                                 const Targets& targets) {
  std::vector<std::string> listed;
  for (const auto& module : std::span(unknown).first(std::min(unknown.size(), kListed)))
    listed.push_back(shown(module) + did_you_mean(bare_module(module), targets.modules()));
  const auto theirs = family_of(unknown), ours = family_of(targets.modules());
  refuse(Fault::kUnknownKey, lora.path, ": ", unknown.size(), " of ", lora.modules.size(),
         " modules are not in the model",
         theirs.empty() || theirs == ours ? "" : concat(", they look like ", theirs), ": ", join(listed),
         unknown.size() > kListed ? ", …" : "");
}

void check_finite(const LoraModule& m, const std::string& path) {
  for (const Tensor& t : {m.down, m.up})
    if (!at::isfinite(t.to(at::kFloat)).all().item<bool>())
      refuse(Fault::kInvalidTensor, path, ": ", shown(m.name),
             ": expected finite factors, found NaN or infinity");
}

/// One summand of a matrix: factor · up [out, r] · down [r, in], as stored.
struct Term {
  Tensor up, down;
  double factor;
};

using Terms = std::map<std::string, std::vector<Term>>;  // by the tensor that they are added to

void collect(const Lora& lora, double strength, const TensorMap& base, const Targets& targets, Terms& terms) {
  std::vector<std::string> unknown;
  std::set<std::string> adapted;
  for (const auto& m : lora.modules) {
    const std::string target = targets.find(m.name);
    if (target.empty()) {
      unknown.push_back(m.name);
      continue;
    }
    const Tensor& w = base.at(target);
    if (m.up.size(0) != w.size(0) || m.down.size(1) != w.size(1))
      refuse(Fault::kInvalidShape, lora.path, ": ", shown(m.name), ": expected down [r, ", w.size(1),
             "] and up [", w.size(0), ", r], found ", m.down.sizes(), " and ", m.up.sizes());
    if (!adapted.insert(target).second)
      refuse(Fault::kDuplicateKey, lora.path, ": ", target, " is adapted twice, the second time by ",
             shown(m.name));
    check_finite(m, lora.path);
    if (strength != 0) terms[target].push_back({m.up, m.down, strength * m.scale});
  }
  if (!unknown.empty()) refuse_unknown(lora, unknown, targets);
}

/// Through nn::linear, whose bits do not depend on the threads: all ranks merge the same weights.
Tensor merged(const Tensor& w, const std::vector<Term>& terms, at::ScalarType dtype) {
  std::vector<std::pair<Tensor, nn::Linear>> products;
  for (const auto& term : terms)
    products.push_back(
        {term.up.to(at::kFloat) * term.factor, {term.down.to(at::kFloat).t().contiguous(), {}}});
  Tensor out = at::empty(w.sizes(), dtype);
  for (int64_t row = 0; row < w.size(0); row += kRows) {
    const int64_t rows = std::min(kRows, w.size(0) - row);
    Tensor part = w.narrow(0, row, rows).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    for (const auto& [up, down] : products) part.add_(nn::linear(down, up.narrow(0, row, rows)));
    out.narrow(0, row, rows).copy_(part);
  }
  return out;
}

}  // namespace

int64_t merge_loras(TensorMap& base, std::span<const LoraChoice> choices, at::ScalarType dtype,
                    const Loader::Spelling& spelling) {
  const Targets targets(base, spelling);
  Terms terms;
  for (const auto& choice : choices) collect(open_lora(choice.path), choice.strength, base, targets, terms);
  int64_t bytes = 0;
  for (const auto& [name, summands] : terms) {
    Tensor& w = base.at(name);
    w = merged(w, summands, dtype);
    bytes += static_cast<int64_t>(w.nbytes());
  }
  return bytes;
}

}  // namespace orrery::weights
