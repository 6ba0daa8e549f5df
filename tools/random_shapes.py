"""Names and shapes of the published networks' tensors: spelled once as the official files and once as diffusers
spells them. (spec cosmos-predict2.5 §3.2, §8.5; qwen2.5-vl-text §6, §7.3; qwen-image §3)"""


def cosmos_transformer(width, head_dim, blocks, mlp_width, rank, text_width, text_input, latent_channels):
    """(official name without `net.`, diffusers name, shape) of every tensor of the Cosmos-Predict2.5 transformer."""
    patch = 4  # 2 x 2 pixels of latents; the network also sees the condition mask and the padding mask
    yield "x_embedder.proj.1.weight", "patch_embed.proj.weight", (width, (latent_channels + 2) * patch)
    yield "t_embedder.1.linear_1.weight", "time_embed.t_embedder.linear_1.weight", (width, width)
    yield "t_embedder.1.linear_2.weight", "time_embed.t_embedder.linear_2.weight", (3 * width, width)
    yield "t_embedding_norm.weight", "time_embed.norm.weight", (width,)
    yield "crossattn_proj.0.weight", "crossattn_proj.0.weight", (text_width, text_input)
    yield "crossattn_proj.0.bias", "crossattn_proj.0.bias", (text_width,)
    for i in range(blocks):
        ours, theirs = f"blocks.{i}", f"transformer_blocks.{i}"
        for norm, part in enumerate(("self_attn", "cross_attn", "mlp"), 1):
            yield f"{ours}.adaln_modulation_{part}.1.weight", f"{theirs}.norm{norm}.linear_1.weight", (rank, width)
            yield f"{ours}.adaln_modulation_{part}.2.weight", f"{theirs}.norm{norm}.linear_2.weight", (3 * width, rank)
        for attn, part, context in ((1, "self_attn", width), (2, "cross_attn", text_width)):
            for letter, inputs in (("q", width), ("k", context), ("v", context)):
                yield f"{ours}.{part}.{letter}_proj.weight", f"{theirs}.attn{attn}.to_{letter}.weight", (width, inputs)
            yield f"{ours}.{part}.output_proj.weight", f"{theirs}.attn{attn}.to_out.0.weight", (width, width)
            for letter in "qk":
                yield f"{ours}.{part}.{letter}_norm.weight", f"{theirs}.attn{attn}.norm_{letter}.weight", (head_dim,)
        yield f"{ours}.mlp.layer1.weight", f"{theirs}.ff.net.0.proj.weight", (mlp_width, width)
        yield f"{ours}.mlp.layer2.weight", f"{theirs}.ff.net.2.weight", (width, mlp_width)
    yield "final_layer.adaln_modulation.1.weight", "norm_out.linear_1.weight", (rank, width)
    yield "final_layer.adaln_modulation.2.weight", "norm_out.linear_2.weight", (2 * width, rank)
    yield "final_layer.linear.weight", "proj_out.weight", (latent_channels * patch, width)


def _linear(name, outputs, inputs):
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _conv(official, diffusers, *shape):
    yield f"{official}.weight", f"{diffusers}.weight", shape
    yield f"{official}.bias", f"{diffusers}.bias", shape[:1]


def _residual(official, diffusers, inputs, outputs):
    yield f"{official}.residual.0.gamma", f"{diffusers}.norm1.gamma", (inputs, 1, 1, 1)
    yield from _conv(f"{official}.residual.2", f"{diffusers}.conv1", outputs, inputs, 3, 3, 3)
    yield f"{official}.residual.3.gamma", f"{diffusers}.norm2.gamma", (outputs, 1, 1, 1)
    yield from _conv(f"{official}.residual.6", f"{diffusers}.conv2", outputs, outputs, 3, 3, 3)
    if inputs != outputs:
        yield from _conv(f"{official}.shortcut", f"{diffusers}.conv_shortcut", outputs, inputs, 1, 1, 1)


def _middle(coder, width):
    yield from _residual(f"{coder}.middle.0", f"{coder}.mid_block.resnets.0", width, width)
    official, diffusers = f"{coder}.middle.1", f"{coder}.mid_block.attentions.0"
    yield f"{official}.norm.gamma", f"{diffusers}.norm.gamma", (width, 1, 1)
    yield from _conv(f"{official}.to_qkv", f"{diffusers}.to_qkv", 3 * width, width, 1, 1)
    yield from _conv(f"{official}.proj", f"{diffusers}.proj", width, width, 1, 1)
    yield from _residual(f"{coder}.middle.2", f"{coder}.mid_block.resnets.1", width, width)


def _head(coder, outputs, width):
    yield f"{coder}.head.0.gamma", f"{coder}.norm_out.gamma", (width, 1, 1, 1)
    yield from _conv(f"{coder}.head.2", f"{coder}.conv_out", outputs, width, 3, 3, 3)


def wan_vae(base, latent_channels, multiples=(1, 2, 4, 4), temporal=(False, True, True)):
    """(official name, diffusers name, shape) of every tensor of the Wan 2.1 VAE."""
    widths = [base * m for m in multiples]
    yield from _conv("encoder.conv1", "encoder.conv_in", base, 3, 3, 3, 3)
    k, inputs = 0, base
    for level, width in enumerate(widths):
        for _ in range(2):
            yield from _residual(f"encoder.downsamples.{k}", f"encoder.down_blocks.{k}", inputs, width)
            k, inputs = k + 1, width
        if level < len(temporal):
            official, diffusers = f"encoder.downsamples.{k}", f"encoder.down_blocks.{k}"
            yield from _conv(f"{official}.resample.1", f"{diffusers}.resample.1", width, width, 3, 3)
            if temporal[level]:
                yield from _conv(f"{official}.time_conv", f"{diffusers}.time_conv", width, width, 3, 1, 1)
            k += 1
    yield from _middle("encoder", widths[-1])
    yield from _head("encoder", 2 * latent_channels, widths[-1])
    yield from _conv("conv1", "quant_conv", 2 * latent_channels, 2 * latent_channels, 1, 1, 1)
    yield from _conv("conv2", "post_quant_conv", latent_channels, latent_channels, 1, 1, 1)
    yield from _conv("decoder.conv1", "decoder.conv_in", widths[-1], latent_channels, 3, 3, 3)
    yield from _middle("decoder", widths[-1])
    k, inputs = 0, widths[-1]
    for level, width in enumerate(reversed(widths)):
        for resnet in range(3):
            yield from _residual(f"decoder.upsamples.{k}", f"decoder.up_blocks.{level}.resnets.{resnet}", inputs, width)
            k, inputs = k + 1, width
        if level < len(temporal):
            official, diffusers = f"decoder.upsamples.{k}", f"decoder.up_blocks.{level}.upsamplers.0"
            yield from _conv(f"{official}.resample.1", f"{diffusers}.resample.1", width // 2, width, 3, 3)
            if temporal[-1 - level]:
                yield from _conv(f"{official}.time_conv", f"{diffusers}.time_conv", 2 * width, width, 3, 1, 1)
            k, inputs = k + 1, width // 2
    yield from _head("decoder", 3, widths[0])


def qwen_vl_text(hidden, layers, heads, head_dim, inner, vocabulary, key_heads=None):
    """(name, shape) of the text decoder of Qwen2.5-VL, as its first releases spell them."""
    inside, keys = heads * head_dim, (key_heads or heads) * head_dim
    yield "model.embed_tokens.weight", (vocabulary, hidden)
    for i in range(layers):
        layer = f"model.layers.{i}"
        yield f"{layer}.input_layernorm.weight", (hidden,)
        for letter, outputs in (("q", inside), ("k", keys), ("v", keys)):
            yield from _linear(f"{layer}.self_attn.{letter}_proj", outputs, hidden)
        yield f"{layer}.self_attn.o_proj.weight", (hidden, inside)
        yield f"{layer}.post_attention_layernorm.weight", (hidden,)
        yield f"{layer}.mlp.gate_proj.weight", (inner, hidden)
        yield f"{layer}.mlp.up_proj.weight", (inner, hidden)
        yield f"{layer}.mlp.down_proj.weight", (hidden, inner)
    yield "model.norm.weight", (hidden,)


def qwen_vl_vision(hidden, blocks, inner, outputs, patch, frames, merge):
    """(name, shape) of its vision tower."""
    yield "visual.patch_embed.proj.weight", (hidden, 3, frames, patch, patch)
    for i in range(blocks):
        block = f"visual.blocks.{i}"
        yield f"{block}.norm1.weight", (hidden,)
        yield f"{block}.norm2.weight", (hidden,)
        yield from _linear(f"{block}.attn.qkv", 3 * hidden, hidden)
        yield from _linear(f"{block}.attn.proj", hidden, hidden)
        yield from _linear(f"{block}.mlp.gate_proj", inner, hidden)
        yield from _linear(f"{block}.mlp.up_proj", inner, hidden)
        yield from _linear(f"{block}.mlp.down_proj", hidden, inner)
    yield "visual.merger.ln_q.weight", (hidden,)
    yield from _linear("visual.merger.mlp.0", merge * merge * hidden, merge * merge * hidden)
    yield from _linear("visual.merger.mlp.2", outputs, merge * merge * hidden)


def qwen_image_transformer(width, head_dim, blocks, text_width, token_channels):
    """(name, shape) of every tensor of the Qwen-Image transformer."""
    yield from _linear("img_in", width, token_channels)
    yield "txt_norm.weight", (text_width,)
    yield from _linear("txt_in", width, text_width)
    yield from _linear("time_text_embed.timestep_embedder.linear_1", width, 256)
    yield from _linear("time_text_embed.timestep_embedder.linear_2", width, width)
    for i in range(blocks):
        block = f"transformer_blocks.{i}"
        for part in ("to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"):
            yield from _linear(f"{block}.attn.{part}", width, width)
        for norm in ("norm_q", "norm_k", "norm_added_q", "norm_added_k"):
            yield f"{block}.attn.{norm}.weight", (head_dim,)
        for stream in ("img", "txt"):
            yield from _linear(f"{block}.{stream}_mod.1", 6 * width, width)
            yield from _linear(f"{block}.{stream}_mlp.net.0.proj", 4 * width, width)
            yield from _linear(f"{block}.{stream}_mlp.net.2", width, 4 * width)
    yield from _linear("norm_out.linear", 2 * width, width)
    yield from _linear("proj_out", token_channels, width)
