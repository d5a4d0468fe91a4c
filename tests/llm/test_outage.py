"""A server that is gone: all questions wait, one at a time sees whether it is back, and nothing is asked twice. In made-up time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import dropwhile, pairwise
from typing import Any

import pytest

from tests.llm.clockwork import Clockwork
from tests.llm.test_client import GOOD, PROMPTS, Script, ask, busy, ends
from vip.errors import BusyError, EngineError, OutageError, ReplyError, VipError
from vip.llm.budget import Budget
from vip.llm.cache import AnswerCache
from vip.llm.client import MOST_PROBES, TRIES, CircuitBreaker, EngineAnswer, EngineClient, RequestAttempt
from vip.llm.limiter import AdaptiveLimiter
from vip.llm.outage import Outage, OutagePause
from vip.protocols import Reply, Request

FIRST_S = 30.0


class Away(Script):
    """Answers but for a while, in which it refuses."""

    def __init__(self, clock: Clockwork, from_s: float, to_s: float, failure: VipError, *, seconds: float = 1.0) -> None:
        super().__init__([GOOD], clock, seconds=seconds)
        self.away, self.failure = (from_s, to_s), failure
        self.answered: list[str] = []

    async def generate(self, request: Request) -> Reply:
        reply = await super().generate(request)
        if self.away[0] <= self.clock() < self.away[1]:
            raise self.failure
        self.answered.append(request.prompt)
        return reply


class Poison(Script):
    """Fails at one question whatever else happens."""

    async def generate(self, request: Request) -> Reply:
        await asyncio.sleep(self.seconds)
        self.asked.append(request)
        if request.prompt == "Question 7.":
            raise busy("server")
        return Reply(GOOD, "m-1", 100, 10)


@pytest.fixture
def clock() -> Iterator[Clockwork]:
    with Clockwork() as clock:
        yield clock


Resting = Callable[[Any], tuple[EngineClient, list[OutagePause | None]]]


@pytest.fixture
def resting(clock: Clockwork, answers: AnswerCache) -> Resting:
    def make(engine: Any, *, answered: bool = True) -> tuple[EngineClient, list[OutagePause | None]]:
        told: list[OutagePause | None] = []
        client = EngineClient(engine, Budget(None), AdaptiveLimiter(4, clock=clock, outage=Outage(FIRST_S, told.append)), answers)
        client.circuit_breaker.answered = answered
        return client, told

    return make


@pytest.mark.parametrize("kind", ["connection", "dropped", "server", "timeout", "rate_limit"])
def test_a_server_that_is_away_for_five_minutes_costs_time_only(kind: Any, resting: Resting, clock: Clockwork) -> None:
    engine = Away(clock, 10.5, 310.5, busy(kind))
    client, told = resting(engine)

    async def go() -> list[Any]:
        return await ends(*(ask(client, number) for number in range(100)))

    found = clock.run(go())
    assert all(isinstance(one, EngineAnswer) for one in found)
    assert len(engine.answered) == len(set(engine.answered)) == 100
    rests = [one for one in told if one is not None]
    assert told[-1] is None, "that it answers again is told"
    assert [one.why for one in rests] == ["The server is busy."] * len(rests)
    assert clock.now_s < 10.5 + 300 + 20 * FIRST_S + 60


def test_while_it_is_away_one_question_at_a_time_goes_out_and_each_rest_is_longer(resting: Resting, clock: Clockwork) -> None:
    engine = Away(clock, 1.5, 4000.5, busy("connection"), seconds=0.5)
    client, told = resting(engine)

    async def go() -> None:
        await ends(*(ask(client, number) for number in range(40)))

    clock.run(go())
    waits = [after - before - engine.seconds for before, after in pairwise(at for at in engine.asked_s if at < 4000)]
    waits = list(dropwhile(lambda wait: wait < 1.5 * FIRST_S, waits))  # before, many are on the way, and then the first rest
    assert [round(wait) for wait in waits[:7]] == [60, 120, 240, 480, 600, 600, 600]
    assert len({one.prompt for one in engine.asked if one.prompt not in engine.answered}) == 0
    assert len(told) == len(waits) + 3  # the first rest, one after each try, and the end


def test_after_most_of_a_day_without_an_answer_it_ends(resting: Resting, clock: Clockwork) -> None:
    client, _ = resting(Away(clock, 0, 10**9, busy("connection")))
    with pytest.raises(OutageError, match=r"It has answered nothing for 20\.\d hours\. What is done stays done\.") as caught:
        clock.run(ask(client))
    assert caught.value.kind == "connection"
    assert caught.value.exit_code == 5


def test_a_wait_of_hours_that_the_server_asks_for_is_a_rest(resting: Resting, clock: Clockwork) -> None:
    engine = Script([busy("rate_limit", 7200.0), GOOD], clock)
    client, _ = resting(engine)
    assert isinstance(clock.run(ask(client)), EngineAnswer)
    assert engine.asked_s == [0, 7200]


@pytest.mark.parametrize("answered", [False, True])
def test_a_server_that_never_answered_is_a_wrong_address_and_ends_the_run(answered: bool, resting: Resting, clock: Clockwork) -> None:
    engine = Away(clock, 0, 100, busy("connection"))
    client, _ = resting(engine, answered=answered)  # type: ignore[call-arg]
    if answered:
        assert isinstance(clock.run(ask(client)), EngineAnswer)
    else:
        with pytest.raises(OutageError, match="Tried 4 times"):
            clock.run(ask(client))


def test_a_wrong_key_ends_the_run_also_where_servers_may_rest(resting: Resting, clock: Clockwork) -> None:
    for failure in (EngineError("The key is wrong."), EngineError("The quota is spent.")):
        client, told = resting(Script([failure], clock))
        with pytest.raises(EngineError, match=str(failure)):
            clock.run(ask(client))
        assert told == []


def test_a_key_that_is_revoked_while_the_server_is_away_ends_the_run(resting: Resting, clock: Clockwork) -> None:
    client, told = resting(Script([*[busy("connection")] * 8, EngineError("The key is wrong.")], clock))
    with pytest.raises(EngineError, match=r"The key is wrong\."):
        clock.run(ask(client))
    assert told[-1] is None


def test_a_question_that_the_server_fails_at_costs_itself_only(resting: Resting, clock: Clockwork) -> None:
    client, told = resting(Poison([], clock, seconds=5.0))
    places = asyncio.Semaphore(8)  # as many as are under way in a run

    async def one(number: int) -> EngineAnswer:
        async with places:
            return await ask(client, number)

    async def go() -> list[Any]:
        return await ends(*(one(number) for number in range(200)))

    found = clock.run(go())
    assert [number for number, one in enumerate(found) if isinstance(one, ReplyError)] == [7]
    assert found[7].kind == "server"
    assert told == [], "a server that answers others is not gone"


def test_the_last_question_that_the_server_fails_at_is_given_up_after_a_few_rests(resting: Resting, clock: Clockwork) -> None:
    client, told = resting(Poison([], clock))
    with pytest.raises(ReplyError, match=f"Tried {MOST_PROBES} times alone") as caught:
        clock.run(ask(client, 7))
    assert caught.value.kind == "server"
    assert len([rest for rest in told if rest]) == MOST_PROBES + 1
    assert clock.now_s < 2400


@pytest.mark.parametrize("failures", [1, TRIES - 1, TRIES])
def test_a_server_is_gone_after_many_tries_and_a_minute_and_not_after_one_of_both(failures: int) -> None:
    breaker = CircuitBreaker()
    for number in range(failures):
        breaker.record_failure(100.0 + number)
    assert not breaker.is_silent(159.9, 60.0)
    assert breaker.is_silent(160.0, 60.0) is (failures == TRIES), "since the first of them"
    breaker.record_answer()
    breaker.record_failure(200.0)
    assert not breaker.is_silent(1000.0, 60.0)


def test_many_questions_that_fail_at_once_do_not_make_a_server_gone(clock: Clockwork, answers: AnswerCache) -> None:
    told: list[OutagePause | None] = []
    engine = Away(clock, 0.5, 1.5, busy("server"))
    client = EngineClient(engine, Budget(None), AdaptiveLimiter(20, clock=clock, outage=Outage(FIRST_S, told.append)), answers)
    client.circuit_breaker.answered = True

    async def go() -> list[Any]:
        return await ends(*(ask(client, number) for number in range(20)))

    assert all(isinstance(one, EngineAnswer) for one in clock.run(go()))
    assert told == []


def test_questions_that_were_on_their_way_as_it_began_do_not_lengthen_a_rest(resting: Resting, clock: Clockwork) -> None:
    engine = Away(clock, 0, 500, busy("server"), seconds=20.0)
    client, told = resting(engine)

    async def go() -> list[Any]:
        return await ends(*(ask(client, number) for number in range(4)))

    assert all(isinstance(one, EngineAnswer) for one in clock.run(go()))
    assert [rest and rest.seconds for rest in told] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S, None], "one for each probe"


def test_who_was_passed_over_before_a_rest_is_not_taken_for_the_cause_of_the_next(resting: Resting, clock: Clockwork) -> None:
    client, _ = resting(Script([GOOD], clock))
    attempt = RequestAttempt(client, Request("structure", "Question 7."), PROMPTS["structure"], {})

    async def go() -> bool:
        assert client.limiter.outage is not None
        client.limiter.outage.pause(BusyError("Gone.", kind="server"))
        attempt.tries["server"], attempt.passed_over = TRIES - 1, TRIES // 2
        return attempt._pauses_server(busy("server"), TRIES)

    assert clock.run(go())
    assert (attempt.tries["server"], attempt.passed_over) == (0, 0)


def test_one_that_is_given_up_while_it_waits_passes_its_turn_on(clock: Clockwork) -> None:
    outage = Outage(FIRST_S)

    async def go() -> bool:
        outage.pause(BusyError("Gone.", kind="connection"))
        first, second = asyncio.create_task(outage.wait_turn()), asyncio.create_task(outage.wait_turn())
        await asyncio.sleep(FIRST_S - 1)
        asyncio.get_running_loop().call_later(1.0, first.cancel)  # as its turn comes
        return await second

    assert clock.run(go()) is True
    assert clock.now_s == pytest.approx(FIRST_S)


def test_an_answer_ends_the_doubling_of_rests(clock: Clockwork) -> None:
    told: list[OutagePause | None] = []
    outage = Outage(FIRST_S, told.append)

    async def go() -> None:
        for _ in range(3):
            outage.pause(BusyError("Gone.", kind="connection"))
        outage.answered()
        outage.pause(BusyError("Gone again.", kind="connection"))

    clock.run(go())
    assert [rest and rest.seconds for rest in told] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, None, FIRST_S]


@pytest.mark.parametrize("answered_s", [10.0, 40.0], ids=["while it rested", "after its rest"])
def test_a_rest_begins_anew_where_the_server_answered_in_between(answered_s: float, clock: Clockwork) -> None:
    """What is left of the rest before lets nobody go early."""
    outage = Outage(FIRST_S)
    gone = BusyError("Gone.", kind="connection")

    async def go() -> bool:
        outage.pause(gone)
        await asyncio.sleep(answered_s)
        outage.answered()
        outage.pause(gone)
        return await outage.wait_turn()

    assert clock.run(go()) is True
    assert clock.now_s == pytest.approx(answered_s + FIRST_S)


def test_who_has_waited_longest_goes_first(clock: Clockwork) -> None:
    outage, went = Outage(FIRST_S), list[tuple[int, bool]]()

    async def wait(number: int) -> None:
        alone = await outage.wait_turn()
        went.append((number, alone))
        await asyncio.sleep(1)
        outage.answered()

    async def go() -> None:
        outage.pause(BusyError("Gone.", kind="connection"))
        await asyncio.gather(*(wait(number) for number in range(3)))

    clock.run(go())
    assert went == [(0, True), (1, False), (2, False)]


def test_a_rest_tells_when_it_is_over(clock: Clockwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    told: list[OutagePause | None] = []

    async def go() -> None:
        Outage(FIRST_S, told.append).pause(BusyError("Gone.", kind="connection", retry_after_s=90.0))

    clock.run(go())
    assert told == [OutagePause(1_000_090.0, 90.0, "Gone.")]


def test_a_server_that_asks_for_more_than_a_day_is_given_up_at_once(clock: Clockwork) -> None:
    told: list[OutagePause | None] = []

    async def pause() -> None:
        Outage(FIRST_S, told.append).pause(BusyError("Too many requests.", kind="rate_limit", retry_after_s=1e20))

    with pytest.raises(OutageError, match="It asks to wait for more than a day"):
        clock.run(pause())
    assert told == []


def test_after_a_rest_a_question_has_all_its_tries_again(resting: Resting, clock: Clockwork) -> None:
    """It fails ten times, and the server answers another one before the tenth: it rests after the eighth and the ninth alone."""

    class Unlucky(Script):
        async def generate(self, request: Request) -> Reply:
            self.asked.append(request)
            if request.prompt == "Question 7." and sum(one.prompt == request.prompt for one in self.asked) <= 10:
                raise busy("server")
            return Reply(GOOD, "m-1", 100, 10)

    client, told = resting(Unlucky([], clock))

    async def later() -> EngineAnswer:
        while not told:
            await asyncio.sleep(1)
        return await ask(client, 1)  # while it rests

    async def go() -> list[Any]:
        return await ends(ask(client, 7), later())

    assert all(isinstance(one, EngineAnswer) for one in clock.run(go()))
    assert [rest and rest.seconds for rest in told] == [FIRST_S, 2 * FIRST_S, None]
