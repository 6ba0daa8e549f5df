#pragma once
#include <map>
#include <string>
#include <vector>

#include "orrery/base/tensor.h"
#include "orrery/media/frames.h"

namespace orrery::pipeline {

/// A finished chunk of a long video, without loss.
struct Chunk {
  std::map<std::string, media::Frames> clips;  // by name, such as "video" and "edge"
  Tensor carried;  // [3, c, H, W] float32: what the next chunk begins with; c ≥ 0
};

/// The finished chunks, in order: in memory, or as files from which a run that was interrupted can go on. One
/// thread at a time.
class ChunkStore {
 public:
  /// In memory.
  ChunkStore() = default;

  /// In FOLDER/0000.safetensors and so on, each complete or absent. `record` says what is being made. resume:
  /// goes on behind the chunks that are there; else they are removed. Errors: request (resume, but the chunks
  /// belong to another record), resource.
  ChunkStore(std::string folder, const std::string& record, bool resume);

  int64_t size() const { return size_; }
  void add(Chunk chunk);

  /// Chunk k < size(). Errors of open_safetensors, if somebody took its file away.
  Chunk at(int64_t k) const;

  /// Only what the next chunk begins with.
  Tensor carried(int64_t k) const;

  /// Removes the chunks' files, and the folder if nothing else is in it: the video is written.
  void clear();

 private:
  std::string file(int64_t k) const;

  std::string folder_, record_;
  int64_t size_ = 0;
  std::vector<Chunk> memory_;
};

}  // namespace orrery::pipeline
