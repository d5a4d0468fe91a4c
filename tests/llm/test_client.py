"""One engine, asked: nothing twice, nothing in vain for long, nothing kept that cannot be used. In made-up time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.llm.clockwork import Clockwork
from vip.errors import BudgetError, BusyError, EngineError, OutageError, RejectedError, ReplyError, StoreError, VipError
from vip.llm.budget import Budget, Usage
from vip.llm.cache import AnswerCache
from vip.llm.client import GIVEN_UP_IN_A_ROW, TRIES, TRIES_BEFORE_AN_ANSWER, EngineAnswer, EngineClient
from vip.llm.limiter import AdaptiveLimiter
from vip.llm.prices import Price
from vip.llm.tokens import OpenAITiles
from vip.prompts import load_prompts
from vip.protocols import EngineCapabilities, Picture, RateLimits, Reply, Request
from vip.records import Famous

PROMPTS = load_prompts()
PRICE = Price("m", usd_in=1.0, usd_out=10.0, batch=0.5, thinking=0, as_of="2026-01-01", picture=None)
FAMOUS = {"focus": "a test", "action": "a", "mood": "m", "objects": ["a box"], "setting": "s"}
GOOD = json.dumps(FAMOUS)


def busy(kind: Any = "server", retry_after_s: float | None = None) -> BusyError:
    return BusyError("The server is busy.", kind=kind, retry_after_s=retry_after_s)


def useless(kind: Any, *tokens: int) -> ReplyError:
    return ReplyError(f"Of no use: {kind}.", kind=kind, tokens_in=tokens[0] if tokens else None, tokens_out=tokens[1] if tokens else None)


@dataclass
class Script:
    """An engine that answers what is written, the last of it again and again."""

    lines: Sequence[str | VipError | Reply]
    clock: Callable[[], float]
    name: str = "scripted:m"
    address: str | None = "http://somewhere/v1"
    seconds: float = 0.0
    parameters: dict[str, Any] = field(default_factory=dict)
    traits: dict[str, str] = field(default_factory=dict)
    capabilities: EngineCapabilities = field(init=False)
    asked: list[Request] = field(default_factory=list)
    asked_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.capabilities = EngineCapabilities(address=self.address, parameters=self.parameters, traits=self.traits)

    async def generate(self, request: Request) -> Reply:
        self.asked.append(request)
        self.asked_s.append(self.clock())
        line = self.lines[min(len(self.asked), len(self.lines)) - 1]
        await asyncio.sleep(self.seconds)
        if isinstance(line, VipError):
            raise line
        return line if isinstance(line, Reply) else Reply(line, "m-1", 100, 10)

    closed: bool = False

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock() -> Iterator[Clockwork]:
    with Clockwork() as clock:
        yield clock


@pytest.fixture
def room_of(clock: Clockwork, answers: AnswerCache) -> Callable[..., tuple[EngineClient, Script]]:
    def make(
        *lines: str | VipError | Reply, price: Price | None = None, max_usd: float | None = None, **about: Any
    ) -> tuple[EngineClient, Script]:
        engine = Script(lines, clock, **about)
        return EngineClient(engine, Budget(max_usd, given=True), AdaptiveLimiter(4, clock=clock), answers, price), engine

    return make


RoomOf = Callable[..., tuple[EngineClient, Script]]


def request(number: int = 0, **changed: Any) -> Request:
    about: dict[str, Any] = {"prompt": f"Question {number}.", "schema": PROMPTS["structure"].schema, "max_tokens": 2000}
    return Request("structure", **{**about, **changed})


async def ask(client: EngineClient, number: int = 0, **changed: Any) -> EngineAnswer:
    return await client.ask(request(number, **changed), PROMPTS["structure"], {"schema": "Famous"})


async def ends(*waiting: Any) -> list[Any]:
    return list(await asyncio.gather(*waiting, return_exceptions=True))


# ---------------------------------------------------------------- nothing twice


def test_the_answer_is_a_record_with_the_call_that_was_paid_for(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(GOOD, price=PRICE, max_usd=1.0, parameters={"detail": "high"}, seconds=2.0)
    answer = clock.run(ask(client))
    assert answer.value == Famous.model_validate(FAMOUS)
    (call,) = answer.calls
    prompt = PROMPTS["structure"]
    assert (call.engine, call.model, call.prompt, call.prompt_version, call.prompt_sha256) == (
        *("scripted:m", "m-1", "structure", prompt.version, prompt.sha256),
    )
    assert call.parameters == {"max_tokens": 2000, "schema": "Famous", "detail": "high"}
    assert (call.tokens_in, call.tokens_out, call.latency_s, call.cached) == (100, 10, 2.0, False)
    assert call.usd == pytest.approx(0.0002)


def test_the_same_question_at_the_same_time_is_asked_once(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(GOOD, seconds=1.0)

    async def go() -> list[EngineAnswer]:
        return await asyncio.gather(*(ask(client) for _ in range(5)), ask(client, 1))

    found = clock.run(go())
    assert sorted(one.prompt for one in engine.asked) == ["Question 0.", "Question 1."]
    assert {one.value for one in found} == {Famous.model_validate(FAMOUS)}
    assert sorted(call.cached for one in found for call in one.calls) == [False, False, True, True, True, True]
    assert client.budget.usage.cached == 4
    assert client._locks == {}


def test_where_the_first_of_the_same_question_fails_the_next_one_asks(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(useless("content_filter"), GOOD, seconds=1.0)
    first, second = clock.run(ends(ask(client), ask(client)))
    assert isinstance(first, ReplyError)
    assert isinstance(second, EngineAnswer)
    assert len(engine.asked) == 2


def test_it_is_not_asked_again_later_or_by_another_run_on_the_same_file(room_of: RoomOf, path: Path, clock: Clockwork) -> None:
    client, engine = room_of(GOOD, price=PRICE, max_usd=1.0)
    first = clock.run(ask(client))
    again = clock.run(ask(client))
    other_file = AnswerCache(path)
    try:
        other = EngineClient(Script([busy()], clock), Budget(0.0, given=True), AdaptiveLimiter(clock=clock), other_file, PRICE)
        elsewhere = clock.run(ask(other))
    finally:
        other_file.close()
    assert len(engine.asked) == 1
    assert first.value == again.value == elsewhere.value
    assert [(call.cached, call.usd, call.tokens_in) for call in elsewhere.calls] == [(True, 0.0, 100)]
    assert (other.budget.usage.cached, other.budget.usage.requests, other.budget.usage.usd) == (1, 0, 0.0)


@pytest.mark.parametrize(
    "other",
    [
        {"max_tokens": 1999},
        {"pictures": (Picture(b"b", "image/jpeg"),)},
        {"pictures": ()},
        {"schema": {"type": "object"}},
        {"prompt": "Another question."},
        {"is_greedy": True},
    ],
)
def test_a_question_that_differs_in_anything_is_another_question(other: dict[str, Any], room_of: RoomOf) -> None:
    client, _ = room_of(GOOD)
    fields = {"stage": "structure", "prompt": "Q", "schema": {}, "pictures": (Picture(b"a", "image/jpeg"),), "max_tokens": 2000}
    assert client.digest(Request(**fields)) != client.digest(Request(**{**fields, **other}))


def test_pictures_that_are_cut_elsewhere_are_others(room_of: RoomOf) -> None:
    client, _ = room_of(GOOD)
    one, other = (
        client.digest(request(pictures=tuple(Picture(data, "image/jpeg") for data in pictures)))
        for pictures in ((b"ab", b"c"), (b"a", b"bc"))
    )
    assert one != other


@pytest.mark.parametrize("about", [{"name": "scripted:n"}, {"address": "http://elsewhere/v1"}, {"parameters": {"detail": "low"}}])
def test_what_another_model_or_server_answers_is_another_answer(about: dict[str, Any], room_of: RoomOf) -> None:
    client, _ = room_of(GOOD)
    other, _ = room_of(GOOD, **about)
    assert client.digest(request()) != other.digest(request())


def test_the_order_in_which_parameters_are_named_is_no_other_question(room_of: RoomOf) -> None:
    (one, _), (other, _) = (room_of(GOOD, parameters=dict(named)) for named in ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)]))
    assert one.digest(request()) == other.digest(request())


def test_an_answer_that_was_there_counts_for_its_folder_too(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(GOOD)
    used = Usage()

    async def twice() -> None:
        for _ in range(2):
            await client.ask(request(), PROMPTS["structure"], usage=used)

    clock.run(twice())
    assert (used.requests, used.cached) == (1, 1)
    assert used == client.budget.usage


def test_an_engine_whose_answers_cost_nothing_is_asked_again(room_of: RoomOf, answers: AnswerCache, clock: Clockwork) -> None:
    client, engine = room_of(GOOD)
    engine.capabilities = EngineCapabilities(caches=False)
    clock.run(ask(client))
    clock.run(ask(client))
    assert len(engine.asked) == 2
    assert answers.count() == 0


def test_what_was_kept_but_does_not_fit_any_more_is_asked_again(room_of: RoomOf, answers: AnswerCache, clock: Clockwork) -> None:
    client, engine = room_of(GOOD)
    clock.run(answers.keep(client.digest(request()), "e", Reply('{"focus": 3}', "m")))
    assert clock.run(ask(client)).value == Famous.model_validate(FAMOUS)
    assert len(engine.asked) == 1
    kept = answers.get(client.digest(request()))
    assert kept is not None
    assert kept.text == GOOD


def test_an_answer_that_cannot_be_kept_ends_the_run(room_of: RoomOf, answers: AnswerCache, clock: Clockwork) -> None:
    client, _ = room_of(GOOD)
    answers._writer.close()
    answers._writer = answers._connect()
    answers._writer.execute("pragma query_only = on")
    with pytest.raises(StoreError, match=r"answers\.sqlite"):
        clock.run(ask(client))


def test_what_an_engine_finds_out_about_its_server_is_known_to_the_next_run(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(GOOD)
    engine.traits["form"] = "text"
    clock.run(client.close())
    assert engine.closed
    later, engine = room_of(GOOD, traits={"form": "json_schema", "length": "max_tokens"})
    later.recall()
    assert engine.traits == {"form": "text", "length": "max_tokens"}
    other, engine = room_of(GOOD, traits={"length": "max_tokens"})
    other.recall()
    assert engine.traits == {"length": "max_tokens"}, "what it does not ask about is left out"
    elsewhere, engine = room_of(GOOD, traits={"form": "json_schema"}, address="http://elsewhere/v1")
    elsewhere.recall()
    assert engine.traits == {"form": "json_schema"}


def test_a_call_is_dated_when_it_was_begun(room_of: RoomOf, clock: Clockwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    client, _ = room_of(GOOD, seconds=90.0)
    assert clock.run(ask(client)).calls[0].created_utc == "2027-01-15T07:58:30+00:00"


# ---------------------------------------------------------------- tokens a minute


def test_tokens_of_the_answer_count_towards_those_of_a_minute(room_of: RoomOf, clock: Clockwork) -> None:
    """Of 6000 a minute, 100 a second: the first one takes 1100, of which 1000 come back, and the next one waits for them."""
    client, engine = room_of(Reply(GOOD, "m", 100, 1000))
    client.limiter = AdaptiveLimiter(4, tpm=6000, clock=clock)

    async def go() -> None:
        await ask(client, 1)
        await ask(client, 2)

    clock.run(go())
    assert engine.asked_s[1] == pytest.approx(11, abs=0.1)


def test_an_answer_that_is_expected_counts_before_it_comes(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(GOOD, seconds=60.0)
    client.limiter = AdaptiveLimiter(4, tpm=6000, clock=clock)

    async def go() -> None:
        await asyncio.gather(ask(client, 1), ask(client, 2))

    clock.run(go())
    reckoned, _ = client.most_tokens(request(1))
    assert 100 < reckoned < 300
    assert engine.asked_s[1] == pytest.approx((reckoned + 300) / 100, abs=0.05)


def test_the_limits_that_a_good_answer_names_are_kept(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(Reply(GOOD, "m", 1, 1, RateLimits(requests_left=0, requests_reset_s=9.0)))

    async def go() -> None:
        await ask(client, 1)
        await ask(client, 2)

    clock.run(go())
    assert engine.asked_s == [0, 9]


def test_thinking_and_the_size_that_pictures_are_sent_in_are_reckoned_with(room_of: RoomOf) -> None:
    client, engine = room_of(GOOD, price=PRICE)
    question = request(pictures=(Picture(b"a", "image/jpeg"),), max_tokens=50)
    bare, _ = client.most_tokens(request(max_tokens=50))
    assert client.most_tokens(question) == (bare + 37 * 37, 50)  # 1024 px in squares of 28
    engine.capabilities = EngineCapabilities(thinking_tokens=700, picture_detail="low")
    client.price = replace(PRICE, picture=OpenAITiles(rule="tiles", base=85, tile=170))
    assert client.most_tokens(question) == (bare + 85, 750)


# ---------------------------------------------------------------- answers that cannot be used


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"focus": 3}', "focus: Input should be a valid string"),
        (json.dumps({**FAMOUS, "more": 1}), "more: Extra inputs are not permitted"),
        (GOOD[:-9], "Invalid JSON"),
        ("A caption.", "Invalid JSON"),
        ("", "Invalid JSON"),
    ],
)
def test_an_answer_outside_the_schema_is_sent_back_with_the_reason(answer: str, reason: str, room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(answer, GOOD)
    found = clock.run(ask(client))
    assert found.value == Famous.model_validate(FAMOUS)
    assert len(found.calls) == 2
    first, second = engine.asked
    assert second.prompt.startswith(first.prompt)
    assert reason in second.prompt
    assert "could not be used" in second.prompt


def test_the_reason_is_that_of_the_schema_whatever_the_engine_is_called(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of('{"focus": 3}', GOOD, name="openai:m (at home)")
    clock.run(ask(client))
    assert "could not be used (focus: Input should be a valid string). Answer again" in engine.asked[1].prompt


def test_reasons_do_not_pile_up_in_the_question(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of('{"focus": 3}', "{}", GOOD)
    clock.run(ask(client))
    assert engine.asked[2].prompt.count("could not be used") == 1
    assert "Field required" in engine.asked[2].prompt


def test_an_empty_text_is_asked_for_again_without_talk_of_json(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(" \n", "A caption.")
    plain = Request("caption", "Describe.", max_tokens=100)
    assert clock.run(client.ask(plain, PROMPTS["caption"])).value == "A caption."
    assert [one.prompt for one in engine.asked] == ["Describe.", "Describe."]
    client, _ = room_of("")
    with pytest.raises(ReplyError) as caught:
        clock.run(client.ask(plain.__class__("caption", "Another.", max_tokens=100), PROMPTS["caption"]))
    assert caught.value.kind == "empty"


def test_half_an_emoji_in_a_caption_becomes_a_mark_that_can_be_written(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of("A smile \ud83d")
    answer = clock.run(client.ask(Request("caption", "Describe."), PROMPTS["caption"]))
    assert answer.value == "A smile \N{REPLACEMENT CHARACTER}"


def test_an_answer_that_was_cut_off_gets_twice_the_room(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(useless("length", 100, 2000), GOOD)
    clock.run(ask(client))
    assert [one.max_tokens for one in engine.asked] == [2000, 4000]


@pytest.mark.parametrize(
    ("kind", "tries"),
    [("schema", 3), ("empty", 3), ("broken", 3), ("refusal", 2), ("length", 2), ("content_filter", 1), ("too_large", 1), ("picture", 1)],
)
def test_it_is_tried_again_as_often_as_that_can_help(
    kind: str, tries: int, room_of: RoomOf, clock: Clockwork, answers: AnswerCache
) -> None:
    client, engine = room_of("{}" if kind == "schema" else useless(kind))
    with pytest.raises(ReplyError) as caught:
        clock.run(ask(client))
    assert caught.value.kind == kind
    assert len(engine.asked) == tries
    assert answers.count() == 0, "what cannot be used is not kept"
    assert not client.circuit_breaker.is_open, "the server is well, this question is not"


def test_different_failures_are_counted_apart(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(busy(), "{}", useless("refusal"), "{}", busy(), useless("length"), GOOD)
    assert clock.run(ask(client)).value == Famous.model_validate(FAMOUS)
    assert len(engine.asked) == 7


def test_the_sentence_names_how_often_and_why(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of("{}")
    with pytest.raises(ReplyError, match=r"^scripted:m answered 3 times outside the schema of Famous \(focus: Field required\)\.$"):
        clock.run(ask(client))


# ---------------------------------------------------------------- what useless answers cost


def test_useless_answers_are_paid_for(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of("{}", useless("refusal", 50, 5), useless("refusal", 50, 5), price=PRICE, max_usd=1.0)
    with pytest.raises(ReplyError):
        clock.run(ask(client))
    usage = client.budget.usage
    assert (usage.requests, usage.tokens_in, usage.tokens_out) == (3, 200, 20)
    assert usage.usd == pytest.approx(200e-6 + 200e-6)
    assert usage.unsure_usd == 0


@pytest.mark.parametrize(
    ("failure", "costs"),
    [
        *((busy(kind), kind in {"timeout", "dropped"}) for kind in ("timeout", "dropped", "server", "rate_limit", "connection")),
        *((useless(kind), True) for kind in ("refusal", "length", "content_filter", "empty", "broken")),
        *((useless(kind), False) for kind in ("picture", "too_large")),
    ],
)
def test_what_the_server_may_have_worked_on_without_saying_counts_towards_the_ceiling(
    failure: VipError, costs: bool, room_of: RoomOf, clock: Clockwork
) -> None:
    """A picture that it does not take it has not looked at, and an answer that never ended may have been written."""
    client, _ = room_of(failure, GOOD, price=PRICE, max_usd=1.0)
    clock.run(ends(ask(client)))
    assert (client.budget.usage.unsure_usd > 0.02) == costs


def test_where_the_server_counts_nothing_it_is_reckoned(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(Reply(GOOD, "m"), price=PRICE, max_usd=1.0)
    (call,) = clock.run(ask(client)).calls
    assert (call.tokens_in, call.tokens_out) == (None, None), "unknown is not zero"
    assert client.budget.usage.tokens_in > 10
    assert client.budget.usage.tokens_out > 10
    assert call.usd == pytest.approx(client.budget.usage.usd)


@pytest.mark.parametrize("tokens", [(0, 0), (1, 1), (40, 4), (500, 0), (0, 60)])
def test_a_server_that_states_too_few_tokens_is_paid_what_was_reckoned(tokens: tuple[int, int], room_of: RoomOf, clock: Clockwork) -> None:
    famous = json.dumps({**FAMOUS, "action": "it runs " * 20})
    long: dict[str, Any] = {"prompt": "word " * 500, "pictures": (Picture(b"no picture", "image/jpeg"),)}
    client, _ = room_of(Reply(famous, "m", *tokens), price=PRICE, max_usd=1.0)
    (call,) = clock.run(ask(client, **long)).calls
    reckoned, _ = client.most_tokens(request(**long))
    usage = client.budget.usage
    assert usage.tokens_in == (500 if tokens[0] == 500 else reckoned)
    assert 50 <= usage.tokens_out <= 80
    assert call.usd == usage.usd == pytest.approx(PRICE.usd(usage.tokens_in, usage.tokens_out))


def test_a_server_that_counts_nothing_does_not_pass_the_ceiling(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(Reply(GOOD, "m", 0, 0), price=PRICE, max_usd=0.05)

    async def go() -> list[Any]:
        return [(await ends(ask(client, number, prompt=f"{number} {'word ' * 10_000}")))[0] for number in range(8)]

    found = clock.run(go())
    assert len(engine.asked) == 2  # each costs about a cent, and may cost three
    assert [type(one) for one in found[2:]] == [BudgetError] * 6
    assert client.budget.usage.usd < 0.05


@pytest.mark.parametrize(
    "failure", [useless("refusal", 0, 0), useless("length", 300, 0), useless("too_long", 300, 0), useless("empty", 1, 0)]
)
def test_a_server_that_states_too_few_tokens_of_what_is_useless_may_have_worked(
    failure: ReplyError, room_of: RoomOf, clock: Clockwork
) -> None:
    client, _ = room_of(failure, GOOD, price=PRICE, max_usd=1.0)
    clock.run(ends(ask(client, prompt="word " * 300)))
    assert client.budget.usage.unsure_usd > 0.02


@pytest.mark.parametrize(("price", "max_usd"), [(PRICE, 1.0), (None, None)])
def test_what_an_honest_server_counts_is_believed(price: Price | None, max_usd: float | None, room_of: RoomOf, clock: Clockwork) -> None:
    """It may count far less than vip for a picture, and for words of a vocabulary of its own."""
    client, _ = room_of(useless("empty", 130, 0), Reply(GOOD, "m", 130, 7), price=price, max_usd=max_usd)
    clock.run(ask(client, prompt="word " * 300, pictures=(Picture(b"no picture", "image/jpeg"),)))
    usage = client.budget.usage
    assert (usage.requests, usage.tokens_in, usage.tokens_out, usage.unsure_usd) == (2, 260, 7, 0)


def test_without_a_price_what_a_server_states_is_noted(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(useless("refusal", 0, 0), Reply(GOOD, "m", 0, 0))
    clock.run(ask(client, prompt="word " * 300))
    assert (client.budget.usage.requests, client.budget.usage.tokens_in, client.budget.usage.tokens_out) == (2, 0, 0)


def test_no_request_goes_out_that_might_pass_the_ceiling_and_none_is_called_rejected(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(Reply(GOOD, "m", 500, 2000), price=PRICE, max_usd=0.05, seconds=1.0)

    async def go() -> list[Any]:
        return await ends(*(ask(client, number) for number in range(8)))

    found = clock.run(go())
    assert len(engine.asked) == 2  # each may cost about $0.0205, and does
    assert client.budget.usage.usd == pytest.approx(2 * 0.0205)
    errors = [one for one in found if not isinstance(one, EngineAnswer)]
    assert [type(one) for one in errors if isinstance(one, ReplyError)] == [], "no keyframe is at fault"
    assert all("leaves no room for another request" in str(one) and "Tried" not in str(one) for one in errors)
    assert len(errors) == 6
    assert clock.now_s == pytest.approx(1), "no money comes by waiting"


def test_more_tokens_than_were_reckoned_are_put_aside(room_of: RoomOf, clock: Clockwork) -> None:
    """A server may count a tenth more than vip does."""
    client, engine = room_of(GOOD, price=PRICE, max_usd=1.0)
    long = Request("structure", "word " * 20_000, schema=PROMPTS["structure"].schema, max_tokens=1)
    reckoned, _ = client.most_tokens(long)
    client.budget.max_usd = PRICE.usd(round(1.05 * reckoned), 1)
    with pytest.raises(BudgetError):
        clock.run(client.ask(long, PROMPTS["structure"]))
    client.budget.max_usd = PRICE.usd(round(1.15 * reckoned), 1)
    clock.run(client.ask(long, PROMPTS["structure"]))
    assert len(engine.asked) == 1


# ---------------------------------------------------------------- servers that do not answer


def test_a_busy_server_is_asked_again_later_each_time(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(busy(), busy(), busy(), GOOD)
    assert clock.run(ask(client)).value == Famous.model_validate(FAMOUS)
    waits = [after - before for before, after in zip(engine.asked_s, engine.asked_s[1:], strict=False)]
    assert [most / 2 <= wait <= most for wait, most in zip(waits, (0.5, 1.0, 2.0), strict=True)] == [True] * 3


def test_retry_after_is_obeyed_and_holds_the_others_too(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(busy("rate_limit", 30.0), GOOD)

    async def go() -> None:
        first = asyncio.create_task(ask(client, 1))
        await asyncio.sleep(1)
        await asyncio.gather(ask(client, 2), ask(client, 3))
        await first

    clock.run(go())
    assert engine.asked_s[0] == 0
    assert min(engine.asked_s[1:]) >= 30
    assert max(engine.asked_s[1:]) <= 34


def test_a_server_that_asks_to_wait_for_hours_ends_the_run(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(busy("rate_limit", 7200.0))
    with pytest.raises(EngineError, match=r"It asks to wait 2\.0 hours; what is done stays done\."):
        clock.run(ask(client))
    assert len(engine.asked) == 1
    assert clock.now_s == 0
    patient, engine = room_of(busy("rate_limit", 3600.0), GOOD)
    clock.run(ask(patient))
    assert engine.asked_s[1] >= 3600


def test_a_server_that_never_answered_is_given_up_soon_and_ends_the_run(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(busy("connection"))
    with pytest.raises(EngineError, match=r"^The server is busy\. Tried 4 times; what is done stays done\.$"):
        clock.run(ask(client))
    assert len(engine.asked) == TRIES_BEFORE_AN_ANSWER
    assert clock.now_s < 5


def test_a_server_too_slow_for_its_first_answer_is_tried_twice(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(busy("timeout"), seconds=120)
    with pytest.raises(EngineError):
        clock.run(ask(client))
    assert len(engine.asked) == 2


@pytest.mark.parametrize(("kind", "tries"), [("connection", 4), ("server", 4), ("rate_limit", 8)])
def test_a_server_that_limits_the_rate_is_there(kind: Any, tries: int, room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(busy(kind))
    with pytest.raises(OutageError, match=f"Tried {tries} times"):
        clock.run(ask(client))
    assert len(engine.asked) == tries


@pytest.mark.parametrize(("retry_after_s", "tries"), [(None, 8), (1.0, 50)])
def test_a_server_that_says_how_long_to_wait_is_obeyed_more_often(
    retry_after_s: float | None, tries: int, room_of: RoomOf, clock: Clockwork
) -> None:
    client, engine = room_of(GOOD, busy("rate_limit", retry_after_s))
    clock.run(ask(client, 1))
    with pytest.raises(ReplyError, match=f"Tried {tries} times"):
        clock.run(ask(client, 2))
    assert len(engine.asked) == 1 + tries


def test_a_request_that_the_server_rejects_costs_itself_only_once_others_were_answered(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(RejectedError("It rejects the request."))
    with pytest.raises(EngineError, match=r"^It rejects the request\.$"):
        clock.run(ask(client))
    client, engine = room_of(GOOD, RejectedError("It rejects the request."))
    clock.run(ask(client, 1))
    with pytest.raises(ReplyError, match=r"^It rejects the request\. Tried 4 times") as caught:
        clock.run(ask(client, 2))
    assert (caught.value.kind, len(engine.asked)) == ("rejected", 5)


def test_a_model_that_answers_nothing_of_use_from_the_start_ends_the_run(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(useless("content_filter"))
    ended = [clock.run(ends(ask(client, number)))[0] for number in range(20)]
    assert [type(one) for one in ended] == [*[ReplyError] * 19, EngineError]
    assert "Of the first 20 questions scripted:m answered none in a way that can be used." in str(ended[-1])


def test_one_answer_of_use_shows_that_the_model_can_do_it(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(GOOD, useless("content_filter"))
    clock.run(ask(client))
    ended = [clock.run(ends(ask(client, number)))[0] for number in range(1, 31)]
    assert {type(one) for one in ended} == {ReplyError}


def test_a_wrong_key_ends_the_run_at_once(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(EngineError("The key is wrong."))
    with pytest.raises(EngineError, match=r"^The key is wrong\.$"):
        clock.run(ask(client))
    assert len(engine.asked) == 1


def test_a_server_that_answered_is_waited_for_through_a_restart(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(GOOD, *[busy("connection")] * (TRIES - 1), GOOD)
    clock.run(ask(client, 1))
    assert clock.run(ask(client, 2)).value == Famous.model_validate(FAMOUS)
    assert len(engine.asked) == 1 + TRIES
    assert clock.now_s > 30


def test_a_request_that_alone_fails_costs_its_keyframe_and_three_in_a_row_the_run(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(GOOD, busy("server"))
    clock.run(ask(client, 0))
    kinds = []
    for number in range(1, 1 + GIVEN_UP_IN_A_ROW):
        with pytest.raises((ReplyError, EngineError)) as caught:
            clock.run(ask(client, number))
        kinds.append((type(caught.value), getattr(caught.value, "kind", None)))
    assert kinds == [(ReplyError, "server"), (ReplyError, "server"), (OutageError, "server")]


def test_an_answer_in_between_starts_the_count_anew(room_of: RoomOf, clock: Clockwork) -> None:
    bad = [busy("server")] * TRIES
    client, _ = room_of(GOOD, *bad, *bad, useless("content_filter"), *bad, *bad, GOOD)
    found = [clock.run(ends(ask(client, number)))[0] for number in range(7)]
    assert [type(one) for one in found] == [EngineAnswer, *[ReplyError] * 5, EngineAnswer], "no one ends the run"
    assert [one.kind for one in found[1:-1]] == ["server", "server", "content_filter", "server", "server"]


def test_a_server_that_turns_out_not_to_be_one_is_tried_again_once_it_has_answered(room_of: RoomOf, clock: Clockwork) -> None:
    """As where a key is refused for a moment in the middle of a run."""
    client, _ = room_of(GOOD, EngineError("The key is wrong."), GOOD)
    clock.run(ask(client, 0))
    assert clock.run(ask(client, 1)).value == Famous.model_validate(FAMOUS)


def test_fewer_are_on_their_way_after_a_refusal_and_none_of_them_stays_held(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(busy("rate_limit"), GOOD, price=PRICE, max_usd=1.0)
    clock.run(ask(client))
    assert client.limiter.limit == 2
    assert client.limiter.in_flight == 0
    assert client.budget._held_usd == pytest.approx(0)


def test_a_connection_that_fails_says_nothing_about_how_much_the_server_takes(room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(busy("connection"), GOOD)
    clock.run(ask(client))
    assert client.limiter.limit == 4


@pytest.mark.parametrize("when_s", [0.0, 0.5, 1.0])
def test_who_is_cancelled_leaves_no_place_no_money_and_no_lock(when_s: float, room_of: RoomOf, clock: Clockwork) -> None:
    client, _ = room_of(GOOD, seconds=1.0, price=PRICE, max_usd=0.05)

    async def go() -> None:
        tasks = [asyncio.create_task(ask(client, number % 3)) for number in range(9)]
        await asyncio.sleep(when_s)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await asyncio.sleep(5)

    clock.run(go())
    assert client.limiter.in_flight == 0
    assert client.budget._held_usd == pytest.approx(0)
    assert client._locks == {}


# ---------------------------------------------------------------- batches


def test_what_is_postponed_is_not_asked_and_what_is_known_is_not_postponed(room_of: RoomOf, clock: Clockwork) -> None:
    client, engine = room_of(GOOD)
    clock.run(ask(client, 1))
    deferred: list[Request] = []

    def defer(question: bytes, request: Request, usage: Usage | None) -> bool:
        deferred.append(request)
        return True

    client.defer = defer
    assert isinstance(clock.run(ask(client, 1)), EngineAnswer)
    assert type(clock.run(ends(ask(client, 2)))[0]).__name__ == "Deferred"
    assert [one.prompt for one in deferred] == ["Question 2."]
    client.defer = lambda question, request, usage: False
    assert isinstance(clock.run(ask(client, 2)), EngineAnswer)
    assert len(engine.asked) == 2
