#pragma once
// Convolutions that look at the frames before theirs, one chunk of frames at a time (spec cosmos-predict2.5
// §8.3).
#include <functional>

#include "orrery/models/wan_vae/weights.h"

namespace orrery::wan_vae {

/// What a clip's causal convolutions remember from chunk to chunk: a slot for each, in the order in which a
/// forward pass reaches them. One object for one clip.
class Memory {
 public:
  /// A forward pass begins, over the clip's first frame if `first`; after the clip's last chunk nothing is
  /// kept.
  void begin(bool first, bool last) { first_ = first, last_ = last, next_ = 0; }

  bool first() const { return first_; }

  /// The next convolution's slot: undefined as long as it has seen no frame.
  Tensor& next();

  /// Copies `frames` into the slot, or empties it after the last chunk.
  void remember(Tensor& slot, const Tensor& frames) const;

 private:
  std::vector<Tensor> slots_;
  size_t next_ = 0;
  bool first_ = true, last_ = true;
};

/// Pixels added on each side of a frame.
struct Border {
  int64_t before = 0, after = 0;
};

/// An uninitialised convolution input [F, H + before + after, W + before + after, C] whose border is zero;
/// `shape` is [F, H, W, C]. The only place where pixels are padded: a picture that is split by rows gets its
/// neighbours' here.
Tensor bordered(at::IntArrayRef shape, Border border, const at::TensorOptions& options);

/// The frames within the border: [F, H, W, C], a view.
Tensor interior(const Tensor& input, Border border);

/// The input of the next causal convolution with three temporal taps: two past frames (remembered; zeros
/// before the clip's first frame), then the chunk's, which `fill` writes to the view [F, H, W, C] that it is
/// given. A clip's first frame comes alone, without past.
Tensor causal_input(Memory& memory, at::IntArrayRef shape, Border border, const at::TensorOptions& options,
                    const std::function<void(const Tensor&)>& fill);

/// The convolution of an input with all its frames. Where the input has fewer frames than the kernel has
/// temporal taps, the missing frames are zeros and their taps are left out.
Tensor apply(const Conv& w, const Tensor& input);

/// y += apply(w, input).
void apply_add_(const Tensor& y, const Conv& w, const Tensor& input);

}  // namespace orrery::wan_vae
