"""The loop of a batch, with hands that do as they are told: each item comes to one end, and whoever hands it out is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.corpus.making import clip
from tests.corpus.test_state import fill
from vip.config import BatchSettings
from vip.corpus.choices import Choices
from vip.corpus.driver import LOSSES, Driver
from vip.corpus.output.parts import pack
from vip.corpus.state import State
from vip.corpus.work.crew import Done, Event, Failed, Lost
from vip.corpus.work.hand import Facts, Job
from vip.download.items import Item
from vip.protocols import Silent

MOST_LOOKS = 5000  # of a loop that would not end


class Told:
    """Hands that answer each job at once, with what is told for its try."""

    def __init__(self, answer: Callable[[Job, int], Event]) -> None:
        self.answer = answer
        self.given: list[Job] = []
        self.looks = 0
        self._found: list[Event] = []

    def takes(self, *, fetch: bool) -> bool:
        return not self._found

    def give(self, job: Job) -> None:
        self.given.append(job)
        self._found.append(self.answer(job, sum(one.id == job.id for one in self.given)))

    def events(self, timeout_s: float) -> list[Event]:
        self.looks += 1
        assert self.looks < MOST_LOOKS, "the loop does not end"
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        pass


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    state = State(tmp_path)
    fill(state, [Item("a", "file", "/a.mp4", "list.txt, line 1")])
    yield state
    state.close()


def driver_of(state: State, hands: Told, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setattr("vip.corpus.queue.LOOK_S", 0.0)
    choices = Choices(batch=BatchSettings(retry_wait=1e-6))
    return Driver(state, str(state.home / "out"), choices, Silent(), lambda fetches: hands)


def test_an_item_that_fails_each_time_is_handed_out_four_times_and_then_given_up(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Told(lambda job, number: Failed(job.id, "other", "gone"))
    driver = driver_of(state, hands, monkeypatch)
    assert driver.run().failed == 1
    assert len(hands.given) == 4
    assert driver._queue._out == set()


def test_an_item_that_is_done_at_the_third_try_is_handed_out_no_more(state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(tmp_path / "part.tar", clip("a"))
    part = (tmp_path / "part.tar").read_bytes()
    done = Facts(rows=3, size_bytes=len(part), length_s=9.0, youtube_id=None)
    hands = Told(lambda job, number: Failed(job.id, "other", "gone") if number < 3 else Done(job.id, part, done))
    driver = driver_of(state, hands, monkeypatch)
    monkeypatch.setattr(driver._packer.__class__, "step", lambda self, *about, **how: False)
    told = driver.run()
    assert (told.done, told.failed, len(hands.given)) == (1, 0, 3)
    assert driver._queue._out == set()
    assert (tmp_path / "parts" / "a.tar").read_bytes() == part


def test_an_item_whose_machines_are_lost_again_and_again_counts_as_the_cause(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Told(lambda job, number: Lost(job.id))
    assert driver_of(state, hands, monkeypatch).run().failed == 1
    assert len(hands.given) == LOSSES
    assert state.failures() == {"crash": 1}
