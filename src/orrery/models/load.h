#pragma once
#include "orrery/weights/visitors.h"

namespace orrery {

/// A weight struct filled from a checkpoint's tensors under their canonical names; `spelling` gives the
/// file's own names for messages. Errors as weights::Loader.
template <class W, class Config>
W load(weights::TensorMap tensors, const Config& config, at::ScalarType dtype, weights::Storage storage,
       const std::string& origin, weights::Loader::Spelling spelling = {}) {
  weights::Loader loader(std::move(tensors), dtype, storage, origin, std::move(spelling));
  W w;
  bind(loader, w, config);
  loader.finish();
  return w;
}

/// Checks that the tensors fit the configuration, from their headers alone. Errors as weights::Loader.
template <class W, class Config>
void check(weights::TensorMap tensors, const Config& config, const std::string& origin,
           weights::Loader::Spelling spelling = {}) {
  (void)load<W>(std::move(tensors), config, at::kFloat, weights::Storage::kUnread, origin,
                std::move(spelling));
}

/// Counts what a configuration asks for; reads nothing.
template <class W, class Config>
weights::Sizer size_of(const Config& config) {
  weights::Sizer sizer;
  W w;
  bind(sizer, w, config);
  return sizer;
}

}  // namespace orrery
