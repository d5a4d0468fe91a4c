"""vip.video.bounded_cache: bytes that are free, whose turn it is to go, and several threads at once"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from vip.video.bounded_cache import BoundedCache


class Texts(BoundedCache[str]):
    """Things whose size a test says."""

    def keep(self, number: int, size_bytes: int, *, preferred: bool = False, thing: str = "") -> None:
        self._keep(number, thing or f"thing {number}", size_bytes, preferred=preferred)

    @property
    def numbers(self) -> list[int]:
        return [number for number in range(20) if number in self]


def filled(room: int, **sizes: int) -> Texts:
    """A cache with things that are not preferred, `t1=5` of 5 bytes."""
    cache = Texts(room)
    for name, size_bytes in sizes.items():
        cache.keep(int(name[1:]), size_bytes)
    return cache


def test_things_fit_up_to_the_last_byte() -> None:
    cache = filled(10, t1=4, t2=6)
    assert cache.numbers == [1, 2]
    cache.keep(3, 1)
    assert cache.numbers == [1, 2]
    cache.keep(4, 0)
    assert cache.numbers == [1, 2, 4]


def test_one_that_does_not_fit_leaves_room_for_a_smaller_one() -> None:
    assert filled(10, t1=4, t2=7, t3=6).numbers == [1, 3]


def test_no_more_of_the_others_go_than_a_preferred_one_needs() -> None:
    cache = filled(10, t1=4, t2=3, t3=3)
    cache.keep(4, 5, preferred=True)
    assert cache.numbers == [1, 4], "the latest two of 3 bytes"
    cache.keep(5, 1)
    assert cache.numbers == [1, 4, 5], "a byte was left over"
    cache.keep(6, 1)
    assert cache.numbers == [1, 4, 5]


def test_while_there_is_room_a_preferred_one_takes_nobodys_place() -> None:
    cache = filled(10, t1=4, t2=3)
    cache.keep(3, 3, preferred=True)
    assert cache.numbers == [1, 2, 3]


def test_others_take_nobodys_place() -> None:
    cache = filled(10, t1=10)
    cache.keep(2, 1)
    assert cache.numbers == [1]


def test_the_bytes_of_what_went_are_free_again() -> None:
    cache = filled(10, t1=5, t2=5)
    cache.keep(3, 6, preferred=True)
    for number, size_bytes in ((4, 5), (5, 4), (6, 1)):
        cache.keep(number, size_bytes)
    assert (cache.numbers, cache.get(5), cache.get(1)) == ([3, 5], "thing 5", None)


def test_preferred_ones_are_kept_in_the_order_in_which_they_came() -> None:
    cache = Texts(10)
    for number in (3, 1, 2):
        cache.keep(number, 5, preferred=True)
    assert cache.numbers == [1, 3]
    assert list(cache) == ["thing 3", "thing 1"]


def test_what_is_there_already_is_not_kept_again_nor_counted_twice() -> None:
    cache = filled(10, t1=5)
    cache.keep(1, 5, thing="another")
    cache.keep(1, 9, preferred=True, thing="a third")
    cache.keep(2, 5)
    assert (cache.numbers, cache.get(1), len(cache)) == ([1, 2], "thing 1", 2)
    for number in (3, 4):
        cache.keep(number, 5, preferred=True)
    assert cache.numbers == [1, 3], "it has become preferred"


def test_one_that_came_as_preferred_stays_so() -> None:
    cache = Texts(10)
    cache.keep(1, 10, preferred=True)
    cache.keep(1, 10)
    cache.keep(2, 5, preferred=True)
    assert cache.numbers == [1]


def test_one_that_went_may_come_again() -> None:
    cache = filled(10, t1=10)
    cache.keep(2, 4, preferred=True)
    cache.keep(1, 6)
    cache.keep(3, 6, preferred=True)
    assert cache.numbers == [2, 3]


def test_a_thing_that_is_false_is_a_thing() -> None:
    cache: BoundedCache[list[int]] = BoundedCache(1)
    cache._keep(0, [], 1, preferred=False)
    assert (cache.get(0), cache.get(1), 0 in cache, len(cache), list(cache)) == ([], None, True, 1, [[]])


def test_what_is_kept_while_somebody_looks_at_all_is_not_looked_at() -> None:
    cache = filled(10, t1=1, t2=1)
    seen = []
    for thing in cache:
        seen.append(thing)
        cache.keep(len(seen) + 10, 1)
        cache.clear()
    assert seen == ["thing 1", "thing 2"]


@pytest.mark.parametrize("times", [1, 3])
def test_a_cache_that_is_emptied_holds_as_much_as_before_and_not_more(times: int) -> None:
    cache = filled(10, t1=3, t2=3)
    for _ in range(times):
        cache.clear()
    assert (cache.numbers, len(cache), cache.get(1)) == ([], 0, None)
    cache.keep(1, 11)
    cache.keep(2, 10)
    assert cache.numbers == [2]
    cache.clear()
    cache.keep(3, 10, preferred=True)
    cache.keep(4, 10, preferred=True)
    assert cache.numbers == [3]


def test_threads_that_keep_the_same_things_hold_no_more_than_fits() -> None:
    cache = Texts(100)

    def keep(seed: int) -> None:
        for number in range(300):
            cache.keep((number * 7 + seed) % 60, 5, preferred=number % 3 == 0)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(keep, range(4)))
    assert len(cache) == 20
    cache.clear()
    for number in range(30):
        cache.keep(number, 5)
    assert len(cache) == 20, "all bytes are free again"
