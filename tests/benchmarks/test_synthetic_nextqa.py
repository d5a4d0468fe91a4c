"""The questions and features that are made by rule: what they say, and what they do not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pytest
import synthetic_nextqa
from synthetic_nextqa import CLIPS, OPTIONS, SETS, THINGS, Result, make_set, missed, table, thing_vectors

from vip.tasks.nextqa.files import read_questions

VIDEOS = {"train": 120, "val": 120}


@pytest.fixture(scope="module", params=SETS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("sets") / request.param
    make_set(request.param, folder, videos=VIDEOS)
    return request.param, folder


def features(folder: Path, file: str = "app_mot.h5") -> dict[str, np.ndarray]:
    with h5py.File(folder / file) as opened:
        return dict(zip([str(name) for name in opened["ids"]], opened["feat"][:], strict=True))


def shown(clip: np.ndarray) -> int:
    """Return the thing whose vector is nearest."""
    return int(np.linalg.norm(thing_vectors(1) - clip, axis=1).argmin())


def test_files_are_read_as_published(made: tuple[str, Path]) -> None:
    _, folder = made
    questions = list(read_questions(folder / "train.csv", "nextqa-mc"))
    assert len(questions) == VIDEOS["train"]
    assert all(len(set(question.options)) == OPTIONS for question in questions)
    assert Counter(question.answer for question in questions) == dict.fromkeys(range(OPTIONS), VIDEOS["train"] // OPTIONS)
    assert {question.video for question in questions} < features(folder).keys()


def test_the_words_say_nothing(made: tuple[str, Path]) -> None:
    _, folder = made
    questions = list(read_questions(folder / "train.csv", "nextqa-mc"))
    right = Counter((question.text, question.options[int(question.answer)]) for question in questions)  # type: ignore[arg-type]
    assert len(set(right.values())) == 1
    assert len(right) == len(THINGS) * len({question.text for question in questions})


def test_the_video_tells_the_answer(made: tuple[str, Path]) -> None:
    kind, folder = made
    clips = features(folder)
    for question in read_questions(folder / "val.csv", "nextqa-mc"):
        things = [shown(clip) for clip in clips[question.video]]
        right = THINGS.index(question.options[int(question.answer)])  # type: ignore[arg-type]
        if kind == "order":
            assert right == things[0 if question.text.endswith("first") else -1]
        else:
            assert right in things
        assert {THINGS[thing] for thing in things} <= set(question.options)


def test_twins_have_the_same_clips_in_another_order(made: tuple[str, Path]) -> None:
    kind, folder = made
    clips = list(features(folder).values())
    assert all(len(video) == CLIPS for video in clips)
    for one, other in zip(clips[::2], clips[1::2], strict=True):
        has_same = np.array_equal(np.sort(one, axis=0), np.sort(other, axis=0))
        assert has_same is (kind != "seen")
        assert not np.array_equal(one, other)
        assert np.array_equal(one[::-1], other) is (kind == "order")


def test_maps_show_the_thing_in_a_part_of_each_clip(made: tuple[str, Path]) -> None:
    _, folder = made
    clips, maps = features(folder), features(folder, "maps.h5")
    name = next(iter(clips))
    for clip, places in zip(clips[name], maps[name], strict=True):
        distances = np.linalg.norm(places - clip[:, None, None], axis=0)
        assert (distances < 0.6 * np.linalg.norm(clip)).sum() == 16


def results(**accuracies: float) -> dict[tuple[str, str], Result]:
    return {(model.replace("_", "-"), "seen"): Result(accuracy, 400, 1.0) for model, accuracy in accuracies.items()}


def test_goals_that_are_missed_are_named() -> None:
    assert missed(results(blind_qa=0.22, evqa=0.18, hga=0.95)) == []
    assert missed(results(blind_qa=0.35, hga=0.85)) == ["seen: blind-qa has 35.0 %, not chance (20 %)", "seen: hga has 85.0 %, not 90 %"]


def test_temporal_models_are_held_against_evqa() -> None:
    order = {("evqa", "order"): Result(0.2, 400, 1.0), ("hga", "order"): Result(0.19, 400, 1.0), ("hcrn", "order"): Result(0.6, 400, 1.0)}
    assert missed(order) == ["order: hga has 19.0 %, not more than evqa (20.0 %)"]
    shuffled = {("hcrn", "shuffled"): Result(0.7, 400, 1.0), ("hga", "shuffled"): Result(0.55, 400, 1.0)}  # luck adds up to 7.5
    assert missed(shuffled) == ["shuffled: hcrn has 70.0 %, though nothing tells more than 50 %"]


def test_the_table_has_a_row_a_model() -> None:
    rows = table({("hga", "seen"): Result(0.975, 400, 7.6)}, ["seen"], ["hga"]).splitlines()
    assert rows == ["| model | seen | seconds |", "|---|---:|---:|", "| hga | 97.5 | 8 |"]
    assert synthetic_nextqa.MODELS[0] == "blind-qa"
