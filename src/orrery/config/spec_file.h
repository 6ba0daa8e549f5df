#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/request.h"

// Parameter files of the official programs (spec cosmos-predict2.5 §9): one sample object per .json or .yaml
// file, or per line of a .jsonl file; and the first release's form, whose `samples` map names share the
// fields beside it.
namespace orrery::config {

enum class SpecFormat { kJson, kJsonLines, kYaml };

/// A sample as its file has it: shorthands in place, paths as written.
struct Sample {
  Request request;
  std::string where;              // "robots.jsonl:3: ", before an error message
  bool prompt_path_wins = false;  // over prompt: so in the first release, not since
};

/// By the suffix: .json, .jsonl, .yaml, .yml; any other is refused.
SpecFormat spec_format(const std::string& file);

/// Reads no file and takes any bytes. Errors of kind request name the file and, where there is one, the line.
std::vector<Sample> parse_spec(std::string_view text, SpecFormat format, const std::string& file);

/// The request with its shorthands folded: resolution → height, width; input_path → image or video (dropped
/// for text2world, as the reference does); prompt_path and negative_prompt_file → the text in the file,
/// stripped. Errors of kind request begin with `where`.
Request expand(Request request, const std::string& where = {}, bool prompt_path_wins = false);

/// Everything to make: the samples of all files, with the overrides laid over each, or, without files, the
/// one request. Names are unique; relative paths in a file are taken from its folder.
std::vector<Request> read_requests(const std::vector<std::string>& files, const Request& overrides);

}  // namespace orrery::config
