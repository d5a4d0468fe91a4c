"""What the data of VALUE is made of: videos, subtitles and words (Li et al. 2021, tables 1, 2, 7 and 8, figure 2).

In: a folder with files as published: annotations, `<task>_video2dur_idx.json`, `<source>_subtitles.jsonl`. Out: `DataStatistics`. Words are
counted as lemmas; names are left out, since the tagger calls them proper nouns, and so are speakers in front of a colon.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vip.errors import BackendError, InputError
from vip.files import read_named
from vip.metrics.penn_treebank import tokenize_captions
from vip.metrics.perceptron_tagger import load_tagger
from vip.metrics.wordnet import PartOfSpeech, WordNet, find_wordnet
from vip.tasks.files import file_inside
from vip.tasks.value.annotations import MOST_JSON_BYTES, read_rows
from vip.tasks.value.channels import SubtitleFile
from vip.tasks.value.datasets import BY_KEY, DATASETS, Dataset
from vip.untrusted import one_line, parse_json

TOP = 20
MOST_TEXTS = 50_000
"""Texts of a source whose words are counted; a tagger in Python reads some 500 a second."""
SPEAKER = re.compile(r"^\s*[\w.' -]{1,40}\s*:\s")
Tag = Callable[[Sequence[str]], Sequence[tuple[str, str]]]
Lemma = Callable[[str, PartOfSpeech], str]


@dataclass(frozen=True, slots=True)
class VideoOrigin:
    """Videos that several tasks share."""

    key: str
    """As in the names of subtitle files: `tv`."""
    title: str
    tasks: tuple[str, ...]
    published: tuple[float, float, float]
    """Thousands of videos, the share of them with subtitles in percent, mean length in seconds: table 1."""


SOURCES = (
    VideoOrigin("tv", "TV", ("tvqa", "tvr", "tvc"), (21.8, 100.0, 76)),
    VideoOrigin("how2", "How2", ("how2r", "how2qa"), (31.7, 99.36, 59)),
    VideoOrigin("violin", "VIOLIN", ("violin",), (15.9, 99.33, 40)),
    VideoOrigin("vlep", "VLEP", ("vlep",), (10.2, 98.11, 32)),
    VideoOrigin("yc2", "YouCook2", ("yc2c", "yc2r"), (15.4, 94.4, 20)),
    VideoOrigin("vatex", "VATEX", ("vatex_en_r", "vatex_en_c"), (41.3, 50.93, 10)),
)


@dataclass(slots=True)
class WordCounts:
    """Nouns and verbs by how often they occur."""

    nouns: Counter[str] = field(default_factory=Counter)
    verbs: Counter[str] = field(default_factory=Counter)
    texts: int = 0

    def top(self, part: str) -> list[str]:
        """Return the most frequent ones, of equally frequent ones the first in the alphabet."""
        counts: Counter[str] = self.nouns if part == "nouns" else self.verbs
        return [word for word, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:TOP]]


@dataclass(slots=True)
class SourceStatistics:
    """The videos of one source."""

    source: VideoOrigin
    durations_s: dict[str, float | None] = field(default_factory=dict)
    """Of each video; None where no file says it."""
    with_subtitles: int | None = None
    """Videos with at least one sentence; None without a file of subtitles."""
    words: WordCounts | None = None
    """Of the subtitles; None without them, or without a tagger."""

    @property
    def lengths_s(self) -> list[float]:
        return [value for value in self.durations_s.values() if value is not None]

    @property
    def mean_length_s(self) -> float | None:
        return sum(self.lengths_s) / len(self.lengths_s) if self.lengths_s else None

    @property
    def channel_ratio(self) -> float | None:
        """The share of videos with subtitles, in percent."""
        return None if self.with_subtitles is None or not self.durations_s else 100 * self.with_subtitles / len(self.durations_s)


@dataclass(slots=True)
class TaskStatistics:
    """The annotations of one task."""

    dataset: Dataset
    splits: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name of a split -> videos, and queries, questions or captions."""
    words: WordCounts | None = None


@dataclass(frozen=True, slots=True)
class DataStatistics:
    """What was found in a folder."""

    sources: tuple[SourceStatistics, ...]
    tasks: tuple[TaskStatistics, ...]
    notes: tuple[str, ...]
    """What was left out, and why."""


def measure_folder(folder: Path, *, tag: Tag | None = None, lemma: Lemma | None = None) -> DataStatistics:
    """Return the statistics of the published files in a folder and the folders in it.

    Args:
        tag: gives tokens their tags of the Penn Treebank; None: NLTK's tagger, where its data is here.
        lemma: returns the base form of a word; None: WordNet's, where it is here, else the word itself.

    Raises:
        InputError: the folder has no such file, or one is damaged.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder. Give the folder with the published files.")
    tag, lemma, notes = _load(tag, lemma)
    sources = {one.key: SourceStatistics(one) for one in SOURCES}
    tasks = []
    for dataset in DATASETS:
        source = next(one for one in sources.values() if dataset.key in one.source.tasks)
        for path in _files(folder, f"{dataset.key}_video2dur_idx.json"):
            source.durations_s.update(_index_durations(path))
        if paths := _annotation_files(folder, dataset):
            tasks.append(_measure_task(dataset, paths, source, tag, lemma))
    for source in sources.values():
        for path in _files(folder, f"{source.source.key}_subtitles.jsonl")[:1]:
            _add_subtitles(source, SubtitleFile(path), tag, lemma)
    found = tuple(one for one in sources.values() if one.durations_s)
    if not found:
        raise InputError(f"{folder} has no files of VALUE, such as tvr_val_release.jsonl. Give the folder with the published files.")
    return DataStatistics(found, tuple(tasks), tuple(notes))


def _load(tag: Tag | None, lemma: Lemma | None) -> tuple[Tag | None, Lemma, list[str]]:
    notes = []
    if tag is None:
        try:
            tag = load_tagger().tag
        except BackendError as exc:
            notes.append(f"No words are counted. {exc}")
    if lemma is None:
        try:
            lemma = _lemma_of(WordNet(find_wordnet()))
        except BackendError as exc:
            lemma = _as_it_is
            if tag is not None:
                notes.append(f"Words are counted as they stand. {exc}")
    return tag, lemma, notes


def _as_it_is(word: str, part: PartOfSpeech) -> str:
    return word


def _lemma_of(wordnet: WordNet) -> Lemma:
    def lemma(word: str, part: PartOfSpeech) -> str:
        return min(wordnet.base_forms(word, part) or [word], key=len)

    return lemma


# ---------------------------------------------------------------- files


def _files(folder: Path, name: str) -> list[Path]:
    return sorted(file_inside(path, folder) for path in folder.rglob(name) if path.is_file())


def _annotation_files(folder: Path, dataset: Dataset) -> dict[str, Path]:
    """Return the annotations of each split that are there; the longest name of a split counts: `test_public` before `test`."""
    found: dict[str, Path] = {}
    names = sorted({"train", "val", dataset.validation.name, dataset.test.name}, key=len, reverse=True)
    for path in _files(folder, f"{dataset.key}_*.jsonl"):
        rest = path.name.removeprefix(f"{dataset.key}_")
        split = next((name for name in names if rest.startswith(f"{name}_") or rest == f"{name}.jsonl"), None)
        if split is not None and "predictions" not in rest:
            found.setdefault(split, path)
    return found


def _index_durations(path: Path) -> Iterator[tuple[str, float | None]]:
    try:
        value = parse_json(read_named(path, most_bytes=MOST_JSON_BYTES))
        for group in value.values():
            for name, pair in group.items():
                yield str(name), float(pair[0])
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}. Give it as it was published.") from exc
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        raise InputError(f"{path} has a video without its length and number. Give <task>_video2dur_idx.json as it was published.") from exc


def _measure_task(dataset: Dataset, paths: dict[str, Path], source: SourceStatistics, tag: Tag | None, lemma: Lemma) -> TaskStatistics:
    task = TaskStatistics(dataset, words=WordCounts() if tag is not None else None)
    for split, path in paths.items():
        videos: set[str] = set()
        count = 0
        for line, row in read_rows(path, dataset):
            texts = _texts(row)
            name = row.get("vid_name")
            if isinstance(name, str):
                videos.add(name)
                duration = row.get("duration")
                known = float(duration) if isinstance(duration, int | float) and not isinstance(duration, bool) else None
                if source.durations_s.get(name) is None:
                    source.durations_s[name] = known
            if not texts and dataset.category != "captioning":
                raise InputError(f"{path}, line {line:,}: it has no text. Give the annotations of {dataset.title} as they were published.")
            count += len(texts) if dataset.category == "captioning" else 1
            if task.words is not None and tag is not None:
                _count_words(task.words, texts, tag, lemma)
        task.splits[split] = len(videos), count
    return task


def _texts(row: Any) -> list[str]:
    """Return the texts of a row: a query, a question with its options, a statement, events, or captions."""
    descriptions, events = (found if isinstance(found := row.get(name), list) else [] for name in ("descs", "events"))
    captions = [one.get("desc") for one in descriptions if isinstance(one, dict)]
    values = [*(row.get(name) for name in ("desc", "q", "statement", *(f"a{index}" for index in range(5)))), *events]
    return [value for value in (*values, *captions) if isinstance(value, str)]


def _add_subtitles(source: SourceStatistics, subtitles: SubtitleFile, tag: Tag | None, lemma: Lemma) -> None:
    source.with_subtitles = 0
    source.words = WordCounts() if tag is not None else None
    for name in source.durations_s:
        sentences = [one.text for one in subtitles.of_video(name) if one.text]
        source.with_subtitles += bool(sentences)
        if source.words is not None and tag is not None:
            _count_words(source.words, [SPEAKER.sub("", text) for text in sentences], tag, lemma)


def _count_words(counts: WordCounts, texts: Iterable[str], tag: Tag, lemma: Lemma) -> None:
    for text in texts:
        if counts.texts >= MOST_TEXTS:
            return
        counts.texts += 1
        for word, kind in tag(_tokens(text)):
            if kind in {"NN", "NNS"} and word.isalpha():
                counts.nouns[lemma(word.lower(), "n")] += 1
            elif kind.startswith("VB") and word.isalpha():
                counts.verbs[lemma(word.lower(), "v")] += 1


def _tokens(text: str) -> list[str]:
    """Return the words in their own case, which tells names from nouns."""
    lower = next(tokenize_captions([text]), ())
    place, words = 0, []
    for token in lower:
        found = text.lower().find(token, place)
        words.append(token if found < 0 else text[found : found + len(token)])
        place = place if found < 0 else found + len(token)
    return words


def titles_of(source: VideoOrigin) -> str:
    """Return the tasks of a source as the paper names them."""
    return one_line(", ".join(BY_KEY[key].title for key in source.tasks))
