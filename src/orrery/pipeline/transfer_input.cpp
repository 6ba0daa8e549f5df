#include "orrery/pipeline/transfer_input.h"

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/media/blur.h"
#include "orrery/media/edge.h"
#include "orrery/media/labels.h"
#include "orrery/media/model_size.h"
#include "orrery/media/stretch_opencv.h"

namespace orrery::pipeline {
namespace {

using config::kComputed;
using config::Request;

constexpr const char* kMediumPreset = "medium";

media::Stream stream_of(const std::string& control) {
  if (control == "edge") return media::Stream::kEdge;
  if (control == "vis") return media::Stream::kVis;
  return control == "depth" ? media::Stream::kDepth : media::Stream::kSeg;
}

media::Frames computed(const config::ControlRequest& control, const media::Frames& input) {
  const std::string preset = control.preset.value_or(kMediumPreset);
  return control.name == "edge" ? media::edges(input, media::edge_preset(preset))
                                : media::blur(input, media::blur_preset(preset));
}

/// A control of another shape or rate than the input is a mistake that the reference finds deep inside.
void check_control(const Request& r, const std::string& control, const std::string& path,
                   const media::Info& input) {
  const std::string what = concat("the control ", control, " (", path, ")");
  const media::Info info = media::probe(path);
  if (r.resolution)
    media::require_model_size(what, *r.resolution, info.height, info.width, {*r.height, *r.width});
  if (info.fps > 0 && input.fps > 0 && media::whole_fps(info) != media::whole_fps(input))
    log::warn(what, " has ", info.fps, " frames per second, the input ", input.fps,
              ": frames are taken by their number");
  const auto plan = chunks_of(r);
  const int64_t count = media::count_frames(path, plan.chunks.back().begin + 1);
  (void)sample::chunk_indices(plan, static_cast<int64_t>(plan.chunks.size()) - 1, count, what);
}

/// A mask of one frame holds for all of them.
void check_mask(const Request& r, const std::string& what, const std::string& path,
                const std::vector<int64_t>& labels) {
  int64_t height = 0, width = 0, count = 0;
  const auto plan = chunks_of(r);
  if (media::is_label_file(path)) {
    const media::Mask mask = media::read_mask(path, labels);
    height = mask.height, width = mask.width, count = mask.count;
  } else {
    require(labels.empty(),
            "guided_generation_foreground_labels: expected a mask of labels (.npz, .npy), found ", path);
    const media::Info info = media::probe(path);
    height = info.height, width = info.width;
    count = media::count_frames(path, plan.chunks.back().begin + 1);
  }
  const std::string where = concat(what, " (", path, ")");
  if (r.resolution) media::require_model_size(where, *r.resolution, height, width, {*r.height, *r.width});
  if (count > 1)
    (void)sample::chunk_indices(plan, static_cast<int64_t>(plan.chunks.size()) - 1, count, where);
}

void check_preset(const config::ControlRequest& control) {
  if (!control.preset) return;
  if (control.name == "edge")
    (void)media::edge_preset(*control.preset);
  else
    (void)media::blur_preset(*control.preset);
}

}  // namespace

const std::string& input_path(const Request& r) { return r.video ? *r.video : r.images.at(0); }

void fit_size(Request& r) {
  if (r.width && r.height) return;
  int64_t height = 9, width = 16;
  if (r.video || !r.images.empty()) {
    const media::Info info = media::probe(input_path(r));
    height = info.height, width = info.width;
  }
  const auto size = media::model_size(r.resolution.value(), height, width);
  r.width = size.width, r.height = size.height;
}

void fit_to_input(Request& r) {
  const media::Info info = media::probe(input_path(r));
  fit_size(r);
  const int64_t limit = std::min(r.num_frames.value_or(sample::kMaxInputFrames), sample::kMaxInputFrames);
  r.num_frames = sample::used_frames(media::count_frames(input_path(r), limit), limit);
  if (r.chunk_size == 1) r.num_frames = 1;
  if (!r.fps) r.fps = media::whole_fps(info);
  if (r.chunk_size != 1 && r.chunk_size != sample::kChunkFrames)
    log::warn("chunk_size: the model is trained on chunks of ", sample::kChunkFrames, " frames, not ",
              *r.chunk_size);
  if (r.sigma_max) log::warn("sigma_max has no effect, as in the reference");
  for (const auto& control : config::controls_of(r)) {
    check_preset(control);
    if (control.source != kComputed) check_control(r, control.name, control.source, info);
    if (control.mask) check_mask(r, "the mask of the control " + control.name, *control.mask, {});
  }
  if (r.guided_generation_mask)
    check_mask(r, "the mask of guided generation", *r.guided_generation_mask,
               r.guided_generation_foreground_labels);
  if (r.image_context_path) (void)media::probe(*r.image_context_path);
  if (r.context_frame_index)
    require(*r.context_frame_index < *r.num_frames, "context_frame_index: expected a frame below ",
            *r.num_frames, ", found ", *r.context_frame_index);
}

sample::ChunkPlan chunks_of(const Request& r) {
  return sample::chunk_plan(r.num_frames.value(), r.chunk_size.value(), r.chunk_overlap.value());
}

TransferInput::TransferInput(const Request& request, sample::ChunkPadding padding)
    : request_(request), plan_(chunks_of(request)), padding_(padding) {
  bool needs_input = request.show_input.value_or(false) || request.guided_generation_mask;
  for (const auto& control : config::controls_of(request)) {
    const std::string what = "the control " + control.name;
    if (control.source == kComputed)
      needs_input = true;
    else
      controls_.emplace(control.name, open(what, control.source, stream_of(control.name)));
    if (control.mask)
      masks_.emplace(control.name,
                     open_mask("the mask of " + what, *control.mask, media::Stream::kControlMask, {}));
  }
  if (needs_input) input_ = open("the input", input_path(request), media::Stream::kInput);
  if (const auto& path = request.guided_generation_mask)
    kept_ =
        open_mask("the mask of guided generation", *path,
                  media::is_label_file(*path) ? media::Stream::kGuidedMaskLabels : media::Stream::kGuidedMask,
                  request.guided_generation_foreground_labels);
}

TransferInput::Stream TransferInput::open(const std::string& what, const std::string& path,
                                          media::Stream kind) const {
  const bool is_input = kind == media::Stream::kInput;
  const int64_t count =
      is_input ? plan_.frames : media::count_frames(path, plan_.frames + plan_.chunk_frames);
  const bool is_mask = kind == media::Stream::kControlMask || kind == media::Stream::kGuidedMask;
  return {what, media::stream_filter(kind), count, is_mask, std::make_shared<media::FrameReader>(path), {}};
}

TransferInput::Stream TransferInput::open_mask(const std::string& what, const std::string& path,
                                               media::Stream kind, const std::vector<int64_t>& labels) const {
  if (!media::is_label_file(path)) return open(what, path, kind);
  // A byte per pixel: what a frame of the clip takes in three.
  Stream stream{what, media::stream_filter(kind), 0, true, nullptr, media::read_mask(path, labels)};
  stream.count = stream.levels.count;
  return stream;
}

std::vector<int64_t> TransferInput::indices(const Stream& stream, int64_t k) const {
  if (stream.holds && stream.count == 1) return std::vector<int64_t>(static_cast<size_t>(plan_.chunk_frames));
  return sample::chunk_indices(plan_, k, stream.count, stream.what, padding_);
}

media::Frames TransferInput::frames(Stream& stream, int64_t k) const {
  auto indices = this->indices(stream, k);
  const int64_t begin = indices.front(), end = *std::max_element(indices.begin(), indices.end()) + 1;
  for (int64_t& i : indices) i -= begin;
  const auto fitted = media::stretch_opencv(stream.reader->read(begin, end), *request_.height,
                                            *request_.width, stream.filter);
  return media::frames_at(fitted, indices);
}

media::Mask TransferInput::mask(Stream& stream, int64_t k, bool is_binary) const {
  media::Mask out;
  if (stream.reader) {
    const auto grey = frames(stream, k);
    out = {grey.count, grey.height, grey.width, {}};
    out.levels.reserve(grey.rgb.size() / 3);
    for (size_t i = 0; i < grey.rgb.size(); i += 3) out.levels.push_back(grey.rgb[i]);
  } else {
    out = media::stretch_opencv(media::frames_at(stream.levels, indices(stream, k)), *request_.height,
                                *request_.width, stream.filter);
  }
  return is_binary ? media::binary(std::move(out)) : out;
}

ChunkInput TransferInput::chunk(int64_t k) {
  ChunkInput chunk;
  if (input_) chunk.input = frames(*input_, k);
  for (const auto& control : config::controls_of(request_)) {
    const auto file = controls_.find(control.name);
    chunk.controls[control.name] =
        file != controls_.end() ? frames(file->second, k) : computed(control, chunk.input);
    if (const auto found = masks_.find(control.name); found != masks_.end())
      chunk.masks[control.name] = mask(found->second, k, /*is_binary=*/true);
  }
  if (kept_) chunk.kept = mask(*kept_, k, /*is_binary=*/false);
  return chunk;
}

media::Frames input_frame(const Request& r, int64_t index) {
  media::FrameReader reader(input_path(r));
  return media::stretch_opencv(reader.read(index, index + 1), *r.height, *r.width,
                               media::stream_filter(media::Stream::kInput));
}

}  // namespace orrery::pipeline
