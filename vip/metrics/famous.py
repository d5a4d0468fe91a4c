"""FAMOuS: the unweighted mean of a text metric over Focus, Action, Mood, Objects and Setting (section 5.2, Table 4 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vip.metrics.metric import Metric, Pair, Result

if TYPE_CHECKING:
    from vip.records import Famous

COMPONENTS = ("focus", "action", "mood", "objects", "setting")


class FamousMean:
    """The mean of a text metric over the five components of predicted scene descriptions; each component is a part of the result.

    Args:
        metric: compares two texts. Objects are one text, with commas.
    """

    def __init__(self, metric: Metric[str, str]) -> None:
        self.metric = metric
        self.name = f"famous-{metric.name}"
        self.needs = metric.needs

    @property
    def signature(self) -> str:
        return f"famous|v:1|mean:{','.join(COMPONENTS)}|of:{self.metric.signature}"

    def check(self) -> None:
        self.metric.check()

    def score(self, pairs: Sequence[Pair[Famous, Famous]]) -> Result:
        parts = {name: self.metric.score([_component(pair, name) for pair in pairs]) for name in COMPONENTS}
        per_sample = [part.per_sample for part in parts.values() if part.per_sample is not None]
        return Result(
            value=component_mean([part.value for part in parts.values()]),
            value_answered=component_mean([part.value_answered for part in parts.values()]),
            per_sample=tuple(map(component_mean, zip(*per_sample, strict=True))) if len(per_sample) == len(parts) else None,
            n=parts["focus"].n,
            unscored=parts["focus"].unscored,
            signature=self.signature,
            parts=parts,
        )


def component_mean(values: Sequence[float | None]) -> float | None:
    """Return the unweighted mean of the values of the five components; None where one is unknown."""
    if len(values) != len(COMPONENTS):
        raise ValueError(f"expected the values of {len(COMPONENTS)} components, got {len(values)}")
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def _component(pair: Pair[Famous, Famous], name: str) -> Pair[str, str]:
    prediction = None if pair.prediction is None else _text(pair.prediction, name)
    return Pair(prediction, _text(pair.reference, name), pair.status)


def _text(description: Famous, name: str) -> str:
    value = getattr(description, name)
    return value if isinstance(value, str) else ", ".join(value)
