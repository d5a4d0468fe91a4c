"""The pictures of moments, and pictures inside bars."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from tests.corpus.making import sample
from tests.search.test_ask_corpus import moment
from vip.dataset.rows import VideoSample
from vip.dataset.shards import write_shard
from vip.search.pictures import letterboxed, pictures_of

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
