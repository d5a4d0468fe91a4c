"""What stands on the card of a keyframe, where a keyframe is more than the usual one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.pages import Page, read
from tests.report.runs import candidates, description, make_pictures, make_run, picture
from vip import store
from vip.records import Detection, Failure, SpokenWords
from vip.report.cards import KeyframeCard, failures_by_keyframe
from vip.report.page import Report, write_report
from vip.store import load_run


def card(folder: Path, number: int = 1) -> KeyframeCard:
    return Report(load_run(folder)).cards[number - 1]


def detections(*counts: tuple[str, int]) -> tuple[Detection, ...]:
    return tuple(
        Detection(label=label, score=0.5, box_xyxy=(0.1, 0.1, 0.2, 0.2), source="detr") for label, count in counts for _ in range(count)
    )


@pytest.mark.parametrize(
    ("found", "more"),
    [
        (12 * [("person", 1)], []),
        ([("person", 13)], ["and 1 more person"]),
        ([("person", 14), ("dog", 3), ("cat", 2), ("cow", 1), ("bird", 1)],
         ["and 3 more dog", "and 2 more person", "and 2 more cat", "and 2 others"]),
        ([("person", 12), ("dog", 1)], ["and 1 more dog"]),
    ],
)  # fmt: skip
def test_twelve_detections_are_named_and_only_the_others_are_counted(found: list[tuple[str, int]], more: list[str], tmp_path: Path) -> None:
    run = make_run(tmp_path)
    rows = [frame.record.model_copy(update={"detections": detections(*found)}) for frame in run.keyframes]
    store.write_rows(tmp_path / store.KEYFRAMES, rows)
    shown = card(tmp_path)
    assert [one.label for one in shown.chips] == [one.label for one in detections(*found)[:12]]
    assert shown.more_chips == more


def test_a_substitute_says_the_time_of_the_frame_that_it_stands_in_for(tmp_path: Path) -> None:
    make_run(tmp_path)
    names = [fact.name for fact in card(tmp_path, 2).measured]
    assert "Stands in for the bad frame at 0:02.4" in names  # the substitute itself is at 0:03.0
    assert not any(name.startswith("Stands in") for name in (fact.name for fact in card(tmp_path, 1).measured))


def test_a_failure_may_name_its_keyframe_by_id_by_picture_or_by_the_picture_s_path(tmp_path: Path) -> None:
    frames = [frame.record for frame in make_run(tmp_path).keyframes]
    first, second, third = frames
    items = [first.id, second.image_path, Path(third.image_path).name, "elsewhere.jpg"]
    failures = [Failure(item=item, kind="engine", message=f"failed {item}", exit_code=6) for item in items]
    assert failures_by_keyframe(frames, failures) == dict(zip([first.id, second.id, third.id], failures, strict=False))


def test_failures_lead_to_the_card_of_their_keyframe_and_say_their_kind(tmp_path: Path) -> None:
    run = make_run(tmp_path, failed=2)
    failures = [*run.failures, Failure(item="elsewhere", kind="disk", message="gone", exit_code=7)]
    store.write_rows(tmp_path / store.FAILURES, failures)
    page = read(write_report(load_run(tmp_path)))
    rows = Report(load_run(tmp_path)).failures
    assert [(row.item, row.kind, row.link) for row in rows] == [
        ("k3", "ReplyError", "#k2"),
        ("k7", "ReplyError", "#k3"),
        ("elsewhere", "disk", ""),
    ]
    linked = [link["href"] for link in page.of("a") if link.get("class") is None]
    assert {"#k2", "#k3"} <= set(linked)
    kinds = [text for path, text in page.texts if path[-1:] == ("span",)]
    assert kinds.count("ReplyError") == 2
    assert "disk" in kinds


def test_a_reason_that_all_share_stands_on_no_card_and_different_ones_on_each(tmp_path: Path) -> None:
    make_run(tmp_path / "different")
    assert [one.why for one in Report(load_run(tmp_path / "different")).cards] == ["reason 0", "reason 3", "reason 7"]
    assert Report(load_run(tmp_path / "different")).why == ""
    make_run(tmp_path / "same")
    rows = candidates()
    store.write_rows(
        tmp_path / "same" / store.CANDIDATES,
        [row.model_copy(update={"decision": row.decision.model_copy(update={"reason": "the same"})}) for row in rows],
    )
    same = load_run(tmp_path / "same")
    assert [one.why for one in Report(same).cards] == ["", "", ""]
    assert read(write_report(same)).text.count("the same") == 1 + sum(not row.decision.kept for row in rows)


def test_subtitles_and_speech_are_told_apart(tmp_path: Path) -> None:
    make_run(tmp_path)
    rows = [
        SpokenWords(start_s=2.5, end_s=3.5, text="Read me.", origin="talk.srt", source="subtitles"),
        SpokenWords(start_s=2.6, end_s=3.6, text="Hear me.", origin="speech, whisper tiny", source="speech"),
    ]
    store.write_rows(tmp_path / store.WORDS, rows)
    shown = card(tmp_path, 2)
    assert (shown.words, shown.speech, shown.transcriber) == ("Read me.", "Hear me.", "whisper tiny")
    page = read(write_report(load_run(tmp_path)))
    assert "Subtitles around it:" in page.text
    assert "transcribed by" in page.text
    assert page.inside("q")[0].count("Read me.") == page.inside("q")[0].count("Hear me.") >= 1


def test_the_size_of_a_picture_is_said_where_it_is_not_the_video_s(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    rows = [frame.record for frame in run.keyframes]
    rows[1] = rows[1].model_copy(update={"width_px": 48, "height_px": 64})
    store.write_rows(tmp_path / store.KEYFRAMES, rows)
    cards = Report(load_run(tmp_path)).cards
    assert [one.size for one in cards] == ["", "48 × 64", ""]
    assert [one.is_tall for one in cards] == [False, True, False]


def test_cards_are_numbered_from_one_and_know_how_many_there_are(tmp_path: Path) -> None:
    make_run(tmp_path)
    assert [(one.number, one.of, one.name) for one in Report(load_run(tmp_path)).cards] == [
        (1, 3, "0:00.0"),
        (2, 3, "0:03.0"),
        (3, 3, "0:07.0"),
    ]
    assert Report(make_pictures(tmp_path / "pictures")).cards[1].name == "holiday 1.png"


def test_the_model_is_named_beside_the_engine_once_and_not_where_the_engine_says_it(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    first = description(run.keyframes[0].record)
    again = first.calls[0].model_copy(update={"model": "other"})
    rows = [
        first.model_copy(update={"calls": (*first.calls, again, *first.calls)}),
        description(run.keyframes[1].record, engine="openai:gpt-5-mini-2025-08-07"),
    ]
    store.write_rows(tmp_path / store.DESCRIPTIONS, rows)
    assert card(tmp_path, 1).author == "openai:gpt-5-mini · gpt-5-mini-2025-08-07 · other"
    assert card(tmp_path, 2).author == "openai:gpt-5-mini-2025-08-07"
    assert card(tmp_path, 3).author == ""


def test_most_pictures_higher_than_wide_make_a_portrait_page(tmp_path: Path) -> None:
    for name, widths, is_portrait in (("two", (48, 48, 80), True), ("one", (48, 80, 80), False), ("square", (64, 64, 64), False)):
        run = make_run(tmp_path / name)
        rows = [
            frame.record.model_copy(update={"width_px": width, "height_px": 64}) for frame, width in zip(run.keyframes, widths, strict=True)
        ]
        store.write_rows(tmp_path / name / store.KEYFRAMES, rows)
        assert Report(load_run(tmp_path / name)).is_portrait is is_portrait, name


def test_a_picture_of_a_keyframe_is_that_of_its_card(tmp_path: Path) -> None:
    """The wide keyframe in the middle is the wide picture in the middle."""
    run = make_run(tmp_path)
    store.write_picture(run.keyframes[1].path, picture(1, width_px=96, height_px=32))
    sizes = [(one.shown.card.width_px, one.shown.card.height_px) for one in Report(load_run(tmp_path)).cards if one.shown]
    assert sizes == [(64, 48), (96, 32), (64, 48)]


def test_hidden_boxes_have_a_switch_only_where_there_are_boxes(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    store.write_rows(tmp_path / store.KEYFRAMES, [frame.record.model_copy(update={"detections": ()}) for frame in run.keyframes])
    assert not Page("".join(write_report(load_run(tmp_path)).read_text(encoding="utf-8"))).of("input", id="show-boxes")
