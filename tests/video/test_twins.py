"""Readers that wait for the next thread that needs one."""

from __future__ import annotations

import pytest

from vip.video.twins import Twins


class Waiter:
    """A reader."""


def test_a_reader_that_was_left_is_taken_once_and_by_who_wants_as_many_threads() -> None:
    twins: Twins[Waiter] = Twins()
    one = Waiter()
    twins.leave(one, 2)
    assert twins.take(1) is None
    assert twins.take(2) is one
    assert twins.take(2) is None


@pytest.mark.parametrize("times", [1, 2])
def test_a_reader_that_is_left_twice_waits_once(times: int) -> None:
    twins: Twins[Waiter] = Twins()
    one = Waiter()
    for _ in range(times):
        twins.leave(one, 1)
    assert (twins.take(1), twins.take(1)) == (one, None)


def test_those_with_another_number_of_threads_are_given_up_and_the_others_go_on_waiting() -> None:
    twins: Twins[Waiter] = Twins()
    one, two, three = Waiter(), Waiter(), Waiter()
    for waiter, threads in ((one, 1), (two, 2), (three, 1)):
        twins.leave(waiter, threads)
    assert twins.give_up_others(2) == [one, three]
    assert twins.give_up_others(2) == []
    assert (twins.take(1), twins.take(2)) == (None, two)


def test_all_that_wait_are_handed_out_at_the_end_and_those_that_come_later_do_not_wait() -> None:
    twins: Twins[Waiter] = Twins()
    waiting, other, taken, late = Waiter(), Waiter(), Waiter(), Waiter()
    assert twins.leave(taken, 1)
    assert twins.take(1) is taken
    assert twins.leave(waiting, 1)
    assert twins.leave(other, 2)
    assert twins.end() == [waiting, other]
    assert not twins.leave(late, 1)
    assert twins.take(1) is None
    assert twins.end() == []
