#include "orrery/engine/inspect.h"

#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/json.h"
#include "orrery/pipeline/catalog.h"
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

Json describe(const pipeline::Part& part) {
  // Some networks lie in the files of another, which is counted.
  Json json = part.path.empty() ? Json::object() : files_of(part.path);
  json["parameters"] = part.size.parameters();
  json["memory"] = {{"mapped", part.path.empty() ? 0 : json["bytes"].get<int64_t>()},
                    {"widened float32", part.size.bytes(at::kFloat)},
                    {"widened bfloat16", part.size.bytes(at::kBFloat16)}};
  for (const auto& [name, value] : part.facts) json[name] = value;
  return json;
}

Json describe(const pipeline::Pipeline& pipeline) {
  const auto& c = pipeline.checkpoint();
  Json json = {{"family", pipeline::family_of(c.layout.class_name).name},
               {"layout", c.layout.kind == Layout::Kind::kDiffusers ? "diffusers" : "official"},
               {"class", c.layout.class_name}};
  for (const auto& part : pipeline.parts()) json[part.name] = describe(part);
  json["largest"] = {
      {"width", c.limits.max_width}, {"height", c.limits.max_height}, {"num_frames", c.limits.max_frames}};
  json["sigmas"] = pipeline.sigmas();
  json["defaults"] = config::to_json(c.limits.defaults);
  return json;
}

std::string bytes_of(const Json& bytes) { return human_bytes(bytes.get<int64_t>()); }

std::string lines_of(const std::string& name, const Json& part, const std::string& shape) {
  const int64_t millions = part["parameters"].get<int64_t>() / 100'000;
  const std::string size = concat(static_cast<double>(millions) / 10, " million parameters", shape);
  if (!part.contains("path")) return concat(name, "\n  ", size, ", in the same files\n");
  std::vector<std::string> dtypes;
  for (const auto& [dtype, count] : part["dtypes"].items()) dtypes.push_back(concat(count, " ", dtype));
  const auto& memory = part["memory"];
  return concat(name, "\n  ", part["path"].get<std::string>(), "\n  ", size, "; ", part["tensors"],
                " tensors (", join(dtypes), "), ", bytes_of(part["bytes"]),
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
  for (const auto& [name, part] : json.items())
    if (name.starts_with("control")) out += lines_of(name, part, concat(", ", part["blocks"], " blocks"));
  out += lines_of("VAE", json["vae"], "");
  const auto layers = [&](const char* part) {
    return concat(", ", json[part]["layers"], " layers of ", json[part]["width"]);
  };
  if (json.contains("text_encoder"))
    out += lines_of("text encoder", json["text_encoder"], layers("text_encoder"));
  else
    out += "text encoder\n  none beside it: --text-encoder names one, --prompt-embeds does without\n";
  if (json.contains("vision_tower"))
    out += lines_of("vision tower", json["vision_tower"], layers("vision_tower"));
  out += concat("up to ", json["largest"]["width"], "x", json["largest"]["height"], " pixels, ",
                json["largest"]["num_frames"], " frames; ", text(json["sigmas"]), " sigmas\ndefaults\n");
  for (const auto& [field, value] : json["defaults"].items())
    out += concat("  ", field, " = ", value.dump(), "\n");
  return out;
}

}  // namespace

std::string inspect(const config::Settings& settings, bool json) {
  const auto description = describe(*pipeline::open(settings, at::kBFloat16));
  return json ? description.dump(2) + "\n" : as_text(description);
}

}  // namespace orrery
