"""TFRecord files of YouTube-8M: what is in them is read, and what is damaged is told."""

from __future__ import annotations

import gzip
import io
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.lists import bad, crc32c, example, feature, field, items, read, record, sequence_example, varint, vocabulary
from vip.corpus.inputs.tfrecord import DamagedRecord, LabelledVideo, read_records, starts_like_tfrecord

VIDEOS = [(b"nXSc", (3, 7)), (b"XE00", (252,)), (b"UL0a", ()), (b"aaaa", (3861, 0))]
FILE = b"".join(record(example(video, labels)) for video, labels in VIDEOS)
KNOWN = {(video.decode(), labels) for video, labels in VIDEOS}


def records(data: bytes) -> list[LabelledVideo | DamagedRecord]:
    return list(read_records(io.BytesIO(data)))


def test_the_checksum_of_the_tests_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_ids_and_labels_of_the_video_level_are_read() -> None:
    assert records(FILE) == [LabelledVideo(number, video.decode(), labels) for number, (video, labels) in enumerate(VIDEOS, 1)]


def test_ids_and_labels_of_the_frame_level_come_from_the_context() -> None:
    assert records(record(sequence_example(b"nXSc", [3, 7]))) == [LabelledVideo(1, "nXSc", (3, 7))]


def test_labels_that_are_not_packed_are_read() -> None:
    assert records(record(example(b"nXSc", [300, 7, 1 << 40], packed=False))) == [LabelledVideo(1, "nXSc", (300, 7, 1 << 40))]


def test_the_edition_of_2016_calls_the_id_video_id() -> None:
    assert records(record(example(b"nXSc", [3], name="video_id"))) == [LabelledVideo(1, "nXSc", (3,))]


def test_a_record_that_is_damaged_inside_costs_only_itself() -> None:
    first = record(example(b"nXSc", [3]))
    damaged = bytearray(first + FILE)
    damaged[20] ^= 1
    found = records(bytes(damaged))
    assert isinstance(found[0], DamagedRecord)
    assert found[0].number == 1
    assert {(one.video_id, one.labels) for one in found[1:] if isinstance(one, LabelledVideo)} == KNOWN


def test_a_damaged_length_ends_the_file_with_a_word() -> None:
    first = record(example(b"nXSc", [3]))
    damaged = bytearray(first + FILE)
    damaged[len(first)] ^= 1
    found = records(bytes(damaged))
    assert found[0] == LabelledVideo(1, "nXSc", (3,))
    assert len(found) == 2
    assert isinstance(found[1], DamagedRecord)
    assert "record" in found[1].message


def test_a_length_beyond_all_reason_is_not_read() -> None:
    length = struct.pack("<Q", 1 << 60)
    head = record(length)[12:20] + record(length)[20:24]  # the checksum is right
    (found,) = records(head + bytes(100))
    assert isinstance(found, DamagedRecord)
    assert f"{1 << 60} bytes" in found.message


def test_a_record_of_something_else_is_damage() -> None:
    (found,) = records(record(b"\xff" * 30))
    assert isinstance(found, DamagedRecord)
    (found,) = records(record(field(1, b"")))
    assert found == DamagedRecord(1, "This record has no feature id.")


@given(at=st.integers(0, len(FILE) - 1), byte=st.integers(1, 255))
def test_a_changed_byte_never_makes_up_a_video(at: int, byte: int) -> None:
    damaged = bytearray(FILE)
    damaged[at] ^= byte
    found = records(bytes(damaged))
    assert {(one.video_id, one.labels) for one in found if isinstance(one, LabelledVideo)} < KNOWN
    assert any(isinstance(one, DamagedRecord) for one in found)


@given(length=st.integers(0, len(FILE)))
def test_a_file_that_is_cut_off_gives_what_was_whole_and_says_so(length: int) -> None:
    found = records(FILE[:length])
    whole = [one for one in found if isinstance(one, LabelledVideo)]
    assert [(one.video_id, one.labels) for one in whole] == [(video.decode(), labels) for video, labels in VIDEOS][: len(whole)]
    ends = [sum(len(record(example(*video))) for video in VIDEOS[:count]) for count in range(len(VIDEOS) + 1)]
    assert any(isinstance(one, DamagedRecord) for one in found) == (length not in ends)


@given(st.binary(max_size=300))
def test_no_bytes_with_a_right_checksum_crash_the_reader(data: bytes) -> None:
    (found,) = records(record(data))
    assert isinstance(found, LabelledVideo | DamagedRecord)


def test_a_list_of_tfrecords_gives_items_with_names_and_verticals(tmp_path: Path) -> None:
    path = tmp_path / "train0093.tfrecord"
    path.write_bytes(record(sequence_example(b"nXSc", [252, 3, 4000])))
    (found,) = items(read(path, vocabulary=vocabulary(tmp_path)))
    assert (found.key, found.kind, found.where) == ("nXSc", "youtube8m", f"{path}, record 1")
    assert found.labels == ("Snow", "Concert", "4000")
    assert found.verticals == ("News", "Science", "Arts & Entertainment")
    (found,) = items(read(path))
    assert found.labels == ("252", "3", "4000")


@pytest.mark.extra("google_crc32c")
@pytest.mark.parametrize(
    ("head", "is_one"),
    [(FILE, True), (record(b""), True), (b"", False), (FILE[:11], False), (b"x" * 12, False), (bytes(12), False), (b"PAR1" * 3, False)],
)
def test_a_file_is_known_by_the_checksum_of_its_first_length_also_if_that_is_zero(head: bytes, is_one: bool) -> None:
    assert starts_like_tfrecord(head[:12]) == is_one


@pytest.mark.extra("google_crc32c")
def test_a_packed_file_without_a_suffix_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-03844"
    path.write_bytes(gzip.compress(FILE))
    assert [found.key for found in items(read(path))] == ["nXSc", "XE00", "UL0a", "aaaa"]


def test_a_packed_file_that_is_cut_off_names_the_record(tmp_path: Path) -> None:
    path = tmp_path / "train0093.tfrecord.gz"
    path.write_bytes(gzip.compress(FILE)[:-12])
    found = read(path)
    assert [row.key for row in items(found)] == ["nXSc", "XE00", "UL0a", "aaaa"][: len(items(found))]
    assert [row.where for row in bad(found)] == [f"{path}, record {len(items(found)) + 1}"]


def test_an_id_of_a_record_is_never_taken_for_a_path_or_an_address(tmp_path: Path) -> None:
    path = tmp_path / "train.tfrecord"
    path.write_bytes(
        b"".join(record(example(text, [])) for text in (b"/etc/passwd", b"../../../x", b"http://a.b/", b"ab\x00d", b"\xff\xfe\xfd\xfc"))
    )
    found = read(path)
    assert not items(found)
    assert len(found) == 5


def test_labels_may_be_below_zero() -> None:
    assert records(record(example(b"nXSc", [-1, 5, -(1 << 63)]))) == [LabelledVideo(1, "nXSc", (-1, 5, -(1 << 63)))]


def test_fields_of_fixed_width_are_passed_over() -> None:
    fixed = varint(9 << 3 | 1) + bytes(8) + varint(9 << 3 | 5) + bytes(4)
    assert records(record(fixed + example(b"nXSc", [3]) + fixed)) == [LabelledVideo(1, "nXSc", (3,))]


def test_a_record_with_two_ids_names_no_video() -> None:
    labels, ids = feature("labels", 3, field(1, varint(3))), feature("id", 1, field(1, b"nXSc") + field(1, b"XE00"))
    assert records(record(field(1, labels + ids))) == [DamagedRecord(1, "This record has no feature id.")]


@pytest.mark.extra("google_crc32c")
def test_a_file_without_a_suffix_is_a_list_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-03844"
    path.write_bytes(FILE)
    assert [found.key for found in items(read(path))] == ["nXSc", "XE00", "UL0a", "aaaa"]
