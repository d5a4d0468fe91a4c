"""The score of a scene description is the unweighted mean of its five components, as in Table 4 of the paper."""

from __future__ import annotations

import csv
from collections.abc import Sequence

import pytest

from tests.metrics.golden import golden
from vip.metrics import Pair, Result
from vip.metrics.famous import COMPONENTS, FamousMean, component_mean
from vip.metrics.metric import score_mean
from vip.records import Famous

ROUGE_L_OF_GPT_4 = (17.14, [13.12, 9.64, 19.56, 28.82, 14.52])
BERTSCORE_OF_VICUNA = (17.21, [21.77, 13.57, 18.80, 18.12, 13.79])
SENTENCE_BERT_OF_GPT_3 = (52.15, [47.72, 45.71, 51.43, 58.35, 57.51])


class SameText:
    """1 for equal texts, else 0."""

    name, needs, signature = "same-text", (), "same-text|v:1"

    def check(self) -> None:
        pass

    def score(self, pairs: Sequence[Pair[str, str]]) -> Result:
        return score_mean(pairs, lambda texts: [float(mine == right) for mine, right in texts], self.signature)


def description(**changed: object) -> Famous:
    whole = {"focus": "a dog", "action": "it runs", "mood": "calm", "objects": ("dog", "tree"), "setting": "a park"}
    return Famous.model_validate({**whole, **changed})


@pytest.mark.parametrize(("famous", "components"), [ROUGE_L_OF_GPT_4, BERTSCORE_OF_VICUNA, SENTENCE_BERT_OF_GPT_3])
def test_the_arithmetic_of_table_4(famous: float, components: list[float]) -> None:
    assert component_mean(components) == pytest.approx(famous, abs=0.0101)


def test_the_arithmetic_of_all_rows_of_table_4() -> None:
    rows = list(csv.DictReader(golden("vip/table4.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 9
    for row in rows:
        assert component_mean([float(row[name]) for name in COMPONENTS]) == pytest.approx(float(row["famous"]), abs=0.0101), row["model"]


def test_each_component_is_scored_by_itself_and_weighs_the_same() -> None:
    pairs = [
        Pair(description(), description()),
        Pair(description(mood="tense", objects=("dog",)), description()),
        Pair(description(focus="a cat"), description()),
        Pair(None, description(), "unparsed"),
    ]
    result = FamousMean(SameText()).score(pairs)
    assert {name: part.value_answered for name, part in result.parts.items()} == pytest.approx(
        {"focus": 2 / 3, "action": 1.0, "mood": 2 / 3, "objects": 2 / 3, "setting": 1.0}
    )
    assert result.value_answered == pytest.approx(0.8)
    assert result.value == pytest.approx(0.6)
    assert result.per_sample == pytest.approx((1.0, 0.6, 0.8, None))
    assert (result.n, result.unscored) == (3, {"unparsed": 1})
    assert result.signature == "famous|v:1|mean:focus,action,mood,objects,setting|of:same-text|v:1"


def test_objects_are_compared_as_one_text() -> None:
    seen: list[str] = []

    class Spy(SameText):
        def score(self, pairs: Sequence[Pair[str, str]]) -> Result:
            seen.extend(f"{pair.prediction} / {pair.reference}" for pair in pairs)
            return super().score(pairs)

    FamousMean(Spy()).score([Pair(description(objects=()), description())])
    assert seen[COMPONENTS.index("objects")] == " / dog, tree"


def test_a_component_that_is_missing_is_no_mean() -> None:
    assert component_mean([1.0, 2.0, None, 4.0, 5.0]) is None
    with pytest.raises(ValueError, match="expected the values of 5 components, got 4"):
        component_mean([1.0, 2.0, 3.0, 4.0])
