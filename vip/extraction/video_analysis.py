"""Analysis of a video's candidates before one is selected: from its frames, or from a run that analyzed them.

In: an open video, or a run folder. Out: a `VideoAnalysis`, which `vip.extraction.select` selects from without any picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from vip import registry, store
from vip.config import ExtractSettings
from vip.errors import BackendError, InputError, StoreError
from vip.extraction.analysis_store import NO_CACHED_VECTORS, CachedVectors, analyses_of, cached_vectors_of
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer
from vip.extraction.backends import Backends, check_joint
from vip.extraction.candidate_search import CandidateSearch, analyze_candidates, undecodable
from vip.extraction.embeddings import embeddings_of, identity_of
from vip.extraction.existing_run import MOST_LETTERS, is_same_file
from vip.extraction.keyframe_count import expected_keyframes
from vip.extraction.pruners.aks import relevance_of
from vip.extraction.samplers.sync import candidates_in_short_video
from vip.protocols import Observer, PictureKeeper
from vip.records import Embeddings, Manifest, Pruning, VideoInfo
from vip.store import Run
from vip.untrusted import one_line
from vip.video import Reader, Source
from vip.wording import call, counted

MORE_FOR_A_QUERY = 3  # times the candidates: what is asked for may be seen for a moment only


@dataclass(frozen=True, slots=True)
class VideoAnalysis:
    """Measures, vectors and detections of the candidates of a video, in time order."""

    frames: Sequence[FrameAnalysis]
    embeddings: Embeddings
    undecodable: Sequence[int]
    """PTS of candidates that could not be decoded."""
    sync: frozenset[int]
    """PTS of sync frames."""
    time_base: Fraction
    video: VideoInfo
    backends: dict[str, str]
    redundant: float
    """The cosine from which on two frames of this embedder show the same."""
    losses: tuple[str, ...]
    device: str = "cpu"
    relevance: Sequence[float] | None = None
    """Of each frame to the query; None where nothing is asked for."""

    def __repr__(self) -> str:
        return f"VideoAnalysis(frames={len(self.frames)}, undecodable={len(self.undecodable)})"


def analyze_video(
    video: Reader, folder: Path, settings: ExtractSettings, backends: Backends, keeper: PictureKeeper, observer: Observer
) -> VideoAnalysis:
    """Sample candidates, decode each once, measure it, embed it and look for objects in it.

    Args:
        folder: the run folder; vectors that an earlier run of this video left there are not computed again.
        keeper: keeps pictures that were expensive to decode.

    Raises:
        InputError: not one candidate can be decoded.
    """
    cached = _cached_vectors(video.source, folder, settings, backends)
    for note in backends.notes:
        observer.note(note)
    analyzer = FrameAnalyzer(backends.view, backends.embedder, backends.detector, cached.frames)
    search = _search(video, settings, backends, analyzer, keeper, observer)
    candidates = _sample(search, settings, backends)
    frames = analyze_candidates(search, candidates)
    info, losses, missing = video.info(), video.losses, undecodable(search, candidates, frames)
    if missing:
        losses.append(f"{len(missing)} of {counted(len(candidates), 'candidate')} could not be decoded; the others are used.")
    if not frames:
        raise InputError(f"{video.source}: none of its {len(candidates)} candidate frames can be decoded; the file is damaged.")
    embeddings = embeddings_of(frames, backends.embedder, cached.texts)
    return VideoAnalysis(
        frames=_with_rows_of(embeddings, frames),
        embeddings=embeddings,
        undecodable=missing,
        sync=frozenset(video.index.sync_pts.tolist()),
        time_base=video.time_base,
        video=info,
        backends=backends.names,
        device=backends.device,
        redundant=backends.embedder.capabilities.redundant_cosine,
        losses=tuple(losses),
        relevance=relevance_of(embeddings, settings.query, backends.embedder),
    )


def _with_rows_of(embeddings: Embeddings, frames: Sequence[FrameAnalysis]) -> list[FrameAnalysis]:
    """Return the frames with rows of the embeddings as their vectors, so that memory holds these once."""
    return [
        replace(frame, vector=row, view=row if frame.view is frame.vector else frame.view)
        for frame, row in zip(frames, embeddings.image, strict=True)
    ]


def read_analysis(
    old: Run, manifest: Manifest, video: VideoInfo, pruning: Pruning, settings: ExtractSettings, pruner: str
) -> VideoAnalysis:
    """Read back what a run knows of its candidates; no video is opened.

    Args:
        video: the video as the new run names it.
        settings: of the new run; another query loads the embedder, for that one text alone.
        pruner: its name.

    Raises:
        InputError: an older vip made the run, or the weights of its embedder have changed.
        StoreError: its files are damaged.
    """
    frames, rows = analyses_of(old), old.candidates
    assert old.embeddings is not None, "analyses_of has read them"
    backends = {**manifest.backends, "pruner": pruner}
    return VideoAnalysis(
        frames=frames,
        embeddings=old.embeddings,
        undecodable=[row.pts for row in rows if row.quality is None],
        sync=frozenset(row.pts for row in rows if row.is_sync),
        time_base=rows[0].time_base,
        video=video,
        backends=backends,
        redundant=pruning.redundant,
        losses=manifest.losses if store.is_own(manifest) else (),  # they are shown
        device=manifest.device,
        relevance=_relevance(old, len(frames), old.embeddings, settings, backends.get("embedder", "unknown")),
    )


def _search(
    video: Reader, settings: ExtractSettings, backends: Backends, analyzer: FrameAnalyzer, keeper: PictureKeeper, observer: Observer
) -> CandidateSearch:
    sampler, as_is = backends.sampler, backends.pruner.capabilities.as_is
    return CandidateSearch(
        video=video,
        analyzer=analyzer,
        keyframes=expected_keyframes(settings.keyframes, video),
        min_sharpness=settings.min_sharpness,
        exact=as_is or sampler.capabilities.exact,
        insistent=sampler.name == "sync" and settings.keyframes != "auto" and settings.candidates is None,  # others sample what they mean
        counts_pictures=sampler.name == "sync" and settings.keyframes == "auto" and settings.candidates is None and not as_is,
        as_is=as_is,
        keeper=keeper,
        observer=observer,
    )


def _sample(search: CandidateSearch, settings: ExtractSettings, backends: Backends) -> Sequence[int]:
    """Return the PTS of the candidates."""
    wanted, sampler = settings.candidates, backends.sampler
    if search.as_is and wanted is None and sampler.name == "uniform":
        wanted = search.keyframes  # what is not pruned has to be the right number from the start
    keyframes = search.keyframes if settings.query is None else MORE_FOR_A_QUERY * search.keyframes
    if search.insistent or search.counts_pictures:
        wanted = candidates_in_short_video(search.video.index, keyframes)
    return sampler.sample(search.video, keyframes=keyframes, candidates=wanted)


def _cached_vectors(video: Source, folder: Path, settings: ExtractSettings, backends: Backends) -> CachedVectors:
    """Return the vectors of this video that the same embedder left in the run that is being replaced."""
    run = Run(folder)
    try:
        manifest = run.manifest
        if manifest is None or not is_same_file(manifest.video, video) or manifest.settings.get("stream") != settings.stream:
            return NO_CACHED_VECTORS
        embeddings = run.embeddings
        same_model = embeddings and embeddings.model == identity_of(backends.embedder) and manifest.device == backends.device
        return cached_vectors_of(run) if same_model else NO_CACHED_VECTORS
    except StoreError:
        return NO_CACHED_VECTORS


def _relevance(old: Run, frames: int, embeddings: Embeddings, settings: ExtractSettings, embedder: str) -> list[float] | None:
    """Return the relevance of each frame to the query, as the run has it where it is the same query."""
    if settings.query is None:
        return None
    known = [row.relevance for row in old.candidates if row.relevance is not None]
    if old.manifest and old.manifest.settings.get("query") == settings.query and len(known) == frames:
        return known
    if not (registry.is_published(embedder) or (old.manifest and store.is_own(old.manifest))):
        raise BackendError(
            f"{old.folder} was made on another machine, by {one_line(embedder)[:MOST_LETTERS]}, which is not loaded unasked."
            f" Run `vip trust {old.folder}`, or extract the video again."
        )
    loaded = registry.embedder(embedder, device=settings.device, precision=settings.precision)
    check_joint(loaded)
    if identity_of(loaded) != embeddings.model:
        raise InputError(
            f"The weights of {loaded.name} have changed since {old.folder} was made."
            f" Run {call('extract', 'VIDEO', overwrite=True)} to make it again."
        )
    return relevance_of(embeddings, settings.query, loaded)
