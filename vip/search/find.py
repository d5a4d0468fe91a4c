"""`vip search`: from a question in words, or a picture, to moments.

In: run folders and data sets. Out: moments, best first. The index of the sources is made at the first search, and brought up to date at
each later one: only what is new or has changed is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vip import registry, store, user_state
from vip.dataset import storage
from vip.dataset.sanitize import without_secrets
from vip.errors import InputError, UsageError
from vip.extraction.embeddings import identity_of
from vip.protocols import Embedder, Observer, SilentObserver
from vip.records import Image
from vip.search import hits
from vip.search.documents import KeyframeTexts
from vip.search.embedder_vectors import StoredEmbedder
from vip.search.hits import PictureHits, SearchFilter, WordHits
from vip.search.index import SearchIndex
from vip.search.moments import Moments, join_hits
from vip.search.pictures import letterboxed
from vip.search.query_text import parse_query
from vip.search.remote_index import opened_at
from vip.search.update import update_index
from vip.untrusted import one_line
from vip.wording import listed, option

HITS_A_MOMENT = 10  # neighbours become one moment, so more keyframes are found than moments are wanted
LEAST_HITS = 100
MOST_SHAPES = 3  # of videos, in which a picture is looked for
ALL = SearchFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What is searched for, and among what."""

    text: str | None = None
    like: Path | None = None
    """A picture; instead of a text."""
    fields: tuple[str, ...] = ()
    """Of `KeyframeTexts`; empty: all."""
    among: SearchFilter = ALL
    moments: int = 10
    embedder: str = "auto"
    """`auto`: the one that made the vectors, where its name says enough."""

    def __post_init__(self) -> None:
        if (self.text is None) == (self.like is None):
            raise UsageError(f"Give a text, or a picture with {option('like', 'PICTURE')}: one of the two.")
        if self.text is not None and not parse_query(self.text):
            raise UsageError("The query has no words. Write what should be seen or heard, in quotation marks.")
        if unknown := sorted(set(self.fields) - set(KeyframeTexts._fields)):
            raise UsageError(f'There is no field "{one_line(unknown[0])}". The fields are {listed(KeyframeTexts._fields)}.')
        if self.fields and self.like is not None:
            raise UsageError(f"{option('field')} says which texts are searched, and a picture is searched in pictures. Leave it out.")


def find_moments(
    query: str | SearchQuery, sources: Sequence[str | Path], *, folder: str | Path | None = None, observer: Observer | None = None
) -> Moments:
    """Return the moments that fit a query, best first.

    Args:
        query: words of it, or a query with filters.
        sources: run folders, folders of them, and data sets.
        folder: where the index is kept, also on S3; by default in the user's cache, one for these sources.

    Raises:
        InputError: a source holds no keyframes, or the picture cannot be read.
        UsageError: the vectors are of several embedders, or of one that cannot compare what is asked for.
        StoreError: the index is damaged or cannot be written.
    """
    query = SearchQuery(text=query) if isinstance(query, str) else query
    observer, addresses = observer or SilentObserver(), [str(source) for source in sources]
    picture = store.read_picture(query.like, inside=query.like.parent) if query.like else None
    with opened_at(folder or default_folder(addresses)) as index:
        update_index(index, addresses, observer)
        keyframes = index.count()
        if not keyframes:
            raise InputError(f"{listed([without_secrets(one) for one in addresses])} hold no keyframes. Extract or describe videos first.")
        words = parse_query(query.text or "")
        count = max(LEAST_HITS, HITS_A_MOMENT * query.moments)
        with index.reading():
            by_words = hits.word_hits(index, words, query.fields, query.among, count) if words else WordHits({})
        if by_words.unranked:
            observer.note(f"{by_words.unranked} Add a rarer word.")
        by_pictures, embedder = PictureHits({}, 0.0), None
        if not query.fields and (found := _embedder(index, query, observer)):
            embedder, stored = found
            by_pictures = _picture_hits(index, query, embedder, stored, picture, count)
        with index.reading():
            moments = tuple(join_hits(index, hits.fused(by_words, by_pictures), words, query.fields, query.moments))
        like = query.like.name if query.like else None
        return Moments(query=query.text, like=like, embedder=embedder and embedder.name, keyframes=keyframes, moments=moments)


def _picture_hits(
    index: SearchIndex, query: SearchQuery, embedder: Embedder, stored: StoredEmbedder, picture: Image | None, count: int
) -> PictureHits:
    """Return the keyframes whose pictures fit. A picture is also compared inside black bars, as wide and high as the videos are."""
    if picture is None:
        vectors = embedder.embed_texts([query.text or ""])
    else:
        with index.reading():
            shapes = letterboxed(picture, index.aspects(MOST_SHAPES))
        vectors = embedder.embed_images([picture, *shapes])
    with index.reading():
        found = [hits.picture_hits(index, stored, np.asarray(vector, np.float32), query.among, count) for vector in vectors]
    return hits.best_of(found, count)


def default_folder(sources: Sequence[str]) -> Path:
    """Return the folder in the user's cache for the index of these sources."""
    names = sorted({str(path.absolute()) if (path := storage.local_path(one)) else one for one in sources})
    return user_state.cache_folder() / "search" / hashlib.sha256("\n".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:20]


# ---------------------------------------------------------------- the embedder


def _embedder(index: SearchIndex, query: SearchQuery, observer: Observer) -> tuple[Embedder, StoredEmbedder] | None:
    """Return what compares the query with pictures; None where only words can be compared, with a note that says why.

    A model that a run names by a path is not loaded unasked: the run may come from a stranger.

    Raises:
        UsageError: the pictures' vectors are of several embedders, or a picture is searched for and there are none.
    """
    stored = index.embedders()
    if len(stored) > 1:
        names = listed([f"{one_line(one.label)} ({one.dim} numbers)" for one in stored])
        raise UsageError(
            f"The keyframes have vectors of {names}, which cannot be compared with each other. Search those sources one at a time,"
            f" or in texts only: {option('field', 'caption')}."
        )
    if not stored:
        if query.like:
            raise UsageError("None of the keyframes has a vector, so no picture can be compared. Extract the videos again.")
        return None
    (one,) = stored
    name = query.embedder if query.embedder != "auto" else one.label if registry.is_published(one.label) else None
    if name is None:
        advice = f"Add {option('embedder', _name_of(one.label))} to compare pictures with it."
        if query.like:
            raise UsageError(f"The keyframes' vectors are of {one_line(one.label)}. {advice}")
        observer.note(f"Only words are searched: the keyframes' vectors are of {one_line(one.label)}. {advice}")
        return None
    if not query.like and name == "classic":
        if query.embedder != "auto":
            raise UsageError(f"{option('embedder', 'classic')} cannot compare a picture with a text. Leave it out, or extract with clip.")
        return None
    embedder = registry.embedder(name)
    if one.label not in (identity_of(embedder), embedder.name):
        raise UsageError(
            f"The keyframes' vectors are of {one_line(one.label)}, and {option('embedder', name)} is {identity_of(embedder)}:"
            " they cannot be compared. Name the one that made them, or extract the videos again."
        )
    if not query.like and not embedder.capabilities.joint_space:
        return None
    return embedder, one


def _name_of(label: str) -> str:
    """Return what a user types for an embedder, without size and time of its files."""
    return one_line(label.partition(", ")[0].replace(":local-dir:", ":", 1))
