"""Pictures of samples: those that were named, in order, or one sentence; and which run folders they are read from."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.tasks.described import described_folder
from tests.tasks.test_keyframe_task import samples
from vip import store
from vip.errors import InputError
from vip.store import load_run
from vip.tasks.files import distrust, trust, write_samples
from vip.tasks.infilling import VideoInfilling
from vip.tasks.records import Blank, KeyframeDescription, Sample, SamplePicture, Text
from vip.tasks.sample_pictures import PictureSources, load_pictures, pictures_of


@pytest.fixture
def made(tmp_path: Path) -> list[Sample]:
    return samples(VideoInfilling(), described_folder(tmp_path / "mine" / "a", 5), pictures=True)


@pytest.fixture
def of_a_stranger(made: list[Sample], tmp_path: Path) -> Path:
    """The samples as another machine writes them, in a folder of downloads."""
    path = tmp_path / "downloads" / "s.jsonl"
    path.parent.mkdir()
    store.write_rows(path, made)
    return path


def opened(file: Path, sample: Sample, *named: Path) -> bool:
    """Whether its pictures are read."""
    try:
        return bool(load_pictures(sample, 64, PictureSources(file, named)))
    except InputError:
        return False


def test_a_strangers_samples_show_what_lies_elsewhere_only_where_it_is_named_or_trusted(
    of_a_stranger: Path, made: list[Sample], tmp_path: Path
) -> None:
    (sample,) = made
    assert not opened(of_a_stranger, sample)
    assert opened(of_a_stranger, sample, tmp_path / "mine")
    assert opened(of_a_stranger, sample, tmp_path / "mine" / "a")
    trust(of_a_stranger)
    assert opened(of_a_stranger, sample)
    copy = of_a_stranger.with_name("copy.jsonl")
    copy.write_bytes(of_a_stranger.read_bytes())
    assert opened(copy, sample)
    copy.write_bytes(of_a_stranger.read_bytes() + b"\n")
    assert not opened(copy, sample)
    distrust(of_a_stranger)
    assert not opened(of_a_stranger, sample)


def test_samples_of_this_machine_show_any_folder(made: list[Sample], tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    write_samples(tmp_path / "own" / "s.jsonl", made)
    assert opened(tmp_path / "own" / "s.jsonl", made[0])


@pytest.mark.parametrize("source", ["beside", "deep/beside", "."])
def test_a_run_beside_a_strangers_samples_is_shown(source: str, of_a_stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sample,) = samples(VideoInfilling(), described_folder(of_a_stranger.parent / source, 5), pictures=True)
    assert opened(of_a_stranger, sample)
    monkeypatch.chdir(of_a_stranger.parent)
    assert PictureSources(Path("s.jsonl")).allows(source)
    assert PictureSources(Path("s.jsonl")).allows(str(of_a_stranger.parent / source))


@pytest.mark.parametrize("source", ["link", "deep/link", "folder/a", "deep/../../mine/a", "../mine/a", "round", "round/a", "no\0path"])
def test_no_link_and_no_way_up_leads_a_strangers_samples_out_of_their_folder(
    source: str, made: list[Sample], of_a_stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = of_a_stranger.parent
    (here / "deep").mkdir()
    (here / "link").symlink_to(tmp_path / "mine" / "a")
    (here / "deep" / "link").symlink_to(tmp_path / "mine" / "a")
    (here / "folder").symlink_to(tmp_path / "mine")
    (here / "round").symlink_to("round")
    monkeypatch.chdir(here)
    assert not PictureSources(of_a_stranger).allows(source)
    assert not PictureSources(Path("s.jsonl")).allows(source)


def test_every_source_is_checked_before_anything_is_asked(made: list[Sample], of_a_stranger: Path) -> None:
    (inside,) = samples(VideoInfilling(), described_folder(of_a_stranger.parent / "b", 5), pictures=True)
    PictureSources(of_a_stranger).check_all([inside])
    with pytest.raises(InputError) as refused:
        PictureSources(of_a_stranger).check_all([inside, made[0]])
    assert str(refused.value) == (
        f"{made[0].id} shows pictures of {next(pictures_of(made[0])).source}, and another machine made {of_a_stranger}: what lies elsewhere"
        f" is not opened unasked. Look at the file, then run `vip trust {of_a_stranger}`."
    )


# ---------------------------------------------------------------- which pictures


def showing(*pieces: object) -> Sample:
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
    assert list(pictures_of(showing(first, Text(text="x"), described, bare, third))) == [first, second, third]


def test_a_keyframe_is_sent_where_it_is_what_it_was_or_nobody_said_what_it_is(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "park", 3)
    everywhere = PictureSources(tmp_path / "s.jsonl")
    keyframes = load_run(folder).keyframes
    named = [SamplePicture(source=str(folder), keyframe_id=one.id, sha256=sha256(one.data).hexdigest()) for one in keyframes]
    unsure = SamplePicture(source=str(folder), keyframe_id=keyframes[2].id)
    found = load_pictures(showing(named[1], unsure), 64, everywhere)
    assert [decoded(one.data).mean().round() for one in found] == [10.0, 20.0]
    assert max(decoded(found[0].data).shape) == 64
    wrong = named[0].model_copy(update={"sha256": named[1].sha256})
    with pytest.raises(InputError, match=r"a: .*0000\.jpg has changed since the samples were made"):
        load_pictures(showing(named[0], wrong), 64, everywhere)
    gone = SamplePicture(source=str(folder), keyframe_id="park:9")
    with pytest.raises(InputError, match="has no keyframe park:9 any more"):
        load_pictures(showing(gone), 64, everywhere)
