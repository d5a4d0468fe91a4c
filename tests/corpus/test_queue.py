"""What is handed out next: in order, fair to hosts, patient with those that ask for rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.corpus.test_state import fill, item
from vip.corpus.queue import ItemQueue
from vip.corpus.state import ItemEntry, StateDatabase
from vip.dataset.items import ListItem


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    state = StateDatabase(tmp_path)
    yield state
    state.close()


def anything(fetch: bool) -> bool:
    return True


def keys(queue: ItemQueue, count: int) -> list[str]:
    return [entry.item.key for entry in taken(queue, count)]


def taken(queue: ItemQueue, count: int) -> list[ItemEntry]:
    return [entry for _ in range(count) if (entry := queue.next(anything))]


def test_files_are_handed_out_in_the_order_of_the_list_without_limit(state: StateDatabase) -> None:
    fill(state, [ListItem(f"f{number}", "file", f"/f{number}.mp4", "here") for number in range(600)])
    assert keys(ItemQueue(state, per_host=1), 1000) == [f"f{number}" for number in range(600)]


def test_long_videos_are_begun_first_the_longest_before_all_and_each_once(state: StateDatabase) -> None:
    lengths = {3: 1200.0, 300: 18_000.0, 301: 18_000.0, 550: 7200.0, 10: 1199.0, 20: 0.0}
    many = {**lengths, **dict.fromkeys(range(600, 1200), 1500.0)}
    fill(state, [ListItem(f"f{number}", "file", f"/f{number}.mp4", "here", duration_s=many.get(number)) for number in range(1300)])
    found = keys(ItemQueue(state, per_host=1), 2000)
    assert found[:3] == ["f300", "f301", "f550"]
    assert found[3:603] == [f"f{number}" for number in range(600, 1200)]
    assert found[603] == "f3"
    assert found[604:] == [f"f{number}" for number in range(1300) if number not in {3, 300, 301, 550} and not 600 <= number < 1200]
    assert len(set(found)) == 1300


def test_long_videos_of_one_host_do_not_hold_up_another(state: StateDatabase) -> None:
    long = ListItem("long", "address", "http://a.org/long.mp4", "here", duration_s=9000.0)
    fill(state, [item(1, "a.org"), item(2, "b.org"), long])
    assert keys(ItemQueue(state, per_host=1), 3) == ["long", "video2"]


def test_one_host_does_not_take_all_downloads(state: StateDatabase) -> None:
    fill(state, [item(number, "big.org") for number in range(500)] + [item(1000, "small.org"), item(1001, "small.org")])
    queue = ItemQueue(state, per_host=2)
    assert sorted(keys(queue, 10)) == ["video0", "video1", "video1000", "video1001"]
    assert queue.next(anything) is None


def test_a_slot_that_is_free_again_is_given_to_the_next_of_that_host(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(5)])
    queue = ItemQueue(state, per_host=2)
    first, _ = taken(queue, 5)
    queue.free_slot(first)
    assert keys(queue, 5) == ["video2"]


def test_where_nobody_fetches_files_are_still_handed_out(state: StateDatabase) -> None:
    fill(state, [item(1), ListItem("f", "file", "/f.mp4", "here")])
    queue = ItemQueue(state, per_host=2)
    assert [entry.item.key for _ in range(3) if (entry := queue.next(lambda fetch: not fetch))] == ["f"]
    assert queue.has_more()


def test_a_host_at_rest_is_asked_nothing_until_its_time_is_over(state: StateDatabase) -> None:
    clock = Clock()
    fill(state, [item(1, "a.org"), item(2, "b.org")])
    queue = ItemQueue(state, per_host=2, clock=clock)
    queue.pause("a.org", 60)
    assert keys(queue, 3) == ["video2"]
    clock.now += 61
    assert keys(queue, 3) == ["video1"]


def test_a_shorter_rest_does_not_end_a_longer_one(state: StateDatabase) -> None:
    clock = Clock()
    fill(state, [item(1)])
    queue = ItemQueue(state, per_host=2, clock=clock)
    queue.pause("example.org", 60)
    queue.pause("example.org", 5)
    clock.now += 59
    assert keys(queue, 1) == []
    clock.now += 2
    assert keys(queue, 1) == ["video1"]


def test_what_is_due_again_is_handed_out_once(state: StateDatabase) -> None:
    clock = Clock()
    fill(state, [item(1)])
    queue = ItemQueue(state, per_host=2, clock=clock)
    (entry,) = taken(queue, 2)
    queue.free_slot(entry)
    state.schedule_retry(entry.id, "network", "gone", due=clock.now + 10)
    queue.release(entry)
    assert keys(queue, 2) == []
    clock.now += 10.5
    assert keys(queue, 2) == ["video1"]
    clock.now += 0.5
    assert keys(queue, 2) == []


@pytest.mark.parametrize("told", [True, False])
def test_an_item_that_failed_twice_is_handed_out_a_third_time_once_its_end_was_told(told: bool, state: StateDatabase) -> None:
    clock = Clock()
    fill(state, [item(1)])
    queue = ItemQueue(state, per_host=2, clock=clock)
    (entry,) = taken(queue, 1)
    for _ in range(2):
        queue.free_slot(entry)
        state.schedule_retry(entry.id, "network", "gone", due=clock.now)
        if told:
            queue.release(entry)
        clock.now += 0.5
        found = taken(queue, 1)
    assert [again.item.key for again in found] == (["video1"] if told else [])


def test_what_a_lost_machine_held_comes_back_first(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(4)])
    queue = ItemQueue(state, per_host=3)
    first, second, _ = taken(queue, 4)
    for entry in (first, second):
        queue.free_slot(entry)
        queue.put_back(entry)
    assert keys(queue, 5) == ["video1", "video0"]


def test_it_ends_when_everything_is_handed_out(state: StateDatabase) -> None:
    fill(state, [item(1)])
    queue = ItemQueue(state, per_host=2)
    assert queue.has_more()
    assert len(taken(queue, 3)) == 1
    assert not queue.has_more()


def test_a_host_that_has_to_wait_does_not_hold_up_the_files_behind_it(state: StateDatabase) -> None:
    fill(state, [item(1), *(ListItem(f"f{number}", "file", f"/f{number}.mp4", "here") for number in range(2))])
    queue = ItemQueue(state, per_host=2)
    found = [queue.next(lambda fetch: not fetch) for _ in range(2)]
    assert [entry and entry.item.key for entry in found] == ["f0", "f1"]


def test_what_is_due_is_looked_for_twice_a_second_at_most(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = Clock(), list[float]()
    monkeypatch.setattr(state, "due", lambda now, count: looks.append(now) or [])
    queue = ItemQueue(state, per_host=2, clock=clock)
    for _ in range(8):
        queue.next(anything)
        clock.now += 0.25
    assert looks == [1000.0, 1000.5, 1001.0, 1001.5]
