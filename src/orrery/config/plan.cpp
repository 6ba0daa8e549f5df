#include "orrery/config/plan.h"

#include <charconv>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/base/text.h"

namespace orrery::config {
namespace {

constexpr int64_t kMaxRanks = 128;

/// A factor that several fields may name; all of them must agree.
struct Wanted {
  const char* axis;
  std::optional<int64_t> value = {};
  std::string from = {};

  void ask(std::optional<int64_t> asked, const std::string& field) {
    if (!asked) return;
    require(*asked >= 1 && *asked <= kMaxRanks, field, ": expected an integer from 1 to ", kMaxRanks,
            ", found ", *asked);
    require(!value || *value == *asked, field, " asks for ", axis, " ", *asked, ", but ", from, " for ",
            value.value_or(0), ": give one of them");
    value = asked, from = field;
  }
  bool allows(int64_t found) const { return !value || *value == found; }
};

struct Axes {
  Wanted cfg{"cfg"}, ulysses{"ulysses"}, ring{"ring"}, sequence{"ulysses × ring"};
};

void ask_parallel(const std::string& text, Axes& axes) {
  const std::string field = concat("parallel \"", text, "\"");
  const auto refuse = [&] {
    fail(ErrorKind::kRequest, field,
         ": expected factors such as cfg2,u4 (cfg1 or cfg2; u: Ulysses; r: ring), each once");
  };
  Axes here;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t letters = std::min(part.find_first_of("0123456789"), part.size());
    const std::string axis = part.substr(0, letters);
    Wanted* wanted = axis == "cfg" ? &here.cfg
                     : axis == "u" ? &here.ulysses
                     : axis == "r" ? &here.ring
                                   : nullptr;
    int64_t value = 0;
    const auto [rest, error] = std::from_chars(part.data() + letters, part.data() + part.size(), value);
    if (!wanted || wanted->value || error != std::errc() || rest != part.data() + part.size()) refuse();
    wanted->ask(value, field);
    begin = end + 1;
  }
  axes.cfg.ask(here.cfg.value, field);
  axes.ulysses.ask(here.ulysses.value, field);
  axes.ring.ask(here.ring.value, field);
}

Axes asked_axes(const Plan& plan) {
  Axes axes;
  if (plan.parallel) ask_parallel(*plan.parallel, axes);
  axes.cfg.ask(plan.cfg_parallel_size, "cfg_parallel_size");
  if (plan.enable_cfg_parallel) axes.cfg.ask(*plan.enable_cfg_parallel ? 2 : 1, "enable_cfg_parallel");
  axes.ulysses.ask(plan.ulysses_degree, "ulysses_degree");
  axes.ring.ask(plan.ring_degree, "ring_degree");
  axes.sequence.ask(plan.context_parallel_size, "context_parallel_size");
  require(axes.cfg.allows(1) || axes.cfg.allows(2), axes.cfg.from,
          ": expected cfg 1 or 2 (there are two guidance branches), found ", axes.cfg.value.value_or(0));
  return axes;
}

/// Every factorisation of so many ranks that this version runs, the preferred one first.
std::vector<Factors> factorisations(int64_t ranks) {
  std::vector<Factors> all;
  if (ranks % 2 == 0) all.push_back({2, ranks / 2, 1});
  all.push_back({1, ranks, 1});
  return all;
}

}  // namespace

std::string to_string(const Factors& f) { return concat("cfg", f.cfg, ",u", f.ulysses, ",r", f.ring); }

Factors resolve(const Plan& plan) {
  if (plan.device != Device::kAuto && plan.device != Device::kCpu)
    fail(ErrorKind::kUnsupported, "device ", to_string(plan.device),
         " is not in this version; use --device cpu");
  require(plan.threads >= 0 && plan.threads <= 4096,
          "threads: expected an integer from 0 (all cores) to 4096, found ", plan.threads);
  require(!plan.ranks || (*plan.ranks >= 1 && *plan.ranks <= kMaxRanks),
          "ranks: expected an integer from 1 to ", kMaxRanks, ", found ", plan.ranks.value_or(0));
  const Axes axes = asked_axes(plan);
  const int64_t ring = axes.ring.value.value_or(1);
  const int64_t sequence = axes.sequence.value.value_or(axes.ulysses.value.value_or(1) * ring);
  const int64_t ranks = plan.ranks.value_or(axes.cfg.value.value_or(1) * sequence);
  if (ring > 1)
    fail(ErrorKind::kUnsupported, "ring attention is not in this version; use ulysses up to ",
         ranks / axes.cfg.value.value_or(1));
  std::vector<std::string> legal;
  for (const Factors& f : factorisations(ranks)) {
    if (axes.cfg.allows(f.cfg) && axes.ulysses.allows(f.ulysses) && axes.sequence.allows(f.ulysses * f.ring))
      return f;
    legal.push_back(to_string(f));
  }
  std::vector<std::string> asked;
  for (const Wanted* w : {&axes.cfg, &axes.ulysses, &axes.ring, &axes.sequence})
    if (w->value) asked.push_back(concat(w->axis, " ", *w->value));
  fail(ErrorKind::kRequest, "no factorisation of ", ranks, " ranks has ", join(asked),
       "; legal: ", join(legal, " or "));
}

}  // namespace orrery::config
