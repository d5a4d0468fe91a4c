"""From what was seen to the files of a run: rows, counts, notes and the manifest."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from tests.captioning.keyframes import manifest as any_manifest
from tests.extraction.analyses import TIME_BASE, analysis, measured
from vip import store
from vip.config import ExtractSettings
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.select import select
from vip.extraction.video_analysis import VideoAnalysis
from vip.extraction.write_selection import write_selection
from vip.protocols import Prunable, PrunedFrame, PrunerCapabilities, PruningResult, SilentObserver
from vip.records import Detection, Embeddings, Manifest, Origin, VideoInfo
from vip.store import Run

CUP = Detection(label="cup", score=0.5, box_xyxy=(0.1, 0.1, 0.2, 0.2), source="cups")
VIDEO = any_manifest().video


class Drops:
    """A pruner that drops these rows, and remembers what it was given."""

    name = "drops"
    capabilities = PrunerCapabilities()

    def __init__(self, *drops: PrunedFrame, curve: Sequence[tuple[int, float]] = ()) -> None:
        self.thinned = PruningResult(drops, "kept: told so", 0.75, curve=curve)

    def prune(self, frames: Prunable, *, keep: int | None, redundant: float) -> PruningResult:
        self.given = frames, keep, redundant
        return self.thinned


class Listener(SilentObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def drop(row: int, *neighbours: int) -> PrunedFrame:
    return PrunedFrame(row, step=1, score=0.5, neighbours=neighbours, reason="dropped: told so")


def seen(analyses: Sequence[FrameAnalysis], **changed: Any) -> VideoAnalysis:
    vectors = np.array([each.vector for each in analyses], np.float32)
    plain = VideoAnalysis(
        analyses,
        Embeddings(vectors, np.ones((len(analyses), 1), np.float32), "test"),
        undecodable=[],
        sync=frozenset(),
        time_base=TIME_BASE,
        video=VIDEO,
        backends={"detector": "cups", "pruner": "drops"},
        redundant=0.625,
        losses=(),
    )
    return replace(plain, **changed)


def decided(
    folder: Path, found: VideoAnalysis, pruner: Drops | None = None, *, settings: dict[str, Any] | None = None, **more: Any
) -> Manifest:
    asked = ExtractSettings(**{"keyframes": 9, **(settings or {})})
    found = replace(found, relevance=more.pop("relevance", None))
    more = {"observer": SilentObserver(), "video_id": "v", "start": perf_counter(), **more}
    return write_selection(folder, found, select(found, asked, pruner or Drops()), asked, **more)


def last_note(folder: Path, found: VideoAnalysis, pruner: Drops | None = None, **settings: Any) -> str:
    notes = decided(folder, found, pruner, settings=settings).notes
    return notes[-1] if notes else ""


# ---------------------------------------------------------------- rows


def test_each_candidate_has_a_row_in_time_order_also_one_that_could_not_be_decoded(tmp_path: Path) -> None:
    analyses = [analysis(0, detections=(CUP,)), analysis(40), analysis(80, stands_in_for=60), analysis(120, detections=None)]
    found = seen(analyses, undecodable=[60], sync=frozenset({0, 60}))
    decided(tmp_path, found, Drops(drop(2, 1, 3)), relevance=[0.1, 0.2, 0.3, 0.4])
    rows = Run(tmp_path).candidates
    assert [(row.index, row.pts, row.time_s) for row in rows] == [(0, 0, 0.0), (1, 40, 0.04), (2, 60, 0.06), (3, 80, 0.08), (4, 120, 0.12)]
    assert [row.is_sync for row in rows] == [True, False, True, False, False]
    assert [row.detections for row in rows] == [(CUP,), (), None, (), None]
    assert [row.stands_in_for for row in rows] == [None, None, None, 60, None]
    assert [row.relevance for row in rows] == [0.1, 0.2, None, 0.3, 0.4]
    assert [row.quality.sharpness if row.quality else None for row in rows] == [100, 140, None, 180, 220]
    assert {row.time_base for row in rows} == {Fraction(1, 1000)}
    assert [row.decision.rule for row in rows] == ["kept", "kept", "unreadable", "pruned", "kept"]
    assert rows[2].decision.reason == "dropped: could not be decoded"
    assert rows[3].decision.neighbours == (1, 4), "rows of candidates.jsonl, where the lost one counts"


def test_thumbnails_are_named_by_row_and_a_lost_frame_has_none(tmp_path: Path) -> None:
    decided(tmp_path, seen([analysis(0), analysis(80)], undecodable=[40]))
    with zipfile.ZipFile(tmp_path / store.THUMBNAILS) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "000000.jpg": b"thumbnail of 0",
            "000002.jpg": b"thumbnail of 80",
        }


def test_without_a_question_no_row_has_a_relevance(tmp_path: Path) -> None:
    decided(tmp_path, seen([analysis(0)]))
    assert Run(tmp_path).candidates[0].relevance is None


# ---------------------------------------------------------------- what the choice goes by


def test_the_pruner_is_given_what_the_settings_say(tmp_path: Path) -> None:
    pruner = Drops()
    analyses = [
        analysis(0, detections=(CUP,)),
        analysis(40, detections=(CUP,)),
        analysis(80),
        analysis(120, detections=(CUP,), measured=measured(50.0)),
    ]
    decided(
        tmp_path, seen(analyses), pruner, settings={"keyframes": 5, "text_weight": 0.25, "min_objects": 1, "min_sharpness": 60.0},
        relevance=[0.5, 0.25, 0.75, 0.125],
    )  # fmt: skip
    frames, keep, redundant = pruner.given
    assert (frames.text_weight, keep, redundant) == (0.25, 5, 0.625)
    assert list(frames.relevance or ()) == [0.5, 0.25]
    rules = ["kept", "kept", "too_few_objects", "below_min_sharpness"]
    assert [row.decision.rule for row in Run(tmp_path).candidates] == rules


def test_auto_leaves_the_number_to_the_pruner(tmp_path: Path) -> None:
    pruner = Drops()
    manifest = decided(tmp_path, seen([analysis(0)]), pruner, settings={"keyframes": "auto"})
    assert pruner.given[1] is None
    assert manifest.counts is not None
    assert manifest.counts.asked is None
    assert manifest.notes == ()


# ---------------------------------------------------------------- counts and notes


def with_frames(frames: int | None) -> VideoInfo:
    return VIDEO.model_copy(update={"frames": frames})


BLACK = {"measured": measured(0.0, contrast=0.0, not_dark=0.0, bright=0.0, bright_in_middle=0.0)}


def test_the_counts_tell_bad_ones_copies_and_pruned_ones_apart(tmp_path: Path) -> None:
    analyses = [
        analysis(0),
        analysis(40, **BLACK),
        analysis(80),
        analysis(120, signature=analysis(80).signature),
        analysis(160),
        analysis(200),
    ]
    manifest = decided(tmp_path, seen(analyses, undecodable=[20]), Drops(drop(0, 1), drop(2, 1)))
    assert manifest.counts is not None
    counts = manifest.counts.model_dump()
    assert counts == {"asked": 9, "candidates": 7, "bad": 2, "pruned": 2, "duplicates": 1, "keyframes": 2}
    assert manifest.notes == (
        "2 of the 9 keyframes asked for: of 7 candidates 2 are too alike for the pruner drops,"
        " 1 shows the same picture as another and 2 are bad.",
    )


@pytest.mark.parametrize(
    ("frames", "asked", "words"),
    [
        (100, 5, "2 of the 5 keyframes asked for: there are 2 candidates."),
        (None, 5, "2 of the 5 keyframes asked for: there are 2 candidates."),
        (2, 5, "2 of the 5 keyframes asked for: the video has 2 frames."),
        (2, 2, ""),
        (100, 1, ""),
    ],
)
def test_fewer_keyframes_than_asked_have_a_reason(tmp_path: Path, frames: int | None, asked: int, words: str) -> None:
    assert last_note(tmp_path, seen([analysis(0), analysis(40)], video=with_frames(frames)), keyframes=asked) == words


def test_one_reason_and_two_reasons_read_as_sentences(tmp_path: Path) -> None:
    analyses = [analysis(0), analysis(40, **BLACK), analysis(80)]
    (tmp_path / "two").mkdir()
    assert last_note(tmp_path, seen(analyses)) == "2 of the 9 keyframes asked for: of 3 candidates 1 is bad."
    two = last_note(tmp_path / "two", seen(analyses), Drops(drop(1, 0)))
    assert two == "1 of the 9 keyframes asked for: of 3 candidates 1 is too alike for the pruner drops and 1 is bad."


def test_a_detector_that_knows_nothing_about_good_candidates_is_named(tmp_path: Path) -> None:
    unknown = {"detections": None}
    analyses = [analysis(0), analysis(40, **unknown), analysis(80, **unknown), analysis(120, **BLACK, **unknown)]
    manifest = decided(tmp_path, seen(analyses), Drops(drop(1, 0)), settings={"keyframes": 2})
    assert manifest.notes == ("cups knows nothing about 2 of the 3 good candidates.",)


def test_losses_come_first_and_every_note_is_told(tmp_path: Path) -> None:
    listener = Listener()
    found = seen([analysis(0), analysis(40, detections=None)], losses=("The end is missing.",))
    manifest = decided(tmp_path, found, settings={"keyframes": 2}, observer=listener)
    assert manifest.losses == ("The end is missing.",)
    assert manifest.notes == ("The end is missing.", "cups knows nothing about 1 of the 2 good candidates.")
    assert listener.notes == list(manifest.notes)


def test_a_video_of_bad_frames_alone_says_so_in_its_run(tmp_path: Path) -> None:
    analyses = [analysis(pts, measured=measured(50.0, not_dark=0.0, bright=0.0, bright_in_middle=0.0)) for pts in (0, 40)]
    assert last_note(tmp_path, seen(analyses), keyframes=2) == "Every frame that was looked at is nearly black; the best of them are kept."


# ---------------------------------------------------------------- the manifest


def test_the_manifest_says_how_the_run_came_about(tmp_path: Path) -> None:
    origin = Origin(run="old.vip", created_utc="2026-01-01T00:00:00+00:00")
    found = seen([analysis(0)], device="cuda in fp16")
    manifest = decided(tmp_path, found, settings={"keyframes": 1, "min_sharpness": 5.0}, origin=origin, start=perf_counter() - 5)
    assert (manifest.video_id, manifest.device, manifest.selected_from, manifest.video) == ("v", "cuda in fp16", origin, VIDEO)
    assert manifest.backends == {"detector": "cups", "pruner": "drops"}
    assert manifest.settings["min_sharpness"] == 5.0
    assert 5 <= manifest.seconds["select"] < 60
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", manifest.created_utc)
    assert Run(tmp_path).manifest == manifest
    assert store.is_own(manifest)


def test_the_manifest_of_a_video_that_the_user_did_not_name_is_not_signed(tmp_path: Path) -> None:
    assert not store.is_own(decided(tmp_path, seen([analysis(0)]), is_own=False))


def test_the_curve_has_every_small_number_and_of_large_ones_each_a_tenth_larger_and_the_last(tmp_path: Path) -> None:
    curve = [(count, 1 - count / 30_000) for count in range(120, 0, -1)]
    pruning = decided(tmp_path, seen([analysis(0)]), Drops(curve=curve)).pruning
    assert pruning is not None
    assert (pruning.redundant, pruning.bound) == (0.625, 0.75)
    assert list(pruning.curve) == [*range(1, 33), 36, 40, 44, 49, 54, 60, 66, 73, 81, 90, 100, 111, 120]
    assert pruning.curve[7] == 0.9998, "rounded to four digits"


def test_a_curve_may_begin_anywhere_and_be_empty(tmp_path: Path) -> None:
    pruning = decided(tmp_path, seen([analysis(0)]), Drops(curve=[(500, 0.25)])).pruning
    assert pruning is not None
    assert pruning.curve == {500: 0.25}
