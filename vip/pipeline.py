"""READ FIRST: the stages in order, from a video to a run folder.

    open, index ▸ sample ▸ scan (decode once, measure, embed, detect) ▸ look further ▸ choose (quality, copies, Algorithm 1)
    ▸ write keyframes                                                                                   `extract`
    measured facts ▸ dense caption ▸ FAMOuS                                                             `caption`

`extract` writes the folder in an order that survives being killed: a manifest without finished stages, then the
decisions, then the pictures; each finished stage is noted in the manifest. Started again, it goes on behind the last one.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from time import perf_counter
from typing import Any

from vip import __version__, registry, store
from vip.captioning.describe import describe
from vip.captioning.engines import choose_engine
from vip.config import CaptionSettings, ExtractSettings, SettingsT, from_keywords
from vip.errors import InputError, ReplyError, SomeFailedError, StoreError, UsageError
from vip.extraction import choose, further, quality, scan
from vip.extraction.candidates import fill
from vip.extraction.pictures import keyframes_of, pictures_in
from vip.extraction.scan import Look, Looker
from vip.prompts import load_prompts
from vip.protocols import Engine, Observer, Silent
from vip.records import Candidate, Counts, Decision, Failure, Keyframe, Manifest, Record, VideoInfo
from vip.store import Run
from vip.video import Reader, Source, open_video, source_of

CHOSEN, WRITTEN = "choose", "write"  # stages in Manifest.seconds
SEARCH_BATCH = 500  # frames looked at at once where a video seems to show nothing
MOST_PER_KEYFRAME_IN_STILLS = 12  # how many candidates a keyframe are tried where nearly all show the same picture


def extract(
    video: str | Path | Sequence[str | Path] | Source,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    settings: ExtractSettings | None = None,
    observer: Observer | None = None,
    **options: Any,
) -> Run:
    """Choose the keyframes of a video and write the run folder (section 3.1).

    Args:
        video: path of a video file; http(s) address of one; folder or pattern (`frames/%04d.png`) of pictures, or a list of them.
        out: the run folder; by default `NAME.vip` in the current folder.
        overwrite: replace a run of another video or of other settings.
        settings: or its fields as keywords: `keyframes=12`, `sampler=`, `embedder=`, `detector=`, `min_sharpness=`, `format=`,
            `start=`, `end=`, `stream=`.

    Returns:
        The run. An existing one of the same video and settings is returned as it is.

    Raises:
        InputError: the video is missing, unreadable, or shows nothing.
        UsageError: a setting is wrong, or the folder holds something else.
        BackendError: a backend is unknown or not installed.
        StoreError: the folder cannot be written or is damaged.
    """
    named = source_of(video)
    folder = Path(out) if out is not None else default_folder(named)
    settings = _settings(ExtractSettings, settings, options)
    observer = observer or Silent()
    manifest = _earlier(folder, named, settings, overwrite)
    if manifest and WRITTEN in manifest.seconds:
        return Run(folder)
    opened = open_video(named, stream=settings.stream, start_s=settings.start, end_s=settings.end)
    with opened as source, store.making_folder(folder):
        if manifest is None or CHOSEN not in manifest.seconds:
            manifest = _choose(source, folder, settings, observer)
        _write(source, folder, manifest, observer)
    return Run(folder)


def _settings(kind: type[SettingsT], settings: SettingsT | None, options: dict[str, Any]) -> SettingsT:
    return settings if settings and not options else from_keywords(kind, {**(settings.model_dump() if settings else {}), **options})


def default_folder(video: Source) -> Path:
    """`NAME.vip` in the current folder."""
    return Path(f"{video.stem}.vip")


def _earlier(folder: Path, named: Source, settings: ExtractSettings, overwrite: bool) -> Manifest | None:
    """The manifest of an earlier run of the same video and settings; None where there is nothing to go on from."""
    if not store.exists(folder / store.MANIFEST):
        if not overwrite and not store.is_empty(folder):
            raise UsageError(f"{folder} is not empty and no run of vip. Choose another folder with -o, or add --overwrite.")
        return None
    try:
        manifest = store.read_json(folder / store.MANIFEST, Manifest)
    except StoreError:
        if overwrite:
            return None
        raise
    wanted = settings.model_dump(mode="json")
    other = [f"{key} {manifest.settings.get(key)}, now {value}" for key, value in wanted.items() if manifest.settings.get(key) != value]
    if not _same_file(manifest.video, named):
        before, now = PurePath(manifest.video.path), PurePath(named.location)
        other.insert(0, f"video {before}, now {now}" if before.name == now.name else f"video {before.name}, now {now.name}")
    if not other:
        return None if overwrite and WRITTEN in manifest.seconds and _damaged(Run(folder)) else manifest
    if not overwrite:
        raise UsageError(f"{folder} holds another run ({'; '.join(other)}). Choose another folder with -o, or add --overwrite.")
    return None


def _damaged(run: Run) -> bool:
    """True if a finished run cannot be read back whole."""
    try:
        whole = run.candidates and run.embeddings is not None and run.descriptions is not None
        return not whole or any(not keyframe.path.exists() for keyframe in run.keyframes)
    except StoreError:
        return True


def _same_file(known: VideoInfo, named: Source) -> bool:
    state = named.state()
    if state is None:
        return known.path == named.location  # what the run needs of the video may be done already
    if state.size_bytes != known.size_bytes:
        return False
    if known.sha256 is None:
        return known.path == named.location and state.modified_ns == known.modified_ns
    return state.modified_ns == known.modified_ns or named.sha256() == known.sha256


# ---------------------------------------------------------------- choosing


def _choose(video: Reader, folder: Path, settings: ExtractSettings, observer: Observer) -> Manifest:
    """Look at the candidates, decide, and write everything but the pictures."""
    start = perf_counter()
    sampler = registry.sampler(settings.sampler)
    embedder, why = registry.auto_embedder(settings.embedder)
    looker = Looker(registry.embedder(embedder), registry.detector(settings.detector))
    if why:
        observer.note(f"auto embedder: {embedder}, {why}")
    planned = sampler.sample(video, keyframes=settings.keyframes)
    looks = _look(video, planned, looker, settings, observer)
    info = video.info()
    losses = video.losses
    lost = sorted(set(planned) - {look.pts for look in looks})
    if lost:
        losses.append(f"{len(lost)} of {len(planned)} candidates could not be decoded; the others are used.")
    if not looks:
        raise InputError(f"{video.source}: none of its {len(planned)} candidate frames can be decoded; the file is damaged.")
    embeddings = choose.embed(looks, looker.embedder)
    decisions, told = choose.choose(looks, embeddings, keyframes=settings.keyframes, min_sharpness=settings.min_sharpness)
    rows = _rows(looks, decisions, lost, video)
    counts = _counts(rows, settings.keyframes)
    notes = (*losses, *told, *_shortfall(counts, info))
    manifest = Manifest(
        command="extract",
        settings=settings.model_dump(mode="json"),
        backends={"sampler": sampler.name, "embedder": looker.embedder.name, "detector": looker.detector.name},
        versions=_versions(),
        device="cpu",
        video_id=video.source.stem,
        video=info,
        notes=notes,
        counts=counts,
        created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    store.write_json(folder / store.MANIFEST, manifest)
    store.clear(folder)
    store.write_rows(folder / store.CANDIDATES, rows)
    store.write_embeddings(folder / store.EMBEDDINGS, embeddings)
    thumbnails = {look.pts: look.thumbnail for look in looks}
    store.write_thumbnails(folder / store.THUMBNAILS, ((row.index, thumbnails[row.pts]) for row in rows if row.pts in thumbnails))
    manifest = manifest.model_copy(update={"seconds": {CHOSEN: round(perf_counter() - start, 3)}})
    store.write_json(folder / store.MANIFEST, manifest)
    for note in notes:
        observer.note(note)
    return manifest


def _look(video: Reader, planned: Sequence[int], looker: Looker, settings: ExtractSettings, observer: Observer) -> list[Look]:
    """Scan the candidates; then more of them where few differ, and others in place of bad ones. In time order."""
    with observer.track("Looking at frames", len(planned)) as advance:
        looks = scan.scan(video, planned, looker, advance=advance)
    shown = video.index.shown_pts.tolist()
    looks = _search_all(video, looks, looker, observer)
    while looks and _different(looks, settings) < settings.keyframes and 2 * len(looks) <= MOST_PER_KEYFRAME_IN_STILLS * settings.keyframes:
        known = {look.pts for look in looks}
        more = [pts for pts in fill(sorted(known), shown, 2 * len(looks)) if pts not in known]
        if not more:
            break
        with observer.track("Looking for frames that differ", len(more)) as advance:
            found = scan.scan(video, more, looker, advance=advance)
        if not found:
            break
        looks = sorted([*looks, *found], key=lambda look: look.pts)
    reference = quality.references([look.measured for look in looks])
    bad = [index for index, look in enumerate(looks) if quality.verdict(look.measured, reference[index])]
    with observer.track("Looking beside bad frames", len(bad)) as advance:
        instead = further.look_further(video, looks, bad, reference, looker, advance=advance)
    return sorted([*looks, *instead], key=lambda look: look.pts)


def _search_all(video: Reader, looks: list[Look], looker: Looker, observer: Observer) -> list[Look]:
    """Where all candidates are plain black, look at every other frame until something shows."""
    known = {look.pts for look in looks}
    others = [pts for pts in video.index.shown_pts.tolist() if pts not in known]
    if not looks or not others or not choose.shows_nothing_at_all(looks):
        return looks
    with observer.track("All black so far, looking at the rest", len(others)) as advance:
        for start in range(0, len(others), SEARCH_BATCH):
            found = scan.scan(video, others[start : start + SEARCH_BATCH], looker, advance=advance)
            if found and not choose.shows_nothing_at_all(found):
                return sorted([*looks, *found], key=lambda look: look.pts)
    return looks


def _different(looks: Sequence[Look], settings: ExtractSettings) -> int:
    """How many candidates are neither bad nor copies."""
    bad = choose.bad_frames(looks, settings.min_sharpness)
    good = [index for index in range(len(looks)) if index not in bad]
    return len(good) - len(choose.copies(looks, good))


def _rows(looks: Sequence[Look], decisions: Sequence[Decision], lost: Sequence[int], video: Reader) -> list[Candidate]:
    """The rows of candidates.jsonl in time order; neighbours in a decision become row numbers."""
    by_pts = {look.pts: (look, decision) for look, decision in zip(looks, decisions, strict=True)}
    order = sorted([*by_pts, *lost])
    row_of = {pts: row for row, pts in enumerate(order)}
    sync = set(video.index.sync_pts.tolist())
    rows = []
    for index, pts in enumerate(order):
        look, decision = by_pts.get(pts, (None, Decision(kept=False, rule="unreadable", reason="dropped: could not be decoded")))
        neighbours = tuple(row_of[looks[other].pts] for other in decision.neighbours)
        rows.append(
            Candidate(
                index=index,
                pts=pts,
                time_base=video.time_base,
                time_s=float(pts * video.time_base),
                is_sync=pts in sync,
                quality=look.measured.quality if look else None,
                detections=look.detections if look else (),
                stands_in_for=look.stands_in_for if look else None,
                decision=decision.model_copy(update={"neighbours": neighbours}),
            )
        )
    return rows


def _counts(rows: Sequence[Candidate], asked: int) -> Counts:
    rules = Counter(row.decision.rule for row in rows)
    kept, pruned, duplicates = rules["kept"], rules["pruned"], rules["duplicate"]
    bad = len(rows) - kept - pruned - duplicates
    return Counts(asked=asked, candidates=len(rows), bad=bad, pruned=pruned, duplicates=duplicates, keyframes=kept)


def _shortfall(counts: Counts, info: VideoInfo) -> list[str]:
    if counts.keyframes >= counts.asked:
        return []
    reasons = [f"{counts.duplicates} show the same picture as another"] if counts.duplicates else []
    reasons += [f"{counts.bad} are bad"] if counts.bad else []
    because = f"of {counts.candidates} candidates {' and '.join(reasons)}" if reasons else _frames_of(info)
    return [f"{counts.keyframes} of the {counts.asked} keyframes asked for: {because}."]


def _frames_of(info: VideoInfo) -> str:
    return f"the video has {info.frames} frames" if info.frames is not None else f"the video has {info.sync_frames} sync frames"


def _versions() -> dict[str, str]:
    found = {"vip": __version__, "python": platform.python_version()}
    for name in ("av", "opencv-python-headless", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # OpenCV may come from another distribution
            found[name] = "unknown"
    return found


# ---------------------------------------------------------------- writing


def _write(video: Reader, folder: Path, manifest: Manifest, observer: Observer) -> None:
    """Decode the keyframes at full size and write them; those that an earlier, killed run wrote are kept."""
    start = perf_counter()
    kept = [row for row in store.read_rows(folder / store.CANDIDATES, Candidate) if row.decision.kept]
    suffix = manifest.settings["format"]
    names = {row.pts: store.picture_name(number, row.time_s, suffix, of=len(kept)) for number, row in enumerate(kept, 1)}
    store.make_folder(folder / store.PICTURES)
    with observer.track("Writing keyframes", len(kept)) as advance:

        def work(reader: Reader, batch: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
            for frame in reader.frames(batch):
                store.write_picture(folder / store.PICTURES / names[frame.pts], frame.image)
                advance()
                yield frame.pts, frame.image.shape

        missing = [pts for pts, name in names.items() if not (folder / store.PICTURES / name).exists()]
        shapes = dict(scan.in_parallel(video, missing, work))
    if lost := set(missing) - set(shapes):
        raise InputError(f"{video.source}: {len(lost)} keyframes could be decoded before and cannot now. Did the file change?")
    for pts in names.keys() - set(missing):  # written by the run that was killed; pictures in a row have each a size of its own
        shapes[pts] = store.read_picture(folder / store.PICTURES / names[pts]).shape
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
    seconds = {**manifest.seconds, WRITTEN: round(perf_counter() - start, 3)}
    store.write_json(folder / store.MANIFEST, manifest.model_copy(update={"seconds": seconds}))


# ---------------------------------------------------------------- describing


def caption(
    run: Run | str | Path,
    *,
    overwrite: bool = False,
    settings: CaptionSettings | None = None,
    observer: Observer | None = None,
    **options: Any,
) -> Run:
    """Describe the keyframes: a dense caption each, then FAMOuS from it (section 3.2).

    Args:
        run: a run, its folder, its keyframes/ folder, or any folder of pictures.
        overwrite: describe again what another engine has described.
        settings: or its fields as keywords: `engine=`, `base_url=`, `detector=`.

    Returns:
        The run with its descriptions. Those that this engine has given before are kept, not asked for again.

    Raises:
        EngineError: the engine cannot be asked; what is described stays.
        ReplyError: not one keyframe could be described.
        SomeFailedError: some keyframes could not be described; failures.jsonl says which and why.
        UsageError, InputError, BackendError, StoreError: as for `extract`.
    """
    settings = _settings(CaptionSettings, settings, options)
    observer = observer or Silent()
    start = perf_counter()
    choice = choose_engine(settings.engine, settings.base_url, os.environ)
    engine = registry.engine(choice.engine, base_url=choice.base_url)
    failures: list[Failure] = []
    opened = Run(run.folder) if isinstance(run, Run) else _open_for_captions(Path(run), settings, observer, failures)
    pictures = len(opened.keyframes) + len(failures)
    done = _described(opened, engine.name, overwrite)
    if settings.engine == "auto":
        observer.note(f"auto engine: {engine.name}, because {choice.reason}")
    manifest = opened.manifest
    looked = manifest.backends["detector"] if manifest else settings.detector
    todo = len(opened.keyframes) - len(done)
    store.make_folder(opened.folder)
    try:
        with store.appending(opened.folder / store.JOURNAL) as append, observer.track("Describing", todo) as advance:
            _finish(_ask(opened.keyframes, engine, looked, done, append, failures, advance))
    finally:
        opened = Run(opened.folder)
        store.write_failures(opened.folder / store.FAILURES, failures)
    store.write_rows(opened.folder / store.DESCRIPTIONS, opened.descriptions)
    (opened.folder / store.JOURNAL).unlink(missing_ok=True)
    captioning = {"engine": engine.name}
    if manifest and (todo or manifest.captioning != captioning):  # not noted: killed behind the last description
        noted = {"captioning": captioning, "seconds": {**manifest.seconds, "caption": round(perf_counter() - start, 3)}}
        store.write_json(opened.folder / store.MANIFEST, manifest.model_copy(update=noted))
    _raise_for(failures, pictures, opened.folder)
    return Run(opened.folder)


def _open_for_captions(folder: Path, settings: CaptionSettings, observer: Observer, failures: list[Failure]) -> Run:
    home = store.home_of(folder)
    if store.exists(home / store.MANIFEST) or not store.is_folder(home):
        return store.load_run(home)
    pictures = pictures_in(home)
    detector = registry.detector(settings.detector)
    with observer.track("Looking at pictures", len(pictures)) as advance:
        rows = list(keyframes_of(pictures, detector, on_failure=failures.append, advance=advance))
    if not rows:
        raise InputError(f"None of the {len(pictures)} pictures in {home} can be read: {failures[0].message}")
    store.make_folder(home)
    store.write_rows(home / store.KEYFRAMES, rows)
    return Run(home)


def _described(run: Run, engine: str, overwrite: bool) -> set[str]:
    """Ids of the keyframes that this engine has described.

    Raises:
        UsageError: another engine has described some, and they are not to be overwritten.
    """
    others = sorted({row.engine for row in run.descriptions} - {engine})
    if others and not overwrite:
        raise UsageError(
            f"{run.folder} is described by {', '.join(others)}, and now {engine} is asked. Add --overwrite to describe it again."
        )
    return {row.keyframe_id for row in run.descriptions if row.engine == engine}


async def _ask(
    keyframes: Sequence[store.KeyframePicture],
    engine: Engine,
    detector: str,
    done: set[str],
    append: Callable[[Record], None],
    failures: list[Failure],
    advance: Callable[[], None],
) -> None:
    try:
        await describe(
            keyframes,
            engine,
            load_prompts(),
            detector_name=detector,
            done=done,
            on_description=append,
            on_failure=failures.append,
            advance=advance,
        )
    finally:
        await engine.close()


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine to its end, also where a loop runs already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
    else:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, work).result()


def _raise_for(failures: Sequence[Failure], keyframes: int, folder: Path) -> None:
    if not failures:
        return
    where = f"{folder / store.FAILURES} says why. Run the same command again to try only those."
    if len(failures) >= keyframes:
        raise ReplyError(f"None of {keyframes} keyframes could be described: {failures[0].message} {where}")
    raise SomeFailedError(f"{len(failures)} of {keyframes} keyframes could not be described; {where}")
