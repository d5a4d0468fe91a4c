"""Names of the same thing, as descriptions and detectors use them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.captioning.same_thing import is_kind_of, main_noun, same_thing


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("dog", "dog"),
        ("a brown dog", "dog"),
        ("Two Dogs", "dog"),
        ("dog in the snow", "dog"),
        ("glass", "wine glass"),
        ("glass of water", "glass"),
        ("group of children", "person"),
        ("woman in a blue jacket", "person"),
        ("two men", "person"),
        ("old man with glasses", "man"),
        ("people", "person"),
        ("girl", "face"),
        ("phone", "cell phone"),
        ("smartphone", "cell phone"),
        ("couch", "sofa"),
        ("TV", "television"),
        ("bicycles", "bike"),
        ("buses", "bus"),
        ("bushes", "bush"),
        ("knives", "knife"),
        ("boxes", "box"),
        ("strawberries", "strawberry"),
        ("flies", "fly"),
        ("pies", "pie"),
        ("benches", "bench"),
        ("dresses", "dress"),
        ("octopuses", "octopus"),
        ("hot dogs", "hot dog"),
    ],
)
def test_names_of_the_same_thing_are_known(name: str, label: str) -> None:
    assert same_thing(name, label)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("dog", "cat"),
        ("dog", "hot dog"),
        ("teddy bear", "bear"),
        ("dog house", "dog"),
        ("picture of a dog", "dog"),
        ("magnifying glass", "wine glass"),
        ("glasses", "wine glass"),
        ("face", "person"),
        ("dog", "face"),
        ("woman", "dog"),
        ("bus", "bush"),
        ("dog in the snow", "snow"),
        ("", "dog"),
        ("the", "a"),
        ("7", "dog"),
    ],
)
def test_names_of_other_things_are_kept_apart(name: str, label: str) -> None:
    assert not same_thing(name, label)


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        ("two brown dogs in the snow", "dog"),
        ("a young woman", "person"),
        ("wearing a hat", "hat"),
        ("tennis", "tennis"),
        ("42", "42"),
        ("", ""),
    ],
)
def test_the_main_noun_stands_for_the_name(name: str, noun: str) -> None:
    assert main_noun(name) == noun


@given(st.text(max_size=40), st.sampled_from(["dog", "two children", "glass of water"]))
def test_what_comes_after_the_thing_does_not_change_it(rest: str, name: str) -> None:
    assert same_thing(f"{name} with {rest}", name)
    assert main_noun(f"{name} in {rest}") == main_noun(name)


@pytest.mark.parametrize(
    ("name", "kind"), [("red car", "car"), ("cars", "car"), ("woman", "person"), ("women", "woman"), ("face", "person"), ("couch", "sofa")]
)
def test_a_narrow_name_is_a_kind_of_a_wide_one(name: str, kind: str) -> None:
    assert is_kind_of(name, kind)


@pytest.mark.parametrize(
    ("name", "kind"), [("car", "red car"), ("person", "woman"), ("girl", "woman"), ("face", "woman"), ("hot dog", "dog"), ("", "dog")]
)
def test_a_wide_name_and_another_one_are_not(name: str, kind: str) -> None:
    assert not is_kind_of(name, kind)
