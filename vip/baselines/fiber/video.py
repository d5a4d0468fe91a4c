"""Features of the clips of FIBER: VATEX's I3D files as they are, or the files that `vip features` writes.

In: a folder of `<video>_<start>_<end>.npy`, float (T, D) or (1, T, D), one feature every 8 frames of 25 a second; or HDF5 files. Out: the
features of a clip, and of the third second the one that a single-feature model gets (Castro et al. 2022, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vip import files
from vip.baselines.features import FeatureStore
from vip.errors import InputError, UsageError
from vip.store import array_of
from vip.untrusted import DAMAGE, one_line
from vip.wording import option

STRIDE_FRAMES, CENTRE_FRAMES, FRAMES_A_SECOND = 8, 8, 25.0  # of VATEX's I3D: windows of 16 frames, one every 8
THIRD_SECOND_S = 2.5  # its middle
MOST_BYTES = 2**28
MOST_SIZE = 1_000_000
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Clip:
    """A part of a video, from second to second."""

    video: str
    start_s: int
    end_s: int

    @property
    def name(self) -> str:
        """As VATEX's files are called: `<video>_<start>_<end>`, six digits each."""
        return f"{self.video}_{self.start_s:06d}_{self.end_s:06d}"


class ClipFeatures(Protocol):
    """The features of clips."""

    width: int
    """Numbers a feature."""

    def check(self, clips: Sequence[Clip]) -> None:
        """Refuse clips without features.

        Raises:
            InputError: there are some; the message says how many.
        """

    def read(self, clip: Clip, most: int | None = None) -> Floats:
        """Return (T, D), the first `most` of them.

        Raises:
            InputError: they are damaged, or of another width than the others.
        """

    def place_at(self, clip: Clip, time_s: float, count: int) -> int:
        """Return which of the `count` features of a clip shows this time, or the last one."""

    def close(self) -> None: ...


def open_clip_features(paths: Sequence[Path]) -> ClipFeatures:
    """Open a folder of npy files, or HDF5 files.

    Raises:
        UsageError: none are given, or a folder and something else.
        InputError: they cannot be read.
        BackendError: h5py is not installed.
    """
    if not paths:
        raise UsageError(f"This model sees the video. Give its features: {option('features', 'DIR')}.")
    if paths[0].is_dir():
        if len(paths) > 1:
            raise UsageError(f"{paths[0]} is a folder of features, and there is more. Give one folder, or HDF5 files.")
        return FeatureFolder(paths[0])
    return FeatureFiles(paths)


class FeatureFolder:
    """A folder of npy files, as VATEX publishes them."""

    def __init__(self, folder: Path) -> None:
        """Note which files there are, and read the width of the first.

        Raises:
            InputError: there are none, or the first is damaged.
        """
        self.folder = folder
        self._names = {name for name in files.names_in(folder) if name.endswith(".npy")}
        if not self._names:
            raise InputError(f"{folder} has no .npy file. Give the folder of VATEX's features, or HDF5 files of `vip features`.")
        self.width = 0
        self.width = self._load(min(self._names)).shape[1]

    def check(self, clips: Sequence[Clip]) -> None:
        missing = sorted({clip.name for clip in clips if self._name_of(clip) is None})
        if missing:
            raise InputError(
                f"{len(missing):,} of {len(set(clips)):,} clips have no features in {self.folder}, such as"
                f" {one_line(missing[0])[:80]}.npy. Copy them there."
            )

    def read(self, clip: Clip, most: int | None = None) -> Floats:
        name = self._name_of(clip)
        if name is None:
            raise InputError(f"{self.folder} has no {one_line(clip.name)[:80]}.npy. Copy it there.")
        return self._load(name)[:most]

    def _name_of(self, clip: Clip) -> str | None:
        """Return one of the names that the folder was seen to have: what annotations call a video is no path."""
        return next((name for name in (f"{clip.name}.npy", f"{clip.video}.npy") if name in self._names), None)

    def _load(self, name: str) -> Floats:
        path = self.folder / name
        try:
            data = array_of(files.read_bytes(path, inside=self.folder, most_bytes=MOST_BYTES))
        except (OSError, *DAMAGE) as exc:
            raise InputError(f"{path} holds no features that can be read ({one_line(str(exc))[:100]}). Copy it again.") from exc
        found = data[0] if data.ndim == 3 and len(data) == 1 else data
        if found.ndim != 2 or found.dtype.kind != "f" or 0 in found.shape or max(found.shape) > MOST_SIZE:
            raise InputError(f"{path} is {data.dtype} of shape {data.shape}. Expected floats of shape (features, numbers).")
        if not np.isfinite(found).all():
            raise InputError(f"{path} holds numbers that are not finite. Copy it again.")
        if self.width and found.shape[1] != self.width:
            raise InputError(f"{path} has {found.shape[1]} numbers a feature, others have {self.width}. Give features of one kind.")
        return np.asarray(found, np.float32)

    def place_at(self, clip: Clip, time_s: float, count: int) -> int:
        return min(count - 1, max(0, round((time_s * FRAMES_A_SECOND - CENTRE_FRAMES) / STRIDE_FRAMES)))

    def close(self) -> None:
        pass


class FeatureFiles:
    """HDF5 files of `vip features`: of each video as many features, evenly over its time."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._store = FeatureStore(paths)
        if self._store.sizes.maps is not None:
            raise InputError(f"{paths[0]} holds feature maps. Give features without: `vip features` makes them.")
        self.width = self._store.sizes.appearance + self._store.sizes.motion

    def check(self, clips: Sequence[Clip]) -> None:
        self._store.check([self._key(clip) for clip in clips])

    def read(self, clip: Clip, most: int | None = None) -> Floats:
        return self._store.read_video(self._key(clip), most=most)

    def _key(self, clip: Clip) -> str:
        return clip.name if self._store.has(clip.name) else clip.video

    def place_at(self, clip: Clip, time_s: float, count: int) -> int:
        return min(count - 1, int(time_s / max(1, clip.end_s - clip.start_s) * count))

    def close(self) -> None:
        self._store.close()


def third_second(features: ClipFeatures, clip: Clip, found: Floats) -> Floats:
    """Return (1, D): the feature whose time is nearest to the middle of the third second."""
    place = features.place_at(clip, THIRD_SECOND_S, len(found))
    return found[place : place + 1]
