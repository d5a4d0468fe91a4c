"""`vip caption`: run folders and folders of pictures, engines that change, fail or vanish."""

from __future__ import annotations

import json
import re
import shutil
import socket
from pathlib import Path

import pytest

from tests.api_server import CAPTION, ApiServer
from tests.cli.terminal import SECRET, Done, RefusingServer, said_of, secrets_in, vip
from tests.clips import picture, stamps
from tests.review.corpora import make_described
from vip import store
from vip.cli.caption import show
from vip.cli.console import Console
from vip.llm.client import TRIES_BEFORE_AN_ANSWER, TRIES_WHEN_TOLD
from vip.records import Check, Verification
from vip.store import load_run

OFFLINE = ("--engine", "offline")
COST = r"about 4 requests, [0-9,]+ tokens in, [0-9,]+ out; the price of openai:[\w-]+ is unknown, so no ceiling in dollars can be kept\."


def caption(folder: Path, *arguments: str | Path, **variables: str) -> Done:
    return vip(folder, "caption", *arguments, **variables)


def told(done: Done, *more: str) -> None:
    """On stderr stand what is to be expected, `more`, and the sentence; nothing else."""
    assert "Traceback" not in done.err
    assert re.fullmatch(COST, done.notes[0]), done.err
    assert done.notes[1:] == list(more)


# ---------------------------------------------------------------- what can be described


@pytest.mark.parametrize("target", ["sample.vip", "sample.vip/", "sample.vip/keyframes", "./sample.vip/keyframes/"])
def test_a_run_folder_or_its_keyframes_folder_is_described(target: str, extracted: Path, tmp_path: Path) -> None:
    done = caption(tmp_path, target, *OFFLINE)
    assert done.code == 0, done.err
    assert done.out.startswith("4 keyframes described by offline in sample.vip/descriptions.jsonl\n")
    assert len(load_run(extracted).descriptions) == 4


def test_claims_without_support_are_counted_among_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_described(tmp_path / "a", 3)
    run = load_run(folder)
    verdicts = ("supported", "unsupported", "unchecked", "supported")
    checks = tuple(Check(field="objects", claim=str(number), verdict=verdict) for number, verdict in enumerate(verdicts))  # type: ignore[arg-type]
    rows = [row.model_copy(update={"verification": Verification(checks=checks)}) for row in run.descriptions[:2]]
    store.write_rows(folder / store.DESCRIPTIONS, [*rows, run.descriptions[2].model_copy(update={"verification": None})])
    show(load_run(folder), Console())
    assert "; 2 of 8 claims found no support in their frame" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("inside", ["", "keyframes"])
def test_the_current_folder_can_be_described(inside: str, extracted: Path) -> None:
    assert caption(extracted / inside, ".", *OFFLINE).code == 0
    assert len(load_run(extracted).descriptions) == 4
    assert not (extracted / "keyframes" / "keyframes.jsonl").exists()


def test_any_folder_of_pictures_is_described(tmp_path: Path) -> None:
    for number, name in enumerate(["b.png", "a.jpg", "größe [1].jpeg"]):
        picture(tmp_path / "photos" / name, number)
    done = caption(tmp_path, "photos", *OFFLINE, "--json")
    assert done.code == 0, done.err
    (row,) = done.rows
    assert [one["keyframe_id"] for one in row["descriptions"]] == ["a.jpg", "b.png", "größe [1].jpeg"]
    assert {one["time_s"] for one in row["descriptions"]} == {None}
    assert {path.name for path in (tmp_path / "photos").iterdir()} == {
        *("a.jpg", "b.png", "größe [1].jpeg", "keyframes.jsonl", "descriptions.jsonl", "report.html")
    }
    assert vip(tmp_path, "report", "photos").code == 0


def test_one_bad_picture_does_not_stop_the_rest(tmp_path: Path) -> None:
    picture(tmp_path / "photos" / "a.jpg")
    (tmp_path / "photos" / "b.jpg").write_text("no picture")
    done = caption(tmp_path, "photos", *OFFLINE)
    assert done.code == 8
    assert "1 of 2 keyframes could not be described; photos/failures.jsonl says why" in done.sentence
    assert [json.loads(line)["item"] for line in (tmp_path / "photos" / "failures.jsonl").read_text().splitlines()] == ["b.jpg"]
    assert len(load_run(tmp_path / "photos").descriptions) == 1


# ---------------------------------------------------------------- which engine


def test_a_key_or_an_address_makes_auto_ask_the_api(extracted: Path, tmp_path: Path) -> None:
    with ApiServer() as server:
        done = caption(tmp_path, "sample.vip", OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=SECRET)
        assert server.chats[0].headers["authorization"] == f"Bearer {SECRET}"
    assert done.code == 0
    assert "engine: openai:tiny-vlm; OPENAI_BASE_URL is set to " in done.err
    assert SECRET not in done.out + done.err
    assert secrets_in(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (["--engine", "offline"], {}),
        ([], {"VIP_ENGINE": "offline"}),
        (["--engine", "fake"], {"VIP_ENGINE": "offline"}),
    ],
)
def test_an_engine_that_is_named_is_never_replaced(options: list[str], variables: dict[str, str], extracted: Path, tmp_path: Path) -> None:
    with ApiServer() as server:
        done = caption(tmp_path, "sample.vip", *options, OPENAI_BASE_URL=server.base_url, **variables)
        assert server.requests == []
    assert done.code == 0
    assert "auto" not in done.err
    assert {row.engine for row in load_run(extracted).descriptions} == {options[1] if options else "offline"}


@pytest.mark.parametrize("engine", ["openai", "openai:"])
def test_without_a_model_another_server_gets_its_first(engine: str, extracted: Path, tmp_path: Path) -> None:
    with ApiServer(models=("first-vlm", "second-vlm")) as server:
        assert caption(tmp_path, "sample.vip", "--engine", engine, "--base-url", server.base_url).code == 0
        assert {chat.body["model"] for chat in server.chats} == {"first-vlm"}
    assert {row.engine for row in load_run(extracted).descriptions} == {"openai:first-vlm"}


def test_a_model_that_is_named_is_the_one_that_is_asked(extracted: Path, tmp_path: Path) -> None:
    with ApiServer() as server:
        assert caption(tmp_path, "sample.vip", "--engine", "openai:big-vlm", "--base-url", server.base_url).code == 0
        assert {request.path for request in server.requests} == {"/v1/chat/completions"}
        assert {chat.body["model"] for chat in server.chats} == {"big-vlm"}


def test_another_engine_is_refused_until_it_may_replace(described: Path, tmp_path: Path) -> None:
    assert caption(tmp_path, "sample.vip", "--engine", "fake").code == 0
    before = stamps(described)
    with ApiServer() as server:
        options = ("--engine", "openai:tiny-vlm", "--base-url", server.base_url)
        refused = caption(tmp_path, "sample.vip", *options)
        assert refused.code == 2
        assert "sample.vip is described by fake, and now openai:tiny-vlm is asked" in refused.sentence
        assert "--overwrite" in refused.sentence
        assert stamps(described) == before
        assert caption(tmp_path, "sample.vip", *options, "--overwrite").code == 0
    assert {row.engine for row in load_run(described).descriptions} == {"openai:tiny-vlm"}


@pytest.mark.parametrize(("behaviour", "code"), [("401", 5), ("refusal", 6)])
def test_old_descriptions_stay_when_the_new_engine_fails(behaviour: str, code: int, described: Path, tmp_path: Path) -> None:
    old = load_run(described).descriptions
    with ApiServer(behaviour) as server:
        assert caption(tmp_path, "sample.vip", "--base-url", server.base_url, "--overwrite").code == code
    assert load_run(described).descriptions == old
    assert caption(tmp_path, "sample.vip", *OFFLINE).code == 0


def test_what_is_described_is_not_asked_for_again(extracted: Path, tmp_path: Path) -> None:
    with ApiServer() as server:
        first, second = (caption(tmp_path, "sample.vip", "--base-url", server.base_url) for _ in range(2))
        assert len(server.chats) == 4
    assert first.out == second.out
    host = server.base_url.removeprefix("http://").removesuffix("/v1")
    assert second.err == f"vip: engine: openai:tiny-vlm; --base-url {host}\n"


def test_the_same_pictures_are_not_asked_for_again_wherever_they_lie(extracted: Path, tmp_path: Path) -> None:
    shutil.copytree(extracted, tmp_path / "copy.vip")
    with ApiServer() as server:
        command = ("--engine", "openai:tiny-vlm", "--base-url", server.base_url)
        assert caption(tmp_path, "sample.vip", *command).code == 0
        done = caption(tmp_path, "copy.vip", *command)
        assert done.code == 0
        assert len(server.chats) == 4
        assert caption(tmp_path, "copy.vip", *command, "--overwrite", "--language", "de").code == 0
        assert caption(tmp_path, "sample.vip", *command, "--overwrite", "--language", "de", "--cache", "mine.sqlite").code == 0
        assert len(server.chats) == 12
    assert "Used 4 answers of earlier requests." in done.err
    assert (tmp_path / "mine.sqlite").exists()


def test_the_paper_asks_three_questions_and_each_description_is_of_its_own_picture(extracted: Path, tmp_path: Path) -> None:
    with ApiServer(marks=True) as server:
        done = caption(tmp_path, "sample.vip", "--engine", "openai:tiny-vlm", "--base-url", server.base_url, "--recipe", "paper")
        assert done.code == 0, done.err
        assert len(server.chats) == 3 * 4
    run = load_run(extracted)
    for keyframe, row in zip(run.keyframes, run.descriptions, strict=True):
        marker = said_of(keyframe.path).rpartition(" ")[2]
        assert row.caption == row.dense_caption == f"{CAPTION} It shows picture {marker}."
        assert row.famous.mood == f"mood of picture {marker}"
        assert [call.prompt for call in row.calls] == ["caption", "describe", "structure"]


# ---------------------------------------------------------------- servers that fail


def test_a_server_that_fails_from_then_on_costs_only_the_rest(extracted: Path, tmp_path: Path) -> None:
    with ApiServer("ok", "500") as server:
        command = ("sample.vip", "--engine", "openai:tiny-vlm", "--base-url", server.base_url)
        gone = caption(tmp_path, *command)
        kept = load_run(extracted).descriptions
        assert gone.code == 5
        assert "fails with HTTP 500" in gone.sentence
        assert f"Tried {TRIES_WHEN_TOLD} times; what is done stays done." in gone.sentence
        assert len(kept) == 1
        server.set(behaviours=["ok"])
        before = len(server.chats)
        assert caption(tmp_path, *command).code == 0
        assert len(server.chats) - before == 3
    run = load_run(extracted)
    assert [row.dense_caption for row in run.descriptions] == [said_of(keyframe.path) for keyframe in run.keyframes]
    assert [row for row in run.descriptions if row in kept] == kept
    assert run.failures == []


def test_a_server_that_fails_now_and_then_costs_nothing(extracted: Path, tmp_path: Path) -> None:
    with ApiServer("429", "500", "ok", "503", "ok") as server:
        done = caption(tmp_path, "sample.vip", "--engine", "openai:x", "--base-url", server.base_url)
        assert len(server.chats) == 7
        assert server.stats().most_answered == 1
    assert done.code == 0
    told(done)
    assert done.sentence == "Used 4 requests, 44 tokens in, 28 out."
    assert len(load_run(extracted).descriptions) == 4


def test_a_server_that_is_not_there_is_said_in_one_sentence(extracted: Path, tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    done = caption(tmp_path, "sample.vip", "--engine", "openai:x", "--base-url", address)
    assert done.code == 5
    told(done)
    assert f"{address} cannot be reached" in done.sentence
    assert f"Tried {TRIES_BEFORE_AN_ANSWER} times" in done.sentence
    assert not (extracted / "descriptions.partial.jsonl").exists()


@pytest.mark.parametrize(
    ("behaviour", "words", "tries"),
    [
        ("401", "does not accept the API key", 1),
        ("403", 'does not allow the model "x"', 1),
        ("404", 'has no model "x", but has tiny-vlm, big-vlm', 1),
        ("quota", "quota of this API key", 1),
        ("400", "rejects the request", 3),  # once for each form of asking for a schema
        ("429", "limits the rate", TRIES_WHEN_TOLD),  # it asks to wait a millisecond each time
        ("page", "not like an OpenAI-compatible server", TRIES_BEFORE_AN_ANSWER),
    ],
)
def test_an_engine_that_cannot_be_asked_exits_5_without_the_key(
    behaviour: str, words: str, tries: int, extracted: Path, tmp_path: Path
) -> None:
    with ApiServer(behaviour) as server:
        both = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": SECRET}  # the key belongs to this server
        done = caption(tmp_path, "sample.vip", "--engine", "openai:x", **both)
        assert server.stats().most_asked <= tries
    assert done.code == 5
    told(done)
    assert words in done.sentence
    assert SECRET not in done.out + done.err
    assert secrets_in(tmp_path) == []


@pytest.mark.parametrize(
    ("behaviour", "kind", "used"),
    [
        ("refusal", "refusal", ["Used 8 requests, 88 tokens in, 56 out."]),
        ("length", "length", ["Used 8 requests, 88 tokens in, 56 out."]),
        ("wrong_schema", "schema", ["Used 12 requests, 132 tokens in, 84 out."]),
        ("content_filter", "content_filter", ["Used 4 requests, 44 tokens in, 28 out."]),
        ("filtered_picture", "picture", []),
        ("half_json", "broken", []),
    ],
)
def test_answers_that_cannot_be_used_exit_6_and_are_listed(
    behaviour: str, kind: str, used: list[str], extracted: Path, tmp_path: Path
) -> None:
    with ApiServer(behaviour) as server:
        done = caption(tmp_path, "sample.vip", "--engine", "openai:x", "--base-url", server.base_url)
    assert done.code == 6
    told(done, *used)
    rows = load_run(extracted).failures
    assert sorted(row.item for row in rows) == [keyframe.id for keyframe in load_run(extracted).keyframes]
    assert {(row.kind, row.exit_code) for row in rows} == {(kind, 6)}


def test_the_rest_is_described_when_some_answers_cannot_be_used(extracted: Path, tmp_path: Path) -> None:
    with RefusingServer() as server:
        done = caption(tmp_path, "sample.vip", "--engine", "openai:x", "--base-url", server.base_url, "--json")
    assert done.code == 8
    assert done.rows == [{"error": done.sentence, "exit_code": 8}]
    run = load_run(extracted)
    assert len(run.descriptions) == 3
    assert {row.dense_caption for row in run.descriptions} < {said_of(keyframe.path) for keyframe in run.keyframes}
    assert [row.kind for row in run.failures] == ["refusal"]
    assert {row.item for row in run.failures} == {keyframe.id for keyframe in run.keyframes} - {row.keyframe_id for row in run.descriptions}


def test_a_picture_that_is_gone_costs_its_keyframe(extracted: Path, tmp_path: Path) -> None:
    load_run(extracted).keyframes[2].path.unlink()
    done = caption(tmp_path, "sample.vip", *OFFLINE)
    assert done.code == 8
    assert [row.kind for row in load_run(extracted).failures] == ["unreadable"]
