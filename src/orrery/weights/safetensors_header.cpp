// The format: huggingface/safetensors, README.md ("Format") and safetensors/src/tensor.rs: u64 length, JSON
// header, data; no holes, no overlaps, nothing after the last tensor.
#include "orrery/weights/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "orrery/weights/refuse.h"

namespace orrery::weights {
namespace {

static_assert(std::endian::native == std::endian::little,
              "checkpoints are read in place, and they are little-endian");

constexpr uint64_t kLongestHeader = 100'000'000;
constexpr size_t kMostDimensions = 64;

struct Word {
  std::string_view word;
  at::ScalarType dtype;
};
constexpr Word kWords[] = {
    {"BF16", at::kBFloat16},
    {"F16", at::kHalf},
    {"F32", at::kFloat},
    {"F64", at::kDouble},
    {"I8", at::kChar},
    {"I16", at::kShort},
    {"I32", at::kInt},
    {"I64", at::kLong},
    {"U8", at::kByte},
    {"U16", at::kUInt16},
    {"U32", at::kUInt32},
    {"U64", at::kUInt64},
    {"BOOL", at::kBool},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"C64", at::kComplexFloat},
};

using Json = nlohmann::json;

/// Follows the parser through the header: names → {dtype, shape, data_offsets}. A stream instead of a parsed
/// tree sees duplicate names, needs no memory for what it refuses, and knows no recursion.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(SafetensorsHeader& header, const std::string& path) : header_(header), path_(path) {}

  bool start_object(size_t) override {
    if (place_ == Place::kStart) return go(Place::kNames);
    if (place_ != Place::kNames) wrong("an object");
    return go(name_ == "__metadata__" ? Place::kMetadata : Place::kEntry);
  }

  bool key(std::string& text) override {
    if (place_ == Place::kNames) {
      name_ = text;
      field_.clear(), seen_.clear(), entry_ = {};
      if (!names_.insert(name_).second) refuse(Fault::kInvalidHeader, where(), "occurs twice");
      return true;
    }
    field_ = text;
    if (place_ == Place::kMetadata) return true;
    if (field_ != "dtype" && field_ != "shape" && field_ != "data_offsets")
      refuse(Fault::kInvalidHeader, where(), "expected dtype, shape, data_offsets, found the field ",
             shown(field_));
    if (!seen_.insert(field_).second) refuse(Fault::kInvalidHeader, where(), field_, " occurs twice");
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kNames) return go(Place::kEnd);
    if (place_ == Place::kEntry) finish_entry();
    return go(Place::kNames);
  }

  bool start_array(size_t) override {
    if (place_ != Place::kEntry || field_ == "dtype") wrong("an array");
    numbers_.clear();
    return go(Place::kNumbers);
  }

  bool end_array() override {
    if (field_ == "shape") return take_shape(), go(Place::kEntry);
    if (numbers_.size() != 2)
      refuse(Fault::kInvalidHeader, where(), "expected 2 data_offsets, found ", numbers_.size());
    entry_.begin = numbers_[0], entry_.end = numbers_[1];
    return go(Place::kEntry);
  }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kNumbers) wrong("a number");
    numbers_.push_back(value);
    return true;
  }

  bool number_integer(int64_t value) override {
    if (place_ != Place::kNumbers) wrong("a number");
    if (value < 0)
      refuse(field_ == "shape" ? Fault::kInvalidShape : Fault::kInvalidOffsets, where(), field_, " holds ",
             value);
    numbers_.push_back(static_cast<uint64_t>(value));
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) return header_.metadata[field_] = text, true;
    if (place_ != Place::kEntry || field_ != "dtype") wrong("a string");
    const auto* found = std::ranges::find(kWords, std::string_view(text), &Word::word);
    if (found == std::end(kWords))
      refuse(Fault::kUnsupported, where(), "dtype ", shown(text), " is not supported");
    entry_.dtype = found->dtype;
    return true;
  }

  bool null() override { wrong("null"); }
  bool boolean(bool) override { wrong("a boolean"); }
  bool number_float(double, const std::string& text) override { wrong("the number " + text); }
  bool binary(Json::binary_t&) override { wrong("binary data"); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    refuse(Fault::kInvalidHeader, path_, ": the header is not JSON from byte ", position, " on");
  }

 private:
  enum class Place { kStart, kNames, kMetadata, kEntry, kNumbers, kEnd };

  bool go(Place place) { return place_ = place, true; }

  std::string where() const { return concat(path_, ": tensor ", shown(name_), ": "); }

  [[noreturn]] void wrong(const std::string& found) const {
    refuse(Fault::kInvalidHeader, path_, ": expected {name: {dtype, shape, data_offsets}}, found ",
           shown(found), name_.empty() ? "" : " under ", shown(name_));
  }

  void take_shape() {
    if (numbers_.size() > kMostDimensions)
      refuse(Fault::kInvalidShape, where(), "expected at most ", kMostDimensions, " dimensions, found ",
             numbers_.size());
    for (uint64_t size : numbers_) {
      if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        refuse(Fault::kInvalidShape, where(), "a size of ", size);
      entry_.shape.push_back(static_cast<int64_t>(size));
    }
  }

  void finish_entry() {
    if (seen_.size() != 3) refuse(Fault::kInvalidHeader, where(), "expected dtype, shape and data_offsets");
    int64_t bytes = static_cast<int64_t>(c10::elementSize(entry_.dtype));
    for (int64_t size : entry_.shape)
      if (__builtin_mul_overflow(bytes, size, &bytes))
        refuse(Fault::kInvalidShape, where(), "shape ", at::IntArrayRef(entry_.shape), " overflows");
    if (entry_.begin > entry_.end || entry_.end - entry_.begin != static_cast<uint64_t>(bytes))
      refuse(Fault::kInvalidOffsets, where(), safetensors_word(entry_.dtype), " ",
             at::IntArrayRef(entry_.shape), " needs ", bytes, " bytes, found data_offsets [", entry_.begin,
             ", ", entry_.end, "]");
    entry_.name = name_;
    header_.entries.push_back(std::move(entry_));
  }

  SafetensorsHeader& header_;
  const std::string& path_;
  Place place_ = Place::kStart;
  std::string name_, field_;
  std::set<std::string> names_, seen_;
  std::vector<uint64_t> numbers_;
  SafetensorsHeader::Entry entry_;
};

void check_cover(SafetensorsHeader& header, uint64_t data_size, const std::string& path) {
  std::ranges::sort(header.entries, {}, [](const auto& e) { return std::pair(e.begin, e.end); });
  uint64_t covered = 0;
  for (const auto& entry : header.entries) {
    if (entry.begin != covered)
      refuse(Fault::kInvalidOffsets, path, ": tensor ", shown(entry.name), ": expected data from byte ",
             covered, " on, found ", entry.begin, entry.begin < covered ? " (overlap)" : " (hole)");
    covered = entry.end;
  }
  if (covered > data_size)
    refuse(Fault::kTruncated, path, ": expected ", covered, " bytes of data, found ", data_size);
  if (covered < data_size)
    refuse(Fault::kInvalidOffsets, path, ": ", data_size - covered, " bytes after the last tensor");
}

}  // namespace

std::string_view safetensors_word(at::ScalarType dtype) {
  const auto* found = std::ranges::find(kWords, dtype, &Word::dtype);
  if (found == std::end(kWords))
    refuse(Fault::kUnsupported, "safetensors cannot hold tensors of type ", c10::toString(dtype));
  return found->word;
}

SafetensorsHeader read_safetensors_header(std::string_view file, const std::string& path) {
  uint64_t length = 0;
  if (file.size() < sizeof(length))
    refuse(Fault::kTruncated, path, ": expected at least 8 bytes, found ", file.size());
  std::memcpy(&length, file.data(), sizeof(length));
  if (length > kLongestHeader)
    refuse(Fault::kHeaderTooLarge, path, ": a header of ", length, " bytes, the format allows ",
           kLongestHeader);
  if (length > file.size() - sizeof(length))
    refuse(Fault::kTruncated, path, ": expected a header of ", length, " bytes, found ",
           file.size() - sizeof(length));
  SafetensorsHeader header;
  header.data_start = sizeof(length) + length;
  HeaderReader reader(header, path);
  const std::string_view text = file.substr(sizeof(length), length);
  Json::sax_parse(text.begin(), text.end(), &reader);
  check_cover(header, file.size() - header.data_start, path);
  return header;
}

}  // namespace orrery::weights
