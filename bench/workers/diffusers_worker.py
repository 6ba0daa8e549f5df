"""diffusers' side of bench/compare. Speaks the protocol of worker.h.

    diffusers_worker.py PROGRAM MODEL INPUT DTYPE THREADS

PROGRAM: generate, forward, forward-scalar-time, transfer_forward, qwen_forward, autoencoder or autoencoder-qwen.
"""
import json
import sys
import time

import torch
from safetensors.torch import load_file, save_file

import any_torchvision  # noqa: F401  before diffusers
import diffusers
import transformers
from diffusers import (AutoencoderKLQwenImage, AutoencoderKLWan, Cosmos2_5_PredictBasePipeline,
                       CosmosControlNetModel, CosmosTransformer3DModel, QwenImageTransformer2DModel)


def peak_bytes():
    """As worker.h reads it: the process's resident high-water mark."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


class NoGuardrails:
    """Stands in for the guardrail models, which neither side runs."""

    def to(self, *args, **kwargs):
        return self

    def check_text_safety(self, text):
        return True

    def check_video_safety(self, frames):
        return frames


def generate(model, path, dtype):
    pipe = Cosmos2_5_PredictBasePipeline.from_pretrained(model, safety_checker=NoGuardrails(), dtype=dtype,
                                                         local_files_only=True)
    pipe.set_progress_bar_config(disable=True)
    with open(path) as f:
        request = json.load(f)
    noise = load_file(request.pop("init_latents"))["latents"]
    steps = request["num_inference_steps"]

    def run():
        final = {}

        def keep_last(_, step, __, values):
            if step == steps - 1:
                final.update(values)
            return values

        pipe(**request, latents=noise.clone(), output_type="np", callback_on_step_end=keep_last)
        return final["latents"]

    return {"generate": run}


def forward(model, path, dtype, time_per_frame=True):
    transformer = CosmosTransformer3DModel.from_pretrained(model, dtype=dtype, local_files_only=True).eval()
    given = load_file(path)
    latents, embeds = given["latents"].to(dtype)[None], given["embeds"].to(dtype)[None]
    _, _, frames, height, width = latents.shape
    sigma = given["sigma"]
    # As the pipeline calls it: a time for every latent frame, of which none is given here.
    times = sigma.expand(1, 1, frames, 1, 1) if time_per_frame else sigma
    mask = torch.zeros(1, 1, frames, height, width, dtype=dtype)
    padding = torch.zeros(1, 1, 8 * height, 8 * width, dtype=dtype)

    def run():
        return transformer(hidden_states=latents, condition_mask=mask, timestep=times, encoder_hidden_states=embeds,
                           padding_mask=padding, return_dict=False)[0][0]

    return {"forward": run, "prompt+forward": run}


def forward_scalar_time(model, path, dtype):
    return forward(model, path, dtype, time_per_frame=False)


def transfer_forward(model, path, dtype):
    options = dict(dtype=dtype, local_files_only=True)
    transformer = CosmosTransformer3DModel.from_pretrained(f"{model}/transformer", **options).eval()
    controlnet = CosmosControlNetModel.from_pretrained(f"{model}/controlnet", **options).eval()
    given = load_file(path)
    latents, hint, embeds = (given[name].to(dtype)[None] for name in ("latents", "hint", "embeds"))
    _, _, frames, height, width = latents.shape
    shared = dict(timestep=given["sigma"].expand(1, 1, frames, 1, 1), encoder_hidden_states=embeds,
                  condition_mask=torch.zeros(1, 1, frames, height, width, dtype=dtype),
                  padding_mask=torch.zeros(1, 1, 8 * height, 8 * width, dtype=dtype), return_dict=False)

    def alone(hints=None):
        return transformer(hidden_states=latents, block_controlnet_hidden_states=hints, **shared)[0][0]

    def run():
        return alone(controlnet(controls_latents=hint, latents=latents, conditioning_scale=1.0, **shared)[0])

    return {"forward": run, "weight-0": alone, "alone": alone}


def qwen_forward(model, path, dtype):
    transformer = QwenImageTransformer2DModel.from_pretrained(model, dtype=dtype, local_files_only=True).eval()
    given = load_file(path)
    latents, embeds, sigma = given["latents"].to(dtype), given["embeds"].to(dtype)[None], given["sigma"]
    rows, columns, _ = latents.shape
    packed = latents.flatten(0, 1)[None]

    def run():
        return transformer(hidden_states=packed, encoder_hidden_states=embeds, timestep=sigma,
                           img_shapes=[[(1, rows, columns)]], return_dict=False)[0][0]

    return {"forward": run, "time+forward": run}


def autoencoder(model, path, dtype, vae_class=AutoencoderKLWan):
    vae = vae_class.from_pretrained(model, dtype=dtype, local_files_only=True).eval()
    given = load_file(path)
    latents, pixels = given["latents"].to(dtype)[None], given["pixels"].to(dtype)[None]
    return {"decode": lambda: vae.decode(latents, return_dict=False)[0][0],
            "encode": lambda: vae.encode(pixels).latent_dist.mode()[0]}


def autoencoder_qwen(model, path, dtype):
    return autoencoder(model, path, dtype, AutoencoderKLQwenImage)


def answer(**values):
    print(json.dumps(values), flush=True)


@torch.inference_mode()
def main():
    case, model, path, dtype, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    for library in (diffusers, transformers):
        library.utils.logging.set_verbosity_error()
        library.utils.logging.disable_progress_bar()
    start = time.perf_counter()
    operations = globals()[case.replace("-", "_")](model, path, getattr(torch, dtype))
    answer(ready=True, seconds=time.perf_counter() - start, peak_bytes=peak_bytes())
    for line in sys.stdin:
        name, _, output = line.strip().partition(" ")
        start = time.perf_counter()
        result = operations[name]()
        seconds = time.perf_counter() - start
        if output:
            save_file({"output": result.float().contiguous()}, output)
        answer(seconds=seconds, peak_bytes=peak_bytes())


if __name__ == "__main__":
    main()
