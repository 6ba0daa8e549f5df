// tests/cases/*.case: whole command lines and parameter files, and what they come to. One case is
//   case: WHAT IT SHOWS
//   args: words as a shell would split them (default: -i of every parameter file)
//   file: NAME            followed by its lines, each after "| "
//   model: pictures       a model that edits pictures, or transfer, one that follows edge, vis and depth;
//   instead
//                         of one that makes videos
//   request: JSON         what is to be made, before defaults; once per sample
//   complete: JSON        fields that the request has after the defaults of `limits` below
//   plan: cfg1,u1,r1
//   settings: JSON        fields of the settings
//   error: KIND: TEXT     instead of all that; the whole message
// Lines that begin with # are comments.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/flags.h"
#include "orrery/config/json.h"
#include "orrery/config/spec_file.h"
#include "orrery/config/validate.h"

namespace orrery::config {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Case {
  std::string source, title, args, model, plan, error, settings;
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> requests, complete;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.title; }

Case& last(std::vector<Case>& cases, const std::string& source) {
  if (cases.empty()) throw std::runtime_error(source + ": expected a line that begins with case:");
  return cases.back();
}

void read_case_line(const std::string& source, const std::string& line, std::vector<Case>& cases) {
  const size_t colon = line.find(": ");
  const std::string key = line.substr(0, colon),
                    value = colon == std::string::npos ? "" : line.substr(colon + 2);
  if (key == "case") return void(cases.push_back({source, value, {}, {}, {}, {}, {}, {}, {}, {}}));
  Case& c = last(cases, source);
  if (key == "args")
    c.args = value;
  else if (key == "model")
    c.model = value;
  else if (key == "file")
    c.files.emplace_back(value, "");
  else if (key == "request")
    c.requests.push_back(value);
  else if (key == "complete")
    c.complete.push_back(value);
  else if (key == "plan")
    c.plan = value;
  else if (key == "settings")
    c.settings = value;
  else if (key == "error")
    c.error = value;
  else
    throw std::runtime_error(source + ": unknown line " + line);
}

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(ORRERY_SOURCE_DIR "/tests/cases"))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == '#') continue;
      if (line[0] == '|')
        last(cases, path).files.back().second += line.substr(std::min<size_t>(2, line.size())) + "\n";
      else
        read_case_line(path.stem(), line, cases);
    }
  }
  return cases;
}

/// Spaces separate, double and single quotes hold together.
std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;
  for (char c : text) {
    if (quote == 0 && c == ' ') {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    else
      words.back() += c;
  }
  return words;
}

/// What a checkpoint like the published 2B one recommends.
Limits limits() {
  Limits limits;
  limits.defaults = from_json<Request>(Json::parse(
      R"({"width": 1280, "height": 704, "num_frames": 93, "fps": 16, "steps": 35, "guidance": 7, "seed": 0, "reference": "official"})"));
  return limits;
}

/// What a checkpoint like the published Qwen-Image-Edit-2509 can.
Limits limits_of_pictures() {
  Limits limits;
  limits.modes = {Mode::kEdit};
  limits.max_frames = 1, limits.max_images = 3, limits.max_num_images = 1000;
  limits.official = false, limits.lightning = true;
  limits.presets = {{"1:1", 1328, 1328}, {"16:9", 1664, 928}};
  limits.defaults = from_json<Request>(Json::parse(
      R"({"num_frames": 1, "num_images": 1, "num_inference_steps": 40, "guidance": 4, "negative_prompt": " "})"));
  return limits;
}

Limits limits_of_transfer() {
  Limits limits;
  limits.modes = {Mode::kTransfer};
  limits.controls = {"edge", "vis", "depth"};
  limits.defaults = from_json<Request>(Json::parse(
      R"({"resolution": "720", "chunk_size": 93, "chunk_overlap": 1, "steps": 35, "guidance": 3, "negative_prompt": " "})"));
  return limits;
}

class Cases : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "orrery_case_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder, before_ = fs::current_path();
    fs::current_path(folder_);
    for (const auto& [name, content] : GetParam().files) {
      if (fs::path(name).has_parent_path()) fs::create_directories(fs::path(name).parent_path());
      std::ofstream(name) << content;
    }
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

 private:
  fs::path folder_, before_;
};

std::vector<std::string> words_of(const Case& c) {
  std::vector<std::string> words = split_words(c.args);
  if (words.empty())
    for (const auto& [name, content] : c.files) words.insert(words.end(), {"-i", name});
  return words;
}

/// The fields of `some` have the values of `all`.
void expect_fields(const Json& all, const std::string& some) {
  const Json expected = Json::parse(some);
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(all.value(key, Json()), value) << key;
}

void run(const Case& c) {
  const Arguments arguments = parse_arguments(words_of(c));
  const std::vector<Request> requests = read_requests(arguments.settings.input, arguments.request);
  std::vector<Request> completed;
  const Limits model = c.model == "pictures"   ? limits_of_pictures()
                       : c.model == "transfer" ? limits_of_transfer()
                                               : limits();
  for (const Request& request : requests) {
    completed.push_back(complete(request, model));
    validate(completed.back(), model, arguments.plan);
  }
  ASSERT_EQ(c.error, "") << "nothing was refused";
  if (!c.requests.empty()) {
    ASSERT_EQ(c.requests.size(), requests.size());
  }
  for (size_t i = 0; i < c.requests.size(); ++i)
    EXPECT_EQ(Json(to_json(requests[i])), Json::parse(c.requests[i]));
  ASSERT_LE(c.complete.size(), completed.size());
  for (size_t i = 0; i < c.complete.size(); ++i) expect_fields(to_json(completed[i]), c.complete[i]);
  if (!c.plan.empty()) {
    EXPECT_EQ(to_string(resolve(arguments.plan)), c.plan);
  }
  if (!c.settings.empty()) expect_fields(to_json(arguments.settings), c.settings);
}

TEST_P(Cases, Hold) {
  const Case& c = GetParam();
  ASSERT_FALSE(c.requests.empty() && c.complete.empty() && c.plan.empty() && c.settings.empty() &&
               c.error.empty())
      << "expects nothing";
  try {
    run(c);
  } catch (const Error& error) {
    EXPECT_EQ(concat(to_string(error.kind()), ": ", error.what()), c.error);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Cases, testing::ValuesIn(read_cases()), [](const auto& test) {
  std::string name = test.param.source + "_" + test.param.title;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace orrery::config
