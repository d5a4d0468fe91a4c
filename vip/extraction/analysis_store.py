"""Storage of frame analyses: a run can select again without its video.

The analysis of a frame is spread over four files: its row of candidates.jsonl (times, quality, detections), its vector in
embeddings.npz, its thumbnail, and in analysis.npz what only selecting needs.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vip import files, store
from vip.errors import InputError, StoreError
from vip.extraction.analyze import SIGNATURE_SIZE, FrameAnalysis, Vector
from vip.extraction.object_text import text_of
from vip.extraction.quality import FrameMeasures
from vip.records import Candidate
from vip.store import Run
from vip.wording import call

Columns = dict[str, npt.NDArray[Any]]  # name -> (N, …)
SHARES = tuple(field.name for field in fields(FrameMeasures) if field.name != "quality")
KINDS = {
    "pts": "i",
    "in_transition": "b",
    "is_still": "b",
    "is_calm": "b",
    "is_between_rests": "b",
    **dict.fromkeys(SHARES, "f"),
}


def write_analyses(folder: Path, analyses: Sequence[FrameAnalysis]) -> None:
    """Write analysis.npz: `pts` int64 (N,), `signature` uint8 (N, 18, 32, 3).

    And `in_transition`, `is_still`, `is_calm` and `is_between_rests` bool (N,); each number of `FrameMeasures` beside the quality, float64
    (N,); and `view` float32 (N, 1544), unless the vectors in
    embeddings.npz are the same.
    """
    columns: Columns = {
        "pts": np.array([analysis.pts for analysis in analyses], np.int64),
        "signature": np.stack([analysis.signature for analysis in analyses]),
        "in_transition": np.array([analysis.in_transition for analysis in analyses], bool),
        "is_still": np.array([analysis.is_still for analysis in analyses], bool),
        "is_calm": np.array([analysis.is_calm for analysis in analyses], bool),
        "is_between_rests": np.array([analysis.is_between_rests for analysis in analyses], bool),
        **{name: np.array([getattr(analysis.measured, name) for analysis in analyses], np.float64) for name in SHARES},
    }
    if any(analysis.view is not analysis.vector for analysis in analyses):
        columns["view"] = np.stack([analysis.view for analysis in analyses])
    with store.replacing(folder / store.ANALYSIS) as file:
        np.savez(file, **columns)  # type: ignore[arg-type]  # its signature takes some names for options


def analyses_of(run: Run) -> list[FrameAnalysis]:
    """Return what the run saw of its candidates, in time order, to the last bit.

    Raises:
        InputError: the run was made by a vip that did not keep it.
        StoreError: its files are damaged or do not fit together.
    """
    embeddings, rows = run.embeddings, [row for row in run.candidates if row.quality is not None]
    again = f"Run {call('extract', 'VIDEO', overwrite=True)} to make the run again."
    if embeddings is None or not (run.folder / store.ANALYSIS).exists():
        raise InputError(f"{run.folder} has no {store.ANALYSIS}, which choosing from it needs: an older vip made it. {again}")
    columns, thumbnails = store.read_arrays(run.folder / store.ANALYSIS), _thumbnails(run.folder / store.THUMBNAILS)
    if missing := sorted(KINDS.keys() - columns.keys()):
        raise InputError(f"{run.folder / store.ANALYSIS} has no {missing[0]}, which choosing from it needs: an older vip made it. {again}")
    if not _fit(columns, len(rows)) or [row.pts for row in rows] != columns["pts"].tolist():
        raise StoreError(f"{run.folder / store.ANALYSIS} does not fit {store.CANDIDATES}. {again}")
    if len(embeddings) != len(rows) or not {row.index for row in rows} <= set(thumbnails):
        raise StoreError(f"{run.folder / store.EMBEDDINGS} or {store.THUMBNAILS} does not fit {store.CANDIDATES}. {again}")
    return [_analysis(row, columns, place, embeddings.image[place], thumbnails[row.index]) for place, row in enumerate(rows)]


def _fit(columns: Columns, rows: int) -> bool:
    """Return whether all have this many rows, and the shapes and types that `write_analyses` gives them."""
    flat = all(columns[name].shape == (rows,) and columns[name].dtype.kind == kind for name, kind in KINDS.items())
    signature, view = columns.get("signature"), columns.get("view")
    seen = signature is not None and signature.shape == (rows, *reversed(SIGNATURE_SIZE), 3) and signature.dtype == np.uint8
    return flat and seen and (view is None or (view.ndim == 2 and len(view) == rows and view.dtype == np.float32))


def _analysis(row: Candidate, columns: Columns, place: int, vector: np.ndarray, thumbnail: bytes) -> FrameAnalysis:
    assert row.quality is not None, "rows without a picture are left out"
    shares = {name: float(columns[name][place]) for name in SHARES}
    return FrameAnalysis(
        pts=row.pts,
        time_s=row.time_s,
        measured=FrameMeasures(row.quality, **shares),
        signature=columns["signature"][place],
        thumbnail=thumbnail,
        view=columns["view"][place] if "view" in columns else vector,
        vector=vector,
        detections=row.detections,
        in_transition=bool(columns["in_transition"][place]),
        is_still=bool(columns["is_still"][place]),
        is_calm=bool(columns["is_calm"][place]),
        is_between_rests=bool(columns["is_between_rests"][place]),
        stands_in_for=row.stands_in_for,
    )


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """The vectors that an embedder made of a video before."""

    frames: Mapping[int, Vector]
    """By PTS."""
    texts: Mapping[str, Vector]


NO_CACHED_VECTORS = CachedVectors({}, {})


def cached_vectors_of(run: Run) -> CachedVectors:
    """Return the vectors of a run, for another one of the same video and embedder.

    Raises:
        StoreError: its files are damaged or do not fit together.
    """
    embeddings, rows = run.embeddings, [row for row in run.candidates if row.quality is not None]
    if embeddings is None or len(embeddings) != len(rows):
        return NO_CACHED_VECTORS
    return CachedVectors(
        {row.pts: vector for row, vector in zip(rows, embeddings.image, strict=True)},
        {text_of(row.detections or ()): vector for row, vector in zip(rows, embeddings.text, strict=True)},
    )


def _thumbnails(path: Path) -> dict[int, bytes]:
    """Return JPEGs by candidate index."""
    try:
        with files.open_zip(path) as archive:
            return {int(Path(name).stem): archive.read(name) for name in archive.namelist()}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as exc:
        raise StoreError(f"{path}: damaged ({exc}). Run {call('extract', 'VIDEO', overwrite=True)} to make it again.") from exc
