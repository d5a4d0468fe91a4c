"""Results as tables and pages show them: no more metrics, parts, groupings and groups than people read.

In: a result, which may be somebody else's and name any number of them. Out: the same figures without the rest, and a sentence that says how
much there is. result.json and `--json` keep all.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from itertools import islice

from vip.tasks.records import Score, TaskResult
from vip.untrusted import shorten

MOST_METRICS, MOST_PARTS, MOST_GROUPINGS, MOST_GROUPS = 50, 30, 20, 50
MOST_LETTERS = 1000
"""Of a name that stands in many titles."""
MOST_NOTE_LETTERS = 100

Groups = Mapping[str, Mapping[str, int]]
"""Name of a grouping -> group -> its number, counted from 1."""


def shown_result(result: TaskResult) -> TaskResult:
    """Return the result with the first metrics, parts and groupings, and the largest groups; the same one where these are all.

    The first metric has a note on what is left out.
    """
    named = _with_short_names(result)
    metrics = dict(islice(result.metrics.items(), MOST_METRICS))
    sizes = _group_sizes(metrics.values())
    groups = {grouping: _largest(sizes[grouping]) for grouping in islice(sizes, MOST_GROUPINGS)}
    rest = [
        *_rest("first", len(metrics), len(result.metrics), "metrics"),
        *_rest("first", len(groups), len(sizes), "groupings"),
        *(said for name, some in groups.items() for said in _rest("largest", len(some), len(sizes[name]), f"groups of {_short(name)}")),
        *(said for name, one in metrics.items() for said in _rest("first", MOST_PARTS, len(one.parts), f"parts of {_short(name)}")),
    ]
    if not rest:
        return named
    shown = {name: _with_groups(score, groups) for name, score in metrics.items()}
    first, score = next(iter(shown.items()))
    note = f"{_short(result.name)}: shown are {', '.join(rest)}. result.json has all."
    return named.model_copy(update={"metrics": {**shown, first: score.model_copy(update={"notes": (*score.notes, note)})}})


def numbered_groups(result: TaskResult) -> Groups:
    """Return the groupings that a result was split by with their groups, over all of its metrics."""
    sizes = _group_sizes(result.metrics.values())
    return {grouping: {group: number for number, group in enumerate(groups, 1)} for grouping, groups in sizes.items()}


def _group_sizes(scores: Iterable[Score]) -> dict[str, dict[str, int]]:
    """Return the samples of each group, as the first metric says that has it."""
    sizes: dict[str, dict[str, int]] = {}
    for score in scores:
        for grouping, groups in score.groups.items():
            known = sizes.setdefault(grouping, {})
            for group, one in groups.items():
                known.setdefault(group, one.n)
    return sizes


def _largest(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the groups with the most samples, in their order."""
    if len(sizes) <= MOST_GROUPS:
        return dict(sizes)
    kept = set(heapq.nlargest(MOST_GROUPS, sizes, key=sizes.__getitem__))
    return {group: n for group, n in sizes.items() if group in kept}


def _with_groups(score: Score, shown: Mapping[str, Mapping[str, int]]) -> Score:
    groups = {
        grouping: {group: score.groups[grouping][group] for group in kept if group in score.groups[grouping]}
        for grouping, kept in shown.items()
        if grouping in score.groups
    }
    return score.model_copy(update={"groups": groups, "parts": dict(islice(score.parts.items(), MOST_PARTS))})


def _with_short_names(result: TaskResult) -> TaskResult:
    """Return the result with names that may stand in each title and row; the same one where no name is long."""
    budget, representation = result.budget, result.parameters.get("representation")
    update: dict[str, object] = {}
    if max(len(result.name), len(result.engine or "")) > MOST_LETTERS:
        update |= {"name": shorten(result.name, MOST_LETTERS), "engine": result.engine and shorten(result.engine, MOST_LETTERS)}
    if budget is not None and budget.chosen is not None and len(budget.chosen) > MOST_LETTERS:
        update["budget"] = budget.model_copy(update={"chosen": shorten(budget.chosen, MOST_LETTERS)})
    if isinstance(representation, str) and len(representation) > MOST_LETTERS:
        update["parameters"] = {**result.parameters, "representation": shorten(representation, MOST_LETTERS)}
    return result.model_copy(update=update) if update else result


def _rest(which: str, shown: int, total: int, noun: str) -> list[str]:
    return [f"the {which} {shown:,} of {total:,} {noun}"] if total > shown else []


def _short(name: str) -> str:
    return shorten(name, MOST_NOTE_LETTERS)
