"""The process that asks for captions, in made-up time and with a captioner that does as it is told."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.corpus.making import sample
from tests.llm.clockwork import Clockwork
from vip.config import CaptionSettings
from vip.corpus.workers import caption_server
from vip.corpus.workers.caption_client import (
    CaptionServerConfig,
    CaptionTask,
    CostSoFar,
    Described,
    ExpectedKeyframes,
    KeyframesInBatch,
    ServerAnswered,
    ServerPaused,
    SubmitBatches,
)
from vip.corpus.workers.caption_server import DESCRIBING, CaptionServer, _cost, _receive, _report_cost, _send_pause, main
from vip.dataset.parts import pack, read_part
from vip.errors import BudgetError, StoreError
from vip.llm.budget import Budget, Usage
from vip.llm.outage import OutagePause
from vip.records import Failure
from vip.store import FAILURES, write_failures

MOST_LOOKS = 100  # of a loop that does not wait


class Batches:
    """Collects questions; each batch that is handed in is answered at once, but for the looks before."""

    def __init__(self) -> None:
        self.looks: list[float] = []
        self.handed_in: list[float] = []
        self.waiting: set[bytes] = set()
        self.news: list[float] = []
        """Times from which on a look brings something new."""

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def hand_in(self) -> None:
        self.handed_in.append(asyncio.get_running_loop().time())

    async def look(self) -> bool:
        now = asyncio.get_running_loop().time()
        self.looks.append(now)
        assert len(self.looks) < MOST_LOOKS
        await asyncio.sleep(0)
        if self.news and now >= self.news[0]:
            self.news.pop(0)
            self.waiting.clear()
            return True
        return False

    def waits_for(self, questions: frozenset[bytes]) -> bool:
        return bool(questions & self.waiting)


class Captioner:
    """Describes nothing; takes 10 s for each video."""

    def __init__(self, *, width: int = 3, batches: Batches | None = None) -> None:
        self.width, self.batches, self.has_answered = width, batches, False
        self.begun: list[tuple[str, float, str | None]] = []
        self.spent: list[Usage | None] = []
        self.failing: dict[str, int] = {}
        self.costs: list[int] = []
        self.collects_s = 0.0
        """That it takes until the questions of a video are collected for a batch."""

    def cost(self, folder: Path, keyframes: int) -> str:
        self.costs.append(keyframes)
        return f"{keyframes} requests"

    async def caption(self, folder: Path, topic: str | None, spent: Usage | None = None) -> frozenset[bytes]:
        key, now = folder.name, asyncio.get_running_loop().time()
        self.begun.append((key, now, topic))
        self.spent.append(spent)
        if self.batches is not None and [one[0] for one in self.begun].count(key) == 1:
            await asyncio.sleep(self.collects_s)
            self.batches.waiting.add(key.encode())
            return frozenset({key.encode()})
        await asyncio.sleep(10.0)
        failed = [Failure(item=f"{key}:{n:04d}", kind="refusal", message="no", exit_code=6) for n in range(1, self.failing.get(key, 0) + 1)]
        write_failures(folder / FAILURES, failed)
        return frozenset()


@contextmanager
def at_work(home: Path, captioner: Captioner) -> Iterator[tuple[CaptionServer, Any]]:
    """A desk, and the driver's end of its pipe."""
    here, there = Pipe()
    with here, there:
        yield CaptionServer(there, home, captioner, Budget()), here  # type: ignore[arg-type]


def part(home: Path, key: str, count: int = 3) -> CaptionTask:
    path = home / f"{key}.tar"
    pack(path, sample(key, count, described=False))
    return CaptionTask(key, path, f"about {key}")


def said(pipe: Any, kind: type) -> list[Any]:
    found = []
    while pipe.poll():
        if isinstance(message := pipe.recv(), kind):
            found.append(message)
    return found


def served(desk: CaptionServer, seconds: float) -> None:
    async def work() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await desk.serve()

    with Clockwork() as clock:
        clock.run(work())


def in_made_up_time(work: Coroutine[Any, Any, None]) -> None:
    with Clockwork() as clock:
        clock.run(work)


@pytest.fixture(autouse=True)
def _without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """They need real time."""

    async def at_once(what: Callable[..., Any], *about: Any) -> Any:
        return what(*about)

    monkeypatch.setattr("asyncio.to_thread", at_once)


# ---------------------------------------------------------------- one by one


def test_so_many_videos_are_described_at_once_as_their_keyframes_find_something_to_do(tmp_path: Path) -> None:
    captioner = Captioner(width=6)
    with at_work(tmp_path, captioner) as (desk, driver):
        for key in "abc":
            driver.send(part(tmp_path, key))
        served(desk, 60.0)
        done = said(driver, Described)
    assert [(key, round(begun), topic) for key, begun, topic in captioner.begun] == [
        ("a", 0, "about a"),
        ("b", 0, "about b"),
        ("c", 10, "about c"),
    ], "three keyframes are less than six, and those of two videos are not"
    assert [one.key for one in done] == ["a", "b", "c"]
    assert list((tmp_path / "describing").iterdir()) == [], "what was unpacked goes"


@pytest.mark.parametrize("width", [0, 1])
def test_a_video_with_more_keyframes_than_there_is_room_for_has_its_turn_too(width: int, tmp_path: Path) -> None:
    captioner = Captioner(width=width)
    with at_work(tmp_path, captioner) as (desk, driver):
        driver.send(part(tmp_path, "a"))
        served(desk, 60.0)
        assert len(said(driver, Described)) == 1


@pytest.mark.parametrize(("failed", "count", "failure"), [(0, 3, None), (2, 3, None), (3, 3, "no"), (1, 1, "no")])
def test_a_video_fails_when_not_one_keyframe_could_be_described(failed: int, count: int, failure: str | None, tmp_path: Path) -> None:
    captioner = Captioner()
    captioner.failing["a"] = failed
    with at_work(tmp_path, captioner) as (desk, driver):
        wanted = part(tmp_path, "a", count)
        driver.send(wanted)
        served(desk, 60.0)
        (done,) = said(driver, Described)
    assert done.undescribed == tuple((f"a:{number:04d}", "refusal", "no") for number in range(1, failed + 1))
    assert (done.failure, done.size_bytes) == (failure, wanted.part.stat().st_size)
    assert sum(frame.failure is not None for frame in read_part(wanted.part).frames) == failed, "the part has it, too"


def test_what_it_will_cost_is_said_once(tmp_path: Path) -> None:
    captioner = Captioner()
    with at_work(tmp_path, captioner) as (desk, driver):
        driver.send(ExpectedKeyframes(36))
        for key in "ab":
            driver.send(part(tmp_path, key))
        served(desk, 60.0)
        assert said(driver, str) == ["36 requests"]
    assert captioner.costs == [36]


# ---------------------------------------------------------------- through the Batch API


def test_a_batch_goes_when_it_is_to_go_and_the_parts_go_on_when_its_answers_are_there(tmp_path: Path) -> None:
    captioner = Captioner(batches=(batches := Batches()))
    batches.news = [100.0]
    with at_work(tmp_path, captioner) as (desk, driver):
        for key in "ab":
            driver.send(part(tmp_path, key))
        driver.send(SubmitBatches())
        served(desk, 200.0)
        told = said(driver, KeyframesInBatch | Described)  # type: ignore[arg-type]
    assert [message.key for message in told] == ["a", "b", "a", "b"]
    assert [type(message) for message in told] == [KeyframesInBatch, KeyframesInBatch, Described, Described]
    assert [round(time) for time in batches.handed_in] == [0]
    assert captioner.spent[0] is captioner.spent[2], "what was used before counts with the rest"
    assert desk._in_batch == {}


def test_a_batch_does_not_go_before_the_questions_of_all_parts_are_in_it(tmp_path: Path) -> None:
    captioner = Captioner(batches=(batches := Batches()))
    captioner.collects_s = 25.0
    with at_work(tmp_path, captioner) as (desk, driver):
        driver.send(part(tmp_path, "a"))
        driver.send(SubmitBatches())
        served(desk, 60.0)
    assert [round(time) for time in batches.handed_in] == [25]


def test_batches_are_looked_at_less_and_less_often_but_at_least_once_a_minute(tmp_path: Path) -> None:
    captioner = Captioner(batches=(batches := Batches()))
    batches.news = [200.0]
    with at_work(tmp_path, captioner) as (desk, _):
        served(desk, 300.0)
    assert [round(time) for time in batches.looks] == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 244, 246, 250, 258, 274]


def test_what_is_to_go_does_not_wait_for_the_next_look(tmp_path: Path) -> None:
    captioner = Captioner(batches=(batches := Batches()))

    async def later() -> None:
        await asyncio.sleep(100.0)
        driver.send(SubmitBatches())

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(later())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(120.0):
                    await desk.serve()

    with at_work(tmp_path, captioner) as (desk, driver), Clockwork() as clock:
        clock.run(work())
    assert [round(time) for time in batches.handed_in] == [100]
    assert [round(time) for time in batches.looks] == [0, 1, 3, 7, 15, 31, 63, 100, 101, 103, 107, 115]


def test_a_waiting_server_lets_other_tasks_run_though_something_changed_before(tmp_path: Path) -> None:
    with at_work(tmp_path, Captioner()) as (desk, _):

        async def work() -> None:
            desk._change.set()
            await desk._wait(30.0)
            assert round(asyncio.get_running_loop().time()) == 30

        in_made_up_time(asyncio.wait_for(work(), 60.0))


# ---------------------------------------------------------------- the pipe


def test_after_a_message_nothing_listens_to_the_pipe_any_more() -> None:
    here, there = Pipe()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.01, here.send, "later")
        assert await _receive(there) == "later"
        assert not loop.remove_reader(there.fileno())

    with here, there:
        asyncio.run(work())


def test_what_was_spent_is_told_when_it_changes_and_that_a_server_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    ledger, captioner = Budget(), SimpleNamespace(has_answered=False)

    async def work() -> None:
        task = asyncio.create_task(_report_cost(SimpleNamespace(send=told.append), ledger, captioner))  # type: ignore[arg-type]
        await asyncio.sleep(2.0)
        ledger.usage = Usage(usd=1.0, unsure_usd=0.5, tokens_in=3, tokens_out=4)
        captioner.has_answered = True
        await asyncio.sleep(2.0)
        task.cancel()

    in_made_up_time(work())
    assert told == [CostSoFar(0.0, 0), CostSoFar(1.5, 7), ServerAnswered()]
    assert _cost(ledger) == CostSoFar(1.5, 7), "what may have been spent counts"


def test_a_rest_is_told_to_the_driver_and_in_words() -> None:
    told: list[object] = []
    pipe: Any = SimpleNamespace(send=told.append)
    rest = OutagePause(1000.0, 90.0, "It is busy.")
    _send_pause(pipe, rest)
    _send_pause(pipe, None)
    assert told[:2] == [ServerPaused(rest), "It is busy. Captions rest for 1.5 min; all else goes on."]
    assert told[2:] == [ServerPaused(None), "The captions server answers again, and captions go on."]


def test_what_an_earlier_process_unpacked_is_unpacked_anew(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "left").touch()
    assert caption_server._unpack(part(tmp_path, "a").part, tmp_path / "folder") == 3
    assert not (tmp_path / "folder" / "left").exists()


class ScriptedPipe:
    """Says what the process is to do, and keeps what it answers."""

    def __init__(self, config: CaptionServerConfig) -> None:
        self.config, self.sent = config, list[object]()

    def recv(self) -> CaptionServerConfig:
        return self.config

    def send(self, message: object) -> None:
        self.sent.append(message)


def run_main(home: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException | None = None) -> tuple[ScriptedPipe, list[Budget]]:
    """The process with a server that ends with this error; what it sends, and the budget that it had."""
    pipe, budgets = ScriptedPipe(CaptionServerConfig(CaptionSettings(), home, CostSoFar(1.25, 300), 1.0)), list[Budget]()

    async def serve(_: object, __: object, budget: Budget) -> None:
        budgets.append(budget)
        if error is not None:
            raise error

    monkeypatch.setattr(caption_server, "child_pipe", lambda fd: nullcontext(pipe))
    monkeypatch.setattr(caption_server, "_serve", serve)
    main("0")
    return pipe, budgets


def test_a_process_that_takes_the_place_of_another_begins_with_its_cost_and_without_what_it_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / DESCRIBING / "v0").mkdir(parents=True)
    pipe, (budget,) = run_main(tmp_path, monkeypatch)
    assert _cost(budget) == CostSoFar(1.25, 300)
    assert (list(tmp_path.iterdir()), pipe.sent) == ([], [])


def test_an_error_of_the_engine_goes_to_the_driver_and_the_process_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = BudgetError("It is spent.")
    assert run_main(tmp_path, monkeypatch, spent)[0].sent == [spent]
    assert run_main(tmp_path, monkeypatch, ExceptionGroup("some", [spent, ValueError("x")]))[0].sent == [spent]


def test_a_full_disk_goes_to_the_driver_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sent,) = run_main(tmp_path, monkeypatch, ExceptionGroup("some", [OSError(errno.ENOSPC, "No space left on device")]))[0].sent
    assert isinstance(sent, StoreError)
    assert str(sent) == "Descriptions cannot be kept: No space left on device. Mend that, and run the same command again."


@pytest.mark.parametrize("gone", [EOFError(), BrokenPipeError()])
def test_a_process_without_a_driver_ends_without_a_word(gone: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_main(tmp_path, monkeypatch, ExceptionGroup("some", [gone]))[0].sent == []


def test_an_error_of_the_program_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExceptionGroup, match="some"):
        run_main(tmp_path, monkeypatch, ExceptionGroup("some", [TypeError("a bug")]))
