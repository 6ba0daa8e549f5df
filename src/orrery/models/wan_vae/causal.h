#pragma once
// Convolutions that look at the frames before theirs, one chunk of frames at a time (spec cosmos-predict2.5
// §8.3), and at the rows beside theirs where a picture is shared by rows.
#include <functional>

#include "orrery/models/wan_vae/weights.h"
#include "orrery/parallel/halo.h"

namespace orrery::wan_vae {

/// What lies around the pixels that a forward pass is given: the rows beside them, and the frames before
/// them, which causal convolutions remember from chunk to chunk: a slot for each, in the order in which a
/// forward pass reaches them. One object for one clip.
class Surroundings {
 public:
  explicit Surroundings(const parallel::Rows& rows) : rows_(rows) {}

  /// A forward pass begins, over the clip's first frame if `first`; after the clip's last chunk nothing is
  /// kept.
  void begin(bool first, bool last) { first_ = first, last_ = last, next_ = 0; }

  bool first() const { return first_; }
  const parallel::Rows& rows() const { return rows_; }

  /// The next convolution's slot: undefined as long as it has seen no frame.
  Tensor& next();

  /// Copies `frames` into the slot, or empties it after the last chunk.
  void remember(Tensor& slot, const Tensor& frames) const;

 private:
  parallel::Rows rows_;
  std::vector<Tensor> slots_;
  size_t next_ = 0;
  bool first_ = true, last_ = true;
};

/// Pixels added on each side of a frame.
struct Border {
  int64_t before = 0, after = 0;
};

/// Writes the pixels of a convolution's input to the view [F, H, W, C] that it is given.
using Fill = std::function<void(const Tensor& pixels)>;

/// A convolution's input [F, H + before + after, W + before + after, C], filled within its border; `shape` is
/// [F, H, W, C]. The border holds the rows beside these, and zeros at the picture's edges. This and
/// causal_input are the only places where pixels are padded.
Tensor bordered(const Surroundings& around, at::IntArrayRef shape, Border border,
                const at::TensorOptions& options, const Fill& fill);

/// The input of the next causal convolution with three temporal taps: two past frames (remembered with their
/// border; zeros before the clip's first frame), then the chunk's, filled and bordered as above. A clip's
/// first frame comes alone, without past.
Tensor causal_input(Surroundings& around, at::IntArrayRef shape, Border border,
                    const at::TensorOptions& options, const Fill& fill);

/// The convolution of an input with all its frames. Where the input has fewer frames than the kernel has
/// temporal taps, the missing frames are zeros and their taps are left out.
Tensor apply(const Conv& w, const Tensor& input);

/// y += apply(w, input).
void apply_add_(const Tensor& y, const Conv& w, const Tensor& input);

}  // namespace orrery::wan_vae
