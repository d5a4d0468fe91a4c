"""The columns of a row: which of several names the video, and what the others say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.corpus.lists import bad, items, vocabulary
from vip.corpus.inputs.columns import TOPIC_LETTERS, column_name, items_of_columns
from vip.dataset.items import ListItem

ID, OTHER = "dQw4w9WgXcQ", "aaaaaaaaaaa"


def one(folder: Path, **row: Any) -> ListItem:
    (found,) = items(items_of_columns(row, "a.csv, line 2", folder=folder))
    return found


@pytest.mark.parametrize("nothing", ["", None])
def test_a_column_that_is_empty_leaves_its_role_to_the_next(tmp_path: Path, nothing: str | None) -> None:
    found = one(tmp_path, path=nothing, url=nothing, id=ID, labels=nothing, label="dog", duration_s=nothing, duration="1:00", topic=nothing)
    assert (found.source, found.labels, found.duration_s, found.topic) == (ID, ("dog",), 60.0, None)


@pytest.mark.parametrize(
    ("row", "source"),
    [
        ({"id": "7", "youtube_id": ID}, ID),
        ({"youtube_id": ID, "id": "7"}, ID),
        ({"url": f"https://youtu.be/{ID}", "video_id": OTHER}, ID),
        ({"video_id": OTHER, "url": f"https://youtu.be/{ID}"}, ID),
        ({"id": "7", "video": OTHER, "link": f"https://youtu.be/{ID}"}, ID),
        ({"id": "7", "videoid": ID}, ID),
        ({"link": OTHER, "ytid": ID}, ID),
    ],
)
def test_of_several_columns_that_name_a_video_the_surest_holds_wherever_it_stands(tmp_path: Path, row: dict[str, str], source: str) -> None:
    assert one(tmp_path, **row).source == source


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("dog|cat", ("dog", "cat")),
        ("dog; cat", ("dog", "cat")),
        ("dog, cat", ("dog", "cat")),
        ("dog, brown; cat", ("dog, brown", "cat")),
        ("dog; brown|cat", ("dog; brown", "cat")),
        ('["dog, brown", "cat"]', ("dog, brown", "cat")),
        ("[dog", ("[dog",)),
        (["dog", " cat ", "dog", "", None, 3], ("dog", "cat", "3")),
        (("dog",), ("dog",)),
        (12, ("12",)),
        (1.5, ()),
    ],
)
def test_words_are_split_at_the_rarest_mark_and_each_is_there_once(tmp_path: Path, given: Any, words: tuple[str, ...]) -> None:
    found = one(tmp_path, id=ID, labels=given, categories=given)
    assert (found.labels, found.verticals) == (words, words)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(90, 90.0), ("90", 90.0), ("1:30", 90.0), (0, 0.0), (-1, None), ("nan", None), (float("inf"), None), ("long", None), ([], None)],
)
def test_a_length_that_makes_no_sense_is_unknown(tmp_path: Path, given: Any, seconds: float | None) -> None:
    assert one(tmp_path, id=ID, duration=given).duration_s == seconds


@pytest.mark.parametrize(("given", "topic"), [("a\n b", "a b"), ("x" * (TOPIC_LETTERS + 1), "x" * TOPIC_LETTERS), ("  ", None), (3, None)])
def test_a_topic_is_a_text_on_one_line_of_some_length(tmp_path: Path, given: Any, topic: str | None) -> None:
    assert one(tmp_path, id=ID, topic=given).topic == topic


@pytest.mark.parametrize(
    ("row", "labels", "verticals"),
    [
        ({"labels": "3|252"}, ("Concert", "Snow"), ("Arts & Entertainment", "News", "Science")),
        ({"labels": "3", "vertical": "Mine"}, ("Concert",), ("Mine",)),
        ({"labels": "unknown"}, ("unknown",), ()),
        ({"vertical": "Mine"}, (), ("Mine",)),
    ],
)
def test_a_vocabulary_names_labels_and_gives_verticals_where_the_row_has_none(
    tmp_path: Path, row: dict[str, str], labels: tuple[str, ...], verticals: tuple[str, ...]
) -> None:
    (found,) = items(items_of_columns({"id": ID, **row}, "a.csv, line 2", folder=tmp_path, vocabulary=vocabulary(tmp_path)))
    assert (found.labels, found.verticals) == (labels, verticals)


@pytest.mark.parametrize("given", [True, 1.5, ["dQw4w9WgXcQ"], {"id": "dQw4w9WgXcQ"}])
def test_what_is_neither_text_nor_a_whole_number_names_no_video(tmp_path: Path, given: Any) -> None:
    (found,) = bad(items_of_columns({"id": given, "topic": "dogs"}, "a.csv, line 2", folder=tmp_path))
    assert (found.text, found.where) == ("id, topic", "a.csv, line 2")
    assert found.message.startswith("The row names no video.")


@pytest.mark.parametrize("given", [b"dQw4w9WgXcQ", "dQw4w9WgXcQ "])
def test_bytes_and_spaces_around_an_id_are_one(tmp_path: Path, given: Any) -> None:
    assert one(tmp_path, id=given).source == ID


@pytest.mark.parametrize(("given", "name"), [("Video ID", "video_id"), (" video-url\t", "video_url"), ("CONTENTURL", "contenturl")])
def test_names_of_columns_are_spelled_in_one_way(given: str, name: str) -> None:
    assert column_name(given) == name


@pytest.mark.parametrize(
    "name",
    [
        *("path", "file", "File Path", "filepath", "file_name", "FileName", "source", "YouTube ID", "ytid", "URL", "video_url"),
        *("Video Link", "contentUrl", "address", "link", "video", "video-id", "videoID", "id"),
    ],
)
def test_a_video_is_named_under_any_of_the_names_that_lists_have_for_it(tmp_path: Path, name: str) -> None:
    assert one(tmp_path, **{column_name(name): f"https://youtu.be/{ID}"}).source == ID


@pytest.mark.parametrize("name", ["labels", "Label"])
@pytest.mark.parametrize("group", ["verticals", "Vertical", "categories", "Category"])
@pytest.mark.parametrize("length", ["duration_s", "Duration"])
def test_what_is_said_of_a_video_may_have_several_names_too(tmp_path: Path, name: str, group: str, length: str) -> None:
    row = {column_name(key): value for key, value in ((name, "dog"), (group, "Pets"), (length, "90"))}
    found = one(tmp_path, id=ID, title="not read", **row)
    assert (found.labels, found.verticals, found.duration_s) == (("dog",), ("Pets",), 90.0)
