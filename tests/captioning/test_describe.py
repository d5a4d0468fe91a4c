"""The captioning stage, from pictures on disk to descriptions: many at once, in order where that matters, failures apart."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.captioning.keyframes import DIRECT, PROMPTS, Scripted, Told, describe, describer, keyframe, keyframes, paper, settle, tasks_of
from vip import files, store
from vip.captioning import describe as stage
from vip.captioning.describe import AHEAD, APART_S, failure_of
from vip.errors import EngineError, InputError, ReplyError, StoreError
from vip.llm.budget import Usage
from vip.models.fake import FakeEngine
from vip.models.offline import OfflineEngine
from vip.protocols import EngineCapabilities, Picture, Reply, Request
from vip.records import Description, Image
from vip.store import KeyframePicture


class Measuring(Scripted):
    """Gets what is measured, as the engine `offline` does."""

    capabilities = EngineCapabilities(measures=True, caches=False)


def at(request: Request, time_s: float) -> bool:
    return f"{time_s:.1f} s" in request.prompt


# ---------------------------------------------------------------- every engine


@pytest.mark.parametrize("engine", [FakeEngine(None), OfflineEngine(None), Scripted()], ids=["fake", "offline", "scripted"])
def test_each_keyframe_gets_a_caption_famous_and_the_calls_that_made_them(engine: Any, tmp_path: Path) -> None:
    told = describe(keyframes(tmp_path, 5), engine)
    assert told.described == [f"v:{number:04d}" for number in range(5)]
    assert told.over == 5
    assert told.failures == []
    for row in told.descriptions:
        assert (row.engine, row.recipe, row.language) == (engine.name, "direct", "English")
        assert row.dense_caption
        assert row.grounding[0].startswith("person, 0.90, left third")
        (call,) = row.calls
        assert (call.prompt, call.engine) == ("direct", engine.name)
        assert call.model
        assert (call.prompt_version, call.prompt_sha256) == (PROMPTS["direct"].version, PROMPTS["direct"].sha256)
        assert call.latency_s >= 0
        assert datetime.fromisoformat(call.created_utc).utcoffset() is not None
        assert call.usd is None
        assert Description.model_validate_json(row.model_dump_json()) == row


# ---------------------------------------------------------------- what is measured, for engines that do not see


def test_each_keyframe_is_compared_with_the_one_before_it(tmp_path: Path) -> None:
    items = keyframes(tmp_path, 3, suffix="png")
    items[2].path.write_bytes(items[1].path.read_bytes())
    engine = Measuring()
    describe(items, engine)
    changes = {request.facts.time_s: request.facts.change for request in engine.requests if request.facts}
    assert changes[0.0] is None
    assert [change.kind if change else None for change in (changes[1.5], changes[3.0])] == ["new view", "same view"]


def test_keyframes_of_two_videos_are_not_compared(tmp_path: Path) -> None:
    first, second = keyframes(tmp_path, 2)
    engine = Measuring()
    describe([first, KeyframePicture(second.record.model_copy(update={"video_id": "w"}), tmp_path)], engine)
    assert [request.facts.change for request in engine.requests if request.facts] == [None, None]


def test_the_one_after_a_picture_that_is_gone_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    items = keyframes(tmp_path, 3)
    items[1].path.unlink()
    engine = Measuring()
    told = describe(items, engine)
    assert told.described == ["v:0000", "v:0002"]
    assert [request.facts.change for request in engine.requests if request.facts] == [None, None]


def test_what_is_done_is_not_described_again_but_still_compared_with(tmp_path: Path) -> None:
    items = keyframes(tmp_path, 2, suffix="png")
    items[1].path.write_bytes(items[0].path.read_bytes())
    (done,) = describe(items[:1], Measuring()).descriptions
    engine = Measuring()
    assert describe(items, engine, known={"v:0000": done}).described == ["v:0001"]
    (request,) = engine.requests
    assert request.facts is not None
    assert request.facts.change is not None
    assert request.facts.change.kind == "same view"


def test_what_is_measured_goes_in_order_and_each_picture_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_picture = store.read_picture

    def counted(path: Path, *, inside: Path) -> Image:
        read.append(path.name)
        return read_picture(path, inside=inside)

    monkeypatch.setattr(store, "read_picture", counted)
    describe(keyframes(tmp_path, 8), Measuring())
    assert read == [f"{number:04d}.jpg" for number in range(8)]


# ---------------------------------------------------------------- answers and pictures that are no good


def test_a_refusal_costs_its_keyframe_and_the_others_go_on(tmp_path: Path) -> None:
    def answer(request: Request, number: int) -> Any:
        if at(request, 1.5):
            raise ReplyError("I refuse.", kind="refusal")
        return DIRECT

    told = describe(keyframes(tmp_path, 4), Scripted(answer))
    assert told.described == ["v:0000", "v:0002", "v:0003"]
    assert [(row.item, row.kind, row.message, row.exit_code) for row in told.failures] == [("v:0001", "refusal", "I refuse.", 6)]
    assert told.over == 4


@pytest.mark.parametrize("damage", ["missing", "cut", "folder"])
@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_a_picture_that_cannot_be_read_costs_its_keyframe(damage: str, suffix: str, tmp_path: Path) -> None:
    items = keyframes(tmp_path, 3, suffix=suffix)
    data = items[1].path.read_bytes()
    items[1].path.unlink()
    if damage == "cut":
        items[1].path.write_bytes(data[:40])
    elif damage == "folder":
        items[1].path.mkdir()
    engine = Scripted()
    told = describe(items, engine)
    assert told.described == ["v:0000", "v:0002"]
    (failure,) = told.failures
    assert (failure.item, failure.kind, failure.exit_code) == ("v:0001", "unreadable", 3)
    assert len(engine.requests) == 2


def test_each_picture_is_read_once_however_often_it_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_bytes = files.read_bytes

    def counted(path: Path, **bounds: Any) -> bytes:
        read.append(path.name)
        return read_bytes(path, **bounds)

    items = keyframes(tmp_path, 4)
    monkeypatch.setattr(files, "read_bytes", counted)
    engine = Scripted(lambda request, number: "{}" if number <= 2 else paper(request, number))
    describe(items, engine, recipe="paper")
    assert sorted(read) == [f"{number:04d}.jpg" for number in range(4)]
    assert len(engine.requests) >= 12


# ---------------------------------------------------------------- engines that cannot be asked


def test_an_engine_that_cannot_be_asked_stops_everything_quietly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine, told = FakeEngine("auth"), Told()
    with caplog.at_level(logging.DEBUG, "asyncio"), pytest.raises(EngineError, match="fake engine does not accept"):
        describe(keyframes(tmp_path, 30), engine, told)
    assert told == Told()
    assert 1 <= len(engine.requests) < 30
    assert engine.closed
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_was_described_before_the_engine_failed_was_reported(tmp_path: Path) -> None:
    def answer(request: Request, number: int) -> Any:
        if number > 20:
            raise EngineError("The server is gone.")
        return DIRECT

    told = Told()
    with pytest.raises(EngineError, match="The server is gone"):
        describe(keyframes(tmp_path, 30), Scripted(answer), told, context=1)
    assert told.described == [f"v:{number:04d}" for number in range(20)]
    assert len(told.failures) < 3


def test_a_full_disk_stops_everything(tmp_path: Path) -> None:
    class Full(list[Description]):
        def append(self, row: Description) -> None:
            raise StoreError("No space left.")

    with pytest.raises(StoreError, match="No space left"):
        describe(keyframes(tmp_path, 6), FakeEngine(None), Told(descriptions=Full()))


def test_a_bug_is_not_taken_for_a_failure_of_a_keyframe(tmp_path: Path) -> None:
    def answer(request: Request, number: int) -> Any:
        raise ZeroDivisionError

    told = Told()
    with pytest.raises(ZeroDivisionError):
        describe(keyframes(tmp_path, 3), Scripted(answer), told)
    assert told.failures == []


def test_nothing_is_asked_where_nothing_is_left_to_do(tmp_path: Path) -> None:
    engine = Scripted(paper)
    assert describe([], engine, topic="Surfing") == Told()
    assert engine.requests == []


# ---------------------------------------------------------------- order, and how many at once


def test_each_is_told_the_captions_before_it_and_comes_after_them(tmp_path: Path) -> None:
    engine = Scripted(lambda request, number: {**DIRECT, "dense_caption": f"Caption {number}."})
    told = describe(keyframes(tmp_path, 5), engine, context=2)
    assert [row.keyframe_id for row in told.descriptions] == [f"v:{number:04d}" for number in range(5)]
    told_before = [[number for number in range(1, 6) if f"- Caption {number}." in request.prompt] for request in engine.requests]
    assert told_before == [[], [1], [1, 2], [2, 3], [3, 4]]
    assert "- Caption 3.\n- Caption 4." in engine.requests[4].prompt


def test_without_a_context_no_caption_goes_into_another_question(tmp_path: Path) -> None:
    engine = Scripted(lambda request, number: {**DIRECT, "dense_caption": f"Caption {number}."})
    describe(keyframes(tmp_path, 3), engine)
    assert not any("Caption" in request.prompt for request in engine.requests)


def test_after_one_that_failed_the_next_is_told_of_those_before(tmp_path: Path) -> None:
    def answer(request: Request, number: int) -> Any:
        if at(request, 1.5):
            raise ReplyError("I refuse.", kind="content_filter")
        return {**DIRECT, "dense_caption": f"Caption {number}."}

    engine = Scripted(answer)
    told = describe(keyframes(tmp_path, 3), engine, context=1)
    assert told.described == ["v:0000", "v:0002"]
    assert "- Caption 1." in engine.requests[2].prompt


def test_what_was_described_before_is_told_after_a_resume_and_not_asked_again(tmp_path: Path) -> None:
    items = keyframes(tmp_path, 4)
    known = {row.keyframe_id: row for row in describe(items[:3], Scripted(), context=1).descriptions}
    known["v:0002"] = known["v:0002"].model_copy(update={"dense_caption": "From an earlier run."})
    engine = Scripted()
    assert describe(items, engine, known=known, context=1).described == ["v:0003"]
    (request,) = engine.requests
    assert "- From an earlier run." in request.prompt


class Counting(Scripted):
    """Notes how many are on their way at once, and how many pictures there are in memory."""

    count = now = most = most_pictures = before = 0

    async def generate(self, request: Request) -> Reply:
        self.count, self.now = self.count + 1, self.now + 1
        self.most = max(self.most, self.now)
        if self.count % 150 == 0:
            self.most_pictures = max(self.most_pictures, pictures_alive() - self.before)
        try:
            await asyncio.sleep(1)
            return await super().generate(request)
        finally:
            self.now -= 1
            self.requests.clear()


def test_what_is_measured_goes_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(work: Callable[..., Any], *args: Any) -> Any:  # made-up time does not wait for threads
        return work(*args)

    monkeypatch.setattr(asyncio, "to_thread", at_once)
    engine = Counting(measures=True)
    describe(keyframes(tmp_path, 5), engine)
    assert engine.most == 1


def pictures_alive() -> int:
    gc.collect()
    return sum(type(one) is Picture for one in gc.get_objects())


@pytest.mark.slow
@pytest.mark.usefixtures("_new_objects_only")
def test_as_many_are_on_their_way_as_the_limit_says_and_pictures_do_not_pile_up(tmp_path: Path) -> None:
    one = keyframe(tmp_path, 0)
    items = [KeyframePicture(one.record.model_copy(update={"id": f"v:{number:04d}", "time_s": number}), tmp_path) for number in range(1500)]
    engine = Counting()
    engine.before = pictures_alive()
    told = describe(items, engine)
    assert len(told.descriptions) == 1500
    assert 8 < engine.most <= 128
    assert 8 < engine.most_pictures <= 128 + AHEAD + 20


def test_the_first_requests_go_out_one_after_another_so_that_none_waits_until_all_are_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", noted)
    describe(keyframes(tmp_path, 6), Scripted())
    assert slept.count(APART_S) == 6


def test_pictures_are_read_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    read_picture = store.read_picture

    def noted(path: Path, *, inside: Path) -> Image:
        threads.add(threading.get_ident())
        return read_picture(path, inside=inside)

    monkeypatch.setattr(store, "read_picture", noted)
    describe(keyframes(tmp_path, 3, suffix="png"), Scripted())
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.slow
def test_who_leaves_the_loop_leaves_nothing_running(tmp_path: Path) -> None:
    engine = Counting()

    async def go() -> None:
        tasks = tasks_of(keyframes(tmp_path, 20), {})
        async with aclosing(stage.describe(describer(engine), ([task] for task in tasks), Usage())) as outcomes:
            async for _ in outcomes:
                break
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert engine.now == 0

    asyncio.run(go())


def test_the_next_of_a_sequence_begins_when_the_one_before_was_handled(tmp_path: Path) -> None:
    engine = Scripted()

    async def go() -> None:
        tasks = tasks_of(keyframes(tmp_path, 3), {})
        async with aclosing(stage.describe(describer(engine, context=1), iter([tasks]), Usage())) as outcomes:
            async for _ in outcomes:
                asked = len(engine.requests)
                await settle()
                assert len(engine.requests) == asked

    asyncio.run(go())
    assert len(engine.requests) == 3


def test_what_is_used_is_counted_for_the_folder_and_the_topic_for_the_first(tmp_path: Path) -> None:
    usages = Usage(), Usage()

    async def go() -> None:
        tasks = [replace(task, usage=usages[1]) for task in tasks_of(keyframes(tmp_path, 3), {})]
        async for _ in stage.describe(describer(Scripted(paper), recipe="paper", topic="Surfing"), ([task] for task in tasks), usages[0]):
            pass

    asyncio.run(go())
    assert [usage.requests for usage in usages] == [1, 9]


def test_what_fails_is_told_with_its_kind() -> None:
    assert failure_of("a", ReplyError("x", kind="length")).kind == "length"
    assert failure_of("a", ReplyError("x")).kind == "caption"
    assert failure_of("a", InputError("x")).exit_code == 3
