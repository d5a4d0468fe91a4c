"""Looking at frames: the same result for any number of workers, and nothing left open or running."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import TIME_BASE, picture
from tests.extraction.analyses import analysis as look
from tests.extraction.indices import at, steady
from tests.media import FRAMES, Clip, Clips, card, number_in, write
from vip.errors import InputError
from vip.extraction.analyze import (
    THUMBNAIL_SIDE_PX,
    FrameAnalysis,
    FrameAnalyzer,
    _batches,
    analyze,
    beside,
    in_parallel,
    mark_transitions,
    windows_around,
)
from vip.extraction.quality import WORKING_SIDE_PX, measure
from vip.models.classic import ClassicEmbedder
from vip.models.opencv import OpenCVDetector
from vip.protocols import DetectorCapabilities, EmbedderCapabilities
from vip.records import Detection, Frame, Image, Vectors
from vip.video import Video, open_video, source_of

CLASSIC = ClassicEmbedder(None)
CORES = (1, 2, 5)
CLIPS = ("h264.mp4", "one_gop.mp4", "h264_open_gop.ts", "h264.h264", "gif.gif", "uneven.mkv", "mjpeg.avi")


class CountingDetector:
    name = "counting"
    capabilities = DetectorCapabilities()

    def __init__(self) -> None:
        self.seen = 0

    def detect(self, images: Sequence[Image], where: object = ()) -> list[list[Detection] | None]:
        self.seen += len(images)
        return [[] for _ in images]


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda count: monkeypatch.setattr(os, "cpu_count", lambda: count)


def pictures(reader: Video, batch: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    for frame in reader.frames(batch):
        yield frame.pts, frame.image.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIPS)
def test_the_result_does_not_depend_on_the_number_of_workers(clips: Clips, cores: Callable[[int], None], name: str) -> None:
    with Video(clips(name).path) as video:
        shown = video.index.shown_pts.tolist()
        for wanted in (shown, shown[::3], shown[-1:], []):
            results = []
            for count in CORES:
                cores(count)
                results.append(list(in_parallel(video, wanted, pictures)))
            assert results[0] == results[1] == results[2]
            assert [pts for pts, _ in results[0]] == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", ["h264.mp4", "one_gop.mp4"])
def test_looks_do_not_depend_on_the_number_of_workers(clips: Clips, cores: Callable[[int], None], name: str) -> None:
    analyzer = FrameAnalyzer(CLASSIC, CLASSIC, OpenCVDetector(None))
    with Video(clips(name).path) as video:
        made: list[list[FrameAnalysis]] = []
        for count in CORES:
            cores(count)
            made.append(analyze(video, video.index.shown_pts.tolist(), analyzer, advance=lambda: None))
    for one, two, five in zip(*made, strict=True):
        assert one.pts == two.pts == five.pts
        assert one.measured == two.measured == five.measured
        assert one.thumbnail == two.thumbnail == five.thumbnail
        assert np.array_equal(one.vector, two.vector)
        assert np.array_equal(one.vector, five.vector)
        assert one.detections == two.detections == five.detections


@pytest.mark.slow
@pytest.mark.parametrize("name", ["h264.mp4", "one_gop.mp4"])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("count", CORES)
def test_progress_is_told_once_a_frame(clips: Clips, cores: Callable[[int], None], count: int, exact: bool, name: str) -> None:
    cores(count)
    told: list[None] = []
    analyzer = FrameAnalyzer(CLASSIC, CLASSIC, CountingDetector())
    with Video(clips(name).path) as video:
        analyses = analyze(video, video.index.shown_pts.tolist(), analyzer, exact=exact, advance=lambda: told.append(None))
    assert len(told) == FRAMES
    assert (len(analyses) == FRAMES) == exact, "frames that no other needs are passed over"
    assert [analysis.pts for analysis in analyses] == sorted({analysis.pts for analysis in analyses})


def test_an_error_in_a_look_beside_the_decoder_reaches_the_caller(clips: Clips, cores: Callable[[int], None]) -> None:
    cores(2)

    class Failing(ClassicEmbedder):
        seen = 0

        def embed_images(self, images: Sequence[Image]) -> np.ndarray:
            self.seen += 1
            if self.seen == 5:
                raise RuntimeError("a bug in an adapter")
            return super().embed_images(images)

    failing = Failing(None)
    with Video(clips("one_gop.mp4").path) as video, pytest.raises(RuntimeError, match="a bug in an adapter"):
        analyze(video, video.index.shown_pts.tolist(), FrameAnalyzer(failing, failing, CountingDetector()), advance=lambda: None)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


def test_looks_know_where_the_video_is_restless(clips: Clips) -> None:
    analyzer = FrameAnalyzer(CLASSIC, CLASSIC, CountingDetector())
    with Video(clips("one_gop.mp4").path) as video:
        sizes = video.index.size_bytes.copy()
        sizes[-8:] *= 100
        video.index = replace(video.index, size_bytes=sizes)
        analyses = analyze(video, video.index.shown_pts[[5, 10, 33]].tolist(), analyzer, advance=lambda: None)
    assert [analysis.in_transition for analysis in analyses] == [False, False, True]


def test_what_moves_between_rests_is_a_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    """What moves as much as usual there is not: somebody who speaks."""
    monkeypatch.setattr("vip.extraction.analyze.between_rests", lambda index, pts: np.ones(len(pts), bool))
    index = steady(10.0, bursts={5.0: 0.4})
    found = mark_transitions(index, [look(pts) for pts in at(2.0, 5.2, 8.0)])
    assert [one.is_between_rests for one in found] == [False, True, False]


@pytest.mark.parametrize("count", CORES)
def test_an_error_of_one_worker_reaches_the_caller_and_stops_the_others(clips: Clips, cores: Callable[[int], None], count: int) -> None:
    cores(count)
    opened = _open_files()

    def work(reader: Video, batch: Sequence[int]) -> Iterator[int]:
        for frame in reader.frames(batch):
            if number_in(frame.image) == 15:
                raise RuntimeError("a bug in an adapter")
            yield frame.pts

    with Video(clips("h264.mp4").path) as video:
        with pytest.raises(RuntimeError, match="a bug in an adapter"):
            list(in_parallel(video, video.index.shown_pts.tolist(), work))
        assert len(list(in_parallel(video, video.index.shown_pts[:3].tolist(), pictures))) == 3
    assert _open_files() <= opened
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


@pytest.mark.parametrize("count", [count for count in CORES if count > 1])  # with one core the open reader itself goes on
def test_a_video_that_is_gone_is_said_and_does_not_hang(clips: Clips, cores: Callable[[int], None], tmp_path: Path, count: int) -> None:
    cores(count)
    path = tmp_path / "gone.mp4"
    shutil.copy(clips("h264.mp4").path, path)
    with Video(path) as video:
        path.unlink()
        with pytest.raises(InputError, match="does not exist"):
            list(in_parallel(video, video.index.shown_pts.tolist(), pictures))


@pytest.mark.parametrize("count", CORES)
def test_a_caller_that_wants_no_more_leaves_nothing_running(clips: Clips, cores: Callable[[int], None], count: int) -> None:
    cores(count)
    opened = _open_files()
    with Video(clips("mjpeg.avi").path) as video:
        with closing(in_parallel(video, video.index.shown_pts.tolist(), pictures)) as found:
            assert next(found)[0] == video.index.shown_pts[0]
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]
    assert _open_files() <= opened


def test_readers_are_closed_and_opencv_gets_its_threads_back(clips: Clips, cores: Callable[[int], None]) -> None:
    cores(5)
    threads = cv2.getNumThreads()
    cv2.setNumThreads(3)
    before = _open_files()
    inside: set[int] = set()

    def work(reader: Video, batch: Sequence[int]) -> Iterator[int]:
        inside.add(cv2.getNumThreads())
        yield from batch

    with Video(clips("mjpeg.avi").path) as video:
        list(in_parallel(video, video.index.shown_pts.tolist(), work))
    assert _open_files() <= before  # readers of earlier tests may go meanwhile
    assert inside == {1}
    assert cv2.getNumThreads() == 3
    cv2.setNumThreads(threads)


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0  # noqa: PTH112, PTH208 - a folder of links


def test_batches_keep_every_group_whole_and_in_order() -> None:
    groups = [[number, number + 1] for number in range(0, 200, 2)]
    for count in (1, 3, 8, 1000):
        batches = _batches(groups, count)
        assert [stamp for batch in batches for stamp in batch] == list(range(200))
        assert len(batches) <= count
        assert all(batch[0] % 2 == 0 and len(batch) % 2 == 0 for batch in batches)
    assert _batches([], 4) == []


# ---------------------------------------------------------------- the sharpest around each


def windows(video: Video, *planned: int) -> dict[int, tuple[int, int, int]]:
    """Number of each planned frame -> that of the first and the last frame of its window, and how many there are."""
    number = {stamp: place for place, stamp in enumerate(video.index.shown_pts.tolist())}
    found = windows_around(video, video.index.shown_pts[list(planned)].tolist())
    for window in found.values():
        assert window == sorted(window)
    return {number[stamp]: (number[window[0]], number[window[-1]], len(window)) for stamp, window in found.items()}


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        ((3, 7, 25), {3: (0, 5, 6), 7: (6, 9, 4), 25: (20, 29, 10)}),  # a frame as near to both belongs to the first
        ((0, 9, 10), {0: (0, 4, 5), 9: (5, 9, 5), 10: (10, 19, 10)}),  # sync frames 0, 10, 20 and 30
        ((39,), {39: (30, 39, 10)}),
    ],
)
def test_a_window_reaches_to_the_middle_between_two_frames_and_to_the_ends_of_the_gop(
    clips: Clips, planned: tuple[int, ...], expected: dict[int, tuple[int, int, int]]
) -> None:
    with Video(clips("h264.mp4").path) as video:
        assert windows(video, *planned) == expected


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        ((0, 10, 20), {0: (0, 5, 6), 10: (6, 15, 10), 20: (16, 33, 18)}),  # 39 frames from the first to the last, 13 for each
        ((0, 1, 2), {0: (0, 0, 1), 1: (1, 1, 1), 2: (2, 15, 14)}),
        ((17, 18, 19), {17: (4, 17, 14), 18: (18, 18, 1), 19: (19, 32, 14)}),
        ((7,), {7: (0, 39, 40)}),
    ],
)
def test_no_frame_of_a_window_lies_farther_from_the_planned_one_than_two_planned_ones_do_on_average(
    clips: Clips, planned: tuple[int, ...], expected: dict[int, tuple[int, int, int]]
) -> None:
    with Video(clips("one_gop.mp4").path) as video:
        assert windows(video, *planned) == expected


def test_frames_that_halt_are_as_far_as_their_times_say(clips: Clips) -> None:
    """Not as many frames away."""
    with Video(clips("uneven.mkv").path) as video:
        shown = video.index.shown_pts.tolist()
        farthest = (shown[-1] - shown[0]) / 6
        for stamp, window in windows_around(video, shown[2::7]).items():
            assert stamp in window
            assert all(abs(other - stamp) <= farthest for other in window)


def test_frames_that_are_shown_before_their_sync_frame_belong_to_the_window_before(clips: Clips) -> None:
    with Video(clips("h264_open_gop.mp4").path) as video:
        planned = video.index.sync_pts.tolist()
        for stamp, window in windows_around(video, planned).items():
            assert video.groups(window) == [window], "each frame is decoded with its GOP"
            assert window[0] == stamp


def test_in_a_folder_of_pictures_each_stands_for_itself(tmp_path: Path) -> None:
    for number in range(6):
        cv2.imwrite(str(tmp_path / f"{number}.png"), card(number))
    with open_video(source_of(tmp_path)) as video:
        assert windows_around(video, [1000, 4000]) == {1000: [1000], 4000: [4000]}
        assert windows_around(video, []) == {}


SHARP = (4, 17, 26)


@pytest.fixture(scope="module")
def focused(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    """Two GOPs of 20 frames, of which three are in focus."""

    def show(number: int) -> Image:
        return picture(1) if number in SHARP else np.asarray(cv2.GaussianBlur(picture(1), (0, 0), 2), np.uint8)

    options = {"crf": "12", "x264-params": "scenecut=0"}
    return write(tmp_path_factory.mktemp("focus") / "a.mp4", frames=40, gop=20, picture=show, options=options)


@pytest.mark.parametrize("count", CORES)
def test_the_sharpest_frame_around_each_is_taken(focused: Clip, cores: Callable[[int], None], count: int) -> None:
    cores(count)
    told: list[None] = []
    analyzer = FrameAnalyzer(CLASSIC, CLASSIC, CountingDetector())
    with Video(focused.path) as video:
        shown = video.index.shown_pts.tolist()
        planned = [shown[place] for place in (2, 14, 24)]
        analyses = analyze(video, planned, analyzer, sharpest=True, advance=lambda: told.append(None))
        plain = analyze(video, planned, analyzer, advance=lambda: None)
    assert [analysis.pts for analysis in analyses] == [shown[place] for place in SHARP]
    assert [analysis.pts for analysis in plain] == planned
    assert len(told) == 3
    for sharp, soft in zip(analyses, plain, strict=True):
        assert sharp.measured.quality.sharpness > 2 * soft.measured.quality.sharpness


def test_for_the_sharpest_frames_each_packet_is_decoded_once(
    focused: Clip, cores: Callable[[int], None], given_packets: list[int | None]
) -> None:
    cores(1)
    with Video(focused.path) as video:
        list(video.frames(video.index.sync_pts.tolist()))  # from now on the first packet is known
        given_packets.clear()
        analyze(
            video, video.index.shown_pts[[2, 14, 24]].tolist(), FrameAnalyzer(CLASSIC, CLASSIC, CountingDetector()),
            sharpest=True, advance=lambda: None,
        )  # fmt: skip
        assert len(given_packets) == len(set(given_packets)) <= len(video.index)


def test_where_no_frame_of_a_window_can_be_decoded_it_has_none(focused: Clip, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[None] = []
    real = Video._decode_frames
    with Video(focused.path) as video:
        shown = video.index.shown_pts.tolist()
        lost = {*shown[10:20], shown[26]}
        monkeypatch.setattr(Video, "_decode_frames", lambda self, pts: (frame for frame in real(self, pts) if frame.pts not in lost))
        analyses = analyze(
            video, [shown[place] for place in (4, 15, 24)], FrameAnalyzer(CLASSIC, CLASSIC, CountingDetector()),
            sharpest=True, advance=lambda: told.append(None),
        )  # fmt: skip
    first, second = (shown.index(analysis.pts) for analysis in analyses)
    assert first == 4
    assert 20 <= second < 40
    assert len(told) == 3


# ---------------------------------------------------------------- a look


def test_a_look_holds_what_later_stages_need() -> None:
    detector = CountingDetector()
    analysis = FrameAnalyzer(CLASSIC, CLASSIC, detector)(Frame(2500, TIME_BASE, picture(1)))
    assert (analysis.pts, analysis.time_s, analysis.stands_in_for) == (2500, 2.5, None)
    assert analysis.measured == measure(picture(1))
    assert analysis.signature.shape == (18, 32, 3)
    assert analysis.signature.dtype == np.uint8
    assert np.array_equal(analysis.vector, CLASSIC.embed_images([picture(1)])[0])
    thumbnail = cv2.imdecode(np.frombuffer(analysis.thumbnail, np.uint8), cv2.IMREAD_COLOR_RGB)
    assert thumbnail is not None
    assert thumbnail.shape == (90, 160, 3)
    assert np.abs(thumbnail.astype(int) - cv2.resize(picture(1), (160, 90), interpolation=cv2.INTER_AREA)).mean() < 6
    assert "2.500" in repr(analysis)
    assert len(repr(analysis)) < 100
    assert (detector.seen, analysis.detections) == (0, None), "objects are sought later, in few"
    for_detector = cv2.imdecode(np.frombuffer(analysis.picture.read(), np.uint8), cv2.IMREAD_COLOR_RGB)
    assert for_detector is not None
    assert for_detector.shape == (360, 640, 3)
    assert np.abs(for_detector.astype(int) - picture(1)).mean() < 6


class MeanColour:
    """An embedder that is not the classic one: the mean colour of a picture, of which it takes a part, several at a time."""

    name, dim = "mean-colour", 3

    def __init__(self) -> None:
        self.capabilities = EmbedderCapabilities(batch=4, prepare=self.prepare)
        self.seen: list[list[tuple[int, ...]]] = []
        self.threads: set[threading.Thread] = set()

    def prepare(self, image: Image) -> Image:
        return image[:10, :20]

    def embed_images(self, images: Sequence[Image]) -> np.ndarray:
        self.seen.append([image.shape for image in images])
        self.threads.add(threading.current_thread())
        means = np.array([image.mean(axis=(0, 1)) + 1 for image in images], np.float32).reshape(-1, 3)
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.ones((len(texts), 1), np.float32)


def test_another_embedder_sees_its_part_of_the_picture_later_among_others() -> None:
    embedder = MeanColour()
    analyzer = FrameAnalyzer(CLASSIC, embedder, CountingDetector())
    analyses = [analyzer(Frame(number, TIME_BASE, picture(number))) for number in range(6)]
    assert embedder.seen == []
    assert [len(analysis.vector) for analysis in analyses] == [0] * 6
    assert [analysis.unseen.shape for analysis in analyses if analysis.unseen is not None] == [(10, 20, 3)] * 6
    done = list(analyzer.embed(analyses))
    assert embedder.seen == [[(10, 20, 3)] * 4, [(10, 20, 3)] * 2]
    assert [analysis.pts for analysis in done] == list(range(6))
    for analysis in done:
        np.testing.assert_allclose(analysis.vector, embedder.embed_images([picture(analysis.pts)[:10, :20]])[0], atol=1e-6)
        assert np.array_equal(analysis.view, CLASSIC.embed_images([picture(analysis.pts)])[0])
        assert analysis.unseen is None


@pytest.mark.slow
def test_frames_are_decoded_while_the_embedder_works(clips: Clips) -> None:
    looked_at = []

    class Waiting(MeanColour):
        """Comes back only when more frames were looked at than it was given so far."""

        def embed_images(self, images: Sequence[Image]) -> Vectors:
            given = sum(map(len, self.seen)) + len(images)
            deadline = time.monotonic() + 20
            while len(looked_at) < min(FRAMES, given + 1):
                assert time.monotonic() < deadline, "nothing was decoded meanwhile"
                time.sleep(0.005)
            return super().embed_images(images)

    class Counting(FrameAnalyzer):
        def __call__(self, frame: Frame) -> FrameAnalysis:
            looked_at.append(frame.pts)
            return super().__call__(frame)

    with Video(clips("h264.mp4").path) as video:
        analyses = analyze(video, video.index.shown_pts.tolist(), Counting(CLASSIC, Waiting(), CountingDetector()), advance=lambda: None)
    assert len(analyses) == FRAMES


def test_what_the_embedder_has_seen_before_it_does_not_see_again() -> None:
    embedder, known = MeanColour(), np.array([0, 0, 1], np.float32)
    analyzer = FrameAnalyzer(CLASSIC, embedder, CountingDetector(), {1: known})
    analyses = [analyzer(Frame(number, TIME_BASE, picture(number))) for number in range(3)]
    done = list(analyzer.embed(analyses))
    assert [len(images) for images in embedder.seen] == [2]
    assert np.array_equal(done[1].vector, known)
    np.testing.assert_allclose(done[2].vector, embedder.embed_images([picture(2)[:10, :20]])[0], atol=1e-6)


@pytest.mark.parametrize("name", ["h264.mp4", "one_gop.mp4"])
@pytest.mark.parametrize("count", CORES)
def test_the_embedder_and_progress_are_called_in_the_callers_thread(
    clips: Clips, cores: Callable[[int], None], count: int, name: str
) -> None:
    cores(count)
    embedder, told = MeanColour(), []
    with Video(clips(name).path) as video:
        wanted = video.index.shown_pts.tolist()
        analyses = analyze(
            video, wanted, FrameAnalyzer(CLASSIC, embedder, CountingDetector()), advance=lambda: told.append(threading.current_thread())
        )
    assert {*told} == embedder.threads == {threading.main_thread()}
    assert sum(len(images) for images in embedder.seen) == len(told) == FRAMES
    assert all(analysis.unseen is None and len(analysis.vector) == 3 for analysis in analyses)


@pytest.mark.parametrize(("asked", "given"), [(200, 213), (256, 320), (320, 320), (321, 640), (4000, 640)])
def test_a_detector_says_how_large_its_pictures_have_to_be(asked: int, given: int) -> None:
    detector = CountingDetector()
    detector.capabilities = DetectorCapabilities(side_px=asked)
    analysis = FrameAnalyzer(CLASSIC, CLASSIC, detector)(Frame(0, TIME_BASE, picture(1)))
    small = cv2.imdecode(np.frombuffer(analysis.picture.read(), np.uint8), cv2.IMREAD_COLOR)
    assert small is not None
    assert max(small.shape) == given


@pytest.mark.parametrize("level", [0, 128, 255])
def test_nothing_is_sought_where_nothing_shows(level: int) -> None:
    detector = CountingDetector()
    analysis = FrameAnalyzer(CLASSIC, CLASSIC, detector)(Frame(0, TIME_BASE, np.full((360, 640, 3), level, np.uint8)))
    assert (detector.seen, analysis.detections, analysis.picture) == (0, (), None)


def test_frames_are_looked_at_at_the_working_size_and_views_told_apart_by_thumbnails(clips: Clips) -> None:
    class Embedder(ClassicEmbedder):
        def __init__(self) -> None:
            super().__init__(None)
            self.sides: set[int] = set()

        def embed_images(self, images: Sequence[Image]) -> np.ndarray:
            self.sides.update(max(image.shape) for image in images)
            return super().embed_images(images)

    view, embedder = Embedder(), Embedder()
    with Video(clips("h264.mp4").path) as video:
        analyze(video, video.index.sync_pts.tolist(), FrameAnalyzer(view, embedder, CountingDetector()), advance=lambda: None)
    assert (view.sides, embedder.sides) == ({THUMBNAIL_SIDE_PX}, {WORKING_SIDE_PX})


def test_very_thin_pictures_have_a_thumbnail() -> None:
    strip = np.random.default_rng(0).integers(0, 256, (2, 640, 3), np.uint8)
    analysis = FrameAnalyzer(CLASSIC, CLASSIC, CountingDetector())(Frame(0, Fraction(1, 25), strip))
    thumbnail = cv2.imdecode(np.frombuffer(analysis.thumbnail, np.uint8), cv2.IMREAD_COLOR)
    assert thumbnail is not None
    assert thumbnail.shape == (1, 160, 3)


def test_frames_of_one_gop_are_looked_at_side_by_side_and_few_of_them_wait(cores: Callable[[int], None]) -> None:
    cores(2)
    together, taken = threading.Barrier(2, timeout=20), []

    def frames() -> Iterator[Frame]:
        for number in range(8):
            taken.append(number)
            yield Frame(number, TIME_BASE, np.zeros((1, 1, 3), np.uint8))

    def analyzer(frame: Frame) -> int:
        together.wait()
        return frame.pts

    analyses = beside(analyzer, frames())  # type: ignore[arg-type]
    assert next(analyses) == 0  # type: ignore[comparison-overlap]
    assert taken == [0, 1, 2]
    assert list(analyses) == [1, 2, 3, 4, 5, 6, 7]  # type: ignore[comparison-overlap]
