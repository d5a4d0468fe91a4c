"""From what was seen of the candidates to the files of a run: decisions, rows, counts, notes, manifest.

Everything but the pictures is written here, in an order that survives being killed: a manifest without finished stages
first, then the files, then the manifest that says so.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from time import perf_counter

import av
import cv2
import numpy as np

from vip import __version__, store
from vip.config import ExtractSettings
from vip.extraction import select
from vip.extraction.analysis_store import write_looks
from vip.extraction.analyze import FrameAnalysis
from vip.protocols import Observer, Pruner, PruningResult
from vip.records import Candidate, CandidateCounts, Decision, Embeddings, Manifest, Origin, Pruning, VideoInfo
from vip.wording import agreeing, counted

SELECTED = "choose"  # the stage in Manifest.seconds
CURVE_WHOLE, CURVE_STEP = 32, 1.1  # the curve holds every number of keyframes up to here, then each a tenth larger


@dataclass(frozen=True, slots=True)
class VideoAnalysis:
    """All that is known of the candidates of a video once they were looked at, in time order."""

    analyses: Sequence[FrameAnalysis]
    embeddings: Embeddings
    lost: Sequence[int]
    """PTS of candidates that could not be decoded."""
    sync: frozenset[int]
    """PTS of sync frames."""
    time_base: Fraction
    video: VideoInfo
    backends: dict[str, str]
    redundant: float
    losses: tuple[str, ...]
    device: str = "cpu"

    def __repr__(self) -> str:
        return f"Seen(looks={len(self.analyses)}, lost={len(self.lost)})"


def write_selection(
    video_analysis: VideoAnalysis,
    folder: Path,
    settings: ExtractSettings,
    pruner: Pruner,
    observer: Observer,
    *,
    video_id: str,
    start: float,
    origin: Origin | None = None,
    relevance: Sequence[float] | None = None,
    is_own: bool = True,
) -> Manifest:
    """Choose, and write everything but the pictures.

    Args:
        start: when the stage began, by `perf_counter`.
        origin: the run that looked at the candidates, if it is not this one.
        relevance: of each look to the query of the settings.
        is_own: the user named the video; it may be read again without being named.

    Raises:
        InputError: nothing is left to keep.
        StoreError: the folder cannot be written.
    """
    keep = None if settings.keyframes == "auto" else settings.keyframes
    decisions, told, thinned = select.select(
        video_analysis.analyses,
        video_analysis.embeddings,
        pruner=pruner,
        keyframes=keep,
        redundant=video_analysis.redundant,
        min_sharpness=settings.min_sharpness,
        min_objects=settings.min_objects,
        text_weight=settings.text_weight,
        relevance=relevance,
    )
    rows = _rows(video_analysis, decisions, relevance)
    counts = _counts(rows, keep)
    notes = (
        *video_analysis.losses,
        *told,
        *_unknown(rows, video_analysis.backends["detector"]),
        *_shortfall(counts, video_analysis.video, pruner.name),
    )
    manifest = Manifest(
        command="extract",
        settings=settings.model_dump(mode="json"),
        backends=video_analysis.backends,
        versions=_versions(),
        device=video_analysis.device,
        video_id=video_id,
        video=video_analysis.video,
        notes=notes,
        losses=video_analysis.losses,
        counts=counts,
        pruning=_pruning(thinned, video_analysis.redundant),
        chosen_from=origin,
        created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    manifest = store.signed(manifest) if is_own else manifest
    store.write_json(folder / store.MANIFEST, manifest)
    store.clear(folder)
    store.write_rows(folder / store.CANDIDATES, rows)
    store.write_embeddings(folder / store.EMBEDDINGS, video_analysis.embeddings)
    write_looks(folder, video_analysis.analyses)
    thumbnails = {analysis.pts: analysis.thumbnail for analysis in video_analysis.analyses}
    store.write_thumbnails(folder / store.THUMBNAILS, ((row.index, thumbnails[row.pts]) for row in rows if row.pts in thumbnails))
    manifest = manifest.model_copy(update={"seconds": {SELECTED: round(perf_counter() - start, 3)}})
    store.write_json(folder / store.MANIFEST, manifest)
    for note in notes:
        observer.note(note)
    return manifest


def _rows(video_analysis: VideoAnalysis, decisions: Sequence[Decision], relevance: Sequence[float] | None) -> list[Candidate]:
    """The rows of candidates.jsonl in time order; neighbours in a decision become row numbers."""
    by_pts = {analysis.pts: (analysis, decision) for analysis, decision in zip(video_analysis.analyses, decisions, strict=True)}
    relevant = {analysis.pts: value for analysis, value in zip(video_analysis.analyses, relevance or (), strict=relevance is not None)}
    order = sorted([*by_pts, *video_analysis.lost])
    row_of = {pts: row for row, pts in enumerate(order)}
    rows = []
    for index, pts in enumerate(order):
        analysis, decision = by_pts.get(pts, (None, Decision(kept=False, rule="unreadable", reason="dropped: could not be decoded")))
        neighbours = tuple(row_of[video_analysis.analyses[other].pts] for other in decision.neighbours)
        rows.append(
            Candidate(
                index=index,
                pts=pts,
                time_base=video_analysis.time_base,
                time_s=float(pts * video_analysis.time_base),
                is_sync=pts in video_analysis.sync,
                quality=analysis.measured.quality if analysis else None,
                detections=analysis.detections if analysis else None,
                stands_in_for=analysis.stands_in_for if analysis else None,
                relevance=relevant.get(pts),
                decision=decision.model_copy(update={"neighbours": neighbours}),
            )
        )
    return rows


def _counts(rows: Sequence[Candidate], asked: int | None) -> CandidateCounts:
    rules = Counter(row.decision.rule for row in rows)
    kept, pruned, duplicates = rules["kept"], rules["pruned"], rules["duplicate"]
    bad = len(rows) - kept - pruned - duplicates
    return CandidateCounts(asked=asked, candidates=len(rows), bad=bad, pruned=pruned, duplicates=duplicates, keyframes=kept)


def _unknown(rows: Sequence[Candidate], detector: str) -> list[str]:
    """What the user should know where the detector has nothing to say about frames that could be shown."""
    asked = [row for row in rows if row.decision.rule in ("kept", "pruned", "too_few_objects")]
    silent = sum(row.detections is None for row in asked)
    return [f"{detector} knows nothing about {silent} of the {counted(len(asked), 'good candidate')}."] if silent else []


def _shortfall(counts: CandidateCounts, video: VideoInfo, pruner: str) -> list[str]:
    if counts.asked is None or counts.keyframes >= counts.asked:
        return []
    reasons = [f"{agreeing(counts.pruned, 'is', 'are')} too alike for the pruner {pruner}"] if counts.pruned else []
    reasons += [f"{agreeing(counts.duplicates, 'shows', 'show')} the same picture as another"] if counts.duplicates else []
    reasons += [f"{agreeing(counts.bad, 'is', 'are')} bad"] if counts.bad else []
    candidates = counted(counts.candidates, "candidate")
    if reasons:
        because = f"of {candidates} {', '.join(reasons[:-2])}{', ' if reasons[:-2] else ''}{' and '.join(reasons[-2:])}"
    elif video.frames is None or counts.candidates < video.frames:
        because = f"there {agreeing(counts.candidates, 'is', 'are', 'candidate')}"
    else:
        because = f"the video has {counted(video.frames, 'frame')}"
    return [f"{counts.keyframes} of the {counted(counts.asked, 'keyframe')} asked for: {because}."]


def _pruning(thinned: PruningResult, redundant: float) -> Pruning:
    curve = dict(sorted(thinned.curve))
    shown, limit = {}, float(CURVE_WHOLE)
    for count, likeness in curve.items():
        if count <= CURVE_WHOLE or count >= limit or count == max(curve):
            shown[count] = round(likeness, 4)
            limit = max(limit, count * CURVE_STEP)
    return Pruning(redundant=redundant, bound=thinned.bound, curve=shown)


def _versions() -> dict[str, str]:
    return {
        "vip": __version__,
        "python": platform.python_version(),
        "av": av.__version__,
        "opencv": cv2.__version__,
        "numpy": np.__version__,
    }
