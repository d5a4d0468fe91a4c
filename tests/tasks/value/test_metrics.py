"""Metrics of VALUE between samples and predictions: what is compared, at which level, and what is drawn again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from vip.errors import InputError
from vip.metrics import Pair
from vip.metrics.cider import CiderD
from vip.tasks.records import Choice, Found, FoundMoments, FreeText, Moment, Prediction, Rank, Reference, Sample
from vip.tasks.value.datasets import BY_KEY
from vip.tasks.value.metrics import KeptPairs, ValueMetric, VideoMean, choice_pairs, paragraph_pairs, retrieval_pairs, value_metrics


def clip(name: str, video: str, *captions: str, start_s: float | None = None) -> Sample:
    return Sample(
        id=name,
        task="value-tvc",
        task_version=1,
        video=video,
        start_s=start_s,
        ask=FreeText(question="?"),
        reference=Reference(values=captions) if captions else None,
    )


def said(sample: Sample, text: str | None) -> tuple[Sample, Prediction]:
    return sample, Prediction(sample_id=sample.id, value=text, status="ok" if text is not None else "refused")


CLIPS = [
    said(clip("9", "park", "a man sits", "he sits", start_s=5.0), "a man sits"),
    said(clip("2", "street", "a car stops", start_s=1.0), "a bus"),
    said(clip("1", "park", "a dog runs", start_s=7.5), "a dog runs fast"),
    said(clip("3", "park", "a cat", "the cat", "one cat", start_s=0.0), None),
    said(clip("4", "lake", "a boat"), None),
]


def test_a_paragraph_is_the_clips_of_a_video_in_order_of_time_and_references_that_end_begin_again() -> None:
    park, street, lake = paragraph_pairs(CLIPS)
    assert park.prediction == "a man sits a dog runs fast"
    assert park.reference == (
        "a cat a man sits a dog runs",
        "the cat he sits a dog runs",
        "one cat a man sits a dog runs",
    )
    assert (park.status, street.status, street.prediction) == ("ok", "ok", "a bus")
    assert (lake.prediction, lake.status, lake.reference) == (None, "refused", ("a boat",))
    without_times = paragraph_pairs([said(clip("b", "v", "x"), "first"), said(clip("a", "v", "y"), "second")])
    assert without_times == [Pair("first second", ("x y",))]


class Lengths:
    """A metric of captions whose value is the number of words."""

    name, needs, signature = "lengths", (), "lengths|v:1"

    def check(self) -> None:
        pass

    def score(self, pairs: Sequence[Pair[str, tuple[str, ...]]]) -> object:
        from vip.metrics.metric import score_mean

        return score_mean(pairs, lambda rows: [float(len(mine.split())) for mine, _ in rows], self.signature)


def lengths(suffix: str = "") -> ValueMetric:
    from vip.tasks.value.metrics import caption_pairs

    return ValueMetric(Lengths(), paragraph_pairs if suffix else caption_pairs, suffix)  # type: ignore[arg-type]


def test_each_level_has_its_own_mean_name_and_signature() -> None:
    clips, paragraphs, videos = lengths(), lengths("-paragraph"), VideoMean(lengths())
    assert [metric.score(CLIPS).value for metric in (clips, paragraphs)] == pytest.approx([(3 + 2 + 4) / 5, (7 + 2) / 3])
    of_videos = videos.score(CLIPS)
    assert of_videos.value == pytest.approx(((3 + 4 + 0) / 3 + 2 + 0) / 3)
    assert of_videos.value_answered == pytest.approx(((3 + 4) / 2 + 2) / 2)
    assert clips.score(CLIPS).per_sample == (3.0, 2.0, 4.0, None, None)
    assert paragraphs.score(CLIPS).per_sample is None
    assert of_videos.per_sample is None
    assert [metric.name for metric in (clips, paragraphs, videos)] == ["lengths", "lengths-paragraph", "lengths-video-mean"]
    assert paragraphs.score(CLIPS).signature == paragraphs.signature == "lengths-paragraph|v:1"
    assert of_videos.signature == videos.signature == "lengths-video-mean|mean over videos of clips|lengths|v:1"


@pytest.mark.parametrize("metric", [lengths(), lengths("-paragraph"), VideoMean(lengths())], ids=lambda metric: metric.name)
def test_a_draw_in_which_all_clips_are_there_once_has_the_value_itself(metric: ValueMetric | VideoMean) -> None:
    value = metric.resampler(CLIPS)
    assert value(np.ones(5)) == pytest.approx(metric.score(CLIPS).value)


@pytest.mark.parametrize("metric", [lengths(), lengths("-paragraph"), VideoMean(lengths())], ids=lambda metric: metric.name)
def test_a_video_that_was_drawn_twice_counts_twice(metric: ValueMetric | VideoMean) -> None:
    weights = np.array([2.0, 1.0, 2.0, 2.0, 0.0])  # park twice, street once, the lake not
    drawn = [
        (sample.model_copy(update={"id": f"{sample.id}-2", "video": f"{sample.video}-2"}), answer)
        for sample, answer in CLIPS[:4]
        if sample.video == "park"
    ]
    drawn = [(sample, answer.model_copy(update={"sample_id": sample.id})) for sample, answer in drawn]
    assert metric.resampler(CLIPS)(weights) == pytest.approx(metric.score([*CLIPS[:4], *drawn]).value)


def test_what_is_compared_is_made_once_for_each_list() -> None:
    made: list[int] = []

    def make(pairs: Sequence[tuple[Sample, Prediction]]) -> list[Pair[str, str]]:
        made.append(len(pairs))
        return [Pair(sample.id, "") for sample, _ in pairs]

    kept = KeptPairs(make)
    first, second = list(CLIPS), CLIPS[:2]
    assert kept(first) is kept(first)
    assert [pair.prediction for pair in kept(second)] == ["9", "2"]
    assert [pair.prediction for pair in kept(first)][-1] == "4"
    assert kept(list(reversed(first))) == list(reversed(kept(first))), "another list of as many"
    assert made == [5, 2, 5, 5, 5]


def ranked(moments: tuple[Moment, ...] | tuple[str, ...] | None, **found: object) -> tuple[Sample, Prediction]:
    sample = Sample(
        id="q",
        task="value-tvr",
        task_version=1,
        video="park",
        ask=Rank(query="a dog"),
        reference=Reference(values=(moments,)) if moments else None,
    )
    return sample, Prediction(sample_id="q", value=Found.model_validate(found))


def test_a_query_has_its_video_and_all_spans_of_its_moment() -> None:
    spans = (Moment(video="park", start_s=1, end_s=2), Moment(video="park", start_s=3, end_s=4))
    columns = FoundMoments(videos=("a", "b"), starts_s=(0.0, 1.0), ends_s=(2.0, 3.0))
    (pair,) = retrieval_pairs([ranked(spans, vcmr=columns, vr=("b",))])
    assert (pair.reference.video, pair.reference.spans_s) == ("park", ((1.0, 2.0), (3.0, 4.0)))
    assert pair.prediction is not None
    assert pair.prediction.vcmr is not None
    assert (pair.prediction.vcmr.videos, pair.prediction.vcmr.starts_s, pair.prediction.vcmr.ends_s) == (("a", "b"), (0.0, 1.0), (2.0, 3.0))
    assert (pair.prediction.svmr, pair.prediction.vr) == (None, ("b",))
    (video,) = retrieval_pairs([ranked(("street",), vr=("b",))])
    assert (video.reference.video, video.reference.spans_s) == ("street", ())


def test_answers_of_another_kind_and_hidden_ones_are_refused() -> None:
    question = Sample(
        id="1", task="t", task_version=1, video="v", ask=Choice(question="?", options=("a", "b")), reference=Reference(values=(0,))
    )
    assert choice_pairs([(question, Prediction(sample_id="1", value=0))]) == [Pair(0, 0)]
    with pytest.raises(InputError, match='The prediction of "1" is of another kind of task'):
        choice_pairs([(question, Prediction(sample_id="1", value="a"))])
    with pytest.raises(InputError, match='The sample "1" has no answer of this kind'):
        choice_pairs([(question.model_copy(update={"reference": None}), Prediction(sample_id="1", value=0))])
    with pytest.raises(InputError, match='The sample "q" has no answer of this kind'):
        retrieval_pairs([ranked(None, vr=("a",))])


def test_each_task_has_its_metrics_the_target_first() -> None:
    names = {key: [metric.name for metric in value_metrics(BY_KEY[key])] for key in ("tvqa", "tvr", "yc2r", "tvc")}
    assert names["tvqa"] == ["accuracy"]
    assert names["yc2r"] == ["aver", "vr-r1", "vr-r5", "vr-r10", "vr-r100"]
    moments = [f"{kind}-{tiou}-r{k}" for kind in ("vcmr", "svmr") for tiou in ("0.5", "0.7") for k in (1, 5, 10, 100)]
    assert names["tvr"] == ["aver", *moments, "vr-r1", "vr-r5", "vr-r10", "vr-r100"]
    kinds = {key: value_metrics(BY_KEY[key])[0].signature.split("|")[5:8] for key in ("tvr", "how2r", "yc2r")}
    moments_at = ["vcmr", "k:1,5,10", "tiou>=0.7 float32"]
    assert kinds == {"tvr": moments_at, "how2r": moments_at, "yc2r": ["vr", "k:1,5,10", "most:100"]}
    assert names["tvc"] == [
        *("cider-d", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l-coco", "meteor", "cider-d-video-mean"),
        *("cider-d-paragraph", "bleu-4-paragraph", "rouge-l-coco-paragraph"),
    ]
    whole = value_metrics(BY_KEY["tvc"])[0].score(CLIPS)
    assert whole.value == CiderD().score([Pair(answer.value, sample.reference.values, answer.status) for sample, answer in CLIPS]).value  # type: ignore[union-attr, arg-type]


def test_clips_without_any_answer_have_no_mean_of_those_answered() -> None:
    mean = next(metric for metric in value_metrics(BY_KEY["yc2c"]) if isinstance(metric, VideoMean))
    found = mean.score([said(clip("1", "park", "mix it"), None), said(clip("2", "lake", "stir it"), None)])
    assert (found.value, found.value_answered, found.unscored) == (0.0, None, {"refused": 2})


def test_a_query_without_an_answer_finds_nothing_and_is_kept() -> None:
    sample, _ = ranked(("street",), vr=("b",))
    (pair,) = retrieval_pairs([(sample, Prediction(sample_id="q", value=None, status="missing"))])
    assert (pair.prediction, pair.reference.video, pair.status) == (None, "street", "missing")
    recall = next(metric for metric in value_metrics(BY_KEY["yc2r"]) if metric.name == "vr-r1")
    found = recall.score([(sample, Prediction(sample_id="q", value=None, status="missing")), ranked(("b",), vr=("b",))])
    assert (found.value, found.value_answered, found.unscored) == (0.5, 1.0, {"missing": 1})
