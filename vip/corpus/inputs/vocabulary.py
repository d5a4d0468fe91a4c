"""The labels of YouTube-8M: names, verticals and Wikipedia descriptions, from its vocabulary.csv.

In: the published file (Index, TrainVideoCount, KnowledgeGraphId, Name, WikiUrl, Vertical1 to 3, WikiDescription).
Out: names and verticals for the numbers of a TFRecord, and the text for the grounding list of section 3.2 of the paper.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vip.errors import InputError
from vip.files import open_named

TOPIC_LETTERS = 600
COLUMNS = ("Index", "Name", "Vertical1", "Vertical2", "Vertical3", "WikiDescription")

_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)\s+(?=[A-Z\"“(])")  # not after the initials of U.S. or John F. Kennedy


@dataclass(frozen=True, slots=True)
class Topic:
    """One label."""

    index: int
    name: str
    """Its number as text where the file has no name, as for 56 of the 3,862."""
    verticals: tuple[str, ...]
    description: str


class Vocabulary:
    """The labels by number and by name."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        self._by_label = {str(topic.index): topic for topic in topics}
        self._by_label |= {topic.name: topic for topic in self._by_label.values() if topic.name not in self._by_label}

    def find(self, label: str) -> Topic | None:
        """Return the topic of a name, or of a number as text."""
        return self._by_label.get(label)

    def names(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the labels in their order; unknown labels stay as they are."""
        return tuple(topic.name if (topic := self.find(label)) else label for label in labels)

    def verticals(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the verticals of the labels, each once, in their order."""
        return tuple(dict.fromkeys(vertical for topic in self._find_all(labels) for vertical in topic.verticals))

    def topic_of(self, labels: Sequence[str]) -> str | None:
        """Return what a video with these labels is about: names, and whole sentences of their descriptions; None where no label is known.

        At most 600 letters: the first sentence of each description in the order of the labels, then the second of each, and so on. After
        a sentence that does not fit, no more are taken from its description.
        """
        topics = list(dict.fromkeys(self._find_all(labels)))
        if not topics:
            return None
        taken: dict[Topic, list[str]] = {}
        room = TOPIC_LETTERS
        for topic in topics:
            if len(topic.name) + 2 <= room:
                taken[topic] = []
                room -= len(topic.name) + 2
        ended: set[Topic] = set()
        for topic, sentence in _interleave_sentences(list(taken)):
            if topic in ended or len(sentence) + 2 > room:
                ended.add(topic)
            else:
                taken[topic].append(sentence)
                room -= len(sentence) + 2
        return "\n".join(f"{topic.name}: {' '.join(said)}" if said else topic.name for topic, said in taken.items())

    def _find_all(self, labels: Sequence[str]) -> Iterator[Topic]:
        return (topic for label in labels if (topic := self.find(label)) is not None)


def load_vocabulary(path: Path) -> Vocabulary:
    """Return the vocabulary of a file.

    Raises:
        InputError: it cannot be read, or is no vocabulary of YouTube-8M.
    """
    try:
        with io.TextIOWrapper(open_named(path), encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                raise InputError(
                    f"{path} has no column {missing[0]}. Give the vocabulary.csv of YouTube-8M, whose columns are {', '.join(COLUMNS)} …"
                )
            return Vocabulary([_parse_topic(row) for row in rows])
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}.") from exc
    except (ValueError, csv.Error) as exc:  # UnicodeDecodeError is a ValueError
        raise InputError(f"{path} is damaged ({exc}). Download vocabulary.csv of YouTube-8M again.") from exc


def _parse_topic(row: dict[str, str | None]) -> Topic:
    index = int(row["Index"] or "")
    verticals = (row["Vertical1"], row["Vertical2"], row["Vertical3"])
    return Topic(
        index=index,
        name=(row["Name"] or "").strip() or str(index),
        verticals=tuple(vertical for vertical in verticals if vertical),
        description=" ".join((row["WikiDescription"] or "").split()),
    )


def _interleave_sentences(topics: Sequence[Topic]) -> Iterator[tuple[Topic, str]]:
    """Yield the first sentence of each topic, then the second of each, and so on."""
    texts = [(topic, [text for text in _SENTENCE_END.split(topic.description) if text]) for topic in topics]
    for number in range(max((len(text) for _, text in texts), default=0)):
        yield from ((topic, text[number]) for topic, text in texts if number < len(text))
