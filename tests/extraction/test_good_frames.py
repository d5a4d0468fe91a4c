"""Good frames: neither bad nor copies of a good one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.extraction.analyses import TIME_BASE, analysis, measured
from tests.extraction.test_spread import frames as changing
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.good_frames import by_picture_only, good_frames, likely_keyframes, prunable
from vip.protocols import TEXT_WEIGHT, DistinctPictures
from vip.records import Detection, Embeddings

SAME = np.full((18, 32, 3), 100, np.uint8)


def test_of_equal_pictures_the_sharpest_that_is_not_bad_stays() -> None:
    frames = [
        analysis(0, signature=SAME, measured=measured(300.0), in_transition=True),
        analysis(40, signature=SAME, measured=measured(100.0)),
        analysis(80, signature=SAME, measured=measured(200.0), stands_in_for=0),
        analysis(120),
    ]
    assert good_frames(frames, None) == [2, 3]


def test_what_is_less_sharp_than_asked_is_not_good() -> None:
    assert good_frames([analysis(0, measured=measured(50.0)), analysis(40, measured=measured(90.0))], 60.0) == [1]


def test_a_pruner_sees_of_each_chosen_frame_what_was_measured_of_it() -> None:
    face = Detection(label="person", score=0.9, box_xyxy=(0.1, 0.1, 0.3, 0.3), source="test")
    frames = [
        analysis(0),
        analysis(40, measured=measured(70.0), in_transition=True, detections=(face,), signature=SAME),
        analysis(80, measured=measured(90.0), detections=None),
    ]
    vectors = np.eye(3, dtype=np.float32)
    embeddings, pictures = Embeddings(vectors, vectors[::-1].copy(), "x"), DistinctPictures([0, 0], [1], [])
    seen = prunable(frames, embeddings, [1, 2], text_weight=0.25, relevance=[0.1, 0.2, 0.3], pictures=pictures)
    assert (list(seen.times_s), list(seen.has_people), list(seen.sharpness)) == ([0.04, 0.08], [True, False], [70.0, 90.0])
    assert (list(seen.in_transition), seen.text_weight, list(seen.relevance or ())) == ([True, False], 0.25, [0.2, 0.3])
    assert seen.signatures is not None
    assert np.array_equal(seen.signatures[0], SAME)
    assert len(seen.signatures) == 2
    assert np.array_equal(seen.embeddings.image, vectors[1:])
    assert np.array_equal(seen.embeddings.text, vectors[1::-1])
    assert (seen.embeddings.model, seen.pictures) == ("x", pictures)
    plain = prunable(frames, embeddings, [])
    assert (len(plain), plain.text_weight, plain.relevance, plain.signatures, plain.pictures) == (0, TEXT_WEIGHT, None, None, None)


def test_before_any_text_is_known_all_texts_are_alike() -> None:
    frames = [analysis(0), analysis(40)]
    found = by_picture_only(frames)
    assert np.array_equal(found.image, np.stack([frame.vector for frame in frames]))
    assert (found.text @ found.text.T == 1).all()


def test_keyframes_that_are_likely_come_in_time_order_and_from_good_frames_alone() -> None:
    angles = np.radians([0.0, 1.0, 80.0, 81.0, 160.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    sharp = [50.0, 300.0, 100.0, 400.0, 200.0]
    frames = [analysis(40 * row, vector=vectors[row], measured=measured(sharp[row])) for row in range(5)]
    assert [frame.pts for frame in likely_keyframes(frames, keyframes=3, min_sharpness=60.0, redundant=0.9)] == [40, 120, 160]
    assert len(likely_keyframes(frames, keyframes=1, min_sharpness=None, redundant=0.9)) == 1
    assert len(likely_keyframes(frames, keyframes=9, min_sharpness=None, redundant=0.9)) == 5
    assert likely_keyframes(frames, keyframes=3, min_sharpness=1000.0, redundant=0.9) == []
    assert likely_keyframes([], keyframes=3, min_sharpness=None, redundant=0.9) == []


def turned(degrees: Sequence[float], times_s: Sequence[float], signatures: Sequence[np.ndarray] | None = None) -> list[FrameAnalysis]:
    """Frames that are equally sharp; the cosine of two pictures is that of the angle between them."""
    angles = np.radians(degrees)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    frames = [
        analysis(round(time_s / float(TIME_BASE)), vector=vector, view=vector, measured=measured(100.0))
        for time_s, vector in zip(times_s, vectors, strict=True)
    ]
    return [replace(frame, signature=one) for frame, one in zip(frames, signatures, strict=True)] if signatures is not None else frames


def test_a_frame_for_which_one_of_two_alike_goes_is_likely_to_be_kept() -> None:
    frames = turned([*range(0, 100, 4), 130, 160, 190], [*range(0, 1000, 40), 999, 999.1, 999.2])
    likely = likely_keyframes(frames, keyframes=4, min_sharpness=None, redundant=0.99)
    assert likely == [frames[row] for row in (0, 17, 25, 27)]


def test_a_frame_that_fills_a_long_gap_is_likely_to_be_kept() -> None:
    frames = turned([*range(0, 120, 15), *[160.0] * 15, 169.0, *[160.0] * 16], range(40), changing(40, alike=8).signatures)
    likely = likely_keyframes(frames, keyframes=5, min_sharpness=None, redundant=0.9)
    assert frames[23] in likely
    assert len(likely) == 5
