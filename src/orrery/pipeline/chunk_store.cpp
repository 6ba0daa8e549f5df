#include "orrery/pipeline/chunk_store.h"

#include <filesystem>

#include "orrery/base/error.h"
#include "orrery/comm/hash.h"
#include "orrery/pipeline/pixels.h"
#include "orrery/weights/safetensors.h"

namespace orrery::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = "orrery_record";  // in the files' metadata
constexpr const char* kCarried = "carried";
constexpr const char* kClip = "clip.";

}  // namespace

ChunkStore::ChunkStore(std::string folder, const std::string& record, bool resume)
    : folder_(std::move(folder)), record_(std::to_string(comm::hash_of(record))) {
  std::error_code failed;
  if (!resume) clear();
  fs::create_directories(folder_, failed);
  if (failed) fail(ErrorKind::kResource, "cannot make the folder ", folder_, ": ", failed.message());
  for (; fs::exists(file(size_)); ++size_) {
    const auto metadata = weights::safetensors_metadata(file(size_));
    const auto found = metadata.find(kRecord);
    require(found != metadata.end() && found->second == record_, "resume: ", folder_,
            " holds chunks of another request, model or input; run without --resume to begin anew");
  }
}

std::string ChunkStore::file(int64_t k) const {
  const std::string number = std::to_string(k);
  return concat(folder_, "/", std::string(4 - std::min<size_t>(number.size(), 4), '0'), number,
                ".safetensors");
}

void ChunkStore::add(Chunk chunk) {
  if (folder_.empty()) {
    memory_.push_back(std::move(chunk));
  } else {
    weights::TensorMap tensors = {{kCarried, chunk.carried}};
    for (const auto& [name, frames] : chunk.clips) tensors[kClip + name] = levels_of(frames);
    weights::write_safetensors(file(size_), tensors, {{kRecord, record_}});
  }
  ++size_;
}

Chunk ChunkStore::at(int64_t k) const {
  ensure(0 <= k && k < size_, "ChunkStore: chunk ", k, " of ", size_);
  if (folder_.empty()) return memory_[static_cast<size_t>(k)];
  Chunk chunk;
  for (const auto& [name, tensor] : weights::open_safetensors(file(k))) {
    if (name == kCarried)
      chunk.carried = tensor.clone();
    else
      chunk.clips[name.substr(std::string_view(kClip).size())] = frames_of(tensor);
  }
  return chunk;
}

Tensor ChunkStore::carried(int64_t k) const {
  ensure(0 <= k && k < size_, "ChunkStore: chunk ", k, " of ", size_);
  if (folder_.empty()) return memory_[static_cast<size_t>(k)].carried;
  return weights::open_safetensors(file(k)).at(kCarried).clone();
}

void ChunkStore::clear() {
  memory_.clear();
  size_ = 0;
  if (folder_.empty()) return;
  std::error_code ignored;  // leftovers do no harm
  for (int64_t k = 0; fs::remove(file(k), ignored) || fs::exists(file(k) + ".partial", ignored); ++k)
    fs::remove(file(k) + ".partial", ignored);
  fs::remove(folder_, ignored);  // unless somebody keeps other files there
}

}  // namespace orrery::pipeline
