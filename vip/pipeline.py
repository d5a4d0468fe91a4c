"""READ FIRST: the stages in order, from a video to a run folder.

    open, index ▸ sample ▸ scan (decode once, measure, embed, detect) ▸ look further ▸ choose (quality, copies, pruning)
    ▸ write keyframes                                                                                   `extract`
    read what an earlier run saw ▸ choose ▸ write keyframes                                             `rechoose`
    grounding ▸ dense caption ▸ FAMOuS ▸ verify                                         `caption` in vip/captioning/caption_job.py

`extract` writes the folder in an order that survives being killed: a manifest without finished stages, then the
decisions, then the pictures; each finished stage is noted in the manifest. Started again, it goes on behind the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath
from time import perf_counter
from typing import Any

from vip import store
from vip.config import ExtractSettings, chosen
from vip.download.sources import download_source, resolve_source
from vip.errors import InputError, NotInPartsError, StoreError, UsageError
from vip.extraction import analyze, select
from vip.extraction.analysis_store import NO_CACHED_VECTORS, CachedVectors, analyses_of, cached_vectors_of
from vip.extraction.analyze import FrameAnalyzer
from vip.extraction.backends import Backends, load
from vip.extraction.candidate_search import CandidateSearch, analyze_candidates, undecodable
from vip.extraction.keyframe_count import expected_keyframes, redundant_cosine
from vip.extraction.picture_cache import PictureCache
from vip.extraction.pruners.aks import relevance_of
from vip.extraction.write_selection import SELECTED, VideoAnalysis, write_selection
from vip.processes.isolated import run_isolated
from vip.protocols import Observer, PictureKeeper, SilentObserver
from vip.records import Candidate, Keyframe, Manifest, Origin, VideoInfo
from vip.store import Run
from vip.video import AddressSource, DownloadedSource, FileSource, PicturesSource, Reader, Source, open_video, source_of
from vip.wording import counted, option

WRITTEN = "write"  # the stage behind CHOSEN in Manifest.seconds
MORE_FOR_A_QUERY = 3  # times the candidates: what is asked for may be seen for a moment only


def extract(
    video: str | Path | Sequence[str | Path] | Source,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    settings: ExtractSettings | None = None,
    observer: Observer | None = None,
    isolated: bool = False,
    **options: Any,
) -> Run:
    """Choose the keyframes of a video and write the run folder (section 3.1).

    The work is done in this process, where debuggers and what a program has replaced work as usual. With `timeout=60`
    it is done in a new one, which can be ended; that takes half a second to start.

    Args:
        video: path of a video file; http(s) address of one, or of its page on a video site; folder or pattern (`frames/%04d.png`) of
            pictures, or a list of them.
        out: the run folder; by default `NAME.vip` in the current folder.
        overwrite: replace a run of another video or of other settings.
        settings: or its fields as keywords: `keyframes=12`, `sampler=`, `embedder=`, `detector=`, `min_sharpness=`, `format=`,
            `start=`, `end=`, `stream=`, `timeout=` (seconds), `cookies=` and `proxy=` for video sites.
        isolated: work in a process of its own, so that a file on which FFmpeg crashes or hangs raises InputError. It is forked
            where that is safe, as in a program without other threads on Linux.

    Returns:
        The run. An existing one of the same video and settings is returned as it is.

    Raises:
        InputError: the video is missing, unreadable, shows nothing, or takes longer than `timeout`.
        UsageError: a setting is wrong, or the folder holds something else.
        BackendError: a backend is unknown or not installed.
        StoreError: the folder cannot be written or is damaged.
    """
    named = resolve_source(source_of(video))
    folder = Path(out) if out is not None else default_folder(named)
    settings, observer = chosen(ExtractSettings, settings, options), observer or SilentObserver()

    if isinstance(named, FileSource | PicturesSource) and not isinstance(named, DownloadedSource) and not _is_there(named, folder):
        open_video(named).close()  # says what is wrong with it
    with store.making_folder(folder):
        if isinstance(named, DownloadedSource) and named.state() is None:
            manifest = earlier(folder, named, settings, overwrite)
            if manifest and WRITTEN in manifest.seconds:
                return Run(folder)
            named = download_source(named, settings, observer)
        try:
            _work(named, folder, overwrite, settings, observer, isolated)
        except NotInPartsError as exc:
            _work(download_source(named, settings, observer, exc), folder, overwrite, settings, observer, isolated)
    return Run(folder)


def _is_there(named: Source, folder: Path) -> bool:
    """Whether the video is there, or a run of it that may be finished."""
    return named.state() is not None or store.exists(folder)


def _work(source: Source, folder: Path, overwrite: bool, settings: ExtractSettings, observer: Observer, isolated: bool) -> None:
    """Extract, in a process of its own where that is asked for."""
    work = partial(_extract, source, folder, overwrite, settings)
    if isolated or settings.timeout is not None:
        run_isolated(work, source, observer, timeout_s=settings.timeout, fork=isolated)
    else:
        work(observer)


def _extract(named: Source, folder: Path, overwrite: bool, settings: ExtractSettings, observer: Observer) -> None:
    manifest = earlier(folder, named, settings, overwrite)
    if manifest and WRITTEN in manifest.seconds:
        return
    store.make_folder(folder)
    with open_video(named, stream=settings.stream, start_s=settings.start, end_s=settings.end) as source:
        if manifest is None or SELECTED not in manifest.seconds:
            with PictureCache(folder, settings.format, source.effort).while_choosing() as keeper:
                manifest = _choose(source, folder, settings, keeper, observer)
        write_keyframes(folder, manifest, observer, source)


def default_folder(video: Source) -> Path:
    """`NAME.vip` in the current folder."""
    return Path(f"{video.stem}.vip")


def earlier(
    folder: Path, named: Source | None, settings: ExtractSettings, overwrite: bool, *, origin: Origin | None = None
) -> Manifest | None:
    """The manifest of an earlier run of the same video and settings; None where there is nothing to go on from.

    Args:
        named: None where the video is not looked at, and `origin` tells enough.
        origin: the run whose candidates are chosen from; None where the video is to be looked at.

    Raises:
        UsageError: the folder holds something else, and it is not to be overwritten.
        StoreError: its manifest is damaged.
    """
    if not store.exists(folder / store.MANIFEST):
        if not overwrite and not store.is_empty(folder):
            raise UsageError(
                f"{folder} is not empty and no run of vip. Choose another folder with {option('out')}, or add {option('overwrite')}."
            )
        return None
    try:
        manifest = store.read_json(folder / store.MANIFEST, Manifest)
    except StoreError:
        if overwrite:
            return None
        raise
    had, wanted = _with_defaults(manifest.settings), settings.model_dump(mode="json")
    other = [f"{key} {had.get(key)}, now {value}" for key, value in wanted.items() if had.get(key) != value]
    if manifest.chosen_from != origin:
        other.append(_candidates_of(manifest.chosen_from))
    if named and not same_file(manifest.video, named):
        before, now = PurePath(manifest.video.path), PurePath(named.location)
        other.insert(0, f"video {before}, now {now}" if before.name == now.name else f"video {before.name}, now {now.name}")
    if not other:
        return None if overwrite and WRITTEN in manifest.seconds and _damaged(Run(folder)) else manifest
    if not overwrite:
        raise UsageError(
            f"{folder} holds another run ({'; '.join(other)}). Choose another folder with {option('out')}, or add {option('overwrite')}."
        )
    return None


def _with_defaults(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a manifest, with the defaults of those that vip did not have yet."""
    return {**ExtractSettings().model_dump(mode="json"), **settings}


def _damaged(run: Run) -> bool:
    """True if a finished run cannot be read back whole."""
    try:
        whole = analyses_of(run) and run.descriptions is not None
        return not whole or any(not keyframe.path.exists() for keyframe in run.keyframes)
    except (InputError, StoreError):
        return True


def _candidates_of(origin: Origin | None) -> str:
    return f"candidates of {origin.run} as of {origin.created_utc}" if origin else "candidates of its own"


def same_file(known: VideoInfo, named: Source) -> bool:
    state = named.state()
    if state is None:
        return known.path in {named.location, named.exact_location if isinstance(named, AddressSource) else ""}  # it may be done already
    if state.size_bytes != known.size_bytes:
        return False
    if known.sha256 is None:
        return known.path == named.location and state.modified_ns == known.modified_ns
    return state.modified_ns == known.modified_ns or named.sha256() == known.sha256


# ---------------------------------------------------------------- choosing


def _choose(video: Reader, folder: Path, settings: ExtractSettings, keeper: PictureKeeper, observer: Observer) -> Manifest:
    """Look at the candidates, decide, and write everything but the pictures."""
    start = perf_counter()
    backends = load(settings)
    known = _known(video.source, folder, settings, backends)
    for note in backends.notes:
        observer.note(note)
    sampler = backends.sampler
    analyzer = FrameAnalyzer(backends.view, backends.embedder, backends.detector, known.frames)
    as_is, wanted = getattr(backends.pruner, "as_is", False), settings.candidates
    search = CandidateSearch(
        video=video,
        analyzer=analyzer,
        keyframes=expected_keyframes(settings.keyframes, video),
        min_sharpness=settings.min_sharpness,
        exact=as_is or getattr(sampler, "exact", True),
        insistent=sampler.name == "sync" and settings.keyframes != "auto" and wanted is None,  # others chose what they mean
        as_is=as_is,
        keeper=keeper,
        observer=observer,
    )
    more = MORE_FOR_A_QUERY if settings.query is not None else 1
    if as_is and wanted is None and sampler.name == "uniform":
        wanted = search.keyframes  # what is not thinned out has to be the right number from the start
    planned = sampler.sample(video, keyframes=more * search.keyframes, candidates=wanted)
    analyses = analyze_candidates(search, planned)
    info, losses, missing = video.info(), video.losses, undecodable(search, planned, analyses)
    if missing:
        losses.append(f"{len(missing)} of {counted(len(planned), 'candidate')} could not be decoded; the others are used.")
    if not analyses:
        raise InputError(f"{video.source}: none of its {len(planned)} candidate frames can be decoded; the file is damaged.")
    video_analysis = VideoAnalysis(
        analyses=analyses,
        embeddings=select.embed(analyses, analyzer.embedder, known.texts),
        lost=missing,
        sync=frozenset(video.index.sync_pts.tolist()),
        time_base=video.time_base,
        video=info,
        backends=backends.names,
        device=backends.device,
        redundant=redundant_cosine(analyzer.embedder),
        losses=tuple(losses),
    )
    relevance = relevance_of(video_analysis.embeddings, settings.query, analyzer.embedder)
    return write_selection(
        video_analysis, folder, settings, backends.pruner, observer, video_id=video.source.stem, start=start, relevance=relevance
    )


def _known(video: Source, folder: Path, settings: ExtractSettings, backends: Backends) -> CachedVectors:
    """What the embedder has seen of this video in the run that is being replaced."""
    run = Run(folder)
    try:
        manifest = run.manifest
        if manifest is None or not same_file(manifest.video, video) or manifest.settings.get("stream") != settings.stream:
            return NO_CACHED_VECTORS
        embeddings = run.embeddings
        same_model = embeddings and embeddings.model == select.identity_of(backends.embedder) and manifest.device == backends.device
        return cached_vectors_of(run) if same_model else NO_CACHED_VECTORS
    except StoreError:
        return NO_CACHED_VECTORS


# ---------------------------------------------------------------- writing


def picture_names(folder: Path, manifest: Manifest) -> dict[int, str]:
    """PTS of the chosen frames -> name of the picture, in time order."""
    kept = [row for row in store.read_rows(folder / store.CANDIDATES, Candidate) if row.decision.kept]
    suffix = manifest.settings["format"]
    return {row.pts: store.picture_name(number, row.time_s, suffix, of=len(kept)) for number, row in enumerate(kept, 1)}


def write_keyframes(folder: Path, manifest: Manifest, observer: Observer, video: Reader | None) -> None:
    """Decode the keyframes at full size and write them; those that an earlier, killed run wrote are kept.

    Args:
        video: None where every picture is there already.
    """
    start = perf_counter()
    kept = [row for row in store.read_rows(folder / store.CANDIDATES, Candidate) if row.decision.kept]
    names = picture_names(folder, manifest)
    store.make_folder(folder / store.PICTURES, inside=folder)
    with observer.track("Writing keyframes", len(kept)) as advance:

        def work(reader: Reader, batch: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
            for frame in reader.frames(batch):
                store.write_picture(folder / store.PICTURES / names[frame.pts], frame.image, inside=folder)
                advance()
                yield frame.pts, frame.image.shape

        missing = [pts for pts, name in names.items() if not (folder / store.PICTURES / name).exists()]
        decoded = PictureCache(folder, manifest.settings["format"])
        for pts in filter(decoded.has, missing):
            decoded.move(pts, folder / store.PICTURES / names[pts])
            advance()
        missing = [pts for pts in missing if not (folder / store.PICTURES / names[pts]).exists()]
        shapes = dict(analyze.in_parallel(video, missing, work)) if video else {}
    if failed := set(missing) - set(shapes):
        raise InputError(
            f"{manifest.video.path}: {counted(len(failed), 'keyframe')} could be decoded before and cannot now. Did the file change?"
        )
    for pts in names.keys() - set(missing):  # written before; pictures in a row have each a size of its own
        shapes[pts] = store.read_picture(folder / store.PICTURES / names[pts], inside=folder).shape
    rows = [
        Keyframe(
            id=f"{manifest.video_id}:{number:04d}",
            video_id=manifest.video_id,
            time_s=row.time_s,
            pts=row.pts,
            image_path=f"{store.PICTURES}/{names[row.pts]}",
            width_px=shapes[row.pts][1],
            height_px=shapes[row.pts][0],
            quality=row.quality,
            detections=row.detections,
            candidate=row.index,
        )
        for number, row in enumerate(kept, 1)
        if row.quality is not None
    ]
    store.write_rows(folder / store.KEYFRAMES, rows)
    decoded.clear()
    seconds = {**manifest.seconds, WRITTEN: round(perf_counter() - start, 3)}
    store.write_json(folder / store.MANIFEST, manifest.model_copy(update={"seconds": seconds}))
