"""Shards: what goes in comes out, in either format; whole ones are told from others."""

from __future__ import annotations

import gc
import json
import shutil
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest
import webdataset
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.making import JPEG, clip_from_run, sample, samples
from vip.dataset import parquet, shards, storage
from vip.dataset.parts import pack
from vip.dataset.rows import VideoSample
from vip.dataset.schema import COLUMNS
from vip.dataset.shards import (
    FOLDER,
    SUFFIXES,
    Format,
    ShardInfo,
    UndescribedKeyframe,
    _problems_of,
    delete_leftovers,
    file_name,
    read_samples,
    read_shards,
    samples_in,
    undescribed_in,
    verify,
    write_file,
    write_shard,
)
from vip.errors import StoreError
from vip.records import Failure

FORMATS: tuple[Format, ...] = ("parquet", "webdataset")
both = pytest.mark.parametrize("format", FORMATS)
NUMBER = count()


def file_of(out: Path, info: ShardInfo) -> Path:
    return out / FOLDER / info.file


def told(out: Path) -> tuple[list[int], list[str]]:
    """Numbers of the whole shards, and what is said of the others."""
    said: list[str] = []
    return [info.number for info in read_shards(str(out), said.append)], said


# ---------------------------------------------------------------- there and back


@pytest.mark.slow
@both
@settings(max_examples=50)
@given(data=st.data())
def test_what_goes_into_a_shard_comes_out(data: st.DataObject, format: Format) -> None:  # noqa: A002
    some = [data.draw(samples(st.just(f"v.{number}"))) for number in range(data.draw(st.integers(1, 3)))]
    out = f"memory://shards-{next(NUMBER)}"
    info = write_shard(out, 12, some, format)
    assert list(read_samples(out)) == some
    assert (info.rows, [video.key for video in info.videos]) == (sum(len(one.frames) for one in some), [one.video.key for one in some])
    assert list(verify(out)) == []


@both
def test_parts_and_clips_give_the_same_bytes_each_time(tmp_path: Path, format: Format) -> None:  # noqa: A002
    some = [clip_from_run(tmp_path, "one"), sample("two")]
    for number, one in enumerate(some):
        pack(tmp_path / f"{number}.tar", one)
    written = []
    for name, given_ in (("a", some), ("b", [tmp_path / "0.tar", tmp_path / "1.tar"])):
        info = write_shard(str(tmp_path / name), 3, given_, format)
        written.append((file_of(tmp_path / name, info).read_bytes(), (tmp_path / name / FOLDER / "00003.json").read_bytes()))
    assert written[0] == written[1]


@both
def test_the_sidecar_tells_what_is_in_the_shard_but_no_subtitles(tmp_path: Path, format: Format) -> None:  # noqa: A002
    info = write_shard(str(tmp_path), 7, [sample(subtitles={"en": "WEBVTT\n\nsaid"})], format)
    assert list(read_shards(str(tmp_path))) == [info]
    assert file_of(tmp_path, info).stat().st_size == info.bytes
    assert [video.subtitles for video in info.videos] == [{"en": ""}]
    assert next(read_samples(str(tmp_path))).video.subtitles == {"en": "WEBVTT\n\nsaid"}


def test_shards_of_both_formats_are_read_in_order(tmp_path: Path) -> None:
    for number, format_ in ((100_000, FORMATS[0]), (2, FORMATS[1]), (1, FORMATS[0])):
        write_shard(str(tmp_path), number, [sample(f"v{number}")], format_)
    assert [one.video.key for one in read_samples(str(tmp_path))] == ["v1", "v2", "v100000"]


# ---------------------------------------------------------------- what other programs see


def test_each_column_of_parquet_says_what_it_is(tmp_path: Path) -> None:
    info = write_shard(str(tmp_path), 0, [clip_from_run(tmp_path)], "parquet")
    schema = pq.read_schema(file_of(tmp_path, info))
    assert schema.names == list(COLUMNS)
    assert {field.name: field.metadata[b"description"].decode() for field in schema} == {name: text for name, (_, text) in COLUMNS.items()}


def test_everything_is_compressed_but_pictures(tmp_path: Path) -> None:
    info = write_shard(str(tmp_path), 0, [clip_from_run(tmp_path)], "parquet")
    group = pq.read_metadata(file_of(tmp_path, info)).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {column.path_in_schema for column in columns if column.compression != "ZSTD"} == {"picture.bytes"}


def test_row_groups_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 250_000)
    info = write_shard(str(tmp_path), 0, [sample(f"v{number}", count=4, size=50_000) for number in range(3)], "parquet")
    found = pq.read_metadata(file_of(tmp_path, info))
    assert found.num_rows == 12
    assert [found.row_group(number).num_rows for number in range(found.num_row_groups)] == [4, 4, 4]
    assert len(list(read_samples(str(tmp_path)))) == 3


@pytest.mark.slow
def test_datasets_shows_pictures(tmp_path: Path) -> None:
    import datasets

    write_shard(str(tmp_path), 0, [clip_from_run(tmp_path, failed=1)], "parquet")
    found = datasets.load_dataset("parquet", data_files=str(tmp_path / FOLDER / "*.parquet"), cache_dir=str(tmp_path / "cache"))["train"]
    assert isinstance(found.features["picture"], datasets.Image)
    assert found[0]["picture"].size == (64, 48)
    assert found["keyframe_id"][:] == ["abc:0001", "abc:0002", "abc:0003"]
    assert [bool(text) for text in found["dense_caption"]] == [True, True, False]
    assert found[2]["caption_failure"] == "refused k7"
    assert found[0]["detections"][0]["label"] == "person"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # the library leaves files to the garbage collector
def test_webdataset_reads_samples_with_picture_columns_and_vector(tmp_path: Path) -> None:
    info = write_shard(str(tmp_path), 0, [sample("a.b-1", count=2)], "webdataset")
    samples = list(webdataset.WebDataset(str(file_of(tmp_path, info)), shardshuffle=False).decode("pil"))
    assert [one["__key__"] for one in samples] == ["a_b-1_0001", "a_b-1_0002"]
    assert {one["jpg"].size for one in samples} == {(64, 48)}
    assert samples[1]["json"]["keyframe_id"] == "a.b-1:0002"
    assert samples[1]["npy"] == pytest.approx(np.array([np.cos(2), np.sin(2)]))
    gc.collect()


# ---------------------------------------------------------------- whole or not


@both
def test_a_shard_without_sidecar_is_left_out_and_named(tmp_path: Path, format: Format) -> None:  # noqa: A002
    for number in (0, 1):
        info = write_shard(str(tmp_path), number, [sample(f"v{number}")], format)
    (tmp_path / FOLDER / "00001.json").unlink()
    assert told(tmp_path)[0] == [0]
    assert f"{info.file} has no 00001.json, and is left out." in told(tmp_path)[1][0]
    assert [one.video.key for one in read_samples(str(tmp_path))] == ["v0"]


@both
def test_a_shard_of_another_length_is_left_out_and_named(tmp_path: Path, format: Format) -> None:  # noqa: A002
    info = write_shard(str(tmp_path), 0, [sample()], format)
    with file_of(tmp_path, info).open("r+b") as file:
        file.truncate(info.bytes - 1)
    assert told(tmp_path) == ([], [f"{file_of(tmp_path, info)} has {info.bytes - 1:,} bytes instead of {info.bytes:,}, and is left out."
                                   " Run the command that wrote it again."])  # fmt: skip
    file_of(tmp_path, info).unlink()
    assert "is missing" in told(tmp_path)[1][0]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"number": 0}', "\x00" * 9])
def test_a_sidecar_that_is_damaged_is_named(tmp_path: Path, text: str) -> None:
    write_shard(str(tmp_path), 0, [sample()], "parquet")
    (tmp_path / FOLDER / "00000.json").write_text(text)
    numbers, said = told(tmp_path)
    assert (numbers, len(said)) == ([], 1)
    assert "00000.json: damaged" in said[0]


@pytest.mark.parametrize(
    "changed", [{"rows": 2**63}, {"bytes": 10**30}, {"number": 10**30}, {"number": 7}, {"counts": {"keyframes": 2**63}}]
)
def test_a_sidecar_with_impossible_numbers_is_named(tmp_path: Path, changed: dict[str, Any]) -> None:
    write_shard(str(tmp_path), 0, [sample()], "parquet")
    path = tmp_path / FOLDER / "00000.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    numbers, said = told(tmp_path)
    assert (numbers, len(said)) == ([], 1)
    assert "00000.json: damaged" in said[0]


@pytest.mark.parametrize("number", ["1000000001", "9" * 18, "9" * 30, "9" * 200])
def test_a_shard_with_an_impossible_number_in_its_name_is_named(tmp_path: Path, number: str) -> None:
    info = write_shard(str(tmp_path), 0, [sample()], "parquet")
    file_of(tmp_path, info).rename(tmp_path / FOLDER / f"{number}.parquet")
    sidecar = json.loads((tmp_path / FOLDER / "00000.json").read_text())
    (tmp_path / FOLDER / f"{number}.json").write_text(json.dumps({**sidecar, "number": int(number), "file": f"{number}.parquet"}))
    (tmp_path / FOLDER / "00000.json").unlink()
    numbers, said = told(tmp_path)
    assert (numbers, len(said)) == ([], 1)
    assert f"{number}.json: damaged" in said[0]


@both
def test_bytes_that_changed_are_found(tmp_path: Path, format: Format) -> None:  # noqa: A002
    info = write_shard(str(tmp_path), 0, [sample()], format)
    data = bytearray(file_of(tmp_path, info).read_bytes())
    data[data.index(JPEG) + 40] ^= 1
    file_of(tmp_path, info).write_bytes(data)
    assert told(tmp_path) == ([0], [])
    (problem,) = verify(str(tmp_path))
    assert f"{info.file} has other bytes than were written." in problem


@both
@pytest.mark.parametrize("content", [b"", b"PAR1" * 30, bytes(10_240)])
def test_what_is_no_shard_is_named_when_it_is_read(tmp_path: Path, format: Format, content: bytes) -> None:  # noqa: A002
    info = write_shard(str(tmp_path), 0, [sample()], format)
    file_of(tmp_path, info).write_bytes(content)
    (tmp_path / FOLDER / "00000.json").write_text(info.model_copy(update={"bytes": len(content)}).model_dump_json())
    try:
        assert list(read_samples(str(tmp_path))) == []
    except StoreError as exc:
        assert "00000" in str(exc)  # noqa: PT017
    assert len(list(verify(str(tmp_path)))) == 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"rows": 99}, "holds 3 keyframes of 1 video, its .json says 99 of 1."),
        ({"videos": ()}, "holds 3 keyframes of 1 video, its .json says 3 of 0."),
    ],
)
def test_a_sidecar_that_tells_of_other_videos_is_found(tmp_path: Path, changed: dict[str, object], told: str) -> None:
    info = write_shard(str(tmp_path), 0, [sample()], "parquet")
    (tmp_path / FOLDER / "00000.json").write_text(info.model_copy(update=changed).model_dump_json())
    (problem,) = verify(str(tmp_path))
    assert problem == f"{file_of(tmp_path, info)} {told}"


def test_a_video_that_is_there_twice_is_found(tmp_path: Path) -> None:
    for number in (0, 1):
        write_shard(str(tmp_path), number, [sample("one"), sample(f"v{number}")], "parquet")
    (problem,) = verify(str(tmp_path))
    assert problem.startswith("one is in 00000.parquet and once more in 00001.parquet.")


def test_a_sidecar_that_names_the_file_of_another_shard_is_left_out(tmp_path: Path) -> None:
    write_shard(str(tmp_path), 0, [sample("a")], "parquet")
    for suffix in ("json", "parquet"):
        shutil.copy(tmp_path / FOLDER / f"00000.{suffix}", tmp_path / FOLDER / f"00001.{suffix}")
    told: list[str] = []
    assert [info.number for info in read_shards(str(tmp_path), told.append)] == [0]
    assert len(told) == 1


@pytest.mark.parametrize("damaged", [(0,), (2,), (0, 1, 2)])
def test_each_problem_is_told_once(tmp_path: Path, damaged: tuple[int, ...]) -> None:
    for number in range(3):
        write_shard(str(tmp_path), number, [sample(f"v{number}")], "parquet")
    for number in damaged:
        (tmp_path / FOLDER / f"{number:05d}.json").unlink()
    assert len(list(verify(str(tmp_path)))) == len(damaged)


def test_shards_are_read_by_number_also_where_it_has_more_digits(tmp_path: Path) -> None:
    for number in (100_000, 99_999):
        write_shard(str(tmp_path), number, [sample(f"v{number}")], "webdataset")
    assert told(tmp_path) == ([99_999, 100_000], [])


def test_where_nothing_was_written_there_are_no_shards(tmp_path: Path) -> None:
    assert told(tmp_path / "none") == ([], [])
    assert list(read_shards("memory://none")) == []


# ---------------------------------------------------------------- written anew


@both
def test_a_shard_that_is_written_anew_takes_the_place_of_the_old_one(tmp_path: Path, format: Format) -> None:  # noqa: A002
    out = str(tmp_path)
    write_shard(out, 3, [sample("a", described=False), sample("b")], format)
    info = write_shard(out, 3, [sample("a"), sample("b")], format, generation=1)
    assert info.file == f"00003.g1.{SUFFIXES[format]}"
    assert list(read_shards(out)) == [info]
    assert list(read_samples(out)) == [sample("a"), sample("b")]
    assert list(verify(out)) == []
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == sorted(("00003.json", info.file))


@both
def test_a_new_generation_counts_from_its_sidecar_on_and_leftovers_are_passed_over_and_deleted(
    tmp_path: Path,
    format: Format,  # noqa: A002
) -> None:
    """As a writer leaves it that was killed: before its sidecar was there, or after, before the old file was deleted."""
    out, names = str(tmp_path), ("00000.json", "00000.g1.json")
    old = write_shard(out, 0, [sample("a", described=False)], format)
    first = file_of(tmp_path, old).read_bytes()
    new = write_file(0, [sample("a")], format, out, FOLDER, file_name(0, 1, format))
    assert told(tmp_path) == ([0], [])
    assert list(read_samples(out)) == [sample("a", described=False)]
    delete_leftovers(out)
    assert not file_of(tmp_path, new).exists()

    new = write_shard(out, 0, [sample("a")], format, generation=1)
    file_of(tmp_path, old).write_bytes(first)
    assert told(tmp_path) == ([0], [])
    assert list(read_samples(out)) == [sample("a")]
    delete_leftovers(out)
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == sorted((names[0], new.file))


def test_the_old_generation_of_a_shard_stays_until_the_new_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = str(tmp_path)
    write_shard(out, 0, [sample("a", described=False)], "parquet")

    def fail(*_: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_whole", fail)
        with pytest.raises(StoreError):
            write_shard(out, 0, [sample("a")], "parquet", generation=1)
    assert list(read_samples(out)) == [sample("a", described=False)]


def test_a_reader_whose_file_goes_while_it_is_read_goes_on_behind_what_it_has_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on S3, where an open file that is deleted cannot be read to its end."""
    out, videos = str(tmp_path), [sample(letter) for letter in "abc"]
    write_shard(out, 0, videos, "parquet")
    whole = shards._samples_of_file

    def interrupted(out: str, info: ShardInfo) -> Iterator[VideoSample]:
        found = whole(out, info)
        if info.generation == 0:
            yield next(found)
            write_shard(out, 0, videos, "parquet", generation=1)
            raise StoreError("It is gone.")
        yield from found

    monkeypatch.setattr(shards, "_samples_of_file", interrupted)
    assert list(read_samples(out)) == videos


@both
def test_a_reader_of_a_shard_that_is_written_anew_sees_each_video_once(tmp_path: Path, format: Format) -> None:  # noqa: A002
    out = str(tmp_path)
    for number in (0, 1):
        write_shard(out, number, [sample(f"{number}{letter}", described=False) for letter in "abc"], format)
    reading, seen = read_samples(out), []
    for one in reading:
        seen.append(one.video.key)
        if one.video.key == "0a":  # the shard that is open, and the next one, whose sidecar is still to be read
            for number in (0, 1):
                write_shard(out, number, [sample(f"{number}{letter}") for letter in "abc"], format, generation=1)
    assert seen == ["0a", "0b", "0c", "1a", "1b", "1c"]
    info = next(read_shards(out))
    stale = info.model_copy(update={"generation": 0, "file": file_name(0, 0, format)})
    assert [one.video.key for one in samples_in(out, stale)] == ["0a", "0b", "0c"]
    assert list(_problems_of(out, stale)) == []


@both
def test_the_sidecar_tells_which_keyframes_are_not_described_and_why(tmp_path: Path, format: Format) -> None:  # noqa: A002
    why = Failure(item="a:0002", kind="refusal", message="It does not want to.", exit_code=6)
    one = sample("a")
    frames = [replace(frame, description=None, failure=why) if frame.keyframe.id == why.item else frame for frame in one.frames]
    info = write_shard(str(tmp_path), 0, [replace(one, frames=tuple(frames)), sample("b")], format)
    assert info.undescribed == (why,)
    assert list(undescribed_in(info)) == [UndescribedKeyframe("a", "a:0002", "refusal", "It does not want to.")]


# ---------------------------------------------------------------- failures while writing


@both
def test_a_damaged_part_leaves_what_was_there(tmp_path: Path, format: Format) -> None:  # noqa: A002
    write_shard(str(tmp_path), 0, [sample("before")], format)
    (tmp_path / "bad.tar").write_bytes(b"torn")
    pack(tmp_path / "good.tar", sample("good"))
    for number in (0, 1):
        with pytest.raises(StoreError, match=r"bad\.tar: damaged"):
            write_shard(str(tmp_path), number, [tmp_path / "good.tar", tmp_path / "bad.tar"], format)
    assert [one.video.key for one in read_samples(str(tmp_path))] == ["before"]
    assert len(list((tmp_path / FOLDER).iterdir())) == 2


def test_what_a_killed_writer_left_is_cleared_up_by_the_next(tmp_path: Path) -> None:
    write_shard(str(tmp_path), 0, [sample()], "parquet")
    for name in (".00000.parquet.12ab34cd.vip-part", ".00000.json.12ab34cd.vip-part", ".00001.parquet.12ab34cd.vip-part"):
        (tmp_path / FOLDER / name).write_bytes(b"half")
    assert told(tmp_path) == ([0], [])
    write_shard(str(tmp_path), 0, [sample()], "parquet")
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == [
        *(".00001.parquet.12ab34cd.vip-part", "00000.json", "00000.parquet")
    ]


def test_a_shard_whose_rows_repeat_one_value_to_far_more_than_its_file_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of 200 kB that is stored once stands in 200 rows of one video."""
    info = write_shard(str(tmp_path), 0, [sample("v0", count=200, size=500)], "parquet")
    path = tmp_path / FOLDER / info.file
    table = pq.read_table(path)
    column = table.schema.get_field_index("dense_caption")
    texts = table.set_column(column, table.schema.field(column), [["x" * 200_000] * 200])
    pq.write_table(texts, path, compression="ZSTD")
    info = info.model_copy(update={"bytes": path.stat().st_size})
    assert info.bytes < 200_000
    with pytest.raises(StoreError, match=r"damaged \(rows of more than [12][0-9],[0-9,]+ bytes\)"):
        list(samples_in(str(tmp_path), info))
    monkeypatch.setattr(parquet, "MOST_RATIO", 1000)
    (whole,) = samples_in(str(tmp_path), info)
    assert len(whole.frames) == 200


@pytest.mark.slow
@both
def test_memory_does_not_grow_with_the_number_of_clips(format: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: A002
    monkeypatch.setattr(parquet, "GROUP_BYTES", 2**20)

    def some(number: int) -> Iterator[VideoSample]:
        return (sample(f"v{one}", count=2, size=200_000) for one in range(number))

    peaks = []
    for number in (20, 20, 100):  # the first one loads libraries
        tracemalloc.start()
        write_shard(str(tmp_path / f"{number}"), 0, some(number), format)
        assert sum(1 for _ in read_samples(str(tmp_path / f"{number}"))) == number
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 2_000_000  # the clips of the last one have 40 MB


def test_the_json_of_a_sample_is_plain_text(tmp_path: Path) -> None:
    import tarfile

    info = write_shard(str(tmp_path), 0, [sample(title="Größe")], "webdataset")
    with fsspec.open(str(file_of(tmp_path, info))) as file, tarfile.open(fileobj=file) as archive:
        about = archive.extractfile("abc_0001.json")
        assert about
        text = about.read()
    assert "Größe" in text.decode()
    assert set(json.loads(text)) == set(COLUMNS) - {"embedding"}


def test_a_shard_that_unpacks_to_far_more_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = write_shard(str(tmp_path), 0, [sample("v0", count=4, size=50_000)], "parquet")
    path = tmp_path / FOLDER / info.file
    table = pq.read_table(path)
    column = table.schema.get_field_index("dense_caption")
    packed = table.set_column(column, table.schema.field(column), [["x" * 2**22] * 4])
    pq.write_table(packed, tmp_path / "bomb.parquet", compression="ZSTD", use_dictionary=False)
    assert (tmp_path / "bomb.parquet").stat().st_size < 2**20
    with (tmp_path / "bomb.parquet").open("rb") as file:
        assert len(list(parquet.read_parquet(file))) == 4
    monkeypatch.setattr(parquet, "MOST_GROUP_BYTES", 2**23)
    with (tmp_path / "bomb.parquet").open("rb") as file, pytest.raises(ValueError, match=r"a row group of 1[67],[0-9,]+ bytes"):
        list(parquet.read_parquet(file))
