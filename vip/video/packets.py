"""Packets that are kept from indexing for decoding, so that the file is not read again for them."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from av.packet import Packet
from av.video.stream import VideoStream

MOST_BYTES = 3 * 2**23  # 24 MiB: a few minutes of 720p whole, or the sync frames of about 30
OVERHEAD_BYTES = 512  # of a packet beside its data


class PacketCache:
    """Packets by their position in the index, of a limited number of bytes together.

    While there is room all are kept. Then the sync packets that come take the place of the latest others, so that of long
    videos the sync packets are left, and of these the first ones that fit: which of them a sampler will want is not known
    while they pass. Readers in several threads share the packets: a decoder takes a reference of its own to the data of a
    packet and never changes it.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._packets: dict[int, Packet[VideoStream]] = {}
        self._others: list[int] = []  # positions of those that are no sync packets
        self._free_bytes = most_bytes
        self._lock = Lock()

    def keep(self, position: int, packet: Packet[VideoStream]) -> None:
        """Keep the packet if there is room, or if room can be made for a sync packet."""
        with self._lock:
            cost = packet.size + OVERHEAD_BYTES
            while packet.is_keyframe and cost > self._free_bytes and self._others:
                self._free_bytes += self._packets.pop(self._others.pop()).size + OVERHEAD_BYTES
            if cost > self._free_bytes:
                return
            self._packets[position] = packet
            self._free_bytes -= cost
            if not packet.is_keyframe:
                self._others.append(position)

    def get(self, position: int) -> Packet[VideoStream] | None:
        return self._packets.get(position)

    def clear(self) -> None:
        with self._lock:
            self._free_bytes += sum(packet.size + OVERHEAD_BYTES for packet in self._packets.values())
            self._packets.clear()
            self._others.clear()

    def __iter__(self) -> Iterator[Packet[VideoStream]]:
        return iter(list(self._packets.values()))

    def __len__(self) -> int:
        return len(self._packets)
