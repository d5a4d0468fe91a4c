"""Figures by which choices of keyframes differ: runs of one video in, one `Measures` for each out.

No truth is needed: what the video shows is taken to be the good candidates of all runs together (neither bad nor
unreadable), each standing for the time that is nearest to it. So the figures of one comparison compare with each other,
and not with those of a comparison of other runs. All cosines are of image vectors of one embedder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from vip.errors import StoreError, UsageError
from vip.html.format import GOOD_ENOUGH, number, time_code
from vip.records import Manifest, Vectors
from vip.store import CANDIDATES, EMBEDDINGS, Run
from vip.wording import option

CAPTIONING = "caption"  # the stage in Manifest.seconds that has no part in choosing
BLOCK = 1024  # rows

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measures:
    """One choice of keyframes in figures; None where there is nothing to compare or to measure."""

    keyframes: int
    candidates: int
    """Frames that were looked at."""
    seconds: float
    """Wall seconds of the stages of the extraction, as the manifest has them."""
    redundancy: float | None
    """Mean over the keyframes of the highest cosine to any other keyframe."""
    most_alike: float | None
    """Highest cosine of two keyframes."""
    sharpness_median: float | None
    sharpness_lowest: float | None
    coverage: float | None
    """Mean over the time of the video of the highest cosine to a keyframe."""
    coverage_lowest: float | None
    missed_time_s: float | None
    """Where the coverage is lowest."""
    longest_gap_s: float
    """Longest stretch of the video without a keyframe, those before the first and behind the last included."""


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of the tables: its name, what it means, and which values are the better ones."""

    name: str
    meaning: str
    value: Callable[[Measures], float | None]
    shown: Callable[[Measures], str]
    better: Literal["lower", "higher"] | None = None
    minor: bool = False
    """Stands beneath the column before it on the page, and is left out in a narrow terminal."""


def _kept_of(measures: Measures) -> str:
    return f"{measures.keyframes} of {measures.candidates}"


def _gap(measures: Measures) -> str:
    return time_code(measures.longest_gap_s)


def _cosine(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _number(value: float | None) -> str:
    return "–" if value is None else number(value)


COLUMNS: tuple[Column, ...] = (
    Column("Keyframes", "pictures kept, of the frames that were looked at", lambda m: m.keyframes, _kept_of),
    Column("Longest gap", "longest stretch of the video without a keyframe", lambda m: m.longest_gap_s, _gap, "lower", minor=True),
    Column("Seconds", "time spent to look, choose and write", lambda m: m.seconds, lambda m: number(m.seconds), "lower"),
    Column(
        "Redundancy",
        "how alike the keyframes are: cosine of each to its nearest other, mean",
        lambda m: m.redundancy,
        lambda m: _cosine(m.redundancy),
        "lower",
    ),
    Column(
        "Most alike",
        "cosine of the two keyframes that are most alike",
        lambda m: m.most_alike,
        lambda m: _cosine(m.most_alike),
        "lower",
        minor=True,
    ),
    Column(
        "Sharpness",
        "variance of the Laplacian of the keyframes, median; beneath each picture stands its own",
        lambda m: m.sharpness_median,
        lambda m: _number(m.sharpness_median),
        "higher",
    ),
    Column(
        "Least sharp",
        "sharpness of the least sharp keyframe",
        lambda m: m.sharpness_lowest,
        lambda m: _number(m.sharpness_lowest),
        "higher",
        minor=True,
    ),
    Column(
        "Coverage",
        "how alike the video and the keyframes are: cosine of each good frame that was looked at to its nearest keyframe, mean over time",
        lambda m: m.coverage,
        lambda m: _cosine(m.coverage),
        "higher",
    ),
    Column(
        "Least covered",
        "coverage of the moment that is least like any keyframe",
        lambda m: m.coverage_lowest,
        lambda m: _cosine(m.coverage_lowest),
        "higher",
        minor=True,
    ),
)


def best(column: Column, rows: Sequence[Measures]) -> set[int]:
    """Return the rows with the best value of a column, as it is shown; none where all are the same or nothing is better."""
    values = [(value if column.better == "higher" else -value, i) for i, row in enumerate(rows) if (value := column.value(row)) is not None]
    if column.better is None or not values:
        return set()
    top = column.shown(rows[max(values)[1]])
    found = {i for _, i in values if column.shown(rows[i]) == top}
    return found if len(found) < len(rows) else set()


def measure_all(runs: Sequence[Run]) -> list[Measures]:
    """Return the figures of each run.

    Args:
        runs: finished runs of one video, or of one stretch of it.

    Raises:
        UsageError: their vectors are of different embedders.
        StoreError: a file of a run is damaged.
    """
    analyzed = [_read_vectors(run) for run in runs]
    if len(models := {run.model for run in analyzed}) > 1:
        raise UsageError(
            f"Vectors of different embedders ({', '.join(sorted(models))}) do not compare. Add {option('overwrite')} to make all runs anew."
        )
    good = {pts: (time_s, vector) for run in analyzed for pts, (time_s, vector) in run.good.items()}
    order = sorted(good)
    times_s = np.array([good[pts][0] for pts in order], np.float64)
    vectors = np.array([good[pts][1] for pts in order], np.float32)
    return [_measures(run, times_s, vectors) for run in analyzed]


# ---------------------------------------------------------------- one run


@dataclass(frozen=True)
class _RunVectors:
    """Vectors of a run for its figures."""

    manifest: Manifest
    candidates: int
    sharpness: list[float]
    times_s: list[float]
    keyframes: Vectors
    good: dict[int, tuple[float, npt.NDArray[np.float32]]]
    """PTS -> time and vector of the candidates that show something."""
    model: str


def _read_vectors(run: Run) -> _RunVectors:
    manifest, candidates, embeddings = run.manifest, run.candidates, run.embeddings
    decoded = [row for row in candidates if row.quality is not None]
    if manifest is None or embeddings is None or len(embeddings) != len(decoded):
        raise StoreError(f"{run.folder / EMBEDDINGS} does not fit {CANDIDATES}. Add {option('overwrite')} to make the run again.")
    rows = list(zip(decoded, embeddings.image, strict=True))
    return _RunVectors(
        manifest,
        candidates=len(candidates),
        sharpness=[frame.record.quality.sharpness for frame in run.keyframes],
        times_s=[row.time_s for row, _ in rows if row.decision.kept],
        keyframes=np.array([vector for row, vector in rows if row.decision.kept], np.float32).reshape(-1, embeddings.image.shape[1]),
        good={row.pts: (row.time_s, vector) for row, vector in rows if row.decision.rule in GOOD_ENOUGH},
        model=embeddings.model,
    )


def _measures(run: _RunVectors, times_s: Floats, vectors: Vectors) -> Measures:
    """Return the figures of a run; `times_s` (N,) and `vectors` (N, D) are of what the video shows, in time order."""
    start_s, end_s = extracted_span(run.manifest)
    alike = closest_others(run.keyframes)
    covered = highest_cosines(vectors, run.keyframes) if len(run.keyframes) and len(vectors) else None
    missed = None if covered is None else int(covered.argmin())
    return Measures(
        keyframes=len(run.keyframes),
        candidates=run.candidates,
        seconds=round(sum(seconds for stage, seconds in run.manifest.seconds.items() if stage != CAPTIONING), 3),
        redundancy=None if alike is None else float(alike.mean()),
        most_alike=None if alike is None else float(alike.max()),
        sharpness_median=float(np.median(run.sharpness)) if run.sharpness else None,
        sharpness_lowest=min(run.sharpness, default=None),
        coverage=None if covered is None else float(np.average(covered, weights=shares(times_s, start_s, end_s))),
        coverage_lowest=None if covered is None or missed is None else float(covered[missed]),
        missed_time_s=None if missed is None else float(times_s[missed]),
        longest_gap_s=longest_gap(run.times_s, start_s, end_s),
    )


def extracted_span(manifest: Manifest) -> tuple[float, float]:
    """Return the first and the last second of what was asked for: the video, or the part between the settings `start` and `end`."""
    start_s, end_s = manifest.settings.get("start"), manifest.settings.get("end")
    video = manifest.video
    return (
        video.start_time_s if start_s is None else max(video.start_time_s, start_s),
        video.end_time_s if end_s is None else min(video.end_time_s, end_s),
    )


def closest_others(vectors: Vectors) -> Floats | None:
    """Return float64 (N,): the highest cosine of each row to any other; None where there are fewer than two."""
    return highest_cosines(vectors, vectors, except_itself=True) if len(vectors) > 1 else None


def highest_cosines(vectors: Vectors, others: Vectors, *, except_itself: bool = False) -> Floats:
    """Return float64 (N,): the highest cosine of each of the `vectors` to one of the `others`. Works in blocks to fit in memory."""
    highest = np.empty(len(vectors), np.float64)
    for start in range(0, len(vectors), BLOCK):
        cosines = vectors[start : start + BLOCK] @ others.T
        if except_itself:
            rows = np.arange(len(cosines))
            cosines[rows, start + rows] = -np.inf
        highest[start : start + BLOCK] = cosines.max(axis=1)
    return highest.clip(-1, 1)


def shares(times_s: Floats, start_s: float, end_s: float) -> Floats:
    """Return float64 (N,), sum 1: the share of the span that is nearest to each of the sorted times; equal shares without a length."""
    inside = times_s.clip(start_s, end_s)
    edges = np.concatenate([[start_s], (inside[:-1] + inside[1:]) / 2, [end_s]])
    lengths: Floats = np.diff(edges)
    total = float(lengths.sum())
    return lengths / total if total > 0 else np.full(len(times_s), 1 / len(times_s))


def longest_gap(times_s: Sequence[float], start_s: float, end_s: float) -> float:
    """Return the longest stretch between `start_s` and `end_s` without any of the sorted times, in seconds."""
    return max(0.0, float(np.diff([start_s, *times_s, end_s]).max()))
