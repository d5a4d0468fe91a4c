#!/usr/bin/env python3
"""Pictures a second of the embedder `clip` beside the loop of open_clip's README, and of `vip extract --embedder clip` as a whole.

    python benchmarks/embed.py                       # on the GPU if there is one, else on the CPU: ten minutes on two cores
    python benchmarks/embed.py --device cpu --json embed.json
    python benchmarks/embed.py --quick               # tries the machinery; its figures mean nothing

The model is ViT-B-32 with random weights, which are as fast as trained ones. All rates include preprocessing from uint8 arrays
of 640x360 in memory and are medians of rounds in turn, so that other work on the machine hits all alike. Needs the extra
`clip`, and the program ffmpeg. Exit 1 if a goal is missed: on a CPU with AMX 5 times the loop of one picture at a time and 2.5
times that of batches, in fp32 as in the README; on a GPU 10,000 pictures a second and 0.85 of the bare model on ready tensors.
On any CPU: 2 GB for an hour of video.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import measure

SAMPLE = Path(__file__).resolve().parents[1] / "examples" / "sample.mp4"
ARCH, QUICK_ARCH = "ViT-B-32", "ViT-S-32-alt"
README_BATCH = 32
BARE_BATCHES = (128, 256, 512, 1024)
HOUR_S, LOADED_S = 3600, 600
MOST_MB = 2000.0

Rates = dict[str, float]


def main() -> int:
    options = _options()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        arch = QUICK_ARCH if options.quick else ARCH
        checkpoint = Path(folder) / "weights.pt"
        _write_weights(arch, checkpoint)
        found = _measured(arch, checkpoint, Path(folder), options)
    missed = _goals(found)
    if options.json:
        options.json.write_text(json.dumps({**found, "missed": missed}, indent=2) + "\n")
    for line in missed:
        print(f"MISSED: {line}")
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few pictures, a short video and a small model")
    parser.add_argument("--json", type=Path, help="write the figures there")
    return parser.parse_args()


def _write_weights(arch: str, path: Path) -> None:
    import open_clip
    import torch

    torch.manual_seed(0)
    torch.save(open_clip.create_model(arch, pretrained=None).state_dict(), path)


def _measured(arch: str, checkpoint: Path, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    from vip.models.clip.embedder import OpenClipEmbedder

    embedder = OpenClipEmbedder(f"{arch}@{checkpoint}", device=options.device)
    device = embedder.capabilities.device
    print(f"{arch} on {device}; {_processor()}")
    rates = _stage(embedder, arch, checkpoint, options)
    for name, rate in rates.items():
        print(f"{name:40s} {rate:10.1f} pictures/s")
    whole = _whole(arch, checkpoint, folder, options)
    for name, value in whole.items():
        print(f"{name:40s} {value:10.1f}")
    return {"device": device, "processor": _processor(), "amx": _has_amx(), "rates": rates, "whole": whole, "quick": options.quick}


# ---------------------------------------------------------------- the stage


def _stage(embedder: Any, arch: str, checkpoint: Path, options: argparse.Namespace) -> Rates:
    """Pictures a second of each way to embed the same pictures."""
    device = embedder.capabilities.device.split()[0]
    on_gpu = device != "cpu"
    few, many = (8, 32) if options.quick else (32, 20_480 if on_gpu else 192)
    pictures = _pictures(min(many, 512))
    many_pictures = [pictures[number % len(pictures)] for number in range(many)]
    one, batched = _readme_loops(arch, checkpoint, device)
    ways: dict[str, tuple[Callable[[Sequence[np.ndarray]], None], Sequence[np.ndarray]]] = {
        "README, one at a time": (one, pictures[:few]),
        f"README, batches of {README_BATCH}": (batched, pictures[: max(few, README_BATCH)]),
        "vip": (lambda given: embedder.embed_images(given) is None, many_pictures),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(1 + options.rounds):
        for name, (way, given) in ways.items():
            start = time.perf_counter()
            way(given)
            if number:  # the first round warms up
                seconds[name].append((time.perf_counter() - start) / len(given))
    rates = {name: 1 / statistics.median(spent) for name, spent in seconds.items()}
    if on_gpu:
        rates["bare model, ready tensors"] = max(_bare(arch, checkpoint, embedder._hardware, batch) for batch in BARE_BATCHES)
    return rates


def _pictures(count: int) -> list[np.ndarray]:
    """Frames of the sample video, uint8 (360, 640, 3)."""
    from vip.video import Video

    with Video(SAMPLE) as video:
        shown = video.index.shown_pts
        wanted = shown[np.linspace(0, len(shown) - 1, min(count, len(shown))).astype(int)]
        return [frame.image for frame in video.frames(wanted.tolist(), longest_side_px=640)]


def _readme_loops(
    arch: str, checkpoint: Path, device: str
) -> tuple[Callable[[Sequence[np.ndarray]], None], Callable[[Sequence[np.ndarray]], None]]:
    """open_clip's README: its transform on PIL pictures, fp32, one at a time, and stacked."""
    import open_clip
    import torch
    from PIL import Image

    model, _, transform = open_clip.create_model_and_transforms(arch, pretrained=str(checkpoint), device=device)
    model.eval()

    def encode(pictures: Sequence[np.ndarray]) -> None:
        with torch.no_grad():
            pixels = torch.stack([transform(Image.fromarray(picture)) for picture in pictures]).to(device)
            vectors = model.encode_image(pixels)
            vectors /= vectors.norm(dim=-1, keepdim=True)
            vectors.cpu()

    def one(pictures: Sequence[np.ndarray]) -> None:
        for picture in pictures:
            encode([picture])

    def batched(pictures: Sequence[np.ndarray]) -> None:
        for start in range(0, len(pictures), README_BATCH):
            encode(pictures[start : start + README_BATCH])

    return one, batched


def _bare(arch: str, checkpoint: Path, hardware: Any, batch: int) -> float:
    """Pictures a second of open_clip's model alone, on tensors that are on the GPU in the same precision."""
    import open_clip
    import torch

    model = open_clip.create_model(arch, pretrained=str(checkpoint), precision=hardware.precision, device=hardware.device).eval()
    pixels = torch.randn(batch, 3, 224, 224, device=hardware.device, dtype=hardware.dtype)
    with torch.inference_mode():
        for repeats in (3, 20):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(repeats):
                model.encode_image(pixels)
            torch.cuda.synchronize()
    return 20 * batch / (time.perf_counter() - start)


# ---------------------------------------------------------------- the whole


def _whole(arch: str, checkpoint: Path, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """`vip extract` as a process, and how long the same choice takes in a process that has the model loaded."""
    import vip

    hour, video = _long(folder, 60 if options.quick else HOUR_S), _long(folder, 30 if options.quick else LOADED_S)
    keyframes = 8 if options.quick else 32
    name = f"clip:{arch}@{checkpoint}"
    program = [sys.executable, "-m", "vip", "extract", hour, "-n", str(keyframes), "--device", options.device, "--embedder", name]
    done = measure([*program, "-o", folder / "run", "--overwrite", "-q"], watch=True)
    seconds: dict[str, list[float]] = {"classic": [], name: []}
    candidates = 0
    for number in range(1 + options.rounds):
        for embedder, spent in seconds.items():
            start = time.perf_counter()
            device = options.device if embedder == name else "auto"
            run = vip.extract(video, out=folder / f"{number}{len(embedder)}", embedder=embedder, device=device, keyframes=keyframes)
            candidates = len(run.candidates)
            if number:
                spent.append(time.perf_counter() - start)
    loaded = {embedder: statistics.median(spent) for embedder, spent in seconds.items()}
    return {
        "vip extract, an hour: seconds": done.wall_s,
        "vip extract, an hour: MB": done.peak_mb,
        "model loaded, ten minutes: candidates": float(candidates),
        "model loaded, ten minutes: candidates/s": candidates / loaded[name],
        "times as long as with classic": loaded[name] / loaded["classic"],
    }


def _long(folder: Path, seconds: float) -> Path:
    """The sample video again and again."""
    video = folder / f"{seconds:.0f}.mp4"
    times = int(seconds // 26)
    ffmpeg = shutil.which("ffmpeg") or "ffmpeg"
    command = [ffmpeg, "-v", "error", "-stream_loop", str(times), "-i", str(SAMPLE), "-c", "copy", "-an", str(video)]
    subprocess.run(command, check=True)
    return video


# ---------------------------------------------------------------- goals


def _goals(found: dict[str, Any]) -> list[str]:
    """What was promised and is missed, in words."""
    rates, whole = found["rates"], found["whole"]
    mine, one, batched = rates["vip"], rates["README, one at a time"], rates[f"README, batches of {README_BATCH}"]
    print(f"vip: {mine / one:.2f} times the README's loop, {mine / batched:.2f} times its batches")
    if found["quick"]:
        return []
    memory_mb = whole["vip extract, an hour: MB"]
    on_gpu = "bare model, ready tensors" in rates
    goals = [(on_gpu or memory_mb <= MOST_MB, f"{memory_mb:.0f} MB for an hour, {MOST_MB:.0f} allowed")]
    if on_gpu:
        share = mine / rates["bare model, ready tensors"]
        print(f"vip: {share:.2f} of the bare model")
        goals += [(mine >= 10_000, f"{mine:.0f} pictures/s, 10,000 asked"), (share >= 0.85, f"{share:.2f} of the bare model, 0.85 asked")]
    elif found["amx"]:
        goals += [(mine >= 5 * one, f"{mine / one:.2f} times one at a time, 5 asked")]
        goals += [(mine >= 2.5 * batched, f"{mine / batched:.2f} times batches, 2.5 asked")]
    else:
        print("This CPU has no AMX: nothing is asked of its speed.")
    return [words for met, words in goals if not met]


def _has_amx() -> bool:
    return "amx_bf16" in _cpuinfo()


def _processor() -> str:
    name = next((line.partition(":")[2].strip() for line in _cpuinfo().splitlines() if line.startswith("model name")), "unknown CPU")
    return f"{name}{', AMX' if _has_amx() else ', no AMX'}"


def _cpuinfo() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
