"""The frames that a question is asked about over many videos: search first, then the keyframes of the best moments.

In: run folders, folders of runs and data sets, and a question. Out: keyframes of several videos, best moments first served. The search is
for the words of the question that say something; where the vectors are of a joint space, for pictures too. Keyframes of a data set are
written beside the index of the search, as run folders, so that their pictures can be shown and looked up.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from pydantic import ValidationError

from vip import store
from vip.dataset import storage
from vip.dataset.rows import KeyframeRow, VideoSample
from vip.dataset.sanitize import without_secrets
from vip.dataset.shard_names import has_shards
from vip.dataset.shards import read_sidecar, samples_in
from vip.dataset.subtitles import choose_subtitles, parse_cues
from vip.errors import BackendError, InputError, StoreError, UsageError
from vip.protocols import Observer
from vip.records import SpokenWords
from vip.search.ask_frames import WITHOUT_TEXTS, ChosenFrames, ChosenKeyframe, VideoOrRun, check_frames, run_folder_of, spread
from vip.search.documents import KeyframeTexts
from vip.search.find import SearchQuery, default_folder, find_moments
from vip.search.moments import Moment, Moments
from vip.search.query_text import COMMON, PHRASE, parse_query
from vip.store import KeyframePicture
from vip.untrusted import one_line
from vip.wording import counted

UNPACKED = "frames"
"""The folder beside the index with keyframes of data sets."""
IN_QUESTIONS = COMMON | frozenset(
    {
        "about",
        "any",
        "been",
        "but",
        "could",
        "if",
        "me",
        "not",
        "should",
        "so",
        "some",
        "than",
        "them",
        "then",
        "these",
        "those",
        "us",
        "would",
    }
)
WORD = re.compile(r"\w+(?:['’]\w+)*")
MOMENTS_A_FRAME = 10  # are searched for: the best ones may all be of one video
SHORTENED = frozenset({"s", "re", "ve", "ll", "d", "m"})  # behind an apostrophe: what's, they're


def corpus_of(source: VideoOrRun) -> list[str] | None:
    """Return the addresses of a corpus, or of several runs; None where one video or one run is meant."""
    if isinstance(source, str | Path):
        return [str(source)] if is_corpus(str(source)) else None
    if isinstance(source, Sequence) and source and all(isinstance(one, str | Path) for one in source):
        addresses = [str(one) for one in source]
        return addresses if all(run_folder_of(one) or is_corpus(one) for one in addresses) else None
    return None


def is_corpus(address: str) -> bool:
    """Return whether this is a folder of runs or a data set; an http(s) address is that of a video."""
    path = storage.local_path(address)
    if path is None:
        return not address.lower().startswith(("http://", "https://"))
    if not store.is_folder(path) or run_folder_of(path):
        return False
    return any(path.glob(f"*/{store.MANIFEST}")) or has_shards(address)


def check_sources(sources: Sequence[str]) -> None:
    """Refuse what cannot be searched among several sources.

    Raises:
        UsageError: one is neither a run, nor a folder of runs, nor a data set.
    """
    for source in sources:
        if not (run_folder_of(source) or is_corpus(source)):
            raise UsageError(
                f"{one_line(without_secrets(source))} is neither a run nor a folder of runs nor a data set, as several sources have to be."
                " Extract a video first, and put the question in quotation marks behind the sources."
            )


def query_of(question: str) -> str:
    """Return the words of a question that say something, and its phrases in quotation marks.

    Raises:
        UsageError: there is none.
    """
    kept: list[str] = []
    for place, piece in enumerate(PHRASE.split(question)):
        kept += [f'"{piece}"'] if place % 2 else [word for match in WORD.findall(piece) for word in _without_ending(match)]
    query = " ".join(kept)
    if not parse_query(query):
        raise UsageError("The question has no word that can be searched for. Name something that is seen or said.")
    return query


def _without_ending(word: str) -> list[str]:
    *parts, ending = re.split("['’]", word)
    if parts and ending.casefold() == "t":  # don't, isn't
        return []
    whole = [*parts, *([] if parts and ending.casefold() in SHORTENED else [ending])]
    return [part for part in whole if part.casefold() not in IN_QUESTIONS]


def choose_frames_of_corpus(
    sources: Sequence[str], question: str, *, frames: int, embedder: str, observer: Observer, index: Path | None = None
) -> ChosenFrames:
    """Return keyframes of the moments that fit a question, best moments first served; none where nothing fits.

    Args:
        embedder: as of `SearchQuery`.
        index: where the index of the search is kept; by default in the user's cache.

    Raises:
        UsageError: the question has no word to search for.
        InputError, StoreError, BackendError: as of `find_moments`; or no keyframe that was found can be read.
    """
    check_frames(frames)
    query = SearchQuery(text=query_of(question), moments=MOMENTS_A_FRAME * frames, embedder=embedder)
    index = index or default_folder(sources)
    found, notes = _search(sources, query, index, observer)
    counts = frames_of_moments(found.moments, frames)
    wanted = [(moment, count) for moment, count in zip(found.moments, counts, strict=True) if count]
    videos = counted(len({_video_of(moment) for moment, _ in wanted}), "video")
    moments = f"{counted(len(wanted), 'moment')} of {videos}"
    notes.append(f"Searched {counted(found.keyframes, 'keyframe')} for {one_line(query.text or '')}: {moments if wanted else 'nothing'}.")
    keyframes: list[ChosenKeyframe] = []
    problem: InputError | StoreError | None = None
    groups: dict[tuple[str, str], list[tuple[Moment, int]]] = {}
    for moment, count in wanted:
        groups.setdefault((moment.source, moment.part), []).append((moment, count))
    for (source, part), some in groups.items():
        try:
            keyframes += _frames_in_shard(source, int(part), some, index) if part else _frames_in_run(Path(source), some)
        except (InputError, StoreError) as exc:
            problem = exc
            notes.append(f"{exc} It is left out.")
    if problem and not keyframes:
        raise problem
    return ChosenFrames(tuple(keyframes), None, tuple(notes))


def _search(sources: Sequence[str], query: SearchQuery, index: Path, observer: Observer) -> tuple[Moments, list[str]]:
    """Return the moments; by words alone where pictures cannot be compared with a text, and a note that says so."""
    words = replace(query, fields=KeyframeTexts._fields, embedder="auto")
    if query.embedder in WITHOUT_TEXTS:
        return find_moments(words, sources, folder=index, observer=observer), []
    try:
        return find_moments(query, sources, folder=index, observer=observer), []
    except BackendError as exc:
        if query.embedder != "auto":
            raise
        why = f"Only words are searched. {exc}"
    except UsageError:
        if query.embedder != "auto":
            raise
        why = "Only words are searched: the vectors of these keyframes cannot be compared with one text."
    return find_moments(words, sources, folder=index, observer=observer), [why]


def frames_of_moments(moments: Sequence[Moment], frames: int) -> list[int]:
    """Return how many keyframes of each moment are looked at: one of each, best first, then more.

    No video has more than half of them while others have more to show.
    """
    counts, of_video = [0] * len(moments), Counter[object]()
    for most in (frames - frames // 2, frames):
        while True:
            before = sum(counts)
            for place, moment in enumerate(moments):
                if sum(counts) < frames and counts[place] < moment.keyframes and of_video[_video_of(moment)] < most:
                    counts[place] += 1
                    of_video[_video_of(moment)] += 1
            if sum(counts) == before:
                break
    return counts


def _video_of(moment: Moment) -> tuple[str, str, str]:
    return moment.source, moment.part, moment.keyframe_id.rpartition(":")[0]


def _members(keyframes: Sequence[KeyframePicture], moment: Moment, count: int) -> list[KeyframePicture]:
    """Return the best keyframe of a moment, and others of it at even distances."""
    best = [one for one in keyframes if one.id == moment.keyframe_id][:1]
    if not best or moment.start_s is None or moment.end_s is None:
        return best
    inside = [
        one for one in keyframes if one.id != moment.keyframe_id and one.time_s is not None and moment.start_s <= one.time_s <= moment.end_s
    ]
    return [*best, *spread(inside, count - 1)]


# ---------------------------------------------------------------- keyframes of runs


def _frames_in_run(folder: Path, wanted: Sequence[tuple[Moment, int]]) -> list[ChosenKeyframe]:
    here = Path.cwd()
    run = store.load_run(folder.relative_to(here) if folder.is_relative_to(here) and folder != here else folder)
    found = [(run.folder, one) for moment, count in wanted for one in _members(run.keyframes, moment, count)]
    if not found:
        raise StoreError(f"{run.folder}: its keyframes have changed since the search. Ask again.")
    return found


# ---------------------------------------------------------------- keyframes of data sets


def _frames_in_shard(address: str, number: int, wanted: Sequence[tuple[Moment, int]], index: Path) -> list[ChosenKeyframe]:
    """Return keyframes of a shard, whose pictures are written beside the index; the shard is read up to the last of them."""
    left = {moment.keyframe_id: (moment, count) for moment, count in wanted}
    found: list[ChosenKeyframe] = []
    for sample in samples_in(address, read_sidecar(address, number)):
        rows = {frame.keyframe.id: frame for frame in sample.frames}
        if here := [left.pop(name) for name in list(left) if name in rows]:
            digest = hashlib.sha256("\n".join((address, str(number), sample.video.key)).encode("utf-8", "surrogatepass")).hexdigest()
            folder = index / UNPACKED / f"{sample.video.key}-{digest[:12]}"
            pictures = [KeyframePicture(row.keyframe, folder) for row in rows.values()]
            chosen = [one for moment, count in here for one in _members(pictures, moment, count)]
            _unpack(sample, rows, chosen, folder, index)
            found += [(folder, one) for one in chosen]
        if not left:
            break
    if not found:
        raise StoreError(f"{without_secrets(address)}, shard {number}: its keyframes have changed since the search. Ask again.")
    return found


def _unpack(sample: VideoSample, rows: Mapping[str, KeyframeRow], chosen: Sequence[KeyframePicture], folder: Path, index: Path) -> None:
    """Write the pictures that were chosen of a video, and what is known of it, as a run folder.

    Raises:
        StoreError: it cannot be written.
    """
    for path in (folder.parent, folder, folder / store.PICTURES):
        store.make_folder(path, inside=index)
    for one in chosen:
        with store.replacing(folder / store.PICTURES / PurePath(one.record.image_path).name, inside=folder) as file:
            file.write(rows[one.id].picture)
    store.write_rows(folder / store.DESCRIPTIONS, [frame.description for frame in sample.frames if frame.description])
    store.write_rows(folder / store.WORDS, _spoken(sample))
    store.write_rows(folder / store.KEYFRAMES, [one.record for one in sorted(chosen, key=lambda one: one.id)])


def _spoken(sample: VideoSample) -> list[SpokenWords]:
    """Return the subtitles of a video; a line whose times make no sense is left out."""
    rows = []
    for start_s, end_s, lines in parse_cues(choose_subtitles(sample.video.subtitles, sample.video.info.get("language")) or ""):
        try:
            rows.append(SpokenWords(start_s=start_s, end_s=end_s, text=" ".join(lines), origin="the data set"))
        except ValidationError:
            continue
    return [row for row in rows if row.text]
