"""Writing of a selection to the files of a run: rows, counts, notes, manifest.

Everything but the pictures is written here, in an order that survives being killed: a manifest without finished stages
first, then the files, then the manifest that says so.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import av
import cv2
import numpy as np

from vip import __version__, store
from vip.config import ExtractSettings
from vip.extraction.analysis_store import write_analyses
from vip.extraction.existing_run import SELECTED
from vip.extraction.select import Selection
from vip.extraction.video_analysis import VideoAnalysis
from vip.protocols import Observer, PruningResult
from vip.records import Candidate, CandidateCounts, Decision, Manifest, Origin, Pruning, VideoInfo
from vip.wording import agreeing, counted

CURVE_WHOLE, CURVE_STEP = 32, 1.1  # the curve holds every number of keyframes up to here, then each a tenth larger


def write_selection(
    folder: Path,
    analysis: VideoAnalysis,
    selection: Selection,
    settings: ExtractSettings,
    observer: Observer,
    *,
    video_id: str,
    start: float,
    origin: Origin | None = None,
    is_own: bool = True,
) -> Manifest:
    """Write everything but the pictures, and return the manifest.

    Args:
        start: when the stage began, by `perf_counter`.
        origin: the run that analyzed the candidates, if it is not this one.
        is_own: this machine wrote all that the manifest takes from that run.

    Raises:
        StoreError: the folder cannot be written.
    """
    rows = _rows(analysis, selection.decisions)
    counts = _counts(rows, None if settings.keyframes == "auto" else settings.keyframes)
    notes = (
        *analysis.losses,
        *selection.notes,
        *_unknown(rows, analysis.backends.get("detector", "unknown")),
        *_shortfall(counts, analysis.video, analysis.backends["pruner"]),
    )
    manifest = Manifest(
        command="extract",
        settings=settings.model_dump(mode="json"),
        backends=analysis.backends,
        versions=_versions(),
        device=analysis.device,
        video_id=video_id,
        video=analysis.video,
        notes=notes,
        losses=analysis.losses,
        counts=counts,
        pruning=_pruning(selection.pruning, analysis.redundant),
        selected_from=origin,
        created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    manifest = store.sign(manifest) if is_own else manifest
    store.write_json(folder / store.MANIFEST, manifest)
    store.clear(folder)
    store.write_rows(folder / store.CANDIDATES, rows)
    store.write_embeddings(folder / store.EMBEDDINGS, analysis.embeddings)
    write_analyses(folder, analysis.frames)
    thumbnails = {frame.pts: frame.thumbnail for frame in analysis.frames}
    store.write_thumbnails(folder / store.THUMBNAILS, ((row.index, thumbnails[row.pts]) for row in rows if row.pts in thumbnails))
    manifest = manifest.model_copy(update={"seconds": {SELECTED: round(perf_counter() - start, 3)}})
    store.write_json(folder / store.MANIFEST, manifest)
    for note in notes:
        observer.note(note)
    return manifest


def _rows(analysis: VideoAnalysis, decisions: Sequence[Decision]) -> list[Candidate]:
    """Return the rows of candidates.jsonl in time order; neighbours in a decision become row numbers."""
    frames, relevance = analysis.frames, analysis.relevance
    by_pts = {frame.pts: (frame, decision) for frame, decision in zip(frames, decisions, strict=True)}
    relevant = {frame.pts: value for frame, value in zip(frames, relevance or (), strict=relevance is not None)}
    order = sorted([*by_pts, *analysis.undecodable])
    row_of = {pts: row for row, pts in enumerate(order)}
    rows = []
    for index, pts in enumerate(order):
        frame, decision = by_pts.get(pts, (None, Decision(kept=False, rule="unreadable", reason="dropped: could not be decoded")))
        neighbours = tuple(row_of[frames[other].pts] for other in decision.neighbours)
        rows.append(
            Candidate(
                index=index,
                pts=pts,
                time_base=analysis.time_base,
                time_s=float(pts * analysis.time_base),
                is_sync=pts in analysis.sync,
                quality=frame.measured.quality if frame else None,
                detections=frame.detections if frame else None,
                stands_in_for=frame.stands_in_for if frame else None,
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
    """Return what the user should know where the detector has nothing to say about frames that could be shown."""
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


def _pruning(found: PruningResult, redundant: float) -> Pruning:
    curve = dict(sorted(found.curve))
    shown, limit = {}, float(CURVE_WHOLE)
    for count, likeness in curve.items():
        if count <= CURVE_WHOLE or count >= limit or count == max(curve):
            shown[count] = round(likeness, 4)
            limit = max(limit, count * CURVE_STEP)
    return Pruning(redundant=redundant, bound=found.bound, curve=shown)


def _versions() -> dict[str, str]:
    return {
        "vip": __version__,
        "python": platform.python_version(),
        "av": av.__version__,
        "opencv": cv2.__version__,
        "numpy": np.__version__,
    }
