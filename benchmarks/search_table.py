#!/usr/bin/env python3
"""How much of an exact search a search in very many keyframes finds, and how lean its index is to build, against the goals below.

    python benchmarks/search_table.py                     # 5,000,000 vectors x 512: 25 GB of disk, half an hour
    python benchmarks/search_table.py --kind random       # without any likeness: the hardest there are
    python benchmarks/search_table.py --keyframes 3000000

Needs the extra `search`. The vectors go through the index as those of a data set do: first to files, then to a table of LanceDB. Those of
the kind `alike` lie as vectors of CLIP do: all in one cone, by topics, 20 keyframes of a video close together. They are searched with
pictures (near a keyframe) and with texts (in a cone of their own, far from all). Exit 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from search import peak_mb

from vip.protocols import SilentObserver
from vip.records import Keyframe, Quality
from vip.search.documents import IndexedKeyframe, IndexedVideo, KeyframeTexts
from vip.search.index import Source, opened
from vip.search.update import settle_vectors, train_tables

Kind = Literal["alike", "random"]
Rows = npt.NDArray[np.float32]

DIM, FRAMES, BLOCK, TOPICS, QUERIES, WANTED, FOUND = 512, 20, 50_000, 500, 50, 10, 100
LEAST_RECALL, MOST_MB = 0.95, 4096.0
RECORD = Keyframe(
    id="made-up:0", video_id="made-up", time_s=0.0, pts=0, image_path="keyframes/0.jpg",
    width_px=640, height_px=360, quality=Quality(sharpness=1, brightness=0.5, contrast=0.2), detections=None, candidate=0,
)  # fmt: skip


def unit(rows: Rows) -> Rows:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), np.float32)


def noise(rng: np.random.Generator, count: int, length: float) -> Rows:
    return np.float32(length / DIM**0.5) * rng.standard_normal((count, DIM), dtype=np.float32)


def block(kind: Kind, number: int) -> Rows:
    """Return the vectors of one block of keyframes."""
    rng = np.random.default_rng([1, number])
    if kind == "random":
        return unit(noise(rng, BLOCK, 1))
    fixed = np.random.default_rng(0)
    cone, topics = unit(noise(fixed, 1, 1)), unit(noise(fixed, TOPICS, 1))
    videos = cone / 2 + topics[rng.integers(0, TOPICS, BLOCK // FRAMES)] / 2 + noise(rng, BLOCK // FRAMES, 0.5)
    return unit(np.repeat(videos, FRAMES, axis=0) + noise(rng, BLOCK, 0.5))


def queries(kind: Kind) -> dict[str, Rows]:
    """Return what is searched for, by its name."""
    rng, fixed = np.random.default_rng(2), np.random.default_rng(0)
    if kind == "random":
        return {"random": unit(noise(rng, QUERIES, 1))}
    _, topics, other_cone = noise(fixed, 1, 1), unit(noise(fixed, TOPICS, 1)), unit(noise(rng, 1, 1))
    near = block(kind, 0)[rng.integers(0, BLOCK, QUERIES)]
    texts = 0.8 * other_cone + 0.3 * topics[rng.integers(0, TOPICS, QUERIES)] + 0.2 * topics[rng.integers(0, TOPICS, QUERIES)]
    return {"pictures": unit(near + noise(rng, QUERIES, 0.4)), "texts": unit(texts + noise(rng, QUERIES, 0.5))}


def videos(rows: Rows) -> Iterator[IndexedVideo]:
    nothing = KeyframeTexts(*("" for _ in KeyframeTexts._fields))
    for start in range(0, len(rows), FRAMES):
        frames = tuple(IndexedKeyframe(RECORD, None, None, nothing, False, row) for row in rows[start : start + FRAMES])
        yield IndexedVideo("made up", "made up", None, (), "made-up", frames)


def build(folder: Path, kind: Kind, keyframes: int) -> None:
    start, observer = time.perf_counter(), SilentObserver()
    with opened(folder) as index:
        for number in range(keyframes // BLOCK):
            with index.transaction():
                index.add(Source("made up", f"{number}"), "-", videos(block(kind, number)))
            settle_vectors(index, observer)
        print(f"written\t{time.perf_counter() - start}", flush=True)
        train_tables(index, observer)
    print(f"made\t{time.perf_counter() - start}")
    print(f"peak_mb\t{peak_mb()}")


def measure(folder: Path, kind: Kind, keyframes: int) -> None:
    """Compare each search with an exact one in all vectors."""
    asked = queries(kind)
    best: dict[str, list[tuple[Rows, npt.NDArray[np.int64]]]] = {name: [] for name in asked}
    for number in range(keyframes // BLOCK):
        rows = block(kind, number)
        for name, wanted in asked.items():
            cosines = wanted @ rows.T
            places = np.argpartition(-cosines, WANTED, axis=1)[:, :WANTED]
            best[name].append((np.take_along_axis(cosines, places, 1), places + number * BLOCK))
    with opened(folder) as index:
        (embedder,) = index.embedders()
        vectors = index.vectors(embedder)
        for name, wanted in asked.items():
            cosines, slots = (np.concatenate(column, axis=1) for column in zip(*best[name], strict=True))
            exact = np.take_along_axis(slots, np.argsort(-cosines, axis=1)[:, :WANTED], 1)
            shares, seconds = [], []
            for query, truth in zip(wanted, exact, strict=True):
                start = time.perf_counter()
                found = vectors.nearest(query, FOUND).slots[:WANTED]
                seconds.append(time.perf_counter() - start)
                shares.append(len(np.intersect1d(found, truth)) / WANTED)
            print(f"recall {name}\t{statistics.mean(shares)}")
            print(f"seconds {name}\t{statistics.median(seconds)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keyframes", type=int, default=5_000_000)
    parser.add_argument("--kind", choices=get_args(Kind), default="alike")
    parser.add_argument("--folder", type=Path, help="keep the index here, and use the one that is there")
    parser.add_argument("--child", choices=("build", "measure"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        {"build": build, "measure": measure}[args.child](args.folder, args.kind, args.keyframes)
        return
    folder = args.folder or Path(tempfile.mkdtemp(prefix="vip-search-"))
    missed = False
    try:
        for step in ("measure",) if (folder / "index.sqlite").exists() else ("build", "measure"):
            command = [
                sys.executable,
                __file__,
                "--child",
                step,
                "--folder",
                folder,
                "--kind",
                args.kind,
                "--keyframes",
                str(args.keyframes),
            ]
            for line in subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
                name, value = line.split("\t")
                is_missed = (name.startswith("recall") and float(value) < LEAST_RECALL) or (name == "peak_mb" and float(value) > MOST_MB)
                goal = f"   goal {LEAST_RECALL}" if name.startswith("recall") else f"   goal {MOST_MB:g}" if name == "peak_mb" else ""
                print(f"{name:20} {float(value):10.4f}{goal}{'   MISSED' if is_missed else ''}", flush=True)
                missed |= is_missed
    finally:
        if args.folder is None:
            shutil.rmtree(folder)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
