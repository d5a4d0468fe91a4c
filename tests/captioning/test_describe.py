"""The captioning stage, from pictures on disk to descriptions, with every engine that ships."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.api_server import FAMOUS, ApiServer
from vip import store
from vip.captioning.describe import CONCURRENT, LONGEST_SIDE_PX, describe
from vip.errors import EngineError, ReplyError, StoreError, UsageError
from vip.models.fake import FakeEngine
from vip.models.offline import OfflineEngine
from vip.models.openai import OpenAIEngine
from vip.prompts import load_prompts
from vip.protocols import Engine, Reply, Request
from vip.records import Description, Detection, Failure, Image, Keyframe, Quality
from vip.store import KeyframePicture

PROMPTS = load_prompts()


@dataclass
class Told:
    """What the stage reported."""

    descriptions: list[Description] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    advanced: int = 0

    def advance(self) -> None:
        self.advanced += 1


def pictures(folder: Path, count: int, size: tuple[int, int] = (48, 64)) -> list[KeyframePicture]:
    random = np.random.default_rng(5)
    items = []
    for number in range(count):
        height, width = size
        image = random.integers(0, 256, (height, width, 3), np.uint8)
        store.write_picture(folder / f"{number:04d}.png", image)
        row = Keyframe(
            id=f"v:{number:04d}",
            video_id="v",
            time_s=number * 1.5,
            pts=number,
            image_path=f"{number:04d}.png",
            width_px=width,
            height_px=height,
            quality=Quality(sharpness=100, brightness=0.5, contrast=0.2),
            detections=(Detection(label="person", score=0.9, box_xyxy=(0, 0, 0.3, 1), source="test"),),
            candidate=number,
        )
        items.append(KeyframePicture(row, folder))
    return items


def run(items: list[KeyframePicture], engine: Engine, told: Told | None = None, done: frozenset[str] = frozenset()) -> Told:
    told = told or Told()

    async def go() -> None:
        try:
            await describe(
                items,
                engine,
                PROMPTS,
                detector_name="test",
                done=done,
                on_description=told.descriptions.append,
                on_failure=told.failures.append,
                advance=told.advance,
            )
        finally:
            await engine.close()

    asyncio.run(go())
    return told


class Scripted(FakeEngine):
    """A fake engine whose answers a test writes."""

    def __init__(self, answer: Callable[[Request, int], str]) -> None:
        super().__init__(None)
        self.answer = answer

    async def generate(self, request: Request) -> Reply:
        reply = await super().generate(request)
        return Reply(self.answer(request, len(self.requests)), model=reply.model)


# ---------------------------------------------------------------- every engine


@pytest.fixture(params=["offline", "fake", "openai"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    if request.param == "offline":
        yield OfflineEngine(None)
    elif request.param == "fake":
        yield FakeEngine(None)
    else:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        with ApiServer() as server:
            yield OpenAIEngine(None, base_url=server.base_url)


def test_each_keyframe_gets_a_caption_famous_and_the_calls_that_made_them(engine: Engine, tmp_path: Path) -> None:
    told = run(pictures(tmp_path, 5), engine)
    assert sorted(row.keyframe_id for row in told.descriptions) == [f"v:{number:04d}" for number in range(5)]
    assert told.advanced == 5
    assert told.failures == []
    for row in told.descriptions:
        assert row.engine == engine.name
        assert row.dense_caption
        assert row.grounding[0].startswith("person, 0.90, left third")
        assert [call.prompt for call in row.calls] == ["describe", "structure"]
        for call in row.calls:
            assert call.engine == engine.name
            assert call.model
            assert (call.prompt_version, call.prompt_sha256) == (PROMPTS[call.prompt].version, PROMPTS[call.prompt].sha256)
            assert call.latency_s >= 0
            assert datetime.fromisoformat(call.created_utc).utcoffset() is not None
            assert call.usd is None
        assert Description.model_validate_json(row.model_dump_json()) == row


# ---------------------------------------------------------------- what the engine is given


def test_famous_is_made_from_the_dense_caption(tmp_path: Path) -> None:
    engine = Scripted(lambda request, _: json.dumps(FAMOUS) if request.schema else "A DENSE CAPTION")
    (row,) = run(pictures(tmp_path, 1), engine).descriptions
    first, second = engine.requests
    assert (first.stage, second.stage) == ("describe", "structure")
    assert "A DENSE CAPTION" in second.prompt
    assert second.pictures == ()
    assert row.famous.focus == "a test"


def test_the_prompt_has_the_time_and_the_measured_facts(tmp_path: Path) -> None:
    engine = FakeEngine(None)
    run(pictures(tmp_path, 2), engine)
    asked = next(request for request in engine.requests if request.facts.time_s == 1.5 and request.stage == "describe")
    assert "1.5 s" in asked.prompt
    assert "- person, 0.90, left third" in asked.prompt
    assert "- dominant colours:" in asked.prompt


def test_large_pictures_are_sent_smaller_as_jpeg(tmp_path: Path) -> None:
    engine = FakeEngine(None)
    run(pictures(tmp_path, 1, (300, 3000)), engine)
    (picture,) = engine.requests[0].pictures
    assert picture.media_type == "image/jpeg"
    decoded = cv2.imdecode(np.frombuffer(picture.data, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    assert decoded.shape == (102, LONGEST_SIDE_PX, 3)


def test_text_from_a_model_is_never_a_template(tmp_path: Path) -> None:
    hostile = "{facts} {caption} {0} %s ${x} {{y}}"
    engine = Scripted(lambda request, _: json.dumps(FAMOUS | {"focus": hostile}) if request.schema else hostile)
    (row,) = run(pictures(tmp_path, 1), engine).descriptions
    assert row.dense_caption == row.famous.focus == hostile
    assert hostile in engine.requests[1].prompt


def test_each_keyframe_is_compared_with_the_one_before_it(tmp_path: Path) -> None:
    items = pictures(tmp_path, 3)
    (tmp_path / "0002.png").write_bytes((tmp_path / "0001.png").read_bytes())
    engine = FakeEngine(None)
    run(items, engine)
    changes = {request.facts.time_s: request.facts.change for request in engine.requests}
    assert changes[0.0] is None
    assert [change.kind if change else None for change in (changes[1.5], changes[3.0])] == ["new view", "same view"]


def test_keyframes_of_two_videos_are_not_compared(tmp_path: Path) -> None:
    first, second = pictures(tmp_path, 2)
    engine = FakeEngine(None)
    run([first, KeyframePicture(second.record.model_copy(update={"video_id": "w"}), tmp_path)], engine)
    assert {request.facts.change for request in engine.requests} == {None}


# ---------------------------------------------------------------- answers that are no good


def test_an_answer_outside_the_schema_is_asked_for_once_more(tmp_path: Path) -> None:
    def answer(request: Request, number: int) -> str:
        return "A caption." if request.schema is None else json.dumps(FAMOUS) if "could not be used" in request.prompt else '{"focus": 3}'

    engine = Scripted(answer)
    (row,) = run(pictures(tmp_path, 1), engine).descriptions
    assert row.famous.focus == "a test"
    assert [call.prompt for call in row.calls] == ["describe", "structure", "structure"]
    assert "focus: Input should be a valid string" in engine.requests[-1].prompt


@pytest.mark.parametrize("behaviour", ["wrong_schema", "half_reply"])
def test_answers_that_never_fit_cost_their_keyframe_only(behaviour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ApiServer("ok", "ok", behaviour, behaviour, behaviour, "ok") as server:
        told = run_one_by_one(pictures(tmp_path, 3), OpenAIEngine("tiny-vlm", base_url=server.base_url))
    assert [row.keyframe_id for row in told.descriptions] == ["v:0000", "v:0002"]
    (failure,) = told.failures
    assert (failure.item, failure.kind, failure.exit_code) == ("v:0001", "ReplyError", 6)
    assert "outside the schema" in failure.message
    assert told.advanced == 3


def run_one_by_one(items: list[KeyframePicture], engine: Engine) -> Told:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vip.captioning.describe.CONCURRENT", 1)
        return run(items, engine)


def test_empty_fields_become_not_determined(tmp_path: Path) -> None:
    gaps = FAMOUS | {"mood": "  ", "setting": "", "objects": ["", " box "]}
    engine = Scripted(lambda request, _: json.dumps(gaps) if request.schema else "A caption.")
    (row,) = run(pictures(tmp_path, 1), engine).descriptions
    assert (row.famous.mood, row.famous.setting, row.famous.objects) == ("not determined", "not determined", ("box",))


def test_a_refusal_costs_its_keyframe_and_the_others_go_on(tmp_path: Path) -> None:
    def answer(request: Request, number: int) -> str:
        if request.facts.time_s == 1.5:
            raise ReplyError("I refuse.")
        return json.dumps(FAMOUS) if request.schema else "A caption."

    told = run(pictures(tmp_path, 4), Scripted(answer))
    assert {row.keyframe_id for row in told.descriptions} == {"v:0000", "v:0002", "v:0003"}
    assert [(failure.item, failure.message) for failure in told.failures] == [("v:0001", "I refuse.")]
    assert told.advanced == 4


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_picture_that_cannot_be_read_costs_its_keyframe(damage: str, tmp_path: Path) -> None:
    items = pictures(tmp_path, 3)
    if damage == "missing":
        items[1].path.unlink()
    else:
        items[1].path.write_bytes(b"no picture")
    engine = FakeEngine(None)
    told = run(items, engine)
    assert sorted(row.keyframe_id for row in told.descriptions) == ["v:0000", "v:0002"]
    (failure,) = told.failures
    assert (failure.item, failure.kind, failure.exit_code) == ("v:0001", "InputError", 3)
    assert {request.facts.change for request in engine.requests} == {None}, "there is nothing to compare the third with"


# ---------------------------------------------------------------- engines that cannot be asked


def test_an_engine_that_cannot_be_asked_stops_everything_quietly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine, told = FakeEngine("auth"), Told()
    with caplog.at_level(logging.DEBUG, "asyncio"), pytest.raises(EngineError, match="fake engine does not accept"):
        run(pictures(tmp_path, 30), engine, told)
    assert told == Told()
    assert 1 <= len(engine.requests) <= 2 * CONCURRENT
    assert engine.closed
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_was_described_before_the_engine_failed_was_reported(tmp_path: Path) -> None:
    def answer(request: Request, number: int) -> str:
        if request.facts.time_s == 7.5:
            raise EngineError("The server is gone.")
        return json.dumps(FAMOUS) if request.schema else "A caption."

    told = Told()
    with pytest.raises(EngineError, match="The server is gone"):
        run(pictures(tmp_path, 30), Scripted(answer), told)
    assert told.descriptions
    assert told.advanced == len(told.descriptions) < 30


def test_a_full_disk_stops_everything(tmp_path: Path) -> None:
    class Full(list[Description]):
        def append(self, row: Description) -> None:
            raise StoreError("No space left.")

    with pytest.raises(StoreError, match="No space left"):
        run(pictures(tmp_path, 6), FakeEngine(None), Told(descriptions=Full()))


def test_a_missing_prompt_is_named() -> None:
    nothing = Told()
    work = describe(
        [], FakeEngine(None), {}, detector_name=None, on_description=nothing.descriptions.append, on_failure=nothing.failures.append
    )
    with pytest.raises(UsageError, match=r"describe\.md"):
        asyncio.run(work)


# ---------------------------------------------------------------- resuming, concurrency, memory


def test_what_is_done_is_not_asked_again_but_still_compared_with(tmp_path: Path) -> None:
    items = pictures(tmp_path, 3)
    (tmp_path / "0001.png").write_bytes((tmp_path / "0000.png").read_bytes())
    engine = FakeEngine(None)
    told = run(items, engine, done=frozenset({"v:0000", "v:0002"}))
    assert [row.keyframe_id for row in told.descriptions] == ["v:0001"]
    assert told.advanced == 1
    change = engine.requests[0].facts.change
    assert change is not None
    assert change.kind == "same view"


def test_at_most_four_are_on_their_way_and_no_picture_is_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    lock = threading.Lock()
    read_picture = store.read_picture

    def counted(path: Path) -> Image:
        with lock:
            read.append(path)
        return read_picture(path)

    monkeypatch.setattr(store, "read_picture", counted)

    class Slow(FakeEngine):
        now = most = over = ahead = 0

        async def generate(self, request: Request) -> Reply:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.005)
            self.now -= 1
            self.over += request.stage == "structure"
            self.ahead = max(self.ahead, len(read) - self.over)
            return await super().generate(request)

    engine = Slow(None)
    run(pictures(tmp_path, 20), engine)
    assert 1 < engine.most <= CONCURRENT
    assert engine.ahead <= CONCURRENT + 1
    assert len(read) == 20, "each picture is read once"
