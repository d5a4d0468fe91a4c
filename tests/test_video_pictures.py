"""Frames asked for in any order and any selection are those that decoding from start to end gives, with the least work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.media import FRAMES, RECIPES, Clips, linear, number_in
from vip.records import Frame, Image
from vip.video import Video
from vip.video.frame_cache import FrameCache

B_FRAMES = 4  # a decoder may need this many packets more before it shows a frame
SAME_FOR_ALL = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
UNTIMED = ("h264.h264", "hevc.hevc", "h264.avi")
TIMED = [name for name in RECIPES if name not in UNTIMED]


@pytest.fixture(scope="module")
def truth(clips: Clips) -> Callable[[str], dict[int, Image]]:
    """Name of a clip -> every picture by PTS, decoded from start to end by PyAV alone."""
    known: dict[str, dict[int, Image]] = {}

    def look_up(name: str) -> dict[int, Image]:
        if name not in known:
            with Video(clips(name).path) as video:
                stamps = video.index.shown_pts.tolist()
            known[name] = {stamp: image for stamp, (_, image) in zip(stamps, linear(clips(name).path), strict=True)}
        return known[name]

    return look_up


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_any_selection_in_any_order_gives_the_frames_of_plain_decoding(
    clips: Clips, truth: Callable[[str], dict[int, Image]], name: str
) -> None:
    expected = truth(name)
    with Video(clips(name).path) as video:

        @SAME_FOR_ALL
        @given(st.lists(st.sampled_from(sorted(expected)), max_size=12))
        def check(wanted: list[int]) -> None:
            frames = list(video.frames(wanted))
            assert [frame.pts for frame in frames] == sorted(set(wanted))
            for frame in frames:
                assert np.array_equal(frame.image, expected[frame.pts]), f"picture {number_in(expected[frame.pts])}"

        check()
        assert video.losses == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_each_frame_alone_is_that_of_plain_decoding(clips: Clips, truth: Callable[[str], dict[int, Image]], name: str) -> None:
    """Backwards, so that no frame profits from the one before."""
    expected = truth(name)
    with Video(clips(name).path) as video:
        for stamp in sorted(expected, reverse=True)[:: 7 if name in UNTIMED else 1]:
            (frame,) = video.frames([stamp])
            assert frame.pts == stamp
            assert np.array_equal(frame.image, expected[stamp])


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_frames_near_are_real_frames_at_or_after_what_was_asked(clips: Clips, truth: Callable[[str], dict[int, Image]], name: str) -> None:
    expected = truth(name)
    with Video(clips(name).path) as video:

        @SAME_FOR_ALL
        @given(st.sets(st.sampled_from(sorted(expected)), max_size=8))
        def check(wanted: set[int]) -> None:
            frames = list(video.frames_near(sorted(wanted)))
            stamps = [frame.pts for frame in frames]
            assert stamps == sorted(set(stamps))
            assert len(stamps) <= len(wanted)
            assert all(any(stamp >= asked for stamp in stamps) for asked in wanted)
            for frame in frames:
                assert np.array_equal(frame.image, expected[frame.pts])

        check()


def rated_by_number(grey: Image) -> float:
    """As if by chance, and the same for a few."""
    return float(number_in(np.dstack([grey] * 3)) * 7 % 19)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_of_each_window_the_frame_that_is_rated_highest_is_given_and_of_equal_ones_the_first(
    clips: Clips, truth: Callable[[str], dict[int, Image]], name: str
) -> None:
    expected = truth(name)
    stamps = sorted(expected)
    windows = [window for a, b in ((0, 1), (2, 9), (9, 10), (12, 31), (31, 40)) if (window := stamps[a:b])]
    best = [max(window, key=lambda stamp: (rated_by_number(expected[stamp].mean(axis=2)), -stamp)) for window in windows]
    with Video(clips(name).path) as video:
        frames = list(video.best_frames(windows, rated_by_number, longest_side_px=160))
        assert [frame.pts for frame in frames] == best
        for frame in frames:
            assert np.array_equal(frame.image, next(video.frames([frame.pts], longest_side_px=160)).image)
        assert [frame.pts for frame in video.best_frames(windows, lambda _: 0.0, longest_side_px=160)] == [window[0] for window in windows]
        assert video.losses == []


def test_for_the_best_frames_each_packet_is_given_once_and_none_behind_the_last_window(
    clips: Clips, given_packets: list[int | None]
) -> None:
    with Video(clips("one_gop.mp4").path) as video:
        shown = video.index.shown_pts.tolist()
        given_packets.clear()
        assert len(list(video.best_frames([shown[5:12], shown[14:20]], rated_by_number, longest_side_px=160))) == 2
        assert len(given_packets) == len(set(given_packets)) == video.effort(shown[19]) <= 20 + B_FRAMES


def test_only_the_best_frame_of_each_window_is_scaled_and_rated_at_the_size_that_is_asked_for(clips: Clips) -> None:
    shapes = []

    def rate(grey: Image) -> float:
        shapes.append(grey.shape)
        return 0.0

    with Video(clips("h264.mp4").path) as video:
        (frame,) = video.best_frames([video.index.shown_pts[:6].tolist()], rate, longest_side_px=80)
    assert frame.image.shape == (60, 80, 3)
    assert shapes == [(60, 80)] * 6


@pytest.mark.parametrize("name", TIMED)
def test_frames_near_lie_within_the_reordering_of_what_was_asked(clips: Clips, name: str) -> None:
    with Video(clips(name).path) as video:
        shown = video.index.shown_pts.tolist()
        for place, stamp in enumerate(shown):
            frame = next(video.frames_near([stamp]))
            assert place <= shown.index(frame.pts) <= place + B_FRAMES


def test_nothing_asked_is_nothing_decoded(clips: Clips, given_packets: list[int | None]) -> None:
    with Video(clips("h264.mp4").path) as video:
        assert list(video.frames([])) == []
        assert list(video.frames_near([])) == []
        assert list(video.best_frames([], rated_by_number, longest_side_px=160)) == []
        assert list(video.best_frames([[], []], rated_by_number, longest_side_px=160)) == []
    assert given_packets == []


@pytest.mark.parametrize("name", ["h264.mp4", "h264.mkv", "h264.ts", "vp9.webm", "mpeg2.mpg", "h264_open_gop.mp4"])
def test_a_sync_frame_costs_one_packet(clips: Clips, given_packets: list[int | None], name: str) -> None:
    with Video(clips(name).path) as video:
        wanted = video.index.sync_pts.tolist()
        assert [frame.pts for frame in video.frames(wanted)] == wanted
        assert set(given_packets) == set(wanted)
        assert len(given_packets) <= len(wanted) + 1, "and the first packet, which is shown to the decoder before a seek"


@pytest.mark.parametrize("name", ["h264.mp4", "h264.mkv", "h264.ts", "vp9.webm", "hevc.mp4"])
def test_who_stops_early_pays_for_nothing_behind(clips: Clips, given_packets: list[int | None], name: str) -> None:
    with Video(clips(name).path) as video:
        shown = video.index.shown_pts.tolist()
        frames = video.frames(shown)
        for _ in range(3):
            next(frames)
        frames.close()
        assert len(given_packets) <= 3 + B_FRAMES
        assert [number_in(frame.image) for frame in video.frames([shown[30], shown[2]])] == [2, 30], "and the reader still works"


def test_frames_that_no_other_needs_are_skipped_by_frames_near(clips: Clips, given_packets: list[int | None]) -> None:
    with Video(clips("one_gop.mp4").path) as video:
        assert video.info().sync_frames == 1
        shown = video.index.shown_pts.tolist()
        given_packets.clear()
        assert len(list(video.frames_near(shown))) < 0.8 * FRAMES
        assert len(given_packets) == FRAMES, "each packet is given once"


def test_the_first_packet_is_shown_to_the_decoder_before_it_starts_elsewhere(clips: Clips, given_packets: list[int | None]) -> None:
    """Old x264 says only there how its 4:4:4 is coded; without it FFmpeg gives green garbage."""
    with Video(clips("h264_444.mp4").path) as video:
        first, later = int(video.index.pts[0]), int(video.index.sync_pts[2])
        assert [frame.pts for frame in video.frames([later])] == [later]
        assert given_packets == [first, later]
        list(video.frames([later]))
        assert given_packets == [first, later, later], "once is enough"


def test_pictures_come_at_the_size_that_is_asked_for(clips: Clips) -> None:
    with Video(clips("h264.mp4").path) as video:
        for side, size in ((80, (80, 60)), (640, (640, 480)), (None, (160, 120))):
            for frames in (video.frames, video.frames_near):
                frame = next(iter(frames([0], longest_side_px=side)))
                assert frame.image.shape[1::-1] == size
                assert number_in(frame.image) == 0


def test_a_twin_reads_on_its_own(clips: Clips) -> None:
    with Video(clips("h264.mp4").path) as video, video.reopen(threads=0) as twin:
        assert twin.index is video.index
        shown = video.index.shown_pts.tolist()
        pairs = zip(video.frames(shown), twin.frames(shown[::-1]), strict=True)
        assert all(np.array_equal(one.image, other.image) for one, other in pairs)


def test_groups_share_a_sync_frame_and_never_split_a_gop(clips: Clips) -> None:
    with Video(clips("h264.mp4").path) as video:
        shown = video.index.shown_pts.tolist()
        groups = video.groups(shown)
        assert [stamp for group in groups for stamp in group] == shown
        assert [group[0] for group in groups] == video.index.sync_pts.tolist()


@pytest.mark.parametrize("name", ["h264_open_gop.mp4", "hevc_open_gop.mp4", "mpeg2.mpg"])
def test_frames_shown_before_their_sync_frame_belong_to_the_group_before(clips: Clips, name: str) -> None:
    with Video(clips(name).path) as video:
        index = video.index
        sync = int(np.flatnonzero(index.is_sync)[2])
        leading = [int(pts) for pts in index.pts[sync + 1 :] if pts < index.pts[sync]]
        assert leading, "that is an open GOP"
        start, before = int(index.pts[sync]), int(index.sync_pts[1])
        assert video.groups([before, *sorted(leading), start]) == [[before, *sorted(leading)], [start]]


# ---------------------------------------------------------------- what it costs, and keeping what was dear


@pytest.mark.parametrize("name", ["h264.mp4", "h264.ts", "h264_open_gop.mp4", "hevc_open_gop.ts", "vp9.webm", "mpeg2.mpg", "one_gop.mp4"])
def test_effort_is_the_number_of_packets_that_one_frame_costs(clips: Clips, given_packets: list[int | None], name: str) -> None:
    with Video(clips(name).path) as video:
        list(video.frames(video.index.sync_pts[-1:].tolist()))  # from now on the first packet is known
        for pts in video.index.shown_pts[::3].tolist():
            given_packets.clear()
            (frame,) = video.frames([pts])
            assert frame.pts == pts
            assert len(given_packets) == video.effort(pts)


def test_without_times_every_frame_costs_all_before_it(clips: Clips) -> None:
    with Video(clips("h264.h264").path) as video:
        assert video.index.by_decoding
        assert [video.effort(pts) for pts in video.index.shown_pts.tolist()] == list(range(1, FRAMES + 1))


class Keeper:
    """Keeps the frames with these PTS."""

    def __init__(self, wanted: set[int]) -> None:
        self.wanted = wanted
        self.kept: list[Frame] = []

    def wants(self, pts: int) -> bool:
        return pts in self.wanted

    def keep(self, frame: Frame) -> None:
        self.kept.append(frame)


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("name", ["h264.mp4", "one_gop.mp4", "vp9.webm", "h264.h264"])
def test_a_keeper_gets_just_what_it_wants_at_full_size(
    clips: Clips, truth: Callable[[str], dict[int, Image]], name: str, near: bool
) -> None:
    expected = truth(name)
    with Video(clips(name).path) as video:
        shown = video.index.shown_pts.tolist()
        keeper = Keeper(set(shown[5::4]))
        seen = []
        for frame in (video.frames_near if near else video.frames)(shown, longest_side_px=64, keeper=keeper):
            assert max(frame.image.shape) == 64
            seen.append(frame.pts)
            assert [kept.pts for kept in keeper.kept] == [pts for pts in seen if pts in keeper.wanted], "before the small one is given"
    assert [kept.pts for kept in keeper.kept] == [pts for pts in seen if pts in keeper.wanted] != []
    assert near or len(keeper.kept) == len(keeper.wanted)
    for kept in keeper.kept:
        assert np.array_equal(kept.image, expected[kept.pts])


@pytest.mark.parametrize("name", ["h264.mp4", "one_gop.mp4", "h264.h264"])
def test_a_keeper_gets_the_best_frames_alone_where_memory_has_no_room_for_them(
    clips: Clips, truth: Callable[[str], dict[int, Image]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.video.reader.FrameCache", lambda _: FrameCache(0))
    with Video(clips(name).path) as video:
        shown = video.index.shown_pts.tolist()
        keeper = Keeper({*shown[10:]})
        frames = list(video.best_frames([shown[:10], shown[10:25], shown[25:]], rated_by_number, longest_side_px=64, keeper=keeper))
    assert [kept.pts for kept in keeper.kept] == [frame.pts for frame in frames[1:]]
    assert all(np.array_equal(kept.image, truth(name)[kept.pts]) for kept in keeper.kept)


@pytest.mark.parametrize("name", ["h264.mp4", "one_gop.mp4", "vp9.webm", "h264.h264"])
def test_the_best_frames_are_neither_decoded_again_nor_given_to_a_keeper(
    clips: Clips, truth: Callable[[str], dict[int, Image]], name: str, given_packets: list[int | None]
) -> None:
    with Video(clips(name).path) as video:
        shown = video.index.shown_pts.tolist()
        windows, keeper = [shown[:10], shown[10:25], shown[25:]], Keeper({*shown})
        best = [frame.pts for frame in video.best_frames(windows, rated_by_number, longest_side_px=64, keeper=keeper)]
        given_packets.clear()
        with video.reopen() as twin:
            again = list(twin.frames(best))
        assert given_packets == keeper.kept == []
    assert [frame.pts for frame in again] == best
    assert all(np.array_equal(frame.image, truth(name)[frame.pts]) for frame in again)
