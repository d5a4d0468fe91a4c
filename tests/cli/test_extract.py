"""`vip extract`: one video or many, into which folders, and what is said when something is lost or less than asked."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import Done, vip
from tests.clips import SAMPLE, clip, sound, stamps
from vip.store import load_run


def folders(folder: Path) -> set[str]:
    """Paths of the finished runs below the folder."""
    return {str(path.parent.relative_to(folder)) for path in folder.rglob("keyframes.jsonl")}


def extract(folder: Path, *arguments: str | Path, **variables: str) -> Done:
    return vip(folder, "extract", *arguments, **variables)


# ---------------------------------------------------------------- one video


def test_keyframes_are_written_and_listed_by_time(tmp_path: Path) -> None:
    done = extract(tmp_path, SAMPLE, "-n", "3")
    assert done.code == 0, done.err
    assert folders(tmp_path) == {"sample.vip"}
    run = load_run(tmp_path / "sample.vip")
    first, *others = done.out.splitlines()
    assert first == f"sample.mp4: 3 keyframes of {len(run.candidates)} candidates in sample.vip/keyframes/"
    assert [line.split()[1] for line in others] == [keyframe.path.name for keyframe in run.keyframes]


def test_verbose_adds_the_seconds_of_each_stage_on_stderr(tmp_path: Path) -> None:
    plain = extract(tmp_path, clip(tmp_path / "a.mp4"), "-n", "2")
    verbose = extract(tmp_path, "a.mp4", "-n", "2", "-v")
    assert verbose.out == plain.out
    assert "Seconds: select " in verbose.err
    assert "Seconds" not in plain.err


def test_a_short_or_static_video_gives_fewer_and_says_so(tmp_path: Path) -> None:
    done = extract(tmp_path, clip(tmp_path / "still.mp4", [3, 3]), "-n", "9", "--json")
    (row,) = done.rows
    assert done.code == 0
    assert len(row["keyframes"]) == row["counts"]["keyframes"] == 1
    note = "1 of the 9 keyframes asked for: of 6 candidates 5 show the same picture as another."
    assert row["notes"] == [note]
    assert f"vip: {note}" in done.err.splitlines()


def test_what_is_left_of_a_truncated_video_is_used_and_the_loss_is_said(tmp_path: Path) -> None:
    whole = SAMPLE.read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    done = extract(tmp_path, "cut.mp4", "-n", "4", "--json")
    (row,) = done.rows
    assert done.code == 0
    assert len(row["keyframes"]) == 4
    assert "The file ends early" in row["notes"][0]
    assert "of its 680 frames are there, and they are used" in done.err


def test_reused_runs_still_tell_their_losses_in_json(tmp_path: Path) -> None:
    clip(tmp_path / "still.mp4", [3, 3])
    first, second = (extract(tmp_path, "still.mp4", "--json") for _ in range(2))
    assert first.rows == second.rows


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_keyframes_come_in_the_format_asked_for(suffix: str, tmp_path: Path) -> None:
    assert extract(tmp_path, clip(tmp_path / "a.mp4", [1, 2]), "--format", suffix).code == 0
    pictures = [keyframe.path for keyframe in load_run(tmp_path / "a.vip").keyframes]
    assert {path.suffix for path in pictures} == {f".{suffix}"}
    magic = {"jpg": b"\xff\xd8", "png": b"\x89PNG", "webp": b"RIFF"}[suffix]
    assert all(path.read_bytes().startswith(magic) for path in pictures)


HOSTILE = [
    "two\nlines.mp4",
    "-n.mp4",
    " spaced out .mp4",
    "[bold]brackets[/bold].mp4",
    "größe – 影片.mp4",
    "%s{0}$HOME`id`.mp4",
    "file:a?b#c.mp4",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_file_name_is_just_a_name(name: str, tmp_path: Path) -> None:
    clip(tmp_path / name, [1, 2])
    done = extract(tmp_path, "-n", "2", "--json", "--", name)
    assert done.code == 0, done.err
    (row,) = done.rows
    assert row["video"] == name
    assert folders(tmp_path) == {row["run"]} == {f"{Path(name).stem}.vip"}
    assert vip(tmp_path, "report", "--", row["run"]).code == 0


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_file_name_that_is_not_utf8_is_just_a_name(encoding: str, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.mp4")
    clip(tmp_path / name, [1, 2])
    for command in (["run", name, "-n", "2"], ["run", name, "-n", "2", "--json"]):
        done = vip(tmp_path, *command, PYTHONIOENCODING=f"{encoding}:strict")
        assert done.code == 0, done.err
        assert (
            "caf\\udce9" if "--json" in command else "caf\N{REPLACEMENT CHARACTER}".encode(encoding, "backslashreplace").decode()
        ) in done.out
    assert [keyframe.path.exists() for keyframe in load_run(tmp_path / name.replace("mp4", "vip")).keyframes] == [True] * 2


# ---------------------------------------------------------------- several videos


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """A folder clips/ with two videos, a file that is none, and other things."""
    clip(tmp_path / "clips" / "b.mp4", [1, 2])
    clip(tmp_path / "clips" / "a.MKV", [3, 4])
    (tmp_path / "clips" / "notes.txt").write_text("no video")
    clip(tmp_path / "clips" / "deeper" / "c.mp4", [5])
    return tmp_path / "clips"


def test_each_video_of_a_folder_gets_its_run_folder_inside_out(clips: Path, tmp_path: Path) -> None:
    done = extract(tmp_path, "clips", "-o", "runs", "-n", "2", "--json")
    assert done.code == 0, done.err
    assert folders(tmp_path) == {"runs/a.vip", "runs/b.vip"}
    assert [row["video"] for row in done.rows] == ["clips/a.MKV", "clips/b.mp4"]
    assert not (tmp_path / "runs" / "failures.jsonl").exists()


def test_a_folder_of_one_video_is_a_folder_of_videos(tmp_path: Path) -> None:
    clip(tmp_path / "clips" / "a.mp4", [1])
    assert extract(tmp_path, "clips", "-o", "runs").code == 0
    assert folders(tmp_path) == {"runs/a.vip"}


def test_several_videos_go_into_the_current_folder_without_out(tmp_path: Path) -> None:
    clip(tmp_path / "x" / "a.mp4", [1])
    clip(tmp_path / "x" / "b.mp4", [2])
    assert extract(tmp_path, "x/a.mp4", "x/b.mp4").code == 0
    assert folders(tmp_path) == {"a.vip", "b.vip"}


def test_a_video_named_twice_is_one_video(tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1])
    assert extract(tmp_path, "a.mp4", "./a.mp4", "-o", "run").code == 0
    assert folders(tmp_path) == {"run"}


@pytest.mark.parametrize(
    ("videos", "expected"),
    [
        (["a/x.mp4", "b/x.mp4"], {"a-x.mp4.vip", "b-x.mp4.vip"}),
        (["a/x.mp4", "a/x.mkv"], {"a-x.mp4.vip", "a-x.mkv.vip"}),
        (["a/x.mp4", "b/x.mp4", "b/y.mp4"], {"a-x.mp4.vip", "b-x.mp4.vip", "y.vip"}),
    ],
)
def test_videos_of_the_same_name_do_not_collide(videos: list[str], expected: set[str], tmp_path: Path) -> None:
    for number, name in enumerate(videos):
        clip(tmp_path / name, [number])
    for _ in range(2):
        done = extract(tmp_path, *videos, "-o", "runs")
        assert done.code == 0, done.err
        assert {path.name for path in (tmp_path / "runs").iterdir()} == {*expected, "index.html"}


@pytest.mark.parametrize("videos", [["x.mp4", "../x.mp4"], ["../a/b/x.mp4", "../a-b/x.mp4"], ["../a/x.mp4", "../../a/x.mp4"]])
def test_names_that_read_alike_do_not_collide_either(videos: list[str], tmp_path: Path) -> None:
    here = tmp_path / "work" / "here"
    here.mkdir(parents=True)
    for number, name in enumerate(videos):
        clip(Path(os.path.normpath(here / name)), [number])
    for _ in range(2):
        done = extract(here, *videos, "-o", "runs", "--json")
        assert done.code == 0, done.err
        assert len({row["run"] for row in done.rows}) == len(videos) == len(folders(here))


def test_one_bad_file_does_not_stop_the_rest(clips: Path, tmp_path: Path) -> None:
    (clips / "aa.mp4").write_text("no video")
    (clips / "ab.mp4").touch()
    sound(clips / "ac.mp4")
    done = extract(tmp_path, "clips", "missing.mp4", "-o", "runs", "-n", "2", "--json")
    assert done.code == 8
    assert folders(tmp_path) == {"runs/a.vip", "runs/b.vip"}
    assert done.sentence == "4 of 6 videos failed; runs/failures.jsonl says why. Run the command again to retry only those."
    failures = [json.loads(line) for line in (tmp_path / "runs" / "failures.jsonl").read_text().splitlines()]
    assert [row["item"] for row in failures] == ["clips/aa.mp4", "clips/ab.mp4", "clips/ac.mp4", "missing.mp4"]
    assert [(row["kind"], row["exit_code"]) for row in failures] == [*[("unreadable", 3)] * 3, ("missing", 3)]
    assert all(f"vip: {row['message']}" in done.err.splitlines() for row in failures)
    results, (last,) = done.rows[:-1], done.rows[-1:]
    assert {row["video"]: row.get("exit_code", 0) for row in results} == {
        **{f"clips/{name}": 0 for name in ("a.MKV", "b.mp4")},
        **{row["item"]: 3 for row in failures},
    }
    assert last["exit_code"] == 8


def test_the_same_command_tries_only_what_failed(clips: Path, tmp_path: Path) -> None:
    (clips / "aa.mp4").write_text("no video")
    command = ("clips", "-o", "runs", "-n", "1")
    assert extract(tmp_path, *command).code == 8
    before = stamps(tmp_path / "runs" / "a.vip")
    clip(clips / "aa.mp4", [8])
    assert extract(tmp_path, *command).code == 0
    assert folders(tmp_path) == {"runs/a.vip", "runs/aa.vip", "runs/b.vip"}
    assert stamps(tmp_path / "runs" / "a.vip") == before
    assert not (tmp_path / "runs" / "failures.jsonl").exists()


def test_quiet_still_says_which_file_is_bad(clips: Path, tmp_path: Path) -> None:
    (clips / "aa.mp4").write_text("no video")
    done = extract(tmp_path, "clips", "-o", "runs", "-q")
    assert done.out == ""
    assert [line.split(" ")[1] for line in done.err.splitlines()] == ["clips/aa.mp4", "1"]


def test_one_folder_that_is_refused_does_not_stop_the_rest(clips: Path, tmp_path: Path) -> None:
    (tmp_path / "runs" / "a.vip").mkdir(parents=True)
    (tmp_path / "runs" / "a.vip" / "thesis.txt").write_text("mine")
    done = extract(tmp_path, "clips", "-o", "runs")
    assert done.code == 8
    assert folders(tmp_path) == {"runs/b.vip"}
    assert (tmp_path / "runs" / "a.vip" / "thesis.txt").read_text() == "mine"


def test_run_does_the_whole_job_for_each_video(clips: Path, tmp_path: Path) -> None:
    (clips / "aa.mp4").write_text("no video")
    done = vip(tmp_path, "run", "clips", "-o", "runs", "-n", "1", "--engine", "fake")
    assert done.code == 8
    assert {path.parent.name for path in tmp_path.rglob("report.html")} == {"a.vip", "b.vip"}
    shutil.rmtree(clips / "deeper")
    (clips / "aa.mp4").unlink()
    assert vip(tmp_path, "run", "clips", "-o", "runs", "-n", "1", "--engine", "fake").code == 0
