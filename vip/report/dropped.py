"""The strip of dropped candidates in time order, each with its rule and its reason in words; a filter shows one rule only.

The filter is CSS (`:has`), so it needs no script; a browser that does not know it shows everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vip.html.axes import evenly
from vip.html.format import GOOD_ENOUGH, RULES, time_code
from vip.html.markup import Html, join, tag
from vip.records import Candidate, Rule
from vip.report.pictures import Thumbnails, data_uri, missing
from vip.store import CANDIDATES

MAX_SHOWN = 240
LEAST_SHOWN_PER_RULE = 8  # a rare rule is not crowded out by a common one
MAX_OPEN = 24  # the others wait behind "show all"


def dropped(candidates: Sequence[Candidate], thumbnails: Thumbnails, *, portrait: bool) -> Html:
    """The section, or nothing where no candidate was dropped."""
    rows = [candidate for candidate in candidates if not candidate.decision.kept]
    if not rows:
        return Html("")
    chosen = choose(rows)
    tiles = [_tile(row, thumbnails, later=place >= MAX_OPEN) for place, row in enumerate(chosen)]
    return tag(
        "section",
        tag("h2", "Dropped candidates"),
        _filter(Counter(row.decision.rule for row in rows)),
        _unshown(len(chosen), len(rows)),
        tag("ul", join(tiles), class_="strip"),
        _show_all(len(chosen)),
        class_="dropped portrait" if portrait else "dropped",
    )


def choose(rows: Sequence[Candidate]) -> list[Candidate]:
    """About `MAX_SHOWN` of the rows, evenly from each rule, in their order."""
    groups: dict[Rule, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(row.decision.rule, []).append(i)
    limits = {rule: max(LEAST_SHOWN_PER_RULE, MAX_SHOWN * len(group) // len(rows)) for rule, group in groups.items()}
    return [rows[i] for i in sorted(group[j] for rule, group in groups.items() for j in evenly(len(group), limits[rule]))]


def _unshown(shown: int, total: int) -> Html:
    if shown == total:
        return Html("")
    return tag("p", f"{shown} of {total} are shown, evenly chosen; the other {total - shown} are in {CANDIDATES}.", class_="hint")


def _filter(counts: Counter[Rule]) -> Html:
    """A choice of rules; its radio buttons are named in page.css."""
    choices = [("all", "All", "", sum(counts.values()))] + [(rule, *RULES[rule], counts[rule]) for rule in RULES if counts[rule]]
    if len(choices) <= 2:
        return Html("")
    labels = [
        tag(
            "label",
            tag("input", type="radio", name="rule", id=f"rule-{rule.replace('_', '-')}", checked=rule == "all"),
            tag("span", name, " ", tag("b", str(count))),
            title=meaning or None,
        )
        for rule, name, meaning, count in choices
    ]
    return tag("div", join(labels), class_="filter", role="group", aria_label="Show only one reason")


def _show_all(count: int) -> Html:
    if count <= MAX_OPEN:
        return Html("")
    return tag("label", tag("input", type="checkbox", id="show-dropped"), f" Show all {count}", class_="switch")


def _tile(candidate: Candidate, thumbnails: Thumbnails, *, later: bool) -> Html:
    data, code, rule = thumbnails.read(candidate.index), time_code(candidate.time_s), candidate.decision.rule
    picture = tag("img", src=data_uri(data), alt=f"Frame at {code}", loading="lazy") if data else missing("no thumbnail")
    name, meaning = RULES.get(rule, (rule, ""))
    kind = tag("span", name, class_="rule" if rule in GOOD_ENOUGH else "rule bad", title=meaning or None)
    return tag(
        "li",
        tag("span", picture, class_="frame"),
        tag("span", tag("b", code, class_="code"), " ", kind, class_="line"),
        tag("span", candidate.decision.reason, class_="reason", dir="auto"),
        class_=f"{rule.replace('_', '-')}{' later' if later else ''}",
    )
