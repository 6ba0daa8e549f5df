// Fields: diffusers, models/transformers/transformer_cosmos.py and models/controlnets/controlnet_cosmos.py
// (58eb52c); official values: spec cosmos-transfer2.5 §2.1, §2.9.
#include "orrery/models/cosmos_transfer/config.h"

#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/models/json_config.h"

namespace orrery::cosmos_transfer {
namespace {

void check(const TransformerConfig& c, const std::string& path) {
  const auto in_range = [&](int64_t value, const char* name, int64_t least, int64_t most) {
    if (value < least || value > most)
      fail(ErrorKind::kCheckpoint, path, ": ", name, " is ", value, "; expected ", least, " to ", most);
  };
  in_range(c.control_blocks, "the number of control blocks", 1, c.base.layers);
  in_range(c.every, "controlnet_block_every_n", 1, c.base.layers);
  in_range(c.control_channels, "in_channels without masks", c.base.latent_channels, int64_t{1} << 16);
  if ((c.control_blocks - 1) * c.every >= c.base.layers)
    fail(ErrorKind::kCheckpoint, path, ": ", c.control_blocks, " control blocks, one behind every ", c.every,
         " blocks, do not fit into ", c.base.layers, " blocks");
}

int64_t masks(const TransformerConfig& c) { return c.base.padding_mask ? 2 : 1; }

void share_the_base(TransformerConfig& c) {
  if (c.branches.size() > 1) c.base.image_width = c.base.image_input_width = 0;
}

}  // namespace

TransformerConfig read_transformer_config(const std::string& transformer,
                                          const std::vector<std::string>& controlnets,
                                          std::vector<std::string> branches) {
  ensure(!branches.empty() && controlnets.size() == branches.size(),
         "expected one ControlNet per branch, got ", controlnets.size(), " for ", branches.size());
  TransformerConfig c;
  c.base = cosmos::read_transformer_config(transformer);
  c.branches = std::move(branches);
  c.every = JsonConfig(transformer).get("controlnet_block_every_n", c.every);
  share_the_base(c);
  for (size_t i = 0; i < controlnets.size(); ++i) {
    const JsonConfig json(controlnets[i]);
    const int64_t blocks = json.get("n_controlnet_blocks", int64_t{4});
    const int64_t channels = json.get("in_channels", int64_t{130}) - masks(c);
    if (i > 0 && (blocks != c.control_blocks || channels != c.control_channels))
      fail(ErrorKind::kCheckpoint, controlnets[i], ": ", blocks, " control blocks and ", channels + masks(c),
           " in_channels; ", controlnets[0], " has ", c.control_blocks, " and ",
           c.control_channels + masks(c));
    c.control_blocks = blocks, c.control_channels = channels;
    check(c, controlnets[i]);
  }
  return c;
}

TransformerConfig infer_transformer_config(const std::map<std::string, Tensor>& tensors,
                                           std::vector<std::string> branches) {
  ensure(!branches.empty(), "expected at least one branch");
  TransformerConfig c;
  c.base = cosmos::infer_transformer_config(tensors);
  c.branches = std::move(branches);
  share_the_base(c);
  const std::string& first = c.branches.front();
  const auto embedder = tensors.find(first + ".control_embedder.proj.weight");
  if (embedder == tensors.end() || embedder->second.dim() != 2)
    throw Error(
        ErrorKind::kCheckpoint,
        concat("the tensors lack ", first, ".control_embedder.proj.weight, from which the size of ", first,
               "'s control branch follows: they are not those of a Cosmos-Transfer2.5 checkpoint"),
        "missing_key");
  c.control_channels = embedder->second.size(1) / (c.base.patch * c.base.patch) - masks(c);
  c.control_blocks = 0;
  while (tensors.contains(concat(first, ".control_blocks.", c.control_blocks, ".attn1.to_q.weight")))
    ++c.control_blocks;
  // Spaced evenly from the first block on: blocks 0, every, 2 · every, …
  if (c.control_blocks > 0) c.every = (c.base.layers + c.control_blocks - 1) / c.control_blocks;
  check(c, concat("the tensors of ", first));
  return c;
}

}  // namespace orrery::cosmos_transfer
