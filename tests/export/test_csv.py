"""The table for spreadsheets: every text comes back, none becomes a formula, and one video at a time is in memory."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.making import sample, samples, texts
from vip.dataset.rows import VideoSample
from vip.dataset.schema import COLUMNS
from vip.export import csv as table
from vip.records import RichFields
from vip.untrusted import one_line

FIELDS = RichFields.model_validate(
    {
        **dict.fromkeys(("short_caption", "main_object", "background", "style", "depth_of_field"), "not determined"),
        **{"shot_size": "medium shot", "camera_angle": "eye level", "camera_movement": "not known"},
        "counts": [{"object": "person", "count": 1}],
        "colours": [{"object": "coat", "colour": "red"}],
        "relations": [{"subject": "person", "relation": "left of", "object": "box"}],
        **{"visible_text": ["EXIT"], "characters": []},
    }
)

ATTACKS = [
    "=1+1",
    '=HYPERLINK("http://example.org","x")',
    "+1",
    "-1+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " \n =1",
    "\x00=1",
    "\u202e=1",
    "\ufeff=1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
]


def unheard(text: str) -> None:
    raise AssertionError(f"nobody expected: {text}")


def rows_in(folder: Path) -> list[dict[str, str]]:
    with (folder / "keyframes.csv").open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file, strict=True))


def written(folder: Path, *some: VideoSample) -> list[dict[str, str]]:
    table.write(iter(some), str(folder), unheard)
    return rows_in(folder)


def said(one: VideoSample, **changed: object) -> VideoSample:
    """The clip with these fields in every description."""
    frames = [dataclasses.replace(row, description=row.description and row.description.model_copy(update=changed)) for row in one.frames]
    return VideoSample(one.video, tuple(frames))


def unguarded(text: str) -> str:
    """The text of a cell without the apostrophes that keep it from being a formula."""
    return re.sub(r"(^|;[ \"]*)'(?=[=+\-@＝＋－＠])", r"\1", text)


def test_each_keyframe_is_a_row_whose_picture_lies_beside(tmp_path: Path) -> None:
    some = [sample("one", title="My film"), sample("a.b", described=False)]
    rows = written(tmp_path, *some)
    assert [row["keyframe_id"] for row in rows] == [frame.keyframe.id for one in some for frame in one.frames]
    assert (rows[0]["video_id"], rows[0]["title"], rows[0]["number"], rows[0]["time_s"], rows[0]["time"]) == (
        "one",
        "My film",
        "1",
        "2.0",
        "0:00:02",
    )
    assert (rows[0]["width_px"], rows[0]["sharpness"], rows[0]["detections"]) == ("64", "101.0", "dog 0.75")
    assert (rows[0]["dense_caption"], rows[0]["objects"], rows[0]["mood"]) == ("The caption of 2.0", "rope; ball", "not determined")
    assert rows[3]["dense_caption"] == rows[3]["focus"] == ""
    for row, frame in zip(rows, [frame for one in some for frame in one.frames], strict=True):
        assert (tmp_path / row["picture"]).read_bytes() == frame.picture
    assert rows[3]["picture"] == "pictures/a.b/0001.jpg"


def test_columns_have_the_names_of_the_other_formats() -> None:
    assert set(table.CELLS) - set(COLUMNS) == {"time"}
    assert len(set(table.CELLS)) == len(table.CELLS)


def test_the_lists_of_rich_fields_are_cells_that_one_can_read(tmp_path: Path) -> None:
    first, *_ = written(tmp_path, said(sample(), rich=FIELDS))
    assert (first["counts"], first["colours"], first["relations"]) == ("person: 1", "coat: red", "person left of box")
    assert (first["visible_text"], first["shot_size"], first["camera_movement"]) == ("EXIT", "medium shot", "not known")
    (plain, *_) = written(tmp_path / "plain", sample())
    assert {plain[name] for name in RichFields.model_fields} == {""}


def test_the_file_is_as_rfc_4180_and_excel_have_it(tmp_path: Path) -> None:
    written(tmp_path, said(sample(count=1), dense_caption='größe, "quoted"'))
    data = (tmp_path / "keyframes.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfvideo_id,")
    assert data.count(b"\r\n") == data.count(b"\n") == 2
    assert '"größe, ""quoted"""'.encode() in data


@pytest.mark.parametrize("text", ATTACKS)
def test_no_text_becomes_a_formula(text: str, tmp_path: Path) -> None:
    one = said(sample(count=1, title=text, source=text), dense_caption=text, engine=text)
    (row,) = written(tmp_path, one)
    for name in ("dense_caption", "title", "source", "description_engine"):
        assert row[name] == f"'{one_line(text)}"


def test_a_cell_that_is_split_at_semicolons_is_no_formula_either(tmp_path: Path) -> None:
    (row,) = written(tmp_path, said(sample(count=1, labels=("Dog", "=cmd")), dense_caption='a; =1;@x ;"=2";-)'))
    assert row["dense_caption"] == "a; '=1;'@x ;\"'=2\";'-)"
    assert row["labels"] == "Dog; '=cmd"


def test_numbers_stay_numbers() -> None:
    assert table.cell(-1.5) == -1.5
    assert table.cell(-3) == -3
    assert table.cell(None) is None


@pytest.mark.parametrize(
    ("time_s", "expected"), [(0.0, "0:00:00"), (62.9, "0:01:02"), (3600.0, "1:00:00"), (-0.4, "0:00:00"), (-62.9, "-0:01:02"), (None, None)]
)
def test_times_are_those_that_a_player_shows(time_s: float | None, expected: str | None) -> None:
    assert table.hours_minutes_seconds(time_s) == expected


@pytest.mark.slow
@given(st.lists(texts | st.sampled_from(ATTACKS) | st.sampled_from(['"', ",", ";", "; =", ';"+', "\n", "'"]), max_size=6).map("".join))
def test_every_text_comes_back_and_none_is_a_formula(text: str) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerow([table.cell(text), "next"])
    read, after = next(csv.reader(io.StringIO(file.getvalue(), newline=""), strict=True))
    assert after == "next"
    assert unguarded(read) == unguarded(one_line(text))
    first, *others = read.split(";")
    assert not re.match(r"\s*[=+\-@＝＋－＠]", first)
    assert not any(re.match(r"[\s\"]*[=+\-@＝＋－＠]", part) for part in others)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", read)


@pytest.mark.slow
@given(samples())
def test_whatever_a_clip_holds_is_a_table(tmp_path_factory: pytest.TempPathFactory, one: VideoSample) -> None:
    rows = written(tmp_path_factory.mktemp("csv"), one)
    assert len(rows) == len(one.frames)
    for row, frame in zip(rows, one.frames, strict=True):
        assert None not in row
        assert unguarded(row["dense_caption"]) == unguarded(one_line(frame.description.dense_caption if frame.description else ""))
        assert row["time_s"] == ("" if frame.keyframe.time_s is None else repr(frame.keyframe.time_s))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_videos(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        def many() -> Iterator[VideoSample]:
            for number in range(count):
                yield sample(f"v{number}", count=2, size=50_000)

        tracemalloc.start()
        table.write(many(), str(tmp_path / str(count)), unheard)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)
    assert peak(60) < peak(6) + 500_000  # 54 videos more hold 5.4 MB


def test_pandas_reads_the_table(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    written(tmp_path, sample("one"), sample("two", described=False))
    found = pandas.read_csv(tmp_path / "keyframes.csv")
    assert list(found.columns) == list(table.CELLS)
    assert found["time_s"].tolist() == [2.0, 4.0, 6.0] * 2
    assert found["dense_caption"][:3].tolist() == ["The caption of 2.0", "The caption of 4.0", "The caption of 6.0"]
