#pragma once
// How ops are registered. NAME.cpp declares the schema in a TORCH_LIBRARY_FRAGMENT(orrery, m), and registers
// the definition, reference::NAME, under CompositeExplicitAutograd (it runs on every device without a kernel
// of its own) and the result's shape under Meta. Kernels are in cpu/NAME.cpp and in the folders of the other
// devices, under their device's key.
#include <ATen/core/dispatch/Dispatcher.h>

namespace orrery::ops {

/// The op "orrery::NAME" of the given C++ signature; c10::Error if it is not registered. Look it up once and
/// keep it.
template <class Signature>
c10::TypedOperatorHandle<Signature> find_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace orrery::ops
