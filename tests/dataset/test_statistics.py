"""What a data card counts: nothing is lost, nothing twice, however the videos lie in shards, and in little memory."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import asdict, replace
from itertools import count as counting
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.making import sample, samples
from vip.caption_length import tokens_in
from vip.corpus.card.counts import DataSetCounts, count, keyframes_of
from vip.dataset.rows import VideoSample
from vip.dataset.schema import rows_of
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import Format, read_shards, write_shard
from vip.dataset.statistics import (
    COUNTED_COLUMNS,
    MOST_LETTERS,
    MOST_NAMES,
    Histogram,
    KeyframeStatistics,
    ModelUse,
    NameCounts,
    VideoStatistics,
)
from vip.records import Check, Failure, Verification

FORMATS: tuple[Format, ...] = ("parquet", "webdataset")
NUMBER = counting()


def of_clips(some: list[VideoSample]) -> tuple[VideoStatistics, KeyframeStatistics]:
    """What the clips say before they are written."""
    videos, keyframes = VideoStatistics(), KeyframeStatistics()
    for one in some:
        videos.add(one.video)
        for row in rows_of(one):
            keyframes.add(row, one.video)
    return videos, keyframes


# ---------------------------------------------------------------- bins and names


def test_counts_that_do_not_fit_the_bins_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a count for each of 2 bins, got 3"):
        Histogram((0.0, 1.0), [1, 2, 3])


def test_a_keyframe_of_which_video_or_time_is_unknown_has_no_place_in_it() -> None:
    one = sample(count=2, file=None, duration_s=10.0)
    first, second = rows_of(one)
    found = KeyframeStatistics()
    found.add(first, None)
    found.add({**first, "time_s": None}, one.video)
    found.add(first, one.video.model_copy(update={"duration_s": None}))
    assert (found.keyframes, found.positions.count, found.positions.unknown) == (3, 0, 3)
    found.add(second, one.video)
    assert (found.positions.counts[8], found.positions.mean) == (1, 0.4)


@given(st.lists(st.none() | st.floats()))
def test_each_value_is_in_one_bin_or_unknown(values: list[float | None]) -> None:
    histogram = Histogram((0.0, 1.0, 10.0))
    for value in values:
        histogram.add(value)
    assert histogram.count + histogram.unknown == len(values)
    finite = [value for value in values if value is not None and abs(value) < float("inf")]
    assert histogram.counts == [sum(v < 1 for v in finite), sum(1 <= v < 10 for v in finite), sum(v >= 10 for v in finite)]


def test_bins_of_two_shards_are_added_up() -> None:
    one, other = Histogram((0.0, 1.0), [1, 2], total=3.5, unknown=4), Histogram((0.0, 1.0), [10, 20], total=30.0, unknown=40)
    one.merge(other)
    assert one == Histogram((0.0, 1.0), [11, 22], total=33.5, unknown=44)


@given(st.lists(st.text(max_size=3)), st.integers(1, 5))
def test_names_that_are_too_many_are_counted_together(names: list[str], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vip.dataset.statistics.MOST_NAMES", most)
        counted = NameCounts()
        for name in names:
            counted.add(name)
    assert counted.total == len(names)
    assert len(counted.counts) <= most


def test_names_of_two_shards_are_added_up_the_most_frequent_first() -> None:
    one, other = NameCounts({"c": 1, "b": 2}, others=3), NameCounts({"b": 1, "a": 1}, others=4)
    one.merge(other)
    assert (one.counts, one.others, one.total) == ({"a": 1, "b": 3, "c": 1}, 7, 12)
    assert one.most() == [("b", 3), ("a", 1), ("c", 1)]
    assert one.most(2) == [("b", 3), ("a", 1)]


def test_hostile_names_take_little_room() -> None:
    counted = NameCounts()
    for number in range(10_000):
        counted.add(f"{number}" + "x" * 100_000)
    assert len(counted.counts) == MOST_NAMES
    assert max(map(len, counted.counts)) == MOST_LETTERS


def test_what_was_answered_before_cost_nothing_and_what_is_not_known_is_not_zero() -> None:
    use = ModelUse()
    call = {"engine": "openai", "created_utc": "2026-01-02", "tokens_in": 100, "tokens_out": 20, "usd": 0.5, "cached": False}
    for changed in ({}, {"cached": True}, {"usd": None}, {"tokens_out": None, "created_utc": "2026-01-01"}):
        use.add({**call, **changed})
    wanted = {"calls": 4, "cached": 1, "unpriced": 1, "uncounted": 1, "tokens_in": 300, "tokens_out": 40, "usd": 1.0}
    assert asdict(use) == {**wanted, "first_utc": "2026-01-01", "last_utc": "2026-01-02"}


def test_what_a_model_cost_is_added_up_over_shards_and_those_of_a_shard_stay_as_they_are() -> None:
    first, second, both = (KeyframeStatistics() for _ in range(3))
    call = {"engine": "openai", "created_utc": "2026-01-02", "tokens_in": 100, "tokens_out": 20, "usd": 0.5, "cached": False}
    for shard, models in ((first, ("a",)), (second, ("a", "b"))):
        for model in models:
            shard.models[model] = ModelUse()
            shard.models[model].add(call)
    for shard in (first, second, second):
        both.merge(shard)
    assert {model: (use.calls, use.tokens_in, use.tokens_out, use.usd) for model, use in both.models.items()} == {
        "a": (3, 300, 60, 1.5),
        "b": (2, 200, 40, 1.0),
    }
    assert first.models["a"].calls == second.models["a"].calls == second.models["b"].calls == 1


def test_the_engine_that_needs_no_server_has_a_price() -> None:
    use = ModelUse()
    use.add({"engine": "offline", "created_utc": "2026-01-02", "tokens_in": None, "tokens_out": None, "usd": None, "cached": False})
    assert (use.calls, use.unpriced, use.uncounted) == (1, 0, 0)


# ---------------------------------------------------------------- videos and keyframes


@pytest.mark.parametrize("format", FORMATS)
def test_the_rows_of_a_shard_count_as_its_sidecar_says(tmp_path: Path, format: Format) -> None:  # noqa: A002
    some = [sample("v0"), sample("v1", described=False)]
    info = write_shard(str(tmp_path), 0, some, format)
    assert keyframes_of(str(tmp_path), info) == info.counts == of_clips(some)[1]
    assert (info.counts.keyframes, info.counts.described) == (6, 3)
    counts = count(str(tmp_path))
    assert (counts.shards, counts.bytes, counts.files, counts.broken) == (1, info.bytes, {format: info.file}, 0)
    assert counts.videos == of_clips(some)[0]


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=40)
@given(data=st.data())
def test_shards_count_as_the_clips_in_them(data: st.DataObject, format: Format) -> None:  # noqa: A002
    some = [data.draw(samples(st.just(f"v{number}"))) for number in range(data.draw(st.integers(1, 4)))]
    split = data.draw(st.integers(0, len(some)))
    out = f"memory://card-{next(NUMBER)}"
    for number, part in enumerate((some[:split], some[split:])):
        if part:
            write_shard(out, number, part, format)
    counts = count(out)
    videos, keyframes = of_clips(some)
    assert (counts.videos, counts.broken) == (videos, 0)
    assert counts.keyframes.positions.total == pytest.approx(keyframes.positions.total)
    counts.keyframes.positions.total = keyframes.positions.total  # added up in another order
    assert counts.keyframes == keyframes
    captions = [frame.description.dense_caption for one in some for frame in one.frames if frame.description]
    assert (counts.keyframes.described, counts.keyframes.tokens.total) == (len(captions), sum(map(tokens_in, captions)))


def test_few_columns_are_enough() -> None:
    one, keyframes = sample(), KeyframeStatistics()
    for row in rows_of(one):
        keyframes.add({name: row[name] for name in COUNTED_COLUMNS}, one.video)
    assert keyframes == of_clips([one])[1]


def test_a_video_counts_in_each_of_its_verticals_and_subtitles() -> None:
    videos = VideoStatistics()
    told = {"verticals": ("Sports", "News"), "subtitles": {"en": "", "de": ""}, "info": {"license": "CC\nBY"}}
    for changed in (told, {}, {"info": {"license": " "}}, {"info": {"license": 3}}):
        videos.add(sample(**changed).video)
    assert videos.verticals.counts == {"Sports": 1, "News": 1, "(Unknown)": 3}
    assert (videos.subtitles.counts, videos.subtitled) == ({"en": 1, "de": 1}, 1)
    assert videos.licences.counts == {"CC BY": 1, "not known": 3}


def test_notes_that_differ_in_numbers_count_together_and_topics_are_no_settings() -> None:
    videos = VideoStatistics()
    for number in (3, 4):
        notes = (f"{number} keyframes instead of 12.5: all.", f"{number + 9} keyframes instead of 12: all.")
        private = {"topic": f"dogs {number}", "spent": number, "base_url": "http://host", "key_file": "/home/me/key"}
        videos.add(sample(notes=notes, captioning={**private, "recipe": "direct"}).video)
    assert videos.notes.counts == {"… keyframes instead of …: all.": 2}
    assert videos.made["captions.recipe"].counts == {"direct": 2}
    assert [name for name in videos.made if name.startswith("captions.")] == ["captions.recipe"]


@pytest.mark.parametrize(
    ("size", "lines"),
    [
        ((1920, 1080), "1080p"),
        ((1280, 720), "720p"),
        ((720, 1280), "720p"),
        ((1280, 534), "720p"),
        ((534, 1280), "720p"),
        ((640, 480), "480p"),
    ],
)
def test_the_class_of_a_picture_is_that_of_the_screen_it_fills(size: tuple[int, int], lines: str) -> None:
    from vip.corpus.card.histograms import CLASSES

    videos = VideoStatistics()
    videos.add(sample(width_px=size[0], height_px=size[1]).video)
    assert CLASSES[videos.lines.counts.index(1)] == lines


def test_keyframes_lie_between_the_first_and_the_last_frame() -> None:
    one = sample(count=3)
    assert one.video.file is not None
    video = one.video.model_copy(update={"file": one.video.file.model_copy(update={"start_time_s": 2.0, "end_time_s": 6.0})})
    keyframes = of_clips([replace(one, video=video)])[1]
    assert [place for place, number in enumerate(keyframes.positions.counts) if number] == [0, 10, 19]


def test_where_no_file_is_known_the_length_counts_and_without_one_the_place_is_unknown() -> None:
    found = of_clips([sample(count=3, file=None, duration_s=8.0)])[1].positions
    assert [place for place, number in enumerate(found.counts) if number] == [5, 10, 15]
    assert of_clips([sample(count=3, file=None, duration_s=None)])[1].positions.unknown == 3


def test_days_and_failures_of_all_videos_are_told() -> None:
    one = sample(count=2, described=False)
    why = Failure(item="abc:0001", kind="refusal", message="No.", exit_code=6)
    videos, keyframes = of_clips(
        [
            replace(one, frames=(replace(one.frames[0], failure=why), one.frames[1])),
            *(sample(f"v{month}", created_utc=f"2026-0{month}-01") for month in (5, 3, 4)),
        ]
    )
    assert (videos.first_utc, videos.last_utc) == ("2026-01-01T00:00:00+00:00", "2026-05-01")
    assert (keyframes.failures.counts, keyframes.keyframes, keyframes.described) == ({"refusal": 1}, 11, 9)
    assert keyframes.engines.counts == {"openai:gpt-5-mini": 9}


def test_claims_and_second_looks_are_counted() -> None:
    one = sample(count=2)
    checks = (Check(field="focus", claim="a", verdict="supported"), Check(field="mood", claim="b", verdict="unchecked"))
    rows = [frame.description for frame in one.frames]
    assert rows[0] is not None
    seen = rows[0].model_copy(update={"verification": Verification(checks=checks, before=rows[0].famous)})
    keyframes = of_clips([replace(one, frames=(replace(one.frames[0], description=seen), one.frames[1]))])[1]
    assert (keyframes.verified, keyframes.corrected, keyframes.verdicts.counts) == (1, 1, {"supported": 1, "unchecked": 1})


# ---------------------------------------------------------------- whole data sets


@pytest.mark.parametrize("format", FORMATS)
def test_a_shard_that_is_damaged_is_told_of_and_not_counted(tmp_path: Path, format: Format) -> None:  # noqa: A002
    _, _, info, _ = [write_shard(str(tmp_path), number, [sample(f"v{number}")], format) for number in range(4)]
    (tmp_path / FOLDER / "00000.json").unlink()
    sidecar = tmp_path / FOLDER / "00002.json"
    about = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({name: value for name, value in about.items() if name != "counts"}))
    (tmp_path / FOLDER / info.file).write_bytes(b"PAR1" * (info.bytes // 4) + b"x" * (info.bytes % 4))
    counts = count(str(tmp_path))
    assert (counts.shards, counts.videos.videos, counts.keyframes.keyframes, counts.broken) == (2, 2, 6, 2)
    assert "has no 00000.json" in counts.problems[0]
    assert f"{info.file}: damaged" in counts.problems[1]


def test_where_there_is_nothing_nothing_is_counted(tmp_path: Path) -> None:
    assert count(str(tmp_path / "none")) == DataSetCounts()


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_memory_does_not_grow_with_the_number_of_videos(tmp_path: Path, format: Format) -> None:  # noqa: A002
    for number in range(30):
        write_shard(str(tmp_path), number, [sample(f"v{number}-{one}", size=20_000) for one in range(5)], format)
    infos = list(read_shards(str(tmp_path)))
    peaks = []
    for some in (infos[:3], infos[:3], infos):  # the first one loads libraries
        keyframes = KeyframeStatistics()
        tracemalloc.start()
        for info in some:
            keyframes.merge(keyframes_of(str(tmp_path), info))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert keyframes.keyframes == 30 * 5 * 3
    assert peaks[2] < 1.5 * peaks[1]
