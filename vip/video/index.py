"""The packet index: which frames there are and where decoding can start, read by demuxing, without decoding (but see `_by_decoding`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from vip.errors import InputError
from vip.records import PacketIndex
from vip.video.container import NOTHING_DECODES

if TYPE_CHECKING:
    from vip.video.reader import Video

LEAST_DIFFERENT = 0.9  # of the PTS, or they are no times


def read_index(video: Video) -> PacketIndex:
    rows: list[tuple[int, int, bool, int, bool]] = []
    timeless = False
    for packet in video._packets:
        timeless |= packet.pts is None
        pts = packet.pts if packet.pts is not None else packet.dts or 0
        dts = packet.dts if packet.dts is not None else pts
        rows.append((pts, dts, packet.is_keyframe, packet.size, not packet.is_discard))
    video._next = len(rows)
    if not rows:
        raise InputError(f"{video.path} holds a video stream without a readable frame. The file is cut off or damaged.")
    table = np.array(rows, np.int64)
    shown = table[:, 4].astype(bool)
    if not shown.any():
        shown[:] = True
    time_base = video._stream.time_base or Fraction(1, 90_000)
    index = PacketIndex(table[:, 0], table[:, 1], table[:, 2].astype(bool), table[:, 3], shown, time_base)
    if timeless or _times_are_wrong(video, index):
        return _index_by_decoding(video, index)
    _note_truncation(video, index)
    return _believe_decoder(video, index)


def _note_truncation(video: Video, index: PacketIndex) -> None:
    """MP4 counts its frames ahead of the data; other containers may state a duration."""
    named, header_s = video._stream.frames, video._header_duration_s()
    there_s = float(int(np.ptp(index.pts)) * index.time_base)
    hidden = named and header_s and header_s - there_s < 1.5 * header_s / named  # by an edit list, which leaves no gap at the end
    if named and len(index) < named and not hidden:
        video._losses.append(f"The file ends early: {len(index)} of its {named} frames are there, and they are used.")
    elif header_s and not named and there_s < 0.9 * header_s - 2:
        video._losses.append(f"The file ends early: {there_s:.1f} of {header_s:.1f} s are there, and they are used.")


def _times_are_wrong(video: Video, index: PacketIndex) -> bool:
    """Whether the order of the PTS is not that of the pictures.

    AVI has no PTS; for H.264 that reorders frames FFmpeg makes some up, in the order of the packets. And in
    recordings put together from several, each with a clock of its own, the same times come again.
    """
    made_up = "avi" in video._container.format.name.split(",") and video._decoder.has_b_frames and bool((np.diff(index.pts) > 0).all())
    return made_up or len(np.unique(index.pts)) < LEAST_DIFFERENT * len(index)


def _believe_decoder(video: Video, index: PacketIndex) -> PacketIndex:
    """GIF, and MP4 without a sync table, flag every packet as sync: ask the decoder about three of them."""
    if len(index) == 1 or index.is_sync.mean() < 0.9:
        return index
    video._take(index)
    probes = {int(video._sync[1]), int(video._sync[len(video._sync) // 2]), int(video._sync[-1])}
    shown = [[frame.key_frame for frame in video._decode_packets(position, position)] for position in probes]
    if all(frames and all(frames) for frames in shown):
        return index
    return replace(index, is_sync=np.arange(len(index)) == 0)


def _index_by_decoding(video: Video, packets: PacketIndex) -> PacketIndex:
    """Files without PTS (raw streams, old AVI): the decoder's output order and its DTS say when a frame is shown."""
    video._rewind()
    tick = max(1, round(1 / ((video._stream.average_rate or 25) * packets.time_base)))
    times = [(frame.pts, frame.dts) for frame in video._decode_all()]
    if not times:
        raise InputError(NOTHING_DECODES.format(video.path))
    stamps, _ = min((_increasing(column, tick) for column in zip(*times, strict=True)), key=lambda made: made[1])
    pts = np.array(stamps, np.int64)
    sizes = np.resize(packets.size_bytes, len(pts))
    return PacketIndex(pts, pts, np.arange(len(pts)) == 0, sizes, np.ones(len(pts), bool), packets.time_base, by_decoding=True)


def _increasing(stamps: Sequence[int | None], tick: int) -> tuple[list[int], int]:
    """The stamps with each that is missing or goes back put one tick behind the one before; and how many those are."""
    made: list[int] = []
    faults = 0
    for stamp in stamps:
        if stamp is None or (made and stamp <= made[-1]):
            faults += 1
            stamp = made[-1] + tick if made else 0
        made.append(stamp)
    return made, faults
