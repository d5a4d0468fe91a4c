"""vip.baselines.fiber.video: features of clips, and the one of the third second"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.baselines.fiber.made import make_items, write_npy
from vip.baselines.fiber.video import Clip, FeatureFiles, FeatureFolder, open_clip_features, third_second
from vip.errors import InputError, UsageError

CLIP = Clip("abc", 12, 22)


def folder_with(path: Path, rows: object, name: str = "abc_000012_000022.npy") -> Path:
    path.mkdir(exist_ok=True)
    np.save(path / name, np.asarray(rows, np.float32))
    return path


def test_files_are_found_by_the_name_of_the_clip(tmp_path: Path) -> None:
    folder = FeatureFolder(folder_with(tmp_path / "i3d", np.ones((1, 31, 4))))
    folder.check([CLIP])
    assert folder.read(CLIP).shape == (31, 4)
    assert folder.width == 4


def test_a_file_may_have_the_name_of_the_video_alone(tmp_path: Path) -> None:
    assert FeatureFolder(folder_with(tmp_path / "i3d", np.ones((7, 4)), "abc.npy")).read(CLIP).shape == (7, 4)


@pytest.mark.parametrize(("features", "place"), [(32, 7), (5, 4), (1, 0)])
def test_the_single_feature_shows_the_third_second(tmp_path: Path, features: int, place: int) -> None:
    """The eighth window is centred at frame 64 of 25 a second, 2.56 s; 2.5 s is the middle of the third second."""
    folder = FeatureFolder(folder_with(tmp_path / "i3d", np.arange(features)[:, None] * np.ones((1, 2))))
    assert third_second(folder, CLIP, folder.read(CLIP))[:, 0].tolist() == [place]


def test_a_clip_without_features_is_named(tmp_path: Path) -> None:
    items = make_items(3)
    features = open_clip_features([write_npy(tmp_path / "i3d", items[:2])])
    with pytest.raises(InputError, match=r"1 of 3 clips have no features in .*, such as v2_000000_000010\.npy\."):
        features.check([item.clip for item in items])


def test_the_id_of_a_video_is_no_path(tmp_path: Path) -> None:
    folder_with(tmp_path / "i3d", np.ones((3, 2)))
    np.save(tmp_path / "secret.npy", np.ones((3, 2), np.float32))
    features = FeatureFolder(tmp_path / "i3d")
    with pytest.raises(InputError, match="1 of 1 clips have no features"):
        features.check([Clip("../secret", 0, 10)])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.ones((2, 3, 4)), r"float32 of shape \(2, 3, 4\)"),
        (np.ones(4), r"of shape \(4,\)"),
        (np.full((2, 4), np.nan), "not finite"),
        (np.ones((0, 4)), r"of shape \(0, 4\)"),
    ],
)
def test_features_of_another_form_are_one_sentence(tmp_path: Path, rows: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        FeatureFolder(folder_with(tmp_path / "i3d", rows))


def test_pickles_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "i3d").mkdir()
    np.save(tmp_path / "i3d" / "abc.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="holds no features that can be read"):
        FeatureFolder(tmp_path / "i3d")


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder_with(tmp_path / "i3d", np.ones((3, 2)), "a.npy")
    np.save(tmp_path / "other.npy", np.ones((3, 2), np.float32))
    (tmp_path / "i3d" / "abc.npy").symlink_to(tmp_path / "other.npy")
    with pytest.raises(InputError, match=r"abc\.npy holds no features that can be read"):
        FeatureFolder(tmp_path / "i3d").read(CLIP)


def test_features_of_two_widths_are_refused(tmp_path: Path) -> None:
    folder_with(tmp_path / "i3d", np.ones((3, 2)), "a.npy")
    folder_with(tmp_path / "i3d", np.ones((3, 5)))
    with pytest.raises(InputError, match="has 5 numbers a feature, others have 2"):
        FeatureFolder(tmp_path / "i3d").read(CLIP)


def test_nothing_and_two_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="sees the video"):
        open_clip_features([])
    with pytest.raises(UsageError, match="Give one folder"):
        open_clip_features([tmp_path, tmp_path])
    with pytest.raises(InputError, match=r"has no \.npy file"):
        open_clip_features([tmp_path])


@pytest.mark.extra("h5py")
def test_files_of_vip_features_are_read_by_clip_or_video(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    from tests.baselines.made import write_features

    path = write_features(tmp_path / "f.h5", np.arange(20).reshape(1, 10, 2), ["abc"])
    features = open_clip_features([path])
    features.check([CLIP])
    assert features.width == 2
    assert third_second(features, CLIP, features.read(CLIP)).tolist() == [[4.0, 5.0]]  # 2.5 of 10 s of ten features: the third
    features.close()


@pytest.mark.extra("h5py")
def test_files_with_maps_are_refused_and_a_clip_of_its_own_counts_before_its_video(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    from tests.baselines.made import write_features

    maps = write_features(tmp_path / "m.h5", np.ones((1, 2, 3, 4, 4)), ["abc"])
    with pytest.raises(InputError, match=r"m\.h5 holds feature maps\. Give features without"):
        open_clip_features([maps])
    values = np.arange(2)[:, None, None] * np.ones((2, 3, 4))
    features = open_clip_features([write_features(tmp_path / "f.h5", values, ["abc", CLIP.name], appearance=3)])
    assert features.width == 4
    assert features.read(CLIP)[0, 0] == 1.0
    assert features.read(Clip("abc", 0, 5))[0, 0] == 0.0
    assert [len(features.read(CLIP, most)) for most in (None, 2, 9)] == [3, 2, 3]
    with pytest.raises(InputError, match="1 of 2 videos have no features, such as xyz"):
        features.check([CLIP, Clip("xyz", 0, 5)])


@pytest.mark.extra("h5py")
def test_features_wider_than_any_are_one_sentence_before_a_training_begins(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["ids"] = [1]
        file.create_dataset("feat", (1, 2, 1_500_000), "f4", chunks=(1, 1, 100))
    with pytest.raises(InputError, match=r"f\.h5 has 2 clips a video, of 1,500,000 numbers each\. Give features of at most"):
        open_clip_features([tmp_path / "f.h5"])


def test_a_feature_of_hdf5_shows_its_share_of_the_time_of_the_clip() -> None:
    at = FeatureFiles.__new__(FeatureFiles).place_at
    assert [at(Clip("v", 5, 15), time_s, 10) for time_s in (0.0, 0.99, 1.0, 9.99, 10.0, 99.0)] == [0, 0, 1, 9, 9, 9]
    assert at(Clip("v", 5, 5), 0.5, 4) == 2, "a clip without length has one second"


def test_the_file_of_a_clip_counts_before_that_of_its_video_and_one_that_is_gone_is_said(tmp_path: Path) -> None:
    folder_with(tmp_path / "i3d", np.full((3, 2), 7.0))
    folder = FeatureFolder(folder_with(tmp_path / "i3d", np.full((3, 2), 8.0), "abc.npy"))
    assert (folder.read(CLIP)[0, 0], folder.read(Clip("abc", 0, 10))[0, 0]) == (7.0, 8.0)
    assert [len(folder.read(CLIP, most)) for most in (None, 2, 9)] == [3, 2, 3]
    with pytest.raises(InputError, match=r"i3d has no xyz_000000_000010\.npy\. Copy it there"):
        folder.read(Clip("xyz", 0, 10))
