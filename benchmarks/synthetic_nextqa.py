#!/usr/bin/env python3
"""Do the models of NExT-QA see, and do they see order? Questions and features made by rule, in the published forms of NExT-QA.

    python benchmarks/synthetic_nextqa.py                            # all models on all three sets, on the CPU
    python benchmarks/synthetic_nextqa.py --models evqa hga --sets seen --out FOLDER

A video shows things; each thing is a random vector, and each clip that shows it is this vector with noise. Three sets of questions:

- seen: one thing a video. "what is seen in the video": the thing among five. The words say nothing: without the video a model gets 20 %.
- order: two things, one after the other. "what is seen first" or "last". Every video has a twin with the same clips in reverse order, so
  the set of clips says nothing about first and last: without the order a model gets 50 %, without the video 20 %.
- shuffled: the control. The questions of order, with the clips of each video in random order: only luck gives more than 50 %.

Every figure is of one run of `vip train`, `vip predict` and `vip score` on these files, with the settings that are printed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, permutations
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt

THINGS = ("dog", "cat", "car", "ball", "tree", "chair")
OPTIONS = 5
CLIPS, APPEARANCE, MOTION, SIDE = 8, 16, 16, 7
NOISE = 0.3
VIDEOS = {"train": 600, "val": 120, "test": 360}
"""Multiples of 120: all ordered pairs of things, their twins, first and last."""
SETS = ("seen", "order", "shuffled")
MODELS = ("blind-qa", "evqa", "evqa-multiply", "stvqa", "co-mem", "hme", "hcrn", "hga", "psac", "psac-plus")
SETTINGS = ("model.hidden=32", "words.size=32", "training.learning_rate=0.005")
EPOCHS = {"seen": 8, "order": 20, "shuffled": 20}
EXTRA = {"evqa-multiply": ("model.fusion=multiply",), "hga": ("model.fusion=160",), "psac": ("model.head_size=16",)}
EXTRA |= {"psac-plus": EXTRA["psac"], "stvqa": ("model.attention=16",), "hme": ("model.attention=32",), "hcrn": ("model.frames=5",)}
COLUMNS = ["video", "frame_count", "width", "height", "question", "answer", "qid", "type", *(f"a{place}" for place in range(OPTIONS))]
SEEN_AT_LEAST, CHANCE, ORDERLESS, DEVIATIONS = 0.90, 1 / OPTIONS, 1 / 2, 3
"""Goals: the accuracy of who sees, of who sees nothing, and of who sees no order; how many standard errors luck may add."""
BLIND = ("blind-qa", "evqa")
"""EVQA adds the video to the words: that changes the scores of all options by the same number, so it is blind among them."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Video:
    """What a video shows."""

    id: str
    things: tuple[int, ...]
    """The thing of each clip."""
    clips: Floats
    """(CLIPS, APPEARANCE + MOTION)."""


@dataclass(frozen=True)
class Asked:
    """A question about a video."""

    video: Video
    text: str
    type: str
    right: int
    wrong: tuple[int, ...]


def thing_vectors(seed: int) -> Floats:
    """Return a vector a thing, (THINGS, APPEARANCE + MOTION)."""
    return np.random.default_rng(seed).normal(size=(len(THINGS), APPEARANCE + MOTION)).astype(np.float32)


def make_videos(kind: str, count: int, vectors: Floats, random: np.random.Generator, first_id: int) -> Iterator[Video]:
    """Yield `count` videos of a set, all pairs of things equally often; those of order and shuffled come as twins."""
    made, pairs = 0, cycle(permutations(range(len(THINGS)), 2))
    while made < count:
        shown = next(pairs)
        switch = int(random.integers(2, CLIPS - 1))
        things = np.where(np.arange(CLIPS) < switch, shown[0], shown[1]) if kind != "seen" else np.repeat(shown[0], CLIPS)
        clips = (vectors[things] + NOISE * random.normal(size=(CLIPS, vectors.shape[1]))).astype(np.float32)
        for _ in range(1 if kind == "seen" else 2):
            order = random.permutation(CLIPS) if kind == "shuffled" else np.arange(CLIPS)
            yield Video(str(first_id + made), tuple(int(thing) for thing in things), clips[order])
            made += 1
            things, clips = things[::-1], clips[::-1]


def ask(kind: str, video: Video, number: int, random: np.random.Generator) -> Asked:
    """Return the question about the video of this number; `things` of a shuffled video are still in their first order.

    Each thing is right equally often, for first and for last, so that the words say nothing.
    """
    first, last = video.things[0], video.things[-1]
    others = [thing for thing in random.permutation(len(THINGS)).tolist() if thing not in (first, last)]
    if kind == "seen":
        return Asked(video, "what is seen in the video", "DO", first, tuple(others[: OPTIONS - 1]))
    if number // (2 * len(THINGS) * (len(THINGS) - 1)) % 2 == 0:
        return Asked(video, "what is seen first", "TP", first, (last, *others[: OPTIONS - 2]))
    return Asked(video, "what is seen last", "TN", last, (first, *others[: OPTIONS - 2]))


def make_set(kind: str, folder: Path, *, seed: int = 1, videos: dict[str, int] | None = None) -> None:
    """Write train.csv, val.csv, test.csv, app_mot.h5 (ids, feat) and maps.h5 of a set into a new folder."""
    folder.mkdir(parents=True)
    vectors, random = thing_vectors(seed), np.random.default_rng([seed, SETS.index(kind)])
    made: list[Video] = []
    for split, count in (videos or VIDEOS).items():
        of_split = list(make_videos(kind, count, vectors, random, first_id=1_000_000 + len(made)))
        _write_questions(folder / f"{split}.csv", [ask(kind, video, number, random) for number, video in enumerate(of_split)], random)
        made += of_split
    _write_features(folder, made, random)


def _write_questions(path: Path, asked: Sequence[Asked], random: np.random.Generator) -> None:
    """Write questions with their right options at each place equally often."""
    places = random.permutation(np.arange(len(asked)) % OPTIONS)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for number, (one, place) in enumerate(zip(asked, places.tolist(), strict=True)):
            options = [THINGS[thing] for thing in random.permutation(one.wrong)]
            options.insert(place, THINGS[one.right])
            rows.writerow([one.video.id, CLIPS * 16, 640, 480, one.text, place, number, one.type, *options])


def _write_features(folder: Path, videos: Sequence[Video], random: np.random.Generator) -> None:
    """Write the features, and maps of which a quarter of the places shows the thing and all others noise."""
    ids = np.array([int(video.id) for video in videos])
    with h5py.File(folder / "app_mot.h5", "w") as file:
        file["ids"] = ids
        file["feat"] = np.stack([video.clips for video in videos])
        file["feat"].attrs["appearance"] = APPEARANCE
    with h5py.File(folder / "maps.h5", "w") as file:
        file["ids"] = ids
        maps = file.create_dataset("feat", (len(videos), CLIPS, APPEARANCE + MOTION, SIDE, SIDE), np.float32)
        maps.attrs["appearance"] = APPEARANCE
        for row, video in enumerate(videos):
            maps[row] = _maps(video.clips, random)


def _maps(clips: Floats, random: np.random.Generator) -> Floats:
    """Return (CLIPS, D, 7, 7): each clip's vector in a square of 4 × 4 at a random place, noise elsewhere."""
    maps = NOISE * random.normal(size=(*clips.shape, SIDE, SIDE)).astype(np.float32)
    for clip, (row, column) in enumerate(random.integers(0, SIDE - 3, size=(len(clips), 2)).tolist()):
        maps[clip, :, row : row + 4, column : column + 4] += clips[clip, :, None, None]
    return maps.astype(np.float32)


# ---------------------------------------------------------------- runs


@dataclass(frozen=True)
class Result:
    """One model on one set."""

    accuracy: float
    """From 0 to 1, on questions that neither train nor val has."""
    questions: int
    seconds: float


def run(model: str, kind: str, out: Path) -> Result:
    """Train a model on a set, answer its test questions, and score the answers."""
    data, out = out / kind, out / kind / model
    name = model.removesuffix("-multiply")
    features = ["--features", str(data / ("maps.h5" if name == "stvqa" else "app_mot.h5"))] if name != "blind-qa" else []
    began = time.perf_counter()
    sets = [part for setting in (*SETTINGS, *EXTRA.get(model, ()), f"training.epochs={EPOCHS[kind]}") for part in ("--set", setting)]
    _vip("train", "nextqa-mc", "--model", name, "--annotations", str(data), "-o", str(out / "run"), "--device", "cpu", *features, *sets)
    predictions = str(out / "predictions.jsonl")
    task = ("--task", "nextqa-mc", "--annotations", str(data / "test.csv"))
    _vip("predict", *task, "--model", str(out / "run"), *features, "-o", predictions)
    accuracy = json.loads(_vip("score", predictions, *task, "--json"))["metrics"]["accuracy"]
    result = Result(accuracy["value"] / 100, accuracy["n"], time.perf_counter() - began)
    print(f"{kind} {model}: {100 * result.accuracy:.1f} in {result.seconds:.0f} s", file=sys.stderr, flush=True)
    return result


def _vip(*arguments: str) -> str:
    """Run vip on one core and return what it prints."""
    one_core = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "vip", *arguments], capture_output=True, text=True, check=False, env=one_core)
    if done.returncode:
        raise SystemExit(f"vip {' '.join(arguments)} exited with {done.returncode}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def missed(results: dict[tuple[str, str], Result]) -> list[str]:
    """Return a sentence a goal that was missed."""
    sentences = []
    for (model, kind), result in results.items():
        figure = f"{kind}: {model} has {100 * result.accuracy:.1f} %"
        if model in BLIND:
            if abs(result.accuracy - CHANCE) > _luck(CHANCE, result):
                sentences.append(f"{figure}, not chance ({100 * CHANCE:.0f} %)")
        elif kind == "seen" and result.accuracy < SEEN_AT_LEAST:
            sentences.append(f"{figure}, not {100 * SEEN_AT_LEAST:.0f} %")
        elif kind == "shuffled" and result.accuracy > ORDERLESS + _luck(ORDERLESS, result):
            sentences.append(f"{figure}, though nothing tells more than {100 * ORDERLESS:.0f} %")
        elif kind == "order" and (evqa := results.get(("evqa", kind))) and result.accuracy <= evqa.accuracy:
            sentences.append(f"{figure}, not more than evqa ({100 * evqa.accuracy:.1f} %)")
    return sentences


def _luck(accuracy: float, result: Result) -> float:
    """Return how far an accuracy may lie from the expected one."""
    return float(DEVIATIONS * (accuracy * (1 - accuracy) / result.questions) ** 0.5)


def table(results: dict[tuple[str, str], Result], sets: Sequence[str], models: Sequence[str]) -> str:
    """Return the figures as a table of Markdown."""
    lines = [f"| model | {' | '.join(sets)} | seconds |", f"|---|{'---:|' * len(sets)}---:|"]
    for model in models:
        figures = [f"{100 * results[model, kind].accuracy:.1f}" for kind in sets]
        lines.append(f"| {model} | {' | '.join(figures)} | {sum(results[model, kind].seconds for kind in sets):.0f} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table; exit 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--out", type=Path, help="keep the sets and the runs in this folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="models trained at a time, a core each")
    arguments = parser.parse_args()
    out = arguments.out or Path(tempfile.mkdtemp())
    for kind in arguments.sets:
        make_set(kind, out / kind, seed=arguments.seed)
    asked = [(model, kind) for kind in arguments.sets for model in arguments.models]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = dict(zip(asked, pool.map(lambda one: run(*one, out), asked), strict=True))
    if arguments.out is None:
        shutil.rmtree(out)
    print(*(f"--set {setting}" for setting in SETTINGS), *(f"{kind}: {EPOCHS[kind]} epochs." for kind in arguments.sets), end="\n\n")
    print(table(results, arguments.sets, arguments.models))
    sentences = missed(results)
    for sentence in sentences:
        print(f"missed: {sentence}")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
