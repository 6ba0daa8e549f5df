"""A random Cosmos-Transfer model of middle size: OUT/transformer and OUT/controlnet, in bfloat16.

    random_transfer.py OUT
"""
import math
import sys

import torch

import any_torchvision  # noqa: F401  before diffusers
from diffusers import CosmosControlNetModel, CosmosTransformer3DModel

SHARED = dict(num_attention_heads=8, attention_head_dim=128, adaln_lora_dim=256, mlp_ratio=4.0, text_embed_dim=1024,
              max_size=(128, 240, 240), patch_size=(1, 2, 2), rope_scale=(1.0, 3.0, 3.0), extra_pos_embed_type=None,
              use_crossattn_projection=True, crossattn_proj_in_channels=4096, encoder_hidden_states_channels=1024,
              img_context_dim_in=None)


def randomize(model, generator):
    for name, p in model.named_parameters():
        values = torch.randn(p.shape, generator=generator)
        if p.dim() > 1:
            p.data = values / math.sqrt(p[0].numel())
        else:
            p.data = values * 0.1 + (0 if name.endswith("bias") else 1)


def main():
    out = sys.argv[1]
    generator = torch.Generator().manual_seed(6)
    base = CosmosTransformer3DModel(in_channels=17, out_channels=16, num_layers=8, concat_padding_mask=True,
                                    controlnet_block_every_n=2, **SHARED)
    control = CosmosControlNetModel(n_controlnet_blocks=4, in_channels=130, latent_channels=18, model_channels=1024,
                                    **SHARED)
    for model in (base, control):
        randomize(model, generator)
    # What the ControlNet repeats of the base.
    control.patch_embed_base.load_state_dict(base.patch_embed.state_dict())
    control.time_embed.load_state_dict(base.time_embed.state_dict())
    control.crossattn_proj.load_state_dict(base.crossattn_proj.state_dict())
    base.to(torch.bfloat16).save_pretrained(f"{out}/transformer")
    control.to(torch.bfloat16).save_pretrained(f"{out}/controlnet")


if __name__ == "__main__":
    main()
