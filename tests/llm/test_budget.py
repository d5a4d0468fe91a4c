"""Money: what is spent and on its way never passes the ceiling, and nobody waits for money that will not come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.llm.clockwork import Clockwork
from vip.errors import BudgetError
from vip.llm.budget import DEFAULT_MAX_USD, Budget, Usage, dollars
from vip.llm.prices import Price

PRICE = Price("m", usd_in=1.0, usd_out=10.0, batch=0.5, thinking=0, as_of="2026-01-01", picture=None)


@pytest.fixture
def clock() -> Iterator[Clockwork]:
    with Clockwork() as clock:
        yield clock


async def ask(budget: Budget, most_out: int, used_out: int, seconds: float, *, lost: bool = False) -> None:
    """One request as `vip.llm.client` does it: 1000 tokens in."""
    held = await budget.hold(PRICE, 1000, most_out)
    try:
        await asyncio.sleep(seconds)
        if lost:
            budget.lost(PRICE, 1000, most_out)
        else:
            budget.paid(PRICE, 1000, used_out)
    finally:
        budget.free(held)


def committed(budget: Budget) -> float:
    return budget.usage.usd + budget.usage.unsure_usd + budget._held_usd


REQUEST = st.tuples(
    st.integers(0, 3000),
    st.floats(0, 1),
    st.integers(0, 20),
    st.sampled_from(["paid", "paid", "paid", "lost", "cancelled"]),
    st.integers(0, 9),
)


@pytest.mark.slow
@given(requests=st.lists(REQUEST, max_size=60), max_usd=st.floats(0, 0.3))
@settings(max_examples=200)
def test_what_is_spent_and_on_its_way_never_passes_the_ceiling(requests: list[tuple[int, float, int, str, int]], max_usd: float) -> None:
    class Watched(Budget):
        async def hold(self, *args: object, **options: object) -> float:
            held = await super().hold(*args, **options)  # type: ignore[arg-type]
            assert committed(self) <= max_usd + 1e-9
            return held

    async def go(budget: Budget) -> list[BaseException | None]:
        tasks = []
        for most_out, share, seconds, how, pause in requests:
            tasks.append(asyncio.create_task(ask(budget, most_out, int(share * most_out), seconds, lost=how == "lost")))
            await asyncio.sleep(pause)
            if how == "cancelled":
                tasks[len(tasks) // 2].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    budget = Watched(max_usd, given=True)
    with Clockwork() as clock:
        ends = clock.run(asyncio.wait_for(go(budget), 10**6))
    assert budget._held_usd == pytest.approx(0, abs=1e-9), "what is over is freed"
    assert budget.usage.usd + budget.usage.unsure_usd <= max_usd + 1e-9
    assert {type(end) for end in ends} <= {type(None), BudgetError, asyncio.CancelledError}


def test_a_request_waits_while_what_is_on_its_way_may_leave_room_for_it(clock: Clockwork) -> None:
    async def go() -> float:
        budget = Budget(0.03, given=True)  # room for one of 1000 + 2000 tokens, which may cost $0.021
        first = asyncio.create_task(ask(budget, 2000, 100, 5))
        await asyncio.sleep(0)
        await ask(budget, 2000, 100, 0)
        await first
        return budget.usage.usd

    assert clock.run(go()) == pytest.approx(2 * 0.002)
    assert clock.now_s == pytest.approx(5)


def test_it_is_refused_once_nothing_is_on_its_way_that_could_leave_room(clock: Clockwork) -> None:
    async def go() -> None:
        budget = Budget(0.03, given=True)
        first = asyncio.create_task(ask(budget, 2000, 2000, 5))
        await asyncio.sleep(0)
        with pytest.raises(BudgetError, match=r"--max-usd 0\.03 leaves no room for another request: \$0\.0210 is spent") as caught:
            await ask(budget, 2000, 0, 0)
        assert "the next may cost up to $0.0210" in str(caught.value)
        assert "with a higher --max-usd" in str(caught.value)
        await first

    clock.run(go())
    assert clock.now_s == pytest.approx(5)


def test_what_was_never_answered_counts_as_if_it_had_cost_the_most(clock: Clockwork) -> None:
    async def go() -> str:
        budget = Budget(0.05, given=True)
        await ask(budget, 2000, 0, 0, lost=True)
        await ask(budget, 2000, 0, 0, lost=True)
        with pytest.raises(BudgetError, match=r"leaves no room for another request: \$0\.0420 is spent"):
            await ask(budget, 2000, 0, 0)
        return str(budget.usage)

    assert "at most $0.0420 more for requests that were never answered" in clock.run(go())


def test_a_run_that_names_no_ceiling_has_one_and_is_told_so(clock: Clockwork) -> None:
    budget = Budget()
    assert budget.max_usd == DEFAULT_MAX_USD
    with pytest.raises(BudgetError, match="The ceiling of 5 dollars for runs that are given none leaves no room"):
        clock.run(budget.hold(PRICE, 10**7, 0))


def test_nothing_is_spent_with_a_ceiling_of_zero(clock: Clockwork) -> None:
    with pytest.raises(BudgetError, match=r"--max-usd 0 leaves no room for another request: \$0\.00 is spent"):
        clock.run(Budget(0.0, given=True).hold(PRICE, 1, 1))


@pytest.mark.parametrize(("price", "max_usd"), [(None, 5.0), (PRICE, None)])
def test_without_a_price_or_a_ceiling_nothing_is_held(price: Price | None, max_usd: float | None, clock: Clockwork) -> None:
    assert clock.run(Budget(max_usd).hold(price, 10**9, 10**9)) == 0.0


def test_a_request_in_a_batch_is_held_at_its_own_price(clock: Clockwork) -> None:
    budget = Budget(1.0)
    assert clock.run(budget.hold(PRICE, 1000, 1000, batch=True)) == pytest.approx(0.0055)
    assert budget.paid(PRICE, 1000, 1000, batch=True) == pytest.approx(0.0055)


# ---------------------------------------------------------------- what is told


def test_what_was_used_is_counted_for_the_run_and_for_the_folder() -> None:
    budget, folder = Budget(), Usage()
    budget.paid(PRICE, 1000, 100)
    budget.paid(PRICE, 2000, 10, folder)
    budget.paid(None, 5, 5, folder)
    budget.saved(folder)
    budget.lost(PRICE, 0, 100, folder)
    assert (budget.usage.requests, budget.usage.tokens_in, budget.usage.tokens_out, budget.usage.unpriced) == (3, 3005, 115, 1)
    assert budget.usage.usd == pytest.approx(0.002 + 0.0021)
    assert (folder.requests, folder.tokens_in, folder.tokens_out, folder.cached, folder.unpriced) == (2, 2005, 15, 1, 1)
    assert (folder.usd, folder.unsure_usd) == (pytest.approx(0.0021), pytest.approx(0.001))


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(1, 0, 10, 5, 0.5), ["1 request", "10 tokens in", "5 out", "$0.50"]),
        (Usage(24, 2, 31_200, 4_100, 0.04), ["24 requests", "2 answer", "31,200 tokens in", "4,100 out", "$0.0400"]),
        (Usage(3, 0, 10, 5, 0.0, 3), ["3 requests", "10 tokens in", "5 out"]),
        (Usage(0, 7), ["7 answer"]),
        (Usage(), ["0 requests"]),
        (Usage(1, 0, 10, 0, 0.5), ["1 request", "10 tokens in", "0 out", "$0.50"]),
    ],
)
def test_it_is_told_in_one_line_without_dollars_where_no_price_is_known(usage: Usage, words: list[str]) -> None:
    assert all(part.startswith(word) for part, word in zip(str(usage).split(", "), words, strict=True))


@pytest.mark.parametrize(("usd", "words"), [(0, "$0.00"), (0.00421, "$0.0042"), (1.234, "$1.23"), (0.1, "$0.10"), (12345.6, "$12345.60")])
def test_dollars_have_digits_that_say_something(usd: float, words: str) -> None:
    assert dollars(usd) == words


def test_a_question_that_batches_leave_no_room_for_is_refused_instead_of_waited_with() -> None:
    budget = Budget(max_usd=1.0, given=True)
    price = Price("m", 1e6, 1e6, batch=0.5, thinking=0, as_of=None, picture=None)
    assert budget.book(price, 1, 0) == 0.5
    assert budget.book(price, 2, 0) is None
    with Clockwork() as clock:
        with pytest.raises(BudgetError, match="leaves no room"):
            clock.run(budget.hold(price, 1, 0))
        budget.release_batches()
        assert clock.run(budget.hold(price, 1, 0)) == 1.0


def test_batches_may_be_booked_up_to_the_ceiling_and_what_is_known_of_them_makes_room() -> None:
    budget = Budget(max_usd=1.0, given=True)
    price = Price("m", 1e6, 1e6, batch=0.5, thinking=0, as_of=None, picture=None)
    assert [budget.book(price, 1, 0) for _ in range(3)] == [0.5, 0.5, None]
    budget.unbook(0.5)
    assert [budget.book(price, 0, 1) for _ in range(2)] == [0.5, None]


def test_what_is_freed_twice_leaves_no_more_room_than_there_was(clock: Clockwork) -> None:
    budget = Budget(max_usd=1.0, given=True)
    price = Price("m", 1e6, 1e6, batch=1.0, thinking=0, as_of=None, picture=None)
    assert budget.book(price, 1, 0) == 1.0
    budget.release_batches()
    budget.unbook(1.0)
    held = clock.run(budget.hold(price, 1, 0))
    for _ in range(2):
        budget.free(held)
    assert budget.committed_usd == 0
    assert budget.book(price, 2, 0) is None
    with pytest.raises(BudgetError):
        clock.run(budget.hold(price, 2, 0))


def test_what_was_used_between_two_moments_is_a_difference() -> None:
    later = Usage(requests=5, cached=4, tokens_in=30, tokens_out=20, usd=1.5, unpriced=2, unsure_usd=0.75)
    before = Usage(requests=2, cached=3, tokens_in=10, tokens_out=15, usd=0.5, unpriced=2, unsure_usd=0.5)
    assert later - before == Usage(requests=3, cached=1, tokens_in=20, tokens_out=5, usd=1.0, unpriced=0, unsure_usd=0.25)
