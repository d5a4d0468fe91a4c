"""The engine `offline` says what was measured, and nothing else."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vip.captioning.colours import TABLE
from vip.errors import BackendError, EngineError
from vip.models.offline import MOST_QUOTED, OfflineEngine, caption, famous, rich
from vip.protocols import KeyframeFacts, Request, ViewChange
from vip.records import NOT_DETERMINED, Detection, Famous, ObjectColour, ObjectCount, Quality

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


def test_a_same_view_that_shows_something_else_is_not_called_unchanged() -> None:
    change = ViewChange("same view", content_changed=True)
    texts = {caption(replace(FACTS, time_s=float(second), change=change)) for second in range(12)}
    assert all(re.search("has changed|part of the picture has|something else in it", text) for text in texts)


def test_pictures_of_no_video_are_compared_with_the_previous_picture() -> None:
    text = caption(replace(FACTS, time_s=None, change=ViewChange("same view")))
    assert "previous picture" in text
    assert "keyframe" not in text


def test_twelve_keyframes_of_one_scene_are_not_twelve_forms() -> None:
    texts = {caption(replace(FACTS, time_s=float(second), change=ViewChange("same view"))) for second in range(12)}
    assert len(texts) >= 8


@pytest.mark.parametrize(
    ("score", "objects"), [(0.8, ("dog",)), (0.79, ("dog",)), (0.5, ("dog",)), (0.49, ("possibly dog",)), (0.0, ("possibly dog",))]
)
def test_what_is_possibly_there_is_not_counted(score: float, objects: tuple[str, ...]) -> None:
    facts = found(("dog", score, LEFT))
    words = {0.8: "a dog", 0.79: "probably a dog", 0.5: "probably a dog"}.get(score, "possibly a dog")
    assert famous(facts).focus == f"{words} on the left, large in the frame"
    assert famous(facts).objects == objects
    assert rich(facts).counts == (() if score < 0.5 else (ObjectCount(object="dog", count=1),))


@pytest.mark.parametrize(("person", "face", "is_theirs"), [(0.5, 0.5, True), (0.49, 0.9, False), (0.9, 0.49, False)])
def test_only_a_likely_face_goes_with_a_likely_person(person: float, face: float, is_theirs: bool) -> None:
    facts = found(("person", person, CENTRE), ("face", face, (0.45, 0.25, 0.55, 0.35)))
    assert ("with the face in view" in caption(facts)) == is_theirs
    assert len(famous(facts).objects) == (1 if is_theirs else 2)


@pytest.mark.parametrize("box", [(0.65, 0.3, 0.75, 0.4), (0.45, 0.05, 0.55, 0.15), (0.45, 0.9, 0.55, 1.0), (0.3, 0.1, 0.8, 1.0)])
def test_a_face_whose_middle_lies_beside_the_person_or_that_is_larger_is_of_somebody_else(box: tuple[float, float, float, float]) -> None:
    assert famous(found(("person", 0.9, CENTRE), ("face", 0.9, box))).objects[0] in ("person", "face")
    assert len(famous(found(("person", 0.9, CENTRE), ("face", 0.9, box))).objects) == 2


@pytest.mark.parametrize(
    ("box", "words"),
    [
        ((0.0, 0.0, 1.0, 0.5), "near the top, filling most of the frame"),
        ((0.0, 0.0, 1.0, 0.49), "near the top, large in the frame"),
        ((0.25, 0.4, 0.75, 0.71), "in the centre, large in the frame"),
        ((0.25, 0.4, 0.75, 0.69), "in the centre"),
        ((0.45, 0.4, 0.55, 0.69), "in the centre, small in the frame"),
        ((0.4, 0.4, 0.6, 0.6), "in the centre"),
        ((0.3, 0.75, 0.5, 0.95), "near the bottom"),
        ((0.0, 0.75, 0.2, 0.95), "at the lower left"),
        ((0.8, 0.0, 1.0, 0.2), "at the upper right"),
        ((0.8, 0.0, 1.0, 0.51), "on the right"),  # so tall that its height says nothing
    ],
)
def test_a_place_has_a_side_and_a_height_and_a_size_only_where_it_is_unusual(box: tuple[float, float, float, float], words: str) -> None:
    assert famous(found(("dog", 0.9, box))).focus == f"a dog {words}"


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        ((LEFT, LEFT), "two dogs (both on the left)"),
        ((CENTRE, CENTRE, CENTRE), "three dogs (all in the centre)"),
        ((RIGHT, LEFT), "two dogs (one on the left and one on the right)"),
        ((RIGHT, CENTRE, LEFT, RIGHT), "four dogs (one on the left, one in the centre and two on the right)"),
        ((LEFT,) * 10, "ten dogs (all on the left)"),
        ((LEFT,) * 11, "11 dogs (all on the left)"),
    ],
)
def test_several_are_placed_side_by_side(boxes: tuple[tuple[float, float, float, float], ...], words: str) -> None:
    assert famous(found(*(("dog", 0.9, box) for box in boxes))).focus == words


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("church", "churches"), ("dish", "dishes"), ("glass", "glasses"), ("boy", "boys"), ("city", "cities"), ("box", "boxes")],
)
def test_more_plurals_are_english(noun: str, plural: str) -> None:
    assert famous(found((noun, 0.9, LEFT), (noun, 0.9, LEFT))).focus.startswith(f"two {plural} (")


def test_the_surest_come_first_then_the_largest_and_regions_are_no_objects() -> None:
    small, large = (0.0, 0.2, 0.1, 0.9), (0.4, 0.2, 0.9, 0.9)
    facts = found(("ant", 0.6, large), ("dog", 0.9, small), ("cat", 0.85, large), ("bus", 0.3, large))
    region = Detection(label="a man in a red coat", score=0.99, box_xyxy=large, source="test", kind="region")
    facts = replace(facts, detections=(region, *facts.detections))
    assert famous(facts).objects == ("cat", "dog", "ant", "possibly bus")
    assert [one.object for one in rich(facts).counts] == ["cat", "dog", "ant"]
    assert "red coat" not in caption(facts)


def test_what_has_a_comma_in_it_is_set_apart_by_one() -> None:
    plain, large = (0.4, 0.4, 0.6, 0.6), (0.35, 0.2, 0.65, 0.9)
    assert "a dog in the centre and probably a cat in the centre" in caption(found(("dog", 0.9, plain), ("cat", 0.6, plain)))
    assert "a dog in the centre, large in the frame, and probably a cat in the centre" in caption(
        found(("dog", 0.9, large), ("cat", 0.6, plain))
    )


def test_sure_and_likely_ones_of_a_kind_are_one_count_and_one_object() -> None:
    facts = found(("dog", 0.9, LEFT), ("dog", 0.6, RIGHT), ("dog", 0.9, CENTRE), ("dog", 0.1, CENTRE))
    assert rich(facts).counts == (ObjectCount(object="dog", count=3),)
    assert famous(facts).objects == ("dog", "possibly dog")


def test_only_large_colours_are_those_of_the_picture() -> None:
    said = rich(replace(FACTS, colours=(("blue", 0.41), ("beige", 0.15), ("brown", 0.14)), text=("Exit", "42")))
    assert said.colours == tuple(ObjectColour(object="whole picture", colour=name) for name in ("blue", "beige"))
    assert said.visible_text == ("Exit", "42")
    assert (said.relations, said.characters, said.style) == ((), (), NOT_DETERMINED)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"words": "we go"}, "The subtitles around this keyframe read: “we go”"),
        ({"speech": "we go"}, "The speech around this keyframe was transcribed as: “we go”"),
        ({"text": ("Exit", "42")}, "The text in the picture reads: “Exit · 42”"),
        ({"words": "“we” go"}, 'The subtitles around this keyframe read: “"we" go”'),
        ({"words": "x" * MOST_QUOTED}, f"The subtitles around this keyframe read: “{'x' * MOST_QUOTED}”"),
        ({"words": "go " * 200}, f"The subtitles around this keyframe read: “{'go ' * 79}go …”"),
    ],
)
def test_what_was_read_or_heard_is_quoted_with_how_it_was_had(given: dict[str, object], sentence: str) -> None:
    assert caption(replace(FACTS, **given)) == f"{caption(FACTS)} {sentence}"  # type: ignore[arg-type]


def test_text_comes_before_subtitles_and_these_before_speech() -> None:
    text = caption(replace(FACTS, text=("A",), words="B", speech="C"))
    assert re.findall("“(.)”", text) == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("x", "y", "zoom", "words"),
    [
        (0.02, 0.0, 1.0, "moved slightly to the left"),
        (0.019, 0.019, 1.0, "turned or moved slightly"),
        (0.059, 0.03, 1.0, "moved slightly to the left and up"),
        (0.06, 0.0, 1.0, "moved to the left"),
        (-0.25, -0.1, 1.0, "moved to the right and down"),
        (-0.26, 0.0, 1.0, "moved far to the right"),
        (0.0, 0.0, 1.039, "turned or moved slightly"),
        (0.0, 0.0, 1.05, "zoomed in or come closer"),
        (0.1, 0.0, 0.9, "moved to the left, and zoomed out or gone back"),
    ],
)
def test_how_far_the_camera_went_is_said(x: float, y: float, zoom: float, words: str) -> None:
    assert f"the camera seems to have {words}." in moved(x, y, zoom)


# ---------------------------------------------------------------- as an engine


@pytest.mark.parametrize("names", [("dense_caption",), ("focus", "counts"), ("mood", "unheard_of")])
def test_of_a_schema_what_is_known_is_given_and_nothing_else(names: tuple[str, ...]) -> None:
    schema = {"properties": {name: {} for name in names}}
    reply = asyncio.run(OfflineEngine(None).generate(Request("describe", "ignored", FACTS, schema=schema)))
    assert list(json.loads(reply.text)) == [name for name in names if name != "unheard_of"]


def test_where_nothing_was_measured_nothing_is_said() -> None:
    with pytest.raises(EngineError, match=r"nothing was\. Give it the facts of the picture"):
        asyncio.run(OfflineEngine(None).generate(Request("describe", "ignored", None)))


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
