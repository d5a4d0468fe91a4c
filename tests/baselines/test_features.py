"""vip.baselines.features"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.baselines.made import write_features
from vip.baselines import features
from vip.baselines.features import FeatureFile, FeatureStore
from vip.errors import InputError

RANDOM = np.random.default_rng(0)
FEATS = RANDOM.normal(size=(3, 4, 6)).astype(np.float32)


@pytest.mark.parametrize("ids", [["7", "8", "9"], [7, 8, 9]], ids=["bytes", "numbers"])
def test_features_are_found_by_the_name_of_their_video(tmp_path: Path, ids: list[object]) -> None:
    file = FeatureFile(write_features(tmp_path / "f.h5", FEATS, ids))
    np.testing.assert_array_equal(file.read(["9", "7", "9"]), FEATS[[2, 0, 2]])


def test_of_4096_numbers_the_first_half_is_appearance(tmp_path: Path) -> None:
    sizes = FeatureFile(write_features(tmp_path / "f.h5", np.zeros((1, 2, 4096)), ["a"])).sizes
    assert (sizes.clips, sizes.appearance, sizes.motion) == (2, 2048, 2048)
    noted = FeatureFile(write_features(tmp_path / "n.h5", np.zeros((1, 2, 4096)), ["a"], appearance=1000)).sizes
    assert (noted.appearance, noted.motion) == (1000, 3096), "where the file says nothing else"


def test_the_file_or_the_user_says_how_much_is_appearance(tmp_path: Path) -> None:
    path = write_features(tmp_path / "f.h5", FEATS, ["a", "b", "c"], appearance=2)
    assert FeatureFile(path).sizes.motion == 4
    assert FeatureFile(path, appearance=5).sizes.motion == 1
    assert FeatureFile(write_features(tmp_path / "g.h5", FEATS, ["a", "b", "c"])).sizes.motion == 0


def test_feature_maps_are_read_as_they_are(tmp_path: Path) -> None:
    maps = RANDOM.normal(size=(2, 3, 4, 7, 7)).astype(np.float32)
    file = FeatureFile(write_features(tmp_path / "m.h5", maps, ["a", "b"], appearance=2))
    assert file.sizes.maps == (4, 7, 7)
    np.testing.assert_array_equal(file.read(["b"]), maps[1:])


def test_several_files_are_one_store(tmp_path: Path) -> None:
    paths = [write_features(tmp_path / f"{name}.h5", FEATS + n, [f"{name}{i}" for i in range(3)]) for n, name in enumerate("xy")]
    store = FeatureStore(paths)
    asked = ["y2", "x1", "y0", "x0", "y2"]
    np.testing.assert_array_equal(store.read(asked), np.stack([FEATS[int(name[1])] + "xy".index(name[0]) for name in asked]))


def test_a_packed_file_is_read_too(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "p.h5", "w") as file:
        file["ids"] = np.array(["a", "b", "c"], dtype="S")
        file.create_dataset("feat", data=FEATS.astype(np.float16), compression="gzip")
    np.testing.assert_array_equal(FeatureFile(tmp_path / "p.h5").read(["b"])[0], FEATS[1].astype(np.float16))


def test_videos_without_features_are_counted(tmp_path: Path) -> None:
    store = FeatureStore([write_features(tmp_path / "f.h5", FEATS, ["a", "b", "c"])])
    with pytest.raises(InputError, match=r"^2 of 3 videos have no features, such as x\."):
        store.check(["a", "y", "x", "a"])


def test_bad_files_are_named_in_one_sentence(tmp_path: Path) -> None:
    good = write_features(tmp_path / "good.h5", FEATS, ["a", "b", "c"])
    (tmp_path / "text.h5").write_text("no HDF5")
    (tmp_path / "folder.h5").mkdir()
    os.mkfifo(tmp_path / "pipe.h5")
    (tmp_path / "cut.h5").write_bytes(good.read_bytes()[:-200])
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file["ids"] = [1]
    expected = {
        "missing.h5": "does not exist",
        "folder.h5": "is no file",
        "pipe.h5": "is no file",
        "text.h5": "is no HDF5 file",
        "cut.h5": "cut off",
        "empty.h5": "has no data set feat",
    }
    for name, message in expected.items():
        with pytest.raises(InputError, match=message):
            FeatureFile(tmp_path / name)
    with pytest.raises(InputError, match="more than once"):
        FeatureFile(write_features(tmp_path / "d.h5", FEATS, ["a", "b", "a"]))
    with pytest.raises(InputError, match=r"shape \(3, 4\)"):
        FeatureFile(write_features(tmp_path / "s.h5", FEATS[..., 0], ["a", "b", "c"]))
    with pytest.raises(InputError, match="3 features and ids of shape"):
        FeatureFile(write_features(tmp_path / "n.h5", FEATS, ["a", "b"]))
    with pytest.raises(InputError, match=r"in .*good\.h5 and in"):
        FeatureStore([good, write_features(tmp_path / "again.h5", FEATS, ["c", "d", "e"])])
    with pytest.raises(InputError, match="Give files of one kind"):
        FeatureStore([good, write_features(tmp_path / "wide.h5", np.zeros((1, 4, 7)), ["z"])])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named_with_their_video(number: float, tmp_path: Path) -> None:
    feats = FEATS.copy()
    feats[1, 2, 3] = number
    file = FeatureFile(write_features(tmp_path / "f.h5", feats, ["a", "b", "c"]))
    file.read(["a", "c"])
    with pytest.raises(InputError, match="the features of b hold"):
        file.read(["a", "b"])


def stored_elsewhere(path: Path, how: str) -> Path:
    """A file whose features are those of another file."""
    other = write_features(path.with_name("other.h5"), FEATS, ["a", "b", "c"])
    with h5py.File(path, "w") as file:
        file["ids"] = np.array(["a", "b", "c"], dtype="S")
        if how == "external link":
            file["feat"] = h5py.ExternalLink(str(other), "feat")
        elif how == "soft link":
            file["kept"] = h5py.ExternalLink(str(other), "/")
            file["feat"] = h5py.SoftLink("/kept/feat")
        elif how == "virtual":
            layout = h5py.VirtualLayout(FEATS.shape, "f4")
            layout[:] = h5py.VirtualSource(str(other), "feat", FEATS.shape, "f4")
            file.create_virtual_dataset("feat", layout)
        else:
            path.with_name("raw").write_bytes(FEATS.tobytes())
            file.create_dataset("feat", FEATS.shape, "f4", external=[(str(path.with_name("raw")), 0, FEATS.nbytes)])
    return path


@pytest.mark.parametrize("how", ["external link", "soft link", "virtual", "external"])
def test_numbers_of_other_files_are_not_read(how: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="feat leads to another place or file, and vip follows no link in a file"):
        FeatureFile(stored_elsewhere(tmp_path / "f.h5", how))


def unwritten(path: Path, shape: tuple[int, ...], **how: Any) -> Path:
    """Features that state a shape and have no numbers: a small file, read as zeros."""
    with h5py.File(path, "w") as file:
        file["ids"] = np.arange(shape[0])
        file.create_dataset("feat", shape, "f4", **how)
    return path


def test_pieces_that_no_memory_should_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="feat has 1,073,741,824 numbers a row, and more than 33,554,432 are not read"):
        FeatureFile(unwritten(tmp_path / "f.h5", (1, 2**15, 2**15), chunks=(1, 16, 16)))
    with pytest.raises(InputError, match="feat has chunks of 536,870,912 bytes, and more than 268,435,456 are not unpacked"):
        FeatureFile(unwritten(tmp_path / "c.h5", (64, 16, 2**17), chunks=(64, 16, 2**17)))
    with h5py.File(tmp_path / "g.h5", "w") as file:
        file.create_dataset("ids", (10**7,), "i8", chunks=(1000,), compression="gzip")
        file.create_dataset("feat", (10**7, 1, 2), "f4", chunks=(1000, 1, 2), compression="gzip")
    with pytest.raises(InputError, match="has 10,000,000 ids"):
        FeatureFile(tmp_path / "g.h5")


@pytest.mark.parametrize(("clips", "width"), [(100_001, 2), (2, 1_000_001)])
def test_more_clips_or_numbers_than_any_model_takes_are_one_sentence(clips: int, width: int, tmp_path: Path) -> None:
    path = unwritten(tmp_path / "f.h5", (2, clips, width), chunks=(1, 2, 2))
    with pytest.raises(
        InputError, match=rf"f\.h5 has {clips:,} clips a video, of {width:,} numbers each\. Give features of at most 100,000"
    ):
        FeatureFile(path)
    assert FeatureFile(unwritten(tmp_path / "most.h5", (2, clips - clips % 2, width - width % 2), chunks=(1, 2, 2))).sizes.clips


def test_a_batch_that_no_memory_should_hold_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FeatureStore([unwritten(tmp_path / "f.h5", (8, 4, 6))])
    monkeypatch.setattr(features, "MOST_BATCH_BYTES", 3 * 4 * 6 * 4)
    assert store.read(["0", "7", "0"]).shape == (3, 4, 6)
    monkeypatch.delattr(FeatureFile, "read_video")
    for one in (store, store.files[0]):
        with pytest.raises(InputError, match=r"A batch of 4 with 24 numbers each has 384 bytes, .* Set a smaller batch, or give features"):
            one.read(["0", "7", "0", "1"])


def test_the_features_of_the_papers_are_far_below_the_bounds() -> None:
    clips, width, batch = 16, 4096, 64
    assert 10 * clips * width * 7 * 7 <= features.MOST_ROW_NUMBERS
    assert 10 * clips * width * 7 * 7 * 4 <= features.MOST_CHUNK_BYTES
    assert 10 * batch * clips * width * 4 <= features.MOST_BATCH_BYTES
    assert 2 * batch * clips * width * 7 * 7 * 4 <= features.MOST_MAPS_BYTES


def test_maps_are_averaged_video_by_video_and_only_their_means_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = RANDOM.normal(size=(3, 2, 4, 7, 7)).astype(np.float32)
    store = FeatureStore([write_features(tmp_path / "m.h5", maps, ["a", "b", "c"])])
    monkeypatch.setattr(features, "MOST_BATCH_BYTES", 3 * 2 * 4 * 4)
    np.testing.assert_allclose(store.read(["c", "a", "c"], pooled=True), maps[[2, 0, 2]].mean(axis=(3, 4)), rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(features, "MOST_MAPS_BYTES", 1 * 2 * 4 * 7 * 7 * 4)
    np.testing.assert_array_equal(store.read(["a"]), maps[:1])
    with pytest.raises(InputError, match="A batch of 2 with 392 numbers each"):
        store.read(["a", "b"])
    flat = FeatureStore([write_features(tmp_path / "f.h5", FEATS, ["a", "b", "c"])])
    monkeypatch.undo()
    np.testing.assert_array_equal(flat.read(["b"], pooled=True), FEATS[[1]])


def test_maps_whose_mean_is_too_large_are_named_with_their_video(tmp_path: Path) -> None:
    file = FeatureFile(write_features(tmp_path / "m.h5", np.full((2, 1, 2, 7, 7), 3e38), ["a", "b"]))
    with pytest.raises(InputError, match="the features of b hold numbers that are not finite"):
        file.read(["b"], pooled=True)


TEXT = h5py.string_dtype()


def with_ids(path: Path, count: int, **how: Any) -> Path:
    """Features of which nothing is written, and ids that are."""
    with h5py.File(path, "w") as file:
        file.create_dataset("feat", (count, 1, 2), "f4")
        file.create_dataset("ids", **how)
    return path


def with_stated_ids(path: Path, count: int, text: str, *, stated: int | None = None) -> Path:
    """A file in which all ids are one text, which lies in it once, of the length that is stated."""
    with h5py.File(path, "w") as file:
        file.create_dataset("feat", (count, 1, 2), "f4")
        ids = file.create_dataset("ids", (count,), TEXT)
        ids[0] = text
        file.flush()
        start = ids.id.get_offset()
    data = bytearray(path.read_bytes())
    row = struct.pack("<I", stated or len(text)) + data[start + 4 : start + 16]
    data[start : start + 16 * count] = row * count
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("userblock", [0, 1024])
def test_ids_of_any_length_are_read_wherever_they_lie_in_the_file(userblock: int, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w", userblock_size=userblock) as file:
        file["feat"] = FEATS
        file.create_dataset("ids", data=["a", "é" * 500, "c"], dtype=TEXT)
    assert FeatureFile(tmp_path / "f.h5").rows == {"a": 0, "é" * 500: 1, "c": 2}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_heaps_of_names_are_read_to_an_end(tmp_path: Path, data: st.DataObject) -> None:
    """HDF5 2.0 reads some of them for ever, and no Ctrl-C ends that."""
    names = [f"video {number}" for number in range(9)]
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("feat", (9, 1, 2), "f4")
        file.create_dataset("ids", data=names, dtype=TEXT)
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    for _ in range(data.draw(st.integers(1, 3))):
        content[heap + data.draw(st.integers(0, 300))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), heap + 10, heap + 100]))] if data.draw(st.booleans()) else content)
    with suppress(InputError):
        assert len(FeatureFile(path).rows) == 9


def test_many_heaps_of_names_are_read(tmp_path: Path) -> None:
    names = [f"{number}:{'n' * (number % 90)}" for number in range(3000)] + [""]
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.create_dataset("feat", (3001, 1, 2), "f4")
        file.create_dataset("ids", data=names, dtype=TEXT)
    assert FeatureFile(tmp_path / "f.h5").rows == {name: row for row, name in enumerate(names)}


def test_a_text_that_is_stored_once_and_stands_for_all_ids_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_stated_ids(tmp_path / "one.h5", 50, "x" * 1_000_000)
    with pytest.raises(InputError, match="50 ids of up to 1,000,000 bytes, 50,000,000 bytes together"):
        FeatureFile(path)
    with pytest.raises(InputError, match="2 ids of up to 1,000,000,000 bytes"):
        FeatureFile(with_stated_ids(tmp_path / "lie.h5", 2, "x", stated=1_000_000_000))
    monkeypatch.setattr(features, "MOST_IDS_BYTES", 1000)
    with pytest.raises(InputError, match="20 ids of up to 51 bytes, 1,020 bytes together"):
        FeatureFile(with_stated_ids(tmp_path / "many.h5", 20, "x" * 51))
    with pytest.raises(InputError, match="more than once"):
        FeatureFile(with_stated_ids(tmp_path / "few.h5", 20, "x" * 50))


@pytest.mark.parametrize("how", [{"shape": (9,)}, {"shape": (9,), "fillvalue": "x"}, {"data": list("abcdefghi"), "chunks": (3,)}])
def test_ids_of_any_length_whose_rows_are_nowhere_or_packed_are_refused(how: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ids of any length that are packed, or not written"):
        FeatureFile(with_ids(tmp_path / "f.h5", 9, dtype=TEXT, **how))


def test_ids_that_unpack_to_more_than_any_names_have_are_refused(tmp_path: Path) -> None:
    small = with_ids(tmp_path / "f.h5", 2_000_000, shape=(2_000_000,), dtype="S1000", chunks=(10_000,), compression="gzip")
    assert small.stat().st_size < 4000
    with pytest.raises(InputError, match="2,000,000 ids of up to 1,000 bytes, 2,000,000,000 bytes together"):
        FeatureFile(small)
    chunk = {"shape": (1,), "maxshape": (None,), "chunks": (10**5,), "compression": "gzip"}
    with pytest.raises(InputError, match="1 ids of up to 900 bytes, 90,000,000 bytes together"):
        FeatureFile(with_ids(tmp_path / "g.h5", 1, dtype="S900", **chunk))


@pytest.mark.parametrize("kind", [h5py.vlen_dtype("f8"), [("name", TEXT)], [("name", "S5")], "c8"])
def test_ids_are_names_or_numbers(kind: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has ids of the type .* Expected names or numbers"):
        FeatureFile(with_ids(tmp_path / "f.h5", 9, shape=(9,), dtype=np.dtype(kind)))


@pytest.mark.parametrize("noted", ["2", np.array([2]), np.array([b"2"] * 99, TEXT)], ids=["text", "list", "texts"])
def test_an_attribute_of_any_size_is_not_read(noted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_features(tmp_path / "f.h5", FEATS, ["a", "b", "c"])
    with h5py.File(path, "a") as file:
        file["feat"].attrs["appearance"] = noted
    monkeypatch.delattr(h5py.AttributeManager, "__getitem__")
    with pytest.raises(InputError, match="the attribute appearance is no number"):
        FeatureFile(path)


@pytest.mark.parametrize(("noted", "said"), [(1e300, "100000000000… of 6 numbers a clip"), (np.longdouble("1e400"), "is no number")])
def test_an_attribute_of_hundreds_of_digits_is_said_short(noted: object, said: str, tmp_path: Path) -> None:
    path = write_features(tmp_path / "f.h5", FEATS, ["a", "b", "c"])
    with h5py.File(path, "a") as file:
        file["feat"].attrs["appearance"] = noted
    with pytest.raises(InputError, match=said):
        FeatureFile(path)


@pytest.mark.parametrize("noted", ["many", [1, 2], "\x1b[31m"])
def test_an_attribute_that_is_no_number_is_one_sentence(noted: object, tmp_path: Path) -> None:
    path = write_features(tmp_path / "f.h5", FEATS, ["a", "b", "c"])
    with h5py.File(path, "a") as file:
        file["feat"].attrs["appearance"] = noted
    with pytest.raises(InputError, match="the attribute appearance is no number"):
        FeatureFile(path)


def test_a_damaged_file_is_one_sentence_wherever_the_damage_is(tmp_path: Path) -> None:
    good = write_features(tmp_path / "good.h5", FEATS, ["a", "b", "c"]).read_bytes()
    random = np.random.default_rng(1)
    refused = 0
    for number in range(100):
        data, path = bytearray(good), tmp_path / f"{number}.h5"
        for place in random.integers(len(data), size=40):
            data[place] ^= 1 << int(random.integers(8))
        path.write_bytes(data)
        try:
            store = FeatureStore([path])
            store.read([video for video in "abc" if store.has(video)])
        except InputError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("appearance", [0, 7, -1])
def test_a_part_of_appearance_that_is_none_or_more_than_all_is_refused(appearance: int, tmp_path: Path) -> None:
    path = write_features(tmp_path / "f.h5", FEATS, ["a", "b", "c"])
    said = f"{appearance} of 6 numbers a clip are appearance. Expected 1 to 6."
    with pytest.raises(InputError, match=said):
        FeatureFile(path, appearance=appearance)
    noted = write_features(tmp_path / "n.h5", FEATS, ["a", "b", "c"], appearance=appearance)
    with pytest.raises(InputError, match=said):
        FeatureFile(noted)
    assert [FeatureFile(path, appearance=one).sizes.motion for one in (1, 6)] == [5, 0]


@pytest.mark.parametrize(
    ("feats", "said"),
    [
        (np.zeros((2, 3, 4), np.int32), r"feat is int32 of shape \(2, 3, 4\)"),
        (np.zeros((2, 0, 4), np.float32), r"of shape \(2, 0, 4\)"),
        (np.zeros((2, 3, 4, 7), np.float32), r"of shape \(2, 3, 4, 7\)"),
    ],
)
def test_features_of_another_form_are_refused(feats: np.ndarray, said: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["ids"], file["feat"] = np.array(["a", "b"], dtype="S"), feats
    with pytest.raises(InputError, match=said):
        FeatureFile(tmp_path / "f.h5")


def test_a_video_is_in_its_own_file_alone_and_a_store_may_hold_none_of_those_that_are_asked_for(tmp_path: Path) -> None:
    first = write_features(tmp_path / "x.h5", FEATS, ["a", "b", "c"])
    store = FeatureStore([first, write_features(tmp_path / "y.h5", FEATS + 1, ["d", "e", "f"])])
    assert [store.has(name) for name in ("a", "f", "g")] == [True, True, False]
    np.testing.assert_array_equal(store.read(["e", "d"]), FEATS[[1, 0]] + 1)
    store.check(["a", "f"])
    store.check([])
    store.close()
    for file in store.files:
        with pytest.raises((InputError, ValueError)):
            file.read(["a"] if file.path == first else ["d"])
