"""Moments: keyframes that were found, those side by side joined to a stretch of time.

In: hits. Out: `Moment`, best first, each with its keyframe, its times and why it was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from vip.records import Record, RecordPart, Time
from vip.search.documents import KeyframeTexts
from vip.search.hits import Hit
from vip.search.index import SearchIndex, name_of
from vip.search.query_text import QueryText, match

WORDS_AROUND = 16  # of a match that are shown
SIMILAR_WORDS, SIMILAR_PICTURES = 0.5, 0.75  # of the weight and the likeness of the best keyframe of a moment
OPEN, CLOSE = "\x02", "\x03"  # around the words of the query


class MatchedWords(RecordPart):
    """Where the words of a query stand."""

    fields: tuple[str, ...]
    """`words` is what is said; the others are of the description."""
    excerpt: str
    """Some words of the field with the best match; those of the query are between \\x02 and \\x03."""

    @property
    def plain(self) -> str:
        """The excerpt without marks."""
        return self.excerpt.replace(OPEN, "").replace(CLOSE, "")

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """The excerpt in pieces, and whether each is a word of the query."""
        first, *rest = self.excerpt.split(OPEN)
        marked = [(piece, place == 0) for text in rest for place, piece in enumerate(text.split(CLOSE, 1))]
        return [(text, is_match) for text, is_match in [(first, False), *marked] if text]


class Moment(RecordPart):
    """A stretch of a video that fits a query."""

    video: str
    """The name of the video: its title, or its id."""
    source: str
    """The run folder, or the data set."""
    origin: str
    """Where the video is from: a path, an address without login, or an id."""
    link: str | None
    """Where the host shows this moment; None where it is unknown."""
    start_s: Time | None
    """None for a picture that comes from no video, as the two below."""
    end_s: Time | None
    time_s: Time | None
    """Of the keyframe that fits best."""
    keyframe_id: str
    picture: str
    """Its picture, below `source`; in a data set the name of the picture."""
    part: str
    """The number of the shard; "" for a run folder."""
    score: float
    """By reciprocal rank fusion."""
    keyframes: int
    """How many keyframes of the moment fit."""
    words: MatchedWords | None
    """None where it was not found by words."""
    cosine: float | None
    """Of its picture and the query; None where it was not found by its picture."""


class Moments(Record):
    """The answer to a search."""

    query: str | None
    like: str | None
    """The name of the picture that was searched for."""
    embedder: str | None
    """What compared pictures; None where words alone were searched."""
    keyframes: int
    """How many were searched."""
    moments: tuple[Moment, ...]


class _Row(NamedTuple):
    """A keyframe of the index."""

    id: int
    video: int
    number: int
    keyframe_id: str
    time_s: float | None
    start_s: float | None
    end_s: float | None
    picture: str
    name: str
    origin: str
    youtube_id: str | None
    address: str
    part: str


_COLUMNS = """k.id, k.video, k.number, k.keyframe_id, k.time_s, k.start_s, k.end_s, k.picture,
    v.name, v.origin, v.youtube_id, s.address, s.part"""


def join_hits(index: SearchIndex, hits: Sequence[Hit], query: QueryText, fields: Sequence[str], count: int) -> Iterator[Moment]:
    """Yield the best `count` moments, best first; neighbours among the hits are one moment, which has the score of the best."""
    rows = {hit.keyframe: _row(index, hit.keyframe) for hit in hits}
    free = {(row.video, row.number): hit for hit in hits if (row := rows[hit.keyframe])}
    for hit in hits:
        row = rows[hit.keyframe]
        if free.get((row.video, row.number)) is not hit:
            continue  # it is in a moment already
        members = [rows[free.pop(place).keyframe] for place in _stretch(free, row, hit)]
        yield _moment(index, hit, row, members, query, fields)
        count -= 1
        if not count:
            return


def _stretch(free: Mapping[tuple[int, int], Hit], row: _Row, best: Hit) -> list[tuple[int, int]]:
    """Return the places of the hits around the best of a moment that fit nearly as well as it."""
    first = last = row.number
    while (before := free.get((row.video, first - 1))) and _fits_like(before, best):
        first -= 1
    while (behind := free.get((row.video, last + 1))) and _fits_like(behind, best):
        last += 1
    return [(row.video, number) for number in range(first, last + 1)]


def _fits_like(hit: Hit, best: Hit) -> bool:
    if best.words and hit.words and hit.words.tier == best.words.tier and hit.words.weight >= SIMILAR_WORDS * best.words.weight:
        return True
    return best.likeness > 0 and hit.likeness >= SIMILAR_PICTURES * best.likeness


def _moment(index: SearchIndex, hit: Hit, row: _Row, members: Sequence[_Row], query: QueryText, fields: Sequence[str]) -> Moment:
    link = f"https://youtu.be/{row.youtube_id}?t={int(row.time_s)}" if row.youtube_id and row.time_s is not None else None
    return Moment(
        video=row.name,
        source=row.address,
        origin=row.origin,
        link=link,
        start_s=members[0].start_s,
        end_s=members[-1].end_s,
        time_s=row.time_s,
        keyframe_id=row.keyframe_id,
        picture=row.picture,
        part=row.part,
        score=hit.score,
        keyframes=len(members),
        words=_matched(index, row.id, query, fields) if hit.words else None,
        cosine=hit.cosine,
    )


def _row(index: SearchIndex, keyframe: int) -> _Row:
    joined = "keyframes k JOIN videos v ON v.id = k.video JOIN sources s ON s.id = v.source"
    row = _Row(*index.connection.execute(f"SELECT {_COLUMNS} FROM {joined} WHERE k.id = ?", (keyframe,)).fetchone())
    return row._replace(
        keyframe_id=name_of(row.keyframe_id),
        picture=name_of(row.picture),
        name=name_of(row.name),
        origin=name_of(row.origin),
        address=name_of(row.address),
    )


def _matched(index: SearchIndex, keyframe: int, query: QueryText, fields: Sequence[str]) -> MatchedWords:
    """Return which fields of a keyframe have words of the query, those with the most first."""
    found: list[tuple[int, str, str]] = []
    for place, field in enumerate(KeyframeTexts._fields):
        if fields and field not in fields:
            continue
        marked = f"snippet(texts, {place}, '{OPEN}', '{CLOSE}', ' … ', {WORDS_AROUND})"
        expression = match(query.words, "OR", [field])
        row = index.connection.execute(f"SELECT {marked} FROM texts WHERE rowid = ? AND texts MATCH ?", (keyframe, expression)).fetchone()
        if row:
            excerpt = " ".join(row[0].split(" "))
            found.append((-len({word.casefold() for word in _marked(excerpt)}), field, excerpt))
    found.sort(key=lambda one: one[0])
    return MatchedWords(fields=tuple(field for _, field, _ in found), excerpt=found[0][2] if found else "")


def _marked(excerpt: str) -> list[str]:
    return [piece.partition(CLOSE)[0] for piece in excerpt.split(OPEN)[1:]]
