#include "orrery/engine/verify.h"

#include <ATen/ops/equal.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "orrery/base/error.h"

namespace orrery {
namespace {

struct Bounds {
  double relative, max_over_rms;
};

/// docs/numerics.md, "One rank and many": a ring adds partial results in another order; bfloat16 kernels
/// choose by size, and guidance enlarges from step to step what rounding began.
Bounds bounds(const std::string& stage, const comm::MeshShape& mesh, at::ScalarType dtype) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  if (dtype == at::kBFloat16) return {stage.find("block") != std::string::npos ? 1e-2 : 1.5e-1, kAny};
  return mesh.ring > 1 ? Bounds{1e-5, 1e-4} : Bounds{0, 0};
}

Agreement compare(const std::string& stage, const Tensor& one, const Tensor& many, const Bounds& bounds) {
  Agreement a{.stage = stage, .identical = at::equal(one, many)};
  if (a.identical) return a;
  ensure(one.sizes() == many.sizes(), stage, ": one rank has ", one.sizes(), ", many have ", many.sizes());
  const Tensor x = one.to(at::kDouble), difference = many.to(at::kDouble) - x;
  const double norm = x.norm().item<double>(), rms = norm / std::sqrt(static_cast<double>(x.numel()));
  a.max_abs = difference.abs().max().item<double>();
  a.relative = difference.norm().item<double>() / norm;
  a.within = a.relative <= bounds.relative && a.max_abs <= bounds.max_over_rms * rms;
  if (one.scalar_type() == at::kByte) {
    const double mse = difference.square().mean().item<double>();
    a.psnr = 10 * std::log10(255.0 * 255.0 / mse);
    a.within = bounds.relative > 0;  // the pixels before rounding have been judged
  }
  return a;
}

}  // namespace

std::vector<Agreement> agreements(const Observed& one, const Observed& many, const comm::MeshShape& mesh,
                                  at::ScalarType dtype) {
  std::vector<Agreement> all;
  for (const auto& [stage, value] : one) {
    const auto found =
        std::find_if(many.begin(), many.end(), [&](const auto& m) { return m.first == stage; });
    // The other branch is another process's.
    if (found != many.end()) all.push_back(compare(stage, value, found->second, bounds(stage, mesh, dtype)));
  }
  ensure(!all.empty(), "verify: the runs have shown nothing in common");
  return all;
}

std::string to_string(const std::vector<Agreement>& all) {
  std::ostringstream out;
  out << std::left << std::setw(20) << "stage" << std::right << std::setw(12) << "max abs" << std::setw(12)
      << "relative" << std::setw(10) << "PSNR"
      << "\n"
      << std::setprecision(2) << std::scientific;
  for (const auto& a : all) {
    out << std::left << std::setw(20) << a.stage << std::right;
    if (a.identical) {
      out << std::setw(34) << "identical"
          << "\n";
      continue;
    }
    out << std::setw(12) << a.max_abs << std::setw(12) << a.relative;
    if (a.psnr)
      out << std::fixed << std::setw(7) << *a.psnr << " dB" << std::scientific;
    else
      out << std::setw(10) << "";
    out << (a.within ? "" : "  <- beyond docs/numerics.md") << "\n";
  }
  return out.str();
}

}  // namespace orrery
