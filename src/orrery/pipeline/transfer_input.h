#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/request.h"
#include "orrery/media/mask.h"
#include "orrery/media/read.h"
#include "orrery/media/stream.h"
#include "orrery/sample/chunk_plan.h"

namespace orrery::pipeline {

/// The video or picture that a request to Cosmos-Transfer starts from.
const std::string& input_path(const config::Request& request);

/// Answers what a completed request to Cosmos-Transfer leaves to its input: width and height (by resolution
/// and shape), num_frames and fps; and refuses files that are missing, unreadable, or do not fit each other
/// (spec cosmos-transfer2.5 §1.2, §3.1, §11 U16). Decodes to count frames and keeps none. Errors of kind
/// request.
void fit_to_input(config::Request& request);

/// The size alone: that of the input's shape, of a wide one if there is no input yet.
void fit_size(config::Request& request);

/// The chunks of a request behind fit_to_input.
sample::ChunkPlan chunks_of(const config::Request& request);

/// The frames of one chunk at the model's size, as long as the chunk.
struct ChunkInput {
  media::Frames input;                            // empty if nothing needs it
  std::map<std::string, media::Frames> controls;  // by name, in the request's controls
  std::map<std::string, media::Mask> masks;       // of controls that have one
  std::optional<media::Mask> kept;                // guided generation: what stays of the input
};

/// Reads the files of a request chunk by chunk, forward, and holds one chunk. One thread at a time.
class TransferInput {
 public:
  explicit TransferInput(const config::Request& request, sample::ChunkPadding padding);

  /// Chunk k; not before that of the last call.
  ChunkInput chunk(int64_t k);

 private:
  /// A clip or a mask that is as long as a clip.
  struct Stream {
    std::string what;  // "the control depth"
    media::OpencvFilter filter;
    int64_t count;
    bool holds;                                  // a mask of one frame holds for all
    std::shared_ptr<media::FrameReader> reader;  // null: `levels` has it all
    media::Mask levels;
  };

  Stream open(const std::string& what, const std::string& path, media::Stream kind) const;
  Stream open_mask(const std::string& what, const std::string& path, media::Stream kind,
                   const std::vector<int64_t>& labels) const;
  std::vector<int64_t> indices(const Stream& stream, int64_t k) const;
  media::Frames frames(Stream& stream, int64_t k) const;
  media::Mask mask(Stream& stream, int64_t k, bool is_binary) const;

  const config::Request& request_;
  sample::ChunkPlan plan_;
  sample::ChunkPadding padding_;
  std::optional<Stream> input_, kept_;
  std::map<std::string, Stream> controls_, masks_;
};

/// The input's frame of that number at the model's size.
media::Frames input_frame(const config::Request& request, int64_t index);

}  // namespace orrery::pipeline
