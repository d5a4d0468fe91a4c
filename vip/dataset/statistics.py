"""Statistics of videos and keyframes, in memory that does not grow with their number: histograms, and counts of a limited number of names.

In: videos of sidecars, rows of shards. Out: counts that can be merged.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from vip.caption_length import tokens_in
from vip.dataset.items import UNKNOWN_VERTICAL
from vip.dataset.rows import VideoRow
from vip.dataset.schema import Row

LENGTHS_S = (0.0, 15.0, 30.0, 60.0, 120.0, 180.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0)
KEYFRAMES = (*(float(count) for count in range(1, 21)), 31.0, 51.0, 101.0, 201.0, 501.0)
TOKENS = tuple(10.0 * step for step in range(41))
POSITIONS = tuple(step / 20 for step in range(20))
LINES = (0.0, 216.0, 324.0, 432.0, 648.0, 972.0, 1296.0, 1944.0)  # a tenth below 240p, 360p, …
MOST_NAMES = 200
MOST_LETTERS = 120
COUNTED_COLUMNS = ["video_id", "time_s", "dense_caption", "language", "description_engine", "verification", "provenance"]
"""The columns that `KeyframeStatistics.add` needs."""
UNCOUNTED_SETTINGS = {"topic", "spent", "base_url", "key_file"}  # of captions: they differ for each video, or are private
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass(slots=True)
class Histogram:
    """The number of values in each bin; the last bin has no upper edge."""

    edges: tuple[float, ...]
    """The lower edges of the bins."""
    counts: list[int] = field(default_factory=list)
    total: float = 0.0
    unknown: int = 0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * len(self.edges)
        if len(self.counts) != len(self.edges):
            raise ValueError(f"expected a count for each of {len(self.edges)} bins, got {len(self.counts)}")

    def add(self, value: float | None) -> None:
        if value is None or not math.isfinite(value):
            self.unknown += 1
            return
        self.counts[max(0, bisect_right(self.edges, value) - 1)] += 1
        self.total += value

    def merge(self, other: Histogram) -> None:
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.total += other.total
        self.unknown += other.unknown

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class NameCounts:
    """The number of times each name occurs; beyond `MOST_NAMES`, further names are counted together."""

    counts: dict[str, int] = field(default_factory=dict)
    others: int = 0

    def add(self, name: str, count: int = 1) -> None:
        name = " ".join(name[: 4 * MOST_LETTERS].split())[:MOST_LETTERS]
        if name in self.counts or len(self.counts) < MOST_NAMES:
            self.counts[name] = self.counts.get(name, 0) + count
        else:
            self.others += count

    def merge(self, other: NameCounts) -> None:
        for name, count in other.counts.items():
            self.add(name, count)
        self.others += other.others

    def most(self, limit: int | None = None) -> list[tuple[str, int]]:
        """Return the names with their counts, the most frequent first."""
        return sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    @property
    def total(self) -> int:
        return sum(self.counts.values()) + self.others


@dataclass(slots=True)
class ModelUse:
    """The requests to one model for descriptions."""

    calls: int = 0
    cached: int = 0
    """Answered from the cache."""
    unpriced: int = 0
    """Requests whose price is unknown."""
    uncounted: int = 0
    """Requests whose tokens are unknown, at least in part."""
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    first_utc: str = ""
    last_utc: str = ""

    def add(self, call: Mapping[str, Any]) -> None:
        use = ModelUse(calls=1, first_utc=call["created_utc"], last_utc=call["created_utc"])
        if call["cached"]:
            use.cached = 1
        elif call["engine"] != "offline":
            use.unpriced, use.uncounted = int(call["usd"] is None), int(None in (call["tokens_in"], call["tokens_out"]))
            use.usd, use.tokens_in, use.tokens_out = call["usd"] or 0.0, call["tokens_in"] or 0, call["tokens_out"] or 0
        self.merge(use)

    def merge(self, other: ModelUse) -> None:
        self.first_utc = min(self.first_utc or other.first_utc, other.first_utc)
        self.last_utc = max(self.last_utc, other.last_utc)
        for name in ("calls", "cached", "unpriced", "uncounted", "tokens_in", "tokens_out", "usd"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class KeyframeStatistics:
    """Counts of keyframes, from the rows of shards."""

    keyframes: int = 0
    described: int = 0
    tokens: Histogram = field(default_factory=lambda: Histogram(TOKENS))
    """Of the dense captions."""
    positions: Histogram = field(default_factory=lambda: Histogram(POSITIONS))
    """Of the keyframes in their videos, 0 at the beginning and 1 at the end."""
    engines: NameCounts = field(default_factory=NameCounts)
    languages: NameCounts = field(default_factory=NameCounts)
    prompts: NameCounts = field(default_factory=NameCounts)
    failures: NameCounts = field(default_factory=NameCounts)
    """Why keyframes have no description, by type."""
    verified: int = 0
    verdicts: NameCounts = field(default_factory=NameCounts)
    """Claims by their verdict."""
    corrected: int = 0
    """Descriptions that a second look changed."""
    models: dict[str, ModelUse] = field(default_factory=dict)

    def add(self, row: Row, video: VideoRow | None) -> None:
        """Count a row of `vip.dataset.schema`, which needs only `COUNTED_COLUMNS`."""
        self.keyframes += 1
        self.positions.add(_position(row["time_s"], video))
        rest = row["provenance"]
        if rest["failure"] is not None:
            self.failures.add(str(rest["failure"]["kind"]))
        if rest["description"] is None:
            return
        self.described += 1
        self.tokens.add(tokens_in(row["dense_caption"]))
        self.engines.add(row["description_engine"])
        self.languages.add(row["language"])
        for call in rest["description"]["calls"]:
            self.prompts.add(f"{call['prompt']} {call['prompt_version']} ({call['prompt_sha256'][:12]})")
            if call["model"] in self.models or len(self.models) < MOST_NAMES:
                self.models.setdefault(call["model"], ModelUse()).add(call)
        if row["verification"] is not None:
            self.verified += 1
            self.corrected += row["verification"]["before"] is not None
            for check in row["verification"]["checks"]:
                self.verdicts.add(check["verdict"])

    def merge(self, other: KeyframeStatistics) -> None:
        for model, use in other.models.items():
            if model in self.models or len(self.models) < MOST_NAMES:
                self.models.setdefault(model, ModelUse()).merge(use)
        for each in fields(self):
            mine, its = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, int):
                setattr(self, each.name, mine + its)
            elif not isinstance(mine, dict):
                mine.merge(its)


@dataclass(slots=True)
class VideoStatistics:
    """Counts of videos, from the sidecars."""

    videos: int = 0
    lengths_s: Histogram = field(default_factory=lambda: Histogram(LENGTHS_S))
    keyframes: Histogram = field(default_factory=lambda: Histogram(KEYFRAMES))
    lines: Histogram = field(default_factory=lambda: Histogram(LINES))
    """The resolution of the pictures, as 720 in 720p: the height of the 16:9 frame around them."""
    verticals: NameCounts = field(default_factory=NameCounts)
    """A video in several verticals counts in each."""
    subtitles: NameCounts = field(default_factory=NameCounts)
    """Languages; a video with several counts in each."""
    subtitled: int = 0
    licences: NameCounts = field(default_factory=NameCounts)
    """As the hosts say."""
    kinds: NameCounts = field(default_factory=NameCounts)
    notes: NameCounts = field(default_factory=NameCounts)
    """Notes of the extraction, without the numbers in them."""
    made: dict[str, NameCounts] = field(default_factory=dict)
    """The values of each setting, backend, version and device, counted by videos."""
    first_utc: str = ""
    last_utc: str = ""

    def add(self, video: VideoRow) -> None:
        self.videos += 1
        self.lengths_s.add(video.duration_s)
        self.keyframes.add(video.counts.keyframes if video.counts else None)
        self.lines.add(_lines(video.width_px, video.height_px))
        self.kinds.add(video.kind)
        for name in video.verticals or (UNKNOWN_VERTICAL,):
            self.verticals.add(name)
        for language in video.subtitles:
            self.subtitles.add(language)
        self.subtitled += bool(video.subtitles)
        licence = video.info.get("license")
        self.licences.add(licence if isinstance(licence, str) and licence.strip() else "not known")
        for note in dict.fromkeys(NUMBER.sub("…", note) for note in video.notes):
            self.notes.add(note)
        self._add_settings(video)

    def _add_settings(self, video: VideoRow) -> None:
        captioning = {name: value for name, value in (video.captioning or {}).items() if name not in UNCOUNTED_SETTINGS}
        groups = {"settings": video.settings, "captions": captioning, "backends": video.backends, "versions": video.versions}
        for group, values in (*groups.items(), ("device", {"device": video.device})):
            for name, value in values.items():
                key = f"{group}.{name}"
                if key in self.made or len(self.made) < MOST_NAMES:
                    self.made.setdefault(key, NameCounts()).add(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if video.created_utc:
            self.first_utc = min(self.first_utc or video.created_utc, video.created_utc)
            self.last_utc = max(self.last_utc, video.created_utc)


def _position(time_s: float | None, video: VideoRow | None) -> float | None:
    """Return the place of a time in its video, 0 to 1."""
    if time_s is None or video is None:
        return None
    start_s, end_s = (video.file.start_time_s, video.file.end_time_s) if video.file else (0.0, video.duration_s or 0.0)
    return min(1.0, max(0.0, (time_s - start_s) / (end_s - start_s))) if end_s > start_s else None


def _lines(width_px: int | None, height_px: int | None) -> float | None:
    if not width_px or not height_px:
        return None
    return max(min(width_px, height_px), max(width_px, height_px) * 9 / 16)
