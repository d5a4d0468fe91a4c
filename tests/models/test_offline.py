"""The engine `offline` says what was measured, and nothing else."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vip.captioning.colours import TABLE
from vip.errors import BackendError
from vip.models.offline import OfflineEngine, caption, famous
from vip.protocols import KeyframeFacts, Request, ViewChange
from vip.records import NOT_DETERMINED, Detection, Famous, Quality

QUALITY = Quality(sharpness=300, brightness=0.45, contrast=0.2)
COLOURS = (("blue", 0.41), ("beige", 0.22), ("brown", 0.1))
FACTS = KeyframeFacts(1280, 720, 12.4, QUALITY, (), COLOURS, 0.3, "opencv", None)

# Every word that the engine may say beside colours and labels. None of them names an action, a mood, a place or a relation
# between people; a new word has to be added here on purpose.
WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about above according after all almost an and apart are areas as at back be blurred both bottom bright brightness by camera
        centre changed closer colour colours come compared consists contrast cover covers cut detail detector determined did dim down
        each eight far fifth fifths filling find five found four frame framing from gone half has have high in is it its keyframe large
        largest left like long looks low lower many may medium more most move moved muted near new nine no not nothing of on one or out
        overexposed part perhaps picture possibly practically previous probably quarter quarters recognised rest right same scene seems
        seven sharp shows since six slightly small smaller so soft some take than that the their them there third thirds this three to
        top turned ten two up upper upright very view vivid was which whole with without zoomed
        """,
    )
)
LABELS = ["person", "face", "dog", "bus", "cherry", "umbrella", "box"]
PLURALS = {"people", "faces", "dogs", "buses", "cherries", "umbrellas", "boxes"}

unit = st.floats(0, 1)
boxes = st.tuples(unit, unit, unit, unit).map(
    lambda box: (min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3]))
)
detections = st.builds(Detection, label=st.sampled_from(LABELS), score=unit, box_xyxy=boxes, source=st.just("test"))
changes = st.none() | st.builds(
    ViewChange,
    kind=st.sampled_from(["same view", "view moved", "new view"]),
    shift_xy=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    zoom=st.floats(0.3, 3.3),
)
colours = st.lists(
    st.tuples(st.sampled_from(sorted(TABLE)), st.floats(0.05, 1)), min_size=1, max_size=5, unique_by=lambda entry: entry[0]
).map(lambda entries: tuple(sorted(entries, key=lambda entry: -entry[1])))
any_facts = st.builds(
    KeyframeFacts,
    width_px=st.integers(1, 8000),
    height_px=st.integers(1, 8000),
    time_s=st.none() | st.floats(0, 1e5),
    quality=st.builds(Quality, sharpness=st.floats(0, 1e5), brightness=unit, contrast=st.floats(0, 0.5)),
    detections=st.lists(detections, max_size=14).map(tuple),
    colours=colours,
    colourfulness=unit,
    detector=st.sampled_from(["opencv", "other:detail"]),
    change=changes,
)


def found(*entries: tuple[str, float, tuple[float, float, float, float]]) -> KeyframeFacts:
    return replace(
        FACTS, detections=tuple(Detection(label=label, score=score, box_xyxy=box, source="test") for label, score, box in entries)
    )


def moved(x: float, y: float, zoom: float = 1.0) -> str:
    return caption(replace(FACTS, change=ViewChange("view moved", (x, y), zoom)))


LEFT, CENTRE, RIGHT = (0.0, 0.2, 0.3, 0.9), (0.35, 0.2, 0.65, 0.9), (0.7, 0.2, 1.0, 0.9)


# ---------------------------------------------------------------- what it never says


@settings(deadline=None)
@given(any_facts)
def test_offline_speaks_only_words_of_measurement(facts: KeyframeFacts) -> None:
    spoken = set(re.findall(r"[a-z]+", f"{caption(facts)} {famous(facts).focus}".lower()))
    colour_words = {word for name in TABLE for word in name.split()}
    assert spoken - WORDS - colour_words - set(LABELS) - PLURALS == set()


@settings(deadline=None)
@given(any_facts)
def test_offline_never_claims_an_action_a_mood_or_a_setting(facts: KeyframeFacts) -> None:
    said = famous(facts)
    assert said.action == said.mood == said.setting == NOT_DETERMINED == "not determined"


@settings(deadline=None)
@given(any_facts)
def test_sentences_are_whole(facts: KeyframeFacts) -> None:
    text = caption(facts)
    assert text[0].isupper()
    assert text.endswith(".")
    assert "  " not in text
    assert ".." not in text
    assert not re.search(r"[{}\[\]_]|None|nan", text)


def test_nobody_looked_so_nothing_is_said_about_people() -> None:
    text = caption(replace(FACTS, detector=None))
    assert not re.search("person|face|people|detector|found", text)


def test_nobody_found_is_said_of_the_detector_not_of_the_picture() -> None:
    text = caption(FACTS)
    assert re.search("detector (found no|did not find)|found by the detector", text)
    assert not re.search("there (is|are) (no|nobody)", text)


def test_a_detector_of_unknown_reach_found_nothing_instead_of_no_person() -> None:
    assert not re.search("person|face", caption(replace(FACTS, detector="other")))


def test_without_a_previous_keyframe_no_change_is_claimed() -> None:
    assert not re.search("previous|camera|view|scene", caption(FACTS))


# ---------------------------------------------------------------- what it does say


@pytest.mark.parametrize(("box", "words"), [(LEFT, "on the left"), (CENTRE, "in the centre"), (RIGHT, "on the right")])
def test_a_person_is_said_to_be_where_it_was_found(box: tuple[float, float, float, float], words: str) -> None:
    facts = found(("person", 0.9, box))
    assert f"a person {words}" in caption(facts)
    assert famous(facts).focus.startswith(f"a person {words}")
    assert famous(facts).objects == ("person",)


@pytest.mark.parametrize(
    ("box", "words"),
    [
        ((0.0, 0.0, 1.0, 0.9), "filling most of the frame"),
        ((0.0, 0.0, 0.5, 0.5), "large in the frame"),
        ((0.0, 0.0, 0.1, 0.1), "at the upper left, small in the frame"),
        ((0.9, 0.9, 1.0, 1.0), "at the lower right, small in the frame"),
        ((0.4, 0.0, 0.6, 0.2), "near the top"),
    ],
)
def test_size_and_height_are_said(box: tuple[float, float, float, float], words: str) -> None:
    assert words in famous(found(("face", 0.95, box))).focus


@pytest.mark.parametrize(("score", "words"), [(0.95, "a person on"), (0.6, "probably a person"), (0.3, "possibly a person")])
def test_doubt_is_said(score: float, words: str) -> None:
    facts = found(("person", score, LEFT))
    assert famous(facts).focus.startswith(words)
    assert words in caption(facts)
    assert famous(facts).objects == (("possibly person",) if score < 0.5 else ("person",))


def test_the_face_of_a_person_is_not_a_second_thing() -> None:
    text = caption(found(("person", 0.9, CENTRE), ("face", 0.9, (0.45, 0.25, 0.55, 0.35))))
    assert "with the face in view" in text
    assert "a face" not in text


def test_two_faces_in_the_boxes_of_two_people_belong_to_one_each() -> None:
    people = ("person", 0.9, (0.1, 0.1, 0.6, 1.0)), ("person", 0.9, (0.3, 0.1, 0.9, 1.0))
    faces = ("face", 0.9, (0.35, 0.2, 0.4, 0.3)), ("face", 0.9, (0.5, 0.2, 0.55, 0.3))  # in both boxes
    assert "with their faces in view" in caption(found(*people, *faces))
    assert "one of them with the face in view" in caption(found(*people, faces[0]))


def test_of_two_faces_in_the_box_of_one_person_one_is_of_somebody_else() -> None:
    facts = found(("person", 0.9, CENTRE), ("face", 0.9, (0.4, 0.25, 0.45, 0.35)), ("face", 0.9, (0.55, 0.25, 0.6, 0.35)))
    assert famous(facts).objects == ("person", "face")


def test_a_face_beside_a_person_is_a_second_thing() -> None:
    facts = found(("person", 0.9, LEFT), ("face", 0.9, (0.8, 0.1, 0.9, 0.2)))
    assert "a face at the upper right" in caption(facts)
    assert famous(facts).objects == ("person", "face")


def test_several_are_counted_and_placed() -> None:
    facts = found(("person", 0.9, LEFT), ("person", 0.95, CENTRE), ("person", 0.9, (0.36, 0.2, 0.66, 0.9)))
    assert "three people (one on the left and two in the centre)" in caption(facts)


@pytest.mark.parametrize(
    ("noun", "words"), [("bus", "two buses"), ("cherry", "two cherries"), ("dog", "two dogs"), ("person", "two people")]
)
def test_plurals_are_english(noun: str, words: str) -> None:
    assert words in caption(found((noun, 0.9, LEFT), (noun, 0.9, RIGHT)))


def test_an_umbrella_has_the_right_article() -> None:
    assert "an umbrella" in caption(found(("umbrella", 0.9, LEFT)))


@pytest.mark.parametrize(
    ("brightness", "contrast", "word"),
    [(0.05, 0.2, "dark"), (0.25, 0.2, "dim"), (0.7, 0.2, "bright"), (0.85, 0.3, "very bright"), (0.9, 0.05, "overexposed")],
)
def test_light_is_said(brightness: float, contrast: float, word: str) -> None:
    assert word in caption(replace(FACTS, quality=Quality(sharpness=300, brightness=brightness, contrast=contrast)))


@pytest.mark.parametrize(("sharpness", "words"), [(10, "perhaps blurred"), (50, "slightly soft"), (300, " sharp"), (3000, "very sharp")])
def test_sharpness_is_said(sharpness: float, words: str) -> None:
    assert words in caption(replace(FACTS, quality=Quality(sharpness=sharpness, brightness=0.5, contrast=0.2)))


@pytest.mark.parametrize(("contrast", "words"), [(0.05, "low contrast"), (0.35, "high contrast")])
def test_contrast_is_said(contrast: float, words: str) -> None:
    assert words in caption(replace(FACTS, quality=Quality(sharpness=300, brightness=0.5, contrast=contrast)))


def test_colours_are_said_from_the_largest_on() -> None:
    text = caption(FACTS).lower()
    assert 0 <= text.index("blue") < text.index("beige") < text.index("brown")


def test_a_picture_without_colour_is_said_to_be_one() -> None:
    assert "without colour" in caption(replace(FACTS, colours=(("grey", 0.5), ("black", 0.4)), colourfulness=0.01)).lower()


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [(0.2, 0.0, "to the left"), (-0.2, 0.0, "to the right"), (0.0, 0.2, "up"), (0.0, -0.2, "down"), (-0.04, 0.0, "slightly to the right")],
)
def test_the_camera_goes_against_its_content(x: float, y: float, words: str) -> None:
    assert re.search(f"camera seems to have moved {words}", moved(x, y), re.IGNORECASE)


def test_larger_content_is_a_zoom_in_or_a_step_closer() -> None:
    assert "zoomed in or come closer" in moved(0, 0, 1.3)
    assert "zoomed out or gone back" in moved(0, 0, 0.7)


def test_a_same_and_a_new_view_are_told_apart() -> None:
    same, new = (caption(replace(FACTS, change=ViewChange(kind))) for kind in ("same view", "new view"))
    assert re.search("same|not changed", same)
    assert "nothing" in new.lower()
    assert "recognised" in new


def test_pictures_of_no_video_are_compared_with_the_previous_picture() -> None:
    text = caption(replace(FACTS, time_s=None, change=ViewChange("same view")))
    assert "previous picture" in text
    assert "keyframe" not in text


def test_twelve_keyframes_of_one_scene_are_not_twelve_forms() -> None:
    texts = {caption(replace(FACTS, time_s=float(second), change=ViewChange("same view"))) for second in range(12)}
    assert len(texts) >= 8


# ---------------------------------------------------------------- as an engine


def test_the_stages_give_prose_and_famous() -> None:
    engine = OfflineEngine(None)
    prose = asyncio.run(engine.generate(Request("describe", "ignored", FACTS)))
    structure = asyncio.run(engine.generate(Request("structure", "ignored", FACTS, schema=Famous.model_json_schema())))
    assert prose.text == caption(FACTS)
    assert Famous.model_validate_json(structure.text) == famous(FACTS)
    assert prose.model == engine.name == "offline"
    assert prose.tokens_in is None


def test_offline_has_no_models_to_choose_from() -> None:
    with pytest.raises(BackendError, match="no detail"):
        OfflineEngine("large")
