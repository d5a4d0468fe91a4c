"""Shots as people marked them: the files of BBC Planet Earth, RAI, ClipShots and AutoShot, as they were published.

The user points at a copy of their own. Out come transitions by frame numbers from 0. A file that is not of its published form is
refused with its line; a row that can mean two things is too.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from published import FormError, read_json, read_text
from shot_scores import Transition

DATASETS = {
    "bbc": "a folder of NN_Title.txt, the first release of BBC Planet Earth (annotations/shots)",
    "bbc-fixed": "a folder of NN-scenes.txt, the corrected release of BBC Planet Earth (zenodo.org/records/14873790, fixed.zip)",
    "rai": "a folder of N_gt.txt",
    "clipshots": "test.json, train.json or only_gradual.json",
    "autoshot": "a folder of ID.txt, or gt_scenes_dict_baseline_v2.pickle",
}
NAMES = {"bbc": r"(\d+)_.*\.txt", "bbc-fixed": r"(\d+)-scenes\.txt", "rai": r"(\d+)_gt\.txt", "autoshot": r"(\w+)\.txt"}
VIDEO_NAMES = {"bbc": r"bbc_(\d+)", "bbc-fixed": r"bbc_(\d+)", "rai": r"(\d+)"}
SHIFT = {"bbc": 1}  # its numbers are one too small: `consolidate_datasets.py` of TransNetV2 adds one to all but the first
NUMPY_OF_PICKLES = {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}


@dataclass(frozen=True)
class Truth:
    """The transitions of one video, in time order."""

    transitions: tuple[Transition, ...]
    frames: int | None = None
    """How many the annotators saw, where the file says so; 0 for a video of ClipShots' train.json that they could not see."""
    notes: tuple[str, ...] = ()
    """What was left out or read otherwise than it stands there."""


def read_truth(dataset: str, path: Path) -> dict[str, Truth]:
    """Return the truth of each video by its id: `01` of bbc_01.mp4, `1` of 1.mp4, ID of ID.mp4, and ClipShots' file names.

    Raises:
        FormError: the file or folder is missing, empty, or not of the published form.
    """
    if not path.exists():
        raise FormError(f"{path} does not exist. {dataset} is {DATASETS[dataset]}.")
    if dataset == "clipshots":
        return _read_clipshots(path)
    if dataset == "autoshot" and path.suffix == ".pickle":
        return _read_pickle(path)
    if not path.is_dir():
        raise FormError(f"{path} is a file, but {dataset} is {DATASETS[dataset]}.")
    found: dict[str, Truth] = {}
    for file in sorted(path.glob("*.txt")):
        if not (name := re.fullmatch(NAMES[dataset], file.name)):
            raise FormError(f"{file} is no file of {dataset}, which is {DATASETS[dataset]}.")
        if name[1] in found:
            raise FormError(f"{file} is the second file of video {name[1]}.")
        found[name[1]] = read_shots(file, shift=SHIFT.get(dataset, 0))
    if not found:
        raise FormError(f"{path} has no annotation. {dataset} is {DATASETS[dataset]}.")
    return found


def video_id(dataset: str, name: str) -> str | None:
    """Return the id of a video by the name of its file; None if it has the name of no video of the data set."""
    if dataset == "clipshots":
        return name
    stem = name.partition(".")[0]
    if dataset not in VIDEO_NAMES:
        return stem
    known = re.fullmatch(VIDEO_NAMES[dataset], stem)
    return known[1] if known else None


# ---------------------------------------------------------------- shots, a row each


def read_shots(file: Path, *, shift: int = 0) -> Truth:
    """Return the transitions between the shots of a text file: a row a shot, its first and its last frame, from 0.

    Args:
        shift: added to every number. The first frame of the video stays 0, but no transition depends on it.

    Raises:
        FormError: a row is not two whole numbers, or overlaps the row before by more than a frame.
    """
    shots = []
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if not line.strip():
            continue
        if not re.fullmatch(r"\s*\d+[ \t]+\d+\s*", line):
            raise FormError(f'{file}, line {number}: expected the first and the last frame of a shot, but found "{line.strip()[:40]}".')
        first, last = map(int, line.split())
        shots.append((f"{file}, line {number}", first, last))
    return _between(shots, str(file), shift)


def _between(shots: list[tuple[str, int, int]], where: str, shift: int = 0) -> Truth:
    """Return the transitions between shots: (where it stands, first frame, last frame)."""
    if not shots:
        raise FormError(f"{where} holds no shot.")
    transitions, shared = [], 0
    for place, first, last in shots:
        if last < first:
            raise FormError(f"{place}: the shot ends at frame {last}, before it begins at {first}.")
    for (_, _, last), (place, first, end) in pairwise(shots):
        if first < last or (first == last and end == first):
            raise FormError(f"{place}: the shot begins at frame {first}, before the one above ends at {last}.")
        if first == last:  # so it stands in the published BBC files; PySceneDetect's benchmark takes it for a cut behind that frame
            shared += 1
        transitions.append(Transition(last + shift, max(first, last + 1) + shift))
    notes = (f"{shared} frames stand in two shots; the cut is taken to lie behind them",) if shared else ()
    return Truth(tuple(transitions), notes=notes)


# ---------------------------------------------------------------- ClipShots


def _read_clipshots(path: Path) -> dict[str, Truth]:
    """{"NAME.mp4": {"transitions": [[last frame before, first frame behind], …], "frame_num": 3561.0}, …}"""
    data = read_json(path)
    if not isinstance(data, dict) or not data:
        raise FormError(f"{path} holds no videos. clipshots is {DATASETS['clipshots']}.")
    return {name: _clipshots_video(f"{path}, {name}", entry) for name, entry in data.items()}


def _clipshots_video(where: str, entry: Any) -> Truth:
    if not isinstance(entry, dict) or not isinstance(entry.get("transitions"), list) or not _is_whole(entry.get("frame_num")):
        raise FormError(f'{where}: expected "transitions" and a whole "frame_num".')
    frames, transitions, left_out = int(entry["frame_num"]), [], []
    for last, first in pairs(entry["transitions"], where):
        if last < first < frames:
            transitions.append(Transition(last, first))
        else:  # typing errors of the published files: 5 in test.json, 98 in train.json
            left_out.append([last, first])
    notes = (f"left out {', '.join(map(str, left_out))}: no transition within {frames} frames",) if left_out else ()
    return Truth(in_order(transitions, where), frames, notes)


def pairs(rows: Any, where: str) -> Iterator[tuple[int, int]]:
    """Yield rows of two frame numbers.

    Raises:
        FormError: a row is something else.
    """
    for row in rows if isinstance(rows, list) else [rows]:
        if not (isinstance(row, list) and len(row) == 2 and all(type(frame) is int and frame >= 0 for frame in row)):
            raise FormError(f"{where}: expected two frame numbers, but found {json.dumps(row)[:40]}.")
        yield row[0], row[1]


def in_order(transitions: Iterable[Transition], where: str) -> tuple[Transition, ...]:
    """Return the transitions in time order.

    Raises:
        FormError: two overlap.
    """
    ordered = sorted(transitions)
    for one, other in pairwise(ordered):
        if other.last < one.first:
            raise FormError(f"{where}: the transitions {one.last}–{one.first} and {other.last}–{other.first} overlap.")
    return tuple(ordered)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value) and value >= 0


# ---------------------------------------------------------------- AutoShot's pickle


def _read_pickle(path: Path) -> dict[str, Truth]:
    """{ID: int array (shots, 2) of first and last frames}: the 200 test videos, as AutoShot's own evaluation reads them."""
    try:
        with path.open("rb") as file:
            data = _ArrayUnpickler(file).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, ValueError, TypeError, IndexError, OSError) as exc:
        raise FormError(f"{path} is no pickle of arrays ({exc}). autoshot is {DATASETS['autoshot']}.") from exc
    if not isinstance(data, dict) or not data:
        raise FormError(f"{path} holds no videos. autoshot is {DATASETS['autoshot']}.")
    found = {}
    for name, shots in data.items():
        where = f"{path}, {name}"
        if getattr(shots, "shape", ())[1:] != (2,) or shots.dtype.kind not in "iuf" or not ((shots >= 0) & (shots % 1 == 0)).all():
            raise FormError(f"{where}: expected an array of whole numbers (shots, 2).")
        rows = shots.astype(int).tolist()  # videos of a single shot hold floats
        found[str(name)] = _between([(f"{where}, shot {i}", *row) for i, row in enumerate(rows, 1)], where)
    return found


class _ArrayUnpickler(pickle.Unpickler):
    """Reads arrays and nothing else: a pickle may call any function, and this one is a stranger's."""

    def find_class(self, module: str, name: str) -> Any:
        if (module.replace("numpy._core", "numpy.core"), name) not in NUMPY_OF_PICKLES:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)
