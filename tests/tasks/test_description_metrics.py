"""Scores of descriptions: the mean over keyframes of a sample, the same however many samples are in memory at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.tasks.scoring import WordShare, answer, description, sample
from vip.errors import InputError, UsageError
from vip.metrics import Pair, Result
from vip.metrics.metric import score_mean
from vip.metrics.sentence_bert import SentenceBert
from vip.records import NOT_DETERMINED
from vip.tasks import description_metrics as module
from vip.tasks.description_metrics import DescriptionMetric
from vip.tasks.records import Blank, Prediction, Sample

FAMOUS = [sample(str(place), "a b", "c", video=f"v{place}", famous=True) for place in range(5)]
DENSE = [sample(str(place), "a b", "c", video=f"v{place}") for place in range(5)]
WORDS = [("a b", "c"), ("a", "c"), (), ("x", "y"), ("a", "x")]
VALUES = (1.0, 0.75, None, 0.0, 0.25)


def pairs_of(samples: Sequence[Sample]) -> list[tuple[Sample, Prediction]]:
    return [(one, answer(one, *words, status="ok" if words else "refused")) for one, words in zip(samples, WORDS, strict=True)]


@pytest.mark.parametrize("samples", [FAMOUS, DENSE], ids=["famous", "dense"])
@pytest.mark.parametrize("at_once", [1, 2, 5, 500])
def test_the_value_of_a_sample_is_the_mean_over_its_keyframes_however_many_are_read_at_once(
    at_once: int, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAMPLES_AT_ONCE", at_once)
    found = DescriptionMetric(WordShare()).score(pairs_of(samples))
    assert found.per_sample == VALUES
    assert (found.value, found.value_answered, found.n, found.unscored) == (0.4, 0.5, 4, {"refused": 1})
    if samples is FAMOUS:
        assert [part.value for part in found.parts.values()] == [0.4] * 5
        assert {part.per_sample for part in found.parts.values()} == {VALUES}
    else:
        assert not found.parts


def test_a_keyframe_without_a_value_leaves_its_sample_without_one() -> None:
    class NoCats(WordShare):
        def score(self, pairs: Sequence[Pair[str, str]]) -> Result:
            whole = score_mean(pairs, lambda texts: [1.0] * len(texts), self.signature)
            known = tuple(None if "cat" in pair.reference else value for pair, value in zip(pairs, whole.per_sample or (), strict=True))
            return Result(value=1.0, value_answered=1.0, per_sample=known, n=len(known), unscored={}, signature=self.signature)

    samples = [sample("0", "a dog", "a cat"), sample("1", "a dog", "a fox")]
    found = DescriptionMetric(NoCats()).score([(one, answer(one, "x", "y")) for one in samples])
    assert (found.per_sample, found.value, found.value_answered, found.n) == ((None, 1.0), 0.5, 1.0, 1)


def test_samples_of_several_numbers_of_keyframes_keep_their_own() -> None:
    samples = [sample("0", "a"), sample("1", "b", "b", "b"), sample("2", "c", "d")]
    words = (("a",), ("b", "x", "b"), ("x", "d"))
    pairs = [(one, answer(one, *some)) for one, some in zip(samples, words, strict=True)]
    assert DescriptionMetric(WordShare()).score(pairs).per_sample == pytest.approx((1.0, 2 / 3, 0.5))


@pytest.mark.parametrize(("open_ones", "is_said"), [(1, False), (2, False), (3, True)])
def test_a_component_that_more_than_half_of_the_references_leave_open_is_said(
    open_ones: int, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAMPLES_AT_ONCE", 2)
    left_open = description("dog", True).famous
    assert left_open is not None
    left_open = left_open.model_copy(update={"mood": NOT_DETERMINED})
    pairs = []
    for place in range(4):
        one = sample(str(place), "dog", famous=True)
        assert one.reference is not None
        if place < open_ones:
            value = (description("dog", True).model_copy(update={"famous": left_open}),)
            one = one.model_copy(update={"reference": one.reference.model_copy(update={"values": (value,)})})
        pairs.append((one, answer(one, "dog")))
    notes = DescriptionMetric(WordShare()).score(pairs).notes
    assert [note.partition(", and so")[0] for note in notes] == (['Most references say "not determined" of mood'] if is_said else [])


def test_what_does_not_ask_for_descriptions_and_lists_of_another_length_are_refused() -> None:
    blank = Sample(id="b", task="fiber", task_version=1, video="v", ask=Blank(text="A _____."))
    metric = DescriptionMetric(WordShare())
    with pytest.raises(InputError, match='The sample "b" does not ask for descriptions'):
        metric.score([(blank, Prediction(sample_id="b", value="x"))])
    one = sample("0", "a", "b")
    for wrong in (("a",), ("a", "b", "c")):
        with pytest.raises(InputError, match="is not a list of 2 dense captions"):
            metric.score([(one, answer(one, *wrong))])
    famous = sample("0", "a", famous=True)
    with pytest.raises(InputError, match="is not a list of 1 scene descriptions"):
        metric.score([(famous, Prediction(sample_id=famous.id, value=(description("a"),)))])


def test_another_encoder_is_for_metrics_with_one() -> None:
    metric = DescriptionMetric(SentenceBert("first")).with_encoder("owner/second")
    assert isinstance(metric.metric, SentenceBert)
    assert (metric.name, metric.metric.encoder.name) == ("sentence-bert", "owner/second")
    with pytest.raises(UsageError, match="word-share has no encoder"):
        DescriptionMetric(WordShare()).with_encoder("x")
