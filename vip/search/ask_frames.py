"""The frames that a question is asked about, and the words near them.

In: a video or a run folder, and a question. Out: a run folder of its own inside the first one, `asked/HASH/`, with the keyframes that
were chosen for the question (`aks`), or spread over the video where its embedder cannot compare pictures and texts. The run itself
stays as it is. What the question says is never a part of a path.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from vip import files, registry, store
from vip.config import ExtractSettings
from vip.download.sources import resolve_source
from vip.errors import BackendError, InputError, StoreError, UsageError, VipError
from vip.extraction.backends import BY_RELEVANCE
from vip.extraction.existing_run import is_finished, is_same_file
from vip.extraction.reselection import video_of
from vip.pipeline import add_words, default_folder, extract, reselect
from vip.protocols import Observer
from vip.records import Description, Manifest, SpokenWords
from vip.search.ask_long import find_frames_of_long
from vip.store import KeyframePicture, Run
from vip.untrusted import one_line
from vip.video import FileSource, Source, source_of
from vip.wording import option
from vip.words.around import MOST_LETTERS
from vip.words.picture_text import text_by_keyframe

DEFAULT_FRAMES, MOST_FRAMES = 10, 64
WITHOUT_TEXTS = frozenset({"classic"})  # embedders that compare pictures alone
VideoOrRun = str | Path | Sequence[str | Path] | Source | Run
ChosenKeyframe = tuple[Path, KeyframePicture]
"""A run folder and a keyframe in it."""


@dataclass(frozen=True, slots=True)
class ChosenFrames:
    """The keyframes for a question."""

    keyframes: tuple[ChosenKeyframe, ...]
    descriptions: Mapping[str, Description] | None = field(default_factory=dict)
    """What is known of some of them from descriptions, by the id of the keyframe; None: what their run folders say."""
    notes: tuple[str, ...] = ()


def check_frames(frames: int) -> None:
    """Refuse a number of frames that cannot be asked about.

    Raises:
        UsageError: it is too low or too high.
    """
    if not 1 <= frames <= MOST_FRAMES:
        raise UsageError(f"{option('frames', frames)} cannot be looked at for one question. Give a number from 1 to {MOST_FRAMES}.")


def run_folder_of(source: VideoOrRun) -> Path | None:
    """Return the run folder that is meant; None where a video is."""
    if isinstance(source, Run):
        return source.folder
    if not isinstance(source, str | Path):
        return None
    home = store.home_of(Path(source))
    return home if any(store.exists(home / name) for name in (store.MANIFEST, store.KEYFRAMES)) else None


def choose_frames(
    source: VideoOrRun,
    question: str,
    *,
    frames: int,
    words: bool,
    out: Path | None,
    overwrite: bool,
    settings: ExtractSettings,
    observer: Observer,
    isolated: bool,
) -> ChosenFrames:
    """Return the frames for a question; errors as of `vip.pipeline.extract`."""
    check_frames(frames)
    home = run_folder_of(source)
    if home is not None:
        return choose_of_run(store.load_run(home), None, question, frames=frames, words=words, observer=observer, isolated=isolated)
    if isinstance(source, str | Path) and store.is_folder(Path(source)) and any(Path(source).glob(f"*/{store.MANIFEST}")):
        raise UsageError(f"{source} is a folder of runs. Give the folder of a run in it.")
    video = resolve_source(source_of(source))  # type: ignore[arg-type]
    folder = out if out is not None else default_folder(video)
    try:
        found = _choose_of_long(video, folder, question, frames, words, settings, observer, isolated)
    except BackendError:
        found = None  # the extraction says it, or does with another
    if found:
        return found
    run = _run_of_video(video, out, overwrite, settings, observer, isolated)
    return choose_of_run(run, video, question, frames=frames, words=words, observer=observer, isolated=isolated)


# ---------------------------------------------------------------- long videos


def _choose_of_long(
    video: Source, home: Path, question: str, frames: int, words: bool, settings: ExtractSettings, observer: Observer, isolated: bool
) -> ChosenFrames | None:
    """Return the frames of a long video; None where it is short, or the embedder compares no pictures with questions."""
    found = find_frames_of_long(video, home, question, frames, settings, observer, isolated=isolated)
    if found is None:
        return None
    chosen, looked = found
    notes = [looked.sentence, *_read_words(chosen, video, words, observer, isolated)]
    descriptions = _descriptions(Run(home), chosen) if store.exists(home / store.MANIFEST) else {}
    return ChosenFrames(tuple((chosen.folder, keyframe) for keyframe in chosen.keyframes), descriptions, tuple(notes))


def _choose_of_long_run(
    run: Run, manifest: Manifest, video: Source | None, question: str, frames: int, words: bool, observer: Observer, isolated: bool
) -> ChosenFrames | None:
    try:
        source = video or video_of(manifest, None)
        if source is None or not is_same_file(manifest.video, source) or source.state() is None:
            return None
        about = {name: manifest.settings.get(name) for name in ("stream", "start", "end", "format")}
        about = {name: value for name, value in about.items() if value is not None}
        settings = ExtractSettings(embedder=manifest.backends.get("embedder", "auto"), **about)
        return _choose_of_long(source, run.folder, question, frames, words, settings, observer, isolated)
    except (BackendError, InputError, StoreError, UsageError):
        return None  # it is asked as a run is, which says what is wrong


def _read_words(chosen: Run, video: Source | None, words: bool, observer: Observer, isolated: bool) -> list[str]:
    """Read the subtitles of a video into the folder of the chosen frames; return a note where they cannot be read."""
    if words and isinstance(video, FileSource):
        try:
            add_words(chosen, video, "auto", observer=observer, isolated=isolated)
        except InputError as exc:
            return [f"The question is asked without subtitles: {exc}"]
    return []


# ---------------------------------------------------------------- the run of a video


def _run_of_video(video: Source, out: Path | None, overwrite: bool, settings: ExtractSettings, observer: Observer, isolated: bool) -> Run:
    """Return the run that is there, if it is of this video and nothing else was asked for; else extract."""
    folder = out if out is not None else default_folder(video)
    if not overwrite and store.exists(folder / store.MANIFEST):
        manifest = Run(folder).manifest
        wanted = settings.model_dump(mode="json", include=settings.model_fields_set)
        if manifest and is_finished(manifest) and is_same_file(manifest.video, video):
            known = {**manifest.settings, **{name: value for name, value in manifest.backends.items() if wanted.get(name) == value}}
            if all(known.get(name) == value for name, value in wanted.items()):
                return store.load_run(folder)
    return extract(video, out=folder, overwrite=overwrite, settings=settings, observer=observer, isolated=isolated)


# ---------------------------------------------------------------- the frames of a run


def choose_of_run(
    run: Run, video: Source | None, question: str, *, frames: int, words: bool, observer: Observer, isolated: bool
) -> ChosenFrames:
    """Return the frames of a run for a question; they are written to asked/ in it.

    Args:
        video: where the video is, if not where the run says.
    """
    query, notes = _query_for(run, video, question)
    if query and run.manifest and (found := _choose_of_long_run(run, run.manifest, video, question, frames, words, observer, isolated)):
        return found
    chosen: Run | None = None
    for wanted in dict.fromkeys((query, None)) if run.manifest else ():
        try:
            chosen = _reselected(run, video, wanted, frames, observer)
        except BackendError as exc:
            notes.append(f"The frames are not chosen by the question: {exc}")
        except (InputError, StoreError, UsageError) as exc:
            notes.append(f"Only keyframes that the run has already are looked at: {exc}")
            break
        else:
            break
    if chosen is None:
        return ChosenFrames(
            tuple((run.folder, keyframe) for keyframe in spread(run.keyframes, frames)), _descriptions(run, run), tuple(notes)
        )
    notes += _read_words(chosen, video, words, observer, isolated)
    return ChosenFrames(tuple((chosen.folder, keyframe) for keyframe in chosen.keyframes), _descriptions(run, chosen), tuple(notes))


def _query_for(run: Run, video: Source | None, question: str) -> tuple[str | None, list[str]]:
    """Return the question where the run's embedder can compare it with pictures, else None and why."""
    manifest = run.manifest
    if manifest is None:
        return None, []
    embedder = manifest.backends.get("embedder", "")
    if embedder in WITHOUT_TEXTS:
        advice = f"Extract with {option('embedder', 'clip')} to have them chosen by the question"
        return None, [f"The frames are spread over the video: the embedder {embedder} compares no pictures with questions. {advice}."]
    if not store.is_own(manifest) and (video is None or not registry.is_published(embedder)):
        return None, ["The frames are spread over the video: the run is of another machine, whose embedder is not loaded."]
    return question, []


def _reselected(run: Run, video: Source | None, query: str | None, frames: int, observer: Observer) -> Run:
    """Return the run of these frames in asked/; it is made again where the run has changed since."""
    digest = hashlib.sha256(json.dumps([query, frames]).encode()).hexdigest()[:16]
    folder = run.folder / store.ASKED / digest
    changes = {"keyframes": frames, "query": query, **({"pruner": BY_RELEVANCE} if query else {})}
    for path in (folder.parent, folder):
        store.make_folder(path, inside=run.folder)  # no link in it leads elsewhere
    try:
        where = str(video) if isinstance(video, FileSource) else None
        return reselect(run, out=folder, video=where, overwrite=True, observer=observer, **changes)
    except VipError:
        _clear_unfinished(folder)
        raise


def _clear_unfinished(folder: Path) -> None:
    """Delete what a selection that failed has left in asked/."""
    with suppress(OSError, StoreError):
        store.clear(folder)
        files.remove(folder / store.MANIFEST, inside=folder)
    for path in (folder / store.PICTURES, folder, folder.parent):
        with suppress(OSError):  # it is not empty
            path.rmdir()


def spread(keyframes: Sequence[KeyframePicture], count: int) -> list[KeyframePicture]:
    """Return so many of the keyframes, at even distances in their order."""
    if count >= len(keyframes):
        return list(keyframes)
    return [keyframes[(2 * place + 1) * len(keyframes) // (2 * count)] for place in range(count)]


def _descriptions(run: Run, chosen: Run) -> Mapping[str, Description]:
    """Return the descriptions of a run by the ids of the chosen keyframes that show the same frame."""
    described = run.described
    if run is chosen:
        return described
    by_pts = {one.record.pts: described[one.id] for one in run.keyframes if one.id in described}
    return {one.id: by_pts[one.record.pts] for one in chosen.keyframes if one.record.pts in by_pts}


# ---------------------------------------------------------------- words


TRANSCRIBED = "(transcribed by a program, not read:)"  # before words of which some are speech


def words_near(times_s: Sequence[float], words: Sequence[SpokenWords]) -> list[str | None]:
    """Return the subtitles around each time, half way to its neighbours; where they are too long, those nearest to it.

    Args:
        times_s: in ascending order.
    """
    found: list[str | None] = []
    for place, time_s in enumerate(times_s):
        start_s = (times_s[place - 1] + time_s) / 2 if place else float("-inf")
        end_s = (time_s + times_s[place + 1]) / 2 if place + 1 < len(times_s) else float("inf")
        around = [one for one in words if one.start_s < end_s and one.end_s > start_s]
        around.sort(key=lambda one: max(one.start_s - time_s, time_s - one.end_s, 0.0))
        kept, letters = list[SpokenWords](), 0
        for one in around:
            letters += len(one.text) + 1
            if letters > MOST_LETTERS:
                break
            kept.append(one)
        lines: list[str] = []
        for one in sorted(kept, key=lambda one: (one.start_s, one.end_s)):
            if (line := one_line(one.text)) not in lines[-2:]:  # automatic subtitles repeat the line before
                lines.append(line)
        found.append(" ".join(lines) or None)
    return found


def words_of(keyframes: Sequence[ChosenKeyframe]) -> dict[tuple[Path, str], str]:
    """Return the words near each keyframe, by run folder and id, without those that have none.

    Raises:
        StoreError: a file of words is damaged.
    """
    found: dict[tuple[Path, str], str] = {}
    for folder in dict.fromkeys(folder for folder, _ in keyframes):
        if not (words := Run(folder).words):
            continue
        timed = sorted((one.time_s, one.id) for home, one in keyframes if home == folder and one.time_s is not None)
        for (_, name), text in zip(timed, words_near([time_s for time_s, _ in timed], words), strict=True):
            if text:
                found[folder, name] = f"{TRANSCRIBED} {text}" if any(one.source == "speech" for one in words) else text
    return found


def text_of(keyframes: Sequence[ChosenKeyframe]) -> dict[tuple[Path, str], str]:
    """Return the text in each keyframe, by run folder and id, without those in which none was read.

    Raises:
        StoreError: a file of texts is damaged.
    """
    found: dict[tuple[Path, str], str] = {}
    for folder in dict.fromkeys(folder for folder, _ in keyframes):
        found |= {(folder, name): " · ".join(map(one_line, lines))[:MOST_LETTERS] for name, lines in text_by_keyframe(Run(folder)).items()}
    return found
