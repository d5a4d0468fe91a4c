"""READ FIRST: the five calls of vip, each a list of stages from a video to a page (section 3 of the paper).

    extract    open, index ▸ analyze (sample, decode once, measure, embed, detect) ▸ select (quality ▸ copies ▸ objects ▸ pruning)
               ▸ write the selection ▸ write the keyframes
    reselect   read the analysis of a run ▸ select ▸ write the selection ▸ copy the keyframes, decode the new ones
    caption    ground ▸ dense caption ▸ FAMOuS ▸ verify ▸ write the descriptions ▸ report
    report     one page a run
    run        extract ▸ words (subtitles, speech, text in the keyframes) ▸ caption ▸ report

Each stage is written so that it survives being killed: a manifest without finished stages, then the decisions, then the pictures,
then the descriptions one by one. Started again, a call goes on behind the last finished stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, overload

from vip import memory, registry, store
from vip.config import CaptionSettings, ExtractSettings, ModelSettings, RunSettings, chosen, from_keywords, settings_of_both
from vip.download.sources import download_source, resolve_source
from vip.errors import BackendError, EngineError, GivenUpError, InputError, NotInPartsError, ReplyError, SomeFailedError, UsageError
from vip.extraction.backends import load, pruner_for
from vip.extraction.existing_run import existing_run, is_finished, is_selected
from vip.extraction.picture_cache import PictureCache
from vip.extraction.reselection import default_reselect_folder, reselect_settings, video_of
from vip.extraction.select import select
from vip.extraction.video_analysis import analyze_video, read_analysis
from vip.extraction.write_keyframes import copy_keyframes, write_keyframes
from vip.extraction.write_selection import write_selection
from vip.processes.isolated import run_isolated
from vip.protocols import Observer, SilentObserver
from vip.records import Manifest, Origin
from vip.store import Run
from vip.video import DownloadedSource, FileSource, PicturesSource, Reader, Source, open_video, source_of
from vip.wording import SaidOnce, again, call, option

if TYPE_CHECKING:  # what describes, draws and reads words is loaded by the calls that need it: choosing frames starts sooner
    from vip.captioning.caption_job import RunOrPath
    from vip.llm.budget import Budget
    from vip.words.run_words import SpeechJob


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
    source = resolve_source(source_of(video))
    folder = Path(out) if out is not None else default_folder(source)
    settings, observer = chosen(ExtractSettings, settings, options), observer or SilentObserver()
    is_file = isinstance(source, FileSource | PicturesSource) and not isinstance(source, DownloadedSource)
    if is_file and source.state() is None and not store.exists(folder):
        open_video(source).close()  # says what is wrong with it
    with store.create_folder(folder):
        if isinstance(source, DownloadedSource) and source.state() is None:
            if is_finished(existing_run(folder, source, settings, overwrite)):
                return Run(folder)
            source = download_source(source, settings, observer)
        try:
            _extract(source, folder, overwrite, settings, observer, isolated)
        except NotInPartsError as exc:
            _extract(download_source(source, settings, observer, exc), folder, overwrite, settings, observer, isolated)
    return Run(folder)


def _extract(source: Source, folder: Path, overwrite: bool, settings: ExtractSettings, observer: Observer, isolated: bool) -> None:
    """Run the stages, in a process of their own where that is asked for."""
    stages = partial(_extract_stages, source, folder, overwrite, settings)
    if isolated or settings.timeout is not None:
        run_isolated(stages, source, observer, timeout_s=settings.timeout, fork=isolated)
    else:
        stages(observer)


def _extract_stages(source: Source, folder: Path, overwrite: bool, settings: ExtractSettings, observer: Observer) -> None:
    manifest = existing_run(folder, source, settings, overwrite)
    if manifest is not None and is_finished(manifest):
        _repeat_notes(manifest, observer)
        return
    store.make_folder(folder)
    with open_video(source, stream=settings.stream, start_s=settings.start, end_s=settings.end) as video:
        if manifest is None or not is_selected(manifest):
            manifest = _select(video, folder, settings, observer)
            memory.give_back()
        write_keyframes(folder, manifest, observer, video)


def _select(video: Reader, folder: Path, settings: ExtractSettings, observer: Observer) -> Manifest:
    """Analyze a video and write which of its frames are chosen; nothing of the analysis stays in memory."""
    start, backends = perf_counter(), load(settings)
    with PictureCache(folder, settings.format, video.effort).while_selecting() as keeper:
        analysis = analyze_video(video, folder, settings, backends, keeper, observer)
        memory.give_back()
        selection = select(analysis, settings, backends.pruner)
        return write_selection(folder, analysis, selection, settings, observer, video_id=video.source.stem, start=start)


def _repeat_notes(manifest: Manifest, observer: Observer) -> None:
    """Show again what the user should know of a run that is taken as it is; of a run of others nothing, whose notes may say anything."""
    for note in manifest.notes if store.is_own(manifest) else ():
        observer.note(note)


def reselect(
    run: Run | str | Path,
    *,
    out: str | Path | None = None,
    video: str | Path | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
    **changes: Any,
) -> Run:
    """Select again from the candidates of a run, without analyzing the video again.

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
        UsageError: a setting is wrong or needs the video to be analyzed again, or the folder holds something else.
        BackendError: the pruner is unknown, or the run's embedder cannot compare pictures and a query.
        StoreError: the run is damaged, or the folder cannot be written.
    """
    from vip.words.picture_text import copy_texts
    from vip.words.run_words import copy_words

    start, observer = perf_counter(), observer or SilentObserver()
    old = store.load_run(run.folder if isinstance(run, Run) else run)
    before = old.manifest
    if before is None or before.pruning is None:
        raise InputError(f"{old.folder} holds no candidates to choose from. Run {call('extract', 'VIDEO')} to make a run that does.")
    settings = reselect_settings(before, changes)
    folder = Path(out) if out is not None else default_reselect_folder(before.video_id, settings)
    if folder.absolute().resolve() == old.folder.absolute().resolve():
        raise UsageError(f"{folder} is the run itself, and its captions would be lost. Choose another folder with {option('out')}.")
    origin = Origin(run=str(old.folder.absolute()), created_utc=before.created_utc)
    source = video_of(before, video)
    info = before.video.model_copy(update={"path": source.location}) if source and video is not None else before.video
    manifest = existing_run(folder, source, settings, overwrite, origin=origin)
    if is_finished(manifest):
        return Run(folder)
    pruner = pruner_for(settings)
    with store.create_folder(folder):
        if manifest is None or not is_selected(manifest):
            analysis = read_analysis(old, before, info, before.pruning, settings, pruner.name)
            selection = select(analysis, settings, pruner)
            is_own = store.is_own(before)
            manifest = write_selection(
                folder, analysis, selection, settings, observer, video_id=before.video_id, start=start, origin=origin, is_own=is_own
            )
        copy_keyframes(old, folder, manifest, source, observer)
        copy_words(old, folder)
        copy_texts(old, Run(folder))
    return Run(folder)


@overload
def caption(runs: RunOrPath, **options: Any) -> Run: ...
@overload
def caption(runs: Sequence[RunOrPath], **options: Any) -> list[Run]: ...
def caption(
    runs: RunOrPath | Sequence[RunOrPath],
    *,
    overwrite: bool = False,
    in_batches: bool = False,
    settings: CaptionSettings | None = None,
    observer: Observer | None = None,
    budget: Budget | None = None,
    **options: Any,
) -> Run | list[Run]:
    """Describe the keyframes, a dense caption each and FAMOuS from it (section 3.2), and write the page of each folder.

    Args:
        runs: a run, its folder, its keyframes/ folder, or any folder of pictures; or a list of these.
        overwrite: describe again what was described by another engine, by another recipe or in another language.
        in_batches: ask through the server's Batch API, at half the price and within a day. It may be ended and called again.
        settings: or its fields as keywords: `engine=`, `recipe=`, `topic=`, `verify=`, `max_usd=`, see `vip.config.CaptionSettings`.
        budget: the money of several calls together; without it each has a ceiling of its own.

    Returns:
        The run with its descriptions, or a list of runs for a list. Those that were made in the same way before are kept, not
        asked for again.

    Raises:
        EngineError: the engine cannot be asked, or the money is spent; what is described stays, and the pages show it.
        ReplyError: not one keyframe could be described.
        SomeFailedError: some keyframes could not be described; failures.jsonl says which and why.
        UsageError, InputError, BackendError, StoreError: as for `extract`.
    """
    from vip.captioning.caption_job import home_of, open_job
    from vip.extraction.picture_folder import list_pictures
    from vip.report.current_pages import current_pages

    given = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    about, observer = chosen(CaptionSettings, settings, options), observer or SilentObserver()
    with (
        current_pages(home_of(run) for run in given),
        open_job(given, about, observer, list_pictures, overwrite=overwrite, in_batches=in_batches, budget=budget) as job,
    ):
        done = job.run()
    return done[0] if isinstance(runs, Run | str | Path) else done


def report(run: RunOrPath) -> Path:
    """Write report.html of a run: the keyframes on a timeline, their captions, and why the others were dropped.

    Returns:
        Where it lies.

    Raises:
        InputError, StoreError: there is no run, or it is damaged.
    """
    from vip.report.page import write_report

    return write_report(run if isinstance(run, Run) else store.load_run(run))


def run(
    video: str | Path | Sequence[str | Path] | Source,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    extraction: ExtractSettings | None = None,
    captioning: CaptionSettings | None = None,
    words: str | Sequence[str] = "none",
    speech_model: str = "small",
    speech_language: str | None = None,
    observer: Observer | None = None,
    isolated: bool = False,
    budget: Budget | None = None,
    **options: Any,
) -> Run:
    """Extract, caption and report in one go; `isolated` as for `extract`, `budget` as for `caption`.

    Args:
        extraction, captioning: settings of the two, or their fields as keywords: `keyframes=6`, `engine="offline"`.
        words: `subtitles` reads those in the video or beside it, `speech` transcribes what is said, `text` reads what stands in the
            keyframes, `auto` takes what is there; several as `"subtitles,text"` or as a list.
        speech_model, speech_language: for `speech`: Whisper's `small`, or a folder; and `de`, where it is not to be found out.

    Returns:
        The run, with keyframes, descriptions and report.html in its folder.

    Raises:
        VipError: as `extract` and `caption` do; where keyframes could not be described, the page is written first.
    """
    from vip.captioning import caption_job

    extraction, captioning = settings_of_both(extraction, captioning, options)
    sources = from_keywords(RunSettings, {"words": words, "speech_model": speech_model, "speech_language": speech_language})
    caption_job.check(captioning)
    source = resolve_source(source_of(video))
    folder = Path(out) if out is not None else default_folder(source)
    with store.create_folder(folder):
        extracted = extract_with_words(
            source, out=folder, overwrite=overwrite, settings=extraction, words=sources, observer=observer, isolated=isolated
        )
        try:
            return caption(extracted, overwrite=overwrite, settings=captioning, observer=observer, budget=budget)
        except (EngineError, ReplyError, SomeFailedError):
            if not (folder / store.REPORT).exists():
                report(Run(folder))
            raise


def extract_with_words(
    video: Source,
    *,
    out: Path,
    overwrite: bool,
    settings: ExtractSettings,
    words: RunSettings,
    observer: Observer | None,
    isolated: bool,
) -> Run:
    """Extract, then find the words of the keyframes; arguments and errors as of `run`."""
    from vip.words.run_words import check_words

    sources, speech = words.words, check_sources(words, settings)
    with store.create_folder(out):
        if {"subtitles", "speech"} & set(sources):
            _work_on(video, partial(check_words, video, sources), observer, isolated=isolated)
        extracted = extract(video, out=out, overwrite=overwrite, settings=settings, observer=observer, isolated=isolated)
        if sources:
            add_words(extracted, video, sources, speech=speech, observer=observer, isolated=isolated)
            add_text(extracted, sources, observer=observer, isolated=isolated)
    return extracted


def check_sources(settings: RunSettings, models: ModelSettings) -> SpeechJob | None:
    """Refuse sources of words that need what is not here; return how speech is transcribed, None where nobody asks for it.

    A speech model that is named is downloaded. `auto` downloads none.

    Raises:
        BackendError: the extra `text` or `speech` is missing, or the speech model.
    """
    from vip.words.run_words import SpeechJob

    if "text" in settings.words:
        registry.check_text_reader()
    if not {"speech", "auto"} & set(settings.words):
        return None
    why_not = None if "speech" in settings.words else registry.no_transcriber_reason(settings.speech_model)
    if why_not:
        return SpeechJob(None, unavailable=why_not)
    transcriber = registry.transcriber(settings.speech_model, device=models.device, precision=models.precision)
    return SpeechJob(transcriber, settings.speech_language)


def add_words(
    run: Run,
    video: Source,
    words: str | Sequence[str],
    *,
    speech: SpeechJob | None = None,
    observer: Observer | None = None,
    isolated: bool = False,
    is_needed: bool = True,
) -> None:
    """Write words.jsonl of a run: words with their times, such as the subtitles of its video, in the file or beside it.

    Args:
        words: where they come from, as for `run`.
        speech: as `check_sources` returns it; None: `auto` transcribes nothing.
        is_needed: False: a source that is named may have none.

    Raises:
        InputError: a source that `words` names has none.
        BackendError: speech is named and cannot be transcribed here.
    """
    from vip.words.run_words import write_words

    settings = from_keywords(RunSettings, {"words": words})
    if speech is None and "speech" in settings.words:
        speech = check_sources(settings, ModelSettings())
    work = partial(write_words, run.folder, resolve_source(video), settings.words, speech, is_needed=is_needed)
    _work_on(video, work, observer, isolated=isolated)


def add_text(run: Run, words: str | Sequence[str], *, observer: Observer | None = None, isolated: bool = False) -> None:
    """Write text.jsonl of a run: the text in its keyframes, where `words` names it, or is `auto` and its reader is installed.

    Raises:
        BackendError: `words` names it, and its reader is not installed or does not work.
    """
    sources, observer = from_keywords(RunSettings, {"words": words}).words, observer or SilentObserver()
    if "text" in sources or ("auto" in sources and registry.has_text_reader()):
        registry.check_text_reader()
        with store.in_use(run.folder):
            try:
                _work_on(run.folder, partial(_read_texts, run.folder), observer, isolated=isolated)
            except GivenUpError as exc:
                ended = f"The program that reads text in pictures ended without a result in {run.folder} ({exc.kind})"
                raise BackendError(f"{ended}. {again()}, or leave text out of {option('words')}.") from exc
    elif "auto" in sources:
        observer.note(SaidOnce("words: text in the pictures is not read; rapidocr is not installed (pip install 'vip-keyframes[text]')"))


def _read_texts(folder: Path, observer: Observer) -> None:
    from vip.words.picture_text import read_texts

    read_texts(Run(folder), registry.text_reader(), observer)


def _work_on(subject: Source | Path, work: Callable[[Observer], None], observer: Observer | None, *, isolated: bool) -> None:
    """Do work on a video or a run, in a process of its own where it is isolated."""
    if isolated:
        run_isolated(work, subject, observer or SilentObserver(), fork=True)
    else:
        work(observer or SilentObserver())


def default_folder(video: Source) -> Path:
    """Return `NAME.vip` in the current folder."""
    return store.unlinked(Path(f"{video.stem}.vip"))
