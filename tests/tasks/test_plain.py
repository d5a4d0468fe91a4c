"""vip.tasks.plain: answers that are right or wrong"""

from __future__ import annotations

from pathlib import Path

import pytest

from vip.errors import InputError
from vip.tasks.causal_aspect import CausalAspect
from vip.tasks.plain import RightAnswers
from vip.tasks.records import Choice, Prediction, Reference, Sample


def sample(name: str, *right: int | str) -> Sample:
    reference = Reference(values=right) if right else None
    return Sample(id=name, task="t", task_version=1, video="v", ask=Choice(question="?", options=("a", "b", "c")), reference=reference)


def test_an_answer_is_right_where_it_is_one_of_the_right_ones_and_none_counts_as_wrong() -> None:
    pairs = [
        (sample("a", 0, 2), Prediction(sample_id="a", value=2)),
        (sample("b", 0, 2), Prediction(sample_id="b", value=1)),
        (sample("c", 0), Prediction(sample_id="c", value=0)),
        (sample("d", "0"), Prediction(sample_id="d", value=None, status="refused")),
    ]
    found = RightAnswers().score(pairs)
    assert found.per_sample == (1.0, 0.0, 1.0, None)
    assert (found.value, found.value_answered) == (0.5, pytest.approx(2 / 3))
    assert (found.n, found.unscored, found.signature) == (3, {"refused": 1}, "exact-match|v:1")


def test_samples_without_references_are_not_scored() -> None:
    with pytest.raises(InputError, match=r"b has no reference, so nothing can be scored\. Take a split with references"):
        RightAnswers().score([(sample(name, *right), Prediction(sample_id=name, value=0)) for name, right in (("a", (0,)), ("b", ()))])


def test_a_plain_task_has_no_published_predictions_no_tables_and_no_baselines() -> None:
    task = CausalAspect()
    with pytest.raises(InputError, match=r"p\.json: causal-aspect has no published form of predictions"):
        task.read_predictions(Path("p.json"), [])
    assert (list(task.tables([])), dict(task.baselines), list(task.metrics)) == ([], {}, [])
