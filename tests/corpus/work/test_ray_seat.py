"""The two sides of Ray without Ray: a seat that works beside whoever asks it, and a driver whose seats are told what to answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vip.corpus.choices import Choices
from vip.corpus.work.crew import Done, Event, Failed, Lost
from vip.corpus.work.hand import Facts, Job
from vip.corpus.work.ray_crews import RayCrews, Seat
from vip.download.items import Item
from vip.errors import BackendError
from vip.wording import VARIABLE

FACTS = Facts(rows=1, size_bytes=3, length_s=1.0, youtube_id=None)


def job(number: int) -> Job:
    return Job(number, Item(f"v{number}", "file", f"/v{number}.mp4", "list.txt, line 1"))


class Crew:
    """Makes a part of each job; of job 13 nothing ever comes, at job 99 it breaks."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.closed = folder, False
        self._found: list[Event] = []

    def give(self, job: Job) -> None:
        if job.id == 99:
            raise BackendError("The model is missing.")
        part = self.folder / f"{job.id}.tar"
        part.write_bytes(b"abc")
        self._found += [] if job.id == 13 else [Done(job.id, part, FACTS)]

    def events(self, timeout_s: float) -> list[Event]:
        time.sleep(0.001)
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def seat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seat]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "1")

    class Told(Seat):
        def crew(self, choices: Choices, fetch: bool) -> Any:
            return Crew(self._home)

    seat = Told(Choices(), False, None, "batch")
    yield seat
    seat._over.set()


def test_a_seat_tells_what_came_of_its_jobs_with_the_bytes_of_the_parts(seat: Seat) -> None:
    assert seat.turn([job(1)], 30.0) == [Done(1, b"abc", FACTS)]
    assert list(seat._home.iterdir()) == []
    assert seat.turn([job(13)], 0.05) == []


def test_what_goes_wrong_in_a_seat_is_raised_where_it_is_asked(seat: Seat) -> None:
    with pytest.raises(BackendError, match=r"The model is missing\."):
        seat.turn([job(99)], 30.0)


def test_a_seat_that_leaves_ends_its_crew_and_deletes_its_folder(seat: Seat) -> None:
    seat.leave()
    assert seat._crew.closed  # type: ignore[attr-defined]
    assert not seat._home.exists()


# ---------------------------------------------------------------- the driver's side


class Handle:
    """An actor of Ray that answers a turn at once: each job has failed, and of jobs from 100 on nothing is known."""

    def __init__(self) -> None:
        self.killed = self.left = False
        self.given: list[Job] = []
        self.turn, self.leave = SimpleNamespace(remote=self._turn), SimpleNamespace(remote=self._leave)

    def _turn(self, jobs: list[Job], timeout_s: float) -> list[Event]:
        self.given += jobs
        return [Failed(job.id, "other", "no") for job in jobs if job.id < 100]

    def _leave(self) -> None:
        self.left = True


class Turn(list[Event]):
    __hash__ = object.__hash__  # type: ignore[assignment]


class FakeRay:
    """As much of Ray as the driver uses, in this process."""

    exceptions = SimpleNamespace(RayTaskError=KeyError, RayError=OSError)

    def __init__(self) -> None:
        self.handles: list[Handle] = []

    def remote(self, **how: Any) -> Any:
        return lambda kind: SimpleNamespace(remote=self._made)

    def _made(self, *about: Any) -> Handle:
        self.handles.append(Handle())
        handle = self.handles[-1]
        handle.turn = SimpleNamespace(remote=lambda jobs, timeout_s: Turn(handle._turn(jobs, timeout_s)))
        return handle

    def init(self, **how: Any) -> None: ...

    def cluster_resources(self) -> dict[str, int]:
        return {}

    def wait(self, turns: list[Turn], **how: Any) -> tuple[list[Turn], list[Turn]]:
        return turns, []

    def get(self, turn: Turn, **how: Any) -> Turn:
        return turn

    def kill(self, handle: Handle) -> None:
        handle.killed = True

    def shutdown(self) -> None: ...


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay()
    monkeypatch.setattr("vip.corpus.work.ray_crews.library", lambda name: ray)
    return ray


def crews(ray: FakeRay, tmp_path: Path, workers: int = 2) -> RayCrews:
    return RayCrews(Choices(Choices().batch.model_copy(update={"workers": workers})), tmp_path, fetch=False)


def test_jobs_wait_until_a_seat_is_here_and_then_go_to_the_one_that_holds_least(ray: FakeRay, tmp_path: Path) -> None:
    driver = crews(ray, tmp_path)
    assert not driver.takes(fetch=False)
    assert driver.events(0.0) == []
    for number in (101, 102, 103, 104):
        assert driver.takes(fetch=False)
        driver.give(job(number))
    assert not driver.takes(fetch=False), "each has two, one at work and one that waits"
    driver.events(0.0)
    assert [[one.id for one in handle.given] for handle in ray.handles] == [[101, 103], [102, 104]]


def test_what_is_given_before_any_seat_is_here_is_done_by_the_first(ray: FakeRay, tmp_path: Path) -> None:
    driver = crews(ray, tmp_path, 1)
    driver.give(job(101))
    driver.events(0.0)
    assert [one.id for one in ray.handles[0].given] == [101]


def test_what_is_told_is_held_no_more(ray: FakeRay, tmp_path: Path) -> None:
    driver = crews(ray, tmp_path, 1)
    driver.events(0.0)
    for number in (1, 2):
        driver.give(job(number))
    assert driver.events(0.0) == [Failed(1, "other", "no"), Failed(2, "other", "no")]
    assert driver.takes(fetch=False)


def test_the_jobs_of_a_seat_that_is_gone_are_told_as_lost_and_another_takes_its_place(ray: FakeRay, tmp_path: Path) -> None:
    driver = crews(ray, tmp_path, 1)
    driver.events(0.0)
    driver.give(job(101))

    def gone(turn: Turn, **how: Any) -> Turn:
        raise OSError("The actor died.")

    ray.get = gone  # type: ignore[method-assign]
    assert driver.events(0.0) == [Lost(101)]
    assert [handle.killed for handle in ray.handles] == [True, False]
    with pytest.raises(BackendError, match=r"Ray's workers do not start: The actor died\."):
        assert [driver.events(0.0) for _ in range(20)] == []


def test_only_seats_that_are_here_are_asked_to_leave(ray: FakeRay, tmp_path: Path) -> None:
    driver = crews(ray, tmp_path)
    driver.close()
    assert [handle.left for handle in ray.handles] == [False, False]
    driver.events(0.0)
    driver.close()
    assert [handle.left for handle in ray.handles] == [True, True]
