"""Counts of a data card in bins and by name, ready to be drawn or written.

In: a `DataCard`. Out: histograms whose bins have labels, and tables of names. Texts of hosts among them are as they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vip.corpus.card.tables import MOST_ROWS, CardTable, DataCard, share
from vip.corpus.status import duration
from vip.dataset.statistics import Histogram, NameCounts
from vip.wording import counted

CLASSES = ("below 240p", "240p", "360p", "480p", "720p", "1080p", "1440p", "2160p")


@dataclass(frozen=True, slots=True)
class HistogramBin:
    """One bar; `tick` stands at the axis."""

    label: str
    tick: str
    count: int


@dataclass(frozen=True, slots=True)
class HistogramPlot:
    """A histogram without the empty bins at its ends."""

    title: str
    note: str
    bins: tuple[HistogramBin, ...]
    between: bool
    """Ticks stand where bins begin, not below their middle."""


def plots(card: DataCard) -> list[HistogramPlot]:
    """Return the histograms that are not empty."""
    videos, words = card.counts.videos, card.counts.keyframes
    lengths = [_clock(edge) for edge in videos.lengths_s.edges]
    places = [f"{100 * edge:.0f} %" for edge in words.positions.edges]
    spans = _spans([*places, "100 %"])[:-1]
    mean_s = videos.lengths_s.mean
    found = [
        _plot("Length of the videos", "video", videos.lengths_s, _spans(lengths), lengths, mean_s and duration(mean_s)),
        _plot("Keyframes a video", "video", videos.keyframes, _numbers(videos.keyframes.edges), None, _mean(videos.keyframes)),
        _plot(
            "Tokens a caption",
            "caption",
            words.tokens,
            _numbers(words.tokens.edges),
            _labels_of(words.tokens.edges),
            _mean(words.tokens),
        ),
        _plot("Resolution", "video", videos.lines, CLASSES, None),
        _plot("Where keyframes lie in their videos", "keyframe", words.positions, spans, places),
    ]
    return [plot for plot in found if plot.bins]


def _plot(
    title: str, what: str, histogram: Histogram, labels: Sequence[str], ticks: Sequence[str] | None, mean: str | float | None = None
) -> HistogramPlot:
    bins = [HistogramBin(*one) for one in zip(labels, ticks or labels, histogram.counts, strict=True)]
    filled = [number for number, one in enumerate(bins) if one.count]
    on_average = f", {mean} on average" if mean else ""
    unknown = f"; {histogram.unknown:,} more of which it is not known" if histogram.unknown else ""
    shown = tuple(bins[filled[0] : filled[-1] + 1]) if filled else ()
    return HistogramPlot(title, f"{counted(histogram.count, what)}{on_average}{unknown}.", shown, between=ticks is not None)


def _mean(counted: Histogram) -> str | None:
    return None if counted.mean is None else f"{counted.mean:.1f}"


def _spans(ticks: Sequence[str]) -> list[str]:
    """Return `15 s – 30 s` for each pair of ticks, and `30 s and more`."""
    return [*(f"{one} – {other}" for one, other in pairwise(ticks)), f"{ticks[-1]} and more"]


def _numbers(edges: Sequence[float]) -> list[str]:
    """Return `20–29` for each pair of edges; `8` where one number lies between them."""
    spans = [(int(edge), int(after) - 1) for edge, after in pairwise(edges)]
    return [*(f"{first}" if first == last else f"{first}–{last}" for first, last in spans), f"{edges[-1]:.0f} and more"]


def _labels_of(edges: Sequence[float]) -> list[str]:
    return [f"{edge:.0f}" for edge in edges]


def _clock(seconds: float) -> str:
    unit, length = ("s", 1) if seconds < 60 else ("min", 60) if seconds < 3600 else ("h", 3600)
    return f"{seconds / length:.0f} {unit}" if seconds else "0"


# ---------------------------------------------------------------- by name


def names(card: DataCard) -> list[CardTable]:
    """Return how often languages, licences and kinds of sources occur; tables that are not empty."""
    videos, words = card.counts.videos, card.counts.keyframes
    has = "has" if videos.subtitled == 1 else "have"
    subtitled = f"{videos.subtitled:,} of {counted(videos.videos, 'video')} {has} subtitles, some in several languages."
    found = [
        _names("Languages of subtitles", ("Language", "Videos"), videos.subtitles, videos.videos, subtitled),
        _names("Languages of captions", ("Language", "Keyframes"), words.languages, words.described),
        _names("Licences, as the hosts say", ("Licence", "Videos"), videos.licences, videos.videos),
        _names("Sources", ("Kind", "Videos"), videos.kinds, videos.videos),
    ]
    return [table for table in found if table.rows]


def _names(title: str, head: tuple[str, str], counted: NameCounts, whole: int, note: str = "") -> CardTable:
    shown = counted.most(MOST_ROWS)
    rest = counted.total - sum(count for _, count in shown)
    rows = [(name, f"{count:,}", share(count, whole)) for name, count in [*shown, *([("others", rest)] if rest else [])]]
    return CardTable(title, (*head, "Share"), tuple(rows), note)
