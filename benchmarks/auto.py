#!/usr/bin/env python3
"""Does `-n auto` count as a person would? Videos whose pictures are known (labelled.py). For mixes of clips see clips_shown.py.

    python benchmarks/auto.py                      # the seeds that the rule was not made with: ten minutes on two cores
    python benchmarks/auto.py --seeds 1-4          # those that it was made with
    python benchmarks/auto.py --kinds slides-dark people

For each kind: how many pictures there are, how many keyframes `-n auto` gives, the share of the pictures that at least one keyframe shows
and that at least one candidate shows, and the share that `-n` with the number of pictures shows; then pairs of candidates: same or another
picture, by the labels and by the rule. Exit 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import labelled
from labelled import KINDS, Labelled

import vip
from vip.extraction.analysis_store import analyses_of
from vip.extraction.distinct import distinct_pictures
from vip.extraction.pages import without_speaker_or_drift
from vip.extraction.pruners.algorithm1 import cosine
from vip.protocols import TEXT_WEIGHT

REPORTED, PAIRS_A_VIDEO = "5-8", 200
COUNTED = ("slides-dark", "slides-light", "screens", "inserts", "people", "scroll", "browser", "speaker", "drift")
OFF_BY = 0.10  # of the number of pictures: the goal for the kinds in COUNTED

Confusion = Counter[tuple[bool, bool]]
"""(another picture by the labels, by the rule) -> pairs of candidates."""


@dataclass
class Result:
    """Sums over the videos of one kind."""

    kind: str
    pictures: int = 0
    keyframes: int = 0
    shown: int = 0
    """Pictures that a keyframe shows."""
    offered: int = 0
    """Pictures that a candidate shows."""
    candidates: int = 0
    shown_by_number: int = 0
    """Pictures that a keyframe shows where as many keyframes as pictures are asked for."""

    def row(self) -> str:
        shown, offered = self.shown / self.pictures, self.offered / self.pictures
        ratio, by_number = self.keyframes / self.pictures, self.shown_by_number / self.pictures
        counts = f"| {self.kind} | {self.pictures} | {self.keyframes} | {ratio:.2f} | {shown:.2f} "
        return f"{counts}| {offered:.2f} | {self.candidates} | {by_number:.2f} |"

    def missed(self) -> str | None:
        if self.kind in COUNTED and abs(self.keyframes - self.pictures) > OFF_BY * self.pictures:
            return f"{self.kind}: {self.keyframes} keyframes for {self.pictures} pictures"
        if self.kind in COUNTED and self.shown < self.pictures:
            return f"{self.kind}: {self.shown} of {self.pictures} pictures are shown"
        return None


def measure(video: Labelled, work: Path, result: Result, pairs: Confusion, embedder: str) -> None:
    """Extract with `-n auto`, and with the number of pictures, and add what came of it."""
    run = _extract(video.video, work, embedder, keyframes=video.distinct)
    by_number = _shown(video, run)
    run = _extract(video.video, work, embedder)
    shown = _shown(video, run)
    frames = [video.picture_at(candidate.time_s) for candidate in run.candidates]
    result.pictures += video.distinct
    result.keyframes += len(run.keyframes)
    result.shown += len(shown)
    result.offered += len(set(frames) - {None})
    result.candidates += len(frames)
    result.shown_by_number += len(by_number)
    whole = [(video.picture_at(time_s), number) for time_s, number in pictures_of(run) if video.picture_at(time_s) is not None]
    chance = random.Random(video.labels["seed"])
    places = [(a, a + 1) for a in range(len(whole) - 1)]
    places += [(chance.randrange(len(whole)), chance.randrange(len(whole))) for _ in range(PAIRS_A_VIDEO)]
    for (one, number), (other, other_number) in ((whole[a], whole[b]) for a, b in places if a != b):
        pairs[one != other, number != other_number] += 1
    counts = f"{video.distinct} pictures, {len(run.keyframes)} keyframes, {len(shown)} shown; {len(by_number)} with -n {video.distinct}"
    print(f"  {video.video.name}: {counts}", file=sys.stderr)


def _shown(video: Labelled, run: vip.Run) -> set[str]:
    """Return the pictures that the keyframes show."""
    pictures = (video.picture_at(keyframe.time_s or 0.0) for keyframe in run.keyframes)
    return {picture for picture in pictures if picture is not None}


def _extract(video: Path, work: Path, embedder: str, *, keyframes: int | Literal["auto"] = "auto") -> vip.Run:
    """Return a new run: one that an earlier vip left there would be taken for this one's."""
    out = work / f"{video.stem}.vip"
    shutil.rmtree(out, ignore_errors=True)
    return vip.extract(video, out=out, keyframes=keyframes, embedder=embedder)


def pictures_of(run: vip.Run) -> list[tuple[float, int]]:
    """Time of each good candidate, and the number of the picture that it shows, as `-n auto` counts."""
    assert run.manifest is not None, "it was just made"
    assert run.manifest.pruning is not None, "candidates were pruned"
    assert run.embeddings is not None, "and embedded"
    good = [row for row, frame in enumerate(run.candidates) if frame.decision.rule in ("kept", "pruned", "duplicate")]
    frames, vectors = without_speaker_or_drift(analyses_of(run)), run.embeddings
    found, _ = distinct_pictures(
        [frames[row] for row in good], lambda a, b: cosine(vectors, good[a], good[b], TEXT_WEIGHT), run.manifest.pruning.redundant
    )
    return sorted((frames[good[row]].time_s, number) for number, picture in enumerate(found) for row in picture.rows)


def table(pairs: Confusion) -> list[str]:
    """The confusion of pairs, in shares of what they are."""
    rows = ["| two candidates show | pairs | the rule: same | the rule: another |", "|---|---|---|---|"]
    for is_another, name in ((False, "the same picture"), (True, "two pictures")):
        same, another = pairs[is_another, False], pairs[is_another, True]
        count = max(1, same + another)
        rows.append(f"| {name} | {same + another} | {same / count:.1%} | {another / count:.1%} |")
    return rows


def seeds_of(text: str) -> list[int]:
    """`5-8` -> 5, 6, 7, 8; `3` -> 3."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--seeds", default=REPORTED, help="5-8, or one number")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--embedder", default="classic")
    parser.add_argument("--work", type=Path, help="where videos and runs are kept; a temporary folder by default")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        results, pairs = [Result(kind) for kind in options.kinds], Confusion()
        for result in results:
            for seed in seeds_of(options.seeds):
                measure(labelled.build(result.kind, seed, work), work, result, pairs, options.embedder)
        print(
            "| videos | pictures | keyframes | keyframes a picture | shown | offered | candidates | shown with -n |",
            "|---" * 8 + "|",
            sep="\n",
        )
        print(*(result.row() for result in results), "", *table(pairs), sep="\n")
    missed = [text for result in results if (text := result.missed())]
    print(*(f"missed: {text}" for text in missed), sep="\n", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
