#!/usr/bin/env python3
"""Do the models of FIBER see? Captions whose blank the features of the video alone tell, in the authors' form.

    python benchmarks/synthetic_fiber.py                             # all models, on the CPU
    python benchmarks/synthetic_fiber.py --models early-fusion --out FOLDER

A clip shows one of four things; each thing is a random vector, and each feature of a clip is the vector of its thing with noise. The
caption says nothing about it, and "a dog" is right in 40 % of the clips: a model without video can get no more. Every model begins
with the same T5, as small as can be, with random weights. Every figure is of one run of `vip train fiber`, `vip predict` and `vip score`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

THINGS = {"a dog": 0.4, "a cat": 0.25, "a boy": 0.2, "a girl": 0.15}
"""With their shares."""
CAPTIONS = ("_____ runs in the park.", "In the park _____ sits here.", "There is _____ in the park.", "The ball is thrown to _____.")
CLIPS = {"train": 600, "val": 100, "test": 300}
FEATURES, WIDTH, NOISE = 5, 16, 0.3
MODELS = {
    "text": (),
    "early-fusion": (),
    "late-fusion": (),
    "early-fusion, single feature": ("model.single_feature=true",),
    "late-fusion, single feature": ("model.single_feature=true",),
}
SETTINGS = ("training.learning_rate=0.003", "training.batch=32", "training.epochs=8")
SEES_AT_LEAST, DEVIATIONS = 0.9, 3
"""Goals: the exact match of who sees; how many standard errors luck may add to the majority."""


def make_data(folder: Path, *, seed: int = 1, clips: dict[str, int] | None = None) -> None:
    """Write train.json, val.json, test.json and i3d/ into a new folder."""
    random = np.random.default_rng(seed)
    shapes = random.normal(size=(len(THINGS), WIDTH))
    (folder / "i3d").mkdir(parents=True)
    number = 0
    for split, count in (clips or CLIPS).items():
        things = np.repeat(np.arange(len(THINGS)), [round(share * count) for share in THINGS.values()])
        rows: list[dict[str, Any]] = []
        for thing in random.permutation(things).tolist():
            masked, label = CAPTIONS[int(random.integers(len(CAPTIONS)))], list(THINGS)[thing]
            video = {"video_id": f"v{number}", "video_start_time": 0, "video_end_time": 10}
            rows.append({**video, "caption": masked.replace("_____", label), "masked_caption": masked, "label": label})
            features = shapes[thing] + NOISE * random.normal(size=(1, FEATURES, WIDTH))
            np.save(folder / "i3d" / f"v{number}_000000_000010.npy", features.astype(np.float32))
            number += 1
        (folder / f"{split}.json").write_text(json.dumps(rows))


def write_t5(folder: Path, *, seed: int = 0) -> None:
    """Write a T5 with random weights and a tokenizer of whole words, as save_pretrained() does."""
    import torch
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    extra = [f"<extra_id_{place}>" for place in range(2)]
    texts = " ".join((*CAPTIONS, *THINGS)).replace("_____", "").replace(".", " .").split()
    words = {word: place for place, word in enumerate(["<pad>", "</s>", "<unk>", *extra, *dict.fromkeys(texts)])}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", words["</s>"])])
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "additional_special_tokens": extra}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(seed)
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4}
    ids = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    config = T5Config(vocab_size=len(words), dropout_rate=0.0, feed_forward_proj="gated-gelu", **sizes, **ids)
    T5ForConditionalGeneration(config).save_pretrained(folder)


# ---------------------------------------------------------------- runs


@dataclass(frozen=True)
class Result:
    """One model."""

    exact_match: float
    """From 0 to 1, on clips that neither train nor val has."""
    clips: int
    seconds: float


def run(model: str, data: Path, *, settings: tuple[str, ...] = SETTINGS) -> Result:
    """Train a model, let it fill the blanks of test.json, and score them."""
    name, out = model.partition(",")[0], data / model.replace(", ", "-").replace(" ", "-")
    features = [] if name == "text" else ["--features", str(data / "i3d")]
    began = time.perf_counter()
    sets = [part for setting in (*settings, *MODELS[model]) for part in ("--set", setting)]
    weights = ("--weights", f"t5:{data / 't5'}")
    _vip("train", "fiber", "--model", name, "--annotations", str(data), "-o", str(out), "--device", "cpu", *weights, *features, *sets)
    predictions, task = str(data / f"{out.name}.jsonl"), ("--task", "fiber", "--annotations", str(data / "test.json"))
    _vip("predict", *task, "--model", str(out), *features, "--parser", "none", "-o", predictions)
    score = json.loads(_vip("score", predictions, *task, "--json"))["metrics"]["exact-match"]
    result = Result(score["value"] / 100, score["n"], time.perf_counter() - began)
    print(f"{model}: {100 * result.exact_match:.1f} in {result.seconds:.0f} s", file=sys.stderr, flush=True)
    return result


def _vip(*arguments: str) -> str:
    """Run vip on one core and return what it prints."""
    one_core = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "vip", *arguments], capture_output=True, text=True, check=False, env=one_core)
    if done.returncode:
        raise SystemExit(f"vip {' '.join(arguments)} exited with {done.returncode}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def missed(results: dict[str, Result]) -> list[str]:
    """Return a sentence a goal that was missed."""
    majority, sentences = max(THINGS.values()), []
    for model, result in results.items():
        luck = DEVIATIONS * (majority * (1 - majority) / result.clips) ** 0.5
        if model == "text" and abs(result.exact_match - majority) > luck:
            sentences.append(f"text has {100 * result.exact_match:.1f} %, not the majority ({100 * majority:.0f} %)")
        elif model != "text" and result.exact_match < SEES_AT_LEAST:
            sentences.append(f"{model} has {100 * result.exact_match:.1f} %, not {100 * SEES_AT_LEAST:.0f} %")
    return sentences


def main() -> int:
    """Print the table; exit 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--out", type=Path, help="keep the data and the runs in this folder")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    out = arguments.out or Path(tempfile.mkdtemp())
    make_data(out, seed=arguments.seed)
    write_t5(out / "t5", seed=arguments.seed)
    results = {model: run(model, out) for model in arguments.models}
    if arguments.out is None:
        shutil.rmtree(out)
    print(*(f"--set {setting}" for setting in SETTINGS), end="\n\n")
    print("| model | exact match | seconds |\n|---|---:|---:|")
    for model, result in results.items():
        print(f"| {model} | {100 * result.exact_match:.1f} | {result.seconds:.0f} |")
    sentences = missed(results)
    for sentence in sentences:
        print(f"missed: {sentence}")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
