"""CIDEr-D: the published figure, a value that is counted by hand, and a second way to compute it."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.caption_pairs import vatex_pairs, vatex_score
from vip.metrics import Pair
from vip.metrics.cider import CiderD

WORDS = st.sampled_from(["a", "dog", "man", "runs", "sits", "the"])
CAPTIONS = st.lists(WORDS, max_size=6).map(" ".join)


@pytest.mark.slow
def test_the_published_figure_comes_out() -> None:
    value = CiderD().score(vatex_pairs()).value
    assert value is not None
    assert 100 * value == pytest.approx(vatex_score("CIDEr_D"), abs=1e-3)


def by_definition(pairs: list[Pair[str, tuple[str, ...]]]) -> list[float]:
    """CIDEr-D of each caption, n-gram after n-gram (Vedantam et al. 2015, section 6)."""

    def grams(text: str) -> Counter[tuple[str, ...]]:
        words = text.split()
        return Counter(tuple(words[i : i + n]) for n in (1, 2, 3, 4) for i in range(len(words) - n + 1))

    frequency = Counter(gram for pair in pairs for gram in {gram for text in pair.reference for gram in grams(text)})

    def vector(text: str, n: int) -> dict[tuple[str, ...], float]:
        rarity = math.log(len(pairs))
        return {gram: count * (rarity - math.log(max(1, frequency[gram]))) for gram, count in grams(text).items() if len(gram) == n}

    values = []
    for pair in pairs:
        total = 0.0
        for text in pair.reference:
            gap = max(0, len((pair.prediction or "").split()) - 1) - max(0, len(text.split()) - 1)
            for n in (1, 2, 3, 4):
                mine, theirs = vector(pair.prediction or "", n), vector(text, n)
                norm = math.hypot(*mine.values()) * math.hypot(*theirs.values())
                product = sum(min(weight, theirs.get(gram, 0.0)) * theirs.get(gram, 0.0) for gram, weight in mine.items())
                total += (product / norm if norm else 0.0) * math.exp(-(gap**2) / 72) / 4
        values.append(10 * total / len(pair.reference))
    return values


@settings(max_examples=20)
@given(st.lists(st.tuples(CAPTIONS, st.lists(CAPTIONS, min_size=1, max_size=3).map(tuple)), min_size=1, max_size=6))
def test_each_value_is_that_of_the_definition(texts: list[tuple[str, tuple[str, ...]]]) -> None:
    pairs = [Pair(*both) for both in texts]
    result = CiderD().score(pairs)
    assert result.per_sample == pytest.approx(by_definition(pairs), abs=1e-9)
    assert result.value == pytest.approx(sum(by_definition(pairs)) / len(pairs), abs=1e-9)


def test_what_all_references_say_counts_nothing() -> None:
    pairs = [Pair("a dog", ("a dog",)), Pair("a dog", ("a dog",))]
    assert CiderD().score(pairs).value == 0


def test_a_missing_caption_is_worth_nothing_and_the_answered_are_a_corpus_of_their_own() -> None:
    pairs = [Pair("a dog runs", ("a dog runs",)), Pair("a man sits", ("a man sits",)), Pair(None, ("the cat",), "failed")]
    result = CiderD().score(pairs)
    assert result.per_sample is not None
    assert result.per_sample[2] is None
    assert result.value_answered == CiderD().score(pairs[:2]).value
    assert result.value == pytest.approx(sum(result.per_sample_or_zero) / 3)


def test_a_caption_without_a_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="without a reference"):
        CiderD().score([Pair("a dog", ())])


def test_more_samples_than_are_counted_at_once_have_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [Pair(f"a dog {i % 3} runs", (f"a dog {i % 2} runs", "the man")) for i in range(7)]
    whole = CiderD().score(pairs).per_sample
    monkeypatch.setattr("vip.metrics.caption_corpus.MOST_SAMPLES", 2)
    assert CiderD().score(pairs).per_sample == pytest.approx(whole)
