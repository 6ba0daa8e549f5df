"""Adds an untrained control branch to a Cosmos-Predict2.5 checkpoint in the diffusers layout: a Cosmos-Transfer2.5
checkpoint to try things with.

    untrained_controlnet.py MODEL OUT [--every N] [--strength X] [--seed S]

A control block starts as a copy of the base block that it stands beside, as training does; what it adds to the base is
random instead of zero, so that controls have an effect. MODEL's other parts are linked. Needs torch only.
"""
import argparse
import json
import math
import os
import struct

import torch

TYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}


def read_safetensors(path):
    with open(path, "rb") as f:
        data = bytearray(f.read())
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        tensors[name] = torch.frombuffer(data[begin:end], dtype=TYPES[entry["dtype"]]).view(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, t in tensors.items():
        raw = t.contiguous().view(torch.uint8).numpy().tobytes()
        kind = next(name for name, dtype in TYPES.items() if dtype == t.dtype)
        header[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def control_branch(base, config, every, strength, generator):
    """The ControlNet's tensors and configuration."""
    width = config["num_attention_heads"] * config["attention_head_dim"]
    patch = config["patch_size"][1] * config["patch_size"][2]
    hint, hidden = 128, config["in_channels"] - 1  # channels: of the control with its zeros, of the latents
    dtype = base["patch_embed.proj.weight"].dtype
    random = lambda *shape: torch.randn(shape, generator=generator)
    embed = torch.zeros(width, (hint + 2) * patch)
    embed[:, :hidden * patch] = random(width, hidden * patch) / math.sqrt(hidden * patch)
    branch = {"patch_embed.proj.weight": embed, "control_blocks.0.before_proj.weight": torch.eye(width),
              "control_blocks.0.before_proj.bias": torch.zeros(width)}
    blocks = range(0, config["num_layers"], every)
    for k, i in enumerate(blocks):
        prefix = f"transformer_blocks.{i}."
        branch |= {f"control_blocks.{k}." + name.removeprefix(prefix): t for name, t in base.items()
                   if name.startswith(prefix)}
        branch[f"control_blocks.{k}.after_proj.weight"] = random(width, width) * strength / math.sqrt(width)
        branch[f"control_blocks.{k}.after_proj.bias"] = torch.zeros(width)
    net = {"_class_name": "CosmosControlNetModel", "n_controlnet_blocks": len(blocks), "in_channels": hint + 2,
           "latent_channels": hidden + 2, "model_channels": width,
           "num_attention_heads": config["num_attention_heads"], "attention_head_dim": config["attention_head_dim"]}
    return {name: t.to(dtype) for name, t in branch.items()}, net


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        json.dump(value, f, indent=2)


def link(source, target):
    if os.path.lexists(target):
        os.remove(target)
    os.symlink(os.path.abspath(source), target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--every", type=int, default=2, help="base blocks to a control block (2)")
    parser.add_argument("--strength", type=float, default=0.5, help="of what control blocks add (0.5)")
    parser.add_argument("--seed", type=int, default=0, help="of the random weights (0)")
    a = parser.parse_args()
    generator = torch.Generator().manual_seed(a.seed)
    with open(f"{a.model}/transformer/config.json") as f:
        config = json.load(f)
    file = "diffusion_pytorch_model.safetensors"
    branch, net = control_branch(read_safetensors(f"{a.model}/transformer/{file}"), config, a.every, a.strength,
                                 generator)
    with open(f"{a.model}/model_index.json") as f:
        index = json.load(f)
    index |= {"_class_name": "Cosmos2_5_TransferPipeline", "controlnet": ["diffusers", "CosmosControlNetModel"]}
    write_json(f"{a.out}/model_index.json", index)
    write_json(f"{a.out}/transformer/config.json", config | {"controlnet_block_every_n": a.every})
    write_json(f"{a.out}/controlnet/config.json", net)
    link(f"{a.model}/transformer/{file}", f"{a.out}/transformer/{file}")
    write_safetensors(f"{a.out}/controlnet/{file}", branch)
    for part in ("vae", "text_encoder", "tokenizer", "scheduler"):
        link(f"{a.model}/{part}", f"{a.out}/{part}")


if __name__ == "__main__":
    main()
