"""The run folder: what is written is whole or not there, what is foreign stays, what is damaged is said."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vip
from tests.captioning.keyframes import run_folder
from tests.clips import picture, scene
from vip import locks, store, user_state
from vip.errors import InputError, StoreError, UsageError
from vip.records import Description, Embeddings, Failure, Famous, Keyframe, KeyframeText, Manifest, Quality, Record, SpokenWords
from vip.store import Run
from vip.tasks.records import Sample

QUALITY = Quality(sharpness=1.0, brightness=0.5, contrast=0.2)


def failure(number: int) -> Failure:
    return Failure(item=f"item {number} – “é”", kind="InputError", message="no", exit_code=3)


def keyframe(number: int, image_path: str) -> Keyframe:
    return Keyframe(
        id=f"v:{number}",
        video_id="v",
        time_s=float(number),
        pts=number,
        image_path=image_path,
        width_px=160,
        height_px=90,
        quality=QUALITY,
        detections=(),
        candidate=number,
    )


def fail_with(error: BaseException, _: object = None) -> None:
    raise error


class Killed(BaseException):
    """Stands for whatever ends a program in its middle."""


# ---------------------------------------------------------------- written whole or not at all


@pytest.mark.parametrize("error", [Killed(), ValueError("a bug"), KeyboardInterrupt()])
def test_a_file_stays_as_it_was_when_writing_it_fails(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("before")
    with pytest.raises(type(error)), store.replacing(path) as file:
        fail_with(error, file.write(b"half of what"))
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("code", "words"), [(errno.ENOSPC, "No space left on device"), (errno.EROFS, "Read-only file system")])
def test_a_disk_that_does_not_take_it_is_a_store_error(code: int, words: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("before")
    with pytest.raises(StoreError, match=f"{path} cannot be written: {words}"), store.replacing(path):
        raise OSError(code, os.strerror(code))
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_nobody_sees_a_half_written_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with store.replacing(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
        (part,) = tmp_path.iterdir()
        assert re.fullmatch(r"\.rows\.jsonl\.[0-9a-f]{32}\.vip-part", part.name)
    assert path.read_bytes() == b"half"


def test_what_a_killed_run_left_half_written_does_not_count_as_content(tmp_path: Path) -> None:
    assert store.is_empty(tmp_path / "nothing here")
    assert store.is_empty(tmp_path)
    (tmp_path / "manifest.json.vip-part").touch()
    assert store.is_empty(tmp_path)
    (tmp_path / "a file of mine").touch()
    assert not store.is_empty(tmp_path)


# ---------------------------------------------------------------- the journal


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal")


@settings(max_examples=60, deadline=None)
@given(before=st.integers(0, 4), cut=st.integers(0, 10_000), after=st.integers(0, 3))
def test_a_journal_torn_anywhere_goes_on_behind_its_last_whole_row(folder: Path, before: int, cut: int, after: int) -> None:
    path = folder / "journal.jsonl"
    rows = [failure(number) for number in range(before)]
    store.write_rows(path, rows)
    torn = path.read_bytes()[: cut % (path.stat().st_size + 1)]
    path.write_bytes(torn)
    whole = rows[: torn.count(b"\n")]
    assert list(store.read_rows(path, Failure, torn_end=True)) == whole
    with store.appending(path) as append:
        for number in range(after):
            append(failure(100 + number))
    expected = [*whole, *(failure(100 + number) for number in range(after))]
    assert (list(store.read_rows(path, Failure)) if path.exists() else []) == expected
    assert path.exists() == bool(expected)


def test_a_row_of_the_journal_is_on_disk_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with store.appending(path) as append:
        for number in range(3):
            append(failure(number))
            assert list(store.read_rows(path, Failure)) == [failure(i) for i in range(number + 1)]


def test_a_row_of_a_durable_journal_survives_a_power_cut(tmp_path: Path, disk_steps: list[str]) -> None:
    path = tmp_path / "journal.jsonl"
    with store.appending(path) as append:
        for number in range(2):
            append(failure(number))
            assert disk_steps[number:] == [f"{path.stat().st_size} bytes"]
    with store.appending(path, durable=False) as append:
        append(failure(2))
    assert len(disk_steps) == 2


def test_merged_rows_survive_a_power_cut_before_what_they_were_made_of_is_deleted(tmp_path: Path, disk_steps: list[str]) -> None:
    path = tmp_path / "rows.jsonl"
    store.write_rows(path, [failure(0)])
    disk_steps.clear()
    store.merge_rows(path, [path], Failure, key=lambda row: row.item, order=[failure(0).item])
    assert disk_steps == [f"{path.stat().st_size} bytes", "name", "folder"]


def test_a_journal_whose_last_row_is_long_is_torn_off_behind_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    rows = [failure(number).model_copy(update={"message": "x" * 100_000}) for number in range(3)]
    store.write_rows(path, rows)
    path.write_bytes(path.read_bytes()[:-20])
    with store.appending(path) as append:
        append(failure(9))
    assert list(store.read_rows(path, Failure)) == [*rows[:2], failure(9)]


def test_a_line_without_end_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    store.write_rows(path, [failure(0)])
    size = path.stat().st_size
    monkeypatch.setattr(store, "MOST_LINE_BYTES", size)
    with pytest.raises(StoreError, match=rf"rows\.jsonl: damaged \(a line is longer than {size} bytes\)"):
        store.count_rows(path)
    monkeypatch.setattr(store, "MOST_LINE_BYTES", size + 1)
    assert store.count_rows(path) == 1


def test_a_file_of_rows_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    """Rows of a run that was made from one of a stranger have its words."""
    row = Failure(item="\x9b2J\u202e\x85", kind="caption", message="\x1b[31m\u2066", exit_code=6)
    store.write_rows(tmp_path / "rows.jsonl", [row])
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]", (tmp_path / "rows.jsonl").read_text())
    assert list(store.read_rows(tmp_path / "rows.jsonl", Failure)) == [row]


def test_empty_lines_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    store.write_rows(path, [failure(0), failure(1)])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n\n \n") + b"{}\n")
    assert store.count_rows(path) == 3
    with pytest.raises(StoreError, match=r"rows\.jsonl, line 7: damaged"):
        list(store.read_rows(path, Failure))


def test_of_two_rows_of_one_key_that_of_the_later_file_is_kept_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    old, new, path = tmp_path / "old", tmp_path / "new", tmp_path / "rows.jsonl"
    store.write_rows(old, [failure(0), failure(1), failure(2)])
    better = failure(1).model_copy(update={"message": "better"})
    store.write_rows(new, [better, failure(3), failure(4)])
    new.write_bytes(new.read_bytes()[:-1])  # torn: the last row does not count
    old.write_bytes(b"\n" + old.read_bytes().replace(b"\n", b"\n \n", 1))  # empty lines are no rows, and have a length all the same
    order = [failure(number).item for number in (9, 3, 1, 4, 0)]
    store.merge_rows(path, [old, tmp_path / "none", new], Failure, key=lambda row: row.item, order=order)
    assert list(store.read_rows(path, Failure)) == [failure(3), better, failure(0)]


def test_a_name_that_is_not_valid_text_comes_back_as_it_was(tmp_path: Path) -> None:
    row = failure(0).model_copy(update={"item": "b\udcff.mp4"})
    store.write_json(tmp_path / "row.json", row)
    store.write_rows(tmp_path / "rows.jsonl", [row, failure(1)])
    assert store.read_json(tmp_path / "row.json", Failure) == row
    assert list(store.read_rows(tmp_path / "rows.jsonl", Failure)) == [row, failure(1)]


@pytest.mark.parametrize("half", [chr(0xD800), chr(0xDCFF)])
@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (Keyframe, "detections"),
        (Description, "famous"),
        (Description, "caption"),
        (KeyframeText, "lines"),
        (SpokenWords, "text"),
        (Sample, "context"),
    ],
)
def test_half_a_character_in_a_text_is_damage(kind: type[Record], field: str, half: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": half, "keyframe_id": half, field: ["x", {"y": half}]}) + "\n")
    with pytest.raises(StoreError, match=r"rows\.jsonl, line 1: damaged \(half a pair of surrogates\)"):
        list(store.read_rows(tmp_path / "rows.jsonl", kind))


def test_a_picture_larger_than_any_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a.png").open("wb") as file:
        file.truncate(512 * 2**20 + 1)
    with pytest.raises(InputError, match="larger than 536,870,912 bytes"):
        store.read_picture(tmp_path / "a.png")


def test_a_torn_row_elsewhere_than_in_a_journal_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    store.write_rows(path, [failure(0), failure(1)])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StoreError, match=r"rows.jsonl, line 2: damaged"):
        list(store.read_rows(path, Failure))


def test_a_journal_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"), store.appending(tmp_path / "not there" / "journal.jsonl"):
        pass


# ---------------------------------------------------------------- damage and later versions


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b'{"schema_version": 1}', b"\x00\xff", b'{"schema_version": "\\ud800"}'])
def test_damage_is_one_sentence_that_names_the_file_and_the_way_out(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_bytes(text)
    with pytest.raises(StoreError) as caught:
        store.read_json(tmp_path / "rows.json", Failure)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'rows.json'}: damaged")
    assert "--overwrite" in message
    assert "\n" not in message


def test_damage_in_a_row_names_the_line(tmp_path: Path) -> None:
    store.write_rows(tmp_path / "rows.jsonl", [failure(0), failure(1)])
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(StoreError, match=r"rows\.jsonl, line 3: damaged"):
        list(store.read_rows(tmp_path / "rows.jsonl", Failure))


def test_a_record_of_a_newer_vip_says_how_to_update(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"schema_version": 2, "item": "a", "colour": "red"}\n')
    with pytest.raises(StoreError, match=r"written by a newer vip \(schema 2, this one knows 1\).*pip install -U vip-keyframes"):
        list(store.read_rows(tmp_path / "rows.jsonl", Failure))


@pytest.mark.parametrize("read", [lambda path: store.read_json(path, Failure), lambda path: list(store.read_rows(path, Failure))])
def test_a_folder_in_place_of_a_file_is_a_store_error(read: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: Is a directory"):
        read(tmp_path)


@pytest.mark.parametrize("text", [b"", b"PK\x03\x04", b"no archive at all"])
def test_damaged_vectors_are_a_store_error(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "embeddings.npz").write_bytes(text)
    with pytest.raises(StoreError, match=r"embeddings\.npz: damaged"):
        store.read_embeddings(tmp_path / "embeddings.npz")


def test_vectors_come_back_as_they_were(tmp_path: Path) -> None:
    vectors = Embeddings(np.eye(3, 8, dtype=np.float32), np.eye(3, 2, dtype=np.float32), "classic")
    store.write_embeddings(tmp_path / "embeddings.npz", vectors)
    read = store.read_embeddings(tmp_path / "embeddings.npz")
    assert read.model == "classic"
    assert read.image.dtype == np.float32
    np.testing.assert_array_equal(read.image, vectors.image)
    np.testing.assert_array_equal(read.text, vectors.text)


@pytest.mark.parametrize("vectors", [np.array([[1.0, np.nan]], np.float32), np.array([[1.0, np.inf]], np.float32), np.eye(2)])
@pytest.mark.parametrize("which", ["image", "text"])
def test_vectors_that_are_no_numbers_of_four_bytes_are_damage(which: str, vectors: Any, tmp_path: Path) -> None:
    arrays = {"image": np.eye(2, dtype=np.float32), "text": np.eye(2, dtype=np.float32), "model": np.array("m"), which: vectors}
    np.savez(tmp_path / "embeddings.npz", **arrays)
    with pytest.raises(StoreError, match="a vector is not of numbers"):
        store.read_embeddings(tmp_path / "embeddings.npz")


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    "data", [npy(np.arange(3)) + b"more", npy(np.arange(3))[:-1], npy(np.array([{}])), npy(np.arange(3)).replace(b"(3,)", b"(9,)")]
)
def test_an_array_that_is_not_of_the_size_that_it_says_is_damaged(data: bytes) -> None:
    with pytest.raises(ValueError, match="an array of another size than it says"):
        store.array_of(data)
    assert store.array_of(npy(np.arange(3))).tolist() == [0, 1, 2]


# ---------------------------------------------------------------- folders


def test_what_a_killed_process_left_half_written_goes_with_the_next_one_and_not_within_its_work(tmp_path: Path) -> None:
    left = [tmp_path / ".a.vip-part", tmp_path / "keyframes" / ".b.vip-part"]
    mine = [tmp_path / "notes.txt", tmp_path / "keyframes" / "mine.jpg"]
    (tmp_path / "keyframes").mkdir()
    (tmp_path / store.DECODED).mkdir()
    for path in (*left, *mine):
        path.touch()
    with store.in_use(tmp_path):
        assert not any(path.exists() for path in left)
        left[0].touch()
        with store.in_use(tmp_path):
            assert left[0].exists(), "it is being written"
    assert all(path.exists() for path in (*mine, tmp_path / store.DECODED))


def test_a_folder_of_frames_that_are_being_decoded_is_no_matter_where_one_is_cleared(tmp_path: Path) -> None:
    (tmp_path / store.DECODED).mkdir()
    store.clear(tmp_path)
    assert (tmp_path / store.DECODED).is_dir()


def test_clearing_a_folder_leaves_its_lock_held(tmp_path: Path) -> None:
    with store.in_use(tmp_path):
        assert (tmp_path / locks.NAME).exists()
        store.clear(tmp_path)
        assert (tmp_path / locks.NAME).exists()


def test_clearing_deletes_what_vip_wrote_and_nothing_else(tmp_path: Path) -> None:
    mine = [
        "notes.txt",
        "keyframes/holiday.jpg",
        "keyframes/0001_mine.jpg",
        "keyframes/sub/0001_00h00m12.400s.jpg",
        "more/candidates.jsonl",
    ]
    of_vip = [
        *(
            "candidates.jsonl",
            "embeddings.npz",
            "analysis.npz",
            "thumbnails.zip",
            "keyframes.jsonl",
            "descriptions.jsonl",
            "report.html",
            "failures.jsonl",
            "words.jsonl",
            "text.jsonl",
        ),
        *("descriptions.partial.jsonl", "keyframes/0001_00h00m12.400s.jpg", "keyframes/12345_100h00m12.400s.webp"),
        *("keyframes/0002_00h00m13.400s.jpg.vip-part", "report.html.vip-part"),
    ]
    for name in (*mine, *of_vip, "manifest.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    store.clear(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*mine, "manifest.json"}


def test_what_cannot_be_deleted_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StoreError, match=r"report\.html cannot be deleted"):
        store.clear(tmp_path)


def test_a_folder_made_for_nothing_goes_again(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), store.create_folder(tmp_path / "new"):
        raise ValueError("no")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), store.create_folder(tmp_path):
        raise ValueError("no")
    assert tmp_path.is_dir()


def test_a_new_folder_that_holds_something_stays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), store.create_folder(tmp_path / "new"):
        fail_with(ValueError("no"), (tmp_path / "new" / "candidates.jsonl").touch())
    assert (tmp_path / "new" / "candidates.jsonl").exists()


@pytest.mark.parametrize("name", ["a file/below", "a file", "x" * 300])
def test_a_folder_that_cannot_be_made_is_a_store_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("mine")
    assert store.is_empty(tmp_path / name)
    with pytest.raises(StoreError, match="cannot be written"), store.create_folder(tmp_path / name):
        pass
    assert (tmp_path / "a file").read_text() == "mine"


def test_without_failures_there_is_no_file_of_them(tmp_path: Path) -> None:
    store.write_failures(tmp_path / "failures.jsonl", [failure(0)])
    assert (tmp_path / "failures.jsonl").exists()
    store.write_failures(tmp_path / "failures.jsonl", [])
    store.write_failures(tmp_path / "failures.jsonl", [])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_place_of_the_failures_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "failures.jsonl").mkdir()
    for failures in ([], [failure(0)]):
        with pytest.raises(StoreError, match=r"failures\.jsonl cannot be written: "):
            store.write_failures(tmp_path / "failures.jsonl", failures)


# ---------------------------------------------------------------- opening


def a_run(folder: Path) -> Path:
    store.make_folder(folder / "keyframes")
    names = [f"keyframes/{number}.png" for number in range(2)]
    for number, name in enumerate(names):
        picture(folder / name, number)
    store.write_rows(folder / "keyframes.jsonl", [keyframe(number, name) for number, name in enumerate(names)])
    return folder


def test_a_run_gives_times_and_pictures_on_demand(tmp_path: Path) -> None:
    run = store.load_run(str(a_run(tmp_path)))
    assert [one.time_s for one in run.keyframes] == [0.0, 1.0]
    np.testing.assert_array_equal(run.keyframes[1].image, scene(1)[..., ::-1])
    assert repr(run.keyframes[1]) == "Keyframe('v:1', time_s=1.000, 160x90)"
    assert repr(run) == f"Run('{tmp_path}', keyframes=2, descriptions=0)"
    assert (run.manifest, run.candidates, run.embeddings, run.failures, run.notes) == (None, [], None, [], ())


def test_a_picture_that_is_gone_or_damaged_is_an_input_error(tmp_path: Path) -> None:
    gone, damaged = store.load_run(a_run(tmp_path)).keyframes
    gone.path.unlink()
    damaged.path.write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"0\.png cannot be read: No such file"):
        _ = gone.image
    with pytest.raises(InputError, match=r"1\.png is not a picture"):
        _ = damaged.image


def test_a_run_that_is_named_twice_or_by_a_link_is_one_run(tmp_path: Path) -> None:
    for name in ("a.vip", "b.vip"):
        (tmp_path / name).mkdir()
        (tmp_path / name / store.MANIFEST).write_text("{}")
    (tmp_path / "c.vip").symlink_to("a.vip")
    assert store.runs_in([tmp_path]) == [tmp_path / "a.vip", tmp_path / "b.vip"]
    assert store.runs_in([tmp_path / "b.vip", tmp_path]) == [tmp_path / "b.vip", tmp_path / "a.vip"]


@pytest.mark.parametrize(
    "make", [lambda folder: folder / "nothing", lambda folder: picture(folder / "a.png"), lambda folder: folder, lambda _: Path("x" * 300)]
)
def test_what_holds_no_keyframes_is_an_input_error(make: Callable[[Path], Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a folder|holds no keyframes"):
        store.load_run(make(tmp_path))


def test_a_keyframes_folder_is_that_of_its_run_also_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (a_run(tmp_path) / "manifest.json").touch()
    assert store.home_of(tmp_path / "keyframes") == tmp_path
    monkeypatch.chdir(tmp_path / "keyframes")
    assert store.home_of(Path()) == tmp_path
    monkeypatch.chdir(tmp_path)
    assert store.home_of(Path("keyframes")) == Path()
    assert store.home_of(Path()) == Path()


def test_a_folder_called_keyframes_that_belongs_to_no_run_is_one_of_pictures(tmp_path: Path) -> None:
    assert store.home_of(tmp_path / "keyframes") == tmp_path / "keyframes"


# ---------------------------------------------------------------- pictures


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 99_999), st.floats(0, 10**6)), min_size=2, max_size=5, unique_by=lambda row: row[0]))
def test_picture_names_sort_by_number_and_are_known_again(rows: list[tuple[int, float]]) -> None:
    names = [store.picture_name(number, time_s, "jpg", of=99_999) for number, time_s in sorted(rows)]
    assert names == sorted(names)
    assert all(store.PICTURE_NAME.fullmatch(name) for name in names)


@pytest.mark.parametrize(
    ("time_s", "name"),
    [
        (12.4, "0001_00h00m12.400s.jpg"),
        (59.9996, "0001_00h01m00.000s.jpg"),
        (3600.0, "0001_01h00m00.000s.jpg"),
        (-0.5, "0001_00h00m00.000s.jpg"),
    ],
)
def test_a_picture_name_tells_the_time(time_s: float, name: str) -> None:
    assert store.picture_name(1, time_s, "jpg", of=12) == name


@pytest.mark.parametrize(("suffix", "worst"), [("png", 0), ("webp", 0), ("jpg", 10)])
def test_pictures_come_back_as_they_were_written(suffix: str, worst: int, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    store.write_picture(path, scene(3))
    assert np.abs(store.read_picture(path).astype(int) - scene(3)).mean() <= worst


def test_a_picture_of_less_quality_is_smaller(tmp_path: Path) -> None:
    for quality in (30, 95):
        store.write_picture(tmp_path / f"{quality}.jpg", scene(3), jpeg_quality=quality)
    store.write_picture(tmp_path / "usual.jpg", scene(3))
    small, large, usual = ((tmp_path / name).stat().st_size for name in ("30.jpg", "95.jpg", "usual.jpg"))
    assert 2 * small < large == usual


def test_a_picture_that_exif_turns_is_read_upright(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    PIL.Image.fromarray(np.repeat(np.array([[[255, 0, 0]], [[0, 0, 255]]], np.uint8), 8, 0).repeat(16, 1)).save(
        tmp_path / "a.png", exif=exif
    )
    read = store.read_picture(tmp_path / "a.png")
    assert read.shape == (16, 16, 3)
    assert read[0, 0].tolist() == [0, 0, 255], "the left is what was below"
    assert read[0, 15].tolist() == [255, 0, 0]


def test_a_picture_too_large_for_its_format_names_one_that_takes_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Try --format png"):
        store.write_picture(tmp_path / "a.webp", np.zeros((2, 20_000, 3), np.uint8))
    assert list(tmp_path.iterdir()) == []


def test_thumbnails_are_named_by_candidate(tmp_path: Path) -> None:
    store.write_thumbnails(tmp_path / "thumbnails.zip", [(0, b"a"), (12, b"b")])
    with zipfile.ZipFile(tmp_path / "thumbnails.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"000000.jpg": b"a", "000012.jpg": b"b"}


# ---------------------------------------------------------------- a run in Python


def test_a_run_is_opened_by_a_path_or_its_text(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a.vip", 2)
    for path in (folder, str(folder)):
        assert [keyframe.id for keyframe in Run(path).keyframes] == ["a:0000", "a:0001"]


def test_a_run_that_is_not_there_is_refused_clearly(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none is not a folder\. Give the folder of a run\."):
        Run(str(tmp_path / "none")).keyframes  # noqa: B018 - it is read when it is asked for
    assert repr(Run(tmp_path / "none")) == f"Run({str(tmp_path / 'none')!r})"


def test_a_keyframe_leads_to_its_description(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a.vip", 3)
    run = Run(folder)
    assert [keyframe.description for keyframe in run.keyframes] == [None, None, None]
    vip.caption(folder, engine="fake")
    described = [keyframe.description for keyframe in run.keyframes]
    assert [row and row.keyframe_id for row in described] == ["a:0000", "a:0001", "a:0002"]
    assert described == run.descriptions


def test_descriptions_are_read_once_for_all_keyframes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vip.caption(run_folder(tmp_path / "a.vip", 3), engine="fake")
    run = Run(tmp_path / "a.vip")
    reads: list[Path] = []
    real = store.read_rows
    monkeypatch.setattr(store, "read_rows", lambda path, kind, **more: (reads.append(path), real(path, kind, **more))[1])
    assert all(keyframe.description for keyframe in run.keyframes)
    assert [path.name for path in reads].count("descriptions.jsonl") == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux tells it")
def test_a_picture_of_absurd_size_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    """A PNG of 20,000 x 20,000 has 50 kB, and 1.2 GB once it is decoded."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(2501 * 20_000))
    path = tmp_path / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
    program = (
        "import sys; from pathlib import Path; from vip import store\n"
        "from vip.errors import InputError\n"
        "try: store.read_picture(Path(sys.argv[1]))\n"
        "except InputError: print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    peak = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True).stdout
    assert int(peak) < 400_000  # kB


def test_a_journal_counts_before_what_was_described_earlier_and_is_read_again_once_it_has_grown(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a.vip", 3)
    run = Run(folder)
    store.write_rows(folder / "descriptions.jsonl", [described(1, "earlier"), described(0, "earlier")])
    assert [row.dense_caption for row in run.descriptions] == ["earlier", "earlier"]
    with store.appending(folder / "descriptions.partial.jsonl") as append:
        append(described(1, "later"))
        assert [row.dense_caption for row in run.descriptions] == ["earlier", "later"]
        append(described(2, "later"))
        assert [row.dense_caption for row in run.each_description()] == ["earlier", "later", "later"]
    with (folder / "descriptions.partial.jsonl").open("a") as file:
        file.write('{"half a')
    assert [row.keyframe_id for row in Run(folder).descriptions] == ["a:0000", "a:0001", "a:0002"]
    (folder / "descriptions.partial.jsonl").unlink()
    assert [row.keyframe_id for row in run.each_description()] == ["a:0001", "a:0000"], "as they lie"


def test_descriptions_that_were_replaced_within_one_tick_of_the_clock_are_read_again(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a.vip", 1)
    path, run = folder / "descriptions.jsonl", Run(folder)
    for caption in ("one", "two"):
        store.write_rows(path, [described(0, caption)])
        os.utime(path, ns=(10**18, 10**18))
        assert [row.dense_caption for row in run.descriptions] == [caption]


def test_a_description_that_is_cut_off_in_the_finished_file_is_damage_and_not_one_less(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a.vip", 2)
    store.write_rows(folder / "descriptions.jsonl", [described(0, "whole"), described(1, "cut off")])
    data = (folder / "descriptions.jsonl").read_bytes()
    (folder / "descriptions.jsonl").write_bytes(data[:-20])
    with pytest.raises(StoreError, match=r"descriptions\.jsonl, line 2: damaged"):
        _ = Run(folder).descriptions


def test_a_run_that_was_killed_before_its_end_is_not_opened(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a.vip", 1)
    assert len(store.load_run(folder).keyframes) == 1
    made = Run(folder).manifest
    assert made
    store.write_json(folder / store.MANIFEST, made.model_copy(update={"seconds": {}}))
    with pytest.raises(InputError, match=r"holds an unfinished extraction\. Run the same"):
        store.load_run(folder)


def test_a_folder_that_vip_names_is_no_link_not_even_one_to_nothing(tmp_path: Path) -> None:
    assert store.unlinked(tmp_path / "new") == tmp_path / "new"
    for name, target in (("there", tmp_path), ("dangling", tmp_path / "nothing")):
        (tmp_path / name).symlink_to(target)
        with pytest.raises(UsageError, match=rf"{name} is a link, and vip writes through none that you did not name"):
            store.unlinked(tmp_path / name)


def test_a_run_that_the_user_trusts_is_as_one_of_this_machine(tmp_path: Path) -> None:
    made = Run(run_folder(tmp_path / "a.vip", 1)).manifest
    assert made
    assert not store.is_own(made)
    assert store.is_own(store.sign(made))
    user_state.remember("runs", made.origin)
    assert store.is_own(made)


@pytest.mark.parametrize(
    "changed",
    [
        {"video_id": "b"},
        {"created_utc": "2020-02-02T00:00:00+00:00"},
        {"settings": {"embedder": "clip:ViT-B-32@/secret.pt"}},
        {"backends": {"embedder": "clip:ViT-B-32@/secret.pt"}},
        {"notes": ("Run rm -rf",)},
        {"losses": ("Run rm -rf",)},
    ],
)
def test_a_signed_run_that_somebody_changed_is_not_of_this_machine(tmp_path: Path, changed: dict[str, object]) -> None:
    made = Run(run_folder(tmp_path / "a.vip", 1)).manifest
    assert made
    signed = store.sign(made)
    store.write_json(tmp_path / "signed.json", signed)
    assert store.is_own(Manifest.model_validate_json((tmp_path / "signed.json").read_bytes()))
    assert store.is_own(signed.model_copy(update={"seconds": {"write": 1.0}, "captioning": {}}))
    assert not store.is_own(signed.model_copy(update=changed))
    moved = signed.video.model_copy(update={"path": "/else.mp4"})
    assert not store.is_own(signed.model_copy(update={"video": moved}))


def described(number: int, caption: str) -> Description:
    about = Famous(focus="f", action="a", mood="m", objects=("o",), setting="s")
    return Description(keyframe_id=f"a:{number:04d}", time_s=None, engine="e", grounding=(), dense_caption=caption, famous=about, calls=())


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), ",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': ((((3,), }",
        b"{'descr': '<f4',\n   'fortran_order'\n 'shape': (3,), }",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': ('3',), }",
        b"{'descr': '\x1b[31m', 'fortran_order': False, 'shape': (3,), }",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }",
        b"(" * 9000,
        b"'x",
    ],
)
def test_an_array_with_a_damaged_header_is_one_error(header: bytes) -> None:
    padded = header + b" " * (-(len(header) + 11) % 64) + b"\n"
    with pytest.raises((ValueError, EOFError)):
        store.array_of(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + bytes(12))


def test_any_damage_of_an_array_is_one_error() -> None:
    whole = io.BytesIO()
    np.save(whole, np.arange(6, dtype=np.float32).reshape(2, 3))
    random = np.random.default_rng(0)
    for _ in range(2000):
        data = bytearray(whole.getvalue())
        for place in random.integers(len(data), size=3):
            data[place] ^= 1 << int(random.integers(8))
        with suppress(ValueError, EOFError):
            assert store.array_of(bytes(data)).nbytes == 24
