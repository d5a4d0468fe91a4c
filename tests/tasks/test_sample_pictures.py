"""Pictures of samples: those that were named, in order, or one sentence."""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.clips import clip, scene
from tests.tasks.described import described_folder
from vip.errors import InputError
from vip.store import load_run
from vip.tasks.records import Blank, KeyframeDescription, Sample, SamplePicture, Text
from vip.tasks.sample_pictures import load_pictures, pictures_of
from vip.video import FileSource, open_video


def sample(*pieces: object) -> Sample:
    plain = Sample(id="a", task="fiber", task_version=1, video="v", ask=Blank(text="A _____."))
    return plain.model_copy(update={"context": pieces})


def decoded(data: bytes) -> np.ndarray:
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    return image[..., ::-1].astype(int)


def test_pictures_alone_and_of_described_keyframes_come_in_their_order() -> None:
    first, second, third = (SamplePicture(source="run", keyframe_id=name) for name in "abc")
    described = KeyframeDescription(keyframe_id="b", time_s=None, picture=second)
    bare = KeyframeDescription(keyframe_id="c", time_s=None, dense_caption="x")
    assert list(pictures_of(sample(first, Text(text="x"), described, bare, third))) == [first, second, third]


def test_a_frame_of_a_video_is_the_one_of_its_pts(tmp_path: Path) -> None:
    path = clip(tmp_path / "film.mp4", range(3))
    with open_video(FileSource(path)) as video:
        stamps, base = video.index.shown_pts, Fraction(video.time_base)
    shown = [SamplePicture(source=str(path), pts=int(stamps[place]), time_base=base) for place in (7, 1)]
    for picture, number in zip(load_pictures(sample(*shown), 512), (2, 0), strict=True):
        image = decoded(picture.data)
        differences = [np.abs(image - scene(other).astype(int)).mean() for other in range(3)]
        assert int(np.argmin(differences)) == number
    gone = SamplePicture(source=str(path), pts=10**9, time_base=base)
    with pytest.raises(InputError, match=f"shows no frame with PTS {10**9}"):
        load_pictures(sample(gone), 512)


def test_a_keyframe_is_sent_where_it_is_what_it_was_or_nobody_said_what_it_is(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "park", 3)
    keyframes = load_run(folder).keyframes
    named = [SamplePicture(source=str(folder), keyframe_id=one.id, sha256=sha256(one.data).hexdigest()) for one in keyframes]
    unsure = SamplePicture(source=str(folder), keyframe_id=keyframes[2].id)
    found = load_pictures(sample(named[1], unsure), 64)
    assert [decoded(one.data).mean().round() for one in found] == [10.0, 20.0]
    assert max(decoded(found[0].data).shape) == 64
    wrong = named[0].model_copy(update={"sha256": named[1].sha256})
    with pytest.raises(InputError, match=r"a: .*0000\.jpg has changed since the samples were made"):
        load_pictures(sample(named[0], wrong), 64)
    gone = SamplePicture(source=str(folder), keyframe_id="park:9")
    with pytest.raises(InputError, match="has no keyframe park:9 any more"):
        load_pictures(sample(gone), 64)
