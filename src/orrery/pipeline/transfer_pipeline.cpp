// What `inspect`, `plan` and the engine ask of a Cosmos-Transfer2.5 checkpoint.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/comm/agreement.h"
#include "orrery/config/json.h"
#include "orrery/media/stretch_opencv.h"
#include "orrery/models/load.h"
#include "orrery/pipeline/transfer.h"
#include "orrery/pipeline/transfer_input.h"

namespace orrery::pipeline {
namespace {

namespace fs = std::filesystem;
using config::Request;

/// Where the chunks of an output are kept: clip.mp4.chunks, frames.chunks for the folder frames/.
std::string chunk_folder(std::string output) {
  while (output.ends_with('/')) output.pop_back();
  return output + ".chunks";
}

/// What decides about a chunk's pixels, but not on which ranks it is made.
std::string record(const TransferModel& model, Request request) {
  request.output.reset(), request.name.reset(), request.resume.reset(), request.save_latents.reset();
  request.crf.reset(), request.fps.reset();
  std::string text =
      concat(config::to_json(request).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
             model.fingerprint, at::toString(model.dtype));
  Request::fields([&](auto member, const config::Field& field) {
    const auto& value = request.*member;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::optional<std::string>>)
      if (field.path && value && *value != config::kComputed) {
        std::error_code ignored;
        const auto time = fs::last_write_time(*value, ignored).time_since_epoch().count();
        text += concat(" ", fs::file_size(*value, ignored), " ", time);
      }
  });
  return text;
}

/// Side by side, from left to right; all of one size.
media::Frames beside(const std::vector<media::Frames>& panels) {
  if (panels.size() == 1) return panels[0];
  const auto& first = panels[0];
  media::Frames out{first.count, first.height, 0, {}};
  for (const auto& panel : panels) out.width += panel.width;
  for (int64_t row = 0; row < first.count * first.height; ++row)
    for (const auto& panel : panels) {
      const auto begin = panel.rgb.begin() + row * panel.width * 3;
      out.rgb.insert(out.rgb.end(), begin, begin + panel.width * 3);
    }
  return out;
}

/// The files of a finished request, from its chunks.
class Films {
 public:
  Films(const Request& request, std::shared_ptr<ChunkStore> chunks)
      : request_(request), chunks_(std::move(chunks)), height_(*request.height), width_(*request.width) {
    if (!request.keep_input_resolution.value_or(false)) return;
    const auto info = media::probe(input_path(request));
    height_ = std::max<int64_t>(info.height / 2 * 2, 2), width_ = std::max<int64_t>(info.width / 2 * 2, 2);
  }

  std::vector<Film> all() const {
    std::vector<std::string> shown;
    std::vector<Film> films(1);
    for (const auto& control : config::controls_of(request_)) {
      if (request_.show_control_condition.value_or(false)) shown.push_back(control.name);
      films.push_back(film("_control_" + control.name, {control.name}));
    }
    if (request_.guided_generation_mask) films.push_back(film("_mask_guided_generation", {"guided"}));
    if (request_.show_input.value_or(false)) shown.push_back("input");
    shown.push_back("video");
    films[0] = film("", shown);
    return films;
  }

 private:
  Film film(const std::string& suffix, const std::vector<std::string>& panels) const {
    return {suffix, chunks_->size(), [*this, panels](int64_t k) {
              const Chunk chunk = chunks_->at(k);
              std::vector<media::Frames> fitted;
              for (const auto& panel : panels) fitted.push_back(fit(chunk.clips.at(panel)));
              return beside(fitted);
            }};
  }

  media::Frames fit(const media::Frames& frames) const {
    if (frames.count == 0 || (frames.height == height_ && frames.width == width_)) return frames;
    return media::stretch_opencv(frames, height_, width_, media::OpencvFilter::kLanczos4);
  }

  Request request_;
  std::shared_ptr<ChunkStore> chunks_;
  int64_t height_, width_;
};

/// A distilled model has guidance and the negative prompt built in, and makes one chunk well (§5.4).
void check_distilled(const Request& r) {
  require(r.reference == config::Reference::kOfficial,
          "reference: a distilled model is sampled as the official one only; leave it out or say official");
  if (*r.guidance != 0)
    log::warn("guidance is built into a distilled model: ", *r.guidance, " has no effect");
  if (const auto steps = config::evaluations(r, /*karras=*/false); steps != 4)
    log::warn("this model is distilled to 4 steps; ", steps, " are asked for");
  if (const auto chunks = chunks_of(r).chunks.size(); chunks > 1)
    log::warn("a distilled model is meant for one chunk of ", sample::kChunkFrames,
              " frames; this video takes ", chunks, " of ", *r.chunk_size);
}

class Transfer final : public Pipeline {
 public:
  explicit Transfer(TransferModel model) : model_(std::move(model)) {}

  const Checkpoint& checkpoint() const override { return model_; }

  std::vector<Part> parts() const override {
    const auto& c = model_.config;
    std::vector<Part> parts = {
        {"transformer", model_.layout.transformer, size_of<cosmos::TransformerWeights>(c.base)},
        {"vae", model_.layout.vae, size_of<wan_vae::Weights>(model_.vae_config)}};
    parts[0].facts = {{"blocks", c.base.layers},
                      {"width", c.base.width()},
                      {"heads", c.base.heads},
                      {"head_dim", c.base.head_dim},
                      {"text_features", c.base.text_input_width}};
    const bool own_files =
        model_.layout.kind == Layout::Kind::kDiffusers;  // an official file has the base, too
    for (const auto& control : model_.layout.controls)
      parts.push_back({control.name == kAnyControl ? control.name : "control " + control.name,
                       own_files ? control.path : "",
                       size_of<cosmos_transfer::Branch>(c),
                       {{"blocks", c.control_blocks}}});
    if (auto text = text_encoder_part(model_)) parts.push_back(std::move(*text));
    return parts;
  }

  std::string sigmas() const override {
    return model_.distilled ? "distilled" : model_.scheduler.karras ? "karras" : "linear";
  }

  Work work(const Request& request) const override {
    Request sized = request;
    fit_size(sized);
    Work w = cosmos_work(model_, model_.config.base, sized, *request.chunk_size,
                         model_.reference(request).cosmos.skip_guidance_up_to);
    w.blocks += std::ssize(config::controls_of(request)) * model_.config.control_blocks;
    w.weight_bytes = size_of<cosmos_transfer::TransformerWeights>(model_.config).bytes(model_.dtype);
    return w;
  }

  Given read_given(Request& request) const override {
    for (const auto& control : config::controls_of(request)) (void)model_.branch(control.name);
    fit_to_input(request);
    if (model_.distilled) check_distilled(request);
    check_style(model_, request);
    return {};
  }

  void load(const Request&, config::WeightStorage storage) override {
    if (!loaded_) load_weights(model_, storage);
    loaded_ = true;
  }

  Media make(const parallel::Team& team, const Request& request, const Given&,
             const Hooks& hooks) const override {
    const bool keeps = team.leads();
    auto chunks = std::make_shared<ChunkStore>();
    comm::together(team.control(), [&] {
      if (keeps && hooks.keeps_chunks && chunks_of(request).chunks.size() > 1)
        *chunks = ChunkStore(chunk_folder(request.output.value()), record(model_, request),
                             request.resume.value_or(false));
    });
    Media media =
        transfer(model_, model_.reference(request), team, request, style_of(model_, request), *chunks, hooks);
    if (keeps) {
      media.films = Films(request, chunks).all();
      media.written = [chunks] { chunks->clear(); };
    }
    return media;
  }

 private:
  TransferModel model_;
  bool loaded_ = false;
};

}  // namespace

std::unique_ptr<Pipeline> open_transfer(const config::Settings& settings, at::ScalarType dtype) {
  return std::make_unique<Transfer>(open_transfer_model(settings, dtype));
}

}  // namespace orrery::pipeline
