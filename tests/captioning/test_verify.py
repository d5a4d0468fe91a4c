"""Descriptions held against their frames in whole folders, with a made-up space of pictures and texts."""

from __future__ import annotations

import asyncio
from io import BytesIO
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import vip.captioning.verify
from tests.captioning.keyframes import DIRECT, PERSON, Scripted, describer, run_folder
from tests.captioning.talking import Numbers, Talking, number_in, said
from vip import store
from vip.captioning.claims import check_claims
from vip.captioning.describe import describe
from vip.captioning.described_folder import DescribedFolder
from vip.captioning.describer import Describer
from vip.captioning.verify import AT_ONCE, Verifier
from vip.errors import EngineError, ReplyError
from vip.llm.cache import AnswerCache
from vip.protocols import Reply, Request
from vip.records import Description
from vip.store import KeyframePicture

COUNT = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return run_folder(tmp_path / "a.vip", COUNT)


def verified(path: Path, engine: Scripted, embedder: Any = None, **config: Any) -> list[Description]:
    """Describe the folder, then check it."""
    made = describer(engine, **config)
    folder = described(path, made)

    async def go() -> None:
        try:
            await Verifier(made, embedder).verify(folder)
        finally:
            folder.close()
        folder.finish()

    asyncio.run(go())
    return store.load_run(path).descriptions


def described(path: Path, made: Describer) -> DescribedFolder:
    folder = DescribedFolder(path, made.fingerprint, detector="test")
    folder.open()

    async def go() -> None:
        async for outcome in describe(made, ([task] for task in folder.tasks(with_known=False)), folder.usage):
            folder.add(outcome)

    asyncio.run(go())
    return folder


def verdicts(row: Description) -> dict[str, str]:
    assert row.verification is not None
    return {check.field: check.verdict for check in row.verification.checks}


@pytest.mark.parametrize("batch", [32, 3])
def test_what_fits_its_frame_is_supported_and_what_does_not_is_marked(path: Path, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.captioning.verify, "BATCH", batch)
    rows = verified(path, Talking(), Numbers(path))
    assert len(rows) == COUNT
    for number, row in enumerate(rows):
        marked = [field for field, verdict in verdicts(row).items() if verdict == "unsupported"]
        assert marked == (["focus"] if number == 3 else [])
    assert verdicts(rows[0])["action"] == "supported"


def test_the_second_look_asks_about_what_is_marked_alone_with_the_picture(path: Path) -> None:
    engine = Talking()
    verified(path, engine, Numbers(path))
    (request,) = engine.second
    assert "1. focus: thing 77" in request.prompt
    assert "2." not in request.prompt
    assert "4.5 s" in request.prompt
    (picture,) = request.pictures
    assert picture.data == (path / "keyframes" / "0003.jpg").read_bytes()


def test_what_it_corrects_is_corrected_and_the_words_before_are_kept(path: Path) -> None:
    row = verified(path, Talking([{"number": 1, "seen": False, "text": " thing 3 "}]), Numbers(path))[3]
    assert row.verification is not None
    assert row.famous.focus == "thing 3"
    assert row.verification.before is not None
    assert row.verification.before.focus == "thing 77"
    assert row.verification.before.action == row.famous.action
    assert [check.after for check in row.verification.checks if check.field == "focus"] == ["thing 3"]
    assert [call.prompt for call in row.calls] == ["direct", "verify"]
    assert row.dense_caption == "Caption 3."


def test_what_it_sees_stays_and_what_is_not_there_goes(path: Path) -> None:
    seen = verified(path, Talking([{"number": 1, "seen": True, "text": "other words"}]), Numbers(path))[3]
    assert seen.verification is not None
    assert (seen.famous.focus, seen.verification.before) == ("thing 77", None)
    assert [check.after for check in seen.verification.checks if check.field == "focus"] == ["thing 77"]


def test_a_text_that_is_not_there_becomes_not_determined(path: Path) -> None:
    row = verified(path, Talking([{"number": 1, "seen": False, "text": ""}]), Numbers(path))[3]
    assert row.famous.focus == "not determined"


@pytest.mark.parametrize("claims", [[], [{"number": 7, "seen": False, "text": "x"}], [{"number": 0, "seen": False, "text": "x"}]])
def test_an_answer_about_other_claims_changes_nothing(claims: list[Any], path: Path) -> None:
    row = verified(path, Talking(claims), Numbers(path))[3]
    assert row.famous.focus == "thing 77"
    assert row.verification is not None
    assert verdicts(row)["focus"] == "unsupported"


def test_a_second_look_that_fails_leaves_the_marks(path: Path) -> None:
    def refuse(request: Request) -> Any:
        raise ReplyError("I refuse.", kind="refusal")

    row = verified(path, Talking(refuse), Numbers(path))[3]
    assert row.famous.focus == "thing 77"
    assert verdicts(row)["focus"] == "unsupported"
    (failure,) = store.load_run(path).failures
    assert (failure.item, failure.kind, failure.exit_code) == ("a:0003", "refusal", 6)
    assert failure.message == "The second look failed, and the marked claims stay: I refuse."


def test_the_failure_of_a_second_look_is_still_there_after_another_round(path: Path) -> None:
    def refuse(request: Request) -> Any:
        raise ReplyError("I refuse.", kind="refusal")

    made = describer(Talking(refuse))
    folder = described(path, made)
    asyncio.run(Verifier(made, Numbers(path)).verify(folder))
    assert folder.failed == 0, "its keyframe is described"
    folder.start_round()
    folder.open()
    folder.close()
    assert [failure.item for failure in store.load_run(path).failures] == ["a:0003"]


def test_an_engine_that_cannot_be_asked_ends_it_and_what_is_checked_stays(path: Path) -> None:
    def gone(request: Request) -> Any:
        raise EngineError("The server is gone.")

    engine = Talking(gone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vip.llm.client.TRIES_BEFORE_AN_ANSWER", 1)
        patch.setattr("vip.llm.client.GIVEN_UP_IN_A_ROW", 1)
        with pytest.raises(EngineError, match="The server is gone"):
            verified(path, engine, Numbers(path))
    assert sum(row.verification is not None for row in store.load_run(path).descriptions) == COUNT - 1


def test_after_the_first_error_nothing_more_is_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three are wrong here; one error ends it all, and no question goes on in the background."""

    class Wrong(Talking):
        def say(self, request: Request, number: int) -> Any:
            if request.stage == "verify":
                raise EngineError("The money is spent.")
            at = number_in(request)
            return said(at, 50 + at if at in {1, 3, 5} else at)

        async def generate(self, request: Request) -> Reply:
            if request.stage == "verify" and number_in(request) > 1:
                await asyncio.Event().wait()
            return await super().generate(request)

    monkeypatch.setattr("vip.llm.client.TRIES_BEFORE_AN_ANSWER", 1)
    monkeypatch.setattr("vip.llm.client.GIVEN_UP_IN_A_ROW", 1)
    made = describer(Wrong())
    folder = described(path, made)

    async def go() -> None:
        with pytest.raises(EngineError, match="The money is spent"):
            await Verifier(made, Numbers(path)).verify(folder)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(go())
    folder.close()


def test_an_engine_that_measures_is_not_asked_twice(path: Path) -> None:
    engine = Talking(measures=True)
    verified(path, engine, Numbers(path))
    assert engine.second == []


def test_without_an_embedder_the_detector_alone_has_a_say(path: Path) -> None:
    class Saying(Talking):
        def say(self, request: Request, number: int) -> Any:
            return {**DIRECT, "objects": ["person", "box"]}

    rows = verified(path, Saying())
    assert PERSON.score >= 0.5
    for row in rows:
        assert row.verification is not None
        found = {check.claim: (check.verdict, check.by) for check in row.verification.checks if check.field == "objects"}
        assert found == {"person": ("supported", ("test",)), "box": ("unchecked", ())}


def test_what_was_checked_is_not_checked_again(path: Path) -> None:
    engine = Talking()
    first = verified(path, engine, Numbers(path))
    again = verified(path, engine, Numbers(path))
    assert len(engine.second) == 1
    assert again == first


def test_of_a_chunk_that_was_checked_in_part_the_rest_is_checked(path: Path) -> None:
    first = verified(path, Talking(), Numbers(path))
    halved = [row if number % 2 else row.model_copy(update={"verification": None}) for number, row in enumerate(first)]
    store.write_rows(path / store.DESCRIPTIONS, halved)
    engine = Talking()
    again = verified(path, engine, Numbers(path))
    assert [verdicts(row) for row in again] == [verdicts(row) for row in first]
    assert engine.second == []


class WrongAtFirst(Talking):
    def say(self, request: Request, number: int) -> Any:
        return super().say(request, number) if request.stage == "verify" or number_in(request) else said(0, 77)


def test_the_second_look_is_at_a_picture_of_the_size_and_in_the_language_that_are_asked_for(path: Path) -> None:
    engine = WrongAtFirst()
    verified(path, engine, Numbers(path), longest_side_px=32, language="German")
    request = next(request for request in engine.second if "0.0 s" in request.prompt)
    assert "German" in request.prompt
    assert PIL.Image.open(BytesIO(request.pictures[0].data)).size == (32, 24)


def test_a_second_look_that_waits_for_a_batch_leaves_its_description_unchecked(path: Path, tmp_path: Path) -> None:
    made = describer(Talking(caches=True))
    folder = described(path, made)
    client = made.describing_client
    client.answers, client.defer = AnswerCache(tmp_path / "answers.sqlite"), lambda question, request, usage: request.stage == "verify"
    asyncio.run(Verifier(made, Numbers(path)).verify(folder))
    client.answers.close()
    assert len(folder.deferred) == 1
    folder.finish()
    assert [row.verification is None for row in store.load_run(path).descriptions] == [number == 3 for number in range(COUNT)]


def test_pictures_go_to_the_embedder_in_parts_and_of_one_that_is_gone_nothing_is_checked(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "b.vip", 40)
    numbers = Numbers(path)
    made = describer(Talking())
    folder = described(path, made)
    (path / "keyframes" / "0020.jpg").unlink()

    async def go() -> None:
        await Verifier(made, numbers).verify(folder)
        folder.finish()

    asyncio.run(go())
    rows = store.load_run(path).descriptions
    assert len(rows) == 40
    assert 1 < numbers.largest <= 32 < AT_ONCE
    assert set(verdicts(rows[20]).values()) == {"unchecked"}
    assert verdicts(rows[21])["focus"] == "supported"


@pytest.mark.parametrize("gone", [1, COUNT])
def test_a_picture_that_cannot_be_read_leaves_its_claims_unchecked_and_the_others_as_if_it_were_not_there(gone: int, path: Path) -> None:
    made, numbers = describer(Talking()), Numbers(path)
    folder = described(path, made)
    for number in range(gone):
        (path / "keyframes" / f"{number:04d}.jpg").unlink()
    asyncio.run(Verifier(made, numbers).verify(folder))
    folder.finish()
    rows = store.load_run(path).descriptions
    for row in rows[:gone]:
        assert row.verification is not None
        assert {(check.verdict, check.by, check.similarity) for check in row.verification.checks} == {("unchecked", (), None)}
        assert len(row.verification.checks) == 5
    readable = [KeyframePicture(item.record, path) for item in store.load_run(path).keyframes[gone:]]
    images = numbers.embed_images([item.image for item in readable])
    alone = check_claims(rows[gone:], images, numbers, [item.record.detections for item in readable], "test")
    assert [row.verification for row in rows[gone:]] == alone


def test_many_keyframes_are_compared_in_chunks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.captioning.verify.AT_ONCE", 3)
    rows = verified(path, Talking(), Numbers(path))
    assert all(row.verification for row in rows)
    assert [row.keyframe_id for row in rows] == [f"a:{number:04d}" for number in range(COUNT)]
