"""The text of a frame that an embedder reads: what, where, how sure; the same for any order. And who counts as people."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.extraction.object_text import has_people, objects_in, place_of, text_of
from vip.records import Detection

LEFT, CENTRE, RIGHT = (0.0, 0.4, 0.1, 0.6), (0.45, 0.45, 0.55, 0.55), (0.9, 0.4, 1.0, 0.6)
TOP_LEFT = (0.0, 0.0, 0.2, 0.2)
PLACE = r"(at the (?:top|bottom)(?: left| right)?|at the left|at the right|in the centre)"
PHRASE = re.compile(rf"(?:(\d+) )?([a-z][a-z ]*?) {PLACE} \((\d+)%\)")
Box = tuple[float, float, float, float]


def thing(label: str, box: Box = CENTRE, score: float = 0.5, kind: Literal["object", "region"] = "object") -> Detection:
    return Detection(label=label, score=score, box_xyxy=box, source="test", kind=kind)


def region(phrase: str, box: Box = CENTRE, score: float = 0.5) -> Detection:
    return thing(phrase, box, score, kind="region")


def phrases(text: str) -> list[tuple[int, str, str, int]]:
    """Count, label, place and score of each object in the text."""
    return [(int(count or 1), label, place, int(score)) for count, label, place, score in PHRASE.findall(text)]


# ---------------------------------------------------------------- where


NINTHS = ["at the top left", "at the top", "at the top right"]
NINTHS += ["at the left", "in the centre", "at the right"]
NINTHS += ["at the bottom left", "at the bottom", "at the bottom right"]


@pytest.mark.parametrize(("ninth", "words"), list(enumerate(NINTHS)))
def test_the_middle_of_the_box_says_in_which_ninth_it_lies(ninth: int, words: str) -> None:
    middle_x, middle_y = (ninth % 3 + 0.5) / 3, (ninth // 3 + 0.5) / 3
    for half in (0.0, 0.05, 0.16):
        assert place_of(thing("cup", (middle_x - half, middle_y - half, middle_x + half, middle_y + half))) == words


@pytest.mark.parametrize(
    ("box", "where"),
    [
        ((0, 0, 1, 1), "in the centre"),
        ((0, 0.3, 0.6, 0.7), "at the left"),
        ((0, 0.3, 0.7, 0.7), "in the centre"),
        ((0, 0, 1, 0.2), "at the top"),
        ((0, 0.8, 1, 1), "at the bottom"),
        ((0, 0, 0, 0), "at the top left"),
        ((1, 1, 1, 1), "at the bottom right"),
    ],
)
def test_large_boxes_and_those_at_the_edges_have_a_place_too(box: Box, where: str) -> None:
    assert place_of(thing("cup", box)) == where


# ---------------------------------------------------------------- what, and how sure


def test_objects_are_a_sentence_and_each_region_is_another() -> None:
    found = [
        region("a dog that leaps", LEFT, 0.7),
        thing("frisbee", TOP_LEFT, 0.8),
        thing("person", CENTRE, 0.9),
        region("two people on a lawn", CENTRE, 0.6),
        thing("person", CENTRE, 0.5),
    ]
    assert text_of(found) == (
        "2 person in the centre (90%), frisbee at the top left (80%). A dog that leaps at the left (70%)."
        " Two people on a lawn in the centre (60%)."
    )


def test_regions_alone_are_sentences_without_an_empty_one_before_them() -> None:
    assert text_of([region("a red Car", RIGHT)]) == "A red Car at the right (50%)."


def test_where_nothing_is_found_the_text_says_so() -> None:
    assert text_of([]) == "Nothing."


def test_things_are_counted_by_name_and_place() -> None:
    found = [thing("face", LEFT, 0.9), thing("face", LEFT, 0.4), thing("face", RIGHT, 0.8), thing("cup", LEFT, 0.7)]
    assert text_of(found) == "2 face at the left (90%), face at the right (80%), cup at the left (70%)."


def test_the_surest_come_first_and_of_equally_sure_ones_the_first_by_name() -> None:
    sure = [thing("zebra", score=0.93), thing("ant", score=0.92), thing("cup", score=0.3), thing("bee", score=0.3)]
    assert [label for _, label, _, _ in phrases(text_of(sure))] == ["zebra", "ant", "bee", "cup"]


@pytest.mark.parametrize(("score", "shown"), [(0.0, 0), (0.04, 0), (0.06, 10), (0.72, 70), (0.78, 80), (0.96, 100), (1.0, 100)])
def test_scores_are_rounded_to_tens(score: float, shown: int) -> None:
    assert text_of([thing("cup", score=score)]) == f"cup in the centre ({shown}%)."


def test_scores_that_differ_by_little_give_the_same_text() -> None:
    assert text_of([thing("cup", score=0.81)]) == text_of([thing("cup", score=0.79)]) != text_of([thing("cup", score=0.69)])


boxes = st.tuples(*[st.floats(0, 1)] * 4).map(lambda it: (min(it[0], it[2]), min(it[1], it[3]), max(it[0], it[2]), max(it[1], it[3])))
labels = st.sampled_from(["face", "person", "dog", "traffic light"])
things = st.builds(thing, labels, boxes, st.floats(0, 1))
regions = st.builds(region, st.sampled_from(["a dog that leaps", "an old man", "the sea"]), boxes, st.floats(0, 1))
founds = st.lists(st.one_of(things, regions), max_size=8)


@pytest.mark.slow
@given(founds, st.randoms())
def test_the_order_of_the_detections_does_not_matter(found: list[Detection], chance: object) -> None:
    mixed = list(found)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert text_of(mixed) == text_of(found)
    assert has_people(mixed) == has_people(found)
    assert objects_in(mixed) == objects_in(found)


@pytest.mark.slow
@given(st.lists(things, min_size=1, max_size=8))
def test_every_object_is_told_once_with_its_place_and_the_surest_first(found: list[Detection]) -> None:
    told = phrases(text_of(found))
    assert sum(count for count, _, _, _ in told) == len(found)
    assert {(label, place) for _, label, place, _ in told} == {(one.label, place_of(one)) for one in found}
    assert len({(label, place) for _, label, place, _ in told}) == len(told)
    scores = [score for _, _, _, score in told]
    assert scores == sorted(scores, reverse=True)
    assert all(score % 10 == 0 for score in scores)
    assert text_of(found).count(".") == 1, "all objects are one sentence"


# ---------------------------------------------------------------- people, and how many objects


PEOPLE = ["person", "people", "human", "face", "man", "men", "woman", "women", "boy", "boys", "girl", "girls"]
PEOPLE += ["child", "children", "baby", "player", "players", "crowd", "pedestrian"]


@pytest.mark.parametrize(
    "label",
    [*PEOPLE, "Person", "FACE"],
)
def test_people_count_under_any_of_their_names(label: str) -> None:
    assert has_people([thing("dog"), thing(label)])


@pytest.mark.parametrize("phrase", ["a man with a red hat", "two Women on a bench", "the face of a clock"])
def test_people_count_inside_phrases(phrase: str) -> None:
    assert has_people([thing("dog"), region(phrase)])


def test_animals_and_things_are_not_people() -> None:
    assert not has_people([thing("dog"), thing("cup"), thing("personal computer"), region("a manhole in a childish drawing")])
    assert not has_people([])


@pytest.mark.parametrize(("things_found", "regions_found", "count"), [(0, 0, 0), (3, 0, 3), (0, 2, 2), (3, 2, 3), (1, 4, 4)])
def test_an_object_that_is_also_described_is_not_counted_twice(things_found: int, regions_found: int, count: int) -> None:
    assert objects_in([thing("cup")] * things_found + [region("a cup")] * regions_found) == count


def test_of_like_objects_in_one_place_the_surest_speaks_for_all() -> None:
    found = [thing("cup", score=0.2), thing("cup", score=0.9), thing("bowl", score=0.6)]
    assert text_of(found) == "2 cup in the centre (90%), bowl in the centre (60%)."
