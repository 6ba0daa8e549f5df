#include "orrery/engine/inspect.h"

#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/json.h"
#include "orrery/models/qwen_vl/weights.h"
#include "orrery/pipeline/predict_model.h"
#include "orrery/weights/source.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

/// Tensors of one part: how many, in which dtypes, how many bytes on disk.
Json files_of(const std::string& path) {
  std::map<std::string, int64_t> dtypes;
  int64_t bytes = 0;
  const auto tensors = weights::open_weights(path);
  for (const auto& [name, t] : tensors) {
    ++dtypes[c10::toString(t.scalar_type())];
    bytes += static_cast<int64_t>(t.nbytes());
  }
  return {{"path", path}, {"tensors", tensors.size()}, {"dtypes", dtypes}, {"bytes", bytes}};
}

Json size_of(const weights::Sizer& sizer, int64_t file_bytes) {
  return {{"parameters", sizer.parameters()},
          {"memory",
           {{"mapped", file_bytes},
            {"widened float32", sizer.bytes(at::kFloat)},
            {"widened bfloat16", sizer.bytes(at::kBFloat16)}}}};
}

template <class W, class Config>
Json part(const std::string& path, const Config& config) {
  Json json = files_of(path);
  weights::Sizer sizer;
  W w;
  bind(sizer, w, config);
  json.update(size_of(sizer, json["bytes"].get<int64_t>()));
  return json;
}

Json describe(const pipeline::PredictModel& m) {
  const auto& c = m.config;
  Json transformer = part<cosmos::TransformerWeights>(m.layout.transformer, c);
  transformer.update({{"blocks", c.layers},
                      {"width", c.width()},
                      {"heads", c.heads},
                      {"head_dim", c.head_dim},
                      {"text_features", c.text_input_width}});
  Json json = {{"family", m.family},
               {"layout", m.layout.kind == Layout::Kind::kDiffusers ? "diffusers" : "official"},
               {"class", m.layout.class_name},
               {"transformer", transformer},
               {"vae", part<wan_vae::Weights>(m.layout.vae, m.vae_config)}};
  if (!m.layout.text_encoder.empty()) {
    const auto text = qwen_vl::read_text_config(m.layout.text_encoder + "/config.json");
    json["text_encoder"] = part<qwen_vl::TextWeights>(m.layout.text_encoder, text);
    json["text_encoder"].update({{"layers", text.layers}, {"width", text.hidden_size}});
  }
  json["largest"] = {
      {"width", m.limits.max_width}, {"height", m.limits.max_height}, {"num_frames", m.limits.max_frames}};
  json["sigmas"] = m.scheduler.karras ? "karras" : "linear";
  json["defaults"] = config::to_json(m.limits.defaults);
  return json;
}

std::string bytes_of(const Json& bytes) { return human_bytes(bytes.get<int64_t>()); }

std::string lines_of(const std::string& name, const Json& part, const std::string& shape) {
  std::vector<std::string> dtypes;
  for (const auto& [dtype, count] : part["dtypes"].items()) dtypes.push_back(concat(count, " ", dtype));
  const auto& memory = part["memory"];
  const int64_t parameters = part["parameters"];
  return concat(name, "\n  ", part["path"].get<std::string>(), "\n  ",
                static_cast<double>(parameters / 100'000) / 10, " million parameters", shape, "; ",
                part["tensors"], " tensors (", join(dtypes), "), ", bytes_of(part["bytes"]),
                "\n  memory: ", bytes_of(memory["mapped"]), " mapped, ", bytes_of(memory["widened float32"]),
                " widened to float32, ", bytes_of(memory["widened bfloat16"]), " to bfloat16\n");
}

std::string as_text(const Json& json) {
  const auto text = [&](const Json& value) { return value.get<std::string>(); };
  const auto& t = json["transformer"];
  std::string out =
      concat(text(json["family"]), ", ", text(json["layout"]), " layout (", text(json["class"]), ")\n");
  out += lines_of("transformer", t,
                  concat(", ", t["blocks"], " blocks of ", t["width"], " (", t["heads"], " heads x ",
                         t["head_dim"], ")"));
  out += lines_of("VAE", json["vae"], "");
  if (json.contains("text_encoder"))
    out +=
        lines_of("text encoder", json["text_encoder"],
                 concat(", ", json["text_encoder"]["layers"], " layers of ", json["text_encoder"]["width"]));
  else
    out += "text encoder\n  none beside it: --text-encoder names one, --prompt-embeds does without\n";
  out += concat("up to ", json["largest"]["width"], "x", json["largest"]["height"], " pixels, ",
                json["largest"]["num_frames"], " frames; ", text(json["sigmas"]), " sigmas\ndefaults\n");
  for (const auto& [field, value] : json["defaults"].items())
    out += concat("  ", field, " = ", value.dump(), "\n");
  return out;
}

}  // namespace

std::string inspect(const config::Settings& settings, bool json) {
  const auto description = describe(pipeline::open_predict_model(settings, at::kBFloat16));
  return json ? description.dump(2) + "\n" : as_text(description);
}

}  // namespace orrery
