"""Packets that are kept from indexing for decoding, so that a sync frame alone is never read from the file again."""

from __future__ import annotations

from threading import Lock

from av.packet import Packet
from av.video.stream import VideoStream

MOST_BYTES = 2**24  # 16 MiB: the sync frames of about 20 minutes of 720p; more would be felt in the memory of long videos


class PacketCache:
    """Packets by their position in the index, of a limited number of bytes together: the first ones that fit.

    Which of them a sampler will want is not known while they pass, and any others would be wanted as often. Readers in
    several threads share them: a decoder takes its own reference of a packet's data and never changes it.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._packets: dict[int, Packet[VideoStream]] = {}
        self._free_bytes = most_bytes
        self._lock = Lock()

    def keep(self, position: int, packet: Packet[VideoStream]) -> None:
        """Keep the packet if there is room."""
        with self._lock:
            if packet.size <= self._free_bytes and position not in self._packets:
                self._packets[position] = packet
                self._free_bytes -= packet.size

    def get(self, position: int) -> Packet[VideoStream] | None:
        return self._packets.get(position)

    def clear(self) -> None:
        with self._lock:
            self._free_bytes += sum(packet.size for packet in self._packets.values())
            self._packets.clear()

    def __len__(self) -> int:
        return len(self._packets)
