"""Sampling the videos of a list, with a weight for each vertical and topic (section 3 of the paper, Figure 2).

In: items with their verticals and labels, weights.toml, `--sample` and `--seed`. Out: for each item a number to sort by, and whether it
is kept. Both depend only on the seed and on the item: not on the order of the list, on its parts, or on its other videos.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from vip.dataset.items import UNKNOWN_VERTICAL, ListItem
from vip.errors import UsageError, did_you_mean, validation_message
from vip.files import read_named
from vip.records import RecordPart
from vip.untrusted import parse_toml

MOST_WEIGHT_BYTES = 4 * 2**20  # of a file of weights
BUILT_IN = Path(__file__).with_name("weights.toml")
MOST_WEIGHT = 1000.0
VERTICALS = (
    *(UNKNOWN_VERTICAL, "Arts & Entertainment", "Autos & Vehicles", "Beauty & Fitness", "Books & Literature", "Business & Industrial"),
    *("Computers & Electronics", "Finance", "Food & Drink", "Games", "Health", "Hobbies & Leisure", "Home & Garden"),
    *("Internet & Telecom", "Jobs & Education", "Law & Government", "News", "People & Society", "Pets & Animals", "Real Estate"),
    *("Reference", "Science", "Shopping", "Sports", "Travel"),
)
DEFAULT = "default"


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("write a number")
    return value


Weight = Annotated[float, BeforeValidator(_number), Field(ge=0, le=MOST_WEIGHT, allow_inf_nan=False)]


class Weights(RecordPart):
    """Sampling weights of videos, by vertical and topic.

    The weight of a video is the mean weight of its verticals, times the smallest weight of its topics that are named here. The smallest,
    since a topic may say how a video is made: a slide show of football is a slide show.
    """

    verticals: dict[str, Weight] = Field(default_factory=dict)
    topics: dict[str, Weight] = Field(default_factory=dict)
    """By the names of labels; case does not matter, here and in `verticals`."""
    default_vertical: Weight = 1.0
    default_topic: Weight = 1.0
    """For a video with no topic that is named here."""

    @model_validator(mode="after")
    def _takes_something(self) -> Self:
        if self.largest == 0:
            raise ValueError("all weights are 0, so no video would be taken; give one that is larger")
        return self

    @cached_property
    def largest(self) -> float:
        """The largest weight that a video can have."""
        vertical = max([self.verticals.get(name.casefold(), self.default_vertical) for name in VERTICALS] + [self.default_vertical])
        return vertical * max([*self.topics.values(), self.default_topic])

    def of(self, item: ListItem) -> float:
        """Return the weight of a video."""
        verticals = [self.verticals.get(name.casefold(), self.default_vertical) for name in item.verticals or (UNKNOWN_VERTICAL,)]
        topics = [weight for name in item.labels if (weight := self.topics.get(name.casefold())) is not None]
        return sum(verticals) / len(verticals) * min(topics, default=self.default_topic)


def load_weights(path: Path | None = None) -> Weights:
    """Return the weights of a file, or those of vip, which take fewer videos with little motion.

    Raises:
        UsageError: the file cannot be read, or has a wrong value; the message names file and key.
    """
    path = path or BUILT_IN
    try:
        tables = parse_toml(read_named(path, most_bytes=MOST_WEIGHT_BYTES))
    except ValueError as exc:
        raise UsageError(f"{path} is not valid TOML: {exc}.") from exc
    except OSError as exc:
        raise UsageError(f"{path} cannot be read: {exc.strerror}.") from exc
    for name, table in tables.items():
        if name not in ("verticals", "topics"):
            raise UsageError(f'{path} has an unknown entry "{name}".{did_you_mean(name, ("verticals", "topics"))}')
        if not isinstance(table, dict):
            raise UsageError(f'In {path}, "{name}" must be a table: write [{name}] on a line of its own.')
    known = {name.casefold() for name in (*VERTICALS, DEFAULT)}
    for name in tables.get("verticals", {}):
        if name.casefold() not in known:
            raise UsageError(f'{path}, [verticals] has an unknown key "{name}".{did_you_mean(name, (*VERTICALS, DEFAULT))}')
    return _validate(path, tables)


def _validate(path: Path, tables: Mapping[str, Mapping[str, Any]]) -> Weights:
    given: dict[str, Any] = {}
    for table, default in (("verticals", "default_vertical"), ("topics", "default_topic")):
        given[table] = {name.casefold(): weight for name, weight in tables.get(table, {}).items()}
        if DEFAULT in given[table]:
            given[default] = given[table].pop(DEFAULT)
    try:
        return Weights(**given)
    except ValidationError as exc:
        problem = exc.errors()[0]
        message = validation_message(problem)
        if not problem["loc"]:
            raise UsageError(f"{path}: {message}.") from exc
        defaults: dict[str, tuple[str, ...]] = {"default_vertical": ("verticals", DEFAULT), "default_topic": ("topics", DEFAULT)}
        table, key = defaults.get(str(problem["loc"][0]), tuple(map(str, problem["loc"][:2])))
        raise UsageError(f"{path}, [{table}] {key} = {problem['input']!r}: {message}.") from exc


# ---------------------------------------------------------------- drawing


class SamplingKey(NamedTuple):
    """The random numbers that decide whether a video is taken."""

    draw: float
    """A sample of N takes the videos with the N largest draws."""
    is_kept: bool
    """Whether it is taken without `--sample`."""


def sampling_key(item: ListItem, weights: Weights, seed: int) -> SamplingKey:
    """Return the draw of a video, and whether it is kept without `--sample`.

    For samples by weight without replacement, Efraimidis and Spirakis give each item u ** (1 / w) of a uniform u. The draw is the logarithm
    of that, which keeps its digits where w is small; it is -inf for a weight of 0. A sample of N is part of the sample of N + 1. Without
    `--sample`, a video is kept with a probability of its weight over the largest weight.
    """
    u, weight = _uniform(item.key, seed), weights.of(item)
    return SamplingKey(math.log(u) / weight if weight > 0 else -math.inf, 1 - u < weight / weights.largest)


def _uniform(key: str, seed: int) -> float:
    """Return a pseudorandom number between 0 and 1, both excluded, the same on every machine."""
    digest = blake2b(f"{seed}:{key}".encode(), digest_size=8).digest()
    return ((int.from_bytes(digest, "big") >> 11) + 0.5) / 2**53


# ---------------------------------------------------------------- the result


class VerticalShare(RecordPart):
    """The share of one vertical in a list and in its sample."""

    vertical: str
    videos: int
    """In the list; a video in several verticals counts in each."""
    chosen: int
    asked_share: float = Field(ge=0, le=1)
    """Share of the sum of weights, counted in the same way."""
    chosen_share: float = Field(ge=0, le=1)


class Distribution(RecordPart):
    """The shares of verticals that were asked for and taken (Figure 2 of the paper), the largest asked first."""

    videos: int
    chosen: int
    shares: tuple[VerticalShare, ...]

    def lines(self) -> list[str]:
        """Return lines for people: `Sports  asked 12.3 %  chosen 12.1 %  412 of 3390`."""
        width = max((len(one.vertical) for one in self.shares), default=0)
        return [
            f"{one.vertical:{width}}  asked {_percent(one.asked_share)}  chosen {_percent(one.chosen_share)}  {one.chosen} of {one.videos}"
            for one in self.shares
        ]


def _percent(share: float) -> str:
    return f"{100 * share:5.1f} %"


@dataclass(slots=True)
class _VerticalCounts:
    videos: int = 0
    chosen: int = 0
    weight: float = 0.0


class SamplingTally:
    """Counts of the videos of a list by vertical, for their `Distribution`."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._verticals: defaultdict[str, _VerticalCounts] = defaultdict(_VerticalCounts)
        self._videos = 0
        self._chosen = 0

    def add(self, item: ListItem, videos: int = 1, chosen: int = 0) -> None:
        """Count so many videos with the verticals and labels of the item, of which so many are chosen."""
        weight = videos * self._weights.of(item)
        self._videos += videos
        self._chosen += chosen
        for name in item.verticals or (UNKNOWN_VERTICAL,):
            counted = self._verticals[name]
            counted.videos += videos
            counted.chosen += chosen
            counted.weight += weight

    def distribution(self) -> Distribution:
        """Return the shares so far; all are 0 where no video has weight."""
        weight = math.fsum(counted.weight for counted in self._verticals.values()) or 1.0
        chosen = sum(counted.chosen for counted in self._verticals.values()) or 1
        shares = [
            VerticalShare(
                vertical=name,
                videos=counted.videos,
                chosen=counted.chosen,
                asked_share=min(counted.weight / weight, 1.0),
                chosen_share=counted.chosen / chosen,
            )
            for name, counted in self._verticals.items()
        ]
        shares.sort(key=lambda share: (-share.asked_share, share.vertical))
        return Distribution(videos=self._videos, chosen=self._chosen, shares=tuple(shares))
