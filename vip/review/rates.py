"""How often an engine states what is not there, and leaves out what is: from what reviewers did to its descriptions.

In: a review. Out: for each engine the share of its claims that were rejected (hallucination) and the share of objects that had to be added
(omission), with intervals clustered by video. Only items with a verdict of the first stage count.

A claim is focus, action, mood or setting where the engine determined it, or one object. A text is rejected where the settled mark says
wrong, or at least half of its reviewers do. An object is rejected where the reviewed list lacks it; all of them where the list is marked as
wrong and nobody changed it. An object is omitted where the reviewed list has it and the engine's has not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from vip.html.format import is_undetermined
from vip.metrics.statistics import IntervalEstimate, estimate_mean
from vip.records import Famous
from vip.review.fields import FINAL, TEXTS, WRONG, objects_of
from vip.review.items import ReviewItem
from vip.review.rich import LISTS, MEASURED, RICH_TEXTS
from vip.review.state import ReviewState


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRates:
    """What reviewers found of one engine."""

    engine: str
    items: int
    """With a verdict."""
    hallucination: IntervalEstimate | None
    """Rejected claims of all claims; None where there is no claim."""
    omission: IntervalEstimate | None
    """Added objects of all objects in the reviewed lists; None where there is none."""
    rich_hallucination: IntervalEstimate | None
    """Rejected claims of all claims of the fields of the schema `rich`: a text, or an entry of a list. Beside the rate of FAMOuS, so that
    engines with and without these fields compare. None where there is no claim."""
    rich_omission: IntervalEstimate | None
    """Added entries of all entries in the reviewed lists of the schema `rich`."""


@dataclass(slots=True)
class _Shares:
    """One value and one video for each claim, and for each object of the reviewed lists."""

    items: int = 0
    rejected: list[tuple[float, str]] = field(default_factory=list)
    added: list[tuple[float, str]] = field(default_factory=list)
    rich_rejected: list[tuple[float, str]] = field(default_factory=list)
    rich_added: list[tuple[float, str]] = field(default_factory=list)


def engine_rates(state: ReviewState) -> list[EngineRates]:
    """Return the rates of each engine, in the order of their names."""
    shares: dict[str, _Shares] = {}
    for item in state.reviewed_items():
        if state.said(item.id, "verdict"):
            of_engine = shares.setdefault(item.engine, _Shares())
            of_engine.items += 1
            of_engine.rejected += [(float(is_rejected), item.video) for is_rejected in _claims(state, item)]
            of_engine.added += [(float(is_added), item.video) for is_added in _entries(state, item, "objects")]
            if item.rich:
                of_engine.rich_rejected += [(float(is_rejected), item.video) for is_rejected in _rich_claims(state, item)]
                entries = (is_added for name in LISTS for is_added in _entries(state, item, name))
                of_engine.rich_added += [(float(is_added), item.video) for is_added in entries]
    return [
        EngineRates(
            engine=name,
            items=one.items,
            hallucination=_mean(one.rejected),
            omission=_mean(one.added),
            rich_hallucination=_mean(one.rich_rejected),
            rich_omission=_mean(one.rich_added),
        )
        for name, one in sorted(shares.items())
    ]


def _claims(state: ReviewState, item: ReviewItem) -> Iterator[bool]:
    """Yield for each claim of the engine whether it was rejected."""
    texts = dict(zip(TEXTS, item.texts, strict=True))
    objects = objects_of(texts["objects"])
    unknown = Famous(**{**{name: texts[name] for name in Famous.model_fields if name != "objects"}, "objects": objects}).undetermined
    for name in Famous.model_fields:
        if name != "objects" and name not in unknown:
            yield is_wrong(state, item.id, name)
    if "objects" not in unknown:
        yield from _list_claims(state, item, "objects")


def _rich_claims(state: ReviewState, item: ReviewItem) -> Iterator[bool]:
    """Yield the same for the fields of the schema `rich`; the movement of the camera is not the engine's."""
    original = item.original
    for name in RICH_TEXTS:
        if name in LISTS:
            yield from _list_claims(state, item, name)
        elif name != MEASURED and not is_undetermined(original[name]):
            yield is_wrong(state, item.id, name)


def _list_claims(state: ReviewState, item: ReviewItem, field: str) -> Iterator[bool]:
    """Yield for each entry of a list of the engine whether it was rejected."""
    text, reviewed = item.original[field], state.value(item.id, field) or ""
    left = {name.casefold() for name in objects_of(reviewed)}
    is_whole_wrong = is_wrong(state, item.id, field)  # once, since it counts all judgements
    for name in objects_of(text):
        yield is_whole_wrong if reviewed == text else name.casefold() not in left


def _entries(state: ReviewState, item: ReviewItem, field: str) -> Iterator[bool]:
    """Yield for each entry of a reviewed list whether it was added."""
    said = {name.casefold() for name in objects_of(item.original[field])}
    yield from (name.casefold() not in said for name in objects_of(state.value(item.id, field) or ""))


def is_wrong(state: ReviewState, item: str, text: str) -> bool:
    """Return whether a text counts as wrong: what was settled, or else the mark of at least half of the reviewers who judged the item."""
    if settled := state.value(item, f"{FINAL}{WRONG}:{text}"):
        return settled == WRONG
    judges = state.said(item, "verdict").keys()
    return bool(judges) and 2 * len(state.said(item, f"{WRONG}:{text}").keys() & judges) >= len(judges)


def _mean(rows: list[tuple[float, str]]) -> IntervalEstimate | None:
    return estimate_mean([value for value, _ in rows], [video for _, video in rows]) if rows else None
