#!/usr/bin/env python3
"""Does HERO join what is shown and what is said? Videos, subtitles and annotations made by rule, in the published forms of VALUE.

    python benchmarks/synthetic_value.py                             # three tasks on three channels, on the CPU
    python benchmarks/synthetic_value.py --tasks tvr --fusions hero add --out FOLDER

A video has four scenes of 6 s. In each a thing is shown (a random vector with noise, each 1.5 s) and a word is said. What is asked for is a
pair of both, so that one channel alone leaves it open:

- tvr: the scene of a corpus in which this thing is shown and this word is said. Every pair is there once: the thing
  alone leaves twelve scenes to choose from, and so does the word alone.
- how2qa: one of four pairs; two have the right thing, and two the right word: one channel alone gets 50 %.
- yc2c: a caption, the pair of a video of one scene.

Every figure is of one run of `vip train value`, `vip predict` and `vip score` on these files, with the settings that are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

THINGS, WORDS = "abcdefghijkl", "opqrstuvwxyz"
SCENES, FRAMES, WIDTH, FRAME_S = 4, 4, 32, 1.5
SCENE_S = FRAMES * FRAME_S
NOISE = 0.3
TRAIN_VIDEOS = 400
CHANNELS = ("video", "sub", "video+sub")
TASKS = ("tvr", "how2qa", "yc2c")
TARGETS = {"tvr": "aver", "how2qa": "accuracy", "yc2c": "cider-d"}
SETTINGS = (
    *("model.hidden=64", "model.heads=4", "model.intermediate=128", "model.cross_layers=2", "model.temporal_layers=1"),
    *("model.vocabulary=272", "model.positions=66", "model.caption_positions=66", "model.dropout=0.0"),
    *("training.learning_rate=0.001", "training.head_factor=1.0", "training.accumulate=1", "training.hard_negatives_from=100000"),
    *("loss.span_weight=1.0", "loss.skip_spans=0.0", "ranking.least_frames=3", "ranking.most_frames=5"),
)
STEPS = {"tvr": 900, "how2qa": 900, "yc2c": 600}
BATCH = {"tvr": 32, "how2qa": 16, "yc2c": 32}
Row = dict[str, Any]
Pair = tuple[str, str]


def write_lines(path: Path, rows: Iterable[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of RoBERTa's form whose words are bytes."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    words = ["<s>", "<pad>", "</s>", "<unk>", *bytes_to_unicode().values(), "<mask>"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")


class Maker:
    """Writes videos and what is asked of them into a folder."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, np.random.default_rng(seed)
        self.looks = {thing: self.random.standard_normal(WIDTH) for thing in THINGS}
        self.spoken: dict[str, list[Row]] = {"tv": [], "how2": [], "yc2": []}
        for name in ("annotations", "subtitles", *(f"features/{source}" for source in self.spoken)):
            (folder / name).mkdir(parents=True)

    def video(self, source: str, name: str, scenes: Sequence[Pair]) -> None:
        shown = np.concatenate([np.tile(self.looks[thing], (FRAMES, 1)) for thing, _ in scenes])
        features = (shown + NOISE * self.random.standard_normal(shown.shape)).astype(np.float32)
        np.savez(self.folder / "features" / source / f"{name}.npz", features=features)
        said = [{"text": word, "start": place * SCENE_S, "end": (place + 1) * SCENE_S - 0.1} for place, (_, word) in enumerate(scenes)]
        self.spoken[source].append({"vid_name": name, "sub": said})

    def write_subtitles(self) -> None:
        for source, rows in self.spoken.items():
            write_lines(self.folder / "subtitles" / f"{source}_subtitles.jsonl", rows)

    def pairs(self, count: int) -> list[Pair]:
        """Return pairs by chance, or, without repetition, all of them."""
        every = list(product(THINGS, WORDS))
        places = self.random.permutation(len(every)) if count == len(every) else self.random.integers(len(every), size=count)
        return [every[place] for place in places]

    def other(self, letters: str, but: str) -> str:
        return str(self.random.choice([letter for letter in letters if letter != but]))

    def write_tvr(self) -> None:
        everything = len(THINGS) * len(WORDS)
        for split, count in (("train", TRAIN_VIDEOS * SCENES), ("val", everything)):
            pairs, rows = self.pairs(count), []
            for first in range(0, count, SCENES):
                name, scenes = f"{split}{first}", pairs[first : first + SCENES]
                self.video("tv", name, scenes)
                for place, pair in enumerate(scenes):
                    span = [place * SCENE_S, (place + 1) * SCENE_S]
                    about = {"vid_name": name, "duration": SCENES * SCENE_S, "ts": span, "type": "vt"}
                    rows.append({"desc_id": len(rows), "desc": "".join(pair), **about})
            write_lines(self.folder / f"annotations/tvr_{split}_release.jsonl", rows)
            names = dict.fromkeys(row["vid_name"] for row in rows)
            self._add_index("tvr", split, list(names))

    def _add_index(self, task: str, split: str, names: list[str]) -> None:
        path = self.folder / f"annotations/{task}_video2dur_idx.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        known[split] = {name: [SCENES * SCENE_S, number] for number, name in enumerate(names)}
        path.write_text(json.dumps(known))

    def write_how2qa(self) -> None:
        for split, count in (("train", 2 * TRAIN_VIDEOS), ("val", 200)):
            rows = []
            for number, (thing, word) in enumerate(self.pairs(count)):
                name = f"{split}{number}"
                self.video("how2", name, [(thing, word)])
                wrong = self.other(THINGS, thing), self.other(WORDS, word)
                options = [thing + word, thing + wrong[1], wrong[0] + word, "".join(wrong)]
                order = self.random.permutation(4).tolist()
                answers = {f"a{place}": options[one] for place, one in enumerate(order)}
                rows.append({"qid": number, "q": "?", **answers, "answer_idx": order.index(0), "ts": [0, SCENE_S], "vid_name": name})
            write_lines(self.folder / f"annotations/how2qa_{split}_release.jsonl", rows)

    def write_yc2c(self) -> None:
        for split, count in (("train", 2 * TRAIN_VIDEOS), ("val", 144)):
            rows = []
            for number, (thing, word) in enumerate(self.pairs(count)):
                name = f"{split}_{number}"
                self.video("yc2", name, [(thing, word)])
                rows.append({"clip_id": name, "vid_name": name, "descs": [{"desc": f"{thing} {word}", "desc_id": number}]})
            write_lines(self.folder / f"annotations/yc2c_{split}_release.jsonl", rows)


def make(folder: Path, seed: int) -> None:
    maker = Maker(folder, seed)
    maker.write_tvr()
    maker.write_how2qa()
    maker.write_yc2c()
    maker.write_subtitles()
    write_tokenizer(folder / "tokenizer")


def vip(*words: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "vip", *words], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"vip {' '.join(words)}\n{done.stderr}")
    return done.stdout


def measure(folder: Path, task: str, channels: str, fusion: str, seed: int) -> Row:
    """Train on one task and one choice of channels, and return the scores of val."""
    run = folder / "runs" / f"{task}-{channels}-{fusion}-{seed}"
    settings = [*SETTINGS, f"input.channels={channels}", f"model.fusion={fusion}", f"tasks.{task}.batch={BATCH[task]}"]
    steps = STEPS[task]
    settings += [f"training.steps={steps}", f"training.warmup_steps={steps // 10}", f"training.validate_every={steps // 3}"]
    inputs = ("--features", str(folder / "features"), "--subtitles", str(folder / "subtitles"))
    where = ("--annotations", str(folder / "annotations"), "--tokenizer", str(folder / "tokenizer"), "-o", str(run), "--seed", str(seed))
    started = time.process_time(), os.times()
    vip("train", "value", "--regime", "st", "--only", task, *where, *inputs, *(word for one in settings for word in ("--set", one)), "-q")
    after = os.times()
    annotations = folder / f"annotations/{task}_val_release.jsonl"
    index = ["--video-index", str(folder / "annotations/tvr_video2dur_idx.json"), "--split", "val"] if task == "tvr" else []
    predictions = run / "predictions.jsonl"
    source = {"tvr": "tv", "how2qa": "how2", "yc2c": "yc2"}[task]
    said = ("--subtitles", str(folder / f"subtitles/{source}_subtitles.jsonl"))
    asked = ("--task", f"value-{task}", "--annotations", str(annotations), "--features", str(folder / "features"), *said, *index)
    vip("predict", *asked, "--model", str(run), "-o", str(predictions), "-q")
    (line,) = vip("score", str(predictions), "--samples", str(run / "predictions.samples.jsonl"), "--json", "-q").splitlines()[:1]
    metrics = json.loads(line)["metrics"]
    cpu_s = after.children_user - started[1].children_user
    return {
        "task": task,
        "channels": channels,
        "fusion": fusion,
        "seed": seed,
        "cpu_s": round(cpu_s),
        TARGETS[task]: metrics[TARGETS[task]]["value"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--channels", nargs="+", choices=CHANNELS, default=CHANNELS)
    parser.add_argument("--fusions", nargs="+", default=("hero",))
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--out", type=Path, help="where files and runs stay")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.out or Path(temporary)
        if not (folder / "annotations").exists():
            make(folder, seed=1)
        print(f"settings: {', '.join(SETTINGS)}", flush=True)
        for task, channels, fusion in product(given.tasks, given.channels, given.fusions):
            print(json.dumps(measure(folder, task, channels, fusion, given.seed)), flush=True)


if __name__ == "__main__":
    main()
