// Fields: huggingface/transformers, models/qwen2_5_vl/configuration_qwen2_5_vl.py.
#include "orrery/models/qwen_vl/config.h"

#include "orrery/models/json_config.h"

namespace orrery::qwen_vl {
namespace {

using Json = nlohmann::json;

/// The field of `object`, or null.
Json field(const Json& object, const char* name) {
  return object.is_object() ? object.value(name, Json()) : Json();
}

/// Fields of a section of config.json and, if `outer`, of its top level; the section's come first.
class Fields {
 public:
  Fields(const JsonConfig& file, const char* section, bool outer)
      : path_(file.path()), levels_{field(file.json(), section)} {
    if (outer) levels_.push_back(file.json());
  }

  const std::string& path() const { return path_; }
  const Json& section() const { return levels_.front(); }

  /// The value that counts, or null.
  Json find(const char* name) const {
    for (const Json& level : levels_)
      if (Json value = field(level, name); !value.is_null()) return value;
    return {};
  }

  /// `otherwise` answers an absent field; 0: it has to be there.
  int64_t count(const char* name, int64_t otherwise = 0, int64_t most = kMost) const {
    const Json value = find(name);
    return checked(name, value.is_null() && otherwise > 0 ? Json(otherwise) : value, 1, most);
  }

  /// `value`, which was found under `name`, as an array of counts, of `length` if that is not 0.
  std::vector<int64_t> counts(const char* name, const Json& value, size_t length) const {
    if (!value.is_array() || (length > 0 && value.size() != length))
      fail(ErrorKind::kCheckpoint, path_, ": ", name, " is ", value.dump(), "; expected an array of ",
           length > 0 ? concat(length, " ") : "", "counts");
    std::vector<int64_t> out;
    for (const Json& one : value) out.push_back(checked(name, one, 0, kMost));
    return out;
  }

  double positive(const char* name, const Json& value, double otherwise) const {
    if (value.is_null()) return otherwise;
    if (!value.is_number() || !(value > 0))
      fail(ErrorKind::kCheckpoint, path_, ": ", name, " is ", value.dump(), "; expected a positive number");
    return value.get<double>();
  }

  /// A field that stands beside the others or, in the newest files, in rope_parameters; the first releases
  /// had some in rope_scaling. Null if there is none.
  Json rope(const char* name) const {
    for (const Json& level : levels_)
      for (const Json& value : {field(field(level, "rope_parameters"), name), field(level, name),
                                field(field(level, "rope_scaling"), name)})
        if (!value.is_null()) return value;
    return {};
  }

  /// `mrope` is the default rotation with three position rows.
  void check_rotation() const {
    for (const char* name : {"rope_parameters", "rope_scaling"})
      for (const char* key : {"rope_type", "type"}) {
        const Json type = field(find(name), key);
        if (!type.is_null() && type != "default" && type != "mrope")
          fail(ErrorKind::kUnsupported, path_, ": ", name, ".", key, " is ", type.dump(),
               "; expected default or mrope");
      }
  }

  void check_activation() const {
    if (const Json act = find("hidden_act"); !act.is_null() && act != "silu")
      fail(ErrorKind::kUnsupported, path_, ": hidden_act is ", act.dump(), "; expected silu");
  }

 private:
  static constexpr int64_t kMost = int64_t{1} << 24;  // far beyond any model, and no product of two overflows

  int64_t checked(const char* name, const Json& value, int64_t least, int64_t most) const {
    if (!value.is_number_integer() || value < least || value > most)
      fail(ErrorKind::kCheckpoint, path_, ": ", name, " is ", value.dump(), "; expected a ",
           least > 0 ? "positive" : "non-negative", " count", most < kMost ? concat(" up to ", most) : "");
    return value.get<int64_t>();
  }

  std::string path_;
  std::vector<Json> levels_;
};

std::array<int64_t, 3> rope_sections(const Fields& fields, int64_t head_dim) {
  const Json value = fields.rope("mrope_section");
  if (value.is_null()) return {};
  const auto sections = fields.counts("mrope_section", value, 3);
  if (sections[0] + sections[1] + sections[2] != head_dim / 2)
    fail(ErrorKind::kCheckpoint, fields.path(), ": mrope_section is ", value.dump(),
         "; expected counts that add up to ", head_dim / 2);
  return {sections[0], sections[1], sections[2]};
}

}  // namespace

TextConfig read_text_config(const std::string& path) {
  const Fields fields(JsonConfig(path), "text_config", /*outer=*/true);
  TextConfig c;
  c.vocab_size = fields.count("vocab_size");
  c.hidden_size = fields.count("hidden_size");
  c.intermediate_size = fields.count("intermediate_size");
  c.layers = fields.count("num_hidden_layers");
  c.heads = fields.count("num_attention_heads");
  c.kv_heads = fields.count("num_key_value_heads");
  c.head_dim = fields.count("head_dim", c.hidden_size / c.heads);
  c.rms_norm_eps = fields.positive("rms_norm_eps", fields.find("rms_norm_eps"), c.rms_norm_eps);
  c.rope_theta = fields.positive("rope_theta", fields.rope("rope_theta"), c.rope_theta);
  c.rope_sections = rope_sections(fields, c.head_dim);
  c.image_token = fields.count("image_token_id", c.image_token);
  if (c.heads % c.kv_heads != 0 || c.head_dim % 2 != 0)
    fail(ErrorKind::kCheckpoint, path, ": ", c.heads, " heads of ", c.head_dim, " with ", c.kv_heads,
         " key heads; expected a multiple of the key heads and an even width");
  fields.check_rotation();
  fields.check_activation();
  if (fields.find("use_sliding_window") == true)
    fail(ErrorKind::kUnsupported, path, ": use_sliding_window is true; expected full attention");
  return c;
}

VisionConfig read_vision_config(const std::string& path) {
  const Fields fields(JsonConfig(path), "vision_config", /*outer=*/false);
  if (!fields.section().is_object())
    fail(ErrorKind::kCheckpoint, path, ": has no vision_config; expected an encoder that sees pictures");
  VisionConfig c;
  c.depth = fields.count("depth", c.depth);
  c.hidden_size = fields.count("hidden_size", c.hidden_size);
  c.intermediate_size = fields.count("intermediate_size", c.intermediate_size);
  c.heads = fields.count("num_heads", c.heads);
  c.out_hidden_size = fields.count("out_hidden_size", c.out_hidden_size);
  constexpr int64_t kLargestPatch = 256;  // these are multiplied with each other
  c.patch_size = fields.count("patch_size", c.patch_size, kLargestPatch);
  c.temporal_patch_size = fields.count("temporal_patch_size", c.temporal_patch_size, kLargestPatch);
  c.merge_size = fields.count("spatial_merge_size", c.merge_size, kLargestPatch);
  c.window_size = fields.count("window_size", c.window_size);
  if (const Json blocks = fields.find("fullatt_block_indexes"); !blocks.is_null())
    c.full_attention_blocks = fields.counts("fullatt_block_indexes", blocks, 0);
  for (const char* name : {"in_channels", "in_chans"})
    if (const Json channels = fields.find(name); !channels.is_null() && channels != 3)
      fail(ErrorKind::kUnsupported, path, ": ", name, " is ", channels.dump(), "; expected 3");
  fields.check_activation();
  if (c.hidden_size % c.heads != 0 || c.hidden_size / c.heads % 4 != 0)
    fail(ErrorKind::kCheckpoint, path, ": a vision tower of width ", c.hidden_size, " with ", c.heads,
         " heads; expected heads whose width is a multiple of 4");
  if (c.window_groups() < 1)
    fail(ErrorKind::kCheckpoint, path, ": window_size is ", c.window_size, "; expected at least ",
         c.merge_size, " patches of ", c.patch_size);
  return c;
}

}  // namespace orrery::qwen_vl
