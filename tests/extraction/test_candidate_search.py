"""Which frames are looked at in a real file: calm ones instead of cross-fades, others where few differ, and none is called lost wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Self

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import picture
from tests.extraction.films import RATE, Shot, film, show, view
from tests.media import Clip, Clips, card, number_in, write
from tests.test_local_change import with_person
from vip.extraction import candidate_search, closer_look, settled
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer
from vip.extraction.bad_frames import bad_frames
from vip.extraction.candidate_search import CandidateSearch, analyze_candidates, undecodable
from vip.extraction.samplers import sync
from vip.extraction.transitions import PacketActivity, activity_of
from vip.models.classic import ClassicEmbedder
from vip.protocols import DetectorCapabilities
from vip.records import Detection, Frame, Image
from vip.video import Video
from vip.video.frame_cache import FrameCache


class NoDetector:
    name = "none"
    capabilities = DetectorCapabilities()

    def detect(self, images: Sequence[Image], where: object = ()) -> list[list[Detection] | None]:
        return [[] for _ in images]


CLASSIC = ClassicEmbedder(None)
LOOKER = FrameAnalyzer(CLASSIC, CLASSIC, NoDetector())


class KeepNone:
    @property
    def for_likely(self) -> Self:
        return self

    def wants(self, pts: int) -> bool:
        return False

    def keep(self, frame: Frame) -> None:
        raise AssertionError("nothing was wanted")


@dataclass
class Listener:
    """An observer that counts the steps of each task."""

    steps: list[tuple[str, int, list[None]]] = field(default_factory=list)

    def note(self, text: str) -> None:
        raise AssertionError(f"nothing is to be said, but was: {text}")

    def track(self, title: str, total: int) -> nullcontext[Callable[[], None]]:
        done: list[None] = []
        self.steps.append((title, total, done))
        return nullcontext(lambda: done.append(None))


def search(video: Video, keyframes: int, *, exact: bool = False, insistent: bool = False) -> CandidateSearch:
    return CandidateSearch(
        video=video,
        analyzer=LOOKER,
        keyframes=keyframes,
        min_sharpness=None,
        exact=exact,
        insistent=insistent,
        keeper=KeepNone(),
        observer=Listener(),
    )


# ---------------------------------------------------------------- calm frames instead of restless ones

FADE_S = (1.8, 2.4)
FADED = round(2.0 * RATE)  # the frame in the cross-fade at which a GOP begins


@pytest.fixture(scope="module")
def cross_fade(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    """Two shots; a sync frame every second, the third of them in the cross-fade."""
    shots = [Shot(0, FADE_S[0]), Shot(1, 2.7, fade_s=FADE_S[1] - FADE_S[0])]
    frames = sum(shot.frames for shot in shots)
    options = {"preset": "veryfast", "crf": "24", "x264-params": "scenecut=0"}
    path = tmp_path_factory.mktemp("films") / "fade.mp4"
    return write(path, frames=frames, gop=2 * RATE, rate=RATE, picture=show(shots), options=options)


def looked(path: Path, frames: Sequence[int], keyframes: int) -> list[FrameAnalysis]:
    with Video(path) as video:
        return analyze_candidates(search(video, keyframes), video.index.shown_pts[list(frames)].tolist())


def test_a_would_be_keyframe_in_a_cross_fade_gives_way_to_a_settled_frame_of_the_shot(cross_fade: Clip) -> None:
    analyses = looked(cross_fade.path, [0, FADED], 2)
    (found,) = [analysis for analysis in analyses if analysis.stands_in_for is not None]
    (faded,) = [analysis for analysis in analyses if analysis.pts == found.stands_in_for]
    assert faded.in_transition
    assert FADE_S[0] < faded.time_s < FADE_S[1] <= found.time_s < 4
    later = looked(cross_fade.path, [64], 1)[0]
    assert found.vector @ later.vector > 0.9 > faded.vector @ later.vector
    decision = bad_frames(analyses, None)[analyses.index(faded)]
    assert (decision.rule, decision.neighbours) == ("in_transition", (analyses.index(found),))
    assert f"at 0:0{found.time_s:.2f} the same shot is calm" in decision.reason


@pytest.mark.slow
@pytest.mark.parametrize(("gop", "first"), [(44, 44), (22, 44), (38, 38), (100_000, 36)])
def test_the_stand_in_lies_behind_the_cross_fade_and_before_the_end_of_the_gop(tmp_path: Path, gop: int, first: int) -> None:
    """From 1.4 to 1.9 s one photograph dissolves into another."""

    def picture(number: int) -> Image:
        share = float(np.clip((number / RATE - 1.4) / 0.5, 0, 1))
        return np.asarray(cv2.addWeighted(view(1, 0), share, view(0, 0), 1 - share, 0), np.uint8)

    options = {"preset": "veryfast", "crf": "24", "x264-params": "scenecut=0"}
    path = write(tmp_path / "a.mp4", frames=4 * RATE, gop=gop, rate=RATE, picture=picture, options=options).path
    analyses = looked(path, [0, first], 2)
    (found,) = [analysis for analysis in analyses if analysis.stands_in_for is not None]
    assert found.stands_in_for == analyses[1].pts
    assert 1.9 <= found.time_s < (first + gop) / RATE
    assert 0.35 < found.time_s - first / RATE <= 1.35
    assert bad_frames(analyses, None)[1].rule == "in_transition"


def test_a_restless_frame_that_would_not_be_kept_costs_nothing(cross_fade: Clip, given_packets: list[int | None]) -> None:
    few = looked(cross_fade.path, [0, 105], 2)
    spent = len(given_packets)
    assert [analysis.stands_in_for for analysis in few] == [None, None]
    analyses = looked(cross_fade.path, [0, 54, 105], 2)
    assert analyses[1].in_transition
    assert [analysis.stands_in_for for analysis in analyses] == [None] * 3
    assert len(given_packets) - spent <= spent + 4


@pytest.mark.slow
def test_the_stand_in_is_no_frame_of_the_next_shot(tmp_path: Path) -> None:
    """A short shot between two others: what is calm behind it shows something else."""
    shots = [Shot(0, 1.8), Shot(3, 0.6), Shot(1, 2.0)]
    path = film(tmp_path / "a.mp4", shots, "H.264, one sync frame").path
    analyses = looked(path, [0, 50], 2)
    assert analyses[1].in_transition
    assert [analysis.stands_in_for for analysis in analyses] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize(("gop", "is_behind"), [(1000, True), (59, False)])
def test_no_stand_in_lies_behind_a_sync_frame_that_is_not_in_the_same_dissolve(tmp_path: Path, gop: int, is_behind: bool) -> None:
    """It comes 0.44 s behind the frame in the dissolve."""
    path = write(
        tmp_path / "a.mp4",
        frames=4 * RATE,
        gop=gop,
        rate=RATE,
        picture=show([Shot(0, FADE_S[0]), Shot(1, 2.7, fade_s=0.6)]),
        options={"preset": "veryfast", "crf": "24", "x264-params": "scenecut=0"},
    ).path
    (found,) = [analysis for analysis in looked(path, [0, 48], 2) if analysis.stands_in_for is not None]
    assert (found.time_s >= 59 / RATE) == is_behind


@pytest.mark.parametrize("in_transition", [True, False])
def test_behind_a_restless_frame_a_stand_in_is_sought_only_where_the_picture_may_be_changing(
    cross_fade: Clip, given_packets: list[int | None], monkeypatch: pytest.MonkeyPatch, in_transition: bool
) -> None:
    """A camera that moves on is followed by as much, and its pictures seem to dissolve."""
    monkeypatch.setattr(PacketActivity, "in_transition", lambda _, pts: np.full(len(pts), in_transition))
    with Video(cross_fade.path) as video:
        planned = video.index.shown_pts[[0, FADED]].tolist()
        video.index = replace(video.index, decodes_all=True)
        assert planned[1] in activity_of(video.index).is_followed_by_much(planned)
        analyses = analyze_candidates(search(video, 2), planned)
    assert any(analysis.stands_in_for is not None for analysis in analyses) == in_transition
    assert ({pts for pts in given_packets if pts is not None} <= {*planned}) == (not in_transition)


def test_no_stand_in_is_too_dear_to_decode(cross_fade: Clip, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(analysis.stands_in_for is not None for analysis in looked(cross_fade.path, [0, FADED], 2))
    monkeypatch.setattr(settled, "MOST_PACKETS", 5)
    assert all(analysis.stands_in_for is None for analysis in looked(cross_fade.path, [0, FADED], 2))


@pytest.mark.parametrize(("most_packets", "is_sought"), [(45, True), (2, False)])
def test_no_stand_in_is_sought_where_the_decoder_passes_over_nothing_and_it_lies_deep(
    cross_fade: Clip, given_packets: list[int | None], monkeypatch: pytest.MonkeyPatch, most_packets: int, is_sought: bool
) -> None:
    monkeypatch.setattr(settled, "MOST_PACKETS_WHERE_EXPENSIVE", most_packets)
    with Video(cross_fade.path) as video:
        planned = video.index.shown_pts[[0, FADED]].tolist()
        video.index = replace(video.index, decodes_all=True)
        analyses = analyze_candidates(search(video, 2), planned)
    assert [analysis.pts for analysis in analyses][:2] == planned
    assert [analysis.stands_in_for for analysis in analyses] == [None, None, *planned[1:]][: 2 + is_sought]
    assert analyses[1].in_transition
    assert ({pts for pts in given_packets if pts is not None} <= {*planned}) == (not is_sought)


def test_of_the_frames_behind_a_doubtful_one_few_are_kept_at_full_size(cross_fade: Clip, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dozen are decoded for one, which is likely to become a keyframe; the other is the sharpest of those that are too near."""
    monkeypatch.setattr("vip.video.reader.FrameCache", lambda _: FrameCache(0))

    class KeepAll(KeepNone):
        def __init__(self) -> None:
            self.kept: list[int] = []

        def wants(self, pts: int) -> bool:
            return True

        def keep(self, frame: Frame) -> None:
            self.kept.append(frame.pts)

    keeper = KeepAll()
    with Video(cross_fade.path) as video:
        analyses = analyze_candidates(replace(search(video, 2), keeper=keeper), video.index.shown_pts[[0, FADED]].tolist())
    assert len(analyses) == 3
    assert {*keeper.kept} > {analysis.pts for analysis in analyses}
    assert len(keeper.kept) == 4


def test_what_was_replaced_for_being_bad_is_not_called_restless(cross_fade: Clip) -> None:
    """A stand-in for a blurred frame, which looks good enough once the stand-in is known."""
    analyses = looked(cross_fade.path, [0, 80], 2)
    calm = replace(analyses[0], pts=analyses[0].pts - 1)
    standing = replace(analyses[0], pts=analyses[0].pts + 1, stands_in_for=calm.pts)
    assert "in_transition" not in {decision.rule for decision in bad_frames([calm, standing], None).values()}
    in_transition = replace(calm, in_transition=True)
    assert bad_frames([in_transition, standing], None)[0].rule == "in_transition"


# ---------------------------------------------------------------- near frames, lost frames


@pytest.mark.slow
def test_one_of_many_frames_may_be_replaced_by_one_soon_after_but_not_where_frames_are_few_or_far_apart(tmp_path: Path) -> None:
    options = {"x264-params": "scenecut=0:bframes=3:b-adapt=0:b-pyramid=0"}
    quick = write(tmp_path / "quick.mp4", frames=60, gop=1000, options=options)
    slow = write(tmp_path / "slow.mp4", frames=60, gop=1000, rate=4, options=options)
    halting = write(
        tmp_path / "halting.mkv", gop=1000, options=options, time_base=Fraction(1, 1000),
        ticks=[40 * number + (3000 if number > 30 else 0) for number in range(60)],
    )  # fmt: skip
    numbers = [5, 17, 29]

    def shown(clip: Clip, frames: Sequence[int]) -> list[int]:
        with Video(clip.path) as video:
            pts = video.index.shown_pts[list(frames)].tolist()
            analyses = analyze_candidates(search(video, 1), pts)
            planned = search(video, 1)
            assert undecodable(planned, pts, analyses) == []
            place = {stamp: number for number, stamp in enumerate(video.index.shown_pts.tolist())}
            return [place[analysis.pts] for analysis in analyses if analysis.stands_in_for is None]

    near = shown(quick, numbers)
    assert all(0 <= found - asked <= 3 for found, asked in zip(near, numbers, strict=True))
    assert near != numbers
    assert shown(slow, numbers) == numbers
    assert shown(halting, numbers) == numbers
    assert shown(quick, range(0, 60, 2)) == list(range(0, 60, 2))


def test_lost_are_the_planned_frames_behind_which_no_frame_was_seen_soon(clips: Clips) -> None:
    with Video(clips("h264.mp4").path) as video:
        shown = video.index.shown_pts.tolist()
        analyses = analyze_candidates(search(video, 1, exact=True), [shown[5], shown[30]])
        near, exact = search(video, 1), search(video, 1, exact=True)
        planned = [shown[place] for place in (5, 10, 20, 29, 30, 31)]
        assert undecodable(near, planned, analyses) == [shown[10], shown[31]], "12 frames are half a second"
        assert undecodable(exact, planned, analyses) == [shown[place] for place in (10, 20, 29, 31)]
        assert undecodable(near, [shown[5]], []) == [shown[5]]
        assert undecodable(near, [], analyses) == []


def test_of_a_short_video_the_sharpest_frames_stand_for_the_planned_ones_and_none_is_called_lost(tmp_path: Path) -> None:
    """The camera is in focus at two frames of forty; one lies before, one behind what was planned."""

    def picture(number: int) -> Image:
        return view(1, 0) if number in {3, 26} else np.asarray(cv2.GaussianBlur(view(1, 0), (0, 0), 2), np.uint8)

    options = {"crf": "12", "x264-params": "scenecut=0"}
    with Video(write(tmp_path / "a.mp4", frames=40, gop=20, rate=RATE, picture=picture, options=options).path) as video:
        shown = video.index.shown_pts.tolist()
        planned = [shown[9], shown[21]]
        found = search(video, 2, insistent=True)
        analyses = analyze_candidates(found, planned)
        assert {shown[3], shown[26]} <= {analysis.pts for analysis in analyses}
        assert not {*planned} & {analysis.pts for analysis in analyses}
        assert undecodable(found, planned, analyses) == []
        as_asked = search(video, 2)
        assert {*planned} <= {analysis.pts for analysis in analyze_candidates(replace(as_asked, exact=True), planned)}


# ---------------------------------------------------------------- more, where few differ


def still_until(change: int) -> Callable[[int], Image]:
    """The same card, and others from this frame on."""
    return lambda number: card(max(3, number - change + 3))


@pytest.fixture
def all_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """No video is so short that all of it is decoded for the sharpest frames."""
    monkeypatch.setattr(sync, "SHORT_FRAMES", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("all_are_long")
def test_where_fewer_frames_differ_than_keyframes_are_wanted_more_are_looked_at(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mp4", frames=60, gop=60, picture=still_until(50), options={"crf": "10"}).path
    with Video(path) as video:
        planned = video.index.shown_pts[[0, 20, 40]].tolist()
        analyses = analyze_candidates(search(video, 4, insistent=True), planned)
        plain = analyze_candidates(search(video, 4), planned)
    assert len(plain) == 3
    assert len(analyses) > 3
    assert set(planned) <= {analysis.pts for analysis in analyses}
    assert len({analysis.signature.tobytes() for analysis in analyses if analysis.time_s > 2}) >= 3


@pytest.mark.slow
@pytest.mark.usefixtures("all_are_long")
def test_more_are_looked_at_up_to_the_bound_of_packets_to_decode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.mp4", frames=60, gop=60, picture=still_until(50), options={"crf": "10"}).path
    with Video(path) as video:
        planned = video.index.shown_pts[[0, 20, 40]].tolist()

        def efforts() -> set[int]:
            analyses = analyze_candidates(search(video, 4, insistent=True), planned)
            return {video.effort(analysis.pts) for analysis in analyses if analysis.pts not in planned}

        reached = []
        for bound in sorted(efforts()):
            monkeypatch.setattr("vip.extraction.substitutes.FARTHEST_PACKETS", bound)
            reached.append(bound - max(efforts(), default=-1))
    assert min(reached) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["h264.mp4", "one_gop.mp4", "vp9.webm"])
def test_the_search_in_a_video_of_stills_ends(tmp_path: Path, name: str) -> None:
    codec = {"webm": "libvpx-vp9"}.get(name[-4:], "libx264")
    path = write(tmp_path / name, codec, frames=40, gop=1000 if name.startswith("one") else 10, picture=lambda _: card(3)).path
    with Video(path) as video:
        planned = video.index.shown_pts[::8].tolist()
        found = search(video, 30, insistent=True)
        analyses = analyze_candidates(found, planned)
    assert len(analyses) <= 40
    assert len({analysis.pts for analysis in analyses}) == len(analyses)


def test_every_task_is_told_to_its_end(cross_fade: Clip) -> None:
    with Video(cross_fade.path) as video:
        listener = Listener()
        found = replace(search(video, 3, insistent=True), observer=listener)
        analyze_candidates(found, video.index.shown_pts[[0, FADED, 55, 70]].tolist())
    assert len(listener.steps) >= 3
    assert [(title, len(done)) for title, _, done in listener.steps] == [(title, total) for title, total, _ in listener.steps]


@pytest.fixture(scope="module")
def passer_by(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    """Ten seconds of an empty scene, five frames a second; somebody is there for 0.6 s."""
    empty = picture(3)
    person = with_person(empty)
    options = {"preset": "ultrafast", "x264-params": "scenecut=0:bframes=0"}
    return write(
        tmp_path_factory.mktemp("films") / "a.mp4",
        frames=50,
        gop=10,
        rate=5,
        picture=lambda number: person if 19 <= number < 22 else empty,
        options=options,
    )


@pytest.mark.parametrize(
    ("counts_pictures", "most_packets", "joined"), [(True, 250, [7, 17, 23]), (True, 4, [7, 23]), (True, 1, [7]), (False, 250, [])]
)
def test_where_pictures_are_counted_one_looks_closer_at_who_passes_by_unless_that_is_dear(
    passer_by: Clip, monkeypatch: pytest.MonkeyPatch, counts_pictures: bool, most_packets: int, joined: list[int]
) -> None:
    """Every two seconds one looks; 0.6 s before and behind the passer-by the eighth and the fourth packet of a GOP show what is there.

    The seventh frame joins as the rest behind the first, which encoders refine for a second.
    """
    monkeypatch.setattr(closer_look, "FARTHEST_PACKETS", most_packets)
    with Video(passer_by.path) as video:
        shown = video.index.shown_pts.tolist()
        found = replace(search(video, 12, exact=True), counts_pictures=counts_pictures)
        analyses = analyze_candidates(found, shown[::10])
    assert [shown.index(analysis.pts) for analysis in analyses] == sorted([0, 10, 20, 30, 40, *joined])


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    """Two cards, 25 frames a second: the first rests for two seconds, the second flies in over 0.8 s and rests for three."""

    def drawn(number: int) -> Image:
        image = np.full((360, 640, 3), 240, np.uint8)
        if number < 50:
            image[100:260, 60:300] = picture(1)[100:260, 60:300]
        else:
            down = 12 * max(0, 70 - number)
            image[100 + down : 360, 340:580] = picture(2)[100 : 360 - down, 340:580]
        return image

    return write(
        tmp_path_factory.mktemp("films") / "cards.mp4", frames=145, gop=60, rate=25, picture=drawn, options={"x264-params": "scenecut=0"}
    )


@pytest.mark.parametrize("insistent", [True, False])
@pytest.mark.parametrize("most_packets", [120, 10])
def test_behind_a_frame_in_which_something_comes_into_view_one_looks_where_it_rests(
    cards: Clip, monkeypatch: pytest.MonkeyPatch, insistent: bool, most_packets: int
) -> None:
    monkeypatch.setattr(candidate_search, "FARTHEST_IN_REST_PACKETS", most_packets)
    with Video(cards.path) as video:
        shown = video.index.shown_pts.tolist()
        found = replace(search(video, 1, exact=True, insistent=insistent), counts_pictures=False)
        analyses = analyze_candidates(found, [shown[number] for number in (0, 60)])
    moving = next(one for one in analyses if one.pts == shown[60])
    assert moving.is_between_rests
    rests = [one for one in analyses if 70 <= shown.index(one.pts) <= 85]
    assert bool(rests) == (insistent and most_packets > 10)
    assert (moving.pts in {analyses[index].pts for index in bad_frames(analyses, None)}) == bool(rests)


def test_a_rest_that_was_looked_at_is_not_looked_at_again(cards: Clip) -> None:
    titles = []
    with Video(cards.path) as video:
        shown = video.index.shown_pts.tolist()
        for numbers in ([0, 60], [0, 60, *range(70, 86)]):
            listener = Listener()
            found = replace(search(video, 1, exact=True), counts_pictures=True, observer=listener)
            analyze_candidates(found, [shown[number] for number in numbers])
            titles.append([title for title, *_ in listener.steps])
    assert ["Looking where pictures rest" in some for some in titles] == [True, False]


# ---------------------------------------------------------------- how much is decoded


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["libx264", "libvpx-vp9", "mpeg4"])
def test_of_a_file_with_one_sync_frame_every_packet_is_decoded_at_most_once(
    tmp_path: Path, given_packets: list[int | None], codec: str
) -> None:
    suffix = "webm" if codec == "libvpx-vp9" else "mp4"
    path = write(tmp_path / f"a.{suffix}", codec, frames=120, gop=1000, picture=lambda number: card(number % 256)).path
    with Video(path) as video:
        assert len(video.index.sync_pts) == 1
        given_packets.clear()
        analyses = candidate_search._scan(
            search(video, 6), "Looking", video.index.shown_pts[[7, 31, 58, 80, 101, 119]].tolist(), exact=False
        )
    assert len(analyses) == 6
    assert len(given_packets) == len(set(given_packets)) <= 120


def test_pictures_of_near_frames_are_those_of_their_times(clips: Clips) -> None:
    with Video(clips("one_gop.mp4").path) as video:
        shown = video.index.shown_pts.tolist()
        for frame in video.frames_near(shown[3::9]):
            assert number_in(frame.image) == shown.index(frame.pts)
            (exact,) = video.frames([frame.pts])
            assert np.array_equal(frame.image, exact.image)
