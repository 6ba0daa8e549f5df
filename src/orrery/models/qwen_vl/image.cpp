// huggingface/transformers, models/qwen2_vl/image_processing_qwen2_vl_fast.py (smart_resize, _preprocess).
#include "orrery/models/qwen_vl/image.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "orrery/media/resize.h"
#include "orrery/models/json_config.h"

namespace orrery::qwen_vl {
namespace {

constexpr int kBicubic = 3;                        // PIL.Image.Resampling
constexpr int64_t kMostPixels = int64_t{1} << 30;  // of one picture, far beyond any model
constexpr int64_t kLargestPatch = 256, kChannels = 3;

int64_t count(const JsonConfig& file, const char* name, int64_t value, int64_t most) {
  if (value < 1 || value > most)
    fail(ErrorKind::kCheckpoint, file.path(), ": ", name, " is ", value, "; expected a count up to ", most);
  return value;
}

/// min_pixels and max_pixels, which count where they are given, or the sides of `size` that mean the same.
int64_t pixels(const JsonConfig& file, const char* name, const char* side, int64_t otherwise) {
  const auto size = file.get("size", nlohmann::json::object());
  if (size.is_object() && size.contains(side) && size[side].is_number_integer()) otherwise = size[side];
  return count(file, name, file.get(name, otherwise), kMostPixels);
}

void check_steps(const JsonConfig& file) {
  for (const char* step : {"do_resize", "do_rescale", "do_normalize"})
    if (!file.get(step, true))
      fail(ErrorKind::kUnsupported, file.path(), ": ", step, " is false; expected every step");
  if (const int filter = file.get("resample", kBicubic); filter != kBicubic)
    fail(ErrorKind::kUnsupported, file.path(), ": resample is ", filter, "; expected ", kBicubic,
         " (bicubic)");
}

/// The values of 0 … 255 in each channel. torchvision folds the factor 1/255 into mean and deviation.
std::array<std::array<float, 256>, kChannels> normalised_levels(const ImageConfig& c) {
  std::array<std::array<float, 256>, kChannels> levels;
  const auto scale = static_cast<float>(1.0 / c.rescale);
  for (size_t channel = 0; channel < levels.size(); ++channel) {
    const float mean = static_cast<float>(c.mean[channel]) * scale;
    const float deviation = static_cast<float>(c.deviation[channel]) * scale;
    for (size_t level = 0; level < 256; ++level)
      levels[channel][level] = (static_cast<float>(level) - mean) / deviation;
  }
  return levels;
}

}  // namespace

ImageConfig read_image_config(const std::string& path) {
  const JsonConfig file(path);
  ImageConfig c;
  c.min_pixels = pixels(file, "min_pixels", "shortest_edge", c.min_pixels);
  c.max_pixels = pixels(file, "max_pixels", "longest_edge", c.max_pixels);
  c.patch_size = count(file, "patch_size", file.get("patch_size", c.patch_size), kLargestPatch);
  c.temporal_patch_size = count(file, "temporal_patch_size",
                                file.get("temporal_patch_size", c.temporal_patch_size), kLargestPatch);
  c.merge_size = count(file, "merge_size", file.get("merge_size", c.merge_size), kLargestPatch);
  c.rescale = file.get("rescale_factor", c.rescale);
  c.mean = file.get("image_mean", c.mean);
  c.deviation = file.get("image_std", c.deviation);
  if (c.min_pixels > c.max_pixels)
    fail(ErrorKind::kCheckpoint, path, ": min_pixels is ", c.min_pixels, " and max_pixels ", c.max_pixels);
  if (!(c.rescale > 0) || !(*std::ranges::min_element(c.deviation) > 0))
    fail(ErrorKind::kCheckpoint, path, ": rescale_factor or image_std is not positive");
  check_steps(file);
  return c;
}

Size fitted_size(const ImageConfig& c, int64_t height, int64_t width) {
  constexpr int64_t kLargestRatio = 200;
  require(height > 0 && width > 0, "the picture is empty: ", width, " × ", height);
  require(std::max(height, width) <= kLargestRatio * std::min(height, width), "the picture has ", width,
          " × ", height, " pixels; expected no side above ", kLargestRatio, " times the other");
  const int64_t unit = c.patch_size * c.merge_size;
  const auto h = static_cast<double>(height), w = static_cast<double>(width),
             factor = static_cast<double>(unit);
  // Half to even, as Python's round.
  const auto nearest = [&](double side) {
    return static_cast<int64_t>(std::nearbyint(side / factor)) * unit;
  };
  Size size{nearest(h), nearest(w)};
  if (size.height * size.width > c.max_pixels) {
    const double beta = std::sqrt(h * w / static_cast<double>(c.max_pixels));
    const auto below = [&](double side) {
      return std::max(unit, static_cast<int64_t>(std::floor(side / beta / factor)) * unit);
    };
    size = {below(h), below(w)};
  } else if (size.height * size.width < c.min_pixels) {
    const double beta = std::sqrt(static_cast<double>(c.min_pixels) / (h * w));
    const auto above = [&](double side) {
      return static_cast<int64_t>(std::ceil(side * beta / factor)) * unit;
    };
    size = {above(h), above(w)};
  }
  return size;
}

ImagePatches patches_of(const ImageConfig& c, const media::Frames& image) {
  require(image.count == 1, "a picture has one frame, not ", image.count);
  const Size size = fitted_size(c, image.height, image.width);
  const auto fitted = media::stretch_torch(image, size.height, size.width, media::Filter::kBicubic);
  const auto levels = normalised_levels(c);
  const int64_t p = c.patch_size;
  ImagePatches out;
  out.grid = {size.height / p, size.width / p};
  out.values = at::empty({out.grid.count(), kChannels * c.temporal_patch_size * p * p}, at::kFloat);
  auto* to = out.values.mutable_data_ptr<float>();
  const auto patch = [&](int64_t row, int64_t column) {
    for (size_t channel = 0; channel < levels.size(); ++channel)
      for (int64_t frame = 0; frame < c.temporal_patch_size; ++frame)
        for (int64_t y = row * p; y < (row + 1) * p; ++y)
          for (int64_t x = column * p; x < (column + 1) * p; ++x)
            *to++ =
                levels[channel][fitted.rgb[static_cast<size_t>((y * size.width + x) * kChannels) + channel]];
  };
  for_each_patch(out.grid, c.merge_size, patch);
  return out;
}

}  // namespace orrery::qwen_vl
