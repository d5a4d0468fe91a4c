#!/usr/bin/env python3
"""How fast and lean the search is, against the goals below, on made-up keyframes.

    python benchmarks/search.py                        # 1,000,000 keyframes x 512: 5 GB of disk, some ten minutes to make
    python benchmarks/search.py --keyframes 100000     # a tenth of it

Words follow Zipf's law over 50,000 words, 60 to a keyframe; vectors are random. Exit 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from vip.records import Keyframe, Quality
from vip.search import hits
from vip.search.documents import IndexedKeyframe, IndexedVideo, KeyframeTexts
from vip.search.hits import SearchFilter
from vip.search.index import SearchIndex, Source, opened
from vip.search.query_text import parse_query

DIM, VOCABULARY, WORDS, FRAMES = 512, 50_000, 60, 20
MOST_VECTORS_S, MOST_WORDS_S, MOST_OPEN_S, MOST_ADD_S, MOST_MB = 0.3, 0.05, 1.0, 1.0, 1200.0
QUERIES = ("w7 w19", "w3 w150 w2000", "w900 w4000", "w12000", '"w40 w41"', "w1 w2 w3", "w31000 w5 nosuchword")


def videos(first: int, count: int, seed: int) -> Iterator[IndexedVideo]:
    """Yield videos of made-up keyframes."""
    rng = np.random.default_rng(seed)
    for number in range(first, first + count):
        vectors = rng.standard_normal((FRAMES, DIM), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        words = np.minimum(rng.zipf(1.2, (FRAMES, WORDS)), VOCABULARY)
        yield IndexedVideo(
            f"video{number}",
            "made up",
            None,
            (),
            "made-up",
            tuple(_frame(number, place, words[place], vectors[place]) for place in range(FRAMES)),
        )


def _frame(video: int, place: int, words: np.ndarray, vector: np.ndarray) -> IndexedKeyframe:
    record = Keyframe(
        id=f"video{video}:{place:04d}", video_id=f"video{video}", time_s=float(place), pts=place, image_path=f"keyframes/{place}.jpg",
        width_px=640, height_px=360, quality=Quality(sharpness=1, brightness=0.5, contrast=0.2), detections=None, candidate=place,
    )  # fmt: skip
    said = [f"w{word}" for word in words]
    texts = KeyframeTexts(" ".join(said[:40]), said[40], said[41], said[42], " ".join(said[43:48]), said[48], " ".join(said[49:]), "")
    return IndexedKeyframe(record, place - 0.5, place + 0.5, texts, False, vector)


def build(folder: Path, keyframes: int) -> None:
    with opened(folder) as index:
        for start in range(0, keyframes // FRAMES, 2500):
            with index.transaction():
                index.add(Source("made up", f"{start:07d}"), "-", videos(start, min(2500, keyframes // FRAMES - start), start))


def timed(work: Callable[[], object], rounds: int = 5) -> float:
    """Return the median of the seconds of some rounds."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def measure_searches(index: SearchIndex) -> dict[str, float]:
    (embedder,) = index.embedders()
    rng = np.random.default_rng(99)
    query = rng.standard_normal(DIM, dtype=np.float32)
    query /= np.linalg.norm(query)
    nowhere = SearchFilter()
    found = {"vectors_s": timed(lambda: hits.picture_hits(index, embedder, query, nowhere, 100))}
    for text in QUERIES:
        words = parse_query(text)
        found[f"words_s {text}"] = timed(lambda words=words: hits.word_hits(index, words, (), nowhere, 100))
    return found


def peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def child(folder: Path) -> None:
    """Open, search and add in a process of its own, and print the figures."""
    start = time.perf_counter()
    with opened(folder) as index:
        index.count()
        print(f"open_s\t{time.perf_counter() - start}")
        for name, value in measure_searches(index).items():
            print(f"{name}\t{value}")
        more = list(videos(10**8, 1000 // FRAMES, 1))
        start = time.perf_counter()
        with index.transaction():
            index.remove([Source("made up", "more")])
            index.add(Source("made up", "more"), "-", more)
        print(f"add_s\t{time.perf_counter() - start}")
        print(f"peak_mb\t{peak_mb()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keyframes", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="keep the index here, and use the one that is there")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.folder)
        return
    folder = args.folder or Path(tempfile.mkdtemp(prefix="vip-search-"))
    try:
        if not (folder / "index.sqlite").exists():
            start = time.perf_counter()
            build(folder, args.keyframes)
            print(f"made in {time.perf_counter() - start:.0f} s")
        done = subprocess.run([sys.executable, __file__, "--child", "--folder", folder], capture_output=True, text=True, check=True)
    finally:
        if args.folder is None:
            shutil.rmtree(folder)
    goals = {"open_s": MOST_OPEN_S, "vectors_s": MOST_VECTORS_S, "words_s": MOST_WORDS_S, "add_s": MOST_ADD_S, "peak_mb": MOST_MB}
    missed = False
    for line in done.stdout.splitlines():
        name, value = line.split("\t")
        goal = goals[name.partition(" ")[0]]
        missed |= float(value) > goal
        print(f"{name:32} {float(value):10.4f}   goal {goal:g}{'   MISSED' if float(value) > goal else ''}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
