#pragma once
#include "orrery/weights/visitors.h"

namespace orrery {

/// A weight struct filled from a checkpoint's tensors under their canonical names; Errors as weights::Loader.
template <class W, class Config>
W load(weights::TensorMap tensors, const Config& config, at::ScalarType dtype, weights::Storage storage,
       const std::string& origin, const weights::Loader::Predicate& may_stay_unused = {}) {
  weights::Loader loader(std::move(tensors), dtype, storage, origin);
  W w;
  bind(loader, w, config);
  loader.finish(may_stay_unused);
  return w;
}

}  // namespace orrery
