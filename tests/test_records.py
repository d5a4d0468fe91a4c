"""Records: they come back from disk as they were, and what cannot be does not come to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from vip import store
from vip.records import (
    MOST_PIXELS,
    MOST_VIDEO_TIME_S,
    Call,
    Candidate,
    CandidateCounts,
    Decision,
    Description,
    Detection,
    Embeddings,
    Failure,
    Famous,
    Frame,
    Keyframe,
    Manifest,
    PacketIndex,
    Quality,
    Ratio,
    Record,
    Rule,
    VideoInfo,
)

for kind in (Manifest, VideoInfo):  # records are built when they are first used; hypothesis does not see fields that are left to it before
    kind.model_rebuild()

SHARES = st.floats(0, 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TIMES = st.floats(-MOST_VIDEO_TIME_S, MOST_VIDEO_TIME_S)
COUNTS = st.integers(0, 2**63 - 1)
PTS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=[]))  # with line ends, controls and halves of letters: names and captions may hold any
PLAIN = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name not in (".", "..")
)  # names of files
FRACTIONS = st.fractions(min_value=Fraction(1, 10**6), max_value=1000, max_denominator=10**6)
QUALITY = st.builds(Quality, sharpness=FINITE, brightness=SHARES, contrast=st.floats(0, 1))
DETECTION = st.builds(Detection, label=TEXT, score=SHARES, box_xyxy=st.tuples(FINITE, FINITE, FINITE, FINITE), source=TEXT)
DETECTIONS = st.lists(DETECTION, max_size=2).map(tuple)
NEIGHBOURS = st.lists(st.integers(0, 10**6), max_size=2).map(tuple)
STEP, SCORE = st.none() | st.integers(1, 10**6), st.none() | FINITE
DECISION = st.builds(
    Decision, kept=st.booleans(), rule=st.sampled_from(get_args(Rule)), reason=TEXT, step=STEP, score=SCORE, neighbours=NEIGHBOURS
)
CANDIDATE = st.builds(
    Candidate,
    index=st.integers(0, 10**6),
    pts=PTS,
    time_base=FRACTIONS,
    time_s=TIMES,
    is_sync=st.booleans(),
    quality=st.none() | QUALITY,
    detections=DETECTIONS,
    stands_in_for=st.none() | PTS,
    decision=DECISION,
)
KEYFRAME = st.builds(
    Keyframe,
    id=TEXT,
    video_id=PLAIN,
    time_s=st.none() | TIMES,
    pts=st.none() | PTS,
    image_path=st.lists(PLAIN, min_size=1, max_size=3).map("/".join),
    width_px=st.integers(1, 10**5),
    height_px=st.integers(1, 10**5),
    quality=QUALITY,
    detections=DETECTIONS,
    candidate=st.none() | st.integers(0, 10**6),
)
TOKENS = st.none() | st.integers(0, 10**9)
NAME = st.text(st.characters(exclude_categories=["Cs"]))  # the keys of settings and versions are no file names
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | FINITE | TEXT, lambda inner: st.lists(inner, max_size=2), max_leaves=3
)
CALL = st.builds(
    Call,
    engine=TEXT,
    model=TEXT,
    prompt=TEXT,
    prompt_version=TEXT,
    prompt_sha256=TEXT,
    parameters=st.dictionaries(NAME, JSON, max_size=2),
    tokens_in=TOKENS,
    tokens_out=TOKENS,
    usd=st.none() | st.floats(0, 10**6),
    latency_s=st.floats(0, 10**6),
    created_utc=TEXT,
)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
FAMOUS = st.builds(Famous, focus=TEXT, action=TEXT, mood=TEXT, objects=TEXTS, setting=TEXT)
DESCRIPTION = st.builds(
    Description,
    keyframe_id=TEXT,
    time_s=st.none() | TIMES,
    engine=TEXT,
    grounding=TEXTS,
    dense_caption=TEXT,
    famous=FAMOUS,
    calls=st.lists(CALL, max_size=2).map(tuple),
)
FAILURE = st.builds(Failure, item=TEXT, kind=TEXT, message=TEXT, exit_code=st.integers(1, 8))
VIDEO = st.builds(
    VideoInfo,
    path=TEXT,
    pixel_aspect_ratio=FRACTIONS,
    frame_rate=st.none() | FRACTIONS,
    duration_s_from_header=st.none() | TIMES,
    start_time_s=TIMES,
    end_time_s=TIMES,
    size_bytes=COUNTS,
    modified_ns=st.none() | PTS,
    width_px=st.integers(0, MOST_PIXELS),
    height_px=st.integers(0, MOST_PIXELS),
    rotation_deg=PTS,
    frames=st.none() | COUNTS,
    sync_frames=COUNTS,
)
MANIFEST = st.builds(
    Manifest,
    settings=st.dictionaries(NAME, JSON, max_size=2),
    backends=st.dictionaries(NAME, TEXT, max_size=2),
    video_id=PLAIN,
    video=VIDEO,
    notes=TEXTS,
    counts=st.none() | st.just(CandidateCounts(asked=2, candidates=5, bad=1, pruned=1, duplicates=1, keyframes=2)),
    captioning=st.none() | st.dictionaries(NAME, JSON, max_size=2),
    seconds=st.dictionaries(NAME, FINITE, max_size=2),
)
ANY_RECORD = st.one_of(CANDIDATE, KEYFRAME, DESCRIPTION, FAILURE, MANIFEST)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


# ---------------------------------------------------------------- on disk


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(rows=st.lists(ANY_RECORD, max_size=3))
def test_records_come_back_from_jsonl_as_they_were(folder: Path, rows: list[Record]) -> None:
    for kind in {type(row) for row in rows}:
        same = [row for row in rows if type(row) is kind]
        store.write_rows(folder / "rows.jsonl", same)
        assert list(store.read_rows(folder / "rows.jsonl", kind)) == same


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(manifest=MANIFEST)
def test_a_manifest_comes_back_as_it_was(folder: Path, manifest: Manifest) -> None:
    path = folder / "manifest.json"
    store.write_json(path, manifest)
    assert store.read_json(path, Manifest) == manifest


@settings(max_examples=50, deadline=None)
@given(row=ANY_RECORD)
def test_a_record_is_one_line(folder: Path, row: Record) -> None:
    path = folder / "line.jsonl"
    store.write_rows(path, [row])
    assert path.read_bytes().count(b"\n") == 1
    assert b'"schema_version":1' in path.read_bytes().replace(b": ", b":")


def test_a_time_base_is_exact() -> None:
    row = Failure(item="a", kind="b", message="c", exit_code=3)
    assert row.model_dump()["schema_version"] == 1
    third = Candidate(
        index=0,
        pts=1,
        time_base=Fraction(1, 3),
        time_s=1 / 3,
        is_sync=True,
        quality=None,
        decision=Decision(kept=True, rule="kept", reason=""),
    )
    assert Candidate.model_validate_json(third.model_dump_json()).time_base == Fraction(1, 3)


def test_records_are_frozen_and_know_their_fields() -> None:
    row = Failure(item="a", kind="b", message="c", exit_code=3)
    with pytest.raises(ValidationError):
        row.item = "b"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Failure(item="a", kind="b", message="c", exit_code=3, colour="red")  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        Failure(schema_version=2, item="a", kind="b", message="c", exit_code=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Detection(label="face", score=1.1, box_xyxy=(0, 0, 1, 1), source="s"),
        lambda: Detection(label="face", score=float("nan"), box_xyxy=(0, 0, 1, 1), source="s"),
        lambda: Quality(sharpness=1, brightness=-0.1, contrast=0),
        lambda: Quality(sharpness=1, brightness=0.1, contrast=-1),
        lambda: Decision(kept=False, rule="boring", reason=""),  # type: ignore[arg-type]
    ],
)
def test_measures_outside_their_range_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ValidationError):
        make()


@given(parts=st.tuples(*[st.integers(0, 50)] * 4), off=st.integers(-3, 3))
def test_counts_add_up_or_are_refused(parts: tuple[int, int, int, int], off: int) -> None:
    bad, pruned, duplicates, keyframes = parts
    values = {"asked": 9, "candidates": sum(parts) + off, "bad": bad, "pruned": pruned, "duplicates": duplicates, "keyframes": keyframes}
    if off == 0:
        assert CandidateCounts(**values).candidates == sum(parts)
    else:
        with pytest.raises(ValidationError, match="does not add up"):
            CandidateCounts(**values)


# ---------------------------------------------------------------- in memory


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 4), (1, 4, 6, 3)])
def test_a_frame_is_three_channels_of_bytes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected uint8 \(H, W, 3\), got uint8"):
        Frame(0, Fraction(1, 25), np.zeros(shape, np.uint8))
    with pytest.raises(ValueError, match="float32"):
        Frame(0, Fraction(1, 25), np.zeros((4, 6, 3), np.float32))  # type: ignore[arg-type]


@given(pts=st.integers(-(10**12), 10**12), time_base=FRACTIONS)
def test_the_time_of_a_frame_is_its_pts_times_its_time_base(pts: int, time_base: Fraction) -> None:
    assert Frame(pts, time_base, np.zeros((2, 2, 3), np.uint8)).time_s == float(pts * time_base)


def test_repr_shows_shapes_and_never_pixels() -> None:
    assert repr(Frame(7, Fraction(1, 5), np.zeros((720, 1280, 3), np.uint8))) == "Frame(time_s=1.400, image=(720, 1280, 3))"
    vectors = Embeddings(np.zeros((3, 8), np.float32), np.zeros((3, 2), np.float32), "m")
    assert repr(vectors) == "Embeddings(image=(3, 8), text=(3, 2), model='m')"
    assert len(vectors) == 3


def test_vectors_of_pictures_and_texts_belong_together() -> None:
    with pytest.raises(ValueError, match=r"got \(3, 8\) and \(2, 8\)"):
        Embeddings(np.zeros((3, 8), np.float32), np.zeros((2, 8), np.float32), "m")
    with pytest.raises(ValueError, match=r"got \(3,\)"):
        Embeddings(np.zeros(3, np.float32), np.zeros((3, 8), np.float32), "m")


def index(pts: list[int], sync: list[bool], shown: list[bool]) -> PacketIndex:
    column = np.asarray(pts, np.int64)
    return PacketIndex(column, column, np.asarray(sync, np.bool_), column, np.asarray(shown, np.bool_), Fraction(1, 25))


def test_a_packet_index_gives_shown_frames_in_time_order() -> None:
    packets = index([4, 0, 8, 2, 12], [True, True, False, False, True], [True, True, True, True, False])
    assert packets.shown_pts.tolist() == [0, 2, 4, 8]
    assert packets.sync_pts.tolist() == [0, 4]
    assert repr(packets) == "PacketIndex(packets=5, sync=3)"


@given(st.lists(st.tuples(st.integers(-(2**40), 2**40) | st.integers(0, 9), st.booleans(), st.booleans()), max_size=60))
def test_the_frames_that_are_shown_are_in_time_order_and_each_there_once(rows: list[tuple[int, bool, bool]]) -> None:
    pts, sync, shown = ([row[column] for row in rows] for column in range(3))
    packets = index(pts, sync, shown)
    assert packets.shown_pts.tolist() == sorted({stamp for stamp, _, is_shown in rows if is_shown})
    assert packets.sync_pts.tolist() == sorted({stamp for stamp, is_sync, is_shown in rows if is_sync and is_shown})
    assert packets.shown_pts.dtype == packets.sync_pts.dtype == np.int64


def test_the_frames_that_are_shown_are_sorted_once_and_a_changed_index_sorts_its_own() -> None:
    packets = index([4, 0, 8], [True, False, True], [True, True, True])
    assert packets.shown_pts is packets.shown_pts
    assert packets.sync_pts is packets.sync_pts
    hidden = replace(packets, is_shown=np.array([False, True, True]))
    assert (hidden.shown_pts.tolist(), hidden.sync_pts.tolist()) == ([0, 8], [8])
    assert packets.shown_pts.tolist() == [0, 4, 8]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"different lengths: \[2, 3\]"):
        index([0, 1, 2], [True, False], [True, True, True])


def test_famous_names_the_fields_that_say_nothing() -> None:
    said = Famous(focus="a dog", action="not determined", mood="Not determined.", objects=(), setting=" ")
    assert said.undetermined == ("action", "mood", "objects", "setting")
    assert said.model_copy(update={"action": "not determined, but it runs", "objects": ("", "dog")}).undetermined == ("mood", "setting")


@pytest.mark.parametrize("name", ["\ud800.jpg", "a\0b.jpg", "..", "a/../../b.jpg", "/etc/passwd"])
def test_a_picture_has_a_name_that_a_file_system_takes_and_that_leads_nowhere(name: str) -> None:
    row = {"id": "k", "video_id": "v", "time_s": 1, "pts": 1, "width_px": 1, "height_px": 1, "detections": None, "candidate": None}
    quality = {"sharpness": 1, "brightness": 0.5, "contrast": 0.1}
    with pytest.raises(ValidationError, match="leads out of the folder"):
        Keyframe.model_validate({**row, "quality": quality, "image_path": name})


IMPOSSIBLE = [
    *(("time_s", value) for value in (1e308, -1e31)),
    *(("pts", value) for value in (2**63, -(2**70), 10**400)),
    *(("width_px", value) for value in (0, -1, 2**32, 10**400)),
]


@pytest.mark.parametrize(("name", "value"), IMPOSSIBLE)
def test_numbers_that_no_video_has_are_refused(name: str, value: float) -> None:
    """What is computed from them would be infinite, or fill the memory."""
    row = {"id": "k", "video_id": "v", "time_s": 1, "pts": 1, "width_px": 1, "height_px": 1, "detections": None, "candidate": None}
    quality = {"sharpness": 1, "brightness": 0.5, "contrast": 0.1}
    with pytest.raises(ValidationError, match=name):
        Keyframe.model_validate({**row, "quality": quality, "image_path": "a.jpg", name: value})


@pytest.mark.parametrize("value", ["1e4000", "1/1e4000", 10**400, f"1/{10**30}"])
def test_a_ratio_has_64_bits(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Ratio).validate_python(value)
