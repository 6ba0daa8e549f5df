"""Writes a checkpoint folder of Qwen-Image in its published layout and size, of which only the headers take up disk.

    sparse_checkpoint.py OUT

The safetensors files are true in every name, shape, dtype and length; their data are holes, which read as zeros. What
looks at headers only (orrery inspect, orrery plan) answers as it would for the real files, 57 GB. The tokenizer is
that of --tokenizer. Needs no packages.
"""
import argparse
import json
import math
import os
import shutil
import struct

from network_configs import (LATENT_CHANNELS, qwen_image_config, qwen_image_scheduler_config, qwen_image_vae_config,
                             qwen_vl_config)
from random_shapes import qwen_image_transformer, qwen_vl_text, qwen_vl_vision, wan_vae

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ELEMENT_BYTES = 2  # everything is published in bfloat16
# Of the files that Hugging Face's libraries write: 9 for the transformer and 4 for the text encoder, as published.
LARGEST_FILE = 5_000_000_000


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        json.dump(value, f, indent=2)


def bytes_of(shape):
    return ELEMENT_BYTES * math.prod(shape)


def write_sparse(path, entries):
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in entries:
        begin, end = end, end + bytes_of(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # data start at a multiple of 8
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(f.tell() + end)


def in_files(entries):
    """The tensors in their order, as many to a file as it may hold."""
    files, size = [[]], 0
    for name, shape in entries:
        if size + bytes_of(shape) > LARGEST_FILE:
            files.append([])
            size = 0
        files[-1].append((name, shape))
        size += bytes_of(shape)
    return files


def write_network(folder, stem, config, entries):
    """config.json and one file, or several with their index."""
    write_json(f"{folder}/config.json", config)
    files = in_files(entries)
    names = [f"{stem}-{i:05}-of-{len(files):05}.safetensors" for i in range(1, len(files) + 1)]
    if len(files) == 1:
        names = [f"{stem}.safetensors"]
    else:
        index = {"metadata": {"total_size": sum(bytes_of(shape) for file in files for _, shape in file)},
                 "weight_map": {tensor: name for name, file in zip(names, files) for tensor, _ in file}}
        write_json(f"{folder}/{stem}.safetensors.index.json", index)
    for name, file in zip(names, files):
        write_sparse(f"{folder}/{name}", file)
    shapes = [shape for file in files for _, shape in file]
    print(f"{folder}: {len(files)} files, {len(shapes)} tensors, {sum(map(math.prod, shapes)):,} parameters", flush=True)


def transformer():
    c = qwen_image_config()
    head_dim, heads = c["attention_head_dim"], c["num_attention_heads"]
    return c, list(qwen_image_transformer(heads * head_dim, head_dim, c["num_layers"], c["joint_attention_dim"],
                                          c["in_channels"]))


def vae():
    c = qwen_image_vae_config()
    return c, [(name, shape) for _, name, shape in wan_vae(c["base_dim"], LATENT_CHANNELS)]


def text_encoder():
    c = qwen_vl_config()
    v, hidden, heads = c["vision_config"], c["hidden_size"], c["num_attention_heads"]
    text = qwen_vl_text(hidden, c["num_hidden_layers"], heads, hidden // heads, c["intermediate_size"], c["vocab_size"],
                        c["num_key_value_heads"])
    vision = qwen_vl_vision(v["hidden_size"], v["depth"], v["intermediate_size"], v["out_hidden_size"],
                            v["patch_size"], v["temporal_patch_size"], v["spatial_merge_size"])
    return c, [*text, *vision, ("lm_head.weight", (c["vocab_size"], hidden))]


def write(out, tokenizer):
    parts = {"scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
             "transformer": ["diffusers", "QwenImageTransformer2DModel"], "vae": ["diffusers", "AutoencoderKLQwenImage"],
             "text_encoder": ["transformers", "Qwen2_5_VLForConditionalGeneration"],
             "tokenizer": ["transformers", "Qwen2Tokenizer"]}
    write_json(f"{out}/model_index.json", {"_class_name": "QwenImagePipeline", **parts})
    write_json(f"{out}/scheduler/scheduler_config.json", qwen_image_scheduler_config())
    write_network(f"{out}/transformer", "diffusion_pytorch_model", *transformer())
    write_network(f"{out}/vae", "diffusion_pytorch_model", *vae())
    write_network(f"{out}/text_encoder", "model", *text_encoder())
    shutil.copytree(tokenizer, f"{out}/tokenizer", dirs_exist_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--tokenizer", default=f"{ROOT}/tests/golden/pipelines/qwen_image/tokenizer",
                        help="folder that is copied (that of a small test checkpoint)")
    arguments = parser.parse_args()
    write(arguments.out, arguments.tokenizer)


if __name__ == "__main__":
    main()
