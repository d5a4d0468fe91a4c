"""The strip of dropped candidates in time order, each with its rule and its reason in words; a filter shows one rule only.

The filter is CSS (`:has`), so it needs no script; a browser that does not know it shows everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vip.html.axes import evenly_spaced
from vip.html.format import GOOD_ENOUGH, RULES, time_code
from vip.records import Candidate, Rule
from vip.report.pictures import Thumbnails

MAX_SHOWN = 240
LEAST_SHOWN_PER_RULE = 8  # a rare rule is not crowded out by a common one
MAX_OPEN = 24  # the others wait behind "show all"


@dataclass(frozen=True, slots=True)
class DroppedTile:
    """A dropped candidate on the strip."""

    code: str
    """Its time."""
    thumbnail: bytes | None
    rule: Rule
    reason: str

    @property
    def class_name(self) -> str:
        """The name of its rule in the style sheet."""
        return self.rule.replace("_", "-")

    @property
    def is_bad(self) -> bool:
        return self.rule not in GOOD_ENOUGH

    @property
    def name(self) -> str:
        return RULES[self.rule][0]

    @property
    def meaning(self) -> str:
        return RULES[self.rule][1]


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """A button of the filter; its id is named in page.css."""

    id: str
    name: str
    meaning: str
    count: int


@dataclass(frozen=True, slots=True)
class DroppedStrip:
    """The tiles that are shown, the buttons of the filter, and how many candidates were dropped in all."""

    tiles: tuple[DroppedTile, ...]
    choices: tuple[RuleChoice, ...]
    total: int
    most_open: int = MAX_OPEN


def dropped_strip(candidates: Sequence[Candidate], thumbnails: Thumbnails) -> DroppedStrip | None:
    """Return the strip; None where no candidate was dropped."""
    rows = [candidate for candidate in candidates if not candidate.decision.kept]
    if not rows:
        return None
    tiles = tuple(
        DroppedTile(time_code(row.time_s), thumbnails.read(row.index), row.decision.rule, row.decision.reason) for row in sample(rows)
    )
    return DroppedStrip(tiles, _choices(Counter(row.decision.rule for row in rows)), len(rows))


def sample(rows: Sequence[Candidate]) -> list[Candidate]:
    """Return about `MAX_SHOWN` of the rows, evenly from each rule, in their order."""
    groups: dict[Rule, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(row.decision.rule, []).append(i)
    limits = {rule: max(LEAST_SHOWN_PER_RULE, MAX_SHOWN * len(group) // len(rows)) for rule, group in groups.items()}
    return [rows[i] for i in sorted(group[j] for rule, group in groups.items() for j in evenly_spaced(len(group), limits[rule]))]


def _choices(counts: Counter[Rule]) -> tuple[RuleChoice, ...]:
    """Return the buttons of the rules that occur; none where there is one rule only."""
    rules = [RuleChoice(f"rule-{rule.replace('_', '-')}", *words, counts[rule]) for rule, words in RULES.items() if counts[rule]]
    return (RuleChoice("rule-all", "All", "", counts.total()), *rules) if len(rules) > 1 else ()
