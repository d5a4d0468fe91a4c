"""From a row to a video, or to the reason why it names none."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.lists import bad, items, vocabulary
from vip.corpus.inputs.columns import items_of_columns
from vip.corpus.inputs.rows import ROW_BYTES, BadRow, KnownColumns, items_of, shown
from vip.dataset.items import ListItem
from vip.errors import InputError
from vip.untrusted import printable

KEY = re.compile(r"[A-Za-z0-9._-]{1,100}")


def rows(text: str, folder: Path = Path("nowhere"), *, public_only: bool = False) -> list[ListItem | BadRow]:
    return list(items_of(text, "ids.txt, line 12", folder=folder, public_only=public_only))


def one(text: str, folder: Path = Path("nowhere"), *, public_only: bool = False) -> ListItem:
    (found,) = rows(text, folder, public_only=public_only)
    assert isinstance(found, ListItem), found
    return found


def refused(text: str, folder: Path = Path("nowhere"), *, public_only: bool = False) -> BadRow:
    (found,) = rows(text, folder, public_only=public_only)
    assert isinstance(found, BadRow), found
    return found


# ---------------------------------------------------------------- ids and addresses


def test_eleven_letters_are_an_id_of_youtube_and_four_one_of_youtube_8m() -> None:
    assert one("  dQw4w9WgXcQ ") == ListItem("dQw4w9WgXcQ", "youtube", "dQw4w9WgXcQ", "ids.txt, line 12")
    assert one("-_4w9WgXcQ0").kind == "youtube"
    assert one("nXSc") == ListItem("nXSc", "youtube8m", "nXSc", "ids.txt, line 12")
    assert refused("nX-c").kind == refused("dQw4w9WgXc").kind == "missing"


def test_an_id_is_an_id_even_where_a_file_has_that_name(tmp_path: Path) -> None:
    (tmp_path / "nXSc").write_bytes(b"")
    assert one("nXSc", tmp_path).kind == "youtube8m"
    assert one("./nXSc", tmp_path).kind == "file"


def test_the_same_video_of_youtube_has_one_key_however_it_is_written() -> None:
    spellings = ["dQw4w9WgXcQ", "https://youtu.be/dQw4w9WgXcQ?t=3", "www.youtube.com/watch?v=dQw4w9WgXcQ", "youtu.be/dQw4w9WgXcQ"]
    assert {(one(text).key, one(text).kind, one(text).source) for text in spellings} == {("dQw4w9WgXcQ", "youtube", "dQw4w9WgXcQ")}


def test_another_address_keeps_itself_and_gets_a_key_of_its_whole() -> None:
    address = "HTTPS://user:secret@media.example.com/a%20b/My%20clip.final.mp4?token=abc#t=1"
    found = one(address)
    assert (found.kind, found.source, found.host) == ("address", address, "media.example.com")
    assert re.fullmatch(r"My_clip\.final-[0-9a-f]{16}", found.key)
    assert found.key != one(address.replace("abc", "abd")).key
    assert one("https://example.com").key.startswith("example.com-")


def test_addresses_whose_digests_begin_alike_have_different_keys() -> None:
    """40 bits were too few: among a million addresses with one stem, two have the same with a probability of 0.37."""
    first, second = (one(f"http://127.0.0.1:9962/whole.mp4?id={number}").key for number in (158339, 411145))
    assert first[: len("whole-") + 10] == second[: len("whole-") + 10]
    assert first != second
    assert KEY.fullmatch(one(f"https://example.com/{'x' * 300}.mp4").key)


def test_a_playlist_is_an_address_like_any_other() -> None:
    assert one("https://www.youtube.com/playlist?list=PL1").kind == "address"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "file:///etc/passwd",
            "FILE:/etc/passwd",
            "ftp://example.com/a.mp4",
            "javascript:alert(1)",
            "data:video/mp4;base64,AAAA",
            "s3://b/k",
        ),
        *("http://", "https:///a.mp4", "http://:80/", "http://[::1/", "http://a:b/", "http://a:99999/", "http://good.example\\@10.0.0.1/"),
        *("http://./", "http://a b.example/", "http://%65xample.com/"),
    ],
)
def test_what_is_no_address_of_the_web_is_refused(text: str) -> None:
    assert refused(text).kind == "bad_row"


@pytest.mark.parametrize("text", ["a\0b", "a\x1b[31mred", "tab\there", "a\x9bb", "\ud800.mp4", "http://a.example/\r\nHost: b"])
def test_control_characters_are_refused_and_not_shown(text: str) -> None:
    found = refused(text)
    assert found.kind == "bad_row"
    assert found.text.isprintable()


def test_escape_sequences_are_not_shown_and_hide_no_secret() -> None:
    assert refused("a\x1b[31mred\x1b[0m\tb").text == "ared b"
    assert refused("http:/\x1b[0m/user:hunter2@example.com/a?token=hunter2").text == "http://…@example.com/a?…"


def test_a_row_longer_than_8_kb_is_told_with_its_beginning() -> None:
    found = refused("ab" * 500_000)
    assert found.text == "ab" * 60
    assert str(ROW_BYTES) in found.message


def test_neither_login_nor_query_of_an_address_is_shown() -> None:
    for text in (
        "ftp://user:hunter2@example.com/a?token=hunter2",
        "http://user:hun/ter2@example.com:x/a",
        "http://user:hunter2 @[::1/a?b=hunter2#hunter2",
        "example.com/a.mp4?token=hunter2",
        "http://u:hunter2@127.0.0.1/?k=hunter2",
        f"ftp://user:hunter2{'a' * 200}@example.com/a",
    ):
        shown = refused(text, public_only=True)
        assert "hunter2" not in shown.text + shown.message
        assert "ter2" not in shown.text + shown.message


@pytest.mark.parametrize(
    "text", ["https://example.com:8000/@channel/a@b.mp4", "s3://bucket/a@b.mp4", "clips//a@b.mp4", "clips/a@b.mp4", "http://host/a:b@c"]
)
def test_an_at_sign_in_a_path_is_no_login(text: str) -> None:
    assert shown(text) == text
    assert shown(text.replace("://", "://user:hun/ter2@")).count("hun") == 0


def test_only_public_hosts_pass_with_public_only() -> None:
    for text in (
        "http://127.0.0.1/a.mp4",
        "http://2130706433/",
        "http://[::1]/",
        "https://localhost:8000/a",
        "http://user@10.0.0.1/",
        "https://nas/a.mp4",
    ):
        assert one(text).kind == "address"
        assert refused(text, public_only=True).kind == "not_public"
    assert one("https://example.com/a.mp4", public_only=True).kind == "address"
    assert one("nXSc", public_only=True).kind == "youtube8m"


# ---------------------------------------------------------------- local paths


def test_a_path_starts_at_the_folder_of_the_list_or_else_at_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "list").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here" / "a.mp4").write_bytes(b"")
    assert one("a.mp4", tmp_path / "list").source == str(tmp_path / "here" / "a.mp4")
    (tmp_path / "list" / "a.mp4").write_bytes(b"")
    assert one("a.mp4", tmp_path / "list").source == str(tmp_path / "list" / "a.mp4")


def test_a_file_has_the_same_key_by_whatever_path(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "Ein Clip ü.mp4").write_bytes(b"")
    spellings = ["Ein Clip ü.mp4", "sub/../Ein Clip ü.mp4", str(tmp_path / "Ein Clip ü.mp4"), "Ein Clip*.mp4"]
    (key,) = {one(text, tmp_path).key for text in spellings}
    assert re.fullmatch(r"Ein_Clip-[0-9a-f]{16}", key)


def test_a_row_that_looks_like_an_option_or_climbs_up_is_a_path_that_is_missing(tmp_path: Path) -> None:
    for text in ("-o evil", "--exec rm", "../../nothing.mp4", "../" * 100 + "nothing.mp4", "$(reboot)", "x" * 5000):
        assert refused(text, tmp_path).kind == "missing"
        assert refused(text, tmp_path, public_only=True).kind == "not_public"


def test_a_folder_and_a_glob_name_the_videos_in_them(tmp_path: Path) -> None:
    folder = tmp_path / "some [x]"
    folder.mkdir()
    for name in ("b.mp4", "a.WEBM", "a.srt", ".hidden"):
        (folder / name).write_bytes(b"")
    (folder / "sub.mp4").mkdir()
    names = ["a.WEBM", "b.mp4"]
    assert [Path(found.source).name for found in items(rows("some [x]", tmp_path))] == names
    assert sorted(Path(found.source).name for found in items(rows("*", folder))) == names
    assert [Path(found.source).name for found in items(rows("*.srt", folder))] == ["a.srt"]
    assert sorted(Path(found.source).name for found in items(rows("**/*.*", tmp_path))) == names
    assert [Path(found.source).name for found in items(rows("some [[]x[]]/*.mp4", tmp_path))] == ["b.mp4"]


@pytest.mark.parametrize("pattern", ["**/" * 20 + "*.mp4", "**/*/" * 8 + "**/*.mp4", "**/a/" * 4 + "*.mp4", "**/*/../" * 8 + "*.mp4"])
def test_a_glob_takes_no_longer_for_many_stars(pattern: str, tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*"a" * 30)
    folder.mkdir(parents=True)
    (folder / "b.mp4").write_bytes(b"")
    started = time.monotonic()
    found = [Path(item.source) for item in items(rows(pattern, tmp_path))]
    assert found == ([] if ".." in pattern else [folder / "b.mp4"])
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "pattern",
    [
        "*/**",
        "*/**/**",
        "*/**/c.mp4",
        "*/*.mp4",
        "**/*.mp4",
        "a/**/*.mp4",
        "**/b/**/*.mp4",
        "**/b/*.mp4",
        "*/b/c.mp4",
        "**/c.mp4",
        "?/[b]/*.mp4",
        "**",
        "a/**",
        "*",
    ],
)
def test_a_glob_matches_what_a_glob_of_python_matches(pattern: str, tmp_path: Path) -> None:
    for name in ("c.mp4", "a/c.mp4", "a/b/c.mp4", "a/b/b/.d.mp4", "a/b.mp4/c.mp4", "far/b/e.mp4"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(b"")
    (tmp_path / "in" / "link").symlink_to("a/b")
    (tmp_path / "in" / "round").symlink_to(".")
    (tmp_path / "in" / "l.mp4").symlink_to("c.mp4")
    matched = {str(path) for path in (tmp_path / "in").glob(pattern) if path.is_file()}  # Python 3.13 gives some twice
    expected = [] if pattern.endswith("**") else sorted(matched)
    found = [item for item in rows(pattern, tmp_path / "in") if isinstance(item, ListItem)]
    assert sorted(item.source for item in found) == expected


def test_what_names_no_video_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.mp4")
    assert refused("empty", tmp_path).kind == "no_video"
    assert refused("*.mkv", tmp_path).kind == "missing"
    assert refused("a**b/*.mp4", tmp_path).kind == "missing"
    assert refused("pipe.mp4", tmp_path).kind == "bad_row"


def test_a_file_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.mp4")).write_bytes(b"")
    (found,) = rows("*.mp4", tmp_path)
    assert isinstance(found, BadRow)
    assert found.text.isprintable()


@given(st.text(), st.booleans())
def test_whatever_a_row_says_its_key_is_safe_and_nothing_is_raised(text: str, public_only: bool) -> None:
    for found in rows(text, Path("/nowhere"), public_only=public_only):
        if isinstance(found, ListItem):
            assert KEY.fullmatch(found.key)
            assert not (public_only and found.kind == "file")
        else:
            assert found.text == printable(found.text)
            assert len(found.text) <= 120


@given(
    st.sampled_from(["http://", "https://", "ftp://", "//", "www.youtube.com/", ""]),
    st.text(st.sampled_from("aZ09.:/?#[]@%\\ -_&=\u3002\uff0e\x00"), max_size=40),
)
def test_no_address_crashes_the_reader(scheme: str, rest: str) -> None:
    for found in rows(scheme + rest, Path("/nowhere"), public_only=True):
        assert isinstance(found, BadRow) or KEY.fullmatch(found.key)


# ---------------------------------------------------------------- columns


def test_what_columns_say_comes_along() -> None:
    row = {
        "id": 17,
        "url": "https://youtu.be/dQw4w9WgXcQ",
        "labels": "Car;Dance",
        "category": ["Sports"],
        "topic": " a\nrace ",
        "duration": "1:30",
    }
    (found,) = items_of_columns(row, "x", folder=Path())
    expected = KnownColumns(("Car", "Dance"), ("Sports",), "a race", 90.0)
    assert found == ListItem("dQw4w9WgXcQ", "youtube", "dQw4w9WgXcQ", "x", *(getattr(expected, name) for name in KnownColumns.__slots__))


def test_a_path_or_an_address_goes_before_an_id_which_may_be_the_number_of_the_row() -> None:
    (found,) = items_of_columns({"id": "nXSc", "video_id": "", "url": "https://example.com/a.mp4"}, "x", folder=Path())
    assert isinstance(found, ListItem)
    assert found.kind == "address"


@pytest.mark.parametrize("duration", ["soon", -1, float("nan"), float("inf"), "1e400", [3], "", None])
def test_a_duration_that_makes_no_sense_is_not_said(duration: object) -> None:
    (found,) = items_of_columns({"id": "nXSc", "duration": duration}, "x", folder=Path())
    assert isinstance(found, ListItem)
    assert found.duration_s is None


@pytest.mark.parametrize("value", [None, "", True, 1.5, ["nXSc"], {"a": 1}])
def test_a_row_without_a_text_for_the_video_is_bad(value: object) -> None:
    (found,) = items_of_columns({"id": value, "title": "x"}, "x", folder=Path())
    assert isinstance(found, BadRow)


def test_bytes_that_are_no_utf_8_are_bad() -> None:
    (found,) = bad(items_of_columns({"id": b"\xff\xfe.mp4"}, "x", folder=Path()))
    assert "no text" in found.message


def said(**row: object) -> ListItem:
    (found,) = items_of_columns({"id": "nXSc", **row}, "x", folder=Path())
    assert isinstance(found, ListItem)
    return found


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("Car, blue|Dance; slow", ("Car, blue", "Dance; slow")),
        ("Car, blue;Dance", ("Car, blue", "Dance")),
        ("Car,Dance", ("Car", "Dance")),
        ('["Car, blue", "Dance"]', ("Car, blue", "Dance")),
        ("[Car|Dance", ("[Car", "Dance")),
        (["Car", " Dance ", "Car", "", 7, None], ("Car", "Dance", "7")),
        (7, ("7",)),
    ],
)
def test_words_are_parted_by_the_strongest_mark_and_each_counts_once(labels: object, words: tuple[str, ...]) -> None:
    assert said(labels=labels).labels == words


def test_verticals_of_the_list_go_before_those_of_the_vocabulary(tmp_path: Path) -> None:
    row = {"id": "nXSc", "labels": "3", "verticals": "Sports"}
    (found,) = items(items_of_columns(row, "x", folder=Path(), vocabulary=vocabulary(tmp_path)))
    assert (found.labels, found.verticals) == (("Concert",), ("Sports",))


def test_a_topic_without_an_end_is_cut() -> None:
    assert said(topic="x" * 5000).topic == "x" * 2000


def test_a_row_is_measured_in_bytes() -> None:
    assert "longer than 8192 bytes" in refused("ü" * 5000).message
    assert refused("u" * 5000).kind == "missing"


def test_a_folder_that_cannot_be_looked_into_is_a_bad_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: Path) -> None:
        raise InputError("Permission denied.")

    monkeypatch.setattr("vip.video.source.contents", closed)
    (tmp_path / "closed").mkdir()
    found = refused("closed", tmp_path)
    assert (found.kind, found.message) == ("unreadable", "Permission denied.")
