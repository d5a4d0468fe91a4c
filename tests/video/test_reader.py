"""An open video: what it says of itself, what its twins share, and which frames it gives; what costs more is in tests/test_video_*."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import av.error
import numpy as np
import pytest

from tests.media import Clips, number_in
from vip.errors import InputError
from vip.records import Frame
from vip.video import Video


@pytest.fixture
def video(clips: Clips) -> Iterator[Video]:
    with Video(clips("h264.mp4").path) as opened:
        yield opened


def decoded(video: Video, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The PTS of the packets that decoders of any reader are given from now on."""
    given: list[int | None] = []
    plain = Video._decode

    def decode(self: Video, packet: Any) -> Any:
        if packet is not None:
            given.append(packet.pts)
        return plain(self, packet)

    monkeypatch.setattr(Video, "_decode", decode)
    return given


@pytest.mark.parametrize(
    ("losses", "damaged", "told"),
    [
        ([], 0, []),
        (["It ends early."], 0, ["It ends early."]),
        (["b", "a", "b", "b"], 0, ["b", "a"]),
        ([], 1, ["1 damaged frame was passed over."]),
        (["a", "a"], 2, ["a", "2 damaged frames were passed over."]),
    ],
)
def test_each_loss_is_told_once_by_whichever_twin(video: Video, losses: list[str], damaged: int, told: list[str]) -> None:
    with video.reopen() as twin:
        for sentence in losses:
            twin.lose(sentence)
        twin._damaged |= set(range(damaged))
        assert video.losses == twin.losses == told


@pytest.mark.parametrize(("is_sparse", "frames"), [(False, 40), (True, None)])
def test_how_many_frames_there_are_is_known_where_all_packets_were_read(video: Video, is_sparse: bool, frames: int | None) -> None:
    video.index = replace(video.index, is_sparse=is_sparse)
    assert video.info().frames == frames
    assert video.info().sync_frames == 4


@pytest.mark.parametrize("who", ["the reader itself", "a twin", "a twin of a twin"])
def test_a_best_frame_is_decoded_once_for_all_twins(video: Video, monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    stamps = video.index.shown_pts.tolist()
    with video.reopen() as twin, twin.reopen() as another:
        reader = {"the reader itself": video, "a twin": twin, "a twin of a twin": another}[who]
        (best,) = another.best_frames([stamps[12:15]], lambda _: 0.0, longest_side_px=80)
        given = decoded(video, monkeypatch)
        (frame,) = reader.frames([best.pts])
    assert given == []
    assert number_in(frame.image) == 12


def test_the_frames_beside_a_best_one_are_not_kept(video: Video) -> None:
    stamps = video.index.shown_pts.tolist()
    (best,) = video.best_frames([stamps[12:15]], lambda _: 0.0, longest_side_px=80)
    assert [stamp for stamp in stamps if stamp in video._kept] == [best.pts]
    assert [number_in(frame.image) for frame in video.frames(stamps[11:15])] == [11, 12, 13, 14]


@pytest.mark.parametrize("asked", [[0, 9], [10, 15, 19], [0, 10, 20, 39]])
def test_a_sync_frame_that_is_asked_for_is_the_one_nearby(video: Video, asked: list[int]) -> None:
    found = [number_in(frame.image) for frame in video.frames_near(video.index.shown_pts[asked].tolist())]
    assert found[0] == asked[0]
    assert len(found) == len(asked)


def test_a_twin_that_was_closed_is_used_again_by_who_wants_as_many_threads(video: Video) -> None:
    with video.reopen() as twin:
        assert len(list(twin.frames(video.index.shown_pts[:3].tolist()))) == 3
    with video.reopen(threads=2) as other, video.reopen() as again, again.reopen() as new:
        assert other is not twin
        assert again is twin
        assert new is not twin
        assert [number_in(frame.image) for frame in again.frames(video.index.shown_pts[[1, 12]].tolist())] == [1, 12]


@pytest.mark.parametrize("is_long", [True, False])
def test_of_a_long_video_no_twin_waits_that_nobody_can_use(video: Video, is_long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds the table of the file."""
    monkeypatch.setattr("vip.video.reader.LONG_FRAMES", len(video.index) - is_long)
    with video.reopen(threads=2) as one:
        list(one.frames(video.index.shown_pts[:1].tolist()))
    with video.reopen(threads=1) as other:
        assert [frame.pts for frame in other.frames(video.index.shown_pts[:1].tolist())] == video.index.shown_pts[:1].tolist()
    assert one._file.closed is is_long
    with video.reopen(threads=2) as last:
        assert (last is one) is not is_long


@pytest.mark.parametrize("trouble", ["_hurt", "_cannot_open"])
def test_a_twin_that_saw_damage_is_not_used_again(video: Video, trouble: str) -> None:
    with video.reopen() as twin:
        setattr(twin, trouble, True)
    assert twin._file.closed
    with video.reopen() as other:
        assert other is not twin


def test_twins_that_wait_are_closed_with_the_first_reader(clips: Clips) -> None:
    with Video(clips("h264.mp4").path) as video:
        late = video.reopen()
        with video.reopen() as twin:
            pass
        assert not twin._file.closed
    assert twin._file.closed
    late.close()
    assert late._file.closed


def test_packets_that_were_kept_are_not_read_again_by_a_twin(video: Video) -> None:
    with video.reopen() as twin:
        before = twin._file.tell()
        assert len(list(twin.frames(video.index.shown_pts.tolist()))) == 40
        assert twin._file.tell() == before


@pytest.mark.parametrize(
    ("ratings", "chosen"), [([1, 2, 3], 2), ([3, 2, 1], 0), ([1, 3, 3], 1), ([0, 0, 0], 0), ([float("-inf")] * 3, None), ([-5, -2, -9], 1)]
)
def test_of_frames_that_are_rated_alike_the_first_is_the_best(video: Video, ratings: list[float], chosen: int | None) -> None:
    stamps = video.index.shown_pts.tolist()
    windows = [stamps[5:8], stamps[20:23]]
    left = iter(ratings * 2)
    found = [frame.pts for frame in video.best_frames(windows, lambda _: next(left), longest_side_px=80)]
    assert found == ([] if chosen is None else [window[chosen] for window in windows])


@pytest.mark.parametrize("error", [MemoryError(), av.error.InvalidDataError(1, "damaged")])
def test_a_frame_that_cannot_be_rated_is_passed_over_and_counted(video: Video, error: Exception) -> None:
    stamps = video.index.shown_pts.tolist()
    left = iter([1.0, error, 2.0, error, error])

    def rate(_: object) -> float:
        if isinstance(rating := next(left), Exception):
            raise rating
        return rating

    assert [frame.pts for frame in video.best_frames([stamps[5:8], stamps[20:22]], rate, longest_side_px=80)] == [stamps[7]]
    assert video.losses == ["3 damaged frames were passed over."]


@pytest.mark.parametrize("first", [0, 25])
def test_a_decoder_that_could_not_be_opened_is_asked_once(video: Video, first: int) -> None:
    """PyAV 19 crashes at the second time."""
    asked: list[object] = []

    class Unopened:
        name, skip_frame, is_open, codec = "h264", "DEFAULT", False, SimpleNamespace(canonical_name="h264")

        def decode(self, packet: object) -> None:
            asked.append(packet)
            raise av.error.InvalidDataError(1, "no extradata")

        def flush_buffers(self) -> None:
            pass

    video._decoder = Unopened()  # type: ignore[assignment]
    stamps = video.index.shown_pts[first : first + 3].tolist()
    for ask in (
        lambda: video.frames(stamps),
        lambda: video.frames(stamps),
        lambda: video.frames_near(stamps),
        lambda: video.best_frames([stamps], lambda _: 0.0, longest_side_px=80),
    ):
        with pytest.raises(InputError, match=r"h264\.mp4: not one frame can be decoded"):
            list(ask())
    assert len(asked) == 1


def test_a_frame_to_which_the_decoder_gives_no_time_is_left_out_and_no_other(video: Video, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = video.index.shown_pts.tolist()
    plain = Video._decode

    def decode(self: Video, packet: Any) -> Any:
        frames = plain(self, packet)
        for frame in frames:
            frame.pts = None if frame.pts in {stamps[12], stamps[15]} else frame.pts
        return frames

    monkeypatch.setattr(Video, "_decode", decode)
    assert [number_in(frame.image) for frame in video.frames(stamps[13:20])] == [13, 14, 16, 17, 18, 19]


@pytest.mark.parametrize(
    ("there", "wanted", "given", "decoded"),
    [(5, {0, 80}, [0, 80], 3), (5, {160}, [160], 5), (3, {40, 160}, [40], 3), (3, {120}, [], 3), (9, {160}, [160], 5), (0, {0}, [], 0)],
)
def test_without_times_frames_are_counted_up_to_the_last_that_is_wanted_or_that_is_there(
    there: int, wanted: set[int], given: list[int], decoded: int
) -> None:
    """A damaged file may give fewer frames, or more, than when its index was made."""
    made: list[SimpleNamespace] = []

    def decode_all() -> Iterator[SimpleNamespace]:
        for _ in range(there):
            made.append(SimpleNamespace(pts=None))
            yield made[-1]

    begun: list[None] = []
    video: Any = SimpleNamespace(index=SimpleNamespace(pts=np.arange(5) * 40), _decode_all=decode_all, _rewind=lambda: begun.append(None))
    assert [frame.pts for frame in Video._decode_by_count(video, wanted)] == given
    assert (len(made), len(begun)) == (decoded, 1)


def test_a_reader_closes_each_file_that_it_opened_and_no_other(video: Video) -> None:
    first = video._file
    video._rewind()
    assert first.closed
    with video.reopen() as twin:
        before = twin._file
        twin._rewind()
        assert before.closed
        assert not twin._file.closed
    assert not video._file.closed


def test_each_frame_on_the_way_is_glanced_at_small_with_its_rating(video: Video) -> None:
    stamps = video.index.shown_pts.tolist()
    seen: list[tuple[Frame, float]] = []
    list(video.best_frames([stamps[3:6]], lambda grey: float(grey.mean()), longest_side_px=80, glance=lambda *one: seen.append(one)))
    assert [frame.pts for frame, _ in seen] == stamps[3:6]
    assert {max(frame.image.shape) for frame, _ in seen} == {64}
    assert len({rating for _, rating in seen}) == 3


class Keeper:
    def __init__(self, *wanted: int) -> None:
        self.wanted, self.kept = wanted, list[Frame]()

    def wants(self, pts: int) -> bool:
        return pts in self.wanted

    def keep(self, frame: Frame) -> None:
        self.kept.append(frame)


def test_a_keeper_is_given_what_it_wants_and_no_other_holds(video: Video) -> None:
    stamps = video.index.shown_pts.tolist()
    list(video.best_frames([[stamps[4]]], lambda _: 0.0, longest_side_px=80))
    keeper = Keeper(stamps[4], stamps[6])
    small = list(video.frames(stamps[3:8], longest_side_px=80, keeper=keeper))
    assert [frame.image.shape for frame in small] == [(60, 80, 3)] * 5
    assert [(frame.pts, frame.image.shape) for frame in keeper.kept] == [(stamps[6], (120, 160, 3))]


@pytest.mark.parametrize(
    ("stream", "container", "seconds"), [(90_000, 2_000_000, 1.0), (None, 2_000_000, 2.0), (0, 2_000_000, 2.0), (None, None, None)]
)
def test_a_length_is_that_of_the_stream_or_else_of_the_file(
    video: Video, stream: int | None, container: int | None, seconds: float | None
) -> None:
    plain = {"time_base": Fraction(1, 90_000), "frames": 7, "average_rate": Fraction(30)}
    found = SimpleNamespace(
        _stream=SimpleNamespace(duration=stream, **plain),
        _container=SimpleNamespace(duration=container, format=SimpleNamespace(name="mov,mp4")),
        _decoder=SimpleNamespace(has_b_frames=True),
    )
    header = Video.header.fget(found)  # type: ignore[attr-defined]
    assert header.duration_s == seconds
    assert (header.frames, header.rate, header.reorders, header.formats) == (7, 30, True, {"mov", "mp4"})


def test_a_header_that_states_neither_rate_nor_clock_has_usual_ones() -> None:
    found = SimpleNamespace(
        _stream=SimpleNamespace(duration=None, time_base=None, frames=0, average_rate=None),
        _container=SimpleNamespace(duration=None, format=SimpleNamespace(name="h264")),
        _decoder=SimpleNamespace(has_b_frames=False),
    )
    header = Video.header.fget(found)  # type: ignore[attr-defined]
    assert (header.rate, header.time_base, header.duration_s) == (25, Fraction(1, 90_000), None)


@pytest.mark.parametrize(
    ("formats", "dts", "table"),
    [("mov,mp4", 0, [80, 480]), ("matroska,webm", 0, [0, 400]), ("mov,mp4", 80, [0, 400]), ("mov,mp4", None, [0, 400])],
)
def test_the_table_of_mp4_holds_dts(formats: str, dts: int | None, table: list[int]) -> None:
    entries = [SimpleNamespace(timestamp=stamp, is_keyframe=stamp % 400 == 0) for stamp in (0, 40, 400)]
    found: Any = SimpleNamespace(
        _container=SimpleNamespace(seek=lambda *_, **__: None),
        _stream=SimpleNamespace(index_entries=entries),
        _demux=lambda: iter([SimpleNamespace(pts=80, dts=dts)]),
        header=SimpleNamespace(formats=frozenset(formats.split(","))),
    )
    assert Video.sync_table(found) == table


@pytest.mark.parametrize("name", ["h264_open_gop.mp4", "h264_open_gop.mkv"])
def test_frames_that_are_shown_before_their_sync_frame_are_decoded_from_the_one_before(clips: Clips, name: str) -> None:
    with Video(clips(name).path) as opened:
        shown, sync = opened.index.shown_pts, opened.index.sync_pts
        leading = [int(shown[np.searchsorted(shown, pts) - 1]) for pts in sync[1:]]
        assert [number_in(frame.image) for frame in opened.frames(leading)] == [int(np.searchsorted(shown, pts)) for pts in leading]
        assert all(opened.effort(before) > opened.effort(int(after)) for before, after in zip(leading, sync[1:], strict=True))


@pytest.mark.parametrize(("position", "effort"), [(0, 1), (2, 3), (3, 1), (4, 2), (19, 17), (20, 1)])
def test_a_file_that_begins_in_the_midst_of_a_gop_is_decoded_from_its_start_only_before_its_first_sync_frame(
    video: Video, position: int, effort: int
) -> None:
    """Made so by hand: the packets 3 and 20 are the only sync packets."""
    video._sync = np.array([3, 20])
    assert video.effort(int(video.index.pts[position])) == effort


@pytest.mark.parametrize(("damaged", "threaded"), [(None, 12), (0, 0), (4, 0), (7, 3), (11, 7)])
@pytest.mark.parametrize("is_told", [True, False])
def test_from_shortly_before_the_first_damage_on_frames_come_of_one_thread_that_skips_the_same(
    damaged: int | None, threaded: int, is_told: bool
) -> None:
    begun: list[tuple[int, str]] = []

    class Hurt(Video):
        def __init__(self) -> None:
            self._threads, self._hurt = 4, False
            self._decoder: Any = SimpleNamespace(skip_frame="NONREF")

        def _rewind(self) -> None:
            self._hurt, self._decoder = False, SimpleNamespace(skip_frame="DEFAULT")

    def decode() -> Iterator[Any]:
        threads = video._threads
        begun.append((threads, video._decoder.skip_frame))
        for number in range(12):
            is_bad = number == damaged and threads > 1
            video._hurt |= is_bad and not is_told
            yield SimpleNamespace(pts=number, is_corrupt=is_bad and is_told, threads=threads)

    video = Hurt()
    frames: list[Any] = list(video._decode_reliably(decode))
    assert [frame.pts for frame in frames] == list(range(12))
    assert [frame.threads for frame in frames] == [4] * threaded + [1] * (12 - threaded)
    assert begun == [(4, "NONREF"), (1, "NONREF")][: 1 if damaged is None else 2]


@pytest.mark.parametrize(("is_told", "damaged", "left_out"), [(True, 2, True), (False, 2, True), (True, None, True), (False, 0, False)])
def test_from_the_first_damage_on_frames_come_of_a_decoder_that_leaves_none_out(is_told: bool, damaged: int | None, left_out: bool) -> None:
    calls: list[frozenset[int] | None] = []

    class Hurt(Video):
        def __init__(self) -> None:
            self._hurt, self.index = not left_out, SimpleNamespace(decodes_all=False)  # type: ignore[assignment]

        _decodes_all = False  # type: ignore[assignment]

        def _decode_packets(self, first: int, last: int, *, wanted: frozenset[int] | None = None) -> Any:
            calls.append(wanted)
            for number in range(4):
                is_bad = number == damaged and wanted is not None
                self._hurt |= is_bad and not is_told
                yield SimpleNamespace(pts=number, is_corrupt=is_bad and is_told, whole=wanted is None)

    wanted = frozenset({1, 3})
    frames: list[Any] = list(Hurt()._decode_wanted(0, 9, wanted))
    seen = [(frame.pts, frame.whole) for frame in frames]
    again = [(number, True) for number in range(4)]
    before = [(number, False) for number in range(4 if damaged is None else damaged)] if left_out else []
    assert seen == (before if damaged is None else [*before, *again])
    assert calls == [wanted] * left_out + [None] * (damaged is not None)


def test_each_frame_is_turned_as_it_says_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("vip.video.reader.turn_of", lambda frame: asked.append(frame.rotation) or frame.rotation)
    video: Any = SimpleNamespace(_turns={})
    frames: Any = [SimpleNamespace(rotation=degrees) for degrees in (0, 90, 90, 0, -90)]
    assert [Video._turn_of(video, frame) for frame in frames] == [0, 90, 90, 0, -90]
    assert asked == [0, 90, -90], "side data of a frame keeps it in memory"
