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

class TextFields {
 public:
  explicit TextFields(const std::string& path) : file_(path), inner_(field(file_.json(), "text_config")) {}

  /// The value that counts, or null: `text_config` before top level.
  Json find(const char* name) const {
    const Json inner = field(inner_, name);
    return inner.is_null() ? field(file_.json(), name) : inner;
  }

  int64_t count(const char* name, int64_t otherwise = 0) const {
    constexpr int64_t kLargest = int64_t{1} << 24;  // far beyond any model, and no product of two overflows
    const Json value = find(name);
    const Json known = value.is_null() && otherwise > 0 ? Json(otherwise) : value;
    if (!known.is_number_integer() || known < 1 || known > kLargest)
      fail(ErrorKind::kCheckpoint, file_.path(), ": ", name, " is ", known.dump(),
           "; expected a positive count");
    return known.get<int64_t>();
  }

  double positive(const char* name, const Json& value, double otherwise) const {
    if (value.is_null()) return otherwise;
    if (!value.is_number() || !(value > 0))
      fail(ErrorKind::kCheckpoint, file_.path(), ": ", name, " is ", value.dump(),
           "; expected a positive number");
    return value.get<double>();
  }

  /// rope_theta stands beside the other fields or, in the newest files, in rope_parameters.
  double rope_theta() const {
    for (const Json& level : {inner_, file_.json()})
      for (const Json& value :
           {field(field(level, "rope_parameters"), "rope_theta"), field(level, "rope_theta")})
        if (!value.is_null()) return positive("rope_theta", value, 0);
    return TextConfig().rope_theta;
  }

  /// For text the three position rows of "mrope" are one, so it is the default rotation.
  void check_rotation() const {
    for (const char* name : {"rope_parameters", "rope_scaling"})
      for (const char* key : {"rope_type", "type"}) {
        const Json type = field(find(name), key);
        if (!type.is_null() && type != "default" && type != "mrope")
          fail(ErrorKind::kUnsupported, file_.path(), ": ", name, ".", key, " is ", type.dump(),
               "; expected default or mrope");
      }
  }

 private:
  JsonConfig file_;
  Json inner_;
};

}  // namespace

TextConfig read_text_config(const std::string& path) {
  const TextFields fields(path);
  TextConfig c;
  c.vocab_size = fields.count("vocab_size");
  c.hidden_size = fields.count("hidden_size");
  c.intermediate_size = fields.count("intermediate_size");
  c.layers = fields.count("num_hidden_layers");
  c.heads = fields.count("num_attention_heads");
  c.kv_heads = fields.count("num_key_value_heads");
  c.head_dim = fields.count("head_dim", c.hidden_size / c.heads);
  c.rms_norm_eps = fields.positive("rms_norm_eps", fields.find("rms_norm_eps"), c.rms_norm_eps);
  c.rope_theta = fields.rope_theta();
  if (c.heads % c.kv_heads != 0 || c.head_dim % 2 != 0)
    fail(ErrorKind::kCheckpoint, path, ": ", c.heads, " heads of ", c.head_dim, " with ", c.kv_heads,
         " key heads; expected a multiple of the key heads and an even width");
  fields.check_rotation();
  if (const Json act = fields.find("hidden_act"); !act.is_null() && act != "silu")
    fail(ErrorKind::kUnsupported, path, ": hidden_act is ", act.dump(), "; expected silu");
  if (fields.find("use_sliding_window") == true)
    fail(ErrorKind::kUnsupported, path, ": use_sliding_window is true; expected full attention");
  return c;
}

}  // namespace orrery::qwen_vl
