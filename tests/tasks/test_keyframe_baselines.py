"""Baselines: the same answers each time, from what is given or from other videos."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.described import described_folder
from tests.tasks.scoring import sample
from tests.tasks.test_keyframe_task import samples, wanted
from vip.errors import InputError
from vip.records import Famous
from vip.tasks.infilling import VideoInfilling
from vip.tasks.keyframe_baselines import BASELINES
from vip.tasks.prediction import VideoPrediction
from vip.tasks.records import Blank, DescriptionText, KeyframeDescription, Sample
from vip.tasks.records import Prediction as Answer


def texts(row: Answer) -> list[str]:
    assert row.status == "ok"
    assert isinstance(row.value, tuple)
    return [one.dense_caption or "" for one in row.value if isinstance(one, DescriptionText)]


def test_copy_nearest_takes_the_keyframe_on_the_nearer_side(tmp_path: Path) -> None:
    made = samples(VideoInfilling(), described_folder(tmp_path / "a", 5), representation="dense")
    (row,) = BASELINES["copy-nearest"](lambda: iter(made), 0)
    assert texts(row) == ["A dog 0 in a.", "A dog 0 in a.", "A ball 4 in a."]
    made = samples(VideoPrediction(), described_folder(tmp_path / "b", 5), context=2, representation="dense")
    (row,) = BASELINES["copy-nearest"](lambda: iter(made), 0)
    assert texts(row) == ["A frisbee 1 in b."] * 3


@pytest.mark.parametrize(
    ("targets", "copied"), [(1, ["dog 0"]), (2, ["dog 0", "man 3"]), (3, ["dog 0"] * 2 + ["ball 4"]), (4, ["dog 0"] * 2 + ["river 5"] * 2)]
)
def test_of_two_keyframes_as_near_the_one_before_is_copied(targets: int, copied: list[str], tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "a", targets + 2)
    (row,) = BASELINES["copy-nearest"](lambda: iter(samples(VideoInfilling(), folder, targets=targets, representation="dense")), 0)
    assert texts(row) == [f"A {word} in a." for word in copied]


def test_frequent_words_are_those_of_the_context(tmp_path: Path) -> None:
    made = samples(VideoInfilling(), described_folder(tmp_path / "a", 5), representation="dense")
    (row,) = BASELINES["frequent-words"](lambda: iter(made), 0)
    assert texts(row) == ["a in dog 0 ball"] * 3  # five words a text; "a" occurs four times


@pytest.mark.parametrize("name", ["random-keyframe", "nearest-text"])
def test_others_answer_from_other_videos_and_the_same_each_time(name: str, tmp_path: Path) -> None:
    folders = [described_folder(tmp_path / video, 8, first_word=3 * number) for number, video in enumerate("abc")]
    made = samples(VideoInfilling(), *folders, representation="dense")
    first, again = ([texts(row) for row in BASELINES[name](lambda: iter(made), 5)] for _ in range(2))
    assert first == again
    assert all(f"in {sample.video}." not in text for sample, answer in zip(made, first, strict=True) for text in answer)
    with pytest.raises(InputError, match="All samples are of one video"):
        list(BASELINES[name](lambda: iter(made[:2]), 5))


def test_nearest_text_finds_the_sample_that_reads_the_same(tmp_path: Path) -> None:
    mine, twin, other = (described_folder(tmp_path / name, 5, first_word=word) for name, word in (("a", 0), ("b", 0), ("c", 7)))
    made = samples(VideoInfilling(), mine, twin, other)
    rows = list(BASELINES["nearest-text"](lambda: iter(made), 0))
    assert made[1].reference is not None
    assert rows[0].value == made[1].reference.values[0]
    assert wanted(made[1]) == ["", "", ""]


def test_another_seed_draws_other_keyframes(tmp_path: Path) -> None:
    folders = [described_folder(tmp_path / video, 9, first_word=3 * number) for number, video in enumerate("abc")]
    made = samples(VideoPrediction(), *folders, representation="dense")
    drawn = {tuple(str(row.value) for row in BASELINES["random-keyframe"](lambda: iter(made), seed)) for seed in range(5)}
    assert len(drawn) == 5


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_samples_of_files_whose_names_are_not_utf8_are_answered(name: str) -> None:
    odd = [sample("0", "a dog", video=video) for video in ("\udcff", "\ud800")]
    assert [row.sample_id for row in BASELINES[name](lambda: iter(odd), 0)] == [one.id for one in odd]


def dense(video: str, words: str, hidden: str = "hidden") -> Sample:
    return sample("0", f"{hidden} of {video}", video=video).model_copy(
        update={"context": (KeyframeDescription(keyframe_id="k", time_s=0.0, dense_caption=words),) * 2}
    )


def test_where_no_video_has_a_word_in_common_another_one_answers_all_the_same() -> None:
    made = [dense("a", "dog"), dense("b", "river"), dense("c", "lamp")]
    for row, one in zip(BASELINES["nearest-text"](lambda: iter(made), 0), made, strict=True):
        (text,) = texts(row)
        assert text != f"hidden of {one.video}"


def test_samples_without_a_reference_are_answered_and_answer_nothing() -> None:
    twin = dense("b", "dog runs").model_copy(update={"reference": None})
    made = [dense("a", "dog runs"), twin, dense("c", "lamp")]
    assert [texts(row)[0] for row in BASELINES["nearest-text"](lambda: iter(made), 0)] == ["hidden of c", "hidden of a", "hidden of a"]
    with pytest.raises(InputError, match="nearest-text needs samples with references"):
        list(BASELINES["nearest-text"](lambda: iter([twin]), 0))


def test_frequent_words_of_famous_are_those_of_each_field(tmp_path: Path) -> None:
    made = samples(VideoPrediction(), described_folder(tmp_path / "a", 3), context=2, targets=1)
    (row,) = BASELINES["frequent-words"](lambda: iter(made), 0)
    assert isinstance(row.value, tuple)
    (one,) = row.value
    assert isinstance(one, DescriptionText)
    assert one.famous == Famous(focus="a dog 0", action="it moves", mood="calm", objects=("grass", "dog", "0"), setting="outside")


@pytest.mark.parametrize("name", ["copy-nearest", "frequent-words", "random-keyframe"])
def test_samples_of_another_task_are_refused(name: str) -> None:
    blanks = [
        Sample(id=f"b{video}", task="fiber", task_version=1, video=video, ask=Blank(text="There is _____.")).model_copy(
            update={"context": dense(video, "dog").context}
        )
        for video in "ab"
    ]
    with pytest.raises(InputError, match="ba asks for no keyframes; this baseline answers infilling and prediction"):
        list(BASELINES[name](lambda: iter(blanks), 0))


@pytest.mark.parametrize("name", ["copy-nearest", "frequent-words", "nearest-text"])
@pytest.mark.parametrize("context", [(), (KeyframeDescription(keyframe_id="a", time_s=0.0),)])
def test_samples_that_give_no_description_are_refused(name: str, context: tuple[KeyframeDescription, ...]) -> None:
    emptied = [dense(video, "a red ball").model_copy(update={"context": context}) for video in "ab"]
    with pytest.raises(InputError, match="gives no described keyframe"):
        list(BASELINES[name](lambda: iter(emptied), 0))


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_text_has_most_of_the_same_words_whatever_its_length_and_capitals(seed: int) -> None:
    words = {"b": "A DOG runs, runs, in the park!", "c": "dog dog dog dog dog", "d": "lamp on a table " * 20, "e": "RIVER BOAT"}
    made = [dense(video, text) for video, text in words.items()]
    near = {"the dog runs in a park": "b", "one dog": "c", "a table": "d", "boat": "e"}
    for text, video in near.items():
        row = next(BASELINES["nearest-text"](lambda text=text: iter([dense("a", text), *made]), seed))  # type: ignore[misc]
        assert texts(row) == [f"hidden of {video}"]
