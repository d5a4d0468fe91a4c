"""Each type of failure has its rule: never again, later, or rest for the whole host."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.corpus.test_queue import anything
from tests.corpus.test_state import fill, item
from vip.corpus.queue import ItemQueue
from vip.corpus.retries import Retries
from vip.corpus.state import ItemEntry, StateDatabase
from vip.dataset.items import ListItem
from vip.errors import FailureKind
from vip.protocols import SilentObserver


class Notes(SilentObserver):
    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, text: str) -> None:
        self.told.append(text)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    state = StateDatabase(tmp_path)
    fill(state, [item(number) for number in range(3)])
    yield state
    state.close()


def retries(state: StateDatabase, wait_s: float = 30.0) -> tuple[Retries, Notes, ItemEntry]:
    queue, notes = ItemQueue(state, per_host=5), Notes()
    entry = queue.next(anything)
    assert entry is not None
    return Retries(state, queue, wait_s, notes), notes, entry


def with_tries(entry: ItemEntry, tries: int) -> ItemEntry:
    return ItemEntry(entry.id, entry.item, tries)


LATER: tuple[FailureKind, ...] = ("network", "download_timeout", "crash", "disk", "other")
BACK_OFF: tuple[FailureKind, ...] = ("bot_check", "rate_limit")


@pytest.mark.parametrize("kind", [kind for kind in get_args(FailureKind) if kind not in LATER + BACK_OFF])
def test_what_cannot_change_is_tried_once(state: StateDatabase, kind: FailureKind) -> None:
    decided, _, entry = retries(state)
    assert decided.record_failure(entry, kind, "gone")
    assert state.failure_counts() == {kind: 1}
    assert state.next_due() is None


@pytest.mark.parametrize("kind", LATER)
def test_what_may_pass_is_tried_again_four_times_as_long_after_each(state: StateDatabase, kind: FailureKind) -> None:
    decided, _, entry = retries(state)
    waits = []
    for tries in range(4):
        before, for_good = time.time(), decided.record_failure(with_tries(entry, tries), kind, "gone")
        assert for_good == (tries == 3)
        if not for_good:
            waits.append(round((state.next_due() or 0) - before))
    assert waits == [30, 120, 480]
    assert state.failure_counts() == {kind: 1}


@pytest.mark.parametrize("kind", BACK_OFF)
def test_a_host_that_refuses_all_is_left_alone_twice_as_long_each_time(state: StateDatabase, kind: FailureKind) -> None:
    decided, notes, entry = retries(state)
    rests = []
    for tries in range(3):
        decided.queue.paused.clear()  # the time is over
        assert not decided.record_failure(with_tries(entry, tries), kind, "Too many requests.")
        rests.append(round(decided.queue.paused["example.org"] - time.time()))
    assert rests == [60, 120, 240]
    assert notes.told[0].startswith("example.org: Too many requests. Nothing more is asked of it for 60 s.")


def test_what_was_under_way_when_the_host_refused_waits_with_it_and_is_not_told_again(state: StateDatabase) -> None:
    decided, notes, entry = retries(state)
    for _ in range(3):
        decided.record_failure(entry, "rate_limit", "Too many requests.")
    assert len(notes.told) == 1
    assert round((state.next_due() or 0) - time.time()) == 60


def test_the_servers_own_word_counts(state: StateDatabase) -> None:
    decided, _, entry = retries(state)
    decided.record_failure(entry, "rate_limit", "Too many requests.", 7.0)
    assert round(decided.queue.paused["example.org"] - time.time()) == 7


def test_an_answer_ends_the_doubling(state: StateDatabase) -> None:
    decided, _, entry = retries(state)
    decided.record_failure(entry, "rate_limit", "Too many requests.")
    decided.queue.paused.clear()
    decided.record_success("example.org")
    decided.record_failure(entry, "rate_limit", "Too many requests.")
    assert round(decided.queue.paused["example.org"] - time.time()) == 60


def test_a_sign_in_is_explained(state: StateDatabase) -> None:
    decided, notes, entry = retries(state)
    decided.record_failure(entry, "bot_check", "Sign in to confirm you're not a bot.")
    assert notes.told[0].endswith("Fewer --workers may help, too.")


def failed_in_a_row(decided: Retries, entry: ItemEntry, count: int, kind: FailureKind = "network") -> None:
    for _ in range(count):
        decided.record_failure(with_tries(entry, 0), kind, "The connection failed.")


def test_a_host_that_gave_videos_and_is_cut_off_rests_so_that_the_list_is_not_used_up(state: StateDatabase) -> None:
    decided, notes, entry = retries(state)
    done = decided.queue.next(anything)
    assert done is not None
    state.record_extracted(done.id, rows=1, size_bytes=1, length_s=None, youtube_id=None, ready=True)
    failed_in_a_row(decided, entry, 7)
    assert decided.queue.paused == {}
    failed_in_a_row(decided, entry, 1)
    assert round(decided.queue.paused["example.org"] - time.time()) == 60
    assert notes.told[0].startswith("example.org: The connection failed. Nothing more is asked of it for 60 s.")
    decided.queue.paused.clear()  # the time is over
    assert not decided.record_failure(with_tries(entry, 3), "network", "The connection failed.")  # no fault of the item
    for _ in range(40):
        decided.queue.paused.clear()
        failed_in_a_row(decided, entry, 1)
    assert decided.queue.paused == {}  # it is gone for good


def test_a_host_that_never_gave_a_video_does_not_rest(state: StateDatabase) -> None:
    decided, _, entry = retries(state)
    failed_in_a_row(decided, entry, 24)
    assert decided.queue.paused == {}


@pytest.mark.parametrize("answer", ["a video", "another failure"])
def test_a_host_that_answers_in_between_does_not_rest(state: StateDatabase, answer: str) -> None:
    decided, _, entry = retries(state)
    done = decided.queue.next(anything)
    assert done is not None
    state.record_extracted(done.id, rows=1, size_bytes=1, length_s=None, youtube_id=None, ready=True)
    for _ in range(3):
        failed_in_a_row(decided, entry, 7)
        if answer == "a video":
            decided.record_success("example.org")
        else:
            failed_in_a_row(decided, entry, 1, "missing")
    assert decided.queue.paused == {}


@pytest.mark.parametrize("kind", BACK_OFF)
def test_an_item_that_its_host_refuses_ten_times_is_given_up(state: StateDatabase, kind: FailureKind) -> None:
    decided, _, entry = retries(state)
    assert [decided.record_failure(with_tries(entry, tries), kind, "Too many requests.") for tries in (8, 9)] == [False, True]


def test_no_rest_that_the_server_does_not_ask_for_is_longer_than_an_hour(state: StateDatabase) -> None:
    decided, _, entry = retries(state)
    decided.record_failure(entry, "rate_limit", "Too many requests.", 7200.0)
    assert round(decided.queue.paused["example.org"] - time.time()) == 7200
    for _ in range(9):
        decided.queue.paused.clear()
        decided.record_failure(entry, "rate_limit", "Too many requests.")
    assert round(decided.queue.paused["example.org"] - time.time()) == 3600


def test_a_host_that_is_cut_off_rests_twenty_times(state: StateDatabase) -> None:
    decided, notes, entry = retries(state)
    state.record_extracted(2, rows=1, size_bytes=1, length_s=None, youtube_id=None, ready=True)
    failed_in_a_row(decided, entry, 7)
    for _ in range(30):
        decided.queue.paused.clear()
        failed_in_a_row(decided, entry, 1)
    assert len(notes.told) == 20


def test_files_know_no_outage(state: StateDatabase) -> None:
    fill(state, [ListItem(name, "file", f"/{name}.mp4", "here") for name in "fg"])
    decided, notes, _ = retries(state)
    state.record_extracted(4, rows=1, size_bytes=1, length_s=None, youtube_id=None, ready=True)
    failed_in_a_row(decided, ItemEntry(5, ListItem("g", "file", "/g.mp4", "here"), 0), 16)
    assert (notes.told, decided.queue.paused) == ([], {})
