"""Subtitles and features of VALUE: which sentence belongs to which frames, and files of strangers."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.tasks.value.made import write_lines
from tests.test_fuzz_records import sentence_of
from vip.errors import InputError
from vip.tasks.records import Subtitle
from vip.tasks.value import channels
from vip.tasks.value.channels import SubtitleFile, align_sentences, join_channels, read_features, write_features


def said(start_s: float, end_s: float, text: str = "hello") -> Subtitle:
    return Subtitle(start_s=start_s, end_s=end_s, text=text)


def test_a_sentence_belongs_to_the_frames_that_it_touches() -> None:
    frames = align_sentences([said(2.9, 3.1), said(3.0, 4.5), said(0.0, 0.2), said(100.0, 101.0), said(28.0, 40.0)], 20)
    assert [list(one) for one in frames] == [[1, 2], [2], [0], [], [18, 19]]


def test_a_last_sentence_that_does_not_end_has_its_first_11_frames() -> None:
    frames = align_sentences([said(0.0, 30.0), said(1.5, 60.0)], 40)
    assert [list(one) for one in frames] == [list(range(20)), list(range(1, 12))]
    assert [list(one) for one in align_sentences([said(1.25, 17.25)], 40)] == [list(range(12))], "16 s are not too long"


def test_one_channel_leaves_the_other_empty_in_its_place() -> None:
    both = join_channels(np.ones((4, 3), np.float32), [said(0.0, 2.0)])
    assert both.frames == (range(2),)
    assert [one.text for one in both.without_subtitles().sentences] == [""]
    assert both.without_subtitles().features.sum() == 12
    assert both.without_video().features.shape == (4, 3)
    assert not both.without_video().features.any()
    assert both.without_video().sentences == both.sentences


def test_published_subtitles_are_found_by_their_video(tmp_path: Path) -> None:
    rows = [{"vid_name": name, "sub": [{"text": f" Chase : {name} ", "start": 0.862, "end": 1.862}]} for name in ("a", "b")]
    subtitles = SubtitleFile(write_lines(tmp_path / "s.jsonl", [*rows, {"vid_name": "silent", "sub": []}]))
    assert len(subtitles) == 3
    assert subtitles.of_video("b") == (Subtitle(start_s=0.862, end_s=1.862, text="Chase : b"),)
    assert subtitles.of_video("silent") == subtitles.of_video("not there") == ()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"vid_name": "a"}, "line 1: no subtitles"),
        ({"vid_name": 3, "sub": []}, "line 1: no subtitles"),
        ({"vid_name": "a", "sub": [{"text": "x", "start": 3, "end": 2}]}, "lacks a text or its times"),
        ({"vid_name": "a", "sub": [{"text": "x", "start": 3}]}, "lacks a text or its times"),
        ({"vid_name": "a", "sub": [{"text": None, "start": 0, "end": 2}]}, "lacks a text or its times"),
    ],
)
def test_a_fault_of_subtitles_is_one_sentence(row: dict[str, object], message: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.jsonl", [row])
    with pytest.raises(InputError, match=message):
        SubtitleFile(path).of_video("a")
    twice = write_lines(tmp_path / "t.jsonl", [{"vid_name": "a", "sub": []}] * 2)
    with pytest.raises(InputError, match=r"line 2: the video a is there twice"):
        SubtitleFile(twice)


def test_features_stand_side_by_side_as_far_as_both_go(tmp_path: Path) -> None:
    write_features(tmp_path / "2d" / "v.npz", np.full((5, 2), 1, np.float32))
    np.savez(tmp_path / "3d.npz", features=np.full((4, 3), 2, np.float16))
    features = read_features([tmp_path / "2d" / "v.npz", tmp_path / "3d.npz"])
    assert features.shape == (4, 5)
    assert features.dtype == np.float32
    assert features[0].tolist() == [1, 1, 2, 2, 2]


def test_features_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There are no features"):
        read_features([tmp_path / "none.npz"])
    for array, message in (
        (np.array([{"a": 1}], object), 'has no array "features" of numbers'),
        (np.zeros((0, 3), np.float32), "at least one frame"),
        (np.array([[np.nan]], np.float32), "all of them finite"),
        (np.zeros(3, np.float32), r"of the shape \(3,\)"),
    ):
        np.savez(tmp_path / "x.npz", features=array)
        with pytest.raises(InputError, match=message):
            read_features([tmp_path / "x.npz"])
    (tmp_path / "x.npz").write_bytes(b"no zip")
    with pytest.raises(InputError, match="has no array"):
        read_features([tmp_path / "x.npz"])


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_any_byte_of_a_file_of_features(packing: int, tmp_path: Path) -> None:
    array, packed = io.BytesIO(), io.BytesIO()
    np.save(array, np.ones((6, 5), np.float32))
    with zipfile.ZipFile(packed, "w", packing) as archive:
        archive.writestr("features.npy", array.getvalue())
    chance, outcomes = random.Random(packing), set[str]()
    for _ in range(400):
        data = bytearray(packed.getvalue())
        for _ in range(chance.choice((1, 2, 5))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        (tmp_path / "v.npz").write_bytes(data)
        sentence = sentence_of(lambda: read_features([tmp_path / "v.npz"]))
        assert "\n" not in sentence
        outcomes.add("refused" if sentence else "read")
    assert outcomes == {"refused", "read"}  # a date does not matter


def test_sentences_and_lengths_are_bounded_and_times_are_numbers_in_order(tmp_path: Path) -> None:
    def read(*sentences: dict[str, object]) -> tuple[Subtitle, ...]:
        return SubtitleFile(write_lines(tmp_path / "s.jsonl", [{"vid_name": "a", "sub": list(sentences)}])).of_video("a")

    whole = {"text": "x" * 10_000, "start": "1.5", "end": 1.5}
    assert [(one.start_s, one.end_s, len(one.text)) for one in read(whole)] == [(1.5, 1.5, 10_000)]
    for change in ({"text": "x" * 10_001}, {"start": -0.1}, {"end": "Infinity"}, {"end": "NaN"}, {"start": 2}):
        with pytest.raises(InputError, match="lacks a text or its times"):
            read({**whole, **change})
    assert len(read(*[{"text": "x", "start": 0, "end": 1}] * 20_000)) == 20_000
    with pytest.raises(InputError, match="has more than 20,000 sentences"):
        read(*[{"text": "x", "start": 0, "end": 1}] * 20_001)


def test_subtitles_keep_their_order_and_a_packed_file_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.jsonl", [{"vid_name": name, "sub": []} for name in "cab"])
    path.write_text("\n" + path.read_text())
    subtitles = SubtitleFile(path)
    assert (subtitles.videos(), "a" in subtitles, "d" in subtitles) == (("c", "a", "b"), True, False)
    packed = tmp_path / "s.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(InputError, match=r"is packed\. Unpack it first: gunzip s\.jsonl\.gz"):
        SubtitleFile(packed)


def test_features_larger_than_any_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_features(tmp_path / "small.npz", np.ones((50, 4), np.float32))
    write_features(tmp_path / "large.npz", np.ones((500, 4), np.float32))
    monkeypatch.setattr("vip.tasks.value.channels.MOST_FEATURE_BYTES", 1000)  # as they are unpacked: packed, ones take less
    assert read_features([tmp_path / "small.npz"]).shape == (50, 4)
    with pytest.raises(InputError, match=r"large\.npz has 8,128 bytes of features, and more than 1,000 are not read"):
        read_features([tmp_path / "large.npz"])


@pytest.mark.parametrize(
    ("bound", "most", "read", "refused"), [("MOST_NUMBERS", 200, (50, 4), (67, 3)), ("MOST_FRAMES", 50, (50, 9), (51, 1))]
)
def test_features_of_more_frames_or_numbers_than_any_video_has_are_refused(
    bound: str, most: int, read: tuple[int, int], refused: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few hundred kilobytes unpack to a thousand times as many, and as float32 they are twice those of float16."""
    monkeypatch.setattr(channels, bound, most)
    np.savez_compressed(tmp_path / "v.npz", features=np.zeros(read, np.float16))
    assert read_features([tmp_path / "v.npz"]).shape == read
    np.savez_compressed(tmp_path / "w.npz", features=np.zeros(refused, np.float16))
    with pytest.raises(InputError, match=r"w\.npz has features of the shape .* are not read\. Give the features of a part of the video"):
        read_features([tmp_path / "w.npz"])


def test_the_longest_features_of_value_are_far_below_the_bounds() -> None:
    frames, numbers = 540, 2304  # 13.5 min of YouCook2, SlowFast
    assert 10 * frames <= channels.MOST_FRAMES
    assert 10 * frames * numbers <= channels.MOST_NUMBERS
    assert 10 * frames * numbers * 8 <= channels.MOST_FEATURE_BYTES
