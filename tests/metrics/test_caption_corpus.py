"""Captions as numbers: n-grams, their counts and what two captions share, held against sets and counters of words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from vip.metrics import Pair
from vip.metrics import caption_corpus as module
from vip.metrics.caption_corpus import CaptionCorpus, CaptionTokenizer, score_corpus

Group = tuple[str, ...]


def corpus_of(*groups: Group) -> CaptionCorpus:
    """Each group: the prediction, and its references."""
    return CaptionCorpus([tuple(caption.split()) for caption in group] for group in groups)


GROUPS: tuple[Group, ...] = (
    ("a b a b a", "a a b c", "a c"),
    ("", "c d e f g"),
    ("c d e f", "d e f", "", "c d e f c d e f"),
    ("b", "b"),
    ("a b c d e", "x"),
)


def grams(caption: str, n: int) -> Counter[tuple[str, ...]]:
    words = caption.split()
    return Counter(tuple(words[place : place + n]) for place in range(len(words) - n + 1))


@pytest.fixture(params=[(1000, 2**62), (2, 2**62), (1, 2**62), (2, 60), (1000, 60)])
def _bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many samples at once, and the largest number of an n-gram: of what is counted nothing depends on them."""
    monkeypatch.setattr(module, "MOST_SAMPLES", request.param[0])
    monkeypatch.setattr(module, "MOST_NUMBER", request.param[1])


# ---------------------------------------------------------------- words


def test_tokens_come_back_as_they_were() -> None:
    assert list(corpus_of(*GROUPS).tokens()) == [
        (tuple(group[0].split()), [tuple(caption.split()) for caption in group[1:]]) for group in GROUPS
    ]


def test_predictions_and_references_know_their_place() -> None:
    corpus = corpus_of(("p", "r s", "t"), ("", "u"), ("v w x", "y"))
    assert corpus.samples == 3
    assert corpus.prediction_at.tolist() == [0, 3, 5]
    assert corpus.sample_of.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert corpus.is_prediction.tolist() == [True, False, False, True, False, True, False]
    assert corpus.lengths.tolist() == [1, 2, 1, 0, 1, 3, 1]


def test_a_corpus_of_nothing_shares_nothing() -> None:
    corpus = corpus_of()
    assert corpus.samples == 0
    assert corpus.overlap.matches.shape == (4, 0)
    assert corpus.overlap.similarity.tolist() == []
    empty = corpus_of(("", ""), ("", "", ""))
    assert empty.overlap.matches.tolist() == [[0, 0]] * 4
    assert empty.overlap.similarity.tolist() == [0.0] * 5


def test_values_of_a_metric_are_computed_once_and_those_of_another_on_their_own() -> None:
    corpus = corpus_of(("a", "b"))
    asked: list[str] = []

    def compute(of: CaptionCorpus, name: str) -> np.ndarray:
        assert of is corpus
        asked.append(name)
        return np.array([float(len(asked))])

    found = [corpus.values(name, lambda of, name=name: compute(of, name)).tolist() for name in ("x", "y", "x", "y")]  # type: ignore[misc]
    assert found == [[1.0], [2.0], [1.0], [2.0]]
    assert asked == ["x", "y"]


# ---------------------------------------------------------------- n-grams


@pytest.mark.usefixtures("_bounds")
def test_equal_ngrams_have_equal_numbers_and_others_have_others() -> None:
    corpus = corpus_of(*GROUPS)
    words = [(caption.split(), place) for group in GROUPS for caption in group for place in range(len(caption.split()))]
    seen = []
    for n, numbers in corpus.ngrams(4):
        seen.append(n)
        assert len(numbers) == len(words)
        known: dict[tuple[str, ...], int] = {}
        for (caption, place), number in zip(words, numbers.tolist(), strict=True):
            if place + n <= len(caption):
                assert known.setdefault(tuple(caption[place : place + n]), number) == number
        assert len(set(known.values())) == len(known)
    assert seen == [1, 2, 3, 4]


@pytest.mark.parametrize("most", [1, 2])
def test_no_longer_ngrams_are_numbered_than_asked_for(most: int) -> None:
    assert [n for n, _ in corpus_of(*GROUPS).ngrams(most)] == list(range(1, most + 1))


def test_ngrams_are_told_apart_however_many_words_there_are() -> None:
    """With 2^17 words a 4-gram is a number of 68 bits: without more than 64 the first two of these captions would be one."""
    words = [f"w{number}" for number in range(2**17)]
    texts = [f"w{first} w1 w2 w3" for first in (0, 2**13, 2**16)] + ["w0 w1 w2 w4", "w0 w1 w2 w3"]
    corpus = corpus_of((" ".join(words), ""), *((text, "") for text in texts))
    *_, (_, numbers) = corpus.ngrams(4)
    starts = [2**17 + 4 * place for place in range(len(texts))]
    found = numbers[starts].tolist()
    assert found[4] == found[0]
    assert len(set(found)) == 4


@pytest.mark.usefixtures("_bounds")
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_counts_are_those_of_each_caption(n: int) -> None:
    corpus = corpus_of(*GROUPS)
    numbers = dict(corpus.ngrams(4))[n] if n > 1 else next(numbers for _, numbers in corpus.ngrams(1))
    captions = [caption for group in GROUPS for caption in group]
    spelled = {
        int(number): tuple(caption.split()[place : place + n])
        for number, (caption, place) in zip(
            numbers.tolist(), [(caption, place) for caption in captions for place in range(len(caption.split()))], strict=True
        )
        if place + n <= len(caption.split())
    }
    found: list[Counter[tuple[str, ...]]] = [Counter() for _ in captions]
    end = 0
    for part in corpus.count(n, numbers):
        assert part.captions[0] == end
        end = part.captions[1]
        assert np.all(np.diff(part.kinds) > 0)
        order = list(zip(part.caption.tolist(), part.ngram.tolist(), strict=True))
        assert order == sorted(set(order)), "by caption, then by n-gram, each once"
        for (caption, ngram), count in zip(order, part.count.tolist(), strict=True):
            assert part.captions[0] <= caption < end
            found[caption][spelled[int(part.kinds[ngram])]] += count
    assert end == len(captions)
    assert found == [grams(caption, n) for caption in captions]


# ---------------------------------------------------------------- what is shared


@pytest.mark.usefixtures("_bounds")
def test_matches_are_clipped_by_the_reference_that_has_the_most() -> None:
    assert corpus_of(*GROUPS).overlap.matches.tolist() == [
        [3, 0, 4, 1, 0],  # of "a b a b a" two a (of "a a b c"), one b
        [1, 0, 3, 0, 0],
        [0, 0, 2, 0, 0],
        [0, 0, 1, 0, 0],
    ]


def cosine(groups: Sequence[Group], prediction: str, reference: str) -> float:
    """Sum over n of the clipped cosine by its definition (Vedantam et al. 2015, with the clipping of CIDEr-D)."""
    total = 0.0
    for n in (1, 2, 3, 4):
        frequency = Counter(gram for group in groups for gram in {gram for text in group[1:] for gram in grams(text, n)})
        mine, theirs = (
            {gram: count * (math.log(len(groups)) - math.log(max(1, frequency[gram]))) for gram, count in grams(text, n).items()}
            for text in (prediction, reference)
        )
        product = sum(min(weight, theirs.get(gram, 0.0)) * theirs.get(gram, 0.0) for gram, weight in mine.items())
        norm = math.hypot(*mine.values()) * math.hypot(*theirs.values())
        total += product / norm if norm else 0.0
    return total


@pytest.mark.usefixtures("_bounds")
def test_similarity_is_the_clipped_cosine_with_the_prediction_of_its_own_sample() -> None:
    expected = [cosine(GROUPS, group[0], caption) if place else 0.0 for group in GROUPS for place, caption in enumerate(group)]
    found = corpus_of(*GROUPS).overlap.similarity
    assert max(expected) > 1
    assert np.where(corpus_of(*GROUPS).is_prediction, 0.0, found).tolist() == pytest.approx(expected, abs=1e-12)


def test_an_ngram_is_frequent_by_samples_and_not_by_references_and_predictions_do_not_count() -> None:
    """ "a" is in the references of one sample of three, though three times; "b" in predictions alone."""
    groups = (("a x", "a x", "a", "a a"), ("b", "y"), ("b a", "b z"))
    found = corpus_of(*groups).overlap.similarity
    assert found[1] == pytest.approx(cosine(groups, "a x", "a x"), abs=1e-12)
    assert found[1] == pytest.approx(2.0)
    assert found[[2, 3]].tolist() == pytest.approx([cosine(groups, "a x", "a"), cosine(groups, "a x", "a a")], abs=1e-12)


# ---------------------------------------------------------------- texts


def test_each_caption_stands_with_its_own_references_and_none_is_an_empty_one() -> None:
    pairs = [Pair("A dog.", ("One dog!", "A cat")), Pair(None, ("Two",), "failed"), Pair("Three", ("four", "five"))]
    assert list(CaptionTokenizer().tokenize(pairs).tokens()) == [
        (("a", "dog"), [("one", "dog"), ("a", "cat")]),
        ((), [("two",)]),
        (("three",), [("four",), ("five",)]),
    ]


def test_the_last_list_is_remembered_and_another_is_not_taken_for_it() -> None:
    tokenizer, pairs = CaptionTokenizer(), [Pair("a", ("b",)), Pair("c", ("d",))]
    first = tokenizer.tokenize(pairs)
    assert tokenizer.tokenize(tuple(pairs)) is first, "the same pairs in another list"
    for other in (pairs[:1], [Pair("a", ("b",)), Pair("c", ("e",))], [Pair("x", ("b",)), Pair("c", ("d",))]):
        found = tokenizer.tokenize(other)
        assert found is not first
        assert [list(texts) for _, texts in found.tokens()] == [[(text,) for text in pair.reference] for pair in other]
    again = tokenizer.tokenize(pairs)
    assert again is not first
    pairs.pop()
    assert tokenizer.tokenize(pairs).samples == 1, "the list of the caller has changed since"


def test_a_pair_without_a_reference_is_refused_and_what_was_known_stays() -> None:
    tokenizer, pairs = CaptionTokenizer(), [Pair("a", ("b",))]
    first = tokenizer.tokenize(pairs)
    with pytest.raises(ValueError, match="without a reference"):
        tokenizer.tokenize([*pairs, Pair("c", ())])
    assert tokenizer.tokenize(pairs) is first


# ---------------------------------------------------------------- results


class Scorer:
    """A fake metric: the share of captions that are no empty text; remembers what it was given."""

    def __init__(self, *, has_values: bool = True) -> None:
        self.has_values = has_values
        self.given: list[list[str | None]] = []

    def __call__(self, pairs: Sequence[Pair[str, Sequence[str]]]) -> tuple[float, Sequence[float] | None]:
        self.given.append([pair.prediction for pair in pairs])
        values = np.array([float(bool(pair.prediction)) for pair in pairs])
        return float(values.mean()), values if self.has_values else None  # type: ignore[return-value]


ANSWERED, FAILED = Pair("a", ("b",)), Pair(None, ("c",), "failed")


def test_what_has_no_answer_counts_in_the_value_and_has_none_of_its_own() -> None:
    scorer = Scorer()
    result = score_corpus([FAILED, ANSWERED, FAILED, ANSWERED], scorer, "signature")
    assert (result.value, result.value_answered, result.n) == (0.5, 1.0, 2)
    assert result.per_sample == (None, 1.0, None, 1.0)
    assert all(type(one) is float for one in result.per_sample if one is not None)
    assert (result.unscored, result.signature) == ({"failed": 2}, "signature")
    assert scorer.given == [[None, "a", None, "a"], ["a", "a"]]


def test_where_all_have_an_answer_it_is_scored_once() -> None:
    scorer = Scorer()
    result = score_corpus([ANSWERED, Pair("", ("b",))], scorer, "s")
    assert (result.value, result.value_answered, result.per_sample, result.n) == (0.5, 0.5, (1.0, 0.0), 2)
    assert scorer.given == [["a", ""]]


def test_where_none_has_an_answer_there_is_no_value_over_the_answered() -> None:
    result = score_corpus([FAILED], Scorer(), "s")
    assert (result.value, result.value_answered, result.per_sample, result.n) == (0.0, None, (None,), 0)


def test_no_pairs_have_no_value_and_the_metric_is_not_asked() -> None:
    scorer = Scorer()
    result = score_corpus([], scorer, "s")
    assert (result.value, result.value_answered, result.per_sample, result.n, result.unscored) == (None, None, (), 0, {})
    assert scorer.given == []


def test_a_metric_of_the_corpus_alone_has_no_values_of_samples() -> None:
    assert score_corpus([ANSWERED, FAILED], Scorer(has_values=False), "s").per_sample is None


@pytest.mark.parametrize("pair", [Pair(None, ("b",)), Pair("a", ("b",), "failed")])
def test_an_answer_and_a_status_that_contradict_each_other_are_refused(pair: Pair[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match="pair 1 has the status"):
        score_corpus([ANSWERED, pair], Scorer(), "s")
