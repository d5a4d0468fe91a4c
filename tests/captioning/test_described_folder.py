"""A folder while it is described: what is left, what is written, and that nothing of it is lost or mixed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.captioning.keyframes import PERSON, run_folder
from vip import store
from vip.captioning.describe import DeferredKeyframe, DescribedKeyframe, FailedKeyframe, KeyframeTask
from vip.captioning.described_folder import DescribedFolder
from vip.captioning.describer import RECIPES, CaptionFingerprint
from vip.errors import StoreError, UsageError
from vip.records import Description, Failure, Famous

HOW = CaptionFingerprint("e", "direct", "English", 0, None, ("p1",))


def fingerprint(**changed: Any) -> CaptionFingerprint:
    return HOW._replace(**changed)


def row(number: int, text: str = "A caption.", fingerprint: CaptionFingerprint = HOW) -> Description:
    names = RECIPES[fingerprint.recipe]  # type: ignore[index]
    return Description.model_validate(
        {
            "keyframe_id": f"a:{number:04d}",
            "time_s": 1.5 * number,
            **{name: getattr(fingerprint, name) for name in ("engine", "recipe", "language", "context", "topic")},
            "grounding": (),
            "dense_caption": text,
            "famous": Famous(focus="f", action="a", mood="m", objects=(), setting="s"),
            "calls": [call(name, sha256) for name, sha256 in zip(names, fingerprint.prompts, strict=True)],
        }
    )


def call(prompt: str, sha256: str) -> dict[str, Any]:
    usage = {"tokens_in": 1, "tokens_out": 1, "usd": None, "latency_s": 0, "created_utc": "2026-01-01T00:00:00+00:00"}
    return {"engine": "e", "model": "m", "prompt": prompt, "prompt_version": "1", "prompt_sha256": sha256, "parameters": {}, **usage}


def failure(number: int) -> Failure:
    return Failure(item=f"a:{number:04d}", kind="refusal", message="No.", exit_code=6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return run_folder(tmp_path / "a.vip", 5)


def folder(path: Path, fingerprint: CaptionFingerprint = HOW) -> DescribedFolder:
    return DescribedFolder(path, fingerprint, detector="test")


def tasks(one: DescribedFolder, *, with_known: bool = False) -> Iterator[KeyframeTask]:
    return one.tasks(with_known=with_known)


def described(path: Path, *numbers: int, fingerprint: CaptionFingerprint = HOW, end: bool = True) -> None:
    """By an earlier run, which came to its end or not."""
    one = folder(path, fingerprint)
    one.open()
    for task in tasks(one):
        if int(task.item.id[2:]) in numbers:
            one.add(DescribedKeyframe(task.item, row(int(task.item.id[2:]), fingerprint=fingerprint)))
    one.finish() if end else one.close()


def ids(path: Path) -> list[str]:
    return [one.keyframe_id[2:] for one in store.load_run(path).descriptions]


def test_every_keyframe_is_to_be_done_in_their_order(path: Path) -> None:
    one = folder(path)
    assert one.todo == one.keyframes == 5
    found = list(tasks(one))
    assert [(task.item.id, task.number, task.of, task.detector) for task in found] == [
        (f"a:{number:04d}", number + 1, 5, "test") for number in range(5)
    ]
    assert [task.previous.id if task.previous else None for task in found] == [None, *(f"a:{number:04d}" for number in range(4))]
    assert found[0].item.record.detections == (PERSON,)


@pytest.mark.parametrize("end", [True, False], ids=["finished", "killed"])
def test_what_is_described_is_left_out_but_is_still_the_one_before(end: bool, path: Path) -> None:
    described(path, 0, 2, end=end)
    one = folder(path)
    assert one.todo == 3
    assert [(task.item.id[2:], task.previous and task.previous.id[2:], task.number) for task in tasks(one)] == [
        ("0001", "0000", 2),
        ("0003", "0002", 4),
        ("0004", "0003", 5),
    ]


def test_for_a_context_what_is_described_comes_along(path: Path) -> None:
    described(path, 0, 2)
    assert [task.known.keyframe_id[2:] if task.known else None for task in tasks(folder(path), with_known=True)] == [
        *("0000", None, "0002", None, None),
    ]


def test_rows_come_in_any_order_and_end_in_that_of_the_keyframes(path: Path) -> None:
    one = folder(path)
    one.open()
    for task in reversed(list(tasks(one))):
        one.add(DescribedKeyframe(task.item, row(int(task.item.id[2:]))))
    assert one.is_over
    one.finish()
    assert ids(path) == ["0000", "0001", "0002", "0003", "0004"]
    assert not (path / store.JOURNAL).exists()


def test_each_row_is_in_the_journal_at_once(path: Path) -> None:
    one = folder(path)
    one.open()
    for count, task in enumerate(tasks(one), 1):
        one.add(DescribedKeyframe(task.item, row(int(task.item.id[2:]))))
        assert len(ids(path)) == count
    one.close()


def test_half_a_row_of_a_killed_run_is_no_row(path: Path) -> None:
    described(path, 0, 1, end=False)
    journal = path / store.JOURNAL
    journal.write_bytes(journal.read_bytes()[:-30])
    assert folder(path).todo == 4
    described(path, 1, 2, 3, 4)
    assert ids(path) == ["0000", "0001", "0002", "0003", "0004"]
    assert len((path / store.DESCRIPTIONS).read_bytes().splitlines()) == 5


def test_a_later_row_of_a_keyframe_counts(path: Path) -> None:
    described(path, 0)
    one = folder(path)
    one.open()
    one.append(row(0, "Corrected."))
    one.append(row(0, "Corrected again."))
    one.finish()
    assert [found.dense_caption for found in store.load_run(path).descriptions] == ["Corrected again."]


def test_rows_of_keyframes_that_are_no_more_go(path: Path) -> None:
    described(path, 0, 4)
    rows = [one.record for one in store.load_run(path).keyframes]
    store.write_rows(path / store.KEYFRAMES, rows[:4])
    one = folder(path)
    one.open()
    one.append(row(1))
    one.finish()
    assert ids(path) == ["0000", "0001"]


def test_keyframes_with_their_rows_come_one_by_one(path: Path) -> None:
    described(path, 1, 3)
    assert [(item.id, one.keyframe_id) for item, one in folder(path).rows_in_order()] == [("a:0001", "a:0001"), ("a:0003", "a:0003")]


def test_of_rows_that_were_made_otherwise_none_comes(path: Path) -> None:
    described(path, 0, 1, fingerprint=fingerprint(engine="f"))
    described(path, 1)
    assert [one.keyframe_id for _, one in folder(path).rows_in_order()] == ["a:0001"]


def test_half_a_row_among_the_finished_ones_is_damage(path: Path) -> None:
    described(path, 0, 1)
    whole = path / store.DESCRIPTIONS
    whole.write_bytes(whole.read_bytes()[:-30])
    with pytest.raises(StoreError, match=r"descriptions\.jsonl"):
        folder(path)


def test_what_another_process_described_meanwhile_is_not_described_again(path: Path) -> None:
    one = folder(path)
    described(path, 0, 2)
    one.open()
    assert one.todo == 3
    assert [task.item.id[2:] for task in tasks(one)] == ["0001", "0003", "0004"]
    one.close()


# ---------------------------------------------------------------- rounds


def test_another_round_begins_with_nothing_failed_and_nothing_postponed(path: Path) -> None:
    one = folder(path)
    one.open()
    first, second, third, *_ = tasks(one)
    one.add(DescribedKeyframe(first.item, row(0)))
    one.add(FailedKeyframe(second.item, failure(1)))
    one.add(DeferredKeyframe(third.item, b"question"))
    one.is_finished = True
    one.start_round()
    assert (one.failed, one.failures, one.deferred, one.is_finished, one.is_open) == (0, [], [], False, False)
    one.open()
    assert store.load_run(path).failures == []
    for task in tasks(one):
        assert not one.is_over
        one.add(DescribedKeyframe(task.item, row(int(task.item.id[2:]))))
    assert one.is_over
    one.finish()
    assert ids(path) == ["0000", "0001", "0002", "0003", "0004"]


def test_rows_that_a_killed_run_left_in_the_journal_are_still_to_be_put_in_order(path: Path) -> None:
    described(path, 0, 1, 2, 3, 4, end=False)
    one = folder(path)
    assert one.todo == 0
    assert not one.is_noted({})
    one.open()
    one.finish()
    assert folder(path).is_noted({})
    assert not folder(path).is_noted({"engine": "e"}), "the manifest does not say yet how they were made"


# ---------------------------------------------------------------- failures


def test_failures_are_written_at_once_and_those_of_the_run_before_are_gone(path: Path) -> None:
    store.write_rows(path / store.FAILURES, [failure(9)])
    one = folder(path)
    one.open()
    one.add(FailedKeyframe(list(tasks(one))[1].item, failure(1)))
    assert [found.item for found in store.load_run(path).failures] == ["a:0001"]
    one.close()
    assert (one.failed, [found.item for found in one.failures]) == (1, ["a:0001"])


def test_without_failures_no_file_is_left(path: Path) -> None:
    store.write_rows(path / store.FAILURES, [failure(9)])
    one = folder(path)
    one.open()
    one.close()
    assert not (path / store.FAILURES).exists()
    assert not (path / store.JOURNAL).exists()


def test_it_is_over_when_everything_was_tried(path: Path) -> None:
    one = DescribedFolder(path, HOW, detector=None, failures=(failure(7),))
    one.open()
    found = list(tasks(one))
    for task in found[:3]:
        one.add(DescribedKeyframe(task.item, row(int(task.item.id[2:]))))
    assert not one.is_over
    one.add(FailedKeyframe(found[3].item, failure(3)))
    assert not one.is_over
    one.add(DeferredKeyframe(found[4].item, b"question"))
    assert one.is_over
    assert one.failed == 2
    one.close()


def test_many_failures_are_not_all_held(path: Path) -> None:
    one = folder(path)
    one.open()
    for _ in range(50):
        one._fail(failure(1))
    one.close()
    assert (one.failed, len(one.failures)) == (50, 3)
    assert len(store.load_run(path).failures) == 50


# ---------------------------------------------------------------- others' descriptions


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (fingerprint(engine="f"), "described by f, and now e is asked"),
        (fingerprint(recipe="paper", prompts=("1", "2", "3")), r"described by e \(recipe paper\), and now e \(recipe direct\) is asked"),
        (fingerprint(language="German"), r"described by e \(German\), and now e \(English\) is asked"),
        (fingerprint(context=2), r"described by e \(context 2\), and now e \(context 0\) is asked"),
        (fingerprint(topic="Surfing"), r"described by e \(topic 'Surfing'\), and now e \(no topic\) is asked"),
        (fingerprint(prompts=("p2",)), r"described by e \(other prompts\), and now e \(these prompts\) is asked"),
    ],
)
def test_descriptions_of_two_kinds_are_not_mixed(other: CaptionFingerprint, words: str, path: Path) -> None:
    described(path, 0, 1, fingerprint=other)
    one = folder(path)
    with pytest.raises(UsageError, match=f"{words}.*--overwrite"):
        one.check(overwrite=False)
    one.check(overwrite=True)
    assert one.todo == 5


def test_to_overwrite_replaces_each_as_it_comes_and_keeps_the_same_kind(path: Path) -> None:
    described(path, 0, 1, 2, fingerprint=fingerprint(engine="f"))
    described(path, 1)
    assert folder(path).todo == 4
    assert [one.engine for one in store.load_run(path).descriptions] == ["f", "e", "f"]


# ---------------------------------------------------------------- what it cost


def noted(path: Path) -> dict[str, float]:
    """Put what the folder spent into its manifest, as `vip.captioning.caption_job` does."""
    one = folder(path)
    one.usage.requests, one.usage.usd, one.usage.tokens_in = 3, 0.1, 100
    manifest = store.load_run(path).manifest
    assert manifest is not None
    usage = dict(one.spent_in_all)
    store.write_json(path / store.MANIFEST, manifest.model_copy(update={"captioning": {"spent": usage}}))
    return usage


def test_what_was_spent_adds_up_over_runs(path: Path) -> None:
    described(path, 0)
    assert noted(path)["usd"] == pytest.approx(0.1)
    assert noted(path)["usd"] == pytest.approx(0.2)
    assert noted(path)["requests"] == 9
    assert json.loads((path / store.MANIFEST).read_text())["captioning"]["spent"]["tokens_in"] == 300


def test_what_others_spent_on_what_was_replaced_does_not_count(path: Path) -> None:
    described(path, 0, fingerprint=fingerprint(engine="f"))
    noted(path)
    assert noted(path)["requests"] == 3


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 1)
    one = folder(path)
    (path / store.JOURNAL).mkdir()
    with pytest.raises(StoreError, match=r"descriptions\.partial\.jsonl cannot be read: Is a directory"):
        one.open()
    one.close()


def test_what_was_replaced_already_stands_in_nobodys_way(path: Path) -> None:
    described(path, 0, fingerprint=fingerprint(engine="f"))
    with pytest.raises(UsageError, match="overwrite"):
        folder(path).check(overwrite=False)
    described(path, 0, end=False)
    one = folder(path)
    one.check(overwrite=False)
    assert one.todo == 4


# ---------------------------------------------------------------- measured and asked

OFFLINE = fingerprint(engine="offline")
ASKED = fingerprint(engine="openai:m")


def paid(path: Path, number: int, usd: float) -> None:
    """Put a description into the folder that cost something."""
    priced = {**call("direct", "p1"), "usd": usd}
    one = row(number, fingerprint=ASKED)
    store.write_rows(path / store.DESCRIPTIONS, [one.model_copy(update={"calls": (one.calls[0].model_copy(update=priced),)})])


def test_measured_text_gives_way_to_any_engine(path: Path) -> None:
    described(path, 0, 1, 2, 3, 4, fingerprint=OFFLINE)
    one = folder(path, ASKED)
    one.check(overwrite=False)
    assert one.todo == 5
    described(path, 0, 1, 2, 3, 4, fingerprint=ASKED)
    assert {one.engine for one in store.load_run(path).descriptions} == {"openai:m"}


def test_measured_text_that_was_made_otherwise_gives_way_to_measured_text(path: Path) -> None:
    described(path, 0, 1, fingerprint=OFFLINE)
    one = folder(path, fingerprint(engine="offline", recipe="paper", prompts=("p1", "p2", "p3")))
    one.check(overwrite=False)
    assert one.todo == 5, "all are made again"


def test_offline_over_what_was_paid_for_says_what_would_be_lost(path: Path) -> None:
    paid(path, 3, 0.0123)
    with pytest.raises(UsageError, match=r"holds 1 description by openai:m \(\$0\.0123\), which --engine offline would repl"):
        folder(path, OFFLINE).check(overwrite=False)
    folder(path, OFFLINE).check(overwrite=True)


def test_all_calls_of_all_descriptions_are_in_what_would_be_lost(path: Path) -> None:
    prices = (0.25, None, 1.0), (None,)
    rows = [
        one.model_copy(update={"calls": tuple(one.calls[0].model_copy(update={"usd": usd}) for usd in paid_for)})
        for one, paid_for in zip((row(0, fingerprint=ASKED), row(1, fingerprint=ASKED)), prices, strict=True)
    ]
    store.write_rows(path / store.DESCRIPTIONS, rows)
    with pytest.raises(UsageError, match=r"holds 2 descriptions by openai:m \(\$1\.25\), which"):
        folder(path, OFFLINE).check(overwrite=False)


def test_auto_without_a_key_does_not_keep_what_was_measured_otherwise(path: Path) -> None:
    described(path, 0, fingerprint=OFFLINE)
    described(path, 1, fingerprint=fingerprint(engine="offline", recipe="paper", prompts=("p1", "p2", "p3")))
    one = DescribedFolder(path, OFFLINE, detector="test", keeps_asked=True)
    assert (one.todo, one.kept_note) == (4, "")


def test_auto_without_a_key_keeps_what_was_asked_for_and_fills_the_gaps(path: Path) -> None:
    described(path, 0, 2, fingerprint=ASKED)
    one = DescribedFolder(path, OFFLINE, detector="test", keeps_asked=True)
    one.check(overwrite=False)
    one.check(overwrite=True)
    assert one.kept_note == f"{path} keeps its 2 descriptions by openai:m."
    assert one.todo == 3
    assert [task.item.id[2:] for task in tasks(one)] == ["0001", "0003", "0004"]


def test_what_filled_a_gap_gives_way_again(path: Path) -> None:
    described(path, 0, fingerprint=ASKED)
    store.write_rows(path / store.JOURNAL, [row(1, fingerprint=OFFLINE)])
    one = folder(path, ASKED)
    one.check(overwrite=False)
    assert one.todo == 4


def test_the_first_change_takes_the_page_away_that_no_longer_shows_the_folder(path: Path) -> None:
    (path / store.REPORT).write_text("old")
    one = folder(path)
    one.open()
    assert (path / store.REPORT).exists()
    one.add(DescribedKeyframe(next(tasks(one)).item, row(0)))
    assert not (path / store.REPORT).exists()
    one.close()
