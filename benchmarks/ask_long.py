#!/usr/bin/env python3
"""How well a question finds its moment in a long video, and how many of its frames are decoded for it.

    python benchmarks/ask_long.py --clips FOLDER        # 40 minutes cut from the videos of a folder
    python benchmarks/ask_long.py --minutes 90          # from photographs inside the scikit-image wheel

A third of the clips is shown once each, for some seconds somewhere in the video; the others fill it, again and again. Each of the former is
asked for. No text model is needed: a question is answered by another picture of the clip, which the video does not show, in the vectors of
`classic`. So it is the search that is measured, not a model. Exit 1 where 2 % or more is decoded, or less than four in five are found.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from mixes import Clip, Recipe, Segment, Truth, clips_in, write_mix

from vip import registry
from vip.config import ExtractSettings
from vip.models.classic import ClassicEmbedder
from vip.protocols import EmbedderCapabilities, SilentObserver
from vip.records import Image, Vectors
from vip.search.ask_long import MOST_SHARE, find_frames_of_long
from vip.video import FileSource
from vip.video.reader import Video

FILL_S, ASKED_S = (4.0, 20.0), (8.0, 15.0)
LEAST_FOUND = 0.8
QUESTION_AT = 0.95  # of its clip: where the picture is that answers for the text


class PictureForText(ClassicEmbedder):
    """Pictures as `classic` sees them; a text is the picture that is known of it."""

    name = "picture-for-text"
    capabilities = EmbedderCapabilities(joint_space=True)
    pictures: ClassVar[dict[str, Image]] = {}

    def __init__(self, detail: str | None = None, **settings: object) -> None:
        super().__init__(detail)

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return self.embed_images([self.pictures[text] for text in texts])


@dataclass(frozen=True, slots=True)
class Row:
    """What a question came to."""

    clip: str
    length_s: float
    found: int
    of: int
    decoded: float
    embedded: float
    seconds: float


def plan(clips: Sequence[Clip], recipe: Recipe, minutes: float) -> tuple[list[Segment], list[Clip]]:
    """The segments of the video in their order, and the clips that are in it once."""
    chance = random.Random(recipe.seed)
    usable = [clip for clip in clips if clip.length_s >= 1.5 * ASKED_S[0]]
    chance.shuffle(usable)
    asked, filling = usable[: len(usable) // 3], usable[len(usable) // 3 :]
    if not asked:
        raise ValueError(f"{len(clips)} clips are too few or too short. Give another folder with --clips.")
    segments: list[Segment] = []
    left = minutes * 60
    while left > 0:
        clip = chance.choice(filling)
        segments.append(_segment(clip, chance, min(chance.uniform(*FILL_S), clip.length_s - 0.2), clip.length_s, recipe))
        left -= segments[-1].frames / recipe.fps
    for clip in asked:
        length_s = min(chance.uniform(*ASKED_S), clip.length_s * 0.8)
        segments.insert(chance.randrange(len(segments)), _segment(clip, chance, length_s, clip.length_s * 0.9, recipe))
    return segments, asked


def _segment(clip: Clip, chance: random.Random, length_s: float, until_s: float, recipe: Recipe) -> Segment:
    return Segment(clip, chance.uniform(0, max(0.0, until_s - length_s - 0.1)), round(length_s * recipe.fps), None, 0)


@contextmanager
def counted_frames() -> Iterator[list[int]]:
    """Count the frames that decoders give."""
    decode, given = Video._decode_packets, [0]

    def counting(self: Video, *args: Any, **options: Any) -> Iterator[Any]:
        for frame in decode(self, *args, **options):
            given[0] += 1
            yield frame

    Video._decode_packets = counting  # type: ignore[method-assign]
    try:
        yield given
    finally:
        Video._decode_packets = decode  # type: ignore[method-assign]


def ask(video: Path, truth: Truth, clip: Clip, frames: int, folder: Path) -> Row:
    """Ask for a clip."""
    (segment,) = [one for one in truth["segments"] if one["clip"] == clip.name]
    settings = ExtractSettings(embedder="picture-for-text")
    start = time.perf_counter()
    with counted_frames() as given:
        result = find_frames_of_long(FileSource(video), folder, clip.name, frames, settings, SilentObserver(), isolated=False)
    seconds = time.perf_counter() - start
    if result is None:
        raise ValueError("The video is too short, or decoding can begin at too few places.")
    run, looked = result
    times = [keyframe.time_s or 0.0 for keyframe in run.keyframes]
    found = [time_s for time_s in times if segment["start_s"] <= time_s < segment["end_s"]]
    length_s = segment["end_s"] - segment["start_s"]
    return Row(clip.name, length_s, len(found), len(times), given[0] / looked.frames, looked.embedded / looked.frames, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path, help="a folder of videos")
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--gop", type=int, default=250, help="most frames from one place where decoding can begin to the next")
    parser.add_argument("--frames", type=int, default=8, help="keyframes of a question")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    registry.BUILT_IN["embedder"]["picture-for-text"] = f"{__name__}:PictureForText"
    recipe = Recipe("h264", 320, 180, args.seed, gop=args.gop, fps=25)
    segments, asked = plan(clips_in(args.clips), recipe, args.minutes)
    folder = Path(tempfile.mkdtemp(prefix="vip-ask-long-"))
    try:
        video = folder / "long.mp4"
        truth = write_mix(video, recipe, segments)
        for clip in asked:
            PictureForText.pictures[clip.name] = next(iter(clip.frames(clip.length_s * QUESTION_AT - 0.2, 1, recipe)))
        rows = [ask(video, truth, clip, args.frames, folder / "long.vip") for clip in asked]
    finally:
        shutil.rmtree(folder)
    print(f"{truth['duration_s'] / 60:.0f} minutes, {len(truth['segments'])} segments, sync frames {recipe.gop} apart at most")
    for row in rows:
        print(
            f"{row.clip:32} {row.length_s:5.1f} s  {row.found} of {row.of} keyframes in it"
            f"  decoded {row.decoded:.2%}  embedded {row.embedded:.2%}  {row.seconds:.1f} s"
        )
    share = sum(row.found > 0 for row in rows) / len(rows)
    worst = max(row.decoded for row in rows)
    print(f"found {share:.0%}, decoded at most {worst:.2%}, median {statistics.median(row.seconds for row in rows):.1f} s a question")
    sys.exit(int(share < LEAST_FOUND or worst >= MOST_SHARE))


if __name__ == "__main__":
    main()
