"""The questions about one keyframe: the contents of each, its engine, and the use of the answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.captioning.keyframes import DIRECT, FAMOUS, Scripted, describe, describer, keyframe, keyframes, paper
from vip.captioning.describer import KeyframePosition, fingerprint_of
from vip.errors import ReplyError
from vip.protocols import Request
from vip.records import Description, Detection

REGION = Detection(label="a dog that leaps", score=0.71, box_xyxy=(0.4, 0.4, 0.6, 0.9), source="test", kind="region")


def one(tmp_path: Path, engine: Scripted, structure: Scripted | None = None, *, item: Any = None, **config: Any) -> Description:
    (row,) = describe([item or keyframe(tmp_path, 1)], engine, structure=structure, **config).descriptions
    return row


# ---------------------------------------------------------------- direct


def test_direct_asks_once_with_the_picture_for_both_texts(tmp_path: Path) -> None:
    engine = Scripted()
    row = one(tmp_path, engine)
    (request,) = engine.requests
    assert request.stage == "describe"
    assert len(request.pictures) == 1
    assert request.schema is not None
    assert request.schema["title"] == "Direct"
    assert next(iter(request.schema["properties"])) == "dense_caption", "what is written first is thought about first"
    assert request.max_tokens == 2048
    assert (row.recipe, row.caption, row.dense_caption) == ("direct", None, "A dense caption.")
    assert row.famous.model_dump() == {**FAMOUS, "objects": ("a box",)}


def test_the_question_has_the_real_time_and_what_was_found(tmp_path: Path) -> None:
    engine = Scripted()
    item = keyframe(tmp_path, 1, time_s=61.25, detections=(keyframe(tmp_path, 1).record.detections[0], REGION))
    row = one(tmp_path, engine, item=item)
    asked = engine.requests[0].prompt
    assert "61.2 s" in asked
    assert "keyframe 1 of 1" in asked
    assert "- person, 0.90, left third" in asked
    assert "- a dog that leaps, 0.71, centre" in asked
    assert "English" in asked
    assert "no topic is given" in asked
    assert [text.partition(",")[0] for text in row.grounding] == ["person", "region: a dog that leaps"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"detections": ()}, ["test found none", "none were described"]),
        ({"detections": None}, ["nobody looked for any"]),
        ({"time_s": None, "pts": None}, ["unknown, the picture comes from no video", "picture 1 of 1"]),
    ],
)
def test_what_is_not_known_is_said_so(changed: dict[str, Any], words: list[str], tmp_path: Path) -> None:
    engine = Scripted()
    row = one(tmp_path, engine, item=keyframe(tmp_path, 1, **changed))
    assert all(word in engine.requests[0].prompt for word in words)
    assert row.time_s == changed.get("time_s", 1.5)


def test_without_a_detector_nobody_has_looked(tmp_path: Path) -> None:
    values = describer(Scripted()).values(keyframe(tmp_path, 1, detections=()), KeyframePosition(1, 1, None), ())
    assert (values["objects"], values["regions"]) == ("nobody looked for any", "nobody looked for any")


def test_that_nothing_was_found_is_ground_and_that_nobody_looked_is_none(tmp_path: Path) -> None:
    assert one(tmp_path, Scripted(), item=keyframe(tmp_path, 1, detections=())).grounding == ("nothing found by the detector test",)
    assert one(tmp_path, Scripted(), item=keyframe(tmp_path, 1, detections=None)).grounding == ()


# ---------------------------------------------------------------- paper


def test_paper_asks_three_times_and_each_answer_goes_into_the_next_question(tmp_path: Path) -> None:
    engine = Scripted(paper)
    row = one(tmp_path, engine, recipe="paper")
    first, second, third = engine.requests
    assert [request.stage for request in engine.requests] == ["caption", "describe", "structure"]
    assert [len(request.pictures) for request in engine.requests] == [1, 0, 0]
    assert "AN OVERALL CAPTION" in second.prompt
    assert "- person, 0.90" in second.prompt
    assert "A DENSE CAPTION" in third.prompt
    assert "AN OVERALL CAPTION" not in third.prompt
    assert (first.schema, second.schema) == (None, None)
    assert third.schema is not None
    assert third.schema["title"] == "Famous"
    assert (row.recipe, row.caption, row.dense_caption, row.famous.focus) == ("paper", "AN OVERALL CAPTION", "A DENSE CAPTION", "a test")
    assert [call.prompt for call in row.calls] == ["caption", "describe", "structure"]


def test_two_engines_share_the_work_as_they_see_or_read(tmp_path: Path) -> None:
    seeing, reading = Scripted(paper, name="eyes"), Scripted(paper, name="words", sees=False)
    row = one(tmp_path, seeing, reading, recipe="paper", topic="Surfing")
    assert [request.stage for request in seeing.requests] == ["caption"]
    assert [request.stage for request in reading.requests] == ["topic", "describe", "structure"]
    assert not any(request.pictures for request in reading.requests)
    assert row.engine == "eyes + words"
    assert [(call.prompt, call.engine) for call in row.calls] == [("caption", "eyes"), ("describe", "words"), ("structure", "words")]


def test_the_record_of_a_call_has_what_it_was_asked_with(tmp_path: Path) -> None:
    row = one(tmp_path, Scripted(paper), recipe="paper", longest_side_px=512)
    assert [call.parameters for call in row.calls] == [
        {"max_tokens": 2048, "longest_side_px": 512, "jpeg_quality": 90},
        {"max_tokens": 2048},
        {"max_tokens": 2048, "schema": "Famous"},
    ]


def test_an_engine_that_does_all_is_named_once(tmp_path: Path) -> None:
    assert one(tmp_path, Scripted(paper, name="eyes"), recipe="paper").engine == "eyes"


def test_the_engine_that_writes_direct_is_named_alone(tmp_path: Path) -> None:
    assert one(tmp_path, Scripted(name="eyes"), Scripted(name="words")).engine == "eyes"


def test_an_engine_that_measures_gets_the_facts_with_every_question(tmp_path: Path) -> None:
    engine = Scripted(paper, measures=True)
    row = one(tmp_path, engine, recipe="paper")
    assert all(request.facts for request in engine.requests)
    assert any(text.startswith("dominant colours") for text in row.grounding)


# ---------------------------------------------------------------- topic, language


@pytest.mark.parametrize("recipe", ["direct", "paper"])
def test_what_the_topic_lets_one_expect_is_asked_once_and_goes_to_every_keyframe(recipe: Any, tmp_path: Path) -> None:
    engine = Scripted(lambda request, number: DIRECT if request.pictures and recipe == "direct" else paper(request, number))
    rows = describe(keyframes(tmp_path, 4), engine, recipe=recipe, topic="A dog learns to surf").descriptions
    topics = [request for request in engine.requests if request.stage == "topic"]
    assert len(topics) == 1
    assert topics[0] is engine.requests[0]
    assert "A dog learns to surf" in topics[0].prompt
    assert sum("surfboard, wave" in request.prompt for request in engine.requests) == 4
    assert {row.grounding[-1] for row in rows} == {"expected from the topic: surfboard, wave"}


def test_a_topic_that_lets_one_expect_nothing_is_asked_about_once_too(tmp_path: Path) -> None:
    engine = Scripted(lambda request, number: {"objects": []} if request.stage == "topic" else DIRECT)
    describe(keyframes(tmp_path, 3), engine, topic="Nothing")
    assert sum(request.stage == "topic" for request in engine.requests) == 1


def test_an_engine_that_reads_no_text_is_not_asked_about_the_topic(tmp_path: Path) -> None:
    engine = Scripted(measures=True)
    one(tmp_path, engine, topic="A dog learns to surf")
    assert [request.stage for request in engine.requests] == ["describe"]


def test_too_long_a_list_of_what_is_expected_is_cut(tmp_path: Path) -> None:
    engine = Scripted(lambda request, number: {"objects": [f"thing {n}" for n in range(100)]} if request.stage == "topic" else DIRECT)
    row = one(tmp_path, engine, topic="Things")
    assert row.grounding[-1].endswith("thing 19")


@pytest.mark.parametrize("recipe", ["direct", "paper"])
def test_every_question_names_the_language(recipe: Any, tmp_path: Path) -> None:
    engine = Scripted(paper if recipe == "paper" else lambda request, number: {"objects": []} if request.stage == "topic" else DIRECT)
    row = one(tmp_path, engine, recipe=recipe, language="German", topic="Surfing")
    assert row.language == "German"
    assert all("German" in request.prompt for request in engine.requests)
    assert "German" not in str([request.schema for request in engine.requests]), "keys stay English"


# ---------------------------------------------------------------- what models say is data


@pytest.mark.parametrize("hostile", ["{objects} {caption} {0} %s ${x} {{y}}", "</script><img src=x>", '"; rm -rf / #', "../../x"])
def test_text_from_a_model_is_never_a_template(hostile: str, tmp_path: Path) -> None:
    engine = Scripted(lambda request, number: {**FAMOUS, "focus": hostile} if request.schema else hostile)
    row = one(tmp_path, engine, recipe="paper")
    assert row.dense_caption == row.famous.focus == row.caption == hostile
    assert hostile in engine.requests[1].prompt
    assert hostile in engine.requests[2].prompt


def test_a_label_is_never_a_template(tmp_path: Path) -> None:
    item = keyframe(tmp_path, 1, detections=(Detection(label="{language}{time}", score=0.5, box_xyxy=(0, 0, 1, 1), source="t"),))
    engine = Scripted()
    one(tmp_path, engine, item=item)
    assert "- {language}{time}, 0.50" in engine.requests[0].prompt


def test_empty_fields_become_not_determined_and_empty_names_go(tmp_path: Path) -> None:
    row = one(tmp_path, Scripted(lambda *_: {**DIRECT, "mood": "  ", "setting": "", "objects": ["", " box ", " "]}))
    assert (row.famous.mood, row.famous.setting, row.famous.objects) == ("not determined", "not determined", ("box",))


def test_an_empty_dense_caption_is_no_description(tmp_path: Path) -> None:
    told = describe([keyframe(tmp_path, 1)], Scripted(lambda *_: {**DIRECT, "dense_caption": " "}))
    assert told.descriptions == []
    (failure,) = told.failures
    assert failure.kind == "schema"
    assert "dense_caption" in failure.message


def test_an_answer_outside_the_schema_costs_a_call_and_is_recorded(tmp_path: Path) -> None:
    row = one(tmp_path, Scripted(lambda request, number: DIRECT if "could not be used" in request.prompt else {"focus": 3}))
    assert [call.prompt for call in row.calls] == ["direct", "direct"]


@pytest.mark.parametrize("answer", ["{}", '{"dense_caption"', "prose"])
def test_answers_that_never_fit_cost_their_keyframe_only(answer: str, tmp_path: Path) -> None:
    def say(request: Request, number: int) -> Any:
        return answer if "1.5 s" in request.prompt else DIRECT

    told = describe(keyframes(tmp_path, 3), Scripted(say))
    assert told.described == ["v:0000", "v:0002"]
    assert [(row.item, row.kind) for row in told.failures] == [("v:0001", "schema")]
    assert "outside the schema of Direct" in told.failures[0].message


def test_a_question_that_failed_leaves_the_later_ones_unasked(tmp_path: Path) -> None:
    def refuse(request: Request, number: int) -> Any:
        raise ReplyError("I refuse.", kind="content_filter")

    engine = Scripted(refuse)
    assert describe([keyframe(tmp_path, 1)], engine, recipe="paper").descriptions == []
    assert [request.stage for request in engine.requests] == ["caption"]


def test_the_names_of_the_prompts_are_those_that_are_asked() -> None:
    assert describer(Scripted()).names == ("direct",)
    assert describer(Scripted(), recipe="paper", topic="x").names == ("caption", "describe", "structure", "topic")
    assert asyncio.run(describer(Scripted()).expected()) == ()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("direct", {"SUBTITLES", "SPEECH", "SIGN"}),
        ("describe", {"SUBTITLES", "SPEECH", "SIGN"}),
        ("rich", {"SIGN"}),
        ("caption", set()),
        ("structure", set()),
        ("topic", set()),
    ],
)
@pytest.mark.parametrize("known", [{"SUBTITLES", "SPEECH", "SIGN"}, {"SPEECH"}, {"SIGN"}, set()])
def test_each_question_is_told_the_words_that_bear_on_it(name: str, told: set[str], known: set[str], tmp_path: Path) -> None:
    position = KeyframePosition(
        1,
        1,
        "test",
        words="SUBTITLES" if "SUBTITLES" in known else None,
        speech="SPEECH" if "SPEECH" in known else None,
        text=("SIGN",) if "SIGN" in known else (),
    )
    made = describer(Scripted())
    values = {**made.values(keyframe(tmp_path, 1), position, ()), "topic": "Surfing"}
    request, _ = made.request(name, values)
    assert {word for word in ("SUBTITLES", "SPEECH", "SIGN") if word in request.prompt} == told & known


@pytest.mark.parametrize(("measures", "context", "topic"), [(False, 3, "Surfing"), (True, 0, None)])
def test_an_engine_that_measures_reads_neither_context_nor_topic(measures: bool, context: int, topic: str | None) -> None:
    fingerprint = describer(Scripted(measures=measures), context=3, topic="Surfing").fingerprint
    assert (fingerprint.context, fingerprint.topic) == (context, topic)


@pytest.mark.parametrize("measures", [False, True])
@pytest.mark.parametrize("recipe", ["direct", "paper"])
@pytest.mark.parametrize("config", [{}, {"context": 3}, {"topic": "Surfing"}, {"language": "German"}])
def test_a_description_says_of_itself_how_it_was_made(measures: bool, recipe: Any, config: dict[str, Any], tmp_path: Path) -> None:
    """Else the next command would make it again."""

    def answer(request: Request, number: int) -> Any:
        return DIRECT if recipe == "direct" and request.stage == "describe" else paper(request, number)

    eyes, words = Scripted(answer, name="eyes", measures=measures), Scripted(answer, name="words")
    row = one(tmp_path, eyes, words, recipe=recipe, **config)
    assert fingerprint_of(row) == describer(eyes, words, recipe=recipe, **config).fingerprint
