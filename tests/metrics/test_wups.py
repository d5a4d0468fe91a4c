"""WUPS is that of the published program on the 5,343 questions of the validation set, each by itself."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from math import fsum
from pathlib import Path

import pytest

from tests.metrics.golden import golden
from tests.metrics.test_perceptron_tagger import FIXED, TAGS, WEIGHTS, write_json
from tests.metrics.tiny_wordnet import whole_wordnet, write_wordnet
from vip.errors import BackendError
from vip.metrics import Pair
from vip.metrics.answer_words import STOP_WORDS, AnswerNormalizer
from vip.metrics.perceptron_tagger import PerceptronTagger, load_tagger
from vip.metrics.wordnet import WordNet
from vip.metrics.wups import Answer, AnswerReference, Variant, Wups

EXACT = ("DB", "DC")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wordnet(tmp_path_factory.mktemp("wordnet"))


def published_rows() -> list[dict[str, str]]:
    with gzip.open(golden("nextqa/oe_val_expected.csv.gz"), "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def score_tokens(metric: Wups, prediction: str, reference: str, *, exact: bool = False) -> float:
    return metric.score_answer(tuple(prediction.split()), AnswerReference((tuple(reference.split()),), exact))


def group_means(rows: list[dict[str, str]], values: list[float]) -> dict[str, float]:
    """The means × 100 of C, T, D and of all."""
    groups = defaultdict(list)
    for row, value in zip(rows, values, strict=True):
        groups[row["type"][0]].append(value)
        groups["all"].append(value)
    return {name: 100 * fsum(members) / len(members) for name, members in groups.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "means"),
    [
        ("published", {"C": 14.76, "T": 14.90, "D": 46.60, "all": 21.48}),
        ("strict", {"C": 11.74, "T": 11.22, "D": 45.04, "all": 18.56}),
    ],
)
def test_the_published_figures_come_out_of_normalised_tokens(variant: Variant, means: dict[str, float]) -> None:
    rows, metric = published_rows(), Wups(variant, wordnet=whole_wordnet(), tokens=True)
    values = [score_tokens(metric, row["prediction_tokens"], row["reference_tokens"], exact=row["type"] in EXACT) for row in rows]
    assert group_means(rows, values) == pytest.approx(means, abs=0.005)
    if variant == "published":
        assert len(rows) == 5343
        assert [f"{value:.6f}" for value in values] == [row["score"] for row in rows]


@pytest.mark.slow
@pytest.mark.extra("nltk")
def test_the_published_tokens_and_scores_come_out_of_raw_answers() -> None:
    try:
        load_tagger()
    except BackendError:
        pytest.skip("the data of NLTK's tagger is not here")
    rows, metric = published_rows(), Wups(wordnet=whole_wordnet())
    tokens = [[" ".join(metric.words(row[side])) for side in ("reference", "prediction")] for row in rows]
    assert tokens == [[row["reference_tokens"], row["prediction_tokens"]] for row in rows]
    for prediction, score in (("prediction", "score"), ("popular_prediction", "popular_score")):
        pairs = [Pair[Answer, AnswerReference](row[prediction], AnswerReference((row["reference"],), row["type"] in EXACT)) for row in rows]
        assert [f"{value:.6f}" for value in metric.score(pairs).per_sample_or_zero] == [row[score] for row in rows]


@pytest.mark.parametrize(
    ("variant", "prediction", "reference", "expected"),
    [
        ("published", "dog", "dog", 1.0),
        ("published", "dog", "cat", 0.75),
        ("published", "dog qwerty", "cat", 0.75),  # a word that WordNet does not know is left out
        ("strict", "dog qwerty", "cat", 0.0),
        ("published", "dog dog", "cat", 0.75**2),
        ("published", "run", "cat", 0.0),  # 2 / 8 from run up, but nothing is left from cat
        ("at-0.9", "dog dog", "cat", 0.075**2),
        ("at-0.9", "dog", "dog", 1.0),
        ("published", "qwerty", "qwerty", 1.0),
        ("published", "qwerty", "dog", 0.0),
        ("published", "", "dog", 0.0),
        ("published", "dog", "", 0.0),
        ("published", "", "", 0.0),
    ],
)
def test_scores_counted_by_hand(tiny: Path, variant: Variant, prediction: str, reference: str, expected: float) -> None:
    got = score_tokens(Wups(variant, wordnet=tiny, tokens=True), prediction, reference)
    assert got == pytest.approx(expected, abs=1e-12)


def test_the_smaller_of_both_directions_counts(tiny: Path) -> None:
    metric = Wups(wordnet=tiny, tokens=True)
    assert score_tokens(metric, "dog", "dog cat") == score_tokens(metric, "dog cat", "dog") == 0.75


def test_yes_no_and_counts_are_right_or_wrong_and_the_best_reference_counts(tiny: Path) -> None:
    metric = Wups(wordnet=tiny, tokens=True)
    assert score_tokens(metric, "dog", "cat", exact=True) == 0.0
    assert score_tokens(metric, "dog", "dog", exact=True) == 1.0
    assert metric.score_answer(("dog",), AnswerReference((("entity",), ("cat",)))) == 0.75
    pairs = [
        Pair[Answer, AnswerReference](("dog",), AnswerReference((("cat",),))),
        Pair[Answer, AnswerReference](None, AnswerReference((("cat",),)), "refused"),
    ]
    result = metric.score(pairs)
    assert (result.value, result.value_answered, result.per_sample, result.unscored) == (0.375, 0.75, (0.75, None), {"refused": 1})


def test_signatures_name_rules_wordnet_and_where_words_come_from(tiny: Path) -> None:
    assert Wups(wordnet=tiny, tokens=True).signature == "wups|v:1|zeros:left out|wup:nltk-3.3|wordnet:3.0|words:given"
    assert Wups("strict", wordnet=tiny, tokens=True).signature.startswith("wups-strict|v:1|zeros:kept|")
    assert Wups("at-0.9", wordnet=tiny).signature == (
        "wups-at-0.9|v:1|zeros:left out|below 0.9:x0.1|wup:nltk-3.3|wordnet:3.0"
        "|words:ptb+averaged_perceptron_tagger+morphy nltk-3.3+stop nextqa"
    )
    with pytest.raises(ValueError, match=r"expected one of published, strict, at-0\.9, got best"):
        Wups("best")  # type: ignore[arg-type]


@pytest.mark.extra("nltk")
@pytest.mark.slow
def test_raw_answers_become_lemmas_without_stop_words(tiny: Path, tmp_path: Path) -> None:
    normalize = AnswerNormalizer(WordNet(tiny), PerceptronTagger(WEIGHTS, FIXED, TAGS))
    assert normalize("the dogs running") == ("dog", "run")  # no lemma of a verb, but its stem is one
    assert normalize("The Hounds") == ("hound",)  # lower case comes after tagging, stop words after that
    assert normalize("he is up") == ("up",)
    assert normalize("") == normalize("it was the") == ()
    assert normalize("can't") == ("ca", "n't")
    metric = Wups(wordnet=tiny, tagger=write_json(tmp_path / "tagger"))
    assert metric.score_answer("the running dog", AnswerReference(("a dog is running",))) == 1.0


def test_the_stop_words_are_those_of_the_authors() -> None:
    assert set(golden("nextqa/stopwords.txt").read_text(encoding="utf-8").split()) == STOP_WORDS
    assert not STOP_WORDS & {"yes", "no", "not", "in", "on", "out", "up", "down"}


@pytest.mark.extra("nltk")
def test_raw_answers_without_the_taggers_data_ask_for_it(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"Run `python -m nltk\.downloader averaged_perceptron_tagger_eng`"):
        Wups(wordnet=tiny, tagger=tmp_path).check()
    Wups(wordnet=tiny, tagger=tmp_path, tokens=True).check()
