"""Expected cost of the descriptions, before the first of them is asked for.

In: a describer, some of the keyframes, how many there are. Out: requests, tokens and dollars to be expected. The questions are
the real ones; answers have the length that is asked for, and pictures the tokens of the provider's rule.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vip.captioning.describer import SEES, Describer, KeyframePosition
from vip.llm.budget import dollars
from vip.llm.client import EngineClient
from vip.llm.prices import MESSAGE_TOKENS, UNKNOWN_RULE
from vip.llm.tokens import picture_tokens, text_tokens
from vip.store import KeyframePicture
from vip.wording import counted

ANSWER_TOKENS = {"topic": 90, "caption": 45, "describe": 125, "structure": 95, "direct": 220, "rich": 320}  # dense captions have 114
CAPTION = "word " * 85  # stands for a caption that is not written yet


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected cost; `usd` is None where a price is unknown."""

    keyframes: int
    requests: int
    tokens_in: int
    tokens_out: int
    usd: float | None
    priced: tuple[str, ...]
    """Model and the date of its price."""

    def __str__(self) -> str:
        """Return `about 12 requests, 21,600 tokens in, 2,640 out, $0.0107 (gpt-5-mini, price of 2025-08-07)`."""
        money = "" if self.usd is None else f", {dollars(self.usd)}"
        of = f" ({', '.join(self.priced)})" if self.priced and self.usd is not None else ""
        return f"about {counted(self.requests, 'request')}, {counted(self.tokens_in, 'token')} in, {self.tokens_out:,} out{money}{of}"


class SampleKeyframe(NamedTuple):
    """A keyframe that stands for others."""

    item: KeyframePicture
    detector: str | None
    words: str | None = None
    text: Sequence[str] = ()
    speech: str | None = None


def estimate(describer: Describer, sample: Sequence[SampleKeyframe], todo: int, *, batch: bool = False) -> Estimate:
    """Return the cost of `todo` keyframes like those of the sample, with their words and texts."""
    tokens_in = tokens_out = requests = 0.0
    usd: float | None = 0.0
    asked = [(name, todo) for name in describer.config.questions]
    if describer.config.topic and not describer.measures:
        asked.append(("topic", 1))
    for name, times in asked:
        client = describer.client_for(name)
        each_in = sum(_tokens_in(describer, name, one) for one in sample) / max(1, len(sample))
        each_out = ANSWER_TOKENS[name] + (client.price.thinking if client.price else 0)
        requests, tokens_in, tokens_out = requests + times, tokens_in + times * each_in, tokens_out + times * each_out
        cost = _usd(client, round(times * each_in), times * each_out, batch=batch)
        usd = None if usd is None or cost is None else usd + cost
    prices = [client.price for client in describer.clients if client.price]
    priced = {price.model: f"{price.model}, price of {price.as_of or 'no date'}" for price in prices}
    return Estimate(todo, round(requests), round(tokens_in), round(tokens_out), usd if priced else None, tuple(priced.values()))


def _usd(client: EngineClient, tokens_in: int, tokens_out: int, *, batch: bool) -> float | None:
    """Return the dollars; None where the price is unknown. An engine without a server costs nothing."""
    if client.price is None:
        return None if client.engine.capabilities.address else 0.0
    return client.price.usd(tokens_in, tokens_out, batch=batch)


def _tokens_in(describer: Describer, name: str, one: SampleKeyframe) -> int:
    config, item = describer.config, one.item
    place = KeyframePosition(1, 1, one.detector, (CAPTION,) * config.context, one.words, text=one.text, speech=one.speech)
    values = {**describer.values(item, place, ()), "caption": CAPTION, "topic": config.topic or ""}
    request, _ = describer.request(name, values)
    schema = text_tokens(json.dumps(request.schema)) if request.schema is not None else 0
    tokens = MESSAGE_TOKENS + text_tokens(request.prompt) + schema
    if name not in SEES:
        return tokens
    client = describer.client_for(name)
    rule = client.price.picture if client.price and client.price.picture else UNKNOWN_RULE
    scale = min(1.0, config.longest_side_px / max(item.record.width_px, item.record.height_px))
    width, height = (max(1, round(side * scale)) for side in (item.record.width_px, item.record.height_px))
    return tokens + picture_tokens(rule, width, height, client.engine.capabilities.picture_detail)
