"""Features each so many seconds: a file a video, and a second call goes on where the first one stopped."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.clips import clip
from vip import registry
from vip.errors import UsageError
from vip.protocols import ClipFeatures, ExtractorCapabilities
from vip.records import Failure, Image
from vip.store import read_rows
from vip.tasks.timed_features import extract_timed_features, timed_clips, timed_places
from vip.tasks.value.channels import read_features
from vip.tasks.video_features import FeatureRequest
from vip.video import FileSource, open_video

REQUEST = FeatureRequest(model="means", frames=2)


class Means:
    """The mean colour of a clip."""

    name, capabilities = "means", ExtractorCapabilities()

    def __init__(self) -> None:
        self.clips = 0

    def extract(self, clips: Sequence[Sequence[Image]], *, maps: bool = False) -> ClipFeatures:
        self.clips += len(clips)
        return np.array([np.mean(one, axis=(0, 1, 2)) for one in clips], np.float32)


@pytest.fixture
def means(monkeypatch: pytest.MonkeyPatch) -> Means:
    found = Means()
    monkeypatch.setattr(registry, "extractor", lambda name, **_: found)
    return found


@pytest.fixture
def videos(tmp_path: Path) -> list[FileSource]:
    clip(tmp_path / "one.mp4", range(4))
    (tmp_path / "bad.mp4").write_bytes(b"no video")
    return [FileSource(tmp_path / "one.mp4"), FileSource(tmp_path / "bad.mp4")]


def test_each_stretch_has_the_frames_around_its_middle() -> None:
    times = np.arange(100) / 10 + 3.0  # from 3.0 to 12.9 s
    assert timed_places(times, 1.5, 2) == [[middle - 1, middle] for middle in (8, 23, 38, 53, 68, 83, 98)]


def test_a_short_last_stretch_repeats_the_last_frame() -> None:
    assert timed_places(np.arange(17) / 10, 1.5, 4)[-1] == [15, 16, 16, 16]


@pytest.mark.parametrize(("last", "stretches"), [(2.75, 2), (3.0, 3), (3.25, 3)])
def test_a_last_frame_at_the_end_of_a_stretch_begins_another_one(last: float, stretches: int) -> None:
    for begin in (0.0, 100.0):
        times = begin + np.append(np.arange(0, last, 0.25), last)
        found = timed_places(times, 1.5, 1)
        assert [place for (place,) in found] == [min(place, len(times) - 1) for place in (3, 9, 15)[:stretches]]


def test_one_frame_is_one_stretch() -> None:
    assert timed_places(np.array([7.0]), 1.5, 2) == [[0, 0]]


def test_clips_are_those_of_a_whole_decode(videos: list[FileSource]) -> None:
    with open_video(videos[0]) as reader:
        stamps = reader.index.shown_pts
        every = {frame.pts: frame.image for frame in reader.frames(stamps.tolist(), longest_side_px=640)}
        places = timed_places(stamps * float(reader.time_base), 0.7, 3)
    expected = [[every[int(stamps[place])] for place in clip] for clip in places]
    found = list(timed_clips(videos[0], 0.7, 3))
    assert len(found) == len(expected) > 3
    assert all(
        np.array_equal(mine, theirs) for one, other in zip(found, expected, strict=True) for mine, theirs in zip(one, other, strict=True)
    )


def test_clips_that_overlap_share_their_frames(videos: list[FileSource]) -> None:
    wide, narrow = list(timed_clips(videos[0], 0.2, 16)), list(timed_clips(videos[0], 0.2, 2))
    assert len(wide) == len(narrow)
    assert all(np.array_equal(one[8], other[1]) for one, other in zip(wide[2:-2], narrow[2:-2], strict=True))


def test_a_file_a_video_is_written_and_read_as_those_of_value(tmp_path: Path, videos: list[FileSource], means: Means) -> None:
    done = extract_timed_features(videos, tmp_path / "tv", REQUEST, 1.5)
    features = read_features([tmp_path / "tv" / "one.npz"])
    assert (done.videos, done.features, done.known, len(done.failures)) == (1, len(features), 0, 1)
    assert features.shape[1] == 3
    assert done.sentence == f"1 video, {len(features)} new features, in {tmp_path / 'tv'}"
    again = extract_timed_features(videos, tmp_path / "tv", REQUEST, 1.5)
    assert (again.videos, again.known, again.features, means.clips) == (1, 1, 0, len(features))
    assert again.sentence == f"1 video, 1 of them known, 0 new features, in {tmp_path / 'tv'}"
    assert [row.item for row in read_rows(tmp_path / "failures.jsonl", Failure)] == [str(videos[1])]
    again = extract_timed_features(videos[:1], tmp_path / "tv", REQUEST, 1.5, overwrite=True)
    assert (again.known, again.features, again.failures) == (0, len(features), ())
    assert not (tmp_path / "failures.jsonl").exists(), "what failed before is not said of this call"


@pytest.mark.parametrize("every_s", [0.01, 1000.0])
def test_the_shortest_and_a_very_long_distance_are_distances(
    every_s: float, tmp_path: Path, videos: list[FileSource], means: Means
) -> None:
    done = extract_timed_features(videos[:1], tmp_path / "tv", REQUEST, every_s)
    assert done.features == (1 if every_s > 1 else int((12 - 1) / 3 / every_s) + 1)
    with pytest.raises(UsageError, match="is no distance"):
        extract_timed_features(videos[:1], tmp_path / "tv", REQUEST, 0.009)


def test_maps_have_no_distance(tmp_path: Path, means: Means) -> None:
    with pytest.raises(UsageError, match="maps of a fixed number of clips"):
        extract_timed_features([], tmp_path / "tv", FeatureRequest(model="means", maps=True), 1.5)


def test_features_of_other_settings_are_not_mixed(tmp_path: Path, videos: list[FileSource], means: Means) -> None:
    extract_timed_features(videos[:1], tmp_path / "tv", REQUEST, 1.5)
    with pytest.raises(UsageError, match="holds features of other settings"):
        extract_timed_features(videos[:1], tmp_path / "tv", REQUEST, 1.0)
    done = extract_timed_features(videos[:1], tmp_path / "tv", REQUEST, 1.0, overwrite=True)
    assert done.known == 0


def test_features_of_nobody_knows_which_settings_are_not_mixed(tmp_path: Path, videos: list[FileSource], means: Means) -> None:
    (tmp_path / "tv").mkdir()
    (tmp_path / "tv" / "one.npz").write_bytes(b"of another program")
    with pytest.raises(UsageError, match="holds features of other settings"):
        extract_timed_features(videos[:1], tmp_path / "tv", REQUEST, 1.5)
    assert (tmp_path / "tv" / "one.npz").read_bytes() == b"of another program"
    assert extract_timed_features(videos[:1], tmp_path / "tv", REQUEST, 1.5, overwrite=True).known == 0


def test_times_that_are_lies_cost_their_video_and_no_memory(tmp_path: Path, videos: list[FileSource], means: Means) -> None:
    with av.open(str(tmp_path / "liar.mkv"), "w") as file:
        stream = file.add_stream("mjpeg", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuvj420p"
        stream.codec_context.time_base = Fraction(1, 1000)
        for number, time_s in enumerate((0, 1, 10**9)):  # the last frame comes after 31 years
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 40 * number, np.uint8)).reformat(format="yuvj420p")
            frame.pts, frame.time_base = 1000 * time_s, Fraction(1, 1000)
            file.mux(stream.encode(frame))
    liar = FileSource(tmp_path / "liar.mkv")
    done = extract_timed_features([liar, videos[0]], tmp_path / "tv", REQUEST, 1.5)
    assert (done.videos, [failure.item for failure in done.failures]) == (1, [str(liar)])
    assert "at most 500,000 are made. Write a larger" in done.failures[0].message


@pytest.mark.parametrize("every", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_distance_is_refused(tmp_path: Path, means: Means, every: float) -> None:
    with pytest.raises(UsageError, match="is no distance"):
        extract_timed_features([], tmp_path / "tv", REQUEST, every)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path, means: Means) -> None:
    (tmp_path / "tv.h5").write_bytes(b"")
    with pytest.raises(UsageError, match="the features lie in a folder"):
        extract_timed_features([], tmp_path / "tv.h5", REQUEST, 1.5)


def test_features_that_are_not_finite_cost_their_video(
    tmp_path: Path, videos: list[FileSource], means: Means, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Means, "extract", lambda self, clips, maps=False: np.full((len(clips), 3), np.nan, np.float32))
    done = extract_timed_features(videos[:1], tmp_path / "tv", REQUEST, 1.5)
    assert (done.videos, done.features) == (0, 0)
    assert "means gives numbers that are not finite. Try a higher --precision" in done.failures[0].message
    assert not list((tmp_path / "tv").glob("*.npz"))
