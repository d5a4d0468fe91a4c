"""The schema `rich`: its question, its answer, and the movement that vip measures itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.api_server import ApiServer
from tests.captioning.keyframes import DIRECT, Scripted, describe, describer, keyframe, keyframes, paper, run_folder
from vip import store
from vip.captioning.caption_job import expected_cost
from vip.captioning.describer import fingerprint_of
from vip.captioning.rich_fields import camera_movement
from vip.errors import BackendError, UsageError
from vip.pipeline import caption
from vip.protocols import Request
from vip.records import Description, Detection, RichFields
from vip.store import KeyframePicture, load_run

RICH = {
    **{"short_caption": "A person stands.", "main_object": "A person in red.", "background": "", "style": " photograph "},
    **{"shot_size": "medium shot", "camera_angle": "eye level", "depth_of_field": "not determined"},
    "counts": [{"object": "person", "count": 1}, {"object": " ", "count": 4}, {"object": " person", "count": 1}],
    "colours": [{"object": "coat", "colour": "red"}],
    "relations": [{"subject": "person", "relation": "left of", "object": "box"}, {"subject": "box", "relation": "", "object": "person"}],
    **{"visible_text": [" EXIT ", ""], "characters": []},
}


def answer(request: Request, number: int) -> Any:
    return RICH if request.stage == "rich" else DIRECT


def one(tmp_path: Path, engine: Scripted, **config: Any) -> Description:
    (row,) = describe([keyframe(tmp_path, 1)], engine, schema="rich", **config).descriptions
    return row


def fields_of(row: Description) -> RichFields:
    assert row.rich is not None
    return row.rich


# ---------------------------------------------------------------- the question


def test_famous_alone_is_the_default_and_asks_nothing_more(tmp_path: Path) -> None:
    engine = Scripted()
    (row,) = describe([keyframe(tmp_path, 1)], engine).descriptions
    assert (row.rich, len(engine.requests)) == (None, 1)


def test_rich_is_one_more_question_with_the_picture_and_the_detections(tmp_path: Path) -> None:
    engine = Scripted(answer)
    row = one(tmp_path, engine, language="German")
    first, second = engine.requests
    assert first.schema is not None
    assert first.schema["title"] == "Direct", "captions are asked for as without it"
    assert (second.stage, len(second.pictures)) == ("rich", 1)
    assert second.schema is not None
    assert second.schema["title"] == "Rich"
    assert "camera_movement" not in second.schema["properties"], "one frame does not show it"
    assert "- person, 0.90, left third" in second.prompt
    assert "German" in second.prompt
    assert [call.prompt for call in row.calls] == ["direct", "rich"]


def test_after_the_recipe_paper_the_engine_that_sees_is_asked(tmp_path: Path) -> None:
    def say(request: Request, number: int) -> Any:
        return RICH if request.stage == "rich" else paper(request, number)

    seeing, reading = Scripted(say, name="eyes"), Scripted(say, name="words", sees=False)
    one(tmp_path, seeing, recipe="paper", structure=reading)
    assert [request.stage for request in seeing.requests] == ["caption", "rich"]


def test_every_field_of_a_schema_must_be_answered(tmp_path: Path) -> None:
    """As strict servers want it: no field is optional, and no other is allowed."""
    engine = Scripted(answer)
    one(tmp_path, engine)
    schema = engine.requests[1].schema
    assert schema is not None
    for part in (schema, *schema["$defs"].values()):
        assert part["required"] == list(part["properties"])
        assert part["additionalProperties"] is False


# ---------------------------------------------------------------- the answer


def test_an_answer_is_kept_without_entries_that_name_nothing(tmp_path: Path) -> None:
    rich = fields_of(one(tmp_path, Scripted(answer)))
    assert (rich.background, rich.style, rich.visible_text) == ("not determined", "photograph", ("EXIT",))
    assert [(entry.object, entry.count) for entry in rich.counts] == [("person", 1)]
    assert [entry.subject for entry in rich.relations] == ["person"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"shot_size": "a nice shot"},
        {"counts": [{"object": "dog", "count": "several"}]},
        {"counts": [{"object": "dog", "count": -1}]},
        {"counts": [{"object": "dog", "count": True}]},
        {"counts": [{"object": "dog", "count": 2.0}]},
        {"camera_movement": "pans left"},
    ],
)
def test_an_answer_that_does_not_fit_is_never_guessed_at(wrong: dict[str, Any], tmp_path: Path) -> None:
    told = describe(
        [keyframe(tmp_path, 1)],
        Scripted(lambda request, number: {**RICH, **wrong} if request.stage == "rich" else DIRECT),
        schema="rich",
    )
    assert told.descriptions == []
    (failure,) = told.failures
    assert failure.kind == "schema"
    assert "Rich" in failure.message


# ---------------------------------------------------------------- movement


def of_scene(folder: Path, number: int, *, left: int, **changed: Any) -> KeyframePicture:
    """A keyframe of a wide scene with corners everywhere, seen from `left` on."""
    item = keyframe(folder, number, size=(240, 320), suffix="png", **changed)
    scene = np.kron(np.random.default_rng(3).integers(0, 256, (30, 60, 3), np.uint8), np.ones((8, 8, 1), np.uint8))
    store.write_picture(item.path, scene[:, left : left + 320])
    return item


def test_the_same_view_is_said_to_be_one_with_the_time_between(tmp_path: Path) -> None:
    items = [of_scene(tmp_path, number, left=0) for number in (2, 3)]
    assert camera_movement(items[0], items[1]) == "the view is that of 1.5 s before"


def test_a_view_that_moved_is_told_in_figures(tmp_path: Path) -> None:
    items = [of_scene(tmp_path, number, left=32 * number) for number in range(2)]
    assert camera_movement(items[0], items[1]).startswith("in 1.5 s the content went 10 % left")


@pytest.mark.parametrize("changed", [{"video": "w"}, {"time_s": None, "pts": None}])
def test_pictures_of_other_videos_and_without_times_say_nothing(changed: dict[str, Any], tmp_path: Path) -> None:
    first, second = of_scene(tmp_path, 0, left=0), of_scene(tmp_path, 1, left=0, **changed)
    assert camera_movement(first, second) == "not known"


def test_the_first_keyframe_and_another_scene_have_no_known_movement(tmp_path: Path) -> None:
    items = keyframes(tmp_path, 2)
    assert camera_movement(None, items[0]) == "not known"
    assert camera_movement(items[0], items[1]) == "not known"


def test_engines_that_see_and_that_measure_are_told_the_same_movement(tmp_path: Path) -> None:
    items = [of_scene(tmp_path, number, left=32 * number) for number in range(3)]
    seen = [fields_of(row).camera_movement for row in describe(items, Scripted(answer), schema="rich").descriptions]
    measured = [fields_of(row).camera_movement for row in describe(items, Scripted(answer, measures=True), schema="rich").descriptions]
    assert sorted(seen) == sorted(measured)
    assert sum("the content went 10 % left" in text for text in seen) == 2


def test_where_the_picture_before_is_gone_nothing_is_known(tmp_path: Path) -> None:
    first, second = (of_scene(tmp_path, number, left=0) for number in range(2))
    first.path.unlink()
    assert camera_movement(first, second) == "not known"


# ---------------------------------------------------------------- whole runs


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def options(server: ApiServer, tmp_path: Path, **more: Any) -> dict[str, Any]:
    return {"engine": "openai:tiny-vlm", "base_url": server.base_url, "cache": tmp_path / "answers.sqlite", **more}


def test_a_run_is_described_by_a_server_and_another_run_asks_nothing(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "v.vip", 3)
    caption(path, **options(server, tmp_path, schema="rich"))
    caption(path, **options(server, tmp_path, schema="rich"))
    rows = load_run(path).descriptions
    assert len(server.chats) == 6
    assert all(fields_of(row).shot_size == "extreme close-up" for row in rows), "the first choice, as the server says"
    assert all(fields_of(row).camera_movement == "not known" for row in rows)
    manifest = load_run(path).manifest
    assert manifest is not None
    assert manifest.captioning is not None
    assert manifest.captioning["schema"] == "rich"
    assert set(manifest.captioning["prompts"]) == {"direct", "rich"}


def test_going_from_famous_to_rich_needs_leave_and_asks_only_the_new_question(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "v.vip", 2)
    caption(path, **options(server, tmp_path))
    with pytest.raises(UsageError, match=r"schema famous.*schema rich.*overwrite"):
        caption(path, **options(server, tmp_path, schema="rich"))
    captions = [row.dense_caption for row in load_run(path).descriptions]
    caption(path, overwrite=True, **options(server, tmp_path, schema="rich"))
    assert len(server.chats) == 4, "the captions come from the cache"
    assert [row.dense_caption for row in load_run(path).descriptions] == captions


def test_an_answer_that_never_fits_is_a_failure_that_the_same_command_tries_again(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "v.vip", 1)
    server.set(behaviours=["ok", "outside_schema"])
    with pytest.raises(Exception, match="could be described"):
        caption(path, **options(server, tmp_path, schema="rich"))
    server.set(behaviours=["ok"])
    asked = len(server.chats)
    caption(path, **options(server, tmp_path, schema="rich"))
    assert len(server.chats) == asked + 1, "the caption was kept"
    assert load_run(path).descriptions[0].rich is not None


def test_in_batches_the_second_question_waits_for_the_first(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "v.vip", 3)
    caption(path, in_batches=True, **options(server, tmp_path, schema="rich"))
    assert server.chats == []
    assert [fields_of(row).shot_size for row in load_run(path).descriptions] == ["extreme close-up"] * 3


def test_the_expected_cost_counts_the_second_question(server: ApiServer, tmp_path: Path) -> None:
    path = run_folder(tmp_path / "v.vip", 3)
    plain, rich = (expected_cost(path, **options(server, tmp_path, schema=schema)) for schema in ("famous", "rich"))
    assert (plain.requests, rich.requests) == (3, 6)
    assert rich.tokens_in > 1.5 * plain.tokens_in
    assert rich.tokens_out > plain.tokens_out
    assert server.chats == []


def test_offline_counts_what_was_found_names_colours_and_leaves_the_rest(tmp_path: Path) -> None:
    box = (0.5, 0.0, 0.8, 1.0)
    found = (
        *(Detection(label="dog", score=score, box_xyxy=box, source="t") for score in (0.9, 0.6, 0.3)),
        Detection(label="cat", score=0.2, box_xyxy=box, source="t"),
    )
    path = run_folder(tmp_path / "v.vip", 2, detections=found)
    caption(path, engine="offline", schema="rich")
    for row in load_run(path).descriptions:
        rich = fields_of(row)
        assert [(entry.object, entry.count) for entry in rich.counts] == [("dog", 2)]
        assert {entry.object for entry in rich.colours} <= {"whole picture"}
        texts = {rich.short_caption, rich.main_object, rich.background, rich.style, rich.shot_size, rich.camera_angle, rich.depth_of_field}
        assert texts == {"not determined"}
        assert (rich.relations, rich.visible_text, rich.characters) == ((), (), ())


def test_the_engine_fake_fits_the_schema_too(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "v.vip", 1)
    caption(path, engine="fake", schema="rich")
    assert fields_of(load_run(path).descriptions[0]).shot_size == "not determined"


def test_an_engine_that_writes_captions_only_is_refused_before_anything_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vip.models.fake import FakeEngine

    monkeypatch.setattr(FakeEngine, "capabilities", replace(FakeEngine.capabilities, captions_only=True))
    with pytest.raises(BackendError, match="writes captions only"):
        caption(run_folder(tmp_path / "v.vip", 1), engine="fake", schema="rich")


def test_the_schema_is_part_of_how_a_description_was_made(tmp_path: Path) -> None:
    row = one(tmp_path, Scripted(answer))
    plain, rich = describer(Scripted()), describer(Scripted(), schema="rich")
    assert fingerprint_of(row) == rich.fingerprint
    assert fingerprint_of(row) != plain.fingerprint
    assert rich.names == ("direct", "rich")
