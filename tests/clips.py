"""Small videos and run folders for tests of what happens around the pictures: files, commands, resuming."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from av.video.frame import VideoFrame

from vip.records import Image

SAMPLE = Path(__file__).parents[1] / "examples" / "sample.mp4"
FRAMES_A_SCENE, RATE = 3, 3
CHANGING = frozenset({"seconds", "created_utc", "signature", "latency_s", "path", "modified_ns"})
"""Fields that differ between two runs of the same command on copies of a video."""


def scene(number: int) -> Image:
    """A sharp picture that looks like no other."""
    blocks = np.random.default_rng(number).integers(0, 256, (9, 16, 3), np.uint8)
    return np.asarray(cv2.resize(blocks, (160, 90), interpolation=cv2.INTER_NEAREST), np.uint8)


def clip(path: Path, scenes: Sequence[int] = range(6)) -> Path:
    """A video of one second a scene; repeat a number and it shows the same picture again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", container_options={"movflags": "faststart"} if path.suffix == ".mp4" else {}) as output:
        stream: Any = output.add_stream("libx264", rate=RATE, options={"g": str(FRAMES_A_SCENE), "crf": "18"})
        stream.width, stream.height, stream.pix_fmt = 160, 90, "yuv420p"
        stream.codec_context.time_base = Fraction(1, RATE)
        for tick in range(len(scenes) * FRAMES_A_SCENE):
            frame = VideoFrame.from_ndarray(scene(scenes[tick // FRAMES_A_SCENE]), format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = tick, Fraction(1, RATE)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def sound(path: Path) -> Path:
    """A file with audio only."""
    with av.open(str(path), "w") as output:
        stream: Any = output.add_stream("aac", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.float32), format="fltp", layout="mono")
        frame.rate = 8000
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def picture(path: Path, number: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    done, data = cv2.imencode(path.suffix, scene(number))
    assert done
    path.write_bytes(data.tobytes())
    return path


def stamps(folder: Path) -> dict[str, int]:
    """When each file of the folder was last written."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in sorted(folder.rglob("*")) if path.is_file()}


def result(folder: Path) -> dict[str, Any]:
    """What a run came to: rows, and the bytes of the pictures, without what differs from run to run."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".jsonl":
            found[name] = [_steady(json.loads(line)) for line in path.read_text().splitlines()]
        elif path.name == "manifest.json":
            found[name] = _steady(json.loads(path.read_text()))
        elif path.name == "report.html":
            found[name] = "there"  # it tells seconds and the date
        elif path.is_file():
            found[name] = sha256(path.read_bytes()).hexdigest()
    return found


def _steady(record: Any) -> Any:
    """The record without times of day and durations of work."""
    if isinstance(record, dict):
        return {key: _steady(value) for key, value in record.items() if key not in CHANGING}
    return [_steady(value) for value in record] if isinstance(record, list) else record
