"""Runs diffusers and orrery alternately and compares their time, memory and results. Started by bench/compare.

Each case runs in two processes of its own, which load the same weights and then take turns: one warm-up each, whose
results are compared, then as many timed runs as --repeats says, of which the median counts. Where other programs took
the cores away a line ends in "(unsteady)". Memory is the process's resident high-water mark (VmHWM), loading included.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# Bars of speed; a case without one is there to be looked at.
END_TO_END, FORWARD, TRANSFER_FORWARD, QWEN_FORWARD, AUTOENCODER = 1.5, 1.3, 1.15, 1.15, 1.5
# How far results may differ, as largest difference over the root mean square: float32 sums in another order; over
# 35 steps a thousandth. In bfloat16 ours may be twice as far from diffusers' float32 result as diffusers' own is.
FLOAT32, MANY_STEPS, BFLOAT16 = 2e-5, 1e-3, 2.0


class Worker:
    """A process that runs a case's operations when told to (bench/workers/worker.h)."""

    def __init__(self, command):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.loaded = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{' '.join(self.command)} ended with code {self.process.wait()}")
        return json.loads(line)

    def run(self, operation, output=""):
        self.process.stdin.write(f"{operation} {output}".strip() + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def distance(got, expected):
    rms = expected.double().pow(2).mean().sqrt()
    return ((got.double().reshape(expected.shape) - expected.double()).abs().max() / rms).item()


class Comparison:
    def __init__(self, options):
        self.options = options
        self.exact = {}  # diffusers' float32 result by title: what bfloat16 is measured by

    def commands(self, program, model, inputs, dtype):
        tail = [model, inputs, dtype, str(self.options.threads)]
        worker = [sys.executable, f"{HERE}/workers/diffusers_worker.py", program]
        ours = f"{self.options.programs}/compare_{program.split('-')[0]}"
        return {"diffusers": worker + tail, "orrery": [ours] + tail}

    def case(self, title, program, operation, model, inputs, dtype="float32", bar=None, tolerance=FLOAT32):
        workers = {side: Worker(command) for side, command in self.commands(program, model, inputs, dtype).items()}
        results, seconds, peaks = {}, {side: [] for side in workers}, {}
        for side, worker in workers.items():
            file = f"{self.options.work}/{side}.output.safetensors"
            worker.run(operation, file)
            results[side] = load_file(file)["output"].clone()
        for _ in range(self.options.repeats):
            for side, worker in workers.items():
                answer = worker.run(operation)
                seconds[side].append(answer["seconds"])
                peaks[side] = answer["peak_bytes"]
        for worker in workers.values():
            worker.close()
        medians = {side: statistics.median(values) for side, values in seconds.items()}
        row = dict(title=title, dtype=dtype, seconds=medians, all_seconds=seconds, peak_bytes=peaks,
                   speedup=medians["diffusers"] / medians["orrery"], bar=bar,
                   load_seconds={side: worker.loaded["seconds"] for side, worker in workers.items()},
                   **self.judge(title, dtype, results, tolerance))
        print(line(row), flush=True)
        return row

    def judge(self, title, dtype, results, tolerance):
        """float32: how far from diffusers. bfloat16: how far from its float32 result, in units of its own distance."""
        if dtype == "float32":
            self.exact[title] = results["diffusers"]
            error = distance(results["orrery"], results["diffusers"])
        else:
            exact = self.exact[title]
            error, tolerance = distance(results["orrery"], exact) / distance(results["diffusers"], exact), BFLOAT16
        return dict(error=error, tolerance=tolerance, agrees=error <= tolerance)


HEADER = (f"{'':42}{'dtype':10}{'diffusers':>11}{'orrery':>11}{'faster':>9}{'bar':>7}"
          f"{'peak diffusers':>16}{'peak orrery':>13}{'error':>10}")


def line(row):
    seconds, peak = row["seconds"], row["peak_bytes"]
    bar = f"{row['bar']:g}x" if row["bar"] else "-"
    text = (f"{row['title']:42}{row['dtype']:10}{seconds['diffusers']:>9.3f} s{seconds['orrery']:>9.3f} s"
            f"{row['speedup']:>8.2f}x{bar:>7}{peak['diffusers'] / 1e6:>13.0f} MB{peak['orrery'] / 1e6:>10.0f} MB"
            f"{row['error']:>10.1e}")
    return text + "".join(f"  {note}" for note in faults(row) + (["(unsteady)"] if unsteady(row) else []))


def unsteady(row):
    """Other programs got in the way: the middle half of a side's runs spreads over more than a quarter."""
    quarters = [statistics.quantiles(runs, n=4) for runs in row["all_seconds"].values() if len(runs) > 1]
    return any(high > 1.25 * low for low, _, high in quarters)


def faults(row):
    found = [] if row["agrees"] else [f"RESULTS DIFFER (at most {row['tolerance']:g})"]
    if row["bar"] and row["speedup"] < row["bar"]:
        found.append("TOO SLOW")
    if row["peak_bytes"]["orrery"] > row["peak_bytes"]["diffusers"]:
        found.append("MORE MEMORY")
    return found


def random_model(options, kind, *arguments):
    """A model of tools/random_checkpoint.py in the working folder, kept for the next time."""
    folder = f"{options.work}/{kind}"
    if not os.path.exists(f"{folder}/config.json"):
        tool = [sys.executable, f"{ROOT}/tools/random_checkpoint.py", kind, folder, *arguments]
        subprocess.run(tool, check=True, stdout=subprocess.DEVNULL)
    return folder


def write_inputs(options, name, **tensors):
    path = f"{options.work}/{name}.safetensors"
    save_file(tensors, path)
    return path


def end_to_end(compare, options):
    generator = torch.Generator().manual_seed(1)
    noise = write_inputs(options, "noise", latents=torch.randn(1, 16, 5, 8, 12, generator=generator))
    model = f"{ROOT}/models/tiny-world"
    with open(f"{model}/tiny_world.json") as f:
        settings = json.load(f)
    names = ("height", "width", "num_frames", "max_sequence_length", "num_inference_steps", "guidance_scale",
             "negative_prompt")
    request = {name: settings[name] for name in names}
    request.update(prompt="a red circle moving right on a white background", init_latents=noise)
    path = f"{options.work}/request.json"
    with open(path, "w") as f:
        json.dump(request, f)
    title = f"tiny-world, prompt to frames, {request['num_inference_steps']} steps"
    for dtype in options.dtypes:
        yield compare.case(title, "generate", "generate", model, path, dtype, bar=END_TO_END, tolerance=MANY_STEPS)


def forward(compare, options):
    model = random_model(options, "transformer", "--heads", "8", "--blocks", "8", "--text-input", "4096")
    generator = torch.Generator().manual_seed(2)
    inputs = write_inputs(options, "forward", latents=torch.randn(16, 5, 24, 40, generator=generator),
                          embeds=torch.randn(512, 4096, generator=generator), sigma=torch.tensor([0.7]))
    for dtype in options.dtypes:
        yield compare.case("forward, prompt known", "forward", "forward", model, inputs, dtype, bar=FORWARD)
        yield compare.case("forward, prompt new", "forward", "prompt+forward", model, inputs, dtype)
        yield compare.case("forward, one time, prompt known", "forward-scalar-time", "forward", model, inputs, dtype)


def transfer_forward(compare, options):
    """A control of weight 0 is left out: it should cost what no control costs. (diffusers is not given one.)"""
    model = f"{options.work}/transfer"
    if not os.path.exists(f"{model}/controlnet/config.json"):
        subprocess.run([sys.executable, f"{HERE}/workers/random_transfer.py", model], check=True)
    generator = torch.Generator().manual_seed(6)
    inputs = write_inputs(options, "transfer-forward", latents=torch.randn(16, 5, 24, 40, generator=generator),
                          hint=torch.randn(16, 5, 24, 40, generator=generator),
                          embeds=torch.randn(512, 4096, generator=generator), sigma=torch.tensor([0.7]))
    for dtype in options.dtypes:
        for operation, title in (("forward", "one control"), ("weight-0", "one control of weight 0"),
                                 ("alone", "no control")):
            yield compare.case(f"Transfer forward, {title}", "transfer_forward", operation, model, inputs, dtype,
                               bar=TRANSFER_FORWARD)


def autoencoder(compare, options):
    model = random_model(options, "vae")
    generator = torch.Generator().manual_seed(3)
    inputs = write_inputs(options, "autoencoder", latents=torch.randn(16, 2, 12, 20, generator=generator),
                          pixels=torch.rand(3, 5, 96, 160, generator=generator) * 2 - 1)
    for dtype in options.dtypes:
        for operation in ("decode", "encode"):
            yield compare.case(f"VAE {operation}, 5 frames 96x160", "autoencoder", operation, model, inputs, dtype,
                               bar=AUTOENCODER)


def qwen_forward(compare, options):
    """Joint attention changes the text in every block, so all that can be known beforehand is the modulation."""
    model = random_model(options, "qwen-image", "--heads", "8", "--blocks", "4", "--text-width", "512")
    generator = torch.Generator().manual_seed(4)
    inputs = write_inputs(options, "qwen-forward", latents=torch.randn(32, 32, 64, generator=generator),
                          embeds=torch.randn(64, 512, generator=generator), sigma=torch.tensor([0.7]))
    for dtype in options.dtypes:
        yield compare.case("Qwen-Image forward, modulation known", "qwen_forward", "forward", model, inputs, dtype,
                           bar=QWEN_FORWARD)
        yield compare.case("Qwen-Image forward, time new", "qwen_forward", "time+forward", model, inputs, dtype)


def qwen_autoencoder(compare, options):
    model = random_model(options, "qwen-image-vae")
    generator = torch.Generator().manual_seed(5)
    inputs = write_inputs(options, "qwen-autoencoder", latents=torch.randn(16, 1, 64, 64, generator=generator),
                          pixels=torch.rand(3, 1, 512, 512, generator=generator) * 2 - 1)
    for dtype in options.dtypes:
        for operation in ("decode", "encode"):
            yield compare.case(f"Qwen-Image VAE {operation}, 512x512", "autoencoder-qwen", operation, model, inputs,
                               dtype, bar=AUTOENCODER)


CASES = {"generate": end_to_end, "forward": forward, "transfer-forward": transfer_forward, "vae": autoencoder,
         "qwen-forward": qwen_forward, "qwen-vae": qwen_autoencoder}


def machine_dtypes():
    with open("/proc/cpuinfo") as f:
        flags = set(f.read().split())
    return ["float32", "bfloat16"] if flags & {"avx512_bf16", "amx_bf16"} else ["float32"]


def parse_arguments():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="bench/compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), help="which cases (default: all)")
    parser.add_argument("--dtypes", nargs="+", choices=["float32", "bfloat16"], default=machine_dtypes(),
                        help="float32 and, where the CPU multiplies it, bfloat16 (float32 is always run first)")
    parser.add_argument("--repeats", type=int, default=5, help="timed runs per side, of which the median counts (5)")
    parser.add_argument("--threads", type=int, default=cores, help=f"for both sides (all cores: {cores})")
    parser.add_argument("--programs", default=f"{ROOT}/build/release/bin", help="folder of the compare_* programs")
    parser.add_argument("--work", default=f"{ROOT}/build/compare-models", help="folder for weights and inputs")
    parser.add_argument("--json", metavar="FILE", help="also write everything measured to FILE")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar of speed or memory is missed")
    options = parser.parse_args()
    options.dtypes = ["float32"] + [d for d in options.dtypes if d != "float32"]
    return options


def main():
    options = parse_arguments()
    os.makedirs(options.work, exist_ok=True)
    load = os.getloadavg()[0]
    print(f"torch {torch.__version__}, {options.threads} threads, medians of {options.repeats}, load {load:.1f}"
          f" at the start\n{HEADER}", flush=True)
    compare = Comparison(options)
    rows = [row for name in options.cases for row in CASES[name](compare, options)]
    if options.json:
        with open(options.json, "w") as f:
            json.dump(dict(machine=platform.platform(), torch=torch.__version__, threads=options.threads,
                           load=load, rows=rows), f, indent=2)
    failed = [row for row in rows if not row["agrees"] or (options.check and faults(row))]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
