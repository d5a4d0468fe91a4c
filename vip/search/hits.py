"""Keyframes that fit a query: by their words, by their pictures, and both together.

Words are ranked by BM25; where few keyframes have all words, those that have some of them follow. The two rankings become one by
reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): a keyframe scores the sum of 1 / (60 + its rank).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from vip.search.embedder_vectors import StoredEmbedder
from vip.search.index import SearchIndex
from vip.search.query_text import QueryText, match
from vip.search.vectors import Column

RANK_OFFSET = 60  # k of the paper
MOST_SCORED = 8_000  # keyframes that are ranked by their words: about 20 ms
MOST_COMMON = 50_000  # keyframes with a word that is asked for; counting them takes 3 ms
SOME_WORDS = 2  # the tier of keyframes that lack a word of the query
TOO_MANY = "More than {:,} keyframes have these words; that many were ranked."
TOO_COMMON = "More than {:,} keyframes have each of these words; the first of them are shown, in no order."
WEIGHTS = (1.0, 1.5, 1.5, 0.5, 1.5, 1.0, 1.5, 1.5)  # of `KeyframeTexts`


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which keyframes may be found; an empty filter lets all of them through."""

    video: str | None = None
    """A pattern of names and ids: `lecture*`."""
    domain: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    has_people: bool = False

    @property
    def conditions(self) -> list[tuple[str, tuple[object, ...]]]:
        """Return conditions of SQL on keyframes k and videos v, each with its values."""
        found: list[tuple[str, tuple[object, ...]]] = []
        if self.video is not None:
            found.append(("(lower(v.name) GLOB lower(?) OR lower(v.youtube_id) GLOB lower(?))", (self.video, self.video)))
        if self.domain is not None:
            found.append(("instr(lower(char(10) || v.domains || char(10)), char(10) || lower(?) || char(10)) > 0", (self.domain,)))
        if self.start_s is not None:
            found.append(("k.end_s >= ?", (self.start_s,)))
        if self.end_s is not None:
            found.append(("k.start_s <= ?", (self.end_s,)))
        if self.has_people:
            found.append(("k.has_people", ()))
        return found


class WordMatch(NamedTuple):
    """How well the words of a keyframe fit."""

    tier: int
    """0: the query as a phrase; 1: all its words; 2: some of them."""
    weight: float
    """Its BM25 as a share of the best in its tier."""


class WordHits(NamedTuple):
    """The keyframes that fit by their words, best first."""

    keyframes: Mapping[int, WordMatch]
    unranked: str = ""
    """Why keyframes that have the words may be missing; empty where none is."""


class PictureHits(NamedTuple):
    """The keyframes that fit by their pictures, best first, with their cosines."""

    cosines: Mapping[int, float]
    mean: float
    """The mean cosine of all keyframes."""


class Hit(NamedTuple):
    """A keyframe that was found."""

    keyframe: int
    score: float
    words: WordMatch | None
    cosine: float | None
    likeness: float
    """How far its cosine is above that of all keyframes; 0 where pictures were not compared."""


def word_hits(index: SearchIndex, query: QueryText, fields: Sequence[str], among: SearchFilter, count: int) -> WordHits:
    """Return the best `count` keyframes: first those with the query as a phrase, then those with all its words, then with some.

    A word that very many keyframes have is left out of the last two where there are rarer ones. Where there are none, order says nothing.
    """
    counts = _counts(index.connection, query.words, fields)
    rare = [word for word in query.words if 0 < counts[word] <= MOST_COMMON]
    found: dict[int, WordMatch] = {}
    most, scored, is_complete = MOST_SCORED if rare else count, 0, True
    for tier, words in enumerate(_tiers(query, counts)):
        expression = match(words, "OR" if tier == SOME_WORDS else "AND", fields)
        rows = _scored(index.connection, expression, among, most + 1 - scored, is_ranked=bool(rare)) if words else []
        is_complete &= scored + len(rows) <= most
        scored += len(rows)
        best = max((-score for _, score in rows), default=0.0) or 1.0
        for keyframe, score in sorted(rows, key=lambda row: (row[1], row[0])):
            found.setdefault(keyframe, WordMatch(tier, -score / best))
        if len(found) >= count or not is_complete:
            break
    unranked = "" if is_complete else TOO_MANY.format(MOST_SCORED) if rare else TOO_COMMON.format(MOST_COMMON)
    return WordHits(dict(islice(found.items(), count)), unranked)


def _tiers(query: QueryText, counts: Mapping[str, int]) -> Iterator[Sequence[str]]:
    """Yield the words of each tier; none where it would find nothing new."""
    is_known = all(counts.values())
    yield [query.text] if is_known else []
    known = sorted((word for word in query.words if counts[word]), key=lambda word: counts[word])
    rare = [word for word in known if counts[word] <= MOST_COMMON] or known
    yield rare if is_known and rare != [query.text] else []
    total, kept = 0, list[str]()
    for word in rare:
        total += counts[word]
        if kept and total > MOST_SCORED:
            break
        kept.append(word)
    yield kept if len(query.words) > 1 else []


def _counts(connection: sqlite3.Connection, words: Sequence[str], fields: Sequence[str]) -> dict[str, int]:
    """Return how many keyframes have each word; no more than MOST_COMMON + 1 are counted."""
    query = f"SELECT count(*) FROM (SELECT 1 FROM texts WHERE texts MATCH ? LIMIT {MOST_COMMON + 1})"
    return {word: connection.execute(query, (match([word], "AND", fields),)).fetchone()[0] for word in words}


def _scored(connection: sqlite3.Connection, expression: str, among: SearchFilter, most: int, *, is_ranked: bool) -> list[tuple[int, float]]:
    """Return keyframes that fit an expression with their BM25, the best of which is the lowest; 0 where it is not asked for."""
    conditions = among.conditions
    joined = "JOIN keyframes k ON k.id = texts.rowid JOIN videos v ON v.id = k.video" if conditions else ""
    where = "".join(f" AND {text}" for text, _ in conditions)
    values = [value for _, some in conditions for value in some]
    score = f"bm25(texts, {', '.join(map(str, WEIGHTS))})" if is_ranked else "0.0"
    query = f"SELECT texts.rowid, {score} FROM texts {joined} WHERE texts MATCH ?{where} LIMIT ?"
    return connection.execute(query, (expression, *values, max(0, most))).fetchall()


def picture_hits(index: SearchIndex, embedder: StoredEmbedder, vector: Column, among: SearchFilter, count: int) -> PictureHits:
    """Return the keyframes whose vectors are closest to one of length 1; those nearer to the average than to the best are left out."""
    slots = _slots(index, embedder, among)
    found = index.vectors(embedder).nearest(vector, count, slots)
    if not len(found.slots):
        return PictureHits({}, 0.0)
    least = (found.mean + float(found.cosines[0])) / 2
    kept = [(int(slot), float(cosine)) for slot, cosine in zip(found.slots, found.cosines, strict=True) if cosine >= least]
    query = "SELECT id FROM keyframes WHERE embedder = ? AND slot = ?"
    cosines = {index.connection.execute(query, (embedder.id, slot)).fetchone()[0]: cosine for slot, cosine in kept}
    return PictureHits(cosines, found.mean)


def best_of(several: Sequence[PictureHits], count: int) -> PictureHits:
    """Return the best of several searches in the same pictures; each keyframe has its greatest cosine."""
    if len(several) == 1:
        return several[0]
    cosines: dict[int, float] = {}
    for one in several:
        for keyframe, cosine in one.cosines.items():
            cosines[keyframe] = max(cosine, cosines.get(keyframe, -1.0))
    best = sorted(cosines.items(), key=lambda item: (-item[1], item[0]))[:count]
    mean = max(one.mean for one in several)
    return PictureHits({keyframe: cosine for keyframe, cosine in best if cosine >= (mean + best[0][1]) / 2}, mean)


def _slots(index: SearchIndex, embedder: StoredEmbedder, among: SearchFilter) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """Return which slots may be found; None: all of them."""
    conditions = among.conditions
    if not conditions:
        query = "SELECT slot FROM free_slots WHERE embedder = ? AND slot BETWEEN 0 AND ?"
        free = [slot for (slot,) in index.connection.execute(query, (embedder.id, embedder.slots - 1))]
        if not free:
            return None
        allowed = np.ones(embedder.slots, np.bool_)
        allowed[free] = False
        return allowed
    where = "".join(f" AND {text}" for text, _ in conditions)
    values = [value for _, some in conditions for value in some]
    query = f"SELECT k.slot FROM keyframes k JOIN videos v ON v.id = k.video WHERE k.embedder = ? AND k.slot IS NOT NULL{where}"
    allowed = np.zeros(embedder.slots, np.bool_)
    rows: Iterable[tuple[int]] = index.connection.execute(query, (embedder.id, *values))
    allowed[np.fromiter((slot for (slot,) in rows), np.int64)] = True
    return allowed


def fused(words: WordHits, pictures: PictureHits) -> list[Hit]:
    """Return the keyframes of both rankings, best first, by reciprocal rank fusion."""
    scores: dict[int, float] = {}
    for ranking in (words.keyframes, pictures.cosines):
        for rank, keyframe in enumerate(ranking, 1):
            scores[keyframe] = scores.get(keyframe, 0.0) + 1 / (RANK_OFFSET + rank)
    found = [_hit(keyframe, score, words, pictures) for keyframe, score in scores.items()]
    return sorted(found, key=lambda hit: (-hit.score, hit.keyframe))


def _hit(keyframe: int, score: float, words: WordHits, pictures: PictureHits) -> Hit:
    cosine = pictures.cosines.get(keyframe)
    return Hit(keyframe, score, words.keyframes.get(keyframe), cosine, 0.0 if cosine is None else cosine - pictures.mean)
