"""`vip ask` as a user types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.cli.terminal import vip
from tests.clips import SAMPLE
from tests.search.asked import LAST, observed, reply, run_with_words

QUESTION = "what happens at the end?"


def with_engine(server: ApiServer) -> tuple[str, ...]:
    return ("--engine", "openai:tiny-vlm", "--base-url", server.base_url)


def test_with_nothing_configured_the_moments_are_listed_and_no_sentence_is_made_up(tmp_path: Path) -> None:
    done = vip(tmp_path, "ask", SAMPLE, QUESTION, "--embedder", "classic")
    assert done.code == 0, done.err
    first, *moments = done.out.splitlines()
    assert first == "No model was asked: offline answers no questions. Moments whose words fit the question come first:"
    assert len(moments) == 10
    for line in moments:
        label, path = line.split()
        assert label.startswith("[sample@0:")
        assert (tmp_path / path).is_file()
    assert "embedder classic compares no pictures with questions" in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"sample.vip"}


def test_an_answer_cites_its_moments_and_says_who_looked(extracted: Path, tmp_path: Path) -> None:
    with ApiServer(says=[(LAST, reply("A man leaves [2].", 2, 9)), ("number 2 of 3", observed("A man at a door."))]) as server:
        done = vip(tmp_path, "ask", extracted, QUESTION, "--frames", "3", *with_engine(server))
        told = vip(tmp_path, "ask", extracted, QUESTION, "--frames", "3", "--thoughts", *with_engine(server))
        assert server.stats().chats == 4
    assert done.code == told.code == 0, done.err
    answer, moment, looked = done.out.splitlines()
    label = answer.partition("[")[2].removesuffix("].")
    assert answer == f"A man leaves [{label}]."
    assert moment.strip().startswith(f"[{label}]  A man at a door. ({extracted}/asked/")
    assert looked == "3 frames looked at by openai:tiny-vlm, 1 cited."
    assert "vip: Left out 1 citation of frames that were not shown: frame 9." in done.err.splitlines()
    assert "vip: Used 4 answers of earlier requests." in told.err.splitlines()
    assert len([line for line in told.out.splitlines() if line.strip().startswith("[sample@")]) == 3
    assert "Reasoning: One after the other." in told.out.splitlines()


def test_json_is_all_there_is_on_stdout(extracted: Path, tmp_path: Path) -> None:
    with ApiServer(says=[(LAST, reply("A man leaves [1].", 1))]) as server:
        done = vip(tmp_path, "ask", extracted, QUESTION, "--frames", "2", "--json", *with_engine(server))
    (row,) = done.rows
    assert (done.code, row["status"], row["question"]) == (0, "supported", QUESTION)
    assert [frame["is_cited"] for frame in row["frames"]] == [True, False]
    assert row["text"] == f"A man leaves [{row['frames'][0]['label']}]."
    assert len(row["calls"]) == 3


def test_what_looks_like_control_of_the_terminal_is_not_printed(extracted: Path, tmp_path: Path) -> None:
    with ApiServer(says=[(LAST, reply("A \x1b[31mman\x1b]0;x\x07 \u202eleaves [1].", 1))]) as server:
        done = vip(tmp_path, "ask", extracted, QUESTION, "--frames", "1", *with_engine(server))
    assert done.out.splitlines()[0].startswith("A man leaves [sample@")
    assert "\x1b" not in done.out


def test_a_dry_run_asks_nothing_and_needs_no_key(extracted: Path, tmp_path: Path) -> None:
    done = vip(tmp_path, "ask", extracted, QUESTION, "--engine", "openai:gpt-5-mini", "--dry-run")
    assert done.code == 0, done.err
    assert done.out.startswith("10 frames to look at: about 11 requests, ")
    assert "$" in done.out
    free = vip(tmp_path, "ask", extracted, QUESTION, "--dry-run")
    assert free.out.endswith("to show, and no model to ask: it costs nothing.\n")
    row = json.loads(vip(tmp_path, "ask", extracted, QUESTION, "--dry-run", "--json").out)
    assert (row["requests"], row["usd"]) == (0, None)


def test_frames_that_cannot_be_looked_at_make_exit_code_8_and_the_answer_stands(extracted: Path, tmp_path: Path) -> None:
    class PickyServer(ApiServer):
        def next_behaviour(self, asked: object) -> str:
            return "refusal" if "number 1 of 3" in getattr(asked, "text", "") else "ok"

    with PickyServer(says=[(LAST, reply("A man leaves [2].", 2))]) as server:
        done = vip(tmp_path, "ask", extracted, QUESTION, "--frames", "3", *with_engine(server))
    assert done.code == 8
    assert done.out.startswith("A man leaves [sample@")
    assert done.sentence.startswith("1 of 3 frames could not be looked at: ")
    assert done.sentence.endswith("Run the same command again to try only those.")


def test_the_engine_is_checked_before_the_video_is_looked_at(tmp_path: Path) -> None:
    shutil.copyfile(SAMPLE, tmp_path / "sample.mp4")
    done = vip(tmp_path, "ask", "sample.mp4", QUESTION, "--engine", "openai:gpt-5-mini")
    assert (done.code, {path.name for path in tmp_path.iterdir()}) == (5, {"sample.mp4"})
    assert "No key is set" in done.sentence


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    run_with_words(tmp_path / "runs" / "plant.vip", 4, [(2.6, 3.4, "Now the pump has failed.")])
    run_with_words(tmp_path / "runs" / "shop.vip", 4, [(2.9, 3.2, "A pump that fails costs ten.")])
    return tmp_path / "runs"


@pytest.mark.parametrize("sources", [["runs"], ["runs/plant.vip", "runs/shop.vip"]])
def test_many_videos_are_searched_and_then_asked(runs: Path, tmp_path: Path, sources: list[str]) -> None:
    with ApiServer(says=[(LAST, reply("It fails [1].", 1))]) as server:
        done = vip(tmp_path, "ask", *sources, "why does the pump fail?", *with_engine(server))
        free = vip(tmp_path, "ask", *sources, "why does the pump fail?", "--dry-run", *with_engine(server))
        assert server.stats().chats == 3
    assert done.code == free.code == 0, done.err
    answer, moment, looked = done.out.splitlines()
    assert answer == "It fails [plant@0:03]."
    assert moment.strip().endswith("(runs/plant.vip/keyframes/0002.jpg)")
    assert looked == "2 frames looked at by openai:tiny-vlm, 1 cited."
    assert "Searched 8 keyframes for pump fail: 2 moments of 2 videos." in done.err
    assert free.out.startswith("2 frames to look at: about 3 requests")


def test_without_an_engine_the_moments_of_many_videos_are_listed(runs: Path, tmp_path: Path) -> None:
    done = vip(tmp_path, "ask", runs, "why does the pump fail?")
    first, *moments = done.out.splitlines()
    assert (done.code, first[:20]) == (0, "No model was asked: ")
    assert [line.split()[0] for line in moments] == ["[plant@0:03]", "[shop@0:03]"]


def test_where_nothing_fits_that_is_said_and_nothing_is_spent(runs: Path, tmp_path: Path) -> None:
    with ApiServer() as server:
        done = vip(tmp_path, "ask", runs, "where is the helicopter?", *with_engine(server))
        row = json.loads(vip(tmp_path, "ask", runs, "where is the helicopter?", "--json", *with_engine(server)).out)
        assert server.requests == []
    assert done.code == 0
    assert done.out.startswith("Nothing fits the question, so no model was asked.")
    assert (row["status"], row["frames"], row["text"]) == ("nothing_found", [], None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["runs", "runs/plant.vip", "why?", "--pick", "x"], "No such option"),
        (["runs", "why?", "--detector", "classic"], "--detector says nothing about runs and data sets"),
        (["runs", "why?", "-o", "x"], "-o says nothing about runs and data sets"),
        (["runs", "what is it?"], "The question has no word that can be searched for"),
        (["runs", "talk.mp4", "why?"], "talk.mp4 is neither a run nor a folder of runs nor a data set"),
        (["why does it fail?", "runs"], "The question comes last: `vip ask runs QUESTION`."),
    ],
)
def test_what_cannot_be_asked_of_many_is_said_in_one_sentence(runs: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    done = vip(tmp_path, "ask", *arguments)
    assert done.code == 2
    assert words in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sample.vip", " "], "The question is empty"),
        (["sample.vip", "why?", "--frames", "0"], "--frames 0 cannot be looked at for one question. Give a number from 1 to 64."),
        (["sample.vip", "why?", "--embedder", "clip"], "--embedder says nothing about a run"),
        (["sample.vip", "why?", "-o", "x"], "-o says nothing about a run"),
        (["sample.vip"], "Missing argument"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_sentence(extracted: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    done = vip(tmp_path, "ask", *arguments)
    assert done.code == 2
    assert words in done.err
