"""Loads and runs checkpoints of full size on this machine and compares with the bars. Started by bench/full-size.

    load    the 2 B official .pt, once it is in the page cache: under 3 s
    step    one step at 192x320x17 from embeddings with --weights mapped, in float32: peak memory under 6.5 GB
    text    a prompt through 28 layers of width 3,584 into the same step: it runs to the end (values that are not finite
            would stop it)
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LOAD_SECONDS, STEP_BYTES = 3.0, 6.5e9
NEEDED_DISK = 6e9


def make(kind, out, *arguments):
    if not os.path.exists(out):
        subprocess.run([sys.executable, f"{ROOT}/tools/random_checkpoint.py", kind, out, *arguments], check=True)
    return out


def run(command):
    """Standard output, seconds and peak resident bytes of a program, of which mapped files are part."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)  # unlike getrusage, of this child alone
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with code {process.returncode}")
    return output, time.perf_counter() - start, usage.ru_maxrss * 1024


class Bars:
    def __init__(self):
        self.missed = 0

    def check(self, what, value, bar, unit, scale=1):
        missed = value >= bar
        self.missed += missed
        print(f"  {what}: {value / scale:.2f} {unit}, bar {bar / scale:g} {unit}: {'MISSED' if missed else 'met'}",
              flush=True)


def load(options, checkpoint, bars):
    print("load, from the page cache", flush=True)
    with open(checkpoint, "rb") as f:
        while f.read(1 << 24):
            pass
    for dtype in options.dtypes:
        output, _, peak = run([f"{options.programs}/compare_load", checkpoint, dtype])
        times = json.loads(output)
        bars.check(f"{dtype}, open {times['open_seconds']:.2f} s and weights {times['weights_seconds']:.2f} s",
                   times["open_seconds"] + times["weights_seconds"], LOAD_SECONDS, "s")
        print(f"  peak memory {peak / 1e9:.2f} GB", flush=True)


def generate(options, checkpoint, dtype, *arguments):
    output = f"{options.work}/{dtype}.mp4"
    command = [f"{options.programs}/orrery", "generate", "-m", checkpoint, "--weights", "mapped", "--dtype", dtype,
               "-W", "320", "-H", "192", "--num-frames", "17", "--num-inference-steps", "1", "--quiet", "-o", output]
    _, seconds, peak = run(command + list(arguments))
    with open(output.replace(".mp4", ".json")) as f:
        stages = json.load(f)["seconds"]
    print(f"  {dtype}: {seconds:.1f} s in all;", ", ".join(f"{name} {s:.1f} s" for name, s in stages.items()),
          flush=True)
    return peak


def step(options, checkpoint, bars):
    print("one step at 192x320x17 from embeddings, weights mapped", flush=True)
    embeds = make("embeddings", f"{options.work}/embeds.safetensors")
    negative = make("embeddings", f"{options.work}/negative.safetensors", "--seed", "1")
    for dtype in options.dtypes:
        peak = generate(options, checkpoint, dtype, "--prompt-embeds", embeds, "--negative-prompt-embeds", negative)
        bars.check("peak memory", peak, STEP_BYTES, "GB", 1e9)


def text(options, checkpoint, bars):
    print("the same from a prompt, text encoder 28 x 3,584", flush=True)
    encoder = make("text-encoder", f"{options.work}/text_encoder")
    for dtype in options.dtypes:
        peak = generate(options, checkpoint, dtype, "--text-encoder", encoder, "-p", "a robot waters the flowers")
        print(f"  peak memory {peak / 1e9:.2f} GB", flush=True)


def machine_dtypes():
    with open("/proc/cpuinfo") as f:
        flags = set(f.read().split())
    return ["float32", "bfloat16"] if flags & {"avx512_bf16", "amx_bf16"} else ["float32"]


def main():
    parser = argparse.ArgumentParser(prog="bench/full-size", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtypes", nargs="+", choices=["float32", "bfloat16"], default=machine_dtypes(),
                        help="float32 and, where the CPU multiplies it, bfloat16")
    parser.add_argument("--programs", default=f"{ROOT}/build/release/bin", help="folder of orrery and compare_load")
    parser.add_argument("--work", default=f"{ROOT}/build/full-size", help="folder for the checkpoints")
    parser.add_argument("--keep", action="store_true", help="leave the checkpoints there for the next time")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    free = shutil.disk_usage(options.work).free
    if free < NEEDED_DISK and not os.path.exists(f"{options.work}/base"):
        sys.exit(f"{options.work} has {free / 1e9:.1f} GB free; expected {NEEDED_DISK / 1e9:.0f} GB")
    bars = Bars()
    try:
        model = make("official", f"{options.work}/model")
        checkpoint = f"{model}/base/post-trained/random_ema_bf16.pt"
        for part in (load, step, text):
            part(options, checkpoint, bars)
    finally:
        if not options.keep:
            shutil.rmtree(options.work)
    print(f"{bars.missed} bars missed" if bars.missed else "all bars met")
    return 1 if bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())
