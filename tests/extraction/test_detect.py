"""The words that an embedder reads: the same for any order, with positions in thirds; and who counts as people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.extraction.detect import PEOPLE, has_people, position_of, text_of
from vip.records import Detection


def thing(label: str, left: float = 0.0, width: float = 0.1) -> Detection:
    return Detection(label=label, score=0.5, box_xyxy=(left, 0.2, left + width, 0.6), source="test")


@pytest.mark.parametrize(
    ("left", "width", "where"),
    [
        (0, 0.1, "left"),
        (0.2, 0.2, "left"),
        (0.3, 0.2, "centre"),
        (0, 1, "centre"),
        (0.55, 0.2, "centre"),
        (0.6, 0.2, "right"),
        (1, 0, "right"),
    ],
)
def test_the_middle_of_the_box_says_in_which_third_it_lies(left: float, width: float, where: str) -> None:
    assert position_of(thing("cup", left, width)) == where


def test_things_are_counted_by_name_and_place() -> None:
    found = [thing("person", 0.5), thing("face", 0.1), thing("face", 0.05), thing("face", 0.8)]
    assert text_of(found) == "2 face face-left, 1 face face-right, 1 person person-centre"


def test_where_nothing_is_found_the_text_says_so() -> None:
    assert text_of([]) == "nothing"


things = st.builds(thing, st.sampled_from(["face", "person", "dog", "traffic light"]), st.floats(0, 0.9), st.floats(0, 0.1))


@given(st.lists(things, max_size=8), st.randoms())
def test_the_order_of_the_detections_does_not_matter(found: list[Detection], chance: object) -> None:
    mixed = list(found)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert text_of(mixed) == text_of(found)
    assert has_people(mixed) == has_people(found)


@given(st.lists(things, max_size=8))
def test_the_counts_add_up(found: list[Detection]) -> None:
    counted = [int(part.split()[0]) for part in text_of(found).split(", ") if part != "nothing"]
    assert sum(counted) == len(found)


@pytest.mark.parametrize("label", [*sorted(PEOPLE), "Person", "FACE"])
def test_people_count_under_any_of_their_names(label: str) -> None:
    assert has_people([thing("dog"), thing(label)])


def test_animals_and_things_are_not_people() -> None:
    assert not has_people([thing("dog"), thing("cup"), thing("personal computer")])
    assert not has_people([])
