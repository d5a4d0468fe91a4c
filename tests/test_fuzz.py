"""Whatever is wrong with a file: never a hang, never a crash, keyframes wherever FFmpeg decodes a frame, one sentence where not."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import av
import pytest

import vip
from tests.cli.terminal import vip as command
from tests.media import OPEN_GOP_265, QUIET, write
from vip.errors import InputError
from vip.models.opencv import OpenCVDetector
from vip.processes import isolated
from vip.processes.isolated import run_isolated
from vip.protocols import Observer, SilentObserver
from vip.records import Detection
from vip.video.container import ANY_METADATA

FRAMES = 10
PATIENCE_S = 60.0
FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "h264.mp4": ("libx264", {"muxer": {"movflags": "faststart"}}),
    "one_gop.mp4": ("libx264", {"gop": 1000}),
    "hevc.mp4": ("libx265", {"options": {"x265-params": QUIET}}),
    "open_gop.ts": ("libx265", {"options": OPEN_GOP_265}),
    "vp9.webm": ("libvpx-vp9", {}),
    "h264.mkv": ("libx264", {}),
    "mpeg4.avi": ("mpeg4", {}),
    "mjpeg.avi": ("mjpeg", {"pixels": "yuvj420p"}),
    "gif.gif": ("gif", {"pixels": "rgb8"}),
    "h264.flv": ("libx264", {}),
}
Damage = Callable[[bytes, random.Random], bytes]


def cut(percent: int, data: bytes, chance: random.Random) -> bytes:
    return data[: max(1, len(data) * percent // 100)]


def flip(one_in: int, data: bytes, chance: random.Random) -> bytes:
    wrong = bytearray(data)
    for _ in range(max(1, len(data) // one_in)):
        wrong[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(wrong)


def hole(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randrange(1, len(data) // 4) :]


def no_index(data: bytes, chance: random.Random) -> bytes:
    """Without the box, chunk or element that says where the frames lie."""
    if b"moov" in data:
        start = data.index(b"moov") - 4
        return data[:start] + data[start + int.from_bytes(data[start : start + 4], "big") :]
    if b"idx1" in data:
        return data[: data.rindex(b"idx1")]
    return data.replace(b"\x1c\x53\xbb\x6b", b"\xec\x53\xbb\x6b")  # Matroska's cues become a void element


def wrong_index(data: bytes, chance: random.Random) -> bytes:
    """A tenth of the bytes of the index are wrong."""
    mark = next(mark for mark in (b"moov", b"idx1", b"\x1c\x53\xbb\x6b") if mark in data)
    start = data.rindex(mark) + 8
    end = start + int.from_bytes(data[start - 12 : start - 8], "big") - 12 if mark == b"moov" else len(data)
    return data[:start] + flip(10, data[start:end], chance) + data[end:]


DAMAGES: dict[str, Damage] = {
    **{f"cut {percent} %": partial(cut, percent) for percent in (1, 10, 50, 90, 99)},
    **{f"flip 1 in {number}": partial(flip, number) for number in (100, 1000, 100_000)},
    "hole": hole,
    "no index": no_index,
    "wrong index": wrong_index,
}


WITHOUT_INDEX = (".ts", ".gif", ".flv")
CASES = [(name, kind) for name in FILES for kind in DAMAGES if not ("index" in kind and name.endswith(WITHOUT_INDEX))]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the files as they should be."""
    folder = tmp_path_factory.mktemp("whole")
    for name, (codec, settings) in FILES.items():
        write(folder / name, codec, frames=FRAMES, **{"gop": 5, **settings})
    return folder


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash must not take pytest along; and what is looked for is damage, not people."""
    monkeypatch.setattr(isolated, "_can_fork", lambda: True)

    def detect_nothing(self: OpenCVDetector, images: list[Any], where: object = ()) -> list[list[Detection] | None]:
        return [[] for _ in images]

    monkeypatch.setattr(OpenCVDetector, "detect", detect_nothing)


def count_frames(path: Path, observer: Observer) -> None:
    """Tell how many frames PyAV alone decodes, one packet after the other."""
    try:
        with av.open(str(path), **ANY_METADATA) as container:
            stream: Any = container.streams.video[0]
            context = stream.codec_context  # None: damage has made its name one that nobody knows
            frames = sum(len(_decoded(context, packet)) for packet in container.demux(stream)) if context else 0
    except (av.error.FFmpegError, IndexError):
        frames = 0
    observer.note(str(frames))


def _decoded(context: Any, packet: Any) -> list[Any]:
    try:
        return list(context.decode(packet))
    except av.error.FFmpegError:
        return []


def frames_of_pyav(path: Path) -> int:
    told: list[int] = []

    class Listening(SilentObserver):
        def note(self, text: str) -> None:
            told.append(int(text))

    run_isolated(partial(count_frames, path), path, Listening(), timeout_s=PATIENCE_S, fork=True)
    return told[0]


def extracted(path: Path, out: Path) -> vip.Run | InputError:
    try:
        return vip.extract(path, out=out, keyframes=3, isolated=True, timeout=PATIENCE_S)
    except InputError as error:
        return error


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_damaged_file_gives_keyframes_where_a_frame_can_be_decoded_and_a_sentence_where_not(
    name: str, kind: str, whole: Path, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(DAMAGES[kind]((whole / name).read_bytes(), random.Random(f"{name} {kind}")))
    found = extracted(path, tmp_path / "run")
    if isinstance(found, InputError):
        assert str(path) in str(found)
        assert len(str(found).splitlines()) == 1
        assert frames_of_pyav(path) == 0, str(found)
        assert not (tmp_path / "run").exists()
    else:
        times = [keyframe.time_s for keyframe in found.keyframes]
        assert times
        assert times == sorted(times)
        assert all(keyframe.image.any() for keyframe in found.keyframes)


def test_a_batch_of_damaged_files_ends_with_a_row_for_each_that_is_refused(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    for name in ("h264.mp4", "vp9.webm", "mpeg4.avi"):
        for kind in ("cut 1 %", "cut 90 %", "flip 1 in 100"):
            data = DAMAGES[kind]((whole / name).read_bytes(), random.Random(name))
            (tmp_path / "clips" / f"{kind} {name}").write_bytes(data)
    done = command(tmp_path, "extract", "clips", "-n", "2", "-o", "runs")
    assert done.code == 8, done.err
    assert all(line.startswith("vip: ") for line in done.err.splitlines()), done.err
    refused = {Path(row.item).name for row in vip.Run(tmp_path / "runs").failures}
    written = {path.parent.stem for path in (tmp_path / "runs").rglob("keyframes.jsonl")}
    assert {f"cut 1 % {name}" for name in ("h264.mp4", "vp9.webm")} <= refused
    assert len(refused) + len(written) == 9
