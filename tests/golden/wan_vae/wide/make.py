"""Makes this folder: a small random AutoencoderKLWan of diffusers whose levels are 16 channels wide and more, so that every
form of convolution that orrery has is used. python make.py, with diffusers 0.42.1 and torch 2.13.0 on a CPU."""
import json

import torch
from diffusers import AutoencoderKLWan
from safetensors.torch import save_file

torch.manual_seed(7)
vae = AutoencoderKLWan(base_dim=16, z_dim=16, dim_mult=[1, 2, 2, 2], num_res_blocks=1).eval()
with torch.no_grad():
    for name, p in vae.named_parameters():
        fan_in = p[0].numel() if p.dim() > 3 else 1
        p.copy_(1 + 0.1 * torch.randn_like(p) if "gamma" in name else torch.randn_like(p) * (fan_in**-0.5 if fan_in > 1 else 0.1))
        p.copy_(p.bfloat16())
vae.save_pretrained("vae")
state = {k: v.bfloat16().contiguous() for k, v in vae.state_dict().items()}
save_file(state, "vae/diffusion_pytorch_model.safetensors")

tensors, cases = {}, []
mean, std = (torch.tensor(v).view(1, -1, 1, 1, 1) for v in (vae.config.latents_mean, vae.config.latents_std))
frames_unclamped = []
vae.decoder.register_forward_hook(lambda _m, _i, out: frames_unclamped.append(out))
for name, frames, rows, columns in (("f9_48x40", 9, 48, 40), ("f5_24x56", 5, 24, 56)):
    pixels = torch.rand(1, 3, frames, rows, columns) * 2 - 1
    latents = torch.randn(1, 16, (frames - 1) // 4 + 1, rows // 8, columns // 8)
    with torch.inference_mode():
        mu = vae.encode(pixels).latent_dist.mean
        frames_unclamped.clear()
        vae.decode(latents / (1 / std) + mean)
    tensors |= {
        f"{name}/pixels": pixels,
        f"{name}/decode_latents": latents,
        f"{name}/encode.mean": mu,
        f"{name}/encode.latents": (mu - mean) * (1 / std),
        f"{name}/decode.sample_unclamped": torch.cat(frames_unclamped, 2),
    }
    cases.append({"name": name, "functions": ["encode", "decode"]})
save_file({k: v.clone().contiguous() for k, v in tensors.items()}, "golden.safetensors")
case = {
    "checks": "Wan VAE with levels of 16 and 32 channels",
    "function": "diffusers.AutoencoderKLWan.encode / .decode (0.42.1)",
    "weights": "vae/ (diffusers layout, bfloat16, exact)",
    "tolerance": {"float32": {"max_abs": 5e-05}},
    "cases": cases,
}
with open("case.json", "w") as f:
    json.dump(case, f, indent=1)
    f.write("\n")
for k, v in tensors.items():
    print(k, tuple(v.shape), v.square().mean().sqrt().item())
