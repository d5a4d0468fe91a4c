"""Choosing other keyframes from a run that exists: what was seen is read back, and only pictures that are new are decoded."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from vip import registry, store
from vip.config import ExtractSettings, from_keywords
from vip.download.sources import resolve_source
from vip.errors import InputError, UsageError
from vip.extraction.analysis_store import analyses_of
from vip.extraction.backends import check_joint, pruner_for
from vip.extraction.pruners.aks import relevance_of
from vip.extraction.select import identity_of
from vip.extraction.write_selection import SELECTED, VideoAnalysis, write_selection
from vip.pipeline import WRITTEN, earlier, picture_names, same_file, write_keyframes
from vip.protocols import Observer, SilentObserver
from vip.records import Manifest, Origin, Pruning, VideoInfo
from vip.store import Run
from vip.video import Source, open_video, source_of
from vip.wording import call, option

CHANGEABLE = ("keyframes", "pruner", "text_weight", "query", "min_objects", "min_sharpness", "format")
"""The settings that need no other look at the video."""


def rechoose(
    run: Run | str | Path,
    *,
    out: str | Path | None = None,
    video: str | Path | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
    **changes: Any,
) -> Run:
    """Choose again from the candidates of a run, without looking at the video.

    Args:
        run: a run or its folder. It stays as it is.
        out: the new run folder; by default `NAME-n6.vip` or `NAME-auto.vip` in the current folder.
        video: where the video lies now. A run of another machine needs it for pictures that it does not hold: what its manifest says
            is not opened.
        overwrite: replace a run of other settings.
        changes: `keyframes=`, `pruner=`, `text_weight=`, `query=`, `min_objects=`, `min_sharpness=`, `format=`; all else is as in
            the run.

    Returns:
        The new run. Pictures that the old one has are copied; the others are decoded.

    Raises:
        InputError: the run is unfinished or of an older vip; or a new picture is needed and its video is gone, changed or not named.
        UsageError: a setting is wrong or needs another look at the video, or the folder holds something else.
        BackendError: the pruner is unknown, or the run's embedder cannot compare pictures and a query.
        StoreError: the run is damaged, or the folder cannot be written.
    """
    start = perf_counter()
    old = store.load_run(run.folder if isinstance(run, Run) else run)
    manifest = old.manifest
    if manifest is None or manifest.pruning is None:
        raise InputError(f"{old.folder} holds no candidates to choose from. Run {call('extract', 'VIDEO')} to make a run that does.")
    settings = _settings(manifest, changes)
    folder = Path(out) if out is not None else default_folder(manifest.video_id, settings)
    if folder.absolute().resolve() == old.folder.absolute().resolve():
        raise UsageError(f"{folder} is the run itself, and its captions would be lost. Choose another folder with {option('out')}.")
    origin = Origin(run=str(old.folder.absolute()), created_utc=manifest.created_utc)
    named = _named(manifest, video)
    info = manifest.video.model_copy(update={"path": named.location}) if named and video is not None else manifest.video
    new = earlier(folder, named, settings, overwrite, origin=origin)
    if new and WRITTEN in new.seconds:
        return Run(folder)
    pruner, observer = pruner_for(settings), observer or SilentObserver()
    with store.making_folder(folder):
        if new is None or SELECTED not in new.seconds:
            video_analysis = _video_analysis(old, manifest, info, manifest.pruning, pruner.name)
            relevance = _relevance(old, video_analysis, settings)
            new = write_selection(
                video_analysis,
                folder,
                settings,
                pruner,
                observer,
                video_id=manifest.video_id,
                start=start,
                origin=origin,
                relevance=relevance,
                is_own=named is not None,
            )
        _write(old, folder, new, named, observer)
    return Run(folder)


def _named(manifest: Manifest, video: str | Path | None) -> Source | None:
    """The video of a run: as the user names it, or as the manifest does where this machine wrote that; else None.

    Raises:
        InputError: it is another video.
    """
    if video is None:
        return resolve_source(source_of(manifest.video.path)) if store.is_own(manifest) else None
    named = resolve_source(source_of(video))
    if not same_file(manifest.video, named):
        raise InputError(f"{named} is not the video that the run was made from ({manifest.video.path}), or has changed since.")
    return named


def default_folder(video_id: str, settings: ExtractSettings) -> Path:
    """`NAME-n6.vip` or `NAME-auto.vip` in the current folder."""
    number = "auto" if settings.keyframes == "auto" else f"n{settings.keyframes}"
    return Path(f"{video_id}-{number}.vip")


def _settings(manifest: Manifest, changes: dict[str, Any]) -> ExtractSettings:
    """The run's settings with the changes.

    Raises:
        UsageError: one of them needs another look at the video.
    """
    before = from_keywords(ExtractSettings, manifest.settings)
    after = from_keywords(ExtractSettings, {**manifest.settings, **changes})
    for name, value in after.model_dump(mode="json").items():
        had = getattr(before, name)
        if name not in CHANGEABLE and value not in (had, manifest.backends.get(name)):
            raise UsageError(
                f"The run was made with {name} {had}, and {name} {value} needs another look at the video."
                f" Run {call('extract', 'VIDEO')} instead."
            )
    return after.model_copy(update={name: getattr(before, name) for name in before.model_fields_set if name not in CHANGEABLE})


def _relevance(old: Run, video_analysis: VideoAnalysis, settings: ExtractSettings) -> list[float] | None:
    """Of each look to the query, as the run has it; for another query the embedder is loaded, for that one text alone."""
    if settings.query is None:
        return None
    known = [row.relevance for row in old.candidates if row.relevance is not None]
    if old.manifest and old.manifest.settings.get("query") == settings.query and len(known) == len(video_analysis.analyses):
        return known
    loaded = registry.embedder(video_analysis.backends["embedder"], device=settings.device, precision=settings.precision)
    check_joint(loaded)
    if identity_of(loaded) != video_analysis.embeddings.model:
        raise InputError(
            f"The weights of {loaded.name} have changed since {old.folder} was made."
            f" Run {call('extract', 'VIDEO', overwrite=True)} to make it again."
        )
    return relevance_of(video_analysis.embeddings, settings.query, loaded)


def _video_analysis(old: Run, manifest: Manifest, video: VideoInfo, pruning: Pruning, pruner: str) -> VideoAnalysis:
    analyses, rows = analyses_of(old), old.candidates
    assert old.embeddings is not None, "looks_of has read them"
    return VideoAnalysis(
        analyses=analyses,
        embeddings=old.embeddings,
        lost=[row.pts for row in rows if row.quality is None],
        sync=frozenset(row.pts for row in rows if row.is_sync),
        time_base=rows[0].time_base,
        video=video,
        backends={**manifest.backends, "pruner": pruner},
        redundant=pruning.redundant,
        losses=manifest.losses,
        device=manifest.device,
    )


def _write(old: Run, folder: Path, manifest: Manifest, named: Source | None, observer: Observer) -> None:
    """Copy the pictures that the old run has, decode the others."""
    there = {frame.record.pts: frame for frame in old.keyframes}
    store.make_folder(folder / store.PICTURES, inside=folder)
    missing = 0
    for pts, name in picture_names(folder, manifest).items():
        target, source = folder / store.PICTURES / name, there.get(pts)
        if target.exists():
            continue
        if source and source.path.suffix == target.suffix and source.path.exists():
            with store.replacing(target, inside=folder) as file:
                file.write(source.data)
        else:
            missing += 1
    if missing == 0:
        write_keyframes(folder, manifest, observer, None)
        return
    chosen = f"{missing} of the chosen frames {'has' if missing == 1 else 'have'} no picture in {old.folder} yet"
    if named is None:
        raise InputError(
            f"{chosen}, and another machine made it: its video is not opened unasked. Name it with {option('video', 'VIDEO')},"
            f" or run `vip trust {old.folder}`."
        )
    if named.state() is None or not same_file(manifest.video, named):
        state = "is gone" if named.state() is None else "has changed since"
        raise InputError(f"{chosen}, and {named} {state}. Put it back and try again, or name it with {option('video', 'VIDEO')}.")
    settings = manifest.settings
    with open_video(named, stream=settings["stream"], start_s=settings["start"], end_s=settings["end"]) as video:
        write_keyframes(folder, manifest, observer, video)
