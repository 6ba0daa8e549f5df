#include "orrery/config/plan.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/value.h"

namespace orrery::config {
namespace {

constexpr int64_t kMaxRanks = 128;
constexpr int64_t kMaxChunks = 1024;
constexpr int64_t kMaxTimeout = 7 * 24 * 3600;

/// All of `text` as an integer, or nothing.
std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

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
         ": expected auto or factors such as cfg2,u4,r2 (cfg1 or cfg2; u: Ulysses; r: ring), each once");
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
    const auto value = integer(std::string_view(part).substr(letters));
    if (!wanted || wanted->value || !value) refuse();
    wanted->ask(value, field);
    begin = end + 1;
  }
  axes.cfg.ask(here.cfg.value, field);
  axes.ulysses.ask(here.ulysses.value, field);
  axes.ring.ask(here.ring.value, field);
}

void ask_context_parallel(const Plan& plan, Axes& axes) {
  if (!plan.context_parallel_size || !plan.enable_cfg_parallel.value_or(false))
    return axes.sequence.ask(plan.context_parallel_size, "context_parallel_size");
  const int64_t all = *plan.context_parallel_size;
  require(all >= 2 && all % 2 == 0,
          "context_parallel_size: expected an even number with enable_cfg_parallel, which gives each branch "
          "half of it, found ",
          all);
  axes.sequence.ask(all / 2, "context_parallel_size halved by enable_cfg_parallel");
}

Axes asked_axes(const Plan& plan) {
  Axes axes;
  if (plan.parallel && *plan.parallel != "auto") ask_parallel(*plan.parallel, axes);
  axes.cfg.ask(plan.cfg_parallel_size, "cfg_parallel_size");
  if (plan.enable_cfg_parallel) axes.cfg.ask(*plan.enable_cfg_parallel ? 2 : 1, "enable_cfg_parallel");
  axes.ulysses.ask(plan.ulysses_degree, "ulysses_degree");
  axes.ring.ask(plan.ring_degree, "ring_degree");
  ask_context_parallel(plan, axes);
  require(axes.cfg.allows(1) || axes.cfg.allows(2), axes.cfg.from,
          ": expected cfg 1 or 2 (there are two guidance branches), found ", axes.cfg.value.value_or(0));
  return axes;
}

/// Every factorisation of so many ranks, the preferred one first: both branches, then the most Ulysses of
/// which each group lies within a node, then ring.
std::vector<Factors> factorisations(int64_t ranks, int64_t node_ranks) {
  std::vector<Factors> all;
  for (int64_t cfg = 2; cfg >= 1; --cfg) {
    if (ranks % cfg != 0) continue;
    const int64_t sequence = ranks / cfg, near = node_ranks > 0 ? std::gcd(sequence, node_ranks) : sequence;
    all.push_back({cfg, near, sequence / near});
    for (int64_t ulysses = sequence; ulysses >= 1; --ulysses)
      if (sequence % ulysses == 0 && ulysses != near) all.push_back({cfg, ulysses, sequence / ulysses});
  }
  return all;
}

void check_numbers(const Plan& plan) {
  require(plan.threads >= 0 && plan.threads <= 4096,
          "threads: expected an integer from 0 (all cores) to 4096, found ", plan.threads);
  require(plan.timeout >= 1 && plan.timeout <= kMaxTimeout, "timeout: expected seconds from 1 to ",
          kMaxTimeout, ", found ", plan.timeout);
  require(!plan.ranks || (*plan.ranks >= 1 && *plan.ranks <= kMaxRanks),
          "ranks: expected an integer from 1 to ", kMaxRanks, ", found ", plan.ranks.value_or(0));
  (void)alltoall_candidates(plan);
}

/// Nothing for auto.
std::optional<int64_t> chunk_count(const std::string& word, const char* field) {
  if (word == "auto") return std::nullopt;
  const auto count = integer(word);
  require(count && *count >= 0 && *count <= kMaxChunks, field,
          ": expected auto or a number of chunks from 0 (off) to ", kMaxChunks, ", found ", in_quotes(word));
  return count;
}

}  // namespace

std::string to_string(const Factors& f) { return concat("cfg", f.cfg, ",u", f.ulysses, ",r", f.ring); }

std::string to_string(const Chunks& chunks) {
  return chunks.count == 1 ? "off" : concat(chunks.overlap ? "overlap " : "cut ", chunks.count);
}

std::vector<Chunks> alltoall_candidates(const Plan& plan) {
  const auto cut = chunk_count(plan.alltoall_cut, "alltoall_cut"),
             overlap = chunk_count(plan.alltoall_overlap, "alltoall_overlap");
  if (cut.value_or(0) > 1) return {{*cut, false}};
  if (overlap.value_or(0) > 1) return {{*overlap, true}};
  std::vector<Chunks> all = {{}};
  if (!cut) all.push_back({2, false});
  if (!overlap) all.insert(all.end(), {{2, true}, {4, true}});
  return all;
}

Factors resolve(const Plan& plan, int64_t node_ranks) { return legal_factors(plan, node_ranks)[0]; }

std::vector<Factors> legal_factors(const Plan& plan, int64_t node_ranks) {
  if (plan.device != Device::kAuto && plan.device != Device::kCpu)
    fail(ErrorKind::kUnsupported, "device ", to_string(plan.device),
         " is not in this version; use --device cpu");
  check_numbers(plan);
  const Axes axes = asked_axes(plan);
  const int64_t sequence =
      axes.sequence.value.value_or(axes.ulysses.value.value_or(1) * axes.ring.value.value_or(1));
  const int64_t ranks = plan.ranks.value_or(axes.cfg.value.value_or(1) * sequence);
  require(ranks <= kMaxRanks, "the plan asks for ", ranks, " ranks: expected at most ", kMaxRanks);
  std::vector<Factors> allowed;
  std::vector<std::string> legal;
  for (const Factors& f : factorisations(ranks, node_ranks)) {
    if (axes.cfg.allows(f.cfg) && axes.ulysses.allows(f.ulysses) && axes.ring.allows(f.ring) &&
        axes.sequence.allows(f.ulysses * f.ring))
      allowed.push_back(f);
    legal.push_back(to_string(f));
  }
  if (!allowed.empty()) return allowed;
  std::vector<std::string> asked;
  for (const Wanted* w : {&axes.cfg, &axes.ulysses, &axes.ring, &axes.sequence})
    if (w->value) asked.push_back(concat(w->axis, " ", *w->value));
  fail(ErrorKind::kRequest, "no factorisation of ", ranks, " ranks has ", join(asked),
       "; legal: ", join(legal, " or "));
}

}  // namespace orrery::config
