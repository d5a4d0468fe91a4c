#!/usr/bin/env python3
"""Shot boundaries against those that people marked: BBC Planet Earth, RAI, ClipShots, AutoShot.

    python benchmarks/shots.py rai RAIDataset/labels --detector shots --videos RAIDataset
    python benchmarks/shots.py bbc-fixed BBC/fixed --detector shots:adaptive --videos BBC/videos
    python benchmarks/shots.py clipshots ClipShots/annotations/test.json --predictions found.json
    python benchmarks/shots.py autoshot gt_scenes_dict_baseline_v2.pickle --predictions transnetv2/

The data sets are not downloaded: point at copies of your own. Detectors are those of vip's sampler `shots`. Predictions are a JSON
file in the form of ClipShots' own evaluation, {"NAME.mp4": {"cut": [[last, first], …], "gradual": [[last, first], …]}, …}, or a folder of
the NAME.scenes.txt that TransNetV2 writes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from published import FormError, read_json
from shot_scores import TOLERANCE_FRAMES, Counts, Transition, measures
from shot_truth import DATASETS, Truth, in_order, pairs, read_shots, read_truth, video_id

from vip.errors import VipError
from vip.extraction.samplers.shots import DETECTORS, ShotsSampler
from vip.video import VIDEO_SUFFIXES, open_video, source_of

SCENES = ".scenes.txt"  # what TransNetV2 appends to the name of a video


class UnscoredError(Exception):
    """A video cannot be scored; the message says why."""


@dataclass(frozen=True)
class Prediction:
    """What a detector found in a video."""

    transitions: tuple[Transition, ...]
    frames: int | None = None
    """How many it decoded, where that is known."""


@dataclass
class Results:
    """Counts of each measure for each video that could be scored, and why the others could not."""

    videos: dict[str, dict[str, Counts]] = field(default_factory=dict)
    unscored: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> dict[str, Counts]:
        """The counts of all videos together, by measure."""
        names = next(iter(self.videos.values()), {})
        return {name: sum((counts[name] for counts in self.videos.values()), Counts()) for name in names}


def evaluate(truth: Mapping[str, Truth], predicted: Mapping[str, Prediction | str], tolerance: int) -> Results:
    """Return the counts of every video of the truth.

    Args:
        predicted: by video; a text says why there is no prediction.
    """
    results = Results()
    for name, video in truth.items():
        prediction = predicted.get(name, "no prediction")
        try:
            if isinstance(prediction, str):
                raise UnscoredError(prediction)
            transitions = aligned(video, prediction.frames)
        except UnscoredError as exc:
            results.unscored[name] = str(exc)
        else:
            results.videos[name] = {key: measure(transitions, prediction.transitions) for key, measure in measures(tolerance).items()}
    return results


def aligned(truth: Truth, frames: int | None) -> tuple[Transition, ...]:
    """Return the true transitions by the frame numbers of a video of that many decoded frames; None: as they are.

    A video of ClipShots that decodes to one frame more than the annotators saw begins a frame earlier. TransNetV2 takes it so too
    (`consolidate_datasets.py`), and leaves out those that differ by more.

    Raises:
        UnscoredError: the annotation is of another encoding of the video.
    """
    transitions = truth.transitions
    if truth.frames == 0:
        raise UnscoredError("the annotators saw no frames")
    if frames is None:
        return transitions
    if truth.frames is not None:
        if frames - truth.frames not in (0, 1):
            raise UnscoredError(f"it decodes to {frames} frames, but the annotators saw {truth.frames}")
        shift = frames - truth.frames
        return tuple(Transition(transition.last + shift, transition.first + shift) for transition in transitions)
    if transitions and transitions[-1].first >= frames:
        raise UnscoredError(f"it decodes to {frames} frames, but is annotated up to frame {transitions[-1].first}")
    return transitions


# ---------------------------------------------------------------- predictions


def read_predictions(dataset: str, path: Path) -> dict[str, Prediction | str]:
    """Return the predictions of a JSON file, or of a folder of NAME.scenes.txt, by video.

    Raises:
        FormError: the path is missing, or not of that form, or names a video twice.
    """
    rows: list[tuple[str, tuple[Transition, ...]]]
    if path.is_dir():
        rows = [(file.name.removesuffix(SCENES), read_shots(file).transitions) for file in sorted(path.glob(f"*{SCENES}"))]
    else:
        data = read_json(path)
        rows = [(name, _of_clipshots_form(f"{path}, {name}", entry)) for name, entry in data.items()] if isinstance(data, dict) else []
    if not rows:
        raise FormError(f'{path} holds no predictions. Give a JSON file {{"NAME.mp4": {{"cut": […]}}}}, or a folder of NAME{SCENES}.')
    found: dict[str, Prediction | str] = {}
    for name, transitions in rows:
        video = video_id(dataset, name)
        if video is None or video in found:
            raise FormError(f"{path}: {name} is {'no video of ' + dataset if video is None else 'there twice'}.")
        found[video] = Prediction(transitions)
    return found


def _of_clipshots_form(where: str, entry: Any) -> tuple[Transition, ...]:
    if not isinstance(entry, dict) or not entry or entry.keys() - {"cut", "gradual"}:
        raise FormError(f'{where}: expected "cut" and "gradual", each a list of [last, first].')
    try:
        transitions = [Transition(last, first) for rows in entry.values() for last, first in pairs(rows, where)]
    except ValueError as exc:
        raise FormError(f"{where}: {exc}") from exc
    return in_order(transitions, where)


def detect(detector: str, path: Path) -> Prediction:
    """Return the cuts between the shots that vip's sampler `shots` finds. It decodes every frame.

    Raises:
        VipError: the video cannot be read, or PySceneDetect is not installed.
    """
    with open_video(source_of(path)) as video:
        shots = ShotsSampler(detector.partition(":")[2] or None).shots(video)
    ends = [0]
    for shot in shots:
        ends.append(ends[-1] + len(shot))
    return Prediction(tuple(Transition(end - 1, end) for end in ends[1:-1]), frames=ends[-1])


def videos_in(dataset: str, folder: Path) -> dict[str, Path]:
    """Return the videos of the data set in a folder and those below it.

    Raises:
        FormError: two files are the same video of the data set.
    """
    found: dict[str, Path] = {}
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in VIDEO_SUFFIXES):
        name = video_id(dataset, path.name)
        if name is not None and found.setdefault(name, path) != path:
            raise FormError(f"{found[name]} and {path} are both video {name} of {dataset}. Give a folder with one of them by --videos.")
    return found


def detect_all(dataset: str, truth: Mapping[str, Truth], detector: str, folder: Path) -> dict[str, Prediction | str]:
    """Return the predictions for each annotated video, or why there is none."""
    videos = videos_in(dataset, folder)
    if not truth.keys() & videos.keys():
        raise FormError(f"{folder} holds no video of {dataset}.")
    found: dict[str, Prediction | str] = {}
    for number, name in enumerate(truth, 1):
        if name not in videos:
            found[name] = "the video is missing"
            continue
        print(f"{number} of {len(truth)}: {videos[name].name}", file=sys.stderr, flush=True)
        try:
            found[name] = detect(detector, videos[name])
        except VipError as exc:
            found[name] = str(exc)
    return found


# ---------------------------------------------------------------- as text and as JSON


def table(results: Results) -> str:
    """Return a line a measure, over the transitions of all videos together."""
    lines = [f"{'':22}{'precision':>10}{'recall':>8}{'F1':>8}{'hits':>8}{'false':>8}{'missed':>8}"]
    for name, counts in results.total.items():
        shares = "".join(_cell(value, width) for value, width in ((counts.precision, 10), (counts.recall, 8), (counts.f1, 8)))
        lines.append(f"{name:22}{shares}{counts.hits:>8}{counts.false_alarms:>8}{counts.missed:>8}")
    return "\n".join(lines)


def _cell(value: float | None, width: int) -> str:
    return f"{'–' if value is None else f'{value:.4f}':>{width}}"


def write_json(path: Path, results: Results, about: dict[str, Any]) -> None:
    """Write the counts and shares of all videos together and of each."""
    total = {name: {**vars(counts), "precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
             for name, counts in results.total.items()}  # fmt: skip
    videos = {video: {name: vars(counts) for name, counts in rows.items()} for video, rows in results.videos.items()}
    path.write_text(json.dumps({"about": about, "total": total, "videos": videos, "unscored": results.unscored}, indent=1) + "\n")


# ---------------------------------------------------------------- command line


def run(args: argparse.Namespace) -> Results:
    """Evaluate, and print the table and what it leaves out.

    Raises:
        FormError: a file is not of its published form, or nothing can be scored.
    """
    truth = read_truth(args.dataset, args.annotations)
    if args.predictions:
        predicted = read_predictions(args.dataset, args.predictions)
    else:
        predicted = detect_all(args.dataset, truth, args.detector, args.videos)
    results = evaluate(truth, predicted, args.tolerance)
    if not results.videos:
        raise FormError(f"No video can be scored. The first, {next(iter(results.unscored))}: {next(iter(results.unscored.values()))}.")
    print(f"{args.dataset}, {args.predictions or args.detector}: {len(results.videos)} of {len(truth)} videos", table(results), sep="\n")
    for name, reason in results.unscored.items():
        print(f"Not scored: {name}: {reason}")
    for name in sorted(predicted.keys() - truth.keys()):
        print(f"Not annotated: {name}")
    for name, note in ((name, note) for name, video in truth.items() for note in video.notes):
        print(f"Annotation of {name}: {note}")
    return results


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=list(DATASETS), help="; ".join(f"{name}: {form}" for name, form in DATASETS.items()))
    parser.add_argument("annotations", type=Path, help="the file or folder of the data set")
    names = ("shots", *(f"shots:{detail}" for detail in DETECTORS if detail != "content"))
    parser.add_argument("--detector", choices=names, help="find the shots with vip; needs --videos")
    parser.add_argument("--videos", type=Path, metavar="DIR", help="the videos, for --detector")
    parser.add_argument("--predictions", type=Path, metavar="PATH", help="what another program found: a JSON file, or a folder")
    parser.add_argument(
        "--tolerance", type=int, default=TOLERANCE_FRAMES, metavar="FRAMES", help="of the rows that are not exact (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures, those of each video too")
    args = parser.parse_args(arguments)
    if (args.predictions is None) == (args.detector is None):
        parser.error("give either --predictions or --detector")
    if args.detector and (args.videos is None or not args.videos.is_dir()):
        parser.error("--detector needs the folder of the videos: --videos DIR")
    if args.tolerance < 1:
        parser.error(f"--tolerance must be at least 1, got {args.tolerance}; the exact figures are always there")
    try:
        results = run(args)
    except FormError as error:
        raise SystemExit(str(error)) from error
    if args.json:
        about = {"dataset": args.dataset, "predictions": str(args.predictions or args.detector), "tolerance_frames": args.tolerance}
        write_json(args.json, results, about)


if __name__ == "__main__":
    main()
