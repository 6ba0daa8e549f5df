#pragma once
#include <string>
#include <string_view>

#include "orrery/base/error.h"

namespace orrery::weights {

/// Why a checkpoint is refused. The word of each (to_string) is the Error's code.
enum class Fault {
  kUnsafePickle,    // a global, call or opcode outside the allow-list
  kInvalidTensor,   // numbers of a tensor record are impossible
  kCorruptArchive,  // zip structure or record missing or broken
  kCorruptPickle,   // broken opcode stream
  kUnsupported,     // well-formed but not supported
  kTruncated,       // file shorter than it says
  kHeaderTooLarge,  // header length refused before anything is allocated
  kInvalidHeader,   // JSON broken or fields wrong
  kInvalidOffsets,  // ranges overlap, leave holes, or leave the file
  kInvalidShape,    // negative or overflowing sizes; a shape that differs from the configuration's
  kMissingFile,     // a file or shard that is not there
  kMissingKey,      // a tensor that is not there
  kUnknownKey,      // a tensor that nothing uses
  kDuplicateKey,    // two tensors that come to bear one name
  kInvalidPath,     // a shard path that leaves its folder
};

std::string_view to_string(Fault fault);

/// Text that came out of a file, fit for a message: other than printable ASCII as \xNN, cut after 200
/// characters.
std::string shown(std::string_view text);

/// Throws an Error of kind checkpoint (unsupported: of that kind) whose code is the fault's word.
template <class... Args>
[[noreturn]] void refuse(Fault fault, const Args&... args) {
  throw Error(fault == Fault::kUnsupported ? ErrorKind::kUnsupported : ErrorKind::kCheckpoint,
              concat(args...), std::string(to_string(fault)));
}

}  // namespace orrery::weights
