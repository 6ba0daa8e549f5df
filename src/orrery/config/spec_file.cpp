#include "orrery/config/spec_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/control_objects.h"
#include "orrery/config/document.h"
#include "orrery/config/json.h"
#include "orrery/config/validate.h"
#include "orrery/config/value.h"

namespace orrery::config {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Path = std::vector<std::string>;

constexpr uintmax_t kLargestFile = 4 << 20;

/// The first release draws its noise from seed 1 where a file says nothing (spec cosmos-predict2.5 §12.1).
constexpr int64_t kFirstReleaseSeed = 1;

std::string read_text(const std::string& path) {
  std::error_code error;
  require(!fs::is_directory(path, error), "expected a file, found the folder ", path);
  const uintmax_t size = fs::file_size(path, error);
  require(error || size <= kLargestFile, path, ": expected a text of at most ", human_bytes(kLargestFile),
          ", found ", human_bytes(static_cast<int64_t>(size)));
  return read_file(path);
}

Request request_at(const Document& document, const Json& object, Path path) {
  path.emplace_back();
  const Locate locate = [&, path](const std::string& key) mutable {
    path.back() = key;
    return document.where(path);
  };
  return from_json<Request>(flatten_controls(object, locate), locate);
}

/// One object per file since the second release: the whole file is the sample.
Sample whole_sample(const Document& document) {
  Sample sample{request_at(document, document.root, {}), document.where({"name"})};
  require(sample.request.name.has_value(), sample.where, "expected a name for the sample, found none");
  return sample;
}

std::vector<Sample> named_samples(const Document& document) {
  Json common = document.root;
  common.erase("samples");
  Request shared = request_at(document, common, {});
  require(!shared.name, document.where({"name"}), "name stands beside samples, whose keys are the names");
  if (!shared.seed) shared.seed = kFirstReleaseSeed;
  const Json& samples = document.root["samples"];
  require(samples.is_object() && !samples.empty(), document.where({"samples"}),
          "samples: expected an object with a sample per name, found ",
          samples.is_object() ? "none" : samples.type_name());
  std::vector<Sample> all;
  for (const auto& [name, object] : samples.items()) {
    Request request = request_at(document, object, {"samples", name});
    const std::string where = document.where({"samples", name});
    require(!request.name, where, "name stands inside a sample that is named ", in_quotes(name));
    request.name = name;
    all.push_back({overlay(shared, request), where, /*prompt_path_wins=*/true});
  }
  // As in the file, where the map sorts by name.
  std::stable_sort(all.begin(), all.end(), [&](const Sample& a, const Sample& b) {
    return document.lines.at({"samples", *a.request.name}) < document.lines.at({"samples", *b.request.name});
  });
  return all;
}

void fold_resolution(Request& request, const std::string& where) {
  if (!request.resolution) return;
  const std::string text = *request.resolution;
  // Cosmos-Transfer's own names, such as 720 or 480p, wait for the input's shape; validate refuses them
  // elsewhere.
  if (text.find(',') == std::string::npos && !text.empty() && text[0] >= '0' && text[0] <= '9') return;
  request.resolution.reset();
  require(!request.width && !request.height, where, "resolution and width or height: give one of them");
  if (text == "none") return;
  int64_t height = 0, width = 0;
  const char* end = text.data() + text.size();
  const auto [comma, first] = std::from_chars(text.data(), end, height);
  const bool pair = first == std::errc() && comma != end && *comma == ',';
  const auto [rest, second] = std::from_chars(pair ? comma + 1 : end, end, width);
  require(pair && second == std::errc() && rest == end, where,
          "resolution: expected \"height,width\" such as \"704,1280\", or none, found ", in_quotes(text));
  request.height = height, request.width = width;
}

void fold_input_path(Request& request, const std::string& where) {
  if (!request.input_path) return;
  const std::string path = *request.input_path;
  request.input_path.reset();
  if (request.mode == Mode::kText2World) return;
  require(request.images.empty() && !request.video, where, "input_path and image or video: give one of them");
  std::string suffix = fs::path(path).extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool image =
      suffix == ".png" || suffix == ".jpg" || suffix == ".jpeg" || suffix == ".webp" || suffix == ".bmp";
  if (image)
    request.images = {path};
  else
    request.video = path;
}

void fold_text(std::optional<std::string>& text, std::optional<std::string>& path, const char* field,
               bool path_wins, bool may_be_empty, const std::string& where) {
  if (path && (!text || path_wins)) {
    try {
      text = std::string(strip(read_text(*path)));
    } catch (const Error& e) {
      fail(e.kind(), where, field, ": ", e.message());
    }
    require(may_be_empty || !text->empty(), where, field, ": expected some text in ", *path,
            ", found an empty file");
  }
  path.reset();
}

void resolve_paths(Request& request, const fs::path& folder) {
  const auto resolve = [&](std::string& path) {
    if (!path.empty() && path != kComputed) path = (folder / path).string();
  };
  Request::fields([&](auto member, const Field& field) {
    auto& value = request.*member;
    using T = std::decay_t<decltype(value)>;
    if (!field.path) return;
    if constexpr (std::is_same_v<T, std::optional<std::string>>) {
      if (value) resolve(*value);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      for (auto& path : value) resolve(path);
    }
  });
}

}  // namespace

SpecFormat spec_format(const std::string& file) {
  const std::string suffix = fs::path(file).extension().string();
  if (suffix == ".json") return SpecFormat::kJson;
  if (suffix == ".jsonl") return SpecFormat::kJsonLines;
  require(suffix == ".yaml" || suffix == ".yml", "input ", file,
          ": expected a .json, .jsonl, .yaml or .yml file, found ", suffix.empty() ? "no suffix" : suffix);
  return SpecFormat::kYaml;
}

std::vector<Sample> parse_spec(std::string_view text, SpecFormat format, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (format == SpecFormat::kJsonLines) {
    std::vector<Sample> samples;
    int line = 0;
    for (size_t begin = 0; begin < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view content = text.substr(begin, end - begin);
      if (!strip(content).empty()) {
        samples.push_back(whole_sample(parse_json(content, file, line + 1)));
        samples.back().where = concat(file, ":", line + 1, ": ");
      }
      begin = end + 1;
    }
    require(!samples.empty(), file, ": expected at least one sample, found none");
    return samples;
  }
  require(!strip(text).empty(), file, ": expected a sample, found an empty file");
  const Document document = format == SpecFormat::kJson ? parse_json(text, file) : parse_yaml(text, file);
  if (document.root.is_object() && document.root.contains("samples")) return named_samples(document);
  return {whole_sample(document)};
}

Request expand(Request request, const std::string& where, bool prompt_path_wins) {
  fold_resolution(request, where);
  require(!request.aspect_ratio || (!request.width && !request.height), where,
          "aspect_ratio and width or height: give one of them");
  fold_input_path(request, where);
  fold_text(request.prompt, request.prompt_path, "prompt_path", prompt_path_wins, /*may_be_empty=*/false,
            where);
  fold_text(request.negative_prompt, request.negative_prompt_file, "negative_prompt_file", false,
            /*may_be_empty=*/true, where);
  return request;
}

std::vector<Request> read_requests(const std::vector<std::string>& files, const Request& overrides) {
  const Request over = expand(overrides);
  if (files.empty()) return {over};
  require(!over.name, "name: the samples of the input files have names of their own");
  std::vector<Request> requests;
  std::map<std::string, std::string> seen;
  for (const std::string& file : files) {
    for (Sample& sample : parse_spec(read_text(file), spec_format(file), file)) {
      const std::string name = sample.request.name.value_or(""), where = sample.where;
      require(!sample.request.output, where,
              "output: samples are written to the folder that --output names, as NAME.mp4");
      check_name(name, where);
      const auto [first, fresh] = seen.emplace(name, where);
      require(fresh, where, "name ", in_quotes(name), " is already used at ",
              first->second.substr(0, first->second.size() - 2));
      resolve_paths(sample.request, fs::path(file).parent_path());
      requests.push_back(overlay(expand(std::move(sample.request), where, sample.prompt_path_wins), over));
    }
  }
  return requests;
}

}  // namespace orrery::config
