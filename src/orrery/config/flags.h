#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/config/plan.h"
#include "orrery/config/request.h"
#include "orrery/config/settings.h"

namespace CLI {
class App;
}

namespace orrery::config {

/// What a command line of `generate`, or a command with its options, says; fields that it does not name keep
/// their initial values.
struct Arguments {
  Settings settings;
  Plan plan;
  Request request;
  std::string help;  // the help text if it was asked for, and then nothing else was read
};

/// The words behind the command's name. Options are the fields of the three structs (fields.h); dashes and
/// underscores are the same; `--option value` and `--option=value` too; booleans are --flag and --no-flag;
/// the last of several wins. Errors of kind request: unknown options (with the nearest one), missing or
/// malformed values, words that belong to no option. Errors of kind unsupported: official options that have
/// no meaning here, with the reason.
Arguments parse_arguments(const std::vector<std::string>& words, const std::string& command = "generate");

/// An official option that is refused, and why.
struct RefusedOption {
  const char* name;
  const char* reason;
};

/// Runs a CLI11 parser by the rules above. Returns the help text if that was asked for, else "".
std::string parse_words(CLI::App& app, const std::vector<std::string>& words,
                        std::span<const RefusedOption> refused = {});

}  // namespace orrery::config
