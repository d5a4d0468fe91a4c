"""As many at once as the server answers well, in made-up time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.llm.clockwork import Clockwork
from vip.llm.limiter import FIRST, MOST, AdaptiveLimiter, Permit, TokenBucket
from vip.protocols import RateLimits


@pytest.fixture
def clock() -> Iterator[Clockwork]:
    with Clockwork() as clock:
        yield clock


class Clock:
    """Stands where it is set."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


async def quiet() -> None:
    """Until everybody who can go on has gone on."""
    for _ in range(10):
        await asyncio.sleep(0)


class Client:
    """A request that waits for its turn, is on its way until it is told how it ended, and notes when it started."""

    def __init__(self, limiter: AdaptiveLimiter, started: list[int], number: int = 0, tokens: int = 0) -> None:
        self.limiter, self.started, self.number, self.tokens = limiter, started, number, tokens
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.under_way = False
        self.task = asyncio.create_task(self.ask())

    async def ask(self) -> None:
        async with self.limiter.permit(self.tokens) as permit:
            self.started.append(self.number)
            self.under_way = True
            try:
                if await self.ended == "overloaded":
                    self.limiter.overloaded(permit)
                else:
                    self.limiter.answered(permit, None)
            finally:
                self.under_way = False


# ---------------------------------------------------------------- turns


def test_who_comes_first_is_served_first(clock: Clockwork) -> None:
    async def go() -> list[int]:
        limiter, started = AdaptiveLimiter(2, clock=clock), []
        clients = [Client(limiter, started, number) for number in range(9)]
        await quiet()
        assert started == [0, 1]
        for client in clients:
            client.ended.set_result("answered")
            await quiet()
        return started

    assert clock.run(go()) == list(range(9))


def test_one_that_comes_later_does_not_pass_those_who_wait(clock: Clockwork) -> None:
    """Also in the moment in which a place is free and who waited for it has not woken yet."""

    async def go() -> list[int]:
        limiter, started = AdaptiveLimiter(1, clock=clock), []
        first = Client(limiter, started, 0)
        await quiet()
        waiting = [Client(limiter, started, number) for number in (1, 2)]
        await quiet()
        first.ended.set_result("answered")
        late = Client(limiter, started, 3)
        for client in (*waiting, late):
            await quiet()
            client.ended.set_result("answered")
        await quiet()
        return started

    assert clock.run(go()) == [0, 1, 2, 3]


class Watched(AdaptiveLimiter):
    """Looks on whenever one goes or comes: what has started may be above a limit that was halved, but nothing starts above it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "in_flight" and isinstance(value, int):
            assert value >= 0
            assert value <= max(getattr(self, "in_flight", 0), int(getattr(self, "limit", 0)))
        super().__setattr__(name, value)


STEPS = st.lists(
    st.tuples(st.sampled_from(["come", "come", "come", "answered", "overloaded", "cancel", "told", "rest"]), st.integers(0, 40)),
    max_size=80,
)


@pytest.mark.slow
@given(steps=STEPS, most=st.one_of(st.none(), st.integers(1, 12)))
@settings(max_examples=300)
def test_whatever_happens_the_limit_holds_and_nobody_waits_for_ever(steps: list[tuple[str, int]], most: int | None) -> None:
    """Steps follow each other at once, or after a rest, so that they meet tasks that are about to wake."""

    async def go(limiter: AdaptiveLimiter) -> None:
        clients: list[Client] = []
        for what, which in steps:
            there = [client for client in clients if not client.task.done()]
            under_way = [client for client in there if client.under_way and not client.ended.done()]
            if what == "come":
                clients.append(Client(limiter, [], len(clients)))
            elif what == "cancel" and there:
                there[which % len(there)].task.cancel()
            elif what == "told":
                limiter.apply_limits(RateLimits(requests_left=0, requests_reset_s=which / 10))
            elif what in {"answered", "overloaded"} and under_way:
                under_way[which % len(under_way)].ended.set_result(what)
            elif what == "rest":
                await asyncio.sleep(which / 20 if which % 2 else 0)
            assert 1 <= limiter.limit <= limiter.ceiling
        await quiet()
        await everybody_ends(clients)
        assert limiter.in_flight == 0
        assert not [client for client in clients if not client.task.cancelled() and client.task.exception()]

    async def everybody_ends(clients: list[Client]) -> None:
        while there := [client for client in clients if not client.task.done()]:
            assert limiter.in_flight > 0, "some wait, and nobody is on the way"
            for client in there:
                if client.under_way and not client.ended.done():
                    client.ended.set_result("answered")
            await asyncio.sleep(0.1)

    with Clockwork() as clock:
        limiter = Watched(most, clock=clock)
        clock.run(asyncio.wait_for(go(limiter), 3600))


def test_who_is_cancelled_while_waiting_leaves_the_place_to_the_next(clock: Clockwork) -> None:
    async def go() -> list[int]:
        limiter, started = AdaptiveLimiter(1, clock=clock), []
        first, second, third = (Client(limiter, started, number) for number in range(3))
        await quiet()
        second.task.cancel()
        first.ended.set_result("answered")
        third.ended.set_result("answered")
        await asyncio.wait([first.task, second.task, third.task])
        assert second.task.cancelled()
        assert limiter.in_flight == 0
        return started

    assert clock.run(go()) == [0, 2]


@pytest.mark.parametrize("rests", range(5))
def test_who_is_cancelled_in_the_moment_of_being_let_in_takes_no_place_away(rests: int, clock: Clockwork) -> None:
    async def go() -> list[int]:
        limiter, started = AdaptiveLimiter(1, clock=clock), []
        first, second, third = (Client(limiter, started, number) for number in range(3))
        await quiet()
        first.ended.set_result("answered")
        for _ in range(rests):
            await asyncio.sleep(0)
        second.task.cancel()
        third.ended.set_result("answered")
        await asyncio.wait([first.task, second.task, third.task])
        assert second.task.cancelled()
        assert limiter.in_flight == 0
        return started

    assert clock.run(go())[-1] == 2


# ---------------------------------------------------------------- the limit


def permit(limiter: AdaptiveLimiter) -> Permit:
    return Permit(0, limiter.clock(), limited=True)


def test_it_doubles_a_round_until_the_server_has_had_enough() -> None:
    limiter = AdaptiveLimiter(clock=Clock())
    assert limiter.limit == FIRST
    for _ in range(FIRST):
        limiter.answered(permit(limiter), None)
    assert limiter.limit == 2 * FIRST


def test_after_that_it_grows_by_one_a_round() -> None:
    clock = Clock()
    limiter = AdaptiveLimiter(clock=clock)
    limiter.overloaded(permit(limiter))
    assert limiter.limit == FIRST / 2
    for _ in range(FIRST // 2):
        limiter.answered(permit(limiter), None)
    assert FIRST / 2 + 0.8 < limiter.limit <= FIRST / 2 + 1


def test_it_does_not_grow_while_there_was_room_left() -> None:
    limiter = AdaptiveLimiter(clock=Clock())
    for _ in range(50):
        limiter.answered(Permit(0, 0.0, limited=False), None)
    assert limiter.limit == FIRST


@pytest.mark.parametrize(("most", "ceiling"), [(None, MOST), (3, 3), (500, 500)])
def test_it_grows_to_its_ceiling_and_no_further(most: int | None, ceiling: int) -> None:
    limiter = AdaptiveLimiter(most, clock=Clock())
    for _ in range(5 * MOST):
        limiter.answered(permit(limiter), None)
    assert limiter.limit == ceiling


def test_many_refusals_of_one_round_halve_it_once() -> None:
    clock = Clock()
    limiter = AdaptiveLimiter(64, clock=clock)
    under_way = [permit(limiter) for _ in range(64)]
    for number, one in enumerate(under_way):
        clock.now_s = 1 + number / 100
        limiter.overloaded(one)
    assert limiter.limit == 32


def test_a_refusal_of_the_next_round_halves_it_again_down_to_one() -> None:
    clock = Clock()
    limiter = AdaptiveLimiter(64, clock=clock)
    limits = []
    for second in range(9):
        clock.now_s = second
        limiter.overloaded(permit(limiter))
        limits.append(limiter.limit)
    assert limits == [32, 16, 8, 4, 2, 1, 1, 1, 1]


def test_a_named_number_is_the_ceiling_to_which_it_comes_back() -> None:
    clock = Clock()
    limiter = AdaptiveLimiter(10, clock=clock)
    limiter.overloaded(permit(limiter))
    clock.now_s = 1
    for _ in range(200):
        limiter.answered(permit(limiter), None)
    assert limiter.limit == 10


def round_of(limiter: AdaptiveLimiter, seconds: float, *, limited: bool = False) -> float:
    """The limit after as many answers as are on their way at once, each after so many seconds."""
    for _ in range(math.ceil(limiter.limit)):
        limiter.answered(Permit(0, limiter.clock() - seconds, limited=limited), None)
    return limiter.limit


def test_answers_that_come_much_later_than_at_best_mean_that_they_wait_in_a_queue() -> None:
    limiter = AdaptiveLimiter(clock=Clock())
    assert [round_of(limiter, seconds) for seconds in (1.0, 1.9, 2.5)] == pytest.approx([8, 8, 6.4])


def test_where_answers_stay_slower_that_is_how_long_they_take() -> None:
    """Longer questions are no queue: what counts as the best grows by a tenth each time."""
    limiter = AdaptiveLimiter(clock=Clock())
    limits = [round_of(limiter, seconds) for seconds in (1.0, *[2.5] * 12)]
    assert limits[:4] == pytest.approx([8, 6.4, 5.12, 4.096])
    assert limits[-1] == pytest.approx(4.096)


def test_however_slow_it_becomes_one_is_on_its_way() -> None:
    limiter = AdaptiveLimiter(clock=Clock())
    assert min(round_of(limiter, 3.0**number) for number in range(30)) == 1


def test_a_server_that_became_slow_is_not_rushed_at_again() -> None:
    limiter = AdaptiveLimiter(clock=Clock())
    round_of(limiter, 1.0)
    slow = round_of(limiter, 2.5)
    assert round_of(limiter, 1.0, limited=True) < slow + 2


def test_a_number_that_the_user_names_is_not_lowered_by_slow_answers() -> None:
    clock = Clock()
    limiter = AdaptiveLimiter(4, clock=clock)
    for seconds in (1.0, 1.0, 1.0, 1.0, *[9.0] * 20):
        limiter.answered(Permit(0, clock.now_s - seconds, limited=False), None)
    assert limiter.limit == 4


def test_a_server_that_takes_twenty_is_found_out_and_not_run_over(clock: Clockwork) -> None:
    """It refuses the 21st: the limit swings below that, and few requests of many are refused."""
    refused = [0]

    async def go() -> None:
        limiter, there = AdaptiveLimiter(clock=clock), [0]

        async def ask() -> None:
            while True:
                async with limiter.permit(0) as permit:
                    there[0] += 1
                    try:
                        full = there[0] > 20
                        await asyncio.sleep(0.01 if full else 1.0)
                    finally:
                        there[0] -= 1
                    if not full:
                        limiter.answered(permit, None)
                        return
                    refused[0] += 1
                    limiter.overloaded(permit)
                await asyncio.sleep(1)

        await asyncio.gather(*(ask() for _ in range(1000)))

    clock.run(go())
    assert refused[0] < 100
    assert clock.now_s < 2 * 1000 / 20


# ---------------------------------------------------------------- requests and tokens a minute


def test_a_bucket_gives_evenly_and_saves_nothing_up() -> None:
    clock = Clock()
    bucket = TokenBucket(120, clock)
    bucket.take(2)
    assert bucket.wait_s(1) == pytest.approx(0.5)
    clock.now_s = 3600
    assert bucket.wait_s(2) == 0
    bucket.take(2)
    assert bucket.wait_s(1) == pytest.approx(0.5), "an hour of rest brings no more than a second's worth"


def test_what_is_larger_than_a_bucket_goes_once_it_is_full_and_is_paid_for_afterwards() -> None:
    clock = Clock()
    bucket = TokenBucket(6000, clock)  # 100 a second
    assert bucket.wait_s(500) == 0
    bucket.take(500)
    assert bucket.wait_s(1) == pytest.approx(4.01)


@pytest.mark.parametrize(
    ("limits", "tokens", "seconds"), [({"rpm": 60}, 0, 299), ({"tpm": 60_000}, 500, 149), ({"rpm": 600, "tpm": 60_000}, 2000, 598)]
)
def test_what_goes_out_keeps_within_the_minute(limits: dict[str, int], tokens: int, seconds: float, clock: Clockwork) -> None:
    sent: list[float] = []

    async def go() -> None:
        limiter = AdaptiveLimiter(50, **limits, clock=clock)

        async def ask() -> None:
            async with limiter.permit(tokens) as permit:
                sent.append(clock.now_s)
                limiter.answered(permit, tokens)

        await asyncio.gather(*(ask() for _ in range(300)))

    clock.run(go())
    assert sent[-1] == pytest.approx(seconds, abs=2)
    for start in range(0, int(seconds), 30):
        within = sum(start <= at < start + 60 for at in sent)
        assert within <= limits.get("rpm", 10**9) + 10
        assert within * tokens <= limits.get("tpm", 10**9) + 2 * max(tokens, 1000)


def test_of_a_hundred_and_twenty_a_minute_two_go_at_once_and_then_one_each_half_second(clock: Clockwork) -> None:
    sent: list[float] = []

    async def go() -> None:
        limiter, start_s = AdaptiveLimiter(50, rpm=120, clock=clock), clock.now_s

        async def ask() -> None:
            async with limiter.permit(0) as permit:
                sent.append(clock.now_s - start_s)
                limiter.answered(permit, 0)

        await asyncio.gather(*(ask() for _ in range(4)))

    clock.run(go())
    assert sent == pytest.approx([0.0, 0.0, 0.5, 1.0], abs=0.01)


def test_tokens_beyond_those_reckoned_are_waited_for_by_the_next(clock: Clockwork) -> None:
    async def go() -> float:
        limiter = AdaptiveLimiter(5, tpm=6000, clock=clock)
        async with limiter.permit(10) as permit:
            limiter.answered(permit, 1010)
        async with limiter.permit(10):
            return clock.now_s

    assert clock.run(go()) == pytest.approx(9.2, abs=0.1)


# ---------------------------------------------------------------- what the server says


def test_nothing_goes_out_while_it_is_held(clock: Clockwork) -> None:
    async def go() -> list[float]:
        limiter = AdaptiveLimiter(5, clock=clock)
        limiter.hold(7)
        limiter.hold(2)
        sent = []
        for _ in range(3):
            async with limiter.permit(0):
                sent.append(clock.now_s)
        return sent

    assert clock.run(go()) == pytest.approx([7, 7, 7])


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (None, 0),
        (RateLimits(), 0),
        (RateLimits(requests_left=3, requests_reset_s=9, tokens_left=10, tokens_reset_s=9), 0),
        (RateLimits(requests_left=0, requests_reset_s=9), 9),
        (RateLimits(requests_left=5, requests_reset_s=1, tokens_left=0, tokens_reset_s=4), 4),
        (RateLimits(requests_left=0), 0),
    ],
)
def test_it_waits_where_the_server_says_that_nothing_is_left(limits: RateLimits | None, seconds: float, clock: Clockwork) -> None:
    async def go() -> float:
        limiter = AdaptiveLimiter(5, clock=clock)
        limiter.apply_limits(limits)
        async with limiter.permit(0):
            return clock.now_s

    assert clock.run(go()) == pytest.approx(seconds)


def test_a_long_wait_is_told_once() -> None:
    now, told = [0.0], list[str]()
    limiter = AdaptiveLimiter(clock=lambda: now[0], on_long_wait=told.append)
    for seconds in (1.0, 600.0, 600.0, 590.0):
        limiter.hold(seconds)
    assert told == ["The server asks to wait: nothing goes out for 600 s."]


def test_a_limit_that_is_reset_in_days_holds_for_an_hour() -> None:
    limiter = AdaptiveLimiter(clock=lambda: 0.0)
    limiter.apply_limits(RateLimits(requests_left=0, requests_reset_s=86400.0))
    assert limiter.held_until_s == 3600.0
