#include "orrery/pipeline/qwen_image_prompt.h"

#include <cmath>

#include "orrery/base/error.h"
#include "orrery/media/resize.h"
#include "orrery/models/qwen_vl/vision_encoder.h"

namespace orrery::pipeline {
namespace {

using qwen_vl::PromptTemplate;

constexpr double kSide = 32;      // sides of given pictures are multiples of it
constexpr int64_t kLength = 512;  // text tokens, in diffusers' pipelines

/// The pictures as the vision tower sees them.
std::vector<qwen_vl::EncodedImage> encode_pictures(const QwenImageModel& m, const Given& pictures) {
  if (pictures.empty()) return {};
  if (m.layout.processor.empty())
    throw Error(ErrorKind::kCheckpoint,
                "this checkpoint has no processor folder, which says how pictures are brought to its text "
                "encoder",
                "missing_file");
  const auto tower = qwen_vl::open_vision_encoder(m.layout.text_encoder, m.layout.processor, m.dtype,
                                                  weights::Storage::kMapped);
  const int64_t area = m.prompt == PromptTemplate::kEditPlus ? m.vision_area : m.vae_area;
  std::vector<qwen_vl::EncodedImage> encoded;
  for (const auto& picture : pictures)
    encoded.push_back(qwen_vl::encode_image(tower, resized_to_area(picture, area), m.dtype));
  return encoded;
}

}  // namespace

qwen_vl::Size size_of_area(const media::Frames& picture, int64_t area) {
  const double ratio = static_cast<double>(picture.width) / static_cast<double>(picture.height);
  const double width = std::sqrt(static_cast<double>(area) * ratio), height = width / ratio;
  // nearbyint rounds half to even, as Python's round does.
  const auto side = [](double length) {
    return static_cast<int64_t>(std::nearbyint(length / kSide) * kSide);
  };
  const qwen_vl::Size size{side(height), side(width)};
  require(size.height > 0 && size.width > 0, "image: a picture of ", picture.width, "x", picture.height,
          " pixels is too narrow");
  return size;
}

media::Frames resized_to_area(const media::Frames& picture, int64_t area) {
  const auto size = size_of_area(picture, area);
  return media::stretch_pil(picture, size.height, size.width, media::Filter::kLanczos);
}

PromptEmbeds embed_prompts(const QwenImageModel& m, const config::Request& request, const Given& pictures,
                           Branches wanted) {
  const int64_t length = request.max_sequence_length.value_or(kLength);
  std::vector<qwen_vl::EncodedImage> images;
  std::optional<qwen_vl::TextEncoder> encoder;
  return embed_prompts(m, request, wanted, m.config.text_width, [&](const std::string& prompt) {
    if (!encoder) {
      encoder = open_text_encoder(m);
      if (encoder->config.hidden_size != m.config.text_width)
        fail(ErrorKind::kCheckpoint, m.layout.text_encoder, " is ", encoder->config.hidden_size,
             " wide; the transformer takes ", m.config.text_width, " features");
      images = encode_pictures(m, pictures);
    }
    return qwen_vl::encode_image_prompt(*encoder, prompt, images, m.prompt, length, m.dtype);
  });
}

}  // namespace orrery::pipeline
