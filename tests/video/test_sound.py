"""The sound of a video in blocks: where it begins and ends, what follows what, and which stream is heard."""

from __future__ import annotations

from contextlib import nullcontext
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest

from vip.errors import InputError
from vip.video import FileSource
from vip.video import sound as sound_module
from vip.video.sound import RATE, SoundBlock, SoundStream, read_sound, sound_stream

BLOCK_S = 0.1


def write(path: Path, *, seconds: float = 3.0, streams: int = 1, default: int = 0, begin_s: float = 0.0, gap_s: float = 0.0) -> Path:
    """Write streams of sound, each louder than the one before, with a gap in their middle."""
    with av.open(path, "w") as out:
        added = [out.add_stream("pcm_s16le", rate=RATE, layout="mono") for _ in range(streams)]
        for number, stream in enumerate(added):
            stream.metadata["language"] = f"l{number}"
            stream.disposition = av.stream.Disposition.default if number == default else av.stream.Disposition(0)
        size = round(BLOCK_S * RATE)
        for place in range(round(seconds / BLOCK_S)):
            late_s = gap_s if place * BLOCK_S >= seconds / 2 else 0.0
            for number, stream in enumerate(added):
                frame = av.AudioFrame.from_ndarray(np.full((1, size), 3000 * (number + 1), np.int16), format="s16", layout="mono")
                frame.sample_rate, frame.time_base = RATE, Fraction(1, RATE)
                frame.pts = place * size + round((begin_s + late_s) * RATE)
                out.mux(stream.encode(frame))
        for stream in added:
            out.mux(stream.encode(None))
    return path


def blocks_of(path: Path, **between: float) -> list[SoundBlock]:
    source = FileSource(path)
    stream = sound_stream(source)
    assert stream is not None
    return list(read_sound(source, stream.number, **between))


@pytest.mark.parametrize("begin_s", [0.0, 2.0])
@pytest.mark.parametrize(
    ("start_s", "end_s"), [(None, None), (0.0, 3.0), (1.23, None), (None, 1.23), (0.55, 2.05), (1.0, 2.0), (1.0, 1.05)]
)
def test_sound_between_two_times_is_all_of_it_and_no_more(
    tmp_path: Path, begin_s: float, start_s: float | None, end_s: float | None
) -> None:
    between = {name: begin_s + time for name, time in (("start_s", start_s), ("end_s", end_s)) if time is not None}
    blocks = blocks_of(write(tmp_path / "a.mkv", begin_s=begin_s), **between)
    assert [one.follows for one in blocks] == [False] + [True] * (len(blocks) - 1)
    assert all(one.end_s == other.start_s for one, other in pairwise(blocks))
    first_s, last_s = begin_s + (start_s or 0.0), begin_s + (3.0 if end_s is None else end_s)
    assert (float(blocks[0].start_s), float(blocks[-1].end_s)) == pytest.approx((first_s, last_s), abs=2 / RATE)


@pytest.mark.parametrize(("gap_s", "breaks"), [(0.0, 0), (0.05, 0), (0.5, 1)])
def test_behind_a_gap_a_block_follows_nothing(tmp_path: Path, gap_s: float, breaks: int) -> None:
    blocks = blocks_of(write(tmp_path / "a.mkv", gap_s=gap_s))
    assert sum(not one.follows for one in blocks[1:]) == breaks
    assert float(blocks[-1].end_s) == pytest.approx(3.0 + (gap_s if breaks else 0.0), abs=2 / RATE)


def test_behind_the_end_nothing_is_heard(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv")
    assert blocks_of(path, start_s=5.0) == []
    assert blocks_of(path, end_s=0.0) == []


@pytest.mark.parametrize(("streams", "default", "language"), [(1, 0, "l0"), (3, 0, "l0"), (3, 2, "l2"), (3, -1, "l0")])
def test_the_default_stream_is_heard_or_else_the_first(tmp_path: Path, streams: int, default: int, language: str) -> None:
    path = write(tmp_path / "a.mkv", streams=streams, default=default)
    found = sound_stream(FileSource(path))
    assert found
    assert (found.language, found.others) == (language, streams - 1)
    (level,) = {round(float(np.abs(one.samples).max()), 3) for one in blocks_of(path)}
    assert level == pytest.approx(3000 * (int(language[1]) + 1) / 32768, abs=0.002)


@pytest.mark.parametrize(("suffix", "begin_s", "end_s"), [("mkv", 0.0, 3.0), ("mov", 0.0, 3.0), ("mov", 2.0, 5.0)])
def test_the_end_is_that_of_the_file(tmp_path: Path, suffix: str, begin_s: float, end_s: float) -> None:
    found = sound_stream(FileSource(write(tmp_path / f"a.{suffix}", begin_s=begin_s)))
    assert found
    assert found.end_s == pytest.approx(end_s, abs=0.05)


@pytest.mark.parametrize(
    ("start", "duration", "end_s"),
    [(500_000, 3_000_000, 3.5), (0, 3_000_000, 3.0), (None, 3_000_000, 3.0), (500_000, None, None), (None, 0, None)],
)
def test_the_end_is_known_where_a_file_states_its_length_also_where_it_states_no_start(
    monkeypatch: pytest.MonkeyPatch, start: int | None, duration: int | None, end_s: float | None
) -> None:
    """A fake container. Its first stream cannot be decoded; the second says neither its language nor that it is the usual one."""
    plain: dict[str, Any] = {"metadata": {}, "disposition": av.stream.Disposition(0)}
    streams = [SimpleNamespace(index=1, codec_context=None, **plain), SimpleNamespace(index=2, codec_context="aac", **plain)]
    container = SimpleNamespace(streams=SimpleNamespace(audio=streams), start_time=start, duration=duration)
    monkeypatch.setattr(sound_module, "_open", lambda source: nullcontext(container))
    assert sound_stream(FileSource(Path("a.mkv"))) == SoundStream(2, "und", 0, end_s)
    streams.pop()
    assert sound_stream(FileSource(Path("a.mkv"))) is None


def test_a_frame_has_the_time_of_its_own_clock_or_of_that_of_its_stream_or_follows_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake decoder, whose frames of a tenth of a second count in samples, in milliseconds, or not at all."""

    def frame(pts: int | None, clock: Fraction | None) -> av.AudioFrame:
        made = av.AudioFrame.from_ndarray(np.full((1, RATE // 10), 3000, np.int16), format="s16", layout="mono")
        made.sample_rate, made.pts = RATE, pts
        if clock is not None:
            made.time_base = clock
        return made

    frames = [frame(None, None), frame(8000, Fraction(1, RATE)), frame(2000, None), frame(None, None)]
    monkeypatch.setattr(sound_module, "_frames", lambda *_: iter(frames))
    container: Any = None
    found = list(sound_module._decoded(container, SimpleNamespace(time_base=Fraction(1, 1000)), "a.mkv"))
    assert [float(start) for start, _ in found] == pytest.approx([0.0, 0.5, 2.0, 2.1])
    assert sum(len(samples) for _, samples in found) == pytest.approx(4 * RATE // 10, abs=40)


@pytest.mark.parametrize(("damaged", "is_read"), [("x" * 5, True), ("xx." * 4, True), ("x" * 6, False)])
def test_so_many_damaged_frames_in_a_row_are_the_end_and_others_a_gap(monkeypatch: pytest.MonkeyPatch, damaged: str, is_read: bool) -> None:
    class Packet:
        def __init__(self, state: str) -> None:
            self.state = state

        def decode(self) -> list[str]:
            if self.state == "x":
                raise ValueError("damaged")
            return ["frame"]

    class Container:
        def demux(self, _: object) -> list[Packet]:
            return [Packet(state) for state in f"{damaged}."]

    monkeypatch.setattr(sound_module, "MOST_DAMAGED", 5)
    read = sound_module._frames(Container(), None, "a.mkv")  # type: ignore[arg-type]
    if is_read:
        assert list(read) == ["frame"] * (damaged.count(".") + 1)
    else:
        with pytest.raises(InputError, match=r"a\.mkv: its sound cannot be decoded \(damaged\)"):
            list(read)


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ffconcat"])
def test_the_sound_of_a_playlist_is_not_that_of_another_file(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / "secret.mkv")
    path = tmp_path / f"list.{suffix}"
    path.write_text("ffconcat version 1.0\nfile secret.mkv\n")
    with pytest.raises(InputError, match="its sound cannot be read"):
        sound_stream(FileSource(path))
