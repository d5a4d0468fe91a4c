"""What the command line prints, and where: results on stdout, notes on stderr, nothing that moves the cursor."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from vip.cli.app import run
from vip.cli.console import Console, bounded, print_error, print_json_rows, print_line
from vip.errors import InputError, StoreError
from vip.wording import SaidOnce

ESCAPE = "a\x1b[31mb\x07\u202ec\nd"


@pytest.mark.parametrize(
    ("options", "out", "err"),
    [
        ({}, ["line", "  label  item"], ["vip: note"]),
        ({"verbose": True}, ["line", "  label  item"], ["vip: note", "vip: detail"]),
        ({"quiet": True}, [], []),
        ({"quiet": True, "verbose": True}, [], []),
        ({"as_json": True}, [], ["vip: note"]),
        ({"as_json": True, "verbose": True}, [], ["vip: note", "vip: detail"]),
    ],
)
def test_options_say_what_is_printed(options: dict[str, bool], out: list[str], err: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(**options)
    console.write_line("line")
    console.write_item("label", "item")
    console.note("note")
    console.detail("detail")
    with console.track("Working", 3) as advance:
        advance()
    found = capsys.readouterr()
    assert [" ".join(line.split()) for line in found.out.splitlines()] == [" ".join(line.split()) for line in out]
    assert found.err.splitlines() == err


def test_what_is_said_once_is_said_once_by_each_command_and_other_notes_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    for text in (SaidOnce("once"), "twice", SaidOnce("once"), "twice", SaidOnce("another")):
        console.note(text)
    Console().note(SaidOnce("once"))
    assert capsys.readouterr().err.splitlines() == ["vip: once", "vip: twice", "vip: twice", "vip: another", "vip: once"]


def test_nothing_that_others_wrote_moves_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    console.write_line(ESCAPE)
    console.write_item(ESCAPE, ESCAPE)
    console.note(ESCAPE)
    print_error(ESCAPE)
    found = capsys.readouterr()
    assert not set(found.out + found.err) & set("\x1b\x07\u202e")
    assert found.err.count("\n") == found.err.count("vip: ") + found.err.count("\nd")


def test_an_item_of_others_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    Console().write_item("picture", "x" * 300_000)
    assert capsys.readouterr().out == f"     picture  {'x' * 2000}…\n"


def test_a_name_that_moves_the_cursor_is_harmless_in_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["report", "no\x1b[2Jwhere\u202e"]) == InputError.exit_code
    found = capsys.readouterr().err
    assert "where" in found
    assert not set(found) & set("\x1b\u202e")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_rows_of_json_are_one_object(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"number": number, "text": "]},\n"} for number in range(count)]
    print_json_rows({"run": "a"}, "rows", iter(rows))
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"run": "a", "rows": rows}


@pytest.mark.parametrize("arguments", [["report", "nowhere"], ["extract", "nowhere.mp4"], ["report", "--nope"], ["batch", "--status", "x"]])
def test_an_error_is_an_object_on_stdout_where_json_is_asked_for(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["vip", *arguments, "--json"])
    code = run([*arguments, "--json"])
    found = capsys.readouterr()
    (row,) = map(json.loads, found.out.splitlines()) if "--nope" not in arguments or found.out else [{"exit_code": code}]
    assert row["exit_code"] == code != 0
    if "error" in row:
        assert found.err == f"vip: {row['error']}\n"
    monkeypatch.setattr("sys.argv", ["vip", *arguments])
    assert run(arguments) == code
    assert capsys.readouterr().out == ""


def test_a_message_that_repeats_a_long_text_keeps_its_beginning_and_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(f"p.jsonl: the id {'x' * 1_000_000} is there twice. Make the samples again.")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vip: p.jsonl: the id xxx")
    assert line.endswith("xxx is there twice. Make the samples again.")
    assert len(line) < 2100
    assert bounded("short") == "short"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_result_that_finds_no_room_on_the_disk_is_an_error_and_a_reader_that_stops_early_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(
            StoreError, match=r"^The result cannot be printed: No space left on device\. Run the same command again to see it\.$"
        ):
            print_line("12 keyframes")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stopped:
        monkeypatch.setattr("sys.stdout", stopped)
        print_line("12 keyframes")
        print_line("and more")
