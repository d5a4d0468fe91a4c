"""What a video must keep within, judged from what yt-dlp says of it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from yt_dlp.utils import DownloadCancelled

from vip.config import BatchSettings
from vip.download.disk_space import STEP_BYTES
from vip.download.ytdlp import KEPT_LINES, DownloadLimits, YtdlpLog, no_progress


class Room:
    """Shared room of which others have taken all but so much."""

    def __init__(self, held_bytes: int = 0, free_bytes: int = 0) -> None:
        self.held_bytes, self.free_bytes = held_bytes, free_bytes
        self.waited: list[int] = []

    def wait_for(self, size_bytes: int) -> None:
        self.waited.append(size_bytes)

    def take(self, size_bytes: int) -> bool:
        if size_bytes <= self.free_bytes:
            self.held_bytes = size_bytes
        return size_bytes <= self.free_bytes


def limits(room_bytes: int = 10**9, space: Room | None = None, **settings: Any) -> DownloadLimits:
    made = DownloadLimits(BatchSettings(**settings))
    made.start(room_bytes, space, no_progress)
    return made


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        ({"duration": 60}, None),
        ({"duration": 600}, None),
        ({"duration": 59.9}, "too_short"),
        ({"duration": 600.1}, "too_long"),
        ({"duration": 0}, "too_short"),
        ({}, None),
        ({"is_live": True}, "no_video"),
        ({"live_status": "is_upcoming"}, "no_video"),
        ({"live_status": "was_live"}, None),
        ({"playlist_count": 2}, "no_video"),
        ({"playlist_count": 2, "formats": []}, None),
        ({"filesize": 1000}, None),
        ({"filesize": 1001}, "too_large"),
        ({"requested_formats": [{"filesize": 400}, {"filesize": 100}]}, None),
        ({"requested_formats": [{"filesize": 400}, {"filesize": 101}]}, "too_large"),
    ],
)
def test_a_video_is_judged_by_what_is_said_of_it(info: dict[str, Any], kind: str | None) -> None:
    judged = limits(1000, min_length=60, max_length=600)
    said = judged.match_filter(info)
    assert (judged.refusal and judged.refusal.kind) == kind
    assert said == (str(judged.refusal) if kind else None)


def test_parts_that_are_merged_need_twice_the_room() -> None:
    room = Room()
    limits(space=room).match_filter({"requested_formats": [{"filesize": 400}, {"filesize_approx": 100}]})
    limits(space=room).match_filter({"filesize": 400})
    assert room.waited == [1000, 400]


def test_files_of_a_download_count_together_and_the_next_begins_anew() -> None:
    judged = limits(1000)
    judged.progress({"filename": "a", "downloaded_bytes": 600})
    judged.progress({"filename": "a", "downloaded_bytes": 700})
    with pytest.raises(DownloadCancelled):
        judged.progress({"filename": "b", "downloaded_bytes": 301})
    assert judged.refusal
    assert judged.refusal.kind == "too_large"
    judged.start(1000, None, no_progress)
    judged.progress({"filename": "b", "downloaded_bytes": 1000})
    assert judged.refusal is None


@pytest.mark.parametrize(
    ("state", "is_refused"),
    [
        ({"downloaded_bytes": 1, "total_bytes": 1000}, False),
        ({"downloaded_bytes": 1, "total_bytes": 1001}, True),
        ({"downloaded_bytes": 1001, "total_bytes": 900}, True),
        ({"downloaded_bytes": 1, "total_bytes_estimate": 1001}, False),
        ({"downloaded_bytes": 1000}, False),
        ({"downloaded_bytes": 1001}, True),
    ],
)
def test_a_size_that_the_server_states_is_refused_with_the_first_block_and_an_estimate_is_not(
    state: dict[str, int], is_refused: bool
) -> None:
    judged = limits(1000)
    with pytest.raises(DownloadCancelled) if is_refused else nullcontext():
        judged.progress({"filename": "a", **state})
    assert (judged.refusal is not None) == is_refused


def test_what_is_here_is_told_with_the_size_where_that_is_known() -> None:
    told: list[tuple[int, int | None]] = []
    judged = DownloadLimits(BatchSettings())
    judged.start(10**9, None, lambda done, size: told.append((done, size)))
    judged.progress({"downloaded_bytes": 5, "total_bytes": 10})
    judged.progress({"downloaded_bytes": 6, "total_bytes_estimate": 11.5})
    judged.progress({"downloaded_bytes": None})
    assert told == [(5, 10), (6, 11), (0, None)]


def test_one_that_grows_takes_a_step_more_than_it_needs() -> None:
    room = Room(held_bytes=100, free_bytes=10**9)
    judged = limits(space=room)
    judged.progress({"filename": "a", "downloaded_bytes": 100})
    assert room.held_bytes == 100
    judged.progress({"filename": "a", "downloaded_bytes": 101})
    assert room.held_bytes == 101 + STEP_BYTES


@pytest.mark.parametrize(("held", "done", "needed"), [(100, 101, 101 + STEP_BYTES), (10**8, 10**8 + 1, 2 * 10**8)])
def test_one_that_finds_no_room_asks_for_twice_what_it_had_or_a_step_more(held: int, done: int, needed: int) -> None:
    judged = limits(space=Room(held_bytes=held))
    with pytest.raises(DownloadCancelled):
        judged.progress({"filename": "a", "downloaded_bytes": done})
    assert (judged.needed_bytes, judged.refusal) == (needed, None)


def test_the_last_words_of_yt_dlp_are_kept_and_short() -> None:
    log = YtdlpLog()
    for number in range(KEPT_LINES + 5):
        log.warning(f"{number} " + "x" * 5000)
    log.debug("not kept")
    assert (len(log.lines), log.lines[0][:2], max(map(len, log.lines))) == (20, "5 ", 2000)
