#!/usr/bin/env python3
"""Do keyframes show every clip of a mix, and nothing bad? With N keyframes for N clips, with 1.3 N, and with `-n auto`.

    python benchmarks/clips_shown.py --clips FOLDER       # 8 mixes of 40 of its videos: ten minutes on two cores
    python benchmarks/clips_shown.py --mixes 2            # of photographs over which a camera moves

A rule fits the clips that it was made with, so give it clips that nobody looked at before. In some there is more to see than one picture
(cuts, people who come and go): N keyframes cannot show each of those and every clip. Exit 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mixes import Mix, Recipe, build, clips_in
from results import LEAST_COVERAGE, LEAST_COVERAGE_MORE, MOST_BAD
from scores import Score, score

import vip

RECIPES: tuple[tuple[str, int], ...] = (("h264", 150), ("hevc", 150), ("vp9", 150), ("h264", 0))  # codec, most frames between sync frames
WIDTH, HEIGHT, CLIPS = 640, 360, 40
MORE = 1.3
LEAST_COVERAGE_OF_ONE, LEAST_COVERAGE_AUTO, MOST_AUTO = 0.90, 0.97, 1.4
HEAD = """| mix | clips | N: shown | bad | 1.3 N: shown | bad | auto: shown | bad | keyframes a clip |
|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class MixScores:
    """How good the three choices are on one mix."""

    name: str
    clips: int
    exact: Score
    more: Score
    auto: Score

    def row(self) -> str:
        shares = " | ".join(f"{one.coverage:.3f} | {one.bad:.3f}" for one in (self.exact, self.more, self.auto))
        return f"| {self.name} | {self.clips} | {shares} | {self.auto.keyframes / self.clips:.2f} |"


def measure(mix: Mix, name: str, work: Path) -> MixScores:
    """Choose keyframes of a mix three times, and score them."""
    clips = len(mix.truth["segments"])

    def scored(keyframes: int | Literal["auto"]) -> Score:
        out = work / f"{mix.video.stem}-{keyframes}.vip"
        shutil.rmtree(out, ignore_errors=True)  # of an earlier vip
        run = vip.extract(mix.video, out=out, keyframes=keyframes, embedder="classic")
        return score(mix.truth, [keyframe.time_s or 0.0 for keyframe in run.keyframes])

    return MixScores(name, clips, scored(clips), scored(round(MORE * clips)), scored("auto"))


def mean_row(mixes: Sequence[MixScores]) -> str:
    """The last row of the table: coverage is the mean over the mixes, all else is over all clips and keyframes."""
    shares = " | ".join(f"{_coverage(choice):.3f} | {_bad(choice):.3f}" for choice in _choices(mixes))
    return f"| all | {sum(mix.clips for mix in mixes)} | {shares} | {_keyframes_a_clip(mixes):.2f} |"


def missed(mixes: Sequence[MixScores]) -> Iterator[str]:
    """The goals that are missed, in words."""
    goals = (("N", LEAST_COVERAGE), ("1.3 N", LEAST_COVERAGE_MORE), ("auto", LEAST_COVERAGE_AUTO))
    for (name, least), choice in zip(goals, _choices(mixes), strict=True):
        if _coverage(choice) < least:
            yield f"{name}: {_coverage(choice):.3f} of the clips shown, at least {least:g} wanted"
        if name != "auto" and _bad(choice) > MOST_BAD:
            yield f"{name}: {_bad(choice):.4f} of the keyframes bad, at most {MOST_BAD:g} wanted"
    for mix in mixes:
        if mix.exact.coverage < LEAST_COVERAGE_OF_ONE:
            yield f"{mix.name}: {mix.exact.coverage:.3f} of the clips shown, at least {LEAST_COVERAGE_OF_ONE:g} wanted of every mix"
    if _keyframes_a_clip(mixes) > MOST_AUTO:
        yield f"auto: {_keyframes_a_clip(mixes):.2f} keyframes a clip, at most {MOST_AUTO:g} wanted"


def _choices(mixes: Sequence[MixScores]) -> tuple[list[Score], list[Score], list[Score]]:
    """Of all mixes the choices with N, with 1.3 N and with auto."""
    return [mix.exact for mix in mixes], [mix.more for mix in mixes], [mix.auto for mix in mixes]


def _coverage(choice: Sequence[Score]) -> float:
    return statistics.fmean(one.coverage for one in choice)


def _bad(choice: Sequence[Score]) -> float:
    return sum(one.bad * one.keyframes for one in choice) / max(1, sum(one.keyframes for one in choice))


def _keyframes_a_clip(mixes: Sequence[MixScores]) -> float:
    return sum(mix.auto.keyframes for mix in mixes) / sum(mix.clips for mix in mixes)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path, help="folder of videos; photographs by default")
    parser.add_argument("--mixes", type=int, default=8, help="how many (default: 8)")
    parser.add_argument("--seed", type=int, default=1, help="of the first mix (default: 1)")
    parser.add_argument("--work", type=Path, help="where mixes and runs are kept; a temporary folder by default")
    options = parser.parse_args(arguments)
    if options.clips is not None and not options.clips.is_dir():
        parser.error(f"--clips: {options.clips} is no folder")
    if options.mixes < 1:
        parser.error(f"--mixes must be at least 1, got {options.mixes}")
    found: list[MixScores] = []
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        for number in range(options.mixes):
            codec, gop = RECIPES[number % len(RECIPES)]
            recipe = Recipe(codec, WIDTH, HEIGHT, options.seed + number, gop=gop, segments=CLIPS)
            try:
                mix = build(recipe, clips_in(options.clips), work)
            except ValueError as error:  # no clip is long enough
                raise SystemExit(str(error)) from error
            found.append(measure(mix, f"{recipe.name}, seed {recipe.seed}", work))
            print(*([HEAD] if number == 0 else []), found[-1].row(), sep="\n", flush=True)
    print(mean_row(found))
    wrong = list(missed(found))
    print(*(f"missed: {text}" for text in wrong), sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
