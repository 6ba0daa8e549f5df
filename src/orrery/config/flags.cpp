#include "orrery/config/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/value.h"

namespace orrery::config {
namespace {

constexpr RefusedOption kRefused[] = {
    {"--experiment", "its switches come from --model, --variant and --reference"},
    {"--config-file", "the network's configuration comes from the checkpoint"},
    {"--profile", "there is no profiler in this version; the stage times are printed at the end of a run"},
};

std::string dashed(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

/// "-p,--prompt": every spelling, the short ones first.
std::string spellings(const Field& field) {
  std::string shorts, longs = "--" + dashed(field.name);
  for (size_t begin = 0; begin < field.aliases.size();) {
    const size_t end = std::min(field.aliases.find(',', begin), field.aliases.size());
    const std::string alias = dashed(field.aliases.substr(begin, end - begin));
    if (alias.size() == 1)
      shorts += "-" + alias + ",";
    else
      longs += ",--" + alias;
    begin = end + 1;
  }
  return shorts + longs;
}

template <class T>
std::string placeholder(const Field& field) {
  if constexpr (kIsOptional<T>) {
    return placeholder<typename T::value_type>(field);
  } else if constexpr (NamedEnum<T>) {
    constexpr auto kNames = names_of(T{});
    return join(std::vector<std::string>(kNames.begin(), kNames.end()), "|");
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return "N";
  } else if constexpr (std::is_same_v<T, double>) {
    return "X";
  } else {
    return field.path ? "PATH" : "TEXT";
  }
}

/// One option per field; values are written into the struct while CLI11 parses.
template <class Struct>
void add_options(CLI::App& app, Struct& into, const std::string& group) {
  Struct::fields([&](auto member, const Field& field) {
    auto& value = into.*member;
    using T = std::decay_t<decltype(value)>;
    const std::string names = spellings(field), label = "--" + dashed(field.name), help(field.help);
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>) {
      app.add_flag_callback(
             names, [&value] { value = true; }, help)
          ->group(group);
      app.add_flag_callback("--no-" + dashed(field.name), [&value] { value = false; })->group("");
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      app.add_option(names, value, help)->type_name("FILE")->expected(1, -1)->group(group);
    } else if constexpr (kIsList<T>) {
      using Words = std::vector<std::string>;
      app.add_option_function<Words>(
             names,
             [&value, label](const Words& words) {
               value.clear();
               for (const auto& word : words) read_value(value.emplace_back(), word, label);
             },
             help)
          ->type_name("N,…")
          ->delimiter(',')
          ->expected(1, -1)
          ->group(group);
    } else {
      app.add_option_function<std::string>(
             names, [&value, label](const std::string& word) { read_value(value, word, label); }, help)
          ->type_name(placeholder<T>(field))
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
          ->group(group);
    }
  });
}

[[noreturn]] void refuse_option(const CLI::App& app, const std::string& name,
                                std::span<const RefusedOption> refused) {
  for (const RefusedOption& option : refused)
    if (name == option.name) fail(ErrorKind::kUnsupported, name, " is not an option here: ", option.reason);
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& spelling : option->get_lnames()) known.push_back("--" + spelling);
  fail(ErrorKind::kRequest, "unknown option ", in_quotes(name), did_you_mean(name, known),
       "; --help lists all");
}

/// Every option in its canonical spelling with its value as a word of its own, so that CLI11 has nothing left
/// to guess: a value may begin with a dash or be empty.
class Normaliser {
 public:
  Normaliser(const CLI::App& app, const std::vector<std::string>& words,
             std::span<const RefusedOption> refused)
      : app_(app), words_(words), refused_(refused) {}

  std::vector<std::string> run() {
    while (next_ < words_.size()) take(words_[next_++]);
    return std::move(out_);
  }

 private:
  static bool is_option(const std::string& word) {
    return word.size() > 1 && word[0] == '-' && word[1] != ' ' && !(word[1] >= '0' && word[1] <= '9');
  }

  static std::string option_name(const std::string& word) {
    return word.starts_with("--") ? dashed(word.substr(0, word.find('='))) : word.substr(0, 2);
  }

  void take(const std::string& word) {
    if (!is_option(word)) return out_.push_back(word);
    const std::string name = option_name(word);
    const CLI::Option* option = app_.get_option_no_throw(name);
    if (!option || word == "--") refuse_option(app_, name, refused_);
    const bool is_long = word.starts_with("--"),
               attached = is_long ? word.find('=') != std::string::npos : word.size() > 2;
    out_.push_back(name);
    if (option->get_items_expected_max() == 0)
      return require(!attached, name, " takes no value, found ", in_quotes(word));
    if (attached) return out_.push_back(word.substr(is_long ? word.find('=') + 1 : 2));
    require(next_ < words_.size(), name, ": expected a value, found the end of the command line");
    const std::string& value = words_[next_++];
    require(!is_option(value) || !app_.get_option_no_throw(option_name(value)), name,
            ": expected a value, found the option ", in_quotes(value), " (--", option->get_lnames().front(),
            "=… takes anything)");
    out_.push_back(value);
  }

  const CLI::App& app_;
  const std::vector<std::string>& words_;
  std::span<const RefusedOption> refused_;
  size_t next_ = 0;
  std::vector<std::string> out_;
};

}  // namespace

std::string parse_words(CLI::App& app, const std::vector<std::string>& words,
                        std::span<const RefusedOption> refused) {
  std::vector<std::string> normal = Normaliser(app, words, refused).run();
  std::reverse(normal.begin(), normal.end());  // CLI11 takes a vector from its end
  try {
    app.parse(std::move(normal));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ExtrasError&) {
    fail(ErrorKind::kRequest, "unexpected argument ", in_quotes(app.remaining().front()),
         ": options begin with --, values with spaces need quotes");
  } catch (const CLI::ParseError& e) {
    fail(ErrorKind::kRequest, e.what());
  }
  return {};
}

Arguments parse_arguments(const std::vector<std::string>& words, const std::string& command) {
  Arguments arguments;
  CLI::App app("A video or a picture from a prompt, from pictures or from a clip.", "orrery " + command);
  app.get_formatter()->column_width(44);
  add_options(app, arguments.request, "What to make");
  add_options(app, arguments.plan, "How to run");
  add_options(app, arguments.settings, "Files and messages");
  arguments.help = parse_words(app, words, kRefused);
  return arguments;
}

}  // namespace orrery::config
