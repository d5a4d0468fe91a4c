"""Zero-shot CLIP: formulas on vectors made by hand, the threshold against all thresholds, and a whole run with tiny random weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.models import clip_models
from tests.tasks.value.made import query, write_index, write_lines
from vip.config import SampleSettings
from vip.errors import BackendError, InputError, UsageError
from vip.protocols import SilentObserver
from vip.tasks.files import read_predictions
from vip.tasks.records import Choice, Found, Sample
from vip.tasks.value.channels import write_features
from vip.tasks.value.datasets import BY_KEY
from vip.tasks.value.zero_shot import (
    decision_score,
    find_moments,
    make_corpus,
    pool_frames,
    pool_sentences,
    queries_of,
    rank_videos,
    rank_windows,
    tune_threshold,
)
from vip.tasks.value.zero_shot_predict import ZeroShotOptions, predict_zero_shot

X, Y = np.eye(2, dtype=np.float32)


def test_videos_are_ranked_by_the_mean_of_both_channels() -> None:
    frames = [np.stack([X, X]), np.stack([Y, Y]), np.stack([X, Y])]
    queries = np.stack([X])
    video_only = make_corpus("abc", frames, None)
    assert np.allclose(video_only.similarity(queries), [[1, 0, 0.5**0.5]])
    assert [row.tolist() for row in rank_videos(video_only, queries)] == [[0, 2, 1]]
    sentences = [np.stack([Y]), np.stack([X]), np.array([[1, 0], [0, 1]], np.float32)]  # largest of the last: (1, 1)
    both = make_corpus("abc", frames, sentences)
    assert np.allclose(both.similarity(queries), [[0.5, 0.5, 0.5**0.5]])
    assert [row.tolist() for row in rank_videos(both, queries)] == [[2, 0, 1]]
    assert np.allclose([both.similarity_to(queries, number)[0] for number in range(3)], both.similarity(queries)[0])
    assert np.allclose(make_corpus("abc", None, sentences).similarity_to(queries, 1), [1])


def test_a_moment_is_the_window_with_the_largest_mean() -> None:
    frames = np.stack([Y, X, X, Y, X])
    windows = rank_windows(frames, X, 2)
    assert windows[0] == (1.5, 4.5, 1.0)
    assert [one[2] for one in windows] == [1.0, 0.5, 0.5, 0.5]
    assert [one[:2] for one in rank_windows(frames, X, 99)] == [(0.0, 7.5)], "a shorter video is one window"
    corpus = make_corpus("ab", [frames, np.stack([Y, Y])], None)
    found = find_moments(corpus, X, [0, 1], 1, 2)
    assert found.vr == ("a", "b")
    assert found.vcmr is not None
    assert (found.vcmr.videos, found.vcmr.starts_s, found.vcmr.ends_s) == (("a", "b"), (1.5, 0.0), (4.5, 3.0))
    assert found.svmr is not None
    assert found.svmr.videos == ("b",)
    assert find_moments(corpus, X, [0], None, 2).svmr is None


def test_the_threshold_is_the_best_of_all() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        count = int(random.integers(1, 12))
        scores = np.round(random.normal(size=count), 1)  # with equal ones
        answers = random.integers(2, size=count)
        tuned = tune_threshold(scores.tolist(), answers.tolist())
        tried = [*scores, scores.max() + 1]
        best = max(float(((scores >= threshold) == answers).mean()) for threshold in tried)
        assert tuned.accuracy == pytest.approx(best)
        assert float(((scores >= tuned.value) == answers).mean()) == pytest.approx(best)
    close = np.nextafter(1.0, 2.0)
    assert tune_threshold([1.0, float(close)], [0, 1]).accuracy == 1.0
    assert 1.0 < tune_threshold([1.0, float(close)], [0, 1]).value <= close


def test_what_is_compared_depends_on_the_question() -> None:
    sample = Sample(id="1", task="t", task_version=1, video="v", ask=Choice(question="Who?", options=("Ann", "Bob")))
    assert queries_of(sample, BY_KEY["how2qa"]) == ["Who? Ann", "Who? Bob"]
    assert queries_of(sample, BY_KEY["vlep"]) == ["Ann", "Bob"]
    assert queries_of(sample, BY_KEY["violin"]) == ["Who?"]
    assert decision_score(np.array([0.25])) == 0.25
    assert decision_score(np.array([0.25, 0.75])) == 0.5


# ---------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"clip:{clip_models.folder(tmp_path_factory.mktemp('models') / 'clip', 'clip')}"


def options(clip: str, annotations: Path, **more: object) -> ZeroShotOptions:
    of_settings = {name: more.pop(name) for name in ("videos", "subtitles", "split") if name in more}
    settings = SampleSettings.model_validate(of_settings)
    return ZeroShotOptions(embedder=clip, annotations=(str(annotations),), settings=settings, **more)  # type: ignore[arg-type]


def run(task: str, out: Path, chosen: ZeroShotOptions) -> tuple[list[object], dict[str, object]]:
    predict_zero_shot(task, out, chosen, overwrite=True, observer=SilentObserver())
    record = json.loads(out.with_name(f"{out.stem}.zero-shot.json").read_text())
    return [one.value for one in read_predictions(out)], record


@pytest.fixture
def features(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    for name in ("park", "street", "v1", "v2"):
        write_features(tmp_path / "features" / f"{name}.npz", random.normal(size=(6, clip_models.CLIP["embed_dim"])).astype(np.float32))
    return tmp_path / "features"


def test_moments_of_a_corpus_are_found_from_features(clip: str, features: Path, tmp_path: Path) -> None:
    annotations = write_lines(tmp_path / "tvr.jsonl", [query(1), query(2, "street")])
    values, record = run("value-tvr", tmp_path / "p.jsonl", options(clip, annotations, features=features, window=2))
    assert len(values) == 2
    for value, right in zip(values, ("park", "street"), strict=True):
        assert isinstance(value, Found)
        assert value.vcmr is not None
        assert value.svmr is not None
        assert sorted(value.vr or ()) == ["park", "street"]
        assert value.vcmr.videos == value.vr
        assert set(value.svmr.videos) == {right}
        assert [end - start for start, end in zip(value.svmr.starts_s, value.svmr.ends_s, strict=True)] == [3.0] * 5
    assert record["window_frames"] == 2
    assert record["channels"] == "video"
    hidden = write_lines(tmp_path / "test.jsonl", [{"desc_id": 1, "desc": "a dog"}])
    with pytest.raises(InputError, match="The videos of these queries are hidden"):
        run("value-tvr", tmp_path / "p.jsonl", options(clip, hidden, features=features))
    values, _ = run(
        "value-tvr", tmp_path / "p.jsonl", options(clip, hidden, features=features, video_index=write_index(tmp_path), split="val")
    )
    assert isinstance(values[0], Found)
    assert values[0].svmr is None, "nobody says which video is the right one"


def test_the_threshold_of_the_validation_split_is_used_for_the_test(clip: str, features: Path, tmp_path: Path) -> None:
    rows = [{"example_id": n, "vid_name": f"v{n % 2 + 1}", "statement": f"Somebody does {n}.", "answer": n % 2} for n in range(8)]
    validation = write_lines(tmp_path / "val.jsonl", rows)
    test = write_lines(tmp_path / "test.jsonl", [{key: value for key, value in row.items() if key != "answer"} for row in rows])
    answers, record = run("value-violin", tmp_path / "val-p.jsonl", options(clip, validation, features=features))
    threshold = record["threshold"]
    assert isinstance(threshold, dict)
    assert threshold["accuracy"] == sum(answer == n % 2 for n, answer in enumerate(answers)) / 8 >= 0.5
    kept = str(tmp_path / "val-p.zero-shot.json")
    again, other = run("value-violin", tmp_path / "p.jsonl", options(clip, test, features=features, threshold=kept))
    assert again == answers
    assert other["threshold_from"] == kept
    always, _ = run("value-violin", tmp_path / "p.jsonl", options(clip, test, features=features, threshold="-2"))
    assert always == [1] * 8
    with pytest.raises(UsageError, match="needs a threshold"):
        run("value-violin", tmp_path / "p.jsonl", options(clip, test, features=features))
    subtitles = write_lines(tmp_path / "s.jsonl", [{"vid_name": "v1", "sub": [{"text": "hello", "start": 0, "end": 1}]}])
    with pytest.raises(UsageError, match="was tuned for"):
        run("value-violin", tmp_path / "p.jsonl", options(clip, test, features=features, subtitles=subtitles, threshold=kept))


def test_questions_are_answered_from_a_video_and_its_subtitles(clip: str, tmp_path: Path) -> None:
    videos = Path(__file__).resolve().parents[3] / "examples"
    row = {"qid": 5, "q": "What flies?", "vid_name": "sample", "answer_idx": 1, **{f"a{n}": text for n, text in enumerate("abcd")}}
    annotations = write_lines(tmp_path / "how2qa.jsonl", [row])
    subtitles = write_lines(tmp_path / "s.jsonl", [{"vid_name": "sample", "sub": [{"text": "a dog", "start": 0, "end": 1}]}])
    kept = tmp_path / "kept"
    first, record = run("value-how2qa", tmp_path / "p.jsonl", options(clip, annotations, videos=videos, subtitles=subtitles, features=kept))
    assert record["channels"] == "video+sub"
    assert record["threshold"] is None
    frames = np.load(kept / "sample.npz")["features"]
    assert frames.shape[1] == clip_models.CLIP["embed_dim"]
    second, _ = run("value-how2qa", tmp_path / "p.jsonl", options(clip, annotations, subtitles=subtitles, features=kept))
    assert second == first, "the features that were kept are those of the video"
    text_only, record = run("value-how2qa", tmp_path / "p.jsonl", options(clip, annotations, subtitles=subtitles))
    assert record["channels"] == "sub"
    assert text_only[0] in range(4)


def test_what_cannot_be_predicted_is_one_sentence(clip: str, features: Path, tmp_path: Path) -> None:
    annotations = write_lines(tmp_path / "tvr.jsonl", [query(1)])
    out = tmp_path / "p.jsonl"
    with pytest.raises(UsageError, match="CLIP writes none"):
        run("value-tvc", out, options(clip, annotations, features=features))
    with pytest.raises(UsageError, match="is no task of VALUE"):
        run("fiber", out, options(clip, annotations, features=features))
    with pytest.raises(UsageError, match="Name the videos with"):
        run("value-tvr", out, options(clip, annotations))
    with pytest.raises(BackendError, match="no common space"):
        run("value-tvr", out, options("classic", annotations, features=features))
    with pytest.raises(InputError, match="There is no video park"):
        run("value-tvr", out, options(clip, annotations, videos=tmp_path))
    write_features(features / "park.npz", np.ones((3, 7), np.float32))
    with pytest.raises(InputError, match="other widths"):
        run("value-tvr", out, options(clip, annotations, features=features))
    outside = write_lines(tmp_path / "o.jsonl", [query(1, "../park")])
    with pytest.raises(InputError, match="is no name of a video"):
        run("value-tvr", out, options(clip, outside, features=features))


def test_a_window_longer_than_the_video_ends_with_it() -> None:
    frames = np.stack([X, Y, X])
    assert rank_windows(frames, X, 3) == [(0.0, 4.5, pytest.approx(2 / 3))]
    assert rank_windows(frames, X, 4) == rank_windows(frames, X, 3)
    assert [one[:2] for one in rank_windows(frames, X, 1)] == [(0.0, 1.5), (3.0, 4.5), (1.5, 3.0)], "of equal ones the first"


def test_of_equal_videos_the_first_is_better_and_a_hundred_are_named() -> None:
    corpus = make_corpus([str(place) for place in range(120)], [np.stack([X if place % 2 else Y]) for place in range(120)], None)
    (ranked,) = rank_videos(corpus, np.stack([X]))
    assert ranked.tolist() == [*range(1, 120, 2), *range(0, 80, 2)]


def test_each_query_has_its_own_ranking_beyond_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.value.zero_shot.QUERIES_AT_ONCE", 2)
    corpus = make_corpus("ab", [np.stack([X]), np.stack([Y])], None)
    queries = np.stack([X, Y, Y, X, Y])
    assert [int(row[0]) for row in rank_videos(corpus, queries)] == [0, 1, 1, 0, 1]


def test_frames_of_any_length_weigh_the_same_and_one_of_none_is_none() -> None:
    long = np.array([[100.0, 0.0], [0.0, 1.0]], np.float32)
    assert np.allclose(pool_frames(long), [0.5**0.5, 0.5**0.5])
    assert pool_frames(np.array([[0.0, 0.0], [0.0, 2.0]], np.float32)).tolist() == [0.0, 1.0]
    assert pool_frames(np.zeros((2, 2), np.float32)).tolist() == [0.0, 0.0]
    assert np.allclose(pool_sentences(np.array([[3.0, -1.0], [-5.0, 4.0]], np.float32)), [0.6, 0.8])
    only_said = make_corpus("ab", None, [np.stack([X]), np.stack([Y])])
    assert only_said.similarity(np.stack([Y])).tolist() == [[0.0, 1.0]]
    assert only_said.similarity_to(np.stack([Y, X]), 1).tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="moments need the frames"):
        find_moments(only_said, X, [0], None, 1)
    with pytest.raises(ValueError, match="needs frames or subtitles"):
        make_corpus("ab", None, None)


def test_the_right_video_has_up_to_a_hundred_windows() -> None:
    frames = np.stack([X] * 150)
    found = find_moments(make_corpus("ab", [frames, frames], None), X, [1, 0], 0, 10)
    assert found.vcmr is not None
    assert found.svmr is not None
    assert (len(found.svmr.videos), len(found.vcmr.videos)) == (100, 2)
    assert found.svmr.starts_s[:3] == (0.0, 1.5, 3.0)
    assert found.svmr.ends_s[0] == 15.0
    assert found.vcmr.videos == found.vr == ("b", "a")


def test_the_second_event_is_chosen_where_it_is_more_alike() -> None:
    assert decision_score(np.array([0.75, 0.25])) == -0.5
    assert decision_score(np.array([0.25, 0.25])) == 0.0


@pytest.mark.parametrize(
    ("scores", "answers", "value", "accuracy"),
    [
        ([0.0, 1.0], [0, 1], 0.5, 1.0),
        ([1.0, 0.0], [1, 0], 0.5, 1.0),
        ([0.0, 1.0], [1, 1], -0.5, 1.0),
        ([0.0, 1.0], [0, 0], 1.5, 1.0),
        ([0.0, 2.0], [1, 0], -0.5, 0.5),
        ([0.5, 0.5, 0.5], [1, 0, 0], 1.0, 2 / 3),
        ([0.0, 1.0, 1.0, 4.0], [0, 0, 1, 1], 0.5, 0.75),
    ],
)
def test_a_threshold_by_hand(scores: list[float], answers: list[int], value: float, accuracy: float) -> None:
    tuned = tune_threshold(scores, answers)
    assert (tuned.value, tuned.accuracy, tuned.samples) == (value, pytest.approx(accuracy), len(scores))


def test_between_two_floats_the_threshold_is_the_upper_one() -> None:
    for low in (1.0, 1.0 + 2**-52):
        above = float(np.nextafter(low, 2.0))
        assert tune_threshold([low, above], [0, 1]).value == above
