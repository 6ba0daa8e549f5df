#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "orrery/base/tensor.h"

namespace orrery::weights {

/// What torch.save's pickles consist of. Everything that carries no weight (None, booleans, floats, bytes, …)
/// is Inert.
namespace pickle {

struct Inert {};
struct List;
struct Dict;

/// A storage as the stream describes it; nothing has been checked against the archive.
struct StoredBytes {
  std::string_view key;  // its record is data/KEY
  at::ScalarType dtype;  // of one element; kByte for untyped storages
  int64_t count = 0;     // elements
};

/// A tensor as the stream describes it. Everything that sizes and strides reach lies inside the storage's
/// count; there are no more elements than the storage has.
struct StoredTensor {
  StoredBytes storage;
  at::ScalarType dtype;
  int64_t offset = 0;  // elements of dtype
  Shape sizes, strides;
};

/// The callables that a stream may name. Each is carried out here, by our own code; none is ever looked up.
enum class Callable {
  kOrderedDict,
  kRebuildTensorV2,
  kRebuildTensorV3,
  kRebuildParameter,
  kEncode,
  kSize,
  kBytesIO
};
struct StorageType {
  at::ScalarType dtype;
};
struct Dtype {
  at::ScalarType dtype;
};

/// Strings point into the stream; objects belong to the Pickle that made them, so that neither copies nor
/// cycles nor depth cost anything.
using Value = std::variant<Inert, int64_t, std::string_view, Callable, StorageType, Dtype, const StoredBytes*,
                           const StoredTensor*, List*, Dict*>;

struct List {
  std::vector<Value> items;
  bool tuple = false;
};
struct Dict {
  std::vector<std::pair<Value, Value>> items;
};

}  // namespace pickle

/// The value that a pickle of protocols 2 to 5 builds, by a machine that knows the opcodes of containers and
/// numbers and the few globals of a state dict, and executes nothing. `stream` must outlive the object;
/// `path` is for messages. Memory use is bounded by a constant (see kMostSteps in the source). Errors:
/// unsafe_pickle (an opcode, global or call outside the allow-list, named), corrupt_pickle, invalid_tensor (a
/// tensor that its storage cannot hold), unsupported (a storage type or dtype; more steps than a checkpoint
/// takes).
class Pickle {
 public:
  Pickle(std::string_view stream, const std::string& path);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;
  const pickle::Value& root() const { return root_; }

 private:
  friend class PickleMachine;
  // Arenas: addresses stay, and destruction is flat however deeply values nest.
  std::deque<pickle::List> lists_;
  std::deque<pickle::Dict> dicts_;
  std::deque<pickle::StoredBytes> storages_;
  std::deque<pickle::StoredTensor> tensors_;
  pickle::Value root_;
};

}  // namespace orrery::weights
