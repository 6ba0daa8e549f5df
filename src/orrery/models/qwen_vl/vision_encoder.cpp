#include "orrery/models/qwen_vl/vision_encoder.h"

#include "orrery/base/error.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::qwen_vl {

VisionEncoder open_vision_encoder(const std::string& folder, const std::string& processor_folder,
                                  at::ScalarType compute, weights::Storage storage) {
  const std::string images = processor_folder + "/preprocessor_config.json";
  VisionEncoder encoder{read_vision_config(folder + "/config.json"), read_image_config(images), {}};
  const VisionConfig& c = encoder.config;
  const ImageConfig& i = encoder.images;
  if (i.patch_size != c.patch_size || i.temporal_patch_size != c.temporal_patch_size ||
      i.merge_size != c.merge_size)
    fail(ErrorKind::kCheckpoint, images, " has patches of ", i.temporal_patch_size, " × ", i.patch_size,
         "² pixels merged by ", i.merge_size, "; the vision tower of ", folder, " has ",
         c.temporal_patch_size, " × ", c.patch_size, "² merged by ", c.merge_size);
  weights::Loader loader(weights::qwen_vl_names(weights::open_weights(folder)), compute, storage, folder);
  loader("visual", encoder.weights, c);
  loader.finish([](std::string_view name) { return !name.starts_with("visual."); });
  return encoder;
}

EncodedImage encode_image(const VisionEncoder& encoder, const media::Frames& image, at::ScalarType dtype) {
  return run_vision(encoder.weights, encoder.config, patches_of(encoder.images, image), dtype);
}

}  // namespace orrery::qwen_vl
