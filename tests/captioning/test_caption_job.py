"""Whole runs of `vip.pipeline.caption`, through the real openai library, against a server that fails in every way."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.api_server import ApiServer, Asked
from tests.captioning.keyframes import DIRECT, Scripted, manifest, marker, noise, paper, run_folder
from tests.captioning.talking import Numbers, Talking
from tests.cli.terminal import environment
from vip import registry, store
from vip.captioning import in_batches
from vip.captioning.caption_job import OutagePolicy, RunCaptioner, batches_of, expected_cost, open_job, skip_picture_folder
from vip.captioning.describe import AHEAD
from vip.captioning.estimate import Estimate
from vip.config import CaptionSettings
from vip.errors import BackendError, EngineError, InputError, ReplyError, SomeFailedError, UsageError
from vip.llm.batch_files import BatchJob
from vip.llm.budget import Budget, Usage
from vip.llm.cache import AnswerCache
from vip.llm.client import EngineClient
from vip.llm.outage import Outage
from vip.pipeline import caption
from vip.protocols import EmbedderCapabilities, Picture, Reply, Request, SilentObserver
from vip.store import KeyframePicture, Run, load_run, runs_in

WAYS = ("429", "500", "drop", "reset", "half_json", "wrong_schema", "outside_schema", "refusal", "length", "nonsense", "late")
MIX = {**dict.fromkeys(WAYS, 0.15 / len(WAYS)), "content_filter": 0.05}  # together one answer in five
KINDS = {"rate_limit", "server", "timeout", "dropped", "connection", "broken", "schema", "refusal", "length", "content_filter", "empty"}
PRICES = '[[price]]\nmodels = ["tiny-vlm"]\nusd_in = 1.0\nusd_out = 10.0\naddress = "127.0.0.1"\nas_of = 2026-01-01\n'
KILLS, AT_ONCE = 20, 4


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


class Notes(SilentObserver):
    """What the user is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, text: str) -> None:
        self.told.append(text)


def options(server: ApiServer, tmp_path: Path, **more: Any) -> dict[str, Any]:
    return {"engine": "openai:tiny-vlm", "base_url": server.base_url, "cache": tmp_path / "answers.sqlite", **more}


def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(PRICES)
    return path


def described(path: Path) -> dict[str, str]:
    return {row.keyframe_id: row.dense_caption for row in load_run(path).descriptions}


def usage(path: Path) -> dict[str, Any]:
    return dict(json.loads((path / store.MANIFEST).read_text())["captioning"]["spent"])


def check_that_each_is_its_own(run: Run) -> None:
    """The server names the picture that it was shown, in every field."""
    markers = {item.id: marker(item) for item in run.keyframes}
    for row in run.descriptions:
        said = (row.dense_caption, row.famous.focus, row.famous.action, row.famous.mood, row.famous.setting, *row.famous.objects)
        assert all(markers[row.keyframe_id] in text for text in said)


# ---------------------------------------------------------------- nothing lost, nothing twice, nothing invented


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["direct", "paper"])
def test_with_a_fifth_of_the_answers_failing_each_keyframe_ends_described_or_listed(recipe: str, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 120)
    mix = {name: share for name, share in MIX.items() if name != "wrong_schema" or recipe == "direct"}  # of a text any JSON is one
    with ApiServer(mix=mix, late_s=20, seed=3, marks=True) as server:
        about = options(server, tmp_path, recipe=recipe, request_timeout=2.0)
        with pytest.raises(SomeFailedError) as caught:
            caption(path, **about)
        first, run = server.stats(), load_run(path)
        failed = {row.item: row for row in run.failures}
        done = [row.keyframe_id for row in run.descriptions]

        assert len(set(first.behaviours) - {"ok"}) >= 10, "all ways to fail came"
        assert sorted([*done, *failed]) == [item.id for item in run.keyframes], "none lost, none twice"
        assert 0 < len(failed) < 40
        assert f"{len(failed)} of 120 keyframes could not be described" in str(caught.value)
        assert {row.kind for row in failed.values()} <= KINDS
        assert all(row.message and row.exit_code == 6 for row in failed.values())
        assert len((path / store.DESCRIPTIONS).read_bytes().splitlines()) == len(done)
        assert first.most_usable == 1, "no answer that can be used was asked for twice"
        check_that_each_is_its_own(run)

        server.set(mix={})
        before = (path / store.DESCRIPTIONS).read_bytes().splitlines()
        caption(path, **about)
        second, after = server.stats(), load_run(path)
    questions = {"direct": 1, "paper": 3}[recipe]
    assert 0 < second.chats - first.chats <= questions * len(failed), "only those that failed, and of them what is missing"
    assert recipe == "paper" or second.chats - first.chats == len(failed)
    assert [row.keyframe_id for row in after.descriptions] == [item.id for item in run.keyframes]
    assert after.failures == []
    assert set(before) < set((path / store.DESCRIPTIONS).read_bytes().splitlines()), "the others stay as they were"
    check_that_each_is_its_own(after)


def start(path: Path, server: ApiServer, cache: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "vip", "caption", str(path), "--engine", "openai:tiny-vlm", "--base-url", server.base_url]
    command += ["--cache", str(cache), "--concurrency", str(AT_ONCE), "--quiet"]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.slow
def test_killed_twenty_times_the_union_is_complete_and_only_what_was_in_flight_is_asked_again(tmp_path: Path) -> None:
    path, cache = run_folder(tmp_path / "a.vip", 200), tmp_path / "answers.sqlite"
    lost = 0
    with ApiServer(delay_s=0.02) as server:
        for kill in range(KILLS):
            wanted = server.stats().chats + 1 + 7 * kill % 13
            process = start(path, server, cache)
            while server.stats().chats < wanted and process.poll() is None:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            code, err = end(process)
            assert code == -signal.SIGKILL, err
            answers = AnswerCache(cache)
            lost, lost_before = server.stats().chats - answers.count(), lost
            rows = len(load_run(path).descriptions)
            assert rows <= answers.count(), "no description without its answer on the disk"
            answers.close()
            assert lost - lost_before <= AT_ONCE, "those in flight"
        code, err = end(start(path, server, cache))
        assert code == 0, err
        stats = server.stats()
    run = load_run(path)
    assert [row.keyframe_id for row in run.descriptions] == [item.id for item in run.keyframes]
    assert run.failures == []
    check_that_each_is_its_own(run)
    assert stats.questions == 200
    assert stats.chats == 200 + lost <= 200 + AT_ONCE * KILLS
    assert not (path / store.JOURNAL).exists()


def test_a_second_run_asks_nothing_and_writes_nothing(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 5)
    store.write_json(path / store.MANIFEST, store.sign(manifest()))
    caption(path, **options(server, tmp_path))
    before, chats = {file: file.stat().st_mtime_ns for file in path.iterdir() if file.is_file()}, server.stats().chats
    caption(path, **options(server, tmp_path))
    assert server.stats().chats == chats == 5
    assert {file: file.stat().st_mtime_ns for file in path.iterdir() if file.is_file()} == before


def test_with_everything_described_the_topic_is_not_asked_again_either(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 3)
    caption(path, **options(server, tmp_path, topic="Surfing"))
    caption(path, **options(server, tmp_path, topic="Surfing", cache=tmp_path / "another.sqlite"))
    assert server.stats().chats == 4


def test_the_same_pictures_in_another_folder_cost_nothing(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 5)
    shutil.copytree(path, tmp_path / "b.vip")
    caption(path, **options(server, tmp_path))
    run = caption(tmp_path / "b.vip", **options(server, tmp_path))
    assert server.stats().chats == 5
    assert [call.cached for row in run.descriptions for call in row.calls] == [True] * 5
    assert usage(tmp_path / "b.vip") == {**usage(tmp_path / "b.vip"), "requests": 0, "cached": 5, "usd": 0.0}


@pytest.mark.slow
def test_a_server_that_goes_away_costs_only_the_rest(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 12)
    with ApiServer(*["ok"] * 5, "401") as server:
        with pytest.raises(EngineError, match="No key is set, and"):
            caption(path, **options(server, tmp_path, concurrency=2))
        assert len(described(path)) == 5
        server.set(behaviours=["ok"])
        caption(path, **options(server, tmp_path))
        assert server.stats().usable == 12
        assert server.stats().most_usable == 1
    assert len(described(path)) == 12


# ---------------------------------------------------------------- several folders


def test_several_folders_go_in_one_call_and_each_gets_its_own(server: ApiServer, tmp_path: Path) -> None:
    paths = [run_folder(tmp_path / "runs" / f"{name}.vip", count) for name, count in (("a", 4), ("b", 1), ("c", 3))]
    runs = caption(paths, **options(server, tmp_path))
    assert [run.folder for run in runs] == paths
    assert [len(run.descriptions) for run in runs] == [4, 1, 3]
    for run in runs:
        check_that_each_is_its_own(run)
    assert [usage(path)["requests"] for path in paths] == [4, 1, 3]
    assert [usage(path)["tokens_in"] for path in paths] == [44, 11, 33]


def test_failures_of_several_folders_are_told_with_the_first_and_listed_in_each(tmp_path: Path) -> None:
    paths = [run_folder(tmp_path / f"{name}.vip", 3) for name in "abc"]
    (paths[0] / "keyframes" / "0001.jpg").unlink()
    (paths[2] / "keyframes" / "0002.jpg").unlink()
    with ApiServer() as server, pytest.raises(SomeFailedError, match=r"2 of 9 .*a\.vip.failures\.jsonl and that of 1 more folders say why"):
        caption(paths, **options(server, tmp_path))
    assert [[row.item for row in load_run(path).failures] for path in paths] == [["a:0001"], [], ["c:0002"]]
    assert [len(described(path)) for path in paths] == [2, 3, 2]


@pytest.mark.slow
def test_a_folder_that_is_done_is_finished_before_the_others_are(tmp_path: Path) -> None:
    """So that a run of a thousand videos that is stopped leaves whole folders."""
    paths = [run_folder(tmp_path / f"{name}.vip", 20) for name in "ab"]
    with ApiServer(*["ok"] * 30, "401") as server, pytest.raises(EngineError):
        caption(paths, **options(server, tmp_path, concurrency=1))
    assert (paths[0] / store.DESCRIPTIONS).exists()
    assert not (paths[0] / store.JOURNAL).exists()
    assert (paths[1] / store.JOURNAL).exists()


def test_a_folder_of_runs_stands_for_its_runs(tmp_path: Path) -> None:
    paths = [run_folder(tmp_path / "runs" / f"{name}.vip", 1) for name in ("b", "a")]
    (tmp_path / "runs" / "notes").mkdir()
    pictures = tmp_path / "photos"
    pictures.mkdir()
    assert runs_in([tmp_path / "runs"]) == sorted(paths)
    assert runs_in([paths[0], pictures, tmp_path / "runs"]) == [paths[0], pictures, paths[1]]
    assert runs_in([paths[0] / "keyframes"]) == [paths[0]]
    assert runs_in([tmp_path / "missing"]) == [tmp_path / "missing"]


@pytest.mark.slow
def test_many_folders_that_are_done_do_not_use_up_the_files_a_process_may_open(server: ApiServer, tmp_path: Path) -> None:
    first = run_folder(tmp_path / "0000.vip", 1)
    caption(first, **options(server, tmp_path))
    paths = [Path(shutil.copytree(first, tmp_path / f"{number:04d}.vip")) for number in range(1, 120)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 60, hard))
    try:
        assert len(caption([first, *paths], **options(server, tmp_path))) == 120
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert server.stats().chats == 1


def test_a_folder_of_plain_pictures_is_described_and_one_that_is_none_listed(server: ApiServer, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(3):
        store.write_picture(photos / f"{number}.jpg", noise(number, (90, 120)))
    (photos / "9.jpg").write_bytes(b"no picture")
    for _ in range(2):
        with pytest.raises(SomeFailedError, match="1 of 4"):
            caption(photos, **options(server, tmp_path))
        assert list(described(photos)) == ["0.jpg", "1.jpg", "2.jpg"]
        assert [row.item for row in load_run(photos).failures] == ["9.jpg"]
    assert server.stats().chats == 3


# ---------------------------------------------------------------- context, topic, language, recipe


def test_with_a_context_each_is_told_what_was_before_in_its_own_video(tmp_path: Path) -> None:
    paths = [run_folder(tmp_path / f"{name}.vip", 4) for name in "ab"]
    with ApiServer(delay_s=0.01) as server:
        runs = caption(paths, **options(server, tmp_path, context=2))
        asked = server.chats
    for run in runs:
        captions = [row.dense_caption for row in run.descriptions]
        for number, item in enumerate(run.keyframes):
            (text,) = (chat.text for chat in asked if marker(item).removeprefix("picture ") == shown(chat))
            assert told(text) == captions[max(0, number - 2) : number]
            assert f"keyframe {number + 1} of 4" in text
            assert f"{item.time_s:.1f} s" in text


def shown(chat: Asked) -> str:
    """The first digits of the SHA-256 of the picture in a question."""
    (url,) = (part["image_url"]["url"] for part in chat.body["messages"][0]["content"] if part["type"] == "image_url")
    return sha256(b64decode(url.partition(",")[2])).hexdigest()[:12]


def told(text: str) -> list[str]:
    """The captions of the keyframes before that stand in a question."""
    return [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- dense_caption of picture")]


def test_a_second_run_tells_what_failed_before_the_captions_of_the_first(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 6)
    with ApiServer("ok", "ok", "ok", "content_filter", "ok", "413") as server:
        with pytest.raises(SomeFailedError):
            caption(path, **options(server, tmp_path, context=1))
        assert [name[2:] for name in described(path)] == ["0000", "0001", "0002", "0004"]
        server.set(behaviours=["ok"])
        before = len(server.chats)
        caption(path, **options(server, tmp_path, context=1))
        asked = server.chats[before:]
    captions = list(described(path).values())
    assert [told(chat.text) for chat in asked] == [[captions[2]], [captions[4]]]


@pytest.mark.slow
def test_a_key_that_stops_being_good_ends_the_run_and_says_so(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 6)
    with ApiServer("ok", "ok", "401") as server, pytest.raises(EngineError, match=r"No key is set.*Tried 4 times"):
        caption(path, **options(server, tmp_path, concurrency=1))
    assert len(described(path)) == 2
    assert not (path / "failures.jsonl").exists()


def test_the_topic_is_asked_once_for_all_folders_and_never_again(tmp_path: Path) -> None:
    paths = [run_folder(tmp_path / f"{name}.vip", 3) for name in "ab"]
    with ApiServer() as server:
        runs = caption(paths, **options(server, tmp_path, topic="A dog learns to surf"))
        assert sum("A dog learns to surf" in chat.text for chat in server.chats) == 1
        caption(run_folder(tmp_path / "c.vip", 2), **options(server, tmp_path, topic="A dog learns to surf"))
        assert sum("A dog learns to surf" in chat.text for chat in server.chats) == 1
        assert server.stats().chats == 1 + 6 + 2
    assert all(row.grounding[-1].startswith("expected from the topic: ") for run in runs for row in run.descriptions)


def test_the_language_goes_into_the_question_and_the_record(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 1)
    run = caption(path, **options(server, tmp_path, language="de"))
    assert "German" in server.chats[0].text
    assert run.descriptions[0].language == "German"
    with pytest.raises(UsageError, match=r"\(German\).*\(English\).*--overwrite"):
        caption(path, **options(server, tmp_path))


def test_the_three_questions_of_the_paper_go_to_two_models(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 3)
    about = {"recipe": "paper", "describe_engine": "openai:tiny-vlm", "structure_engine": "openai:big-vlm"}
    with ApiServer(marks=True) as server:
        run = caption(path, **options(server, tmp_path, **about))
        asked = Counter((chat.body["model"], isinstance(chat.body["messages"][0]["content"], list)) for chat in server.chats)
    assert asked == {("tiny-vlm", True): 3, ("big-vlm", False): 6}
    for row in run.descriptions:
        assert row.engine == "openai:tiny-vlm + openai:big-vlm"
        assert [(call.prompt, call.engine) for call in row.calls] == [
            *(("caption", "openai:tiny-vlm"), ("describe", "openai:big-vlm"), ("structure", "openai:big-vlm")),
        ]


def test_another_engine_is_refused_before_anything_is_asked(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 2)
    caption(path, **options(server, tmp_path))
    with pytest.raises(UsageError, match=r"described by openai:tiny-vlm, and now openai:big-vlm is asked. Add --overwrite"):
        caption(path, **options(server, tmp_path, engine="openai:big-vlm"))
    assert server.stats().chats == 2
    caption(path, overwrite=True, **options(server, tmp_path, engine="openai:big-vlm"))
    assert {row.engine for row in load_run(path).descriptions} == {"openai:big-vlm"}


# ---------------------------------------------------------------- money


@pytest.mark.slow
def test_the_run_ends_before_it_passes_the_ceiling_and_goes_on_with_a_higher_one(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 60)
    each_usd = (1000 * 1.0 + 300 * 10.0) / 1e6
    with ApiServer(usage=(1000, 300), delay_s=0.01) as server:
        about = options(server, tmp_path, prices=prices(tmp_path))
        with pytest.raises(EngineError, match=r"--max-usd 0\.1 leaves no room for another request: \$0\.0\d+ is spent"):
            caption(path, **about, max_usd=0.1)
        billed = server.stats().statuses["200"] * each_usd
        assert 0.1 - 0.03 < billed <= 0.1
        assert load_run(path).failures == [], "no keyframe is at fault"
        assert len(described(path)) <= server.stats().chats
        caption(path, **about, max_usd=1.0)
        assert server.stats().chats == 60
        assert server.stats().most_answered == 1
    assert usage(path)["usd"] == pytest.approx(60 * each_usd), "of both runs"
    assert usage(path)["requests"] == 60


def test_useless_answers_count_towards_the_ceiling(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 60)
    with ApiServer("refusal", usage=(1000, 300)) as server:
        with pytest.raises(EngineError, match="leaves no room"):
            caption(path, **options(server, tmp_path, prices=prices(tmp_path), max_usd=0.1))
        assert server.stats().statuses["200"] * 0.004 <= 0.1


def test_a_run_without_a_ceiling_is_told_that_it_has_one(server: ApiServer, tmp_path: Path) -> None:
    path, notes = run_folder(tmp_path / "a.vip", 2), Notes()
    server.set(usage=(800, 20))
    caption(path, observer=notes, **options(server, tmp_path, prices=prices(tmp_path)))
    expected, used = notes.told
    assert "about 2 requests" in expected
    assert "(tiny-vlm, price of 2026-01-01)" in expected
    assert expected.endswith("at most 5 dollars, since no --max-usd is given.")
    assert used == "Used 2 requests, 1,600 tokens in, 40 out, $0.0020."


def test_where_no_price_is_known_that_is_told_and_a_ceiling_refused(server: ApiServer, tmp_path: Path) -> None:
    path, notes = run_folder(tmp_path / "a.vip", 2), Notes()
    caption(path, observer=notes, **options(server, tmp_path))
    assert "the price of openai:tiny-vlm is unknown, so no ceiling in dollars can be kept" in notes.told[0]
    assert "$" not in "".join(notes.told)
    with pytest.raises(UsageError, match="--max-usd cannot be kept: the price of openai:tiny-vlm is unknown"):
        caption(path, **options(server, tmp_path, max_usd=1.0))


def test_what_is_expected_is_told_without_asking(server: ApiServer, tmp_path: Path) -> None:
    paths = [run_folder(tmp_path / f"{name}.vip", 30) for name in "ab"]
    about = options(server, tmp_path, prices=prices(tmp_path), recipe="paper")
    expected = expected_cost(paths, **about)
    assert (expected.keyframes, expected.requests) == (60, 180)
    assert expected.usd is not None
    assert 0.1 < expected.usd < 1
    assert server.requests == []
    caption(paths[0], **about)
    assert expected_cost(paths, **about).keyframes == 30


def test_what_is_expected_is_by_keyframes_of_all_folders(mine: dict[str, Any], tmp_path: Path) -> None:
    small = [run_folder(tmp_path / f"small {number}.vip", 9, size=(64, 48)) for number in range(3)]
    large = run_folder(tmp_path / "large.vip", 9, size=(800, 600))
    alone = [expected_cost(paths, **mine).tokens_in / len(paths) for paths in (small, [large])]
    for paths in ([*small, large], [large, *small]):
        expected = expected_cost(paths, **mine)
        assert expected.keyframes == 36
        assert expected.tokens_in == pytest.approx(3 * alone[0] + alone[1], rel=0.01)


def test_what_was_spent_adds_up_over_runs_and_useless_answers_are_in_it(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 8)
    with ApiServer("content_filter", "wrong_schema", "ok", usage=(800, 20)) as server:
        about = options(server, tmp_path, prices=prices(tmp_path), concurrency=1)
        with pytest.raises(SomeFailedError):
            caption(path, **about)
        first = usage(path)
        caption(path, **about)
        chats = server.stats().chats
    assert chats == 8 + 1 + 1
    assert first["requests"] == 9
    assert (usage(path)["requests"], usage(path)["tokens_in"], usage(path)["tokens_out"]) == (chats, 800 * chats, 20 * chats)
    assert usage(path)["usd"] == pytest.approx(chats * 0.001)


def test_the_question_about_the_topic_is_in_what_was_spent(server: ApiServer, tmp_path: Path) -> None:
    paths = [run_folder(tmp_path / f"{name}.vip", 2) for name in "ab"]
    caption(paths, **options(server, tmp_path, topic="Surfing"))
    assert sum(usage(path)["requests"] for path in paths) == server.stats().chats == 5


# ---------------------------------------------------------------- checked against the frames


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of eight keyframes, an embedder that knows them, and an engine that is wrong about one of them."""
    path = run_folder(tmp_path / "a.vip", 8)
    monkeypatch.setattr(registry, "auto_embedder", lambda name: ("numbers", "which is made up"))
    monkeypatch.setattr(registry, "embedder", lambda name, **settings: Numbers(path))
    monkeypatch.setitem(registry.BUILT_IN["engine"], "talking", "tests.captioning.test_caption_job:Correcting")
    return path


class Correcting(Talking):
    def __init__(self, detail: str | None, **settings: Any) -> None:
        super().__init__([{"number": 1, "seen": False, "text": "thing 3"}])


def test_what_finds_no_support_is_looked_at_again_and_before_and_after_are_kept(numbers: Path, tmp_path: Path) -> None:
    run = caption(numbers, engine="talking", verify=True, cache=tmp_path / "answers.sqlite")
    assert [row.famous.focus for row in run.descriptions] == [f"thing {number}" for number in range(8)]
    before = [row.verification.before if row.verification else None for row in run.descriptions]
    assert [one.focus if one else None for one in before] == [None, None, None, "thing 77", None, None, None, None]
    assert [call.prompt for call in run.descriptions[3].calls] == ["direct", "verify"]


def test_a_run_that_is_described_can_be_checked_later_and_the_second_look_is_paid_by_its_folder(numbers: Path, tmp_path: Path) -> None:
    about = {"engine": "talking", "cache": tmp_path / "answers.sqlite"}
    caption(numbers, **about)
    assert usage(numbers)["requests"] == 8
    run = caption(numbers, **about, verify=True)
    assert all(row.verification for row in run.descriptions)
    assert usage(numbers)["requests"] == 9
    assert run.manifest is not None
    assert run.manifest.captioning is not None
    assert run.manifest.captioning["verify"] is True


class Refusing(Talking):
    """Describes all, and refuses the second look."""

    def __init__(self, detail: str | None, **settings: Any) -> None:
        super().__init__(self.refuse, address="http://127.0.0.1:9/v1")

    def refuse(self, request: Request) -> Any:
        raise self.error

    error: ClassVar[Exception]


@pytest.fixture
def refusing(numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Settings that verify by `Refusing`."""
    monkeypatch.setattr(Refusing, "error", ReplyError("I refuse.", kind="refusal"), raising=False)
    monkeypatch.setitem(registry.BUILT_IN["engine"], "refusing", "tests.captioning.test_caption_job:Refusing")
    return {"engine": "refusing", "verify": True, "cache": tmp_path / "answers.sqlite"}


def test_a_second_look_that_fails_is_noted_with_its_failure_and_the_keyframe_counts_as_described(
    numbers: Path, refusing: dict[str, Any]
) -> None:
    notes = Notes()
    run = caption(numbers, observer=notes, **refusing)
    assert len(run.descriptions) == 8
    assert [(row.item, row.kind) for row in run.failures] == [("a:0003", "refusal")]
    assert notes.told[-1] == f"1 second look failed, and the marked claims stay; see {numbers / store.FAILURES}."


def test_what_was_spent_is_noted_where_the_second_look_ends_the_run(
    numbers: Path, refusing: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Refusing, "error", EngineError("The key is no longer good."))
    monkeypatch.setattr("vip.llm.client.TRIES_BEFORE_AN_ANSWER", 1)
    with pytest.raises(EngineError, match="no longer good"):
        caption(numbers, **refusing)
    assert usage(numbers)["requests"] == 8
    assert "caption" not in json.loads((numbers / store.MANIFEST).read_text())["seconds"]


def test_without_a_joint_space_the_user_is_told_that_only_the_detector_has_a_say(numbers: Path, tmp_path: Path) -> None:
    notes = Notes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Numbers, "capabilities", EmbedderCapabilities())
        caption(numbers, engine="talking", verify=True, cache=tmp_path / "answers.sqlite", observer=notes)
    assert "only the detector has a say, since the embedder is numbers" in "".join(notes.told)


# ---------------------------------------------------------------- memory, notebooks, what is said


class Watching(Scripted):
    """Notes how many pictures and keyframes there are in memory while it is asked."""

    before: ClassVar[Counter[str]] = Counter()  # the registry makes the engine, the test reads it
    most: ClassVar[Counter[str]] = Counter()

    def __init__(self, detail: str | None, **settings: Any) -> None:
        super().__init__(max_in_flight=16)
        self.count = 0

    async def generate(self, request: Request) -> Reply:
        self.requests.clear()
        self.count += 1
        if self.count % 100 == 0:
            type(self).most |= alive() - self.before
        await asyncio.sleep(0.001)
        return Reply(json.dumps(DIRECT), "m")


def alive() -> Counter[str]:
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one) in {Picture, KeyframePicture})


@pytest.mark.slow
@pytest.mark.usefixtures("_new_objects_only")
def test_keyframes_and_pictures_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN["engine"], "watching", "tests.captioning.test_caption_job:Watching")
    path = run_folder(tmp_path / "a.vip", 10)
    rows = [item.record for item in load_run(path).keyframes]
    many = [row.model_copy(update={"id": f"{time}:{row.id}"}) for time in range(60) for row in rows]
    store.write_rows(path / store.KEYFRAMES, many)
    Watching.before, Watching.most = alive(), Counter()
    caption(path, engine="watching", cache=tmp_path / "answers.sqlite")
    assert len(described(path)) == 600
    assert 0 < Watching.most["Picture"] <= 16 + AHEAD + 4
    assert Watching.most["KeyframePicture"] <= 2 * (16 + AHEAD + 4)


def test_it_runs_where_a_loop_runs_already(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 2)

    async def notebook() -> Run:
        return caption(path, **options(server, tmp_path))

    assert len(asyncio.run(notebook()).descriptions) == 2


def test_where_nothing_could_be_described_the_first_reason_is_told(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 3)
    with (
        ApiServer("content_filter") as server,
        pytest.raises(ReplyError, match="None of 3 keyframes could be described: The content filter"),
    ):
        caption(path, **options(server, tmp_path))
    assert [row.kind for row in load_run(path).failures] == ["content_filter"] * 3


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"structure_engine": "openai:big-vlm"}, "--structure-engine has nothing to do in the recipe direct"),
        ({"engine": "offline", "language": "de"}, "offline writes English only"),
    ],
)
def test_settings_that_do_not_go_together_leave_nothing_open(about: dict[str, Any], words: str, server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 1)
    with pytest.raises((UsageError, BackendError), match=words):
        caption(path, settings=CaptionSettings(**{**options(server, tmp_path), **about}))
    assert server.requests == []
    assert not [thread for thread in threading.enumerate() if thread.name == "vip answers"]


# ---------------------------------------------------------------- an engine of this process


class Mine(Scripted):
    """An engine at an address for which there is a price, one question at a time."""

    about: ClassVar[dict[str, Any]] = {}
    made: ClassVar[list[Mine]] = []

    def __init__(self, detail: str | None, **settings: Any) -> None:
        mine = {"name": "mine:tiny-vlm", "address": "http://127.0.0.1:9/v1", "max_in_flight": 1, "check": self._check}
        super().__init__(**{**mine, **self.about})
        self.made.append(self)

    def _check(self) -> None:
        if self.about.get("has_no_key"):
            raise EngineError("No key is set.")

    async def generate(self, request: Request) -> Reply:
        await asyncio.sleep(0)  # no server answers several questions in one step of the loop
        return await super().generate(request)


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Settings that ask `mine`."""
    monkeypatch.setitem(registry.BUILT_IN["engine"], "mine", "tests.captioning.test_caption_job:Mine")
    monkeypatch.setattr(Mine, "about", {})
    monkeypatch.setattr(Mine, "made", [])
    return {"engine": "mine:tiny-vlm", "cache": tmp_path / "answers.sqlite", "prices": prices(tmp_path)}


class Bar(Notes):
    """What stands behind the bar, at its beginning and after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.totals: list[int] = []
        self.behind: list[str] = []

    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> AbstractContextManager[Callable[[], None]]:
        def advance() -> None:
            self.behind.append(extra() if extra else "")

        self.totals.append(total)
        advance()
        return nullcontext(advance)


def test_what_is_spent_stands_behind_the_bar_and_from_five_answers_on_what_it_will_be(mine: dict[str, Any], tmp_path: Path) -> None:
    """One answer costs a tenth of a cent here, and far more was reckoned."""
    Mine.about |= {"tokens": (800, 20)}
    bar = Bar()
    caption(run_folder(tmp_path / "a.vip", 8), observer=bar, **mine)
    assert bar.totals == [8]
    reckoned = bar.behind[0].removeprefix("$0.00 of about ")
    assert reckoned.startswith("$0.0")
    assert bar.behind[1] == f"$0.0010 of about {reckoned}"
    assert bar.behind[4] == f"$0.0040 of about {reckoned}"
    assert bar.behind[5:] == [
        "$0.0050 of about $0.0080",
        "$0.0060 of about $0.0080",
        "$0.0070 of about $0.0080",
        "$0.0080 of about $0.0080",
    ]


def test_where_no_price_is_known_the_bar_counts_tokens(mine: dict[str, Any], tmp_path: Path) -> None:
    bar = Bar()
    caption(run_folder(tmp_path / "a.vip", 8), observer=bar, **{**mine, "prices": None})
    assert bar.behind[1].startswith("18 of about ")
    assert int(bar.behind[1].split()[3].replace(",", "")) > 8 * 220
    assert bar.behind[5:] == ["90 of about 144 tokens", "108 of about 144 tokens", "126 of about 144 tokens", "144 of about 144 tokens"]


@pytest.mark.parametrize(
    ("used", "expected", "said"),
    [
        (Usage(requests=4, usd=0.1), (8, 0.5), "$0.10 of about $0.50"),
        (Usage(requests=4, usd=0.9), (8, 0.5), "$0.90 of about $0.90"),
        (Usage(requests=5, usd=0.5), (8, 0.1), "$0.50 of about $0.80"),
        (Usage(requests=8, usd=0.8), (8, 0.1), "$0.80 of about $0.80"),
        (Usage(requests=16, usd=0.8), (8, 0.5), "$0.80 of about $0.80"),
        (Usage(requests=4, tokens_in=90, tokens_out=10), (8, None), "100 of about 1,100 tokens"),
        (Usage(requests=5, tokens_in=90, tokens_out=10), (8, None), "100 of about 160 tokens"),
        (Usage(requests=16, tokens_in=90, tokens_out=10), (8, None), "100 of about 100 tokens"),
    ],
)
def test_never_more_is_spent_than_what_it_is_said_to_be_of(
    used: Usage, expected: tuple[int, float | None], said: str, mine: dict[str, Any], tmp_path: Path
) -> None:
    """Some questions are asked again, and cost more than was reckoned."""
    settings = CaptionSettings(**mine)
    with open_job([run_folder(tmp_path / "a.vip", 1)], settings, SilentObserver(), skip_picture_folder, budget=Budget(usage=used)) as job:
        assert job.spent_so_far() == ""
        requests, usd = expected
        job.expected = Estimate(8, requests, 1000, 100, usd, ())
        assert job.spent_so_far() == said


def test_where_nothing_is_paid_for_nothing_is_said_of_money(mine: dict[str, Any], tmp_path: Path) -> None:
    Mine.about |= {"address": None}
    bar = Bar()
    caption(run_folder(tmp_path / "a.vip", 1), observer=bar, **{**mine, "prices": None})
    assert bar.behind == ["", ""]
    assert bar.told == ["Used 1 request, 11 tokens in, 7 out."]


def test_a_ceiling_and_second_looks_are_told_with_what_is_expected(mine: dict[str, Any], tmp_path: Path) -> None:
    notes = Notes()
    about = {**mine, "max_usd": 0.5, "observer": notes}
    path = run_folder(tmp_path / "a.vip", 1)
    caption(path, **about)
    assert notes.told[0].endswith("(tiny-vlm, price of 2026-01-01); at most $0.50.")
    notes.told.clear()
    caption(path, overwrite=True, verify=True, embedder="classic", **{**about, "language": "German"})
    assert notes.told[1].endswith("(tiny-vlm, price of 2026-01-01); second looks of --verify come on top; at most $0.50.")


def test_of_a_ledger_that_calls_share_each_tells_its_own_part(mine: dict[str, Any], tmp_path: Path) -> None:
    Mine.about |= {"tokens": (800, 20)}
    budget, notes = Budget(), Notes()
    for name, count in (("a", 1), ("b", 2)):
        caption(run_folder(tmp_path / f"{name}.vip", count), budget=budget, observer=notes, **mine)
    assert [text for text in notes.told if text.startswith("Used")] == [
        "Used 1 request, 800 tokens in, 20 out, $0.0010.",
        "Used 2 requests, 1,600 tokens in, 40 out, $0.0020.",
    ]
    assert budget.usage.requests == 3


def test_a_key_is_needed_only_where_something_is_left_to_ask(mine: dict[str, Any], tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 1)
    caption(path, **mine)
    Mine.about |= {"has_no_key": True}
    notes = Notes()
    assert len(caption(path, observer=notes, **mine).descriptions) == 1
    assert notes.told == [], "there is nothing to spend"
    with pytest.raises(EngineError, match="No key is set"):
        caption(run_folder(tmp_path / "b.vip", 1), **mine)
    assert not Mine.made[-1].requests


def test_the_manifest_says_how_it_was_described_and_how_long_that_took(mine: dict[str, Any], tmp_path: Path) -> None:
    path, start_s = run_folder(tmp_path / "a.vip", 2), time.perf_counter()
    caption(path, picture_side=512, picture_detail="low", **mine)
    all_s = time.perf_counter() - start_s
    manifest = json.loads((path / store.MANIFEST).read_text())
    noted = manifest["captioning"]
    assert noted.pop("spent")["requests"] == 2
    assert list(noted.pop("prompts")) == ["direct"]
    assert noted == {
        **{"engine": "mine:tiny-vlm", "recipe": "direct", "language": "English", "context": 0, "topic": None, "verify": False},
        **{"schema": "famous", "picture_side": 512, "picture_detail": "low"},
    }
    assert manifest["seconds"]["extract"] == 1.0
    assert 0 < manifest["seconds"]["caption"] <= round(all_s, 3)


def test_a_run_that_is_ended_early_notes_what_it_spent_and_not_that_it_is_done(
    mine: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Request, number: int) -> Any:
        if number > 2:
            raise EngineError("The key is no longer good.")
        return DIRECT

    Mine.about |= {"answer": answer}
    path = run_folder(tmp_path / "a.vip", 5)
    monkeypatch.setattr("vip.llm.client.TRIES_BEFORE_AN_ANSWER", 1)
    with pytest.raises(EngineError, match="no longer good"):
        caption(path, **mine)
    assert usage(path)["requests"] == 2
    assert "caption" not in json.loads((path / store.MANIFEST).read_text())["seconds"]
    assert Mine.made[-1].closed


def test_with_nothing_but_a_picture_that_is_none_and_one_that_fails_none_could_be_described(mine: dict[str, Any], tmp_path: Path) -> None:
    def refuse(request: Request, number: int) -> Any:
        raise ReplyError("I refuse.", kind="content_filter")

    Mine.about |= {"answer": refuse}
    photos = tmp_path / "photos"
    photos.mkdir()
    store.write_picture(photos / "1.jpg", noise(1))
    (photos / "2.jpg").write_bytes(b"no picture")
    with pytest.raises(ReplyError, match=r"None of 2 keyframes could be described: .*failures\.jsonl says why"):
        caption(photos, **mine)


# ---------------------------------------------------------------- folders of pictures that change


def test_a_picture_that_came_is_described_though_another_one_went(mine: dict[str, Any], tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(3):
        store.write_picture(photos / f"{number}.png", noise(number))
        os.utime(photos / f"{number}.png", (1000, 1000))
    caption(photos, **mine)
    (photos / "1.png").unlink()
    store.write_picture(photos / "3.png", noise(3))
    caption(photos, **mine)
    assert list(described(photos)) == ["0.png", "2.png", "3.png"]
    assert [len(engine.requests) for engine in Mine.made] == [3, 1]


# ---------------------------------------------------------------- run folders as they come


def test_many_folders_go_through_the_same_engines_and_each_has_its_bill(mine: dict[str, Any], tmp_path: Path) -> None:
    notes, bills = Notes(), [Usage(requests=10), Usage()]
    settings = CaptionSettings(**mine, topic="Of all")
    Mine.about |= {"answer": lambda request, number: {"objects": ["sea"]} if request.stage == "topic" else DIRECT}
    Mine.about |= {"keeps": True}

    async def go() -> list[frozenset[bytes]]:
        captioner = RunCaptioner(settings, notes, Budget())
        assert captioner.engines == ("mine:tiny-vlm", "mine:tiny-vlm")
        assert not captioner.has_answered
        assert captioner.cost(paths[0], 500).startswith("about 501 requests")
        waiting = [await captioner.caption(path, topic, bill) for path, topic, bill in zip(paths, (None, "Its own"), bills, strict=True)]
        assert captioner.has_answered
        assert not Mine.made[-1].closed
        await captioner.close()
        return waiting

    paths = [run_folder(tmp_path / f"{name}.vip", 2) for name in "ab"]
    assert asyncio.run(go()) == [frozenset(), frozenset()]
    (engine,) = Mine.made
    assert engine.closed
    assert [bill.requests for bill in bills] == [13, 3]
    assert [{row.topic for row in load_run(path).descriptions} for path in paths] == [{"Of all"}, {"Its own"}]


def test_a_caller_that_knows_that_a_server_has_answered_may_allow_pauses(mine: dict[str, Any]) -> None:
    async def go(outages: OutagePolicy | None) -> tuple[bool, float | None]:
        captioner = RunCaptioner(CaptionSettings(**mine), SilentObserver(), Budget(), outages=outages)
        (client,) = captioner._session.describer.clients
        await captioner.close()
        return captioner.has_answered, client.limiter.outage and client.limiter.outage.first_s

    assert asyncio.run(go(None)) == (False, None)
    assert asyncio.run(go(OutagePolicy(7.0, lambda rest: None, answered=False))) == (False, 7.0)
    assert asyncio.run(go(OutagePolicy(7.0, lambda rest: None, answered=True))) == (True, 7.0)


def test_who_has_no_key_makes_no_captioner(mine: dict[str, Any]) -> None:
    Mine.about |= {"has_no_key": True}
    with pytest.raises(EngineError, match="No key is set"):
        RunCaptioner(CaptionSettings(**mine), SilentObserver(), Budget())
    assert not [thread for thread in threading.enumerate() if thread.name == "vip answers"]


# ---------------------------------------------------------------- two engines


@pytest.fixture
def second(mine: dict[str, Any]) -> dict[str, Any]:
    """Settings with an engine of this process that sees, and `mine` that writes FAMOuS."""
    Mine.about |= {"answer": paper}
    return {**mine, "engine": "auto", "recipe": "paper", "describe_engine": "fake", "structure_engine": "mine:tiny-vlm"}


@pytest.mark.parametrize(
    ("known", "ceiling"),
    [
        (True, "at most 5 dollars, since no --max-usd is given."),
        (False, "the price of mine:tiny-vlm is unknown, so no ceiling in dollars can be kept."),
    ],
)
def test_the_ceiling_of_the_second_engine_is_told_where_the_first_costs_nothing(
    known: bool, ceiling: str, second: dict[str, Any], tmp_path: Path
) -> None:
    notes = Notes()
    caption(run_folder(tmp_path / "a.vip", 1), observer=notes, **{**second, "prices": second["prices"] if known else None})
    assert notes.told[0].startswith("about 3 requests")
    assert notes.told[0].endswith(f"; {ceiling}")


def test_without_the_key_of_the_second_engine_the_first_is_not_asked_either(second: dict[str, Any], tmp_path: Path) -> None:
    Mine.about |= {"has_no_key": True}
    path = run_folder(tmp_path / "a.vip", 1)
    with pytest.raises(EngineError, match="No key is set"):
        caption(path, **second)
    with pytest.raises(EngineError, match="No key is set"):
        RunCaptioner(CaptionSettings(**second), SilentObserver(), Budget())
    with closing(AnswerCache(second["cache"])) as answers:
        assert not answers.count()


def test_long_waits_of_each_engine_are_told(second: dict[str, Any], tmp_path: Path) -> None:
    notes, settings = Notes(), CaptionSettings(**second)

    def hold(clients: Sequence[EngineClient]) -> None:
        for number, client in enumerate(clients):
            client.limiter.hold(100.0 + number)

    async def go() -> None:
        captioner = RunCaptioner(settings, notes, Budget())
        hold(captioner._session.describer.clients)
        await captioner.close()

    with open_job([run_folder(tmp_path / "a.vip", 1)], settings, notes, skip_picture_folder) as job:
        hold(job.session.describer.clients)
    asyncio.run(go())
    assert notes.told == [f"The server asks to wait: nothing goes out for {seconds} s." for seconds in (100, 101)] * 2


def test_each_engine_of_a_captioner_may_pause_and_is_closed(second: dict[str, Any]) -> None:
    async def go() -> list[Outage | None]:
        captioner = RunCaptioner(CaptionSettings(**second), SilentObserver(), Budget(), outages=OutagePolicy(7.0, lambda rest: None, True))
        clients = captioner._session.describer.clients
        await captioner.close()
        assert all(client.circuit_breaker.answered for client in clients)
        return [client.limiter.outage for client in clients]

    first, other = asyncio.run(go())
    assert first is not None
    assert other is not None
    assert first is not other
    assert Mine.made[-1].closed


# ---------------------------------------------------------------- how far batches are


def waiting(monkeypatch: pytest.MonkeyPatch) -> BatchJob:
    """A batch that was handed in here, as it was last seen."""
    job = BatchJob(part=1, job="job1", status="in_progress", rows=2, size_bytes=9, created_utc="2026-01-01")
    monkeypatch.setattr(in_batches, "jobs_in", lambda home: [job])
    monkeypatch.setattr(BatchJob, "is_ours", True)
    return job


def test_of_batches_that_are_there_the_server_is_asked(mine: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, notes = waiting(monkeypatch), Notes()
    seen = job.model_copy(update={"status": "completed"})

    async def refreshed_jobs(describer: Any, home: Path) -> list[BatchJob]:
        assert home == tmp_path
        return [seen]

    monkeypatch.setattr(in_batches, "refreshed_jobs", refreshed_jobs)
    assert batches_of([tmp_path], CaptionSettings(**mine), notes) == [seen]
    assert notes.told == []
    assert not [thread for thread in threading.enumerate() if thread.name == "vip answers"]


def test_where_the_server_cannot_be_asked_batches_are_told_as_last_seen(
    mine: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, notes = waiting(monkeypatch), Notes()
    assert batches_of([tmp_path], CaptionSettings(**mine), notes) == [job]
    assert batches_of([tmp_path], CaptionSettings(**{**mine, "engine": "offlin"}), notes) == [job]
    first, second = notes.told
    assert first.startswith("As last seen, since the server does not answer: mine:tiny-vlm takes no batches.")
    assert second.startswith('As last seen, since the server cannot be asked: There is no engine "offlin"')
    assert not [thread for thread in threading.enumerate() if thread.name == "vip answers"]
    assert Mine.made[-1].closed


def test_where_nothing_waits_no_server_is_asked(mine: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = waiting(monkeypatch).model_copy(update={"status": "collected"})
    monkeypatch.setattr(in_batches, "jobs_in", lambda home: [done])
    assert batches_of([tmp_path], CaptionSettings(**mine), SilentObserver()) == [done]
    assert Mine.made == []
    with pytest.raises(InputError):
        batches_of([tmp_path / "missing"], CaptionSettings(**mine), SilentObserver())
