"""The pictures of moments, and pictures inside bars."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.corpus.making import sample
from tests.search.test_ask_corpus import moment
from vip.dataset.rows import VideoSample
from vip.dataset.shards import write_shard
from vip.search import pictures
from vip.search.moments import Moment
from vip.search.pictures import letterboxed, pictures_of
from vip.store import write_picture

GREY = np.full((30, 60, 3), 128, np.uint8)


def test_a_picture_stands_in_the_middle_of_its_bars() -> None:
    (tall,) = letterboxed(GREY, [1.0])
    assert tall.shape == (60, 60, 3)
    assert [int(tall[row].max()) for row in (0, 14, 15, 44, 45, 59)] == [0, 0, 128, 128, 0, 0]
    (wide,) = letterboxed(GREY, [4.0])
    assert wide.shape == (30, 120, 3)
    assert [int(wide[:, column].max()) for column in (29, 30, 89, 90)] == [0, 128, 128, 0]


def test_a_picture_of_the_same_shape_has_no_bars() -> None:
    assert letterboxed(GREY, [2.0, 1.99]) == []
    assert len(letterboxed(GREY, [2.0, 1.5, 3.0])) == 2


def test_each_moment_of_a_shard_has_its_own_picture(tmp_path: Path) -> None:
    made = [coloured("one", 40), coloured("two", 200)]
    write_shard(str(tmp_path), 0, made, "webdataset")
    moments = [
        moment("x", 1).model_copy(update={"source": str(tmp_path), "part": "00000", "keyframe_id": name})
        for name in ("two:0001", "one:0001", "none:0001")
    ]
    found = pictures_of(moments)
    assert [None if one is None else round(float(one.mean()), -1) for one in found] == [200, 40, None]


def coloured(key: str, value: int) -> VideoSample:
    one = sample(key, 1)
    data = cv2.imencode(".jpg", np.full((48, 64, 3), value, np.uint8))[1].tobytes()
    object.__setattr__(one.frames[0], "picture", data)
    return one


def of(source: Path, keyframe_id: str, part: str = "") -> Moment:
    about = {"source": str(source), "part": part, "keyframe_id": keyframe_id, "picture": f"{source.stem} {keyframe_id}.png"}
    return moment("x", 1).model_copy(update=about)


def test_moments_of_several_sources_have_the_pictures_of_their_own_also_where_ids_are_alike(tmp_path: Path) -> None:
    levels = {"a.vip": 10, "b.vip": 60, "shards 0": 110, "shards 1": 160, "others 0": 210}
    for name in ("a.vip", "b.vip"):
        (tmp_path / name).mkdir()
        write_picture(tmp_path / name / f"{name[0]} v:0001.png", np.full((48, 64, 3), levels[name], np.uint8))
    for name in ("shards 0", "shards 1", "others 0"):
        folder, number = name.split()
        write_shard(str(tmp_path / folder), int(number), [coloured("v", levels[name])], "webdataset")
    asked = [of(tmp_path / "shards", "v:0001", "00001"), of(tmp_path / "b.vip", "v:0001"), of(tmp_path / "others", "v:0001", "00000")]
    asked += [of(tmp_path / "a.vip", "gone"), of(tmp_path / "shards", "v:0001", "00000"), of(tmp_path / "a.vip", "v:0001")]
    found = [None if one is None else round(float(one.mean()), -1) for one in pictures_of(asked)]
    assert found == [160, 60, 210, None, 110, 10]


def test_a_damaged_picture_is_missing_and_the_others_are_there(tmp_path: Path) -> None:
    (tmp_path / "a.vip").mkdir()
    write_picture(tmp_path / "a.vip" / "a good.png", GREY)
    (tmp_path / "a.vip" / "a bad.png").write_bytes(b"no picture")
    bad = coloured("bad", 40)
    object.__setattr__(bad.frames[0], "picture", b"no picture")
    write_shard(str(tmp_path / "set"), 0, [bad, coloured("good", 40)], "webdataset")
    asked = [of(tmp_path / "a.vip", "bad"), of(tmp_path / "a.vip", "good")]
    asked += [of(tmp_path / "set", "bad:0001", "00000"), of(tmp_path / "set", "good:0001", "00000")]
    assert [one is None for one in pictures_of(asked)] == [True, False, True, False]


def test_bars_that_would_be_too_large_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_PIXELS", 60 * 60)
    assert [one.shape for one in letterboxed(GREY, [1.0, 0.9, 4.0])] == [(60, 60, 3), (30, 120, 3)]
