"""A run is the same, byte by byte, on any number of cores: of whole files, and of damaged ones that threads see differently."""

from __future__ import annotations

import os
import random
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import cv2
import pytest

import vip
from tests.clips import result
from tests.media import OPEN_GOP, QUIET, write
from vip.cores import one_opencv_thread
from vip.errors import InputError
from vip.models.opencv import OpenCVDetector
from vip.processes import isolated
from vip.processes.isolated import run_isolated
from vip.protocols import Observer, SilentObserver
from vip.records import Detection
from vip.video import Video

CORES = (1, 2, 5)
FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "gops.mp4": ("libx264", {"gop": 4}),
    "open_gop.ts": ("libx264", {"options": OPEN_GOP}),
    "one_gop.mp4": ("libx264", {"gop": 1000}),
    "two_gops.webm": ("libvpx-vp9", {"gop": 20}),
    "hevc.mp4": ("libx265", {"gop": 1000, "options": {"x265-params": QUIET}}),
    "all_intra.avi": ("mjpeg", {"pixels": "yuvj420p"}),
    "raw.h264": ("libx264", {"gop": 10}),
}
# FFmpeg's HEVC and MPEG-2 decoders say nothing where they leave a part of a damaged picture as it was in memory: with them, no two
# runs need agree.
ONE_GOP: dict[str, tuple[str, dict[str, Any]]] = {
    "h264.mp4": ("libx264", {}),
    "h264.ts": ("libx264", {}),
    "slices.mkv": ("libx264", {"options": {"x264-params": "slices=4"}}),
    "vp8.webm": ("libvpx", {}),
    "vp9.webm": ("libvpx-vp9", {}),
    "av1.mp4": ("libsvtav1", {"options": {"preset": "12"}}),
    "mpeg4.avi": ("mpeg4", {}),
    "apng.apng": ("apng", {"pixels": "rgb24"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_run_is_the_same_on_any_number_of_cores(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def detect_nothing(self: OpenCVDetector, images: list[Any], where: object = ()) -> list[list[Detection] | None]:
        return [[] for _ in images]

    monkeypatch.setattr(OpenCVDetector, "detect", detect_nothing)
    codec, settings = FILES[name]
    path = write(tmp_path / name, codec, frames=30, **settings).path
    runs = []
    for cores in CORES:
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        folder = tmp_path / str(cores)
        vip.extract(path, out=folder, keyframes=4)
        runs.append(result(folder))
    assert {"candidates.jsonl", "embeddings.npz", "thumbnails.zip", "keyframes.jsonl"} < set(runs[0])
    assert runs[0] == runs[1] == runs[2]


def pictures(path: Path, threads: int, observer: Observer) -> None:
    """Tell the PTS of every frame with a hash of its picture, decoded with this number of threads, or why there are none."""
    try:
        with Video(path) as video, video.reopen(threads=threads) as reader:
            for frame in reader.frames(video.index.shown_pts.tolist()):
                observer.note(f"{frame.pts} {sha256(frame.image.tobytes()).hexdigest()}")
    except InputError as error:
        observer.note(str(error))


@pytest.fixture(scope="module")
def one_gop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one_gop")
    for name, (codec, settings) in ONE_GOP.items():
        write(folder / name, codec, frames=24, gop=1000, **settings)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ONE_GOP)
def test_damaged_frames_are_the_same_for_any_number_of_threads(
    name: str, seed: int, one_gop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several frames at a time, FFmpeg's threads see the damage in another order each time, and some crash."""
    monkeypatch.setattr(isolated, "_can_fork", lambda: True)
    chance = random.Random(f"{name} {seed}")
    data = bytearray((one_gop / name).read_bytes())
    for _ in range((1, 5, 20)[seed]):
        data[chance.randrange(len(data) // 4, len(data) * 3 // 4)] = chance.randrange(256)
    path = tmp_path / name
    path.write_bytes(data)
    told: list[list[str]] = []

    class Listening(SilentObserver):
        def note(self, text: str) -> None:
            told[-1].append(text)

    for threads in CORES:
        told.append([])
        run_isolated(partial(pictures, path, threads), path, Listening(), timeout_s=60, fork=True)
    assert told[0]
    assert told[0] == told[1] == told[2]


def test_opencv_has_its_threads_back_also_after_an_error() -> None:
    before = cv2.getNumThreads()
    cv2.setNumThreads(2)
    try:
        with pytest.raises(InputError, match="1 is enough"), one_opencv_thread():
            raise InputError(f"{cv2.getNumThreads()} is enough")
        assert cv2.getNumThreads() == 2
    finally:
        cv2.setNumThreads(before)
