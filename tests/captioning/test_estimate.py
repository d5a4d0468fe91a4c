"""What the descriptions will cost, reckoned with the real questions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.captioning.keyframes import DIRECT, FAMOUS, Scripted, describe, describer, keyframes
from vip.captioning.describer import Describer
from vip.captioning.estimate import ANSWER_TOKENS, Estimate, SampleKeyframe, estimate
from vip.llm.prices import Price, load_prices, price_of, request_tokens, text_tokens
from vip.protocols import Request

PRICE = Price("m", usd_in=1.0, usd_out=10.0, batch=0.5, thinking=0, as_of="2026-01-01", picture=None)
DEAR = Price("n", usd_in=100.0, usd_out=1000.0, batch=0.5, thinking=500, as_of="2026-02-02", picture=None)


def priced(price: Price | None = PRICE, structure: Price | None = None, **config: Any) -> Describer:
    server = "http://192.0.2.1/v1"
    session = describer(Scripted(name="a", address=server), Scripted(name="b", address=server) if structure else None, **config)
    session.describing_client.price = price
    if structure:
        session.structuring_client.price = structure
    return session


def sample(folder: Path, count: int = 3, **changed: Any) -> list[SampleKeyframe]:
    return [SampleKeyframe(item, "test") for item in keyframes(folder, count, **changed)]


@pytest.mark.parametrize(
    ("config", "requests", "tokens_out"),
    [
        ({}, 1000, 220_000),
        ({"recipe": "paper"}, 3000, 45_000 + 125_000 + 95_000),
        ({"topic": "Surfing"}, 1001, 220_090),
        ({"recipe": "paper", "topic": "Surfing"}, 3001, 265_090),
    ],
)
def test_every_request_is_counted(config: dict[str, Any], requests: int, tokens_out: int, tmp_path: Path) -> None:
    found = estimate(priced(**config), sample(tmp_path), 1000)
    assert (found.keyframes, found.requests, found.tokens_out) == (1000, requests, tokens_out)


@pytest.mark.parametrize("config", [{}, {"recipe": "paper"}, {"topic": "A dog learns to surf"}, {"language": "German"}])
def test_tokens_are_those_of_the_questions_that_are_asked(config: dict[str, Any], tmp_path: Path) -> None:
    """Of the answers, which are part of the next questions, only the length is guessed."""
    items = keyframes(tmp_path, 3, size=(1000, 1000))  # where one is shown it has more tokens than the text
    said = {"caption": "word " * 40, "describe": "word " * 85, "topic": {"objects": ["surfboard"]}}

    def answer(request: Request, number: int) -> Any:
        if request.stage == "structure":
            return FAMOUS
        return DIRECT if request.schema and request.stage == "describe" else said[request.stage]

    engine = Scripted(answer)
    describe(items, engine, **config)
    real = sum(request_tokens(request, PRICE, "high") for request in engine.requests)
    found = estimate(priced(**config), [SampleKeyframe(item, "test") for item in items], 3)
    assert found.requests == len(engine.requests)
    assert found.tokens_in == pytest.approx(real, rel=0.1)


@pytest.mark.parametrize("detail", ["low", "high"])
@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5-mini", None])
def test_one_question_is_reckoned_as_it_is_when_it_goes_out(model: str | None, detail: str, tmp_path: Path) -> None:
    price = price_of(load_prices(None), model, None) if model else PRICE
    items = keyframes(tmp_path, 1, size=(600, 900))
    engine = Scripted()
    describe(items, engine, topic=None)
    session = describer(Scripted(picture_detail=detail))
    session.describing_client.price = price
    found = estimate(session, [SampleKeyframe(items[0], "test")], 1)
    assert found.tokens_in == request_tokens(engine.requests[0], price, detail)  # type: ignore[arg-type]


def test_what_an_engine_that_reads_no_text_is_not_asked_is_not_reckoned(tmp_path: Path) -> None:
    assert estimate(describer(Scripted(measures=True), topic="Surfing"), sample(tmp_path), 10).requests == 10


def test_a_price_without_a_date_is_told_so(tmp_path: Path) -> None:
    assert estimate(priced(replace(PRICE, as_of=None)), sample(tmp_path), 1).priced == ("m, price of no date",)


DENSE = (
    "A woman in a red rain coat stands at the edge of a wooden pier and looks out over a grey sea. Her left hand rests on a rope that "
    "runs along the planks, while her right holds a folded yellow umbrella. Behind her two gulls sit on a post, and a small white boat "
    "with a blue stripe leaves the harbour to the right. Low clouds cover the sky down to the horizon, where a strip of light breaks "
    "through. The wet boards mirror her boots, and drops of rain hang on the rope. Nobody else is to be seen on the pier, and the lamps "
    "along it are not lit."
)
PARTS = {
    "focus": "a woman in a red rain coat on a pier",
    "action": "she looks out over the sea while a boat leaves the harbour",
    "mood": "quiet, a little lonely",
    "objects": ["red rain coat", "yellow umbrella", "rope", "gulls", "boat"],
    "setting": "a pier in a harbour on a rainy morning, grey sea and low clouds",
}
CAPTION = (
    "A woman in a red rain coat stands at the edge of a wooden pier with a folded yellow umbrella and looks out over the grey sea, "
    "while a small white boat leaves the harbour behind her."
)
OF_TOPIC = {"objects": ["surfboard", "wave", "beach", "wet suit", "surfer", "sand", "palm tree", "leash", "fin", "foam", "rash guard"]}
OF_TOPIC |= {"actions": ["paddling out", "standing up", "riding a wave", "falling", "carrying a board", "waxing a board", "waiting"]}
TYPICAL = {
    "caption": CAPTION,
    "describe": DENSE,
    "structure": json.dumps(PARTS),
    "direct": json.dumps({"dense_caption": DENSE, **PARTS}),
    "topic": json.dumps(OF_TOPIC),
}


@pytest.mark.parametrize("name", TYPICAL)
def test_an_answer_is_reckoned_as_long_as_one_usually_is(name: str) -> None:
    assert ANSWER_TOKENS[name] == pytest.approx(text_tokens(TYPICAL[name]), rel=0.25)


def test_dollars_are_tokens_times_the_price(tmp_path: Path) -> None:
    found = estimate(priced(), sample(tmp_path), 1000)
    assert found.usd == pytest.approx((found.tokens_in * 1 + found.tokens_out * 10) / 1e6, rel=1e-3)
    batch = estimate(priced(), sample(tmp_path), 1000, batch=True)
    assert found.usd is not None
    assert batch.usd == pytest.approx(found.usd / 2)


def test_each_engine_has_its_own_price_and_its_thoughts_cost(tmp_path: Path) -> None:
    found = estimate(priced(PRICE, DEAR, recipe="paper"), sample(tmp_path), 100)
    assert found.tokens_out == 100 * (45 + (125 + 500) + (95 + 500))
    assert found.usd is not None
    assert found.usd > 100 * 1000 * 1000 / 1e6, "the thoughts of the dear one alone"
    assert found.priced == ("m, price of 2026-01-01", "n, price of 2026-02-02")


@pytest.mark.parametrize(("price", "structure"), [(None, None), (None, DEAR)])
def test_where_a_price_is_unknown_there_are_tokens_only(price: Price | None, structure: Price | None, tmp_path: Path) -> None:
    found = estimate(priced(price, structure, recipe="paper"), sample(tmp_path), 10)
    assert found.usd is None
    assert found.tokens_in > 0
    assert "$" not in str(found)


def test_an_engine_without_a_server_costs_nothing_beside_one_that_does(tmp_path: Path) -> None:
    session = priced(None, PRICE, recipe="paper")
    session.describing_client.engine = Scripted(name="a", address=None)
    found = estimate(session, sample(tmp_path), 100)
    both = estimate(priced(PRICE, PRICE, recipe="paper"), sample(tmp_path), 100)
    assert found.usd is not None
    assert both.usd is not None
    assert 100 * (125 + 95) * 10 / 1e6 < found.usd < both.usd - 100 * 45 * 10 / 1e6, "without the captions"
    assert found.priced == ("m, price of 2026-01-01",)
    alone = describer(Scripted(name="a", address=None))
    assert estimate(alone, sample(tmp_path), 100).usd is None, "nothing is said of dollars where nobody takes any"


def test_large_pictures_cost_what_they_cost_once_they_are_made_smaller(tmp_path: Path) -> None:
    large = sample(tmp_path, 1, size=(2000, 4000))
    small, same = (estimate(priced(longest_side_px=side), large, 10).tokens_in for side in (256, 1024))
    assert small < same
    whole = estimate(priced(longest_side_px=1024), sample(tmp_path, 1, size=(512, 1024)), 10).tokens_in
    assert same == whole


def test_a_context_makes_questions_longer(tmp_path: Path) -> None:
    none, three = (estimate(priced(context=count), sample(tmp_path), 10).tokens_in for count in (0, 3))
    assert none + 10 * 3 * 80 < three < none + 10 * 3 * 120


@pytest.mark.parametrize("name", ["words", "text", "speech"])
@pytest.mark.parametrize(("config", "times"), [({}, 1), ({"recipe": "paper"}, 1), ({"schema": "rich"}, 2)])
def test_what_was_read_and_said_makes_the_questions_longer_that_hold_it(
    config: dict[str, Any], times: int, name: str, tmp_path: Path
) -> None:
    said = "word " * 200
    without = sample(tmp_path, 1)
    having = [without[0]._replace(**{name: (said,) if name == "text" else said})]
    times = 1 if name != "text" else times
    few, many = (estimate(priced(**config), given, 10).tokens_in for given in (without, having))
    assert few + 10 * times * 200 < many < few + 10 * times * 340


def test_where_nothing_is_left_nothing_is_expected(tmp_path: Path) -> None:
    found = estimate(priced(), [], 0)
    assert (found.keyframes, found.requests, found.tokens_in, found.tokens_out, found.usd) == (0, 0, 0, 0, 0.0)


def test_it_is_told_in_one_line() -> None:
    told = str(Estimate(12, 1200, 21_600, 2_640, 0.0107, ("gpt-5-mini, price of 2025-08-07",)))
    assert told == "about 1,200 requests, 21,600 tokens in, 2,640 out, $0.0107 (gpt-5-mini, price of 2025-08-07)"
    assert str(Estimate(12, 12, 5, 6, None, ("a, price of x",))) == "about 12 requests, 5 tokens in, 6 out"


def test_nothing_is_asked_to_find_it_out(tmp_path: Path) -> None:
    session = priced(recipe="paper", topic="Surfing")
    estimate(session, sample(tmp_path), 5)
    assert session.describing_client.engine.requests == []  # type: ignore[attr-defined]


def test_words_and_texts_of_keyframes_are_counted(tmp_path: Path) -> None:
    bare = sample(tmp_path)
    shown = [one._replace(words="word " * 200, text=("a slide",) * 40) for one in bare]
    more = estimate(priced(), shown, 3).tokens_in - estimate(priced(), bare, 3).tokens_in
    texts = [text_tokens("word " * 200), text_tokens("a slide" * 40)]
    assert more > 3 * sum(texts)
