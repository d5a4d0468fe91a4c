"""vip.tasks.labels: what people, and engines, say of videos and samples"""

from __future__ import annotations

from pathlib import Path

import pytest

from vip.errors import InputError
from vip.tasks.files import write_samples
from vip.tasks.labels import Labels, read_labels
from vip.tasks.records import Prediction

OWN = {"domain": ("Games",), "type": ("CW",)}


def test_labels_of_a_file_count_more_than_those_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "videos.csv").write_text("video,domain,causal\nv,Sports; Music ;,\nw,,social\n")
    labels = read_labels(tmp_path / "videos.csv")
    assert labels.groups("v/1", "v", OWN) == {"domain": ("Sports", "Music"), "type": ("CW",)}
    assert labels.groups("w/1", "w", OWN) == {**OWN, "causal": ("social",)}
    assert labels.groups("x/1", "x", OWN) == OWN
    assert read_labels(None).groups("x/1", "x", OWN) == OWN


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("key", ["video", "video_id"])
def test_a_file_of_a_spreadsheet_is_read_by_either_name_of_the_column(key: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "videos.csv").write_text(f"{key},domain\nv,Sports\n", encoding=encoding)
    assert read_labels(tmp_path / "videos.csv").of_videos == {"v": {"domain": ("Sports",)}}


def test_of_both_columns_that_of_the_samples_counts_and_more_than_labels_of_the_video(tmp_path: Path) -> None:
    (tmp_path / "both.csv").write_text("video,sample,domain\nv,v/1,Sports\n")
    labels = read_labels(tmp_path / "both.csv")
    assert (labels.of_videos, labels.of_samples) == ({}, {"v/1": {"video": ("v",), "domain": ("Sports",)}})
    whole = Labels(of_videos={"v": {"domain": ("Music",), "causal": ("social",)}}, of_samples={"v/1": {"domain": ("Sports",)}})
    assert whole.groups("v/1", "v", OWN) == {"domain": ("Sports",), "causal": ("social",), "type": ("CW",)}


def test_separators_that_are_no_line_breaks_stay_in_their_cell(tmp_path: Path) -> None:
    (tmp_path / "videos.csv").write_text('video,domain\nv,"a\u2028b"\nw,c\x85d\n', encoding="utf-8")
    assert read_labels(tmp_path / "videos.csv").of_videos == {"v": {"domain": ("a\u2028b",)}, "w": {"domain": ("c\x85d",)}}


def test_labels_of_a_sample_are_of_that_sample_alone(tmp_path: Path) -> None:
    (tmp_path / "samples.tsv").write_text("sample\tdomain\nv/1\tSports\n")
    labels = read_labels(tmp_path / "samples.tsv")
    assert labels.groups("v/1", "v", OWN)["domain"] == ("Sports",)
    assert labels.groups("v/2", "v", OWN) == OWN


def test_labels_of_an_engine_name_it_and_what_it_could_not_say_is_left_out(tmp_path: Path) -> None:
    rows = [
        Prediction(sample_id="a", value=1, engine="fake"),
        Prediction(sample_id="b", value=0),
        Prediction(sample_id="c", value=2, engine="fake"),
        Prediction(sample_id="d", value=None, status="unparsed", engine="fake"),
        Prediction(sample_id="e", value="social", engine="fake"),
    ]
    write_samples(tmp_path / "p.jsonl", rows)  # type: ignore[arg-type]
    assert read_labels(tmp_path / "p.jsonl").of_samples == {
        "a": {"causal": ("social",), "causal_by": ("fake",)},
        "b": {"causal": ("physical",), "causal_by": ("unknown",)},
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"name,domain\nv,x\n", "neither a column video"),
        (b"", "neither a column video"),
        (b"\xff", "not UTF-8 text"),
        (b"video,domain\nv," + b"x" * 200_000, "is no CSV"),
        (b"x" * 200_000, "is no CSV"),
    ],
)
def test_what_holds_no_labels_is_one_sentence(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        read_labels(tmp_path / "l.csv")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be read"):
        read_labels(tmp_path / "none.csv")
