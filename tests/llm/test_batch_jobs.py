"""Questions in batches, through the real library against a real server: nothing is lost, nothing is paid twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from tests.api_server import ROOT, ApiServer
from tests.llm.clockwork import Clockwork
from vip import user_state
from vip.errors import BusyError, EngineError, OutageError, ReplyError, StoreError, VipError
from vip.llm.batch_files import BatchFolder, BatchJobList
from vip.llm.batch_jobs import BatchJob, BatchJobs, status
from vip.models.openai.batch_api import OpenAIBatches
from vip.models.openai.engine import OpenAIEngine
from vip.models.openai.errors import ServerIdentity
from vip.protocols import BatchState, Reply, Request

SCHEMA = {"title": "One", "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def request(number: int, filler: int = 0) -> Request:
    return Request("describe", f"Name picture {number:012x}. {'.' * filler}", schema=SCHEMA)


def named(number: int) -> str:
    """What the server answers to `request(number)`."""
    return json.dumps({"name": f"name of picture {number:012x}"})


class Collected(dict[str, Any]):
    """Texts of the answers by key, or the errors; how often each came."""

    def __init__(self) -> None:
        self.times: list[str] = []

    async def take(self, key: str, answer: Reply | VipError) -> None:
        self.times.append(key)
        self[key] = answer.text if isinstance(answer, Reply) else answer


def collect(
    server: ApiServer,
    folder: Path,
    numbers: Iterable[int] = (),
    *,
    take: Callable[[str, Reply | VipError], Awaitable[None]] | None = None,
    on_status: Callable[[Any], None] = lambda jobs: None,
    api: type[OpenAIBatches] = OpenAIBatches,
    filler: int = 0,
    **limits: int,
) -> tuple[Collected, set[str]]:
    """Add the requests of these numbers and run the batches until each is answered or given up, as one process would."""
    collected, done = Collected(), set[str]()

    async def taking(key: str, answer: Reply | VipError) -> None:
        await (take or collected.take)(key, answer)
        done.add(key)

    async def go() -> set[str]:
        left: set[str] = set()
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)
        async with openai.AsyncOpenAI(api_key="a-key", base_url=server.base_url, max_retries=0) as client:
            jobs = api(client, ServerIdentity(server.base_url, "tiny-vlm", "a-key", 60), engine.build_body, engine.parse_reply)
            with BatchJobs(folder, jobs, **limits) as batches:
                async with asyncio.timeout(60):
                    while True:
                        for number in numbers:
                            if f"key-{number}" not in done | left:
                                batches.add(f"key-{number}", request(number, filler))
                        if not len(batches):
                            return left
                        left |= await batches.run(taking, poll_s=0.01, on_status=on_status)

    return collected, asyncio.run(go())


def expected(numbers: range) -> dict[str, str]:
    return {f"key-{number}": named(number) for number in numbers}


def rows_left(folder: Path) -> list[str]:
    return [path.name for path in (folder / "batches").iterdir() if path.name != "jobs.json"]


# ---------------------------------------------------------------- packing


@pytest.mark.slow
def test_every_answer_comes_once_and_to_its_key(tmp_path: Path) -> None:
    with ApiServer() as server:
        collected, left = collect(server, tmp_path, range(50))
        stats = server.stats()
    assert dict(collected) == expected(range(50))
    assert sorted(collected.times) == sorted(collected)
    assert left == set()
    assert (stats.chats, stats.rows, stats.most_answered) == (0, 50, 1)
    assert rows_left(tmp_path) == []


@pytest.mark.slow
def test_a_part_ends_at_so_many_rows(tmp_path: Path) -> None:
    with ApiServer(batch_rows=10) as server:
        collected, _ = collect(server, tmp_path, range(35), part_rows=10)
    assert dict(collected) == expected(range(35))
    assert [job.rows for job in status(tmp_path)] == [10, 10, 10, 5]


@pytest.mark.slow
def test_a_part_ends_before_it_is_too_large(tmp_path: Path) -> None:
    with ApiServer(file_bytes=5000) as server:
        collected, _ = collect(server, tmp_path, range(20), part_bytes=5000, filler=1000)
    assert dict(collected) == expected(range(20))
    sizes = [job.size_bytes for job in status(tmp_path)]
    assert max(sizes) <= 5000
    assert len(sizes) == 7  # three of about 1,500 bytes each


@pytest.mark.slow
def test_a_request_that_fits_no_batch_is_refused_and_the_others_go(tmp_path: Path) -> None:
    with ApiServer() as server:
        jobs = OpenAIEngine("tiny-vlm", base_url=server.base_url)
        api = OpenAIBatches(
            openai.AsyncOpenAI(api_key="a-key"), ServerIdentity(server.base_url, "m", "a-key", 60), jobs.build_body, jobs.parse_reply
        )
        with BatchJobs(tmp_path, api, part_bytes=1000) as batches:
            with pytest.raises(ReplyError, match="a batch takes 1000") as caught:
                batches.add("large", request(1, 2000))
            assert caught.value.kind == "too_large"
            batches.add("small", request(2))
            assert ("small" in batches, "large" in batches, len(batches)) == (True, False, 1)


@pytest.mark.slow
def test_a_key_that_is_waited_for_is_not_handed_in_again(tmp_path: Path) -> None:
    with ApiServer() as server:
        collected, _ = collect(server, tmp_path, range(5))
        twice, _ = collect(server, tmp_path, [*range(5), *range(5)])
        assert server.stats().rows == 10
    assert dict(collected) == dict(twice)


@pytest.mark.slow
def test_what_an_answer_leads_to_is_asked_in_the_next_batch(tmp_path: Path) -> None:
    found: dict[str, str] = {}

    async def go(server: ApiServer) -> None:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)
        async with openai.AsyncOpenAI(api_key="a-key", base_url=server.base_url, max_retries=0) as client:
            api = OpenAIBatches(client, ServerIdentity(server.base_url, "m", "a-key", 60), engine.build_body, engine.parse_reply)
            with BatchJobs(tmp_path, api) as batches:

                async def take(key: str, answer: Reply | VipError) -> None:
                    assert isinstance(answer, Reply)
                    found[key] = answer.text
                    if key.startswith("first"):
                        batches.add(key.replace("first", "second"), Request("structure", f"Of {answer.text}", schema=SCHEMA))

                for number in range(6):
                    batches.add(f"first-{number}", request(number))
                assert await batches.run(take, poll_s=0.01) == set()

    with ApiServer("500", "ok") as server:
        asyncio.run(go(server))
    assert found == {f"{stage}-{number}": named(number) for stage in ("first", "second") for number in range(6)}


# ---------------------------------------------------------------- rows that fail


@pytest.mark.slow
def test_rows_that_expire_are_handed_in_again(tmp_path: Path) -> None:
    with ApiServer(batch_expires_after=4) as server:
        collected, left = collect(server, tmp_path, range(10))
        assert server.stats().most_answered == 1
    assert dict(collected) == expected(range(10))
    assert left == set()
    assert [(job.rows, job.tries) for job in status(tmp_path)] == [(10, 1), (6, 2), (2, 3)]


@pytest.mark.slow
def test_rows_without_an_answer_are_given_up_after_three_submissions(tmp_path: Path) -> None:
    with ApiServer(batch_expires_after=1) as server:
        collected, left = collect(server, tmp_path, range(5))
    assert dict(collected) == expected(range(3))
    assert left == {"key-3", "key-4"}
    assert rows_left(tmp_path) == []


@pytest.mark.slow
def test_rows_that_are_refused_are_passed_on_and_not_asked_again(tmp_path: Path) -> None:
    with ApiServer("refusal", "503", "429", "length", "ok") as server:
        collected, left = collect(server, tmp_path, range(5))
        assert server.stats().rows == 7
    assert {key: getattr(answer, "kind", answer) for key, answer in collected.items()} == {
        "key-0": "refusal",
        "key-1": named(1),
        "key-2": named(2),
        "key-3": "length",
        "key-4": named(4),
    }
    assert left == set()


@pytest.mark.slow
def test_a_share_of_busy_rows_costs_nothing_but_time(tmp_path: Path) -> None:
    with ApiServer(mix={"500": 0.1, "429": 0.1}) as server:
        collected, left = collect(server, tmp_path, range(200), part_rows=60)
        stats = server.stats()
    assert dict(collected) == {key: text for key, text in expected(range(200)).items() if key not in left}
    assert len(left) < 10
    assert stats.most_answered == 1


# ---------------------------------------------------------------- jobs that fail


@pytest.mark.slow
def test_a_batch_that_is_not_taken_ends_the_run_with_the_reason_and_goes_at_the_next(tmp_path: Path) -> None:
    with ApiServer(batch_rows=3) as server:
        with pytest.raises(EngineError, match=r"batch 1 of 5 requests \(.*too many requests.*Nothing of it was asked"):
            collect(server, tmp_path, range(5))
        (job,) = status(tmp_path)
        assert (job.status, job.job) == ("failed", None)
        assert "too many requests" in str(job.error)
        server.set(batch_rows=100)
        collected, _ = collect(server, tmp_path, range(5))
        assert server.stats().rows == 5
    assert dict(collected) == expected(range(5))


@pytest.mark.slow
def test_a_full_queue_is_waited_for(tmp_path: Path) -> None:
    with ApiServer(batch_queue=10, batch_s=0.2) as server:
        collected, _ = collect(server, tmp_path, range(30), part_rows=8)
        assert server.stats().most_answered == 1
    assert dict(collected) == expected(range(30))


@pytest.mark.slow
def test_a_queue_that_is_full_without_us_ends_the_run(tmp_path: Path) -> None:
    with ApiServer(batch_queue=4) as server, pytest.raises(EngineError, match="Enqueued token limit"):
        collect(server, tmp_path, range(8))


@pytest.mark.slow
def test_a_job_that_somebody_cancels_ends_the_run_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    collected = Collected()

    def cancel(jobs: list[BatchJob]) -> None:
        with openai.OpenAI(api_key="a-key", base_url=server.base_url) as client:
            for job in jobs:
                if job.status == "validating" and job.job:
                    client.batches.cancel(job.job)

    with ApiServer(batch_s=0.3) as server:
        with pytest.raises(EngineError, match=r"cancelled at the server.*other 5"):
            collect(server, tmp_path, range(5), take=collected.take, on_status=cancel)
        assert (server.stats().rows, rows_left(tmp_path)) == (0, [])
        again, _ = collect(server, tmp_path, range(5))
    assert dict(again) == expected(range(5))


# ---------------------------------------------------------------- servers that go away


class _Flaky(OpenAIBatches):
    """Every other call finds the server gone, and job creation breaks after the server has done it."""

    calls = 0

    def stumble(self) -> None:
        type(self).calls += 1
        if self.calls % 2:
            raise BusyError("The server cannot be reached.", kind="connection")

    async def submit(self, path: Path, tag: str) -> str:
        await super().submit(path, tag)
        raise BusyError("The server hung up.", kind="dropped")

    async def find(self, tag: str) -> str | None:
        self.stumble()
        return await super().find(tag)

    async def state(self, job: str) -> BatchState:
        self.stumble()
        return await super().state(job)


@pytest.mark.slow
def test_a_job_whose_creation_was_answered_by_silence_is_not_created_twice(tmp_path: Path) -> None:
    with ApiServer() as server:
        collected, _ = collect(server, tmp_path, range(20), part_rows=7, api=_Flaky)
        stats = server.stats()
    assert dict(collected) == expected(range(20))
    assert (stats.rows, stats.most_answered) == (20, 1)


@pytest.mark.slow
def test_a_server_that_stays_away_ends_the_run_and_the_next_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.llm.batch_jobs.LONGEST_POLL_S", 0.05)
    with ApiServer(batch_s=0.5) as server:

        def leave(jobs: list[BatchJob]) -> None:
            if all(job.job for job in jobs):
                server.kill()

        with pytest.raises(EngineError, match=r"cannot be reached.* again to collect"):
            collect(server, tmp_path, range(10), on_status=leave)
        server.restart()
        collected, _ = collect(server, tmp_path)
        assert server.stats().rows == 10
    assert dict(collected) == expected(range(10))


def test_a_server_that_never_answers_is_given_up_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    with ApiServer() as server:
        server.kill()
        monkeypatch.setattr("vip.llm.batch_jobs.asyncio.sleep", wait)
        with pytest.raises(EngineError, match="cannot be reached") as caught:
            collect(server, tmp_path, range(10))
    assert "to collect" not in str(caught.value)
    assert len(waits) == 4


# ---------------------------------------------------------------- processes that die


PROGRAM = """
import os, signal, sys
from pathlib import Path
from tests.api_server import ApiServer
from tests.llm import test_batch_jobs
from vip.llm.batch_jobs import BatchJobs
from vip.models.openai.batch_api import OpenAIBatches

address, folder, where, after = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Mortal(OpenAIBatches):
    async def submit(self, path, tag):
        if where == "before":
            die()
        job = await super().submit(path, tag)
        if where == "created":
            die()
        return job

class Address:
    base_url = address

count = 0
async def take(key, answer):
    global count
    count += 1
    with (folder / "taken").open("a") as file:
        file.write(f"{key}\\t{answer.text}\\n")
    if where == "answer" and count == after:
        die()

real = BatchJobs._note
def note(self, *jobs):
    real(self, *jobs)
    if where == "noted" and any(job.status == "collected" for job in jobs):
        die()
BatchJobs._note = note
if where == "adding":
    done = BatchJobs.add
    def add(self, key, request):
        done(self, key, request)
        if key == "key-7":
            die()
    BatchJobs.add = add

test_batch_jobs.collect(Address(), folder, range(10), api=Mortal, take=take, part_rows=6)
"""


def process(server: ApiServer, folder: Path, where: str, after: int = 0) -> int:
    """Run the batches of ten requests in a process of its own that kills itself at a point; its exit code."""
    command = [sys.executable, "-c", PROGRAM, server.base_url, str(folder), where, str(after)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, timeout=60, check=False).returncode


def taken(folder: Path) -> Iterator[tuple[str, str]]:
    path = folder / "taken"
    for line in path.read_text().splitlines() if path.exists() else []:
        key, _, text = line.partition("\t")
        yield key, text


@pytest.mark.slow
@pytest.mark.parametrize("where", ["adding", "before", "created", "answer", "noted"])
def test_a_run_that_is_killed_goes_on_and_pays_for_nothing_twice(where: str, tmp_path: Path) -> None:
    with ApiServer() as server:
        assert process(server, tmp_path, where, after=3) == -signal.SIGKILL
        known = dict(taken(tmp_path))
        collected, left = collect(server, tmp_path, [number for number in range(10) if f"key-{number}" not in known])
        stats = server.stats()
    assert {**dict(taken(tmp_path)), **collected} == expected(range(10))
    assert left == set()
    assert (stats.rows, stats.most_answered) == (10, 1)
    assert rows_left(tmp_path) == []


@pytest.mark.slow
def test_keys_that_were_handed_in_by_a_process_that_died_are_known(tmp_path: Path) -> None:
    with ApiServer() as server:
        assert process(server, tmp_path, "created") == -signal.SIGKILL
        collected, _ = collect(server, tmp_path, range(12))
        assert server.stats().rows == 12
    assert dict(collected) == expected(range(12))


@pytest.mark.slow
def test_jobs_are_listed_without_asking_the_server(tmp_path: Path) -> None:
    assert status(tmp_path) == []
    with ApiServer() as server:
        process(server, tmp_path, "created")
    first, second = status(tmp_path)
    assert (first.part, first.rows, first.status, first.job, bool(first.tag)) == (1, 6, "written", None, True)
    assert (second.part, second.rows, second.tag) == (2, 4, None)


@pytest.mark.slow
def test_a_part_whose_keys_are_gone_is_named(tmp_path: Path) -> None:
    with ApiServer() as server:
        process(server, tmp_path, "created")
        (tmp_path / "batches" / "part-0001.keys").unlink()
        with pytest.raises(StoreError, match=r"part-0001\.keys cannot be read.*Delete .*batches"):
            collect(server, tmp_path)


# ---------------------------------------------------------------- a server in this process, in made-up time


class Made:
    """Takes batches, each of which is over after some seconds; what is asked of it is noted."""

    def __init__(self, clock: Clockwork, *, seconds: float = 0.0, ends: Iterable[BatchState] = ()) -> None:
        self.clock, self.seconds = clock, seconds
        self.ends = list(ends)
        """The end states of the first batches; the others complete."""
        self.failures: list[BusyError | None] = []
        """Of the next calls."""
        self.jobs: dict[str, list[str]] = {}
        self.tags: dict[str, str] = {}
        self.began_s: dict[str, float] = {}
        self.polled_s: list[float] = []
        self.discarded: list[str] = []

    def row(self, key: str, request: Request) -> bytes:
        return f"{key}\n".encode()

    async def submit(self, path: Path, tag: str) -> str:
        self._stumble()
        job = f"batch_{len(self.jobs) + 1}"
        self.jobs[job], self.began_s[job] = path.read_text().splitlines(), self.clock.now_s
        self.tags[tag] = job
        return job

    async def find(self, tag: str) -> str | None:
        self._stumble()
        return self.tags.get(tag)

    async def state(self, job: str) -> BatchState:
        self.polled_s.append(self.clock.now_s)
        self._stumble()
        number = list(self.jobs).index(job)
        end = self.ends[number] if number < len(self.ends) else BatchState("completed")
        is_over = end.status == "failed" or self.clock.now_s >= self.began_s[job] + self.seconds  # what is not taken is so at once
        return end if is_over else BatchState("in_progress")

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Reply | VipError], None]:
        for key in self.jobs[job]:
            yield key, Reply(f"to {key}", "m")

    async def discard(self, job: str) -> None:
        self.discarded.append(job)
        raise EngineError("They are gone already.")

    def _stumble(self) -> None:
        if self.failures and (failure := self.failures.pop(0)):
            raise failure


@pytest.fixture
def clock() -> Iterator[Clockwork]:
    with Clockwork() as clock:
        yield clock


def run(api: Made, folder: Path, keys: Iterable[str] = "ab", **limits: int) -> Collected:
    """Submit requests with these keys, and wait for the answers."""
    collected = Collected()

    async def go() -> None:
        with BatchJobs(folder, api, **limits) as batches:
            for key in keys:
                batches.add(key, request(1))
            await batches.run(collected.take)

    api.clock.run(go())
    return collected


@pytest.mark.parametrize("end", ["completed", "expired", "cancelled", "failed"])
def test_the_files_of_a_batch_that_is_over_are_deleted_at_the_server(end: Any, clock: Clockwork, tmp_path: Path) -> None:
    api = Made(clock, ends=[BatchState(end)])
    if end in {"cancelled", "failed"}:
        with pytest.raises(EngineError, match=r"Batch 1 was cancelled|does not take batch 1"):
            run(api, tmp_path)
    else:
        assert run(api, tmp_path) == {"a": "to a", "b": "to b"}
    assert api.discarded == ["batch_1"]


def test_news_are_asked_for_soon_after_a_change_and_then_less_and_less_often(clock: Clockwork, tmp_path: Path) -> None:
    api = Made(clock, seconds=300)
    run(api, tmp_path)
    assert api.polled_s == [1, 2, 4, 8, 16, 32, 64, 124, 184, 244, 304]


def test_a_server_that_is_busy_now_and_then_is_not_given_up(clock: Clockwork, tmp_path: Path) -> None:
    api = Made(clock, seconds=3000)
    api.failures = [None, *[BusyError("Busy.", kind="connection"), None] * 40]
    assert run(api, tmp_path) == {"a": "to a", "b": "to b"}


@pytest.mark.parametrize(("kind", "most"), [("server", 20), ("rate_limit", 20), ("connection", 5), ("timeout", 5)])
def test_a_server_that_is_busy_from_the_start_is_there_and_one_that_is_out_of_reach_is_not(
    kind: Any, most: int, clock: Clockwork, tmp_path: Path
) -> None:
    busy = BusyError("Busy.", kind=kind)
    (api := Made(clock)).failures = [busy] * (most - 1)
    assert run(api, tmp_path / "a") == {"a": "to a", "b": "to b"}
    (api := Made(clock)).failures = [busy] * most
    with pytest.raises(OutageError, match=r"^Busy\.$"):
        run(api, tmp_path / "b")
    assert not api.failures


def test_one_batch_that_cannot_be_asked_about_does_not_hold_up_the_others(clock: Clockwork, tmp_path: Path) -> None:
    api = Made(clock)
    api.failures = [None, None, BusyError("Busy.", kind="server")]
    assert run(api, tmp_path, part_rows=1).times == ["b", "a"]


def test_parts_are_filled_to_the_last_byte(clock: Clockwork, tmp_path: Path) -> None:
    api = Made(clock)
    run(api, tmp_path, ["aaa", "bbb", "ccc", "ddd", "eeeeeee"], part_bytes=8)
    assert list(api.jobs.values()) == [["aaa", "bbb"], ["ccc", "ddd"], ["eeeeeee"]]


def test_a_request_that_is_larger_than_a_batch_is_no_part_of_one(clock: Clockwork, tmp_path: Path) -> None:
    api = Made(clock)
    collected = Collected()
    with BatchJobs(tmp_path, api, part_bytes=8) as batches:
        batches.add("aaa", request(1))
        with pytest.raises(ReplyError, match="has 9 bytes, and a batch takes 8") as caught:
            batches.add("bbbbbbbb", request(1))
        assert caught.value.kind == "too_large"
        assert ("aaa" in batches, "bbbbbbbb" in batches, len(batches)) == (True, False, 1)
        batches.add("ccc", request(1))
        clock.run(batches.run(collected.take))
    assert list(api.jobs.values()) == [["aaa", "ccc"]]


def test_rows_that_nobody_asked_for_or_that_come_twice_are_passed_over(clock: Clockwork, tmp_path: Path) -> None:
    class Confused(Made):
        async def results(self, job: str) -> AsyncGenerator[tuple[str, Reply | VipError], None]:
            for key in ("z", "b", "b", "a"):
                yield key, Reply(f"to {key}", "m")

    assert run(Confused(clock), tmp_path).times == ["b", "a"]


def test_a_reason_without_end_is_cut(clock: Clockwork, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="does not take batch 1 of 2 requests"):
        run(Made(clock, ends=[BatchState("failed", error="e" * 5000)]), tmp_path)
    assert status(tmp_path)[0].error == "e" * 1000


def test_what_was_rejected_is_handed_in_under_another_tag(clock: Clockwork, tmp_path: Path) -> None:
    """Under its old one the rejected job would be found, again and again."""
    api = Made(clock, seconds=5, ends=[BatchState("completed"), BatchState("failed", error="Full.", full=True)])
    collected = run(api, tmp_path, "ab", part_rows=1)
    assert list(api.jobs.values()) == [["a"], ["b"], ["b"]]
    assert len(api.tags) == 3
    assert collected.times == ["a", "b"]
    assert api.discarded == ["batch_2", "batch_1", "batch_3"]
    assert [(job.status, job.error) for job in status(tmp_path)] == [("collected", None)] * 2, "why it was rejected holds no longer"


def test_a_rejected_job_stays_known_until_that_is_written_down(clock: Clockwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api, note = Made(clock, ends=[BatchState("failed")]), BatchJobs._note

    def full_disk(self: BatchJobs, *jobs: BatchJob) -> None:
        if any(job.error is not None or job.job is None for job in jobs) and api.jobs:
            raise StoreError("The disk is full.")
        note(self, *jobs)

    monkeypatch.setattr(BatchJobs, "_note", full_disk)
    with pytest.raises(StoreError, match="full"):
        run(api, tmp_path)
    (job,) = status(tmp_path)
    assert job.job == "batch_1"
    assert job.is_ours, "or the next run would ask its questions again, beside the job"


def test_a_job_is_remembered_before_it_is_written_down(clock: Clockwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies in between would else find a job that it takes for a stranger's."""
    noted: list[bool] = []
    note = BatchFolder.note

    def noting(self: BatchFolder, jobs: Any) -> None:
        noted.extend(job.is_ours for job in jobs.jobs if job.is_open and (job.tag or job.job))
        note(self, jobs)

    monkeypatch.setattr(BatchFolder, "note", noting)
    run(Made(clock, seconds=3), tmp_path)
    assert noted == [True] * 4  # with its tag, with its id, under way, over


def test_what_was_added_before_something_failed_is_not_handed_in(clock: Clockwork, tmp_path: Path) -> None:
    def fail(batches: BatchJobs) -> None:
        batches.add("a", request(1))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), BatchJobs(tmp_path, Made(clock)) as batches:
        fail(batches)
    assert rows_left(tmp_path) == []
    with BatchJobs(tmp_path, Made(clock)) as batches:
        batches.add("a", request(1))
    assert [(job.part, job.rows) for job in status(tmp_path)] == [(1, 1)]


def test_what_a_process_left_that_died_before_it_handed_it_in_is_deleted_by_the_next(clock: Clockwork, tmp_path: Path) -> None:
    with BatchJobs(tmp_path, Made(clock)) as batches:
        batches.add("a", request(1))
    (tmp_path / "batches" / "part-0007.keys").write_text("b\n")  # its rows were never whole
    (tmp_path / "batches" / "of the user").write_text("")
    with BatchJobs(tmp_path, Made(clock)) as batches:
        assert rows_left(tmp_path) == ["of the user"]
        assert len(batches) == 0, "who needs their answers asks anew"
        batches.add("a", request(1))
    assert [(job.part, job.rows) for job in status(tmp_path)] == [(1, 1)]


def test_a_look_tells_how_far_jobs_are_and_notes_nothing(clock: Clockwork, tmp_path: Path) -> None:
    api = Made(clock, seconds=3)

    async def go() -> tuple[list[BatchJob], list[BatchJob]]:
        with BatchJobs(tmp_path, api) as batches:
            batches.add("a", request(1))
            batches.close()
            await batches.step(Collected().take)
            return await batches.look(), status(tmp_path)

    looked, noted = clock.run(go())
    assert [(job.job, job.status) for job in looked] == [("batch_1", "in_progress")]
    assert [(job.job, job.status) for job in noted] == [("batch_1", "validating")]


def test_a_look_asks_about_jobs_that_this_machine_waits_for_and_about_no_others(tmp_path: Path) -> None:
    asked = list[str]()

    async def state(job: str) -> BatchState:
        asked.append(job)
        return BatchState("in_progress", 5, 2, 1)

    about: dict[str, Any] = {"rows": 5, "size_bytes": 9, "created_utc": "2026-11-22T00:00:00+00:00", "status": "validating"}
    home = str(tmp_path.resolve())
    strange, done, mine = (BatchJob(part=part, job=f"batch_{part}", home=home, **about) for part in (1, 2, 3))
    done = done.model_copy(update={"status": "collected"})
    for job in (done, mine):
        user_state.remember("jobs", job.mark(str(job.job)))
    place = BatchFolder(tmp_path, tmp_path / "batches")
    place.make()
    place.note(BatchJobList(jobs=(strange, done, mine)))
    (place.folder / "part-0003.keys").write_text("key\n")
    looked = asyncio.run(BatchJobs(tmp_path, SimpleNamespace(state=state)).look())  # type: ignore[arg-type]
    assert asked == ["batch_3"]
    assert [(job.status, job.completed, job.failed) for job in looked] == [("validating", 0, 0), ("collected", 0, 0), ("in_progress", 2, 1)]
