"""Writes checkpoints of random weights in the published layouts: for benchmarks and for tests at full size.

    random_checkpoint.py official OUT        OUT/base/post-trained/random_ema_bf16.pt and OUT/tokenizer.pth (2 B: 4.1 GB)
    random_checkpoint.py transformer OUT     diffusers' transformer folder: config.json and safetensors
    random_checkpoint.py vae OUT             diffusers' VAE folder
    random_checkpoint.py qwen-image OUT      the transformer folder of Qwen-Image
    random_checkpoint.py qwen-image-vae OUT  its VAE folder
    random_checkpoint.py text-encoder OUT    a Qwen2.5-VL text encoder with the tokenizer of --tokenizer beside it
    random_checkpoint.py embeddings OUT      OUT: a safetensors file with the tensor prompt_embeds

The same options and seed give the same values. Matrices are normal with variance 1 / fan-in, so activations stay of
order one at any depth and width. Needs torch, numpy and safetensors.
"""
import argparse
import collections
import json
import math
import os
import shutil

import torch
from safetensors.torch import save_file

from network_configs import LATENT_CHANNELS, qwen_image_config, qwen_image_vae_config, wan_vae_config
from random_shapes import cosmos_transformer, qwen_image_transformer, qwen_vl_text, wan_vae


def random_values(name, shape, dtype, generator):
    """One parameter: norms near one, biases near zero, everything else with variance 1 / fan-in."""
    values = torch.empty(shape, dtype=dtype).normal_(generator=generator)
    if name.endswith(".gamma") or (name.endswith(".weight") and len(shape) == 1):
        return values.mul_(0.1).add_(1)
    if name.endswith(".bias"):
        return values.mul_(0.02)
    return values.mul_(1 / math.sqrt(math.prod(shape[1:])))


def fill(entries, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    return collections.OrderedDict((name, random_values(name, shape, dtype, generator)) for name, shape in entries)


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=2)


def report(path, tensors):
    count = sum(t.numel() for t in tensors.values())
    print(f"{path}: {len(tensors)} tensors, {count:,} parameters", flush=True)


def write_torch_file(path, tensors):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(tensors, path)
    report(path, tensors)


def write_folder(folder, file, tensors, config):
    os.makedirs(folder, exist_ok=True)
    save_file(tensors, f"{folder}/{file}", metadata={"format": "pt"})
    write_json(f"{folder}/config.json", config)
    report(folder, tensors)


def transformer_sizes(a):
    return dict(width=a.heads * a.head_dim, head_dim=a.head_dim, blocks=a.blocks, mlp_width=4 * a.heads * a.head_dim,
                rank=a.rank, text_width=a.text_width, text_input=a.text_input, latent_channels=LATENT_CHANNELS)


def official(a):
    """The released single file: bf16, `net.` names, with the position buffers that it carries along (spec §3.1)."""
    entries = [("net." + name, shape) for name, _, shape in cosmos_transformer(**transformer_sizes(a))]
    tensors = fill(entries, torch.bfloat16, a.seed)
    axis = 2 * (a.head_dim // 6)
    for name, values in dict(seq=torch.arange(128.0), dim_spatial_range=torch.arange(0, axis, 2) / axis,
                             dim_temporal_range=torch.arange(0, a.head_dim - 2 * axis, 2) / (a.head_dim - 2 * axis)).items():
        tensors[f"net.pos_embedder.{name}"] = values.to(torch.bfloat16)
    write_torch_file(f"{a.out}/base/post-trained/random_ema_bf16.pt", tensors)
    entries = [(name, shape) for name, _, shape in wan_vae(a.base_dim, LATENT_CHANNELS)]
    write_torch_file(f"{a.out}/tokenizer.pth", fill(entries, torch.float32, a.seed + 1))


def transformer(a):
    config = {
        "_class_name": "CosmosTransformer3DModel", "in_channels": LATENT_CHANNELS + 1, "out_channels": LATENT_CHANNELS,
        "num_attention_heads": a.heads, "attention_head_dim": a.head_dim, "num_layers": a.blocks, "mlp_ratio": 4.0,
        "text_embed_dim": a.text_width, "adaln_lora_dim": a.rank, "max_size": [128, 240, 240], "patch_size": [1, 2, 2],
        "rope_scale": [1.0, 3.0, 3.0], "concat_padding_mask": True, "extra_pos_embed_type": None,
        "use_crossattn_projection": True, "crossattn_proj_in_channels": a.text_input,
        "encoder_hidden_states_channels": a.text_width,
    }
    entries = [(name, shape) for _, name, shape in cosmos_transformer(**transformer_sizes(a))]
    tensors = fill(entries, torch.bfloat16, a.seed)
    write_folder(a.out, "diffusion_pytorch_model.safetensors", tensors, config)


def vae(a, config=wan_vae_config):
    entries = [(name, shape) for _, name, shape in wan_vae(a.base_dim, LATENT_CHANNELS)]
    tensors = fill(entries, torch.float32, a.seed)
    write_folder(a.out, "diffusion_pytorch_model.safetensors", tensors, config(a.base_dim))


def qwen_image(a):
    config = qwen_image_config(a.heads, a.blocks, a.text_width)
    head_dim = config["attention_head_dim"]
    entries = qwen_image_transformer(a.heads * head_dim, head_dim, a.blocks, a.text_width, config["in_channels"])
    tensors = fill(entries, torch.bfloat16, a.seed)
    write_folder(a.out, "diffusion_pytorch_model.safetensors", tensors, config)


def qwen_image_vae(a):
    vae(a, qwen_image_vae_config)


def text_encoder(a):
    config = {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "hidden_act": "silu",
        "hidden_size": a.hidden, "intermediate_size": a.inner, "num_hidden_layers": a.layers,
        "num_attention_heads": a.heads, "num_key_value_heads": a.heads, "head_dim": a.head_dim, "rms_norm_eps": 1e-6,
        "rope_theta": 1e6, "vocab_size": a.vocabulary, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    }
    entries = qwen_vl_text(a.hidden, a.layers, a.heads, a.head_dim, a.inner, a.vocabulary)
    write_folder(a.out, "model.safetensors", fill(entries, torch.bfloat16, a.seed), config)
    for file in ("tokenizer.json", "vocab.json", "merges.txt"):
        shutil.copy(f"{a.tokenizer}/{file}", a.out)
    with open(f"{a.tokenizer}/tokenizer_config.json") as f:
        settings = json.load(f)
    # As published: the language model's own limit, not the length that the prompt is filled up to.
    write_json(f"{a.out}/tokenizer_config.json", {**settings, "model_max_length": 131072})


def embeddings(a):
    values = torch.empty(1, a.tokens, a.text_input, dtype=torch.bfloat16)
    save_file({"prompt_embeds": values.normal_(generator=torch.Generator().manual_seed(a.seed))}, a.out)
    print(f"{a.out}: {a.tokens} tokens of {a.text_input}", flush=True)


def parse_arguments():
    def add(parser, name, default, text):
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{text} ({default})")

    def transformer_options(parser):
        add(parser, "heads", 16, "attention heads")
        add(parser, "head-dim", 128, "width of a head")
        add(parser, "blocks", 28, "transformer blocks")
        add(parser, "rank", 256, "rank of the modulations")
        add(parser, "text-width", 1024, "width that cross-attention sees")
        add(parser, "text-input", 100352, "width that the text encoder gives")

    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = top.add_subparsers(required=True)
    for write in (official, transformer, vae, qwen_image, qwen_image_vae, text_encoder, embeddings):
        parser = kinds.add_parser(write.__name__.replace("_", "-"), help=(write.__doc__ or "").split("\n")[0])
        parser.set_defaults(write=write)
        parser.add_argument("out")
        add(parser, "seed", 0, "of the values")
        if write in (official, transformer):
            transformer_options(parser)
        if write is qwen_image:
            add(parser, "heads", 24, "attention heads of 128")
            add(parser, "blocks", 60, "transformer blocks")
            add(parser, "text-width", 3584, "width that the text encoder gives")
        if write in (official, vae, qwen_image_vae):
            add(parser, "base-dim", 96, "channels of the VAE's first level")
        if write is text_encoder:
            add(parser, "hidden", 3584, "width of the residual stream")
            add(parser, "layers", 28, "decoder layers")
            add(parser, "heads", 2, "attention heads, as many for keys")
            add(parser, "head-dim", 128, "width of a head")
            add(parser, "inner", 512, "width of the MLP")
            add(parser, "vocabulary", 1024, "rows of the embedding")
            add(parser, "tokenizer", "models/tiny-world/tokenizer", "folder whose tokenizer is copied")
        if write is embeddings:
            add(parser, "tokens", 512, "length of the prompt")
            add(parser, "text-input", 100352, "width that the text encoder gives")
    return top.parse_args()


if __name__ == "__main__":
    arguments = parse_arguments()
    arguments.write(arguments)
