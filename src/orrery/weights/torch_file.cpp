// The container: pytorch torch/serialization.py (_save): NAME/data.pkl, NAME/data/KEY, NAME/byteorder in a
// zip archive.
#include "orrery/weights/torch_file.h"

#include "orrery/base/text.h"
#include "orrery/weights/pickle.h"
#include "orrery/weights/refuse.h"
#include "orrery/weights/zip.h"

namespace orrery::weights {
namespace {

using Records = std::map<std::string, ZipRecord>;

/// torch/serialization.py: MAGIC_NUMBER 0x1950a86a20f9469cfc6c, pickled with protocol 2.
constexpr std::string_view kLegacyStart = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

/// The name of the archive's only folder, with its slash: the records begin with it.
std::string folder_of(const Records& records, const std::string& path) {
  constexpr std::string_view kPickle = "/data.pkl";
  for (const auto& [name, record] : records)
    if (name.ends_with(kPickle) && name.find('/') == name.size() - kPickle.size())
      return name.substr(0, name.size() - kPickle.size() + 1);
  refuse(Fault::kCorruptArchive, path, ": expected a record NAME/data.pkl, found none among ",
         records.size());
}

/// Tensors over the archive's records. Each storage is checked against its record, and copied at most once
/// per alignment.
class Storages {
 public:
  Storages(const Bytes& file, const Records& records, std::string folder, const std::string& path)
      : file_(file), records_(records), folder_(std::move(folder)), path_(path) {}

  Tensor tensor(const pickle::StoredTensor& t) {
    return tensor_over(bytes(t.storage, c10::elementSize(t.dtype)), t.dtype, t.offset, t.sizes, t.strides);
  }

 private:
  const Bytes& bytes(const pickle::StoredBytes& storage, size_t alignment) {
    const std::string name = folder_ + "data/" + std::string(storage.key);
    const auto record = records_.find(name);
    if (record == records_.end())
      refuse(Fault::kCorruptArchive, path_, ": storage ", shown(storage.key), " has no record ", shown(name));
    const uint64_t expected = static_cast<uint64_t>(storage.count) * c10::elementSize(storage.dtype);
    if (record->second.size != expected)
      refuse(Fault::kCorruptArchive, path_, ": record ", shown(name), " has ", record->second.size,
             " bytes, its storage ", expected);
    Bytes& known = known_[name];
    if (!known.data) known = file_.part(record->second.offset, record->second.size);
    return known = aligned(known, alignment);
  }

  const Bytes& file_;
  const Records& records_;
  std::string folder_;
  const std::string& path_;
  std::map<std::string, Bytes> known_;
};

const pickle::Dict& state_dict(const Pickle& pickled, const std::string& path) {
  const auto* root = std::get_if<pickle::Dict*>(&pickled.root());
  if (!root) refuse(Fault::kUnsupported, path, ": expected a dictionary of tensors, found something else");
  for (std::string_view wrapper : {"model", "module", "state_dict"})
    for (const auto& [key, value] : (*root)->items)
      if (const auto* name = std::get_if<std::string_view>(&key); name && *name == wrapper)
        if (const auto* inner = std::get_if<pickle::Dict*>(&value)) return **inner;
  return **root;
}

[[noreturn]] void refuse_without_tensors(const pickle::Dict& dict, const std::string& path) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : dict.items)
    if (const auto* name = std::get_if<std::string_view>(&key); name && keys.size() < 10)
      keys.push_back(shown(*name));
  refuse(Fault::kMissingKey, path,
         ": expected tensors at the top level or under model, module or state_dict, found ",
         keys.empty() ? "nothing" : join(keys));
}

}  // namespace

TensorMap read_torch_file(const Bytes& file, const std::string& path) {
  if (file.text().starts_with(kLegacyStart))
    refuse(Fault::kUnsupported, path,
           ": this is the container of torch.save before 1.6; convert it in Python: ",
           "torch.save(torch.load(old, map_location='cpu'), new)");
  const auto records = read_zip(file.text(), path);
  const auto folder = folder_of(records, path);
  const auto text = [&](const ZipRecord& record) { return file.text().substr(record.offset, record.size); };
  if (const auto order = records.find(folder + "byteorder");
      order != records.end() && text(order->second) != "little")
    refuse(Fault::kUnsupported, path, ": expected little-endian data, found ", shown(text(order->second)));

  const Pickle pickled(text(records.at(folder + "data.pkl")), path);
  const auto& dict = state_dict(pickled, path);
  Storages storages(file, records, folder, path);
  TensorMap tensors;
  for (const auto& [key, value] : dict.items) {
    const auto* stored = std::get_if<const pickle::StoredTensor*>(&value);
    if (!stored) continue;
    const auto* name = std::get_if<std::string_view>(&key);
    if (!name)
      refuse(Fault::kCorruptPickle, path, ": expected tensors under names, found one under something else");
    try {
      if (!tensors.emplace(*name, storages.tensor(**stored)).second)
        refuse(Fault::kCorruptPickle, path, ": tensor ", shown(*name), " occurs twice");
    } catch (Error& error) {
      throw error.with("reading tensor " + shown(*name));
    }
  }
  if (tensors.empty()) refuse_without_tensors(dict, path);
  return tensors;
}

TensorMap open_torch_file(const std::string& path) { return read_torch_file(map_file(path), path); }

}  // namespace orrery::weights
