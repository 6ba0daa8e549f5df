#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "orrery/media/frames.h"
#include "orrery/parallel/team.h"
#include "orrery/pipeline/checkpoint.h"
#include "orrery/pipeline/hooks.h"

namespace orrery::pipeline {

/// The pixels that a request gives: the frames of one clip, or pictures of any sizes.
using Given = std::vector<media::Frames>;

/// A clip that comes part by part: longer than memory should hold.
struct Film {
  std::string suffix;  // of its file, between the output's name and its extension: "" or "_control_edge"
  int64_t parts = 0;
  std::function<media::Frames(int64_t k)> part;
};

struct Media {
  // What was made, on the run's first process: frames, or films, of which the first is the output.
  media::Frames frames;  // a clip, or one picture after the other
  std::vector<Film> films = {};
  std::function<void()> written = {};  // called, if there is one, when all is written
  Tensor latents;           // float32: what save_latents gets; undefined where nothing was left to make
  int64_t evaluations = 0;  // of the network per branch, all together
};

/// The seed of picture k of a request with this seed: s + k, from the largest on to the smallest.
inline int64_t seed_of(int64_t seed, int64_t k) {
  return static_cast<int64_t>(static_cast<uint64_t>(seed) + static_cast<uint64_t>(k));
}

/// A network of a checkpoint, from its headers.
struct Part {
  std::string name, path;  // "transformer", and the file or folder
  weights::Sizer size;
  std::vector<std::pair<std::string, int64_t>> facts = {};  // "blocks", "width" and so on
};

/// What one step of a request takes.
struct Work {
  int64_t blocks = 0, heads = 0, head_dim = 0;
  int64_t tokens = 0;             // of the sequence that ranks share
  int64_t joint_text_tokens = 0;  // that every rank has whole and attends to with the others
  double token_flops = 0;         // of a block for a token, but for the attention to the others
  double text_flops = 0;          // of a block for the joint text, likewise
  double edge_flops = 0;          // before and after the blocks, for a token
  int64_t token_values = 0;       // numbers that a token takes on its way through a block
  int64_t text_values = 0;        // numbers that a branch keeps of its text
  int64_t velocity_channels = 0;  // of a token, gathered in float32
  int64_t velocity_values = 0;    // exchanged by guidance branches in float32
  bool guided = false;
  int64_t element_bytes = 4;  // of the compute type
  int64_t weight_bytes = 0;   // of the transformer in it
};

/// Multiplications and additions of a matrix product.
inline double multiply(int64_t rows, int64_t in, int64_t out) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

/// A checkpoint of one family, opened, and what that family makes. Requests are completed and validated with
/// its limits.
class Pipeline {
 public:
  virtual ~Pipeline() = default;

  virtual const Checkpoint& checkpoint() const = 0;

  /// Its networks, and in a word how noise levels are spread.
  virtual std::vector<Part> parts() const = 0;
  virtual std::string sigmas() const = 0;
  virtual Work work(const config::Request& request) const = 0;

  /// Reads what the request gives and answers what follows from that (the size, where it is not said).
  /// Errors of kind request: files that are missing or unreadable, or do not fit.
  virtual Given read_given(config::Request& request) const = 0;

  /// Brings the weights that the request needs to where it needs them; what is there already stays.
  virtual void load(const config::Request& request, config::WeightStorage storage) = 0;

  /// Makes what the request asks for; request.seed ≥ 0. Text and VAE run on the calling thread with all its
  /// cores, denoising on the team. Errors: request (embeddings, latents), checkpoint (text encoder),
  /// cancelled, internal (not finite).
  virtual Media make(const parallel::Team& team, const config::Request& request, const Given& given,
                     const Hooks& hooks) const = 0;
};

}  // namespace orrery::pipeline
