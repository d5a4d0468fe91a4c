"""Packets that are kept from indexing for decoding, so that the file is not read again for them."""

from __future__ import annotations

from av.packet import Packet
from av.video.stream import VideoStream

from vip.video.bounded_cache import BoundedCache

MOST_BYTES = 3 * 2**23  # 24 MiB: a few minutes of 720p whole, or the sync frames of about 30
NEAR_SHARE = 3  # a third of that is enough for the sync frames of a longer video that is near
TIMES_KEPT = 2  # from so many times the bytes that are kept on a video is long: what is left of it is the beginning, and mostly not wanted
OVERHEAD_BYTES = 512  # of a packet beside its data


class PacketCache(BoundedCache["Packet[VideoStream]"]):
    """Packets by their position in the index.

    Sync packets are preferred, so that of long videos they are left, and of these the first ones that fit: which of them a sampler
    will want is not known while they pass. Readers in several threads share the packets: a decoder takes a reference of its
    own to the data of a packet and never changes it.

    Args:
        is_near: reading a packet again costs little. Then of long videos fewer are kept, no others than sync packets, and each is let go
            when it is taken.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, *, is_near: bool = False) -> None:
        super().__init__(most_bytes)
        self._is_near, self._whole_bytes, self._near_bytes = is_near, most_bytes, most_bytes // NEAR_SHARE
        self._seen_bytes, self._sync_bytes, self._is_long = 0, 0, False

    def keep(self, position: int, packet: Packet[VideoStream]) -> None:
        """Keep the packet if there is room, or if room can be made for a sync packet."""
        size_bytes = packet.size + OVERHEAD_BYTES
        self._seen_bytes += size_bytes
        self._sync_bytes += size_bytes if packet.is_keyframe else 0
        is_long = self._sync_bytes > self._near_bytes or self._seen_bytes > TIMES_KEPT * self._whole_bytes
        if self._is_near and is_long and not self._is_long:
            self._is_long = True
            self._bound(self._near_bytes)
        if packet.is_keyframe or not self._is_long:
            self._keep(position, packet, size_bytes, preferred=packet.is_keyframe)

    def take(self, position: int) -> Packet[VideoStream] | None:
        """Return the packet; None where it was not kept, or let go."""
        packet = self.get(position)
        if packet is not None and self._is_long:
            self._drop(position)
        return packet

    def clear(self) -> None:
        """Let all go, and begin anew."""
        super().clear()
        self._bound(self._whole_bytes)
        self._seen_bytes, self._sync_bytes, self._is_long = 0, 0, False
