#include "orrery/weights/pickle_globals.h"

#include "orrery/weights/refuse.h"

namespace orrery::weights {
namespace {

using namespace pickle;

struct Global {
  std::string_view module, name;
  Value value;
};

// The whole allow-list. _codecs.encode and BytesIO hold TransformerEngine's _extra_state, which carries no
// weight.
const Global kGlobals[] = {
    {"collections", "OrderedDict", Callable::kOrderedDict},
    {"torch._utils", "_rebuild_tensor_v2", Callable::kRebuildTensorV2},
    {"torch._utils", "_rebuild_tensor_v3", Callable::kRebuildTensorV3},
    {"torch._utils", "_rebuild_parameter", Callable::kRebuildParameter},
    {"torch", "Size", Callable::kSize},
    {"_codecs", "encode", Callable::kEncode},
    {"_io", "BytesIO", Callable::kBytesIO},
    {"torch", "BFloat16Storage", StorageType{at::kBFloat16}},
    {"torch", "HalfStorage", StorageType{at::kHalf}},
    {"torch", "FloatStorage", StorageType{at::kFloat}},
    {"torch", "DoubleStorage", StorageType{at::kDouble}},
    {"torch", "LongStorage", StorageType{at::kLong}},
    {"torch", "IntStorage", StorageType{at::kInt}},
    {"torch", "ShortStorage", StorageType{at::kShort}},
    {"torch", "CharStorage", StorageType{at::kChar}},
    {"torch", "ByteStorage", StorageType{at::kByte}},
    {"torch", "BoolStorage", StorageType{at::kBool}},
    {"torch.storage", "UntypedStorage", StorageType{at::kByte}},
    {"torch", "bfloat16", Dtype{at::kBFloat16}},
    {"torch", "float16", Dtype{at::kHalf}},
    {"torch", "float32", Dtype{at::kFloat}},
    {"torch", "float64", Dtype{at::kDouble}},
    {"torch", "float8_e4m3fn", Dtype{at::kFloat8_e4m3fn}},
    {"torch", "float8_e5m2", Dtype{at::kFloat8_e5m2}},
    {"torch", "int64", Dtype{at::kLong}},
    {"torch", "int32", Dtype{at::kInt}},
    {"torch", "int16", Dtype{at::kShort}},
    {"torch", "int8", Dtype{at::kChar}},
    {"torch", "uint8", Dtype{at::kByte}},
    {"torch", "uint16", Dtype{at::kUInt16}},
    {"torch", "uint32", Dtype{at::kUInt32}},
    {"torch", "uint64", Dtype{at::kUInt64}},
    {"torch", "bool", Dtype{at::kBool}},
};

}  // namespace

Value find_global(std::string_view module, std::string_view name, const std::string& path) {
  for (const auto& global : kGlobals)
    if (global.module == module && global.name == name) return global.value;
  if (module == "torch" && name.ends_with("Storage"))
    refuse(Fault::kUnsupported, path, ": storages of type torch.", shown(name), " are not supported");
  refuse(Fault::kUnsafePickle, path, ": the pickle refers to ", shown(module), ".", shown(name),
         ", which is outside the allow-list of a state dict; nothing was executed");
}

}  // namespace orrery::weights
