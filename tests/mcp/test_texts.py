"""vip.mcp.texts: what describe and words return of runs and videos, row by row"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from tests.captioning.keyframes import run_folder
from tests.clips import clip, stamps
from tests.mcp.test_workshop import SRT, Server
from tests.report.runs import description
from vip import store
from vip.errors import BackendError
from vip.records import Description, Famous, KeyframeText, SpokenWords, TextLine
from vip.store import Run, load_run

pytestmark = pytest.mark.extra("mcp")


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path.resolve())


def write_texts(folder: Path, **texts: Sequence[str]) -> None:
    """Say what is read in keyframes: `k0` is the first."""
    rows = []
    for place, frame in enumerate(load_run(folder).keyframes):
        read = texts.get(f"k{place}", ())
        lines = tuple(TextLine(text=text, score=0.9, box_xyxy=(0.0, 0.0, 1.0, 1.0)) for text in read)
        rows.append(KeyframeText(keyframe_id=frame.id, picture_sha256=sha256(frame.data).hexdigest(), reader="x 1", lines=lines))
    store.write_rows(folder / store.TEXT, rows)


def describe_all(folder: Path, **changed: Any) -> list[Description]:
    rows = [description(frame.record).model_copy(update=changed) for frame in load_run(folder).keyframes]
    store.write_rows(folder / store.DESCRIPTIONS, rows)
    return rows


def write_words(folder: Path, *words: tuple[float, float, str, str]) -> None:
    rows = [
        SpokenWords.model_validate({"start_s": a, "end_s": b, "text": text, "source": by, "origin": "x\ny"}) for a, b, text, by in words
    ]
    store.write_rows(folder / store.WORDS, rows)


# ---------------------------------------------------------------- describe


def test_a_description_of_a_stranger_does_not_fill_an_agents_context(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_folder(server.root / "talk.vip", 3)
    famous = Famous(focus="f" * 3000, action="a", mood="m", objects=("cup " * 1000,) * 60, setting="s")
    describe_all(folder, dense_caption="A word. " * 100_000, famous=famous, engine="e" * 3000)
    monkeypatch.setattr("vip.mcp.texts.MOST_WORDS", 2)
    found = server.call("describe", video="talk.vip")
    assert found.text.endswith("The first 2 are here.")
    assert [row["number"] for row in found.data] == [1, 2]
    for row in found.data:
        assert {len(row[name]) for name in ("caption", "focus", "engine")} == {2001}, "the last letter says that it goes on"
        assert (len(row["objects"]), row["action"]) == (50, "a")


def test_a_run_that_is_described_is_returned_without_an_engine_or_a_copy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_folder(server.root / "talk.vip", 2)
    describe_all(folder)
    monkeypatch.setattr("vip.mcp.texts.caption", lambda *_, **__: pytest.fail("all is described"))
    before = stamps(server.root)
    found = server.call("describe", video="talk.vip", spent_usd=0.25)
    assert found.text == "the run folder: 2 of 2 keyframes described; $0.25 of $0.50 spent by this server."
    assert found.data[1] == {
        "number": 2,
        "time": "0:01.50",
        "engine": "openai:gpt-5-mini",
        "caption": "The caption of 1.5",
        "focus": "a dancer",
        "action": "leaps",
        "mood": "not determined",
        "objects": ["rope", "ball"],
        "setting": "a hall",
    }
    assert (stamps(server.root), list(server.work.iterdir())) == (before, [])


def test_descriptions_have_the_numbers_of_their_keyframes_also_where_some_are_missing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_folder(server.work / "run-0123456789ab", 3)
    every = describe_all(folder)
    store.write_rows(folder / store.DESCRIPTIONS, every[1:])
    asked: list[Run] = []
    monkeypatch.setattr("vip.mcp.texts.caption", lambda run, **_: asked.append(run))
    found = server.call("describe", video="run-0123456789ab")
    assert [run.folder for run in asked] == [folder], "the server's own run is described where it is"
    assert [(row["number"], row["time"]) for row in found.data] == [(2, "0:01.50"), (3, "0:03.00")]
    assert found.text.startswith("run-0123456789ab: 2 of 3 keyframes described; $0.00 of $0.50")


def test_a_run_folder_of_somebody_is_not_written_to(server: Server) -> None:
    folder = run_folder(server.root / "talk.vip", 2)
    before = stamps(folder)
    assert len(server.call("describe", video="talk.vip").data) == 2
    assert stamps(folder) == before
    assert [path.name[:4] for path in server.work.iterdir()] == ["run-"]


def test_the_time_of_a_keyframe_is_left_out_where_it_has_none_and_not_where_it_is_0(server: Server) -> None:
    describe_all(run_folder(server.root / "talk.vip", 1))
    describe_all(run_folder(server.root / "album.vip", 1, time_s=None))
    assert server.call("describe", video="talk.vip").data[0]["time"] == "0:00.00"
    assert "time" not in server.call("describe", video="album.vip").data[0]


def test_what_an_engine_wrote_stands_on_one_line_and_empty_fields_are_left_out(server: Server) -> None:
    folder = run_folder(server.root / "talk.vip", 1)
    (row,) = describe_all(folder)
    famous = row.famous.model_copy(update={"focus": "a\ndancer", "mood": "", "objects": ("a\nrope", "ball")})
    describe_all(folder, dense_caption="A\nhall.\x1b[31m", engine="openai:\nx", famous=famous)
    (found,) = server.call("describe", video="talk.vip").data
    assert (found["focus"], found["objects"], found["engine"]) == ("a dancer", ["a rope", "ball"], "openai: x")
    assert found["caption"].startswith("A hall.")
    assert "\x1b" not in found["caption"]
    assert "mood" not in found
    describe_all(folder, famous=famous.model_copy(update={"objects": ()}))
    assert "objects" not in server.call("describe", video="talk.vip").data[0]


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("by", "count"),
    [
        (("subtitles",), "1 subtitle"),
        (("speech",), "1 segment of transcribed speech"),
        (("speech", "speech"), "2 segments of transcribed speech"),
        (("speech", "subtitles", "speech"), "1 subtitle and 2 segments of transcribed speech"),
        (("subtitles", "speech", "subtitles"), "2 subtitles and 1 segment of transcribed speech"),
    ],
)
def test_transcribed_speech_is_told_from_subtitles(by: Sequence[str], count: str, server: Server) -> None:
    folder = run_folder(server.root / "talk.vip", 1)
    write_words(folder, *((float(place), place + 0.5, f"words {place}", one) for place, one in enumerate(by)))
    found = server.call("words", video="talk.vip")
    assert found.text == f"{count} in this time."
    assert [row.get("transcribed_by") for row in found.data] == ["x y" if one == "speech" else None for one in by]
    assert found.data[0] == {"from": "0:00.00", "to": "0:00.50", "text": "words 0"} | (
        {"transcribed_by": "x y"} if by[0] == "speech" else {}
    )


def test_only_what_is_said_in_the_time_is_counted(server: Server) -> None:
    folder = run_folder(server.root / "talk.vip", 1)
    write_words(folder, (-1.0, -0.5, "before", "speech"), (0.0, 1.0, "one", "subtitles"), (2.0, 3.0, "two", "speech"))
    assert [row["text"] for row in server.call("words", video="talk.vip", start="0").data] == ["one", "two"]
    assert [row["text"] for row in server.call("words", video="talk.vip", end="0").data] == ["before"]
    assert server.call("words", video="talk.vip", start="0", end="2").text == "1 subtitle in this time."
    none = server.call("words", video="talk.vip", start="5")
    assert (none.text, none.data) == ("0 subtitles in this time.", ())


def test_a_video_without_subtitles_says_so_and_one_with_silence_in_this_time_does_not(server: Server) -> None:
    clip(server.root / "talk.mp4", range(2))
    assert server.call("words", video="talk.mp4").text.endswith("There are no subtitles in the file or beside it that can be read.")
    (server.root / "talk.srt").write_text(SRT)
    assert server.call("words", video="talk.mp4", start="9").text == "0 subtitles in this time."


def test_the_words_of_a_run_of_the_server_are_those_of_its_video(server: Server) -> None:
    clip(server.root / "talk.mp4", range(2))
    run = server.run_of("talk.mp4")
    write_words(server.work / run, (0.0, 1.0, "an older copy", "subtitles"))
    (server.root / "talk.srt").write_text(SRT)
    assert [row["text"] for row in server.call("words", video=run).data] == ["one", "two"]


def test_notes_of_the_reader_stand_behind_the_words(server: Server) -> None:
    clip(server.root / "talk.mp4", range(2))
    (server.root / "talk.srt").write_bytes(SRT.replace("two", "zwölf").encode("cp1252"))
    found = server.call("words", video="talk.mp4")
    assert [row.get("text") for row in found.data] == ["one", "zwölf", None]
    assert "read as Windows-1252" in found.data[2]["note"]
    assert found.text == "2 subtitles in this time."


def test_a_run_folder_with_neither_words_nor_texts_asks_for_the_video(server: Server) -> None:
    run_folder(server.root / "talk.vip", 1)
    refused = server.call("words", video="talk.vip")
    assert (refused.is_error, refused.text) == (True, "This is a run folder without words. Name the video file.")


@pytest.mark.parametrize("name", ["start", "end"])
def test_a_time_that_is_none_is_named(name: str, server: Server) -> None:
    run_folder(server.root / "talk.vip", 1)
    refused = server.call("words", video="talk.vip", **{name: "soon"})
    assert refused.is_error
    assert refused.text.startswith(f'{name}: "soon" is no time')


# ---------------------------------------------------------------- text in pictures


def test_text_in_pictures_is_there_only_where_it_is_asked_for(server: Server) -> None:
    folder = run_folder(server.root / "talk.vip", 3)
    write_words(folder, (0.0, 1.0, "one", "subtitles"))
    write_texts(folder, k1=("EXIT\nLEFT", "page 2"))
    found = server.call("words", video="talk.vip", pictures=True)
    assert found.text == "1 subtitle in this time. Text in 1 keyframe."
    assert found.data[1:] == ({"number": 2, "time": "0:01.50", "picture_text": ["EXIT LEFT", "page 2"]},)
    plain = server.call("words", video="talk.vip")
    assert (plain.text, plain.data) == ("1 subtitle in this time.", found.data[:1])


@pytest.mark.parametrize(
    ("times", "numbers"),
    [
        ({}, [1, 2, 3, 4]),
        ({"start": "1.5"}, [2, 3, 4]),  # a picture is one moment: both ends belong
        ({"start": "1.6"}, [3, 4]),
        ({"end": "3"}, [1, 2, 3]),
        ({"end": "2.9"}, [1, 2]),
        ({"end": "0"}, [1]),
        ({"start": "1.5", "end": "3"}, [2, 3]),
        ({"start": "5"}, []),
    ],
)
def test_text_of_a_stretch_is_that_of_the_keyframes_in_it(times: dict[str, str], numbers: list[int], server: Server) -> None:
    folder = run_folder(server.root / "talk.vip", 4)
    write_words(folder, (0.0, 9.0, "one", "subtitles"))
    write_texts(folder, k0=("a",), k1=("b",), k2=("c",), k3=("d",))
    found = server.call("words", video="talk.vip", pictures=True, **times)
    assert [row["number"] for row in found.data if "picture_text" in row] == numbers
    assert f"Text in {len(numbers)} keyframe" in found.text


def test_pictures_without_a_time_belong_to_every_stretch(server: Server) -> None:
    folder = run_folder(server.root / "album.vip", 2, time_s=None)
    write_texts(folder, k1=("EXIT",))
    found = server.call("words", video="album.vip", pictures=True, start="1", end="2")
    assert found.data == ({"number": 2, "picture_text": ["EXIT"]},), "its texts are there, so that it need not have words"


def test_a_run_of_the_server_is_read_first(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    clip(server.root / "talk.mp4", range(2))
    (server.root / "talk.srt").write_text(SRT)
    read: list[str] = []

    def add(run: Run, what: str, **_: object) -> None:
        read.append(what)
        write_texts(run.folder, k1=("EXIT",))

    monkeypatch.setattr("vip.mcp.texts.add_text", add)
    found = server.call("words", video="talk.mp4", pictures=True)
    assert read == ["text"]
    assert [row.get("text") or row["number"] for row in found.data] == ["one", "two", 2]
    server.call("words", video="talk.mp4")
    assert read == ["text"], "it takes seconds, and nobody asked"


def test_without_a_reader_the_words_are_returned_with_a_note_behind_those_of_the_subtitles(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip(server.root / "talk.mp4", range(2))
    (server.root / "talk.srt").write_bytes(SRT.replace("two", "zwölf").encode("cp1252"))

    def missing(*_: object, **__: object) -> None:
        raise BackendError("RapidOCR is\nnot installed.")

    monkeypatch.setattr("vip.mcp.texts.add_text", missing)
    found = server.call("words", video="talk.mp4", pictures=True)
    assert (found.is_error, len(found.data)) == (False, 4)
    assert "Windows-1252" in found.data[2]["note"]
    assert found.data[3] == {"note": "RapidOCR is not installed."}
    assert found.text == "2 subtitles in this time. Text in 0 keyframes."
