#include "orrery/config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <iterator>
#include <limits>
#include <sstream>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/value.h"

namespace orrery::config {
namespace {

using Json = nlohmann::json;
using Path = std::vector<std::string>;

constexpr size_t kDeepest = 3;  // root, samples, one sample

[[noreturn]] void refuse(const std::string& file, int line, const std::string& what) {
  fail(ErrorKind::kRequest, file, ":", line, ": ", what);
}

[[noreturn]] void refuse_list(const std::string& file, int line, const Path& path) {
  if (path.empty())
    refuse(file, line, "expected one object, found a list (several samples: one per line of a .jsonl file)");
  refuse(file, line, concat(in_quotes(path.back()), ": expected a single value, found a list"));
}

[[noreturn]] void refuse_object(const std::string& file, int line, const Path& path) {
  refuse(file, line, concat(in_quotes(path.back()), ": expected a single value, found an object"));
}

void add_key(Document& document, const Path& path, int line) {
  if (!document.lines.emplace(path, line).second)
    refuse(document.file, line, concat("field ", in_quotes(path.back()), " is given twice"));
}

/// Hands characters to the parser and counts the lines that it has taken, so that a callback knows where it
/// stands.
struct LineCounter {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  int* line;

  reference operator*() const { return *at; }
  LineCounter& operator++() {
    *line += *at++ == '\n';
    return *this;
  }
  LineCounter operator++(int) {
    LineCounter before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCounter& other) const { return at == other.at; }
};

/// A parser's message, which may quote any bytes of the text: on one line, not too long.
std::string tamed(std::string what) {
  constexpr size_t kLongest = 200;
  for (char& c : what)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
  if (what.size() > kLongest) what.replace(kLongest, std::string::npos, "…");
  return what;
}

/// "[json.exception.parse_error.101] parse error at line 1, column 5: WHAT" → WHAT
std::string reason(const Json::exception& e) {
  const std::string what = e.what();
  const size_t column = what.find("column "),
               colon = what.find(": ", column == std::string::npos ? 0 : column);
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

/// A plain YAML scalar as PyYAML's safe_load reads it, as far as the fields need it.
Json plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  for (const char* word : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
    if (text == word) return true;
  for (const char* word : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
    if (text == word) return false;
  const char* begin = text.data() + (text[0] == '+');
  const char* end = text.data() + text.size();
  if (begin != end && (*begin == '-' || *begin == '.' || (*begin >= '0' && *begin <= '9'))) {
    int64_t integer = 0;
    if (const auto [rest, error] = std::from_chars(begin, end, integer); error == std::errc() && rest == end)
      return integer;
    double number = 0;
    if (const auto [rest, error] = std::from_chars(begin, end, number); error == std::errc() && rest == end)
      return number;
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return std::numeric_limits<double>::quiet_NaN();
  return text;
}

/// Builds the tree from yaml-cpp's events, not from its nodes: what a parameter file cannot hold ends the
/// parse where it stands, and an alias is never followed.
class YamlReader final : public YAML::EventHandler {
 public:
  YamlReader(Document& document, size_t size) : document_(document), budget_(2 * size + 64) {}

  void OnDocumentStart(const YAML::Mark&) override {
    require(++count_ == 1, document_.file, ": expected one YAML document, found more");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { put(nullptr, mark); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    spend(text.size() + 1, mark);
    if (expects_key()) {
      path_.push_back(text);
      return add_key(document_, path_, mark.line + 1);
    }
    // "?" is the tag of a scalar without quotes and without a tag of its own.
    const Json value = tag == "?" ? plain_scalar(text) : Json(text);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = value;
    put(value, mark);
  }

  // An alias costs a few bytes and may stand for a long text.
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      refuse(document_.file, mark.line + 1, "an alias can only stand for a single value");
    if (found->second.is_string()) spend(found->second.get_ref<const std::string&>().size(), mark);
    put(found->second, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    if (path_.empty() || list_) refuse_list(document_.file, mark.line + 1, path_);
    require_value(mark);
    list_ = &(slot() = Json::array());
  }
  void OnSequenceEnd() override {
    list_ = nullptr;
    path_.pop_back();
  }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    require_value(mark);
    if (list_ || objects_.size() >= kDeepest) refuse_object(document_.file, mark.line + 1, path_);
    objects_.push_back(&(slot() = Json::object()));
  }
  void OnMapEnd() override {
    objects_.pop_back();
    if (!path_.empty()) path_.pop_back();
  }

 private:
  // path_ has a key for every open object but the innermost, which has one while its value is awaited.
  bool expects_key() const { return path_.size() < objects_.size(); }
  Json& slot() { return objects_.empty() ? document_.root : (*objects_.back())[path_.back()]; }

  void require_value(const YAML::Mark& mark) const {
    if (expects_key()) refuse(document_.file, mark.line + 1, "expected a field name before the colon");
  }

  void put(const Json& value, const YAML::Mark& mark) {
    require_value(mark);
    if (list_) return list_->push_back(value);
    slot() = value;
    if (!path_.empty()) path_.pop_back();
  }

  void spend(size_t bytes, const YAML::Mark& mark) {
    if (bytes > budget_) refuse(document_.file, mark.line + 1, "aliases expand to more than the file holds");
    budget_ -= bytes;
  }

  Document& document_;
  size_t budget_;
  int count_ = 0;
  Path path_;
  std::vector<Json*> objects_;  // the open ones; a map's values stay where they are
  Json* list_ = nullptr;        // the open one
  std::map<YAML::anchor_t, Json> anchors_;
};

}  // namespace

std::string Document::where(const std::vector<std::string>& path) const {
  const auto found = lines.find(path);
  return found == lines.end() ? concat(file, ": ") : concat(file, ":", found->second, ": ");
}

Document parse_json(std::string_view text, const std::string& file, int first_line) {
  Document document{file, {}, {}};
  int line = first_line;
  Path path;
  const auto visit = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    const auto level = static_cast<size_t>(depth);  // beyond the path: inside of a list
    if (event == Event::array_start && (path.empty() || level > path.size())) refuse_list(file, line, path);
    if (event == Event::object_start && (level >= kDeepest || level > path.size()))
      refuse_object(file, line, path);
    if (event == Event::key) {
      path.resize(level);
      path.back() = parsed.get<std::string>();
      add_key(document, path, line);
    }
    return true;
  };
  try {
    document.root =
        Json::parse(LineCounter{text.data(), &line}, LineCounter{text.data() + text.size(), &line}, visit);
  } catch (const Json::exception& e) {
    refuse(file, line, "not valid JSON: " + tamed(reason(e)));
  }
  return document;
}

Document parse_yaml(std::string_view text, const std::string& file) {
  Document document{file, {}, {}};
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    YamlReader reader(document, text.size());
    // Twice at most: on some malformed text the parser hands out empty documents for ever.
    if (parser.HandleNextDocument(reader)) parser.HandleNextDocument(reader);
  } catch (const YAML::Exception& e) {
    refuse(file, std::max(e.mark.line + 1, 1), "not valid YAML: " + tamed(e.msg));
  }
  return document;
}

}  // namespace orrery::config
