"""Features of videos lie in the form of NExT-QA, and a second call goes on where the first one stopped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.clips import clip
from vip import registry
from vip.errors import InputError, StoreError, UsageError
from vip.protocols import ClipFeatures, ExtractorCapabilities
from vip.records import Failure, Image
from vip.store import read_rows
from vip.tasks.video_features import Extractors, FeatureRequest, _prepare, clip_places, clips_of, extract_features, summary_line
from vip.video import FileSource

h5py = pytest.importorskip("h5py")


class Means:
    """The mean colour of a clip; as motion, of its last frame less its first."""

    def __init__(self, *, is_motion: bool = False) -> None:
        self.name = "motion" if is_motion else "means"
        self.capabilities = ExtractorCapabilities(is_motion=is_motion)
        self.clips: list[list[Image]] = []

    def extract(self, clips: Sequence[Sequence[Image]], *, maps: bool = False) -> ClipFeatures:
        self.clips += [list(one) for one in clips]
        if self.capabilities.is_motion:
            return np.array([[np.mean(one[-1]) - np.mean(one[0])] for one in clips], np.float32)
        return np.array([np.mean(one, axis=(0, 1, 2)) for one in clips], np.float32)


@pytest.fixture
def extractors(monkeypatch: pytest.MonkeyPatch) -> dict[str, Means]:
    known = {"means": Means(), "motion": Means(is_motion=True)}
    monkeypatch.setattr(registry, "extractor", lambda name, **_: known[name])
    return known


def sources(folder: Path, *names: str) -> list[FileSource]:
    return [FileSource(folder / f"{name}.mp4") for name in names]


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    for number, name in enumerate(("one", "two")):
        clip(tmp_path / f"{name}.mp4", range(number, 3 + number))
    (tmp_path / "bad.mp4").write_bytes(b"no video")
    return tmp_path


REQUEST = FeatureRequest(model="means", motion="motion", clips=4, frames=6)


@pytest.mark.parametrize(("total", "clips", "frames"), [(1000, 16, 16), (100, 16, 16), (5, 3, 4), (1, 2, 2)])
def test_clips_lie_at_even_distances_and_stay_inside(total: int, clips: int, frames: int) -> None:
    places = clip_places(total, clips, frames)
    assert [len(one) for one in places] == [frames] * clips
    assert all(0 <= place < total for one in places for place in one)
    assert all(second - first in {0, 1} for one in places for first, second in pairwise(one))
    middles = [one[frames // 2] for one in places]
    gaps = {second - first for first, second in pairwise(middles)}
    assert max(gaps, default=0) - min(gaps, default=0) <= 1


def test_the_frames_of_a_clip_of_16_follow_each_other_around_its_middle() -> None:
    assert clip_places(170, 16, 16)[7] == list(range(72, 88))  # 170 * 8 // 17 = 80
    assert clip_places(100, 16, 16)[0] == [0, 0, 0, *range(13)]  # 100 // 17 = 5: the first frame stands for what would lie before it


def test_a_frame_that_cannot_be_decoded_is_its_nearest_neighbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def frames(wanted: Sequence[int], **options: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(pts=pts, image=np.full((2, 2, 3), pts, np.uint8)) for pts in wanted if pts not in (10, 40, 50)]

    reader = SimpleNamespace(index=SimpleNamespace(shown_pts=np.arange(0, 60, 10)), frames=frames)
    monkeypatch.setattr("vip.tasks.video_features.open_video", lambda video: nullcontext(reader))
    (found,) = clips_of(FileSource(tmp_path / "a.mp4"), FeatureRequest(model="means", clips=1, frames=6))
    assert [int(image[0, 0, 0]) for image in found] == [0, 0, 20, 30, 30, 30]


def test_numbers_that_are_not_finite_are_a_failure_of_their_video(videos: Path, extractors: dict[str, Means]) -> None:
    class Broken(Means):
        def extract(self, clips: Sequence[Sequence[Image]], *, maps: bool = False) -> ClipFeatures:
            found = super().extract(clips, maps=maps)
            found[0, 0] = np.inf
            return found

    extractors["means"] = Broken()
    done = extract_features(sources(videos, "one"), videos / "f.h5", REQUEST)
    assert "not finite" in done.failures[0].message
    assert not (videos / "f.h5").exists()


@pytest.mark.slow
def test_appearance_stands_before_motion_and_a_bad_video_does_not_stop_the_others(videos: Path, extractors: dict[str, Means]) -> None:
    out = videos / "out" / "am.h5"
    out.parent.mkdir()
    done = extract_features(sources(videos, "one", "bad", "two"), out, REQUEST)
    assert (done.shape, done.appearance, done.known) == ((2, 4, 4), 3, 0)
    assert [failure.kind for failure in done.failures] == ["unreadable"]
    assert [row.item for row in read_rows(out.parent / "failures.jsonl", Failure)] == [str(videos / "bad.mp4")]
    with h5py.File(out) as file:
        assert [name.decode() for name in file["ids"][:]] == ["one", "two"]
        feat = file["feat"][:]
        assert file["feat"].attrs["appearance"] == 3
    assert feat.dtype == np.float32
    seen = extractors["means"].clips[:4]
    np.testing.assert_allclose(feat[0, :, :3], extractors["means"].extract(seen))
    np.testing.assert_allclose(feat[0, :, 3:], extractors["motion"].extract(seen))
    assert max(seen[0][0].shape) <= 640


@pytest.mark.slow
def test_the_same_call_goes_on_and_gives_the_same_file(videos: Path, extractors: dict[str, Means]) -> None:
    out = videos / "am.h5"
    extract_features(sources(videos, "one", "bad"), out, REQUEST)
    before = len(extractors["means"].clips)
    shutil.copy(videos / "one.mp4", videos / "bad.mp4")
    done = extract_features(sources(videos, "one", "bad", "two"), out, REQUEST)
    assert (done.known, done.shape[0], done.failures) == (1, 3, ())
    assert len(extractors["means"].clips) == before + 2 * REQUEST.clips
    assert not (videos / "am.h5.parts").exists()
    assert not (videos / "failures.jsonl").exists()
    with pytest.raises(UsageError, match=r"am\.h5 exists already"):
        extract_features(sources(videos, "one"), out, REQUEST)
    first = out.read_bytes()
    extract_features(sources(videos, "one", "bad", "two"), out, REQUEST, overwrite=True)
    assert out.read_bytes() == first


@pytest.mark.slow
def test_a_file_that_was_begun_with_other_settings_is_not_mixed(videos: Path, extractors: dict[str, Means]) -> None:
    out = videos / "am.h5"
    extract_features(sources(videos, "one", "bad"), out, REQUEST)
    with pytest.raises(UsageError, match="was begun with other settings"):
        extract_features(sources(videos, "one"), out, FeatureRequest(model="means", clips=4, frames=2))
    done = extract_features(sources(videos, "one"), out, FeatureRequest(model="motion", clips=4, frames=2), overwrite=True)
    assert (done.shape, done.appearance) == ((1, 4, 1), 0)


def test_what_does_not_go_together_is_refused_before_a_video_is_read(tmp_path: Path, extractors: dict[str, Means]) -> None:
    (tmp_path / "b").mkdir()
    out = tmp_path / "x.h5"
    with pytest.raises(InputError, match="have one id, one"):
        extract_features([*sources(tmp_path, "one"), *sources(tmp_path / "b", "one")], out, REQUEST)
    with pytest.raises(UsageError, match="is for the appearance"):
        extract_features(sources(tmp_path, "one"), out, FeatureRequest(model="motion", motion="motion"))
    with pytest.raises(UsageError, match="gives no feature maps"):
        extract_features(sources(tmp_path, "one"), out, FeatureRequest(model="means", maps=True))
    with pytest.raises(UsageError, match="0 clips of 16 frames"):
        FeatureRequest(model="means", clips=0)
    assert list(tmp_path.iterdir()) == [tmp_path / "b"]


def listed(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("place", ["am.h5.parts", ".am.h5.partial", "am.h5"])
def test_nothing_is_written_through_a_link_beside_the_file(
    place: str, overwrite: bool, videos: Path, tmp_path_factory: pytest.TempPathFactory, extractors: dict[str, Means]
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "kept").write_bytes(b"as it was")
    target = elsewhere if place.endswith(".parts") else elsewhere / "kept"
    (videos / place).symlink_to(target)
    before = listed(elsewhere)
    refused = not overwrite and not place.endswith(".partial")
    with pytest.raises((StoreError, UsageError)) if refused else nullcontext():
        extract_features(sources(videos, "one"), videos / "am.h5", REQUEST, overwrite=overwrite)
    assert listed(elsewhere) == before
    if not refused:
        assert not (videos / "am.h5").is_symlink()
        with h5py.File(videos / "am.h5") as file:
            assert file["feat"].shape == (1, 4, 4)


def test_a_pipe_in_the_place_of_what_was_asked_holds_nothing_up(tmp_path: Path, extractors: dict[str, Means]) -> None:
    (tmp_path / "x.h5.parts").mkdir()
    os.mkfifo(tmp_path / "x.h5.parts" / "request.json")
    (tmp_path / "v.mp4").write_bytes(b"no video")
    done = extract_features(sources(tmp_path, "v"), tmp_path / "x.h5", REQUEST)
    assert [failure.kind for failure in done.failures] == ["unreadable"]
    assert (tmp_path / "x.h5.parts" / "request.json").is_file()


@pytest.mark.slow
def test_a_video_or_a_checkpoint_that_was_replaced_is_extracted_again(videos: Path, extractors: dict[str, Means]) -> None:
    out, weights = videos / "am.h5", videos / "mine.pt"
    weights.write_bytes(b"1")
    extractors[f"means@{weights}"] = extractors["means"]
    request = FeatureRequest(model=f"means@{weights}", motion="motion", clips=4, frames=6)
    extract_features(sources(videos, "one", "two", "bad"), out, request)
    before = len(extractors["means"].clips)
    clip(videos / "two.mp4", range(5, 9))
    done = extract_features(sources(videos, "one", "two", "bad"), out, request)
    assert (done.known, len(extractors["means"].clips) - before) == (1, request.clips), "of the two videos one was known"
    with h5py.File(out) as file:
        assert file["feat"].attrs["appearance"] == 3
        assert not file["feat"].attrs["is_motion"]
        assert file.attrs["clips"] == "4"
    weights.write_bytes(b"22")
    with pytest.raises(UsageError, match="was begun with other settings"):
        extract_features(sources(videos, "one"), out, request)


def test_what_features_depend_on_names_the_state_of_a_model_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.pt").write_bytes(b"1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "open_clip_model.safetensors").write_bytes(b"1")
    for model, own in (
        (f"torchvision:resnet18@{tmp_path / 'mine.pt'}", "mine.pt"),
        (f"open_clip:{tmp_path / 'folder'}", "folder/open_clip_model.safetensors"),
    ):
        for named in ({"model": model}, {"model": "torchvision:resnet18", "motion": model}):
            request = FeatureRequest(**named)
            before = request.content["checkpoints"]
            assert before[model]
            (tmp_path / own).write_bytes(before[model].encode())
            assert request.content["checkpoints"] != before
    assert FeatureRequest(model="torchvision:resnet18").content["checkpoints"] == {"torchvision:resnet18": ""}


@pytest.mark.slow
def test_motion_alone_says_so_and_a_gone_video_is_missing(videos: Path, extractors: dict[str, Means]) -> None:
    out = videos / "m.h5"
    done = extract_features(sources(videos, "one", "gone"), out, FeatureRequest(model="motion", clips=2, frames=2))
    assert [failure.kind for failure in done.failures] == ["missing"]
    with h5py.File(out) as file:
        assert (bool(file["feat"].attrs["is_motion"]), int(file["feat"].attrs["appearance"])) == (True, 1)
    assert summary_line(done) == f"1 video, features of 2 × 1 each, in {out}"


def test_a_folder_in_the_place_of_the_file_is_refused_and_maps_of_two_sizes_do_not_go_together(tmp_path: Path) -> None:
    (tmp_path / "out.h5").mkdir()
    with pytest.raises(UsageError, match=r"out\.h5 is a folder\. Name a file in it with"):
        _prepare(tmp_path / "out.h5", tmp_path / "parts", REQUEST, overwrite=False)

    def of(*shape: int) -> SimpleNamespace:
        return SimpleNamespace(extract=lambda clips, maps: np.zeros((len(clips), *shape), np.float32))

    pair = Extractors(of(3, 7, 7), of(2, 4, 4))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"Maps of \(7, 7\) and \(4, 4\) do not go together\. Leave one model out"):
        pair.extract([[]], True)
    found, appearance = Extractors(of(3, 7, 7), of(2, 7, 7)).extract([[], []], True)  # type: ignore[arg-type]
    assert (found.shape, appearance) == ((2, 5, 7, 7), 3)
    alone, appearance = Extractors(None, of(2)).extract([[]], False)  # type: ignore[arg-type]
    assert (alone.shape, appearance) == ((1, 2), 0)
