#!/usr/bin/env python3
"""Whether a search finds what is known to be in a video: segments by a picture of their clip, times by the words of a subtitle.

    python benchmarks/search_mixes.py --clips ../shared/videos/real    # without --clips: photographs with a moving camera

Each mix has three keyframes a segment. A picture is a frame of the clip at three places of its segment: as the mix shows it, and as it is
in the file of the clip, without the black bars around it. Each subtitle has a word of its own. Exit 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import av
import cv2
import numpy as np

import vip
from benchmarks.mixes import Mix, Recipe, Segment, VideoClip, build, clips_in, plan
from vip.protocols import SilentObserver
from vip.search.find import SearchQuery, find_moments

PLACES = (0.35, 0.6, 0.9)  # of a segment; faults are at its beginning
LEAST_PICTURES, LEAST_WORDS = 0.98, 1.0
KEYFRAMES_A_SEGMENT, SUBTITLE_S = 3, 4.0


def frame_at(path: Path, time_s: float) -> np.ndarray:
    """Return the first frame at or behind a time, counted from the first frame: uint8 (H, W, 3), BGR."""
    with av.open(str(path)) as container:
        first: float | None = None
        for frame in container.decode(video=0):
            first = frame.time if first is None else first
            if frame.time - first >= time_s:
                break
        return frame.to_ndarray(format="bgr24")


def queries(mix: Mix, segments: list[Segment]) -> Iterator[tuple[str, float, float, np.ndarray]]:
    """Yield the kind of a picture, the start and end of its segment, and the picture."""
    for truth, segment in zip(mix.truth["segments"], segments, strict=True):
        start_s, end_s = truth["start_s"], truth["end_s"]
        for place in PLACES:
            behind_s = place * (end_s - start_s)
            yield "as in the video", start_s, end_s, frame_at(mix.video, start_s + behind_s)
            if isinstance(segment.clip, VideoClip):
                yield "as in the clip's file", start_s, end_s, frame_at(segment.clip.path, segment.start_s + behind_s)


def write_subtitles(path: Path, duration_s: float) -> list[tuple[str, float, float]]:
    """Write a .srt file whose every subtitle has a word of its own, and return the words with their times."""
    rows = [(f"zq{number:03d}x", number * SUBTITLE_S, number * SUBTITLE_S + 2.5) for number in range(int(duration_s // SUBTITLE_S))]
    path.write_text(
        "\n".join(f"{n + 1}\n{stamp(start)} --> {stamp(end)}\nNow {word} is said.\n" for n, (word, start, end) in enumerate(rows))
    )
    return rows


def stamp(time_s: float) -> str:
    return f"{int(time_s // 3600):02d}:{int(time_s // 60) % 60:02d}:{int(time_s) % 60:02d},{round(time_s % 1 * 1000):03d}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path)
    parser.add_argument("--mixes", type=int, default=2)
    args = parser.parse_args()
    hits: dict[str, list[bool]] = {}
    clips = clips_in(args.clips)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(1, args.mixes + 1):
            recipe = Recipe("h264", 640, 360, seed)
            mix = build(recipe, clips, folder)
            spoken = write_subtitles(mix.video.with_suffix(".srt"), mix.truth["duration_s"])
            out = folder / f"{seed}.vip"
            count = KEYFRAMES_A_SEGMENT * len(mix.truth["segments"])
            vip.run(mix.video, out=out, keyframes=count, words="subtitles", engine="offline", observer=SilentObserver())
            for kind, start_s, end_s, picture in queries(mix, plan(recipe, clips)):
                cv2.imwrite(str(folder / "query.png"), picture)
                best = find_moments(SearchQuery(like=folder / "query.png", moments=1), [out], folder=folder / "index").moments
                hits.setdefault(kind, []).append(bool(best) and start_s <= (best[0].time_s or 0.0) < end_s)
            for word, start_s, end_s in spoken:
                best = find_moments(SearchQuery(text=word, moments=1), [out], folder=folder / "index").moments
                is_there = bool(best) and (best[0].start_s or 0.0) <= end_s and (best[0].end_s or 0.0) >= start_s
                hits.setdefault("words of a subtitle", []).append(is_there)
    missed = False
    for kind, found in hits.items():
        goal = LEAST_WORDS if kind.startswith("words") else LEAST_PICTURES
        share = sum(found) / len(found)
        missed |= share < goal
        print(f"{kind:24} {sum(found)} of {len(found)} at rank 1 ({share:.1%})   goal {goal:.0%}{'   MISSED' if share < goal else ''}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
