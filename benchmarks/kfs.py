#!/usr/bin/env python3
"""Keyframes against the scenes of KFS-Bench: do they show what a question about a long video needs?

    python benchmarks/kfs.py vidmme_anno.csv runs/             # run folders of vip, named like the samples: 003-2.vip
    python benchmarks/kfs.py lvb_anno.csv results.json         # what another program chose

The annotations (github.com/NEC-VID/KFS-Bench) and the videos of LongVideoBench and Video-MME are not downloaded: point at copies of
your own. Results are a JSON file in the form of KFS-Bench, [{"id": "003-2", "frame_timestamps": [1.5, 3.2, …]}, …]. Beside runs of vip
stands a row with as many evenly spaced frames.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from kfs_scores import KfsScore, KfsSummary, Span, score, summary
from published import FormError, read_json, read_text
from results import EVEN, VIP
from scores import evenly_spaced

import vip
from vip.errors import VipError

COLUMNS = ["id", "segment_id", "scene_id", "start", "end"]
TIME = re.compile(r"(?:(\d+):(?=\d\d:))?(\d+):(\d\d(?:\.\d+)?)")  # h:mm:ss or m:ss
LAST_SECOND_S = 1.0  # a scene lasts to the end of the second that is annotated as its last
RUN, RESULTS = ".vip", "results"
NAMES = {"frames": "frames", "kfr": "key frame rate", "shr": "scene hit rate", "bsr": "balanced recall", "bds": "balance", "ukss": "UKSS"}

Times = dict[str, list[float]]
"""Seconds of the keyframes of each sample."""


# ---------------------------------------------------------------- annotations


def read_scenes(path: Path) -> dict[str, list[list[Span]]]:
    """Return the scenes of each sample, each its stretches in seconds: rows of one id and one scene_id are one scene.

    Raises:
        FormError: the file cannot be read, or is not of the published form.
    """
    rows = csv.DictReader(read_text(path).splitlines(), strict=True)
    if rows.fieldnames != COLUMNS:
        raise FormError(f"{path}: expected the columns {', '.join(COLUMNS)}, but found {', '.join(rows.fieldnames or []) or 'none'}.")
    scenes: dict[str, dict[str, list[Span]]] = {}
    try:
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if None in row or not all(row.values()):
                raise FormError(f"{where}: expected a value for each of {', '.join(COLUMNS)}.")
            start_s, end_s = (_seconds(row[column], where) for column in ("start", "end"))
            if end_s < start_s:
                raise FormError(f"{where}: the scene ends at {row['end']}, before it begins at {row['start']}.")
            scenes.setdefault(row["id"], {}).setdefault(row["scene_id"], []).append((start_s, end_s + LAST_SECOND_S))
    except csv.Error as exc:
        raise FormError(f"{path}, line {rows.line_num}: {exc}.") from exc
    if not scenes:
        raise FormError(f"{path} holds no scenes.")
    return {name: list(some.values()) for name, some in scenes.items()}


def _seconds(text: str, where: str) -> float:
    found = TIME.fullmatch(text.strip())
    if not found or float(found[3]) >= 60 or (found[1] and int(found[2]) >= 60):
        raise FormError(f'{where}: expected a time such as 0:04:15 or 4:15, but found "{text[:40]}".')
    return 3600 * int(found[1] or 0) + 60 * int(found[2]) + float(found[3])


# ---------------------------------------------------------------- keyframes


def read_results(path: Path) -> Times:
    """Return the times of a JSON file in the form of KFS-Bench.

    Raises:
        FormError: the file cannot be read, is not of that form, or names a sample twice.
    """
    data = read_json(path)
    if not isinstance(data, list) or not data:
        raise FormError(f'{path} holds no results. Expected [{{"id": "003-2", "frame_timestamps": [1.5, 3.2]}}].')
    found: Times = {}
    for number, entry in enumerate(data, 1):
        where = f"{path}, result {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or not _are_times(entry.get("frame_timestamps")):
            raise FormError(f'{where}: expected an "id" and "frame_timestamps" in seconds, at least one.')
        if entry["id"] in found:
            raise FormError(f"{where}: {entry['id']} is there twice.")
        found[entry["id"]] = [float(time_s) for time_s in entry["frame_timestamps"]]
    return found


def _are_times(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(time_s) in (int, float) and math.isfinite(time_s) for time_s in value)


def read_runs(folder: Path, samples: Mapping[str, Any]) -> tuple[Times, Times]:
    """Return the times of vip's keyframes, and of as many evenly spaced frames, from the start of the video.

    Args:
        folder: holds a run folder ID or ID.vip for each sample; samples without one are left out.

    Raises:
        FormError: there is no run of any sample, or one is damaged, unfinished or of a part of its video.
    """
    chosen: Times = {}
    even: Times = {}
    for name in samples:
        path = next((path for path in (folder / f"{name}{RUN}", folder / name) if path.is_dir()), None)
        if path is None:
            continue
        try:
            found = vip.load_run(path)
            times_s, manifest = [frame.time_s for frame in found.keyframes if frame.time_s is not None], found.manifest
        except VipError as exc:
            raise FormError(str(exc)) from exc
        if manifest is None or not times_s:
            raise FormError(f"{path} is no run on a video.")
        if any(manifest.settings.get(end) is not None for end in ("start", "end")):
            raise FormError(f"{path} is a run on a part of a video, and scenes are of the whole. Extract without --start and --end.")
        begin_s, end_s = manifest.video.start_time_s, manifest.video.end_time_s
        chosen[name] = [time_s - begin_s for time_s in times_s]
        even[name] = evenly_spaced(end_s - begin_s, len(times_s))
    if not chosen:
        raise FormError(f"{folder} holds no run of a sample. Make one by: vip extract VIDEO -o {folder / next(iter(samples))}{RUN}")
    return chosen, even


# ---------------------------------------------------------------- figures


def score_all(scenes: Mapping[str, Sequence[Sequence[Span]]], times: Times) -> dict[str, KfsScore]:
    """Return the measures of each sample that has both scenes and keyframes."""
    return {name: score(some, times[name]) for name, some in scenes.items() if name in times}


def table(rows: Mapping[str, KfsSummary]) -> str:
    """Return a line for each way of choosing."""
    lines = [f"{'':16}{''.join(f'{NAMES[field.name]:>17}' for field in fields(KfsSummary))}"]
    for name, found in rows.items():
        lines.append(f"{name:16}{found.frames:17.1f}{''.join(f'{getattr(found, f.name):17.4f}' for f in fields(KfsSummary)[1:])}")
    return "\n".join(lines)


def run(annotations: Path, keyframes: Path) -> dict[str, dict[str, KfsScore]]:
    """Score, print the table and what it leaves out, and return the measures of each sample by way of choosing.

    Raises:
        FormError: a file is not of its published form, or nothing can be scored.
    """
    scenes = read_scenes(annotations)
    ways = dict(zip((VIP, EVEN), read_runs(keyframes, scenes), strict=True)) if keyframes.is_dir() else {RESULTS: read_results(keyframes)}
    scored = {way: score_all(scenes, times) for way, times in ways.items()}
    first, given = next(iter(scored.values())), next(iter(ways.values()))
    if not first:
        raise FormError(f"{keyframes} has no sample of {annotations}: the first here is {next(iter(given))}, there {next(iter(scenes))}.")
    print(f"{annotations.name}, {keyframes.name}: {len(first)} of {len(scenes)} samples")
    print(table({way: summary(list(scores.values())) for way, scores in scored.items()}))
    if unknown := given.keys() - scenes.keys():
        print(f"Not annotated: {len(unknown)} samples, such as {min(unknown)}")
    if EVEN not in ways:
        print("No evenly spaced frames: a file of results does not say how long the videos are.")
    return scored


def write_json(path: Path, scored: Mapping[str, Mapping[str, KfsScore]]) -> None:
    """Write the measures of all samples together and of each."""
    rows = {
        way: {
            "total": asdict(summary(list(scores.values()))),
            "samples": {name: {**asdict(one), "ukss": one.ukss} for name, one in scores.items()},
        }
        for way, scores in scored.items()
    }
    path.write_text(json.dumps(rows, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("annotations", type=Path, help="lvb_anno.csv or vidmme_anno.csv")
    parser.add_argument("keyframes", type=Path, help="a folder of run folders of vip, or a JSON file of results")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures, those of each sample too")
    args = parser.parse_args(arguments)
    try:
        scored = run(args.annotations, args.keyframes)
    except FormError as error:
        raise SystemExit(str(error)) from error
    if args.json:
        write_json(args.json, scored)


if __name__ == "__main__":
    main()
