"""Preparation of a batch: read the lists, choose a sample, and record the shards that are in the output already.

In: lists and settings. Out: a state in which all items to be done wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from vip.corpus.inputs.reading import read_items
from vip.corpus.inputs.rows import BadRow
from vip.corpus.inputs.sampling import SamplingTally, load_weights, sampling_key
from vip.corpus.inputs.vocabulary import load_vocabulary
from vip.corpus.settings import BatchConfig
from vip.corpus.state import SampledItem, StateDatabase
from vip.dataset.shards import delete_leftovers, read_shards, undescribed_in
from vip.dataset.storage import write_whole
from vip.protocols import Observer
from vip.untrusted import escaped_json
from vip.wording import counted

DISTRIBUTION = "distribution.json"
NOTE_INTERVAL = 100_000  # rows between two notes


def prepare(
    state: StateDatabase,
    out: str,
    lists: Sequence[str],
    choices: BatchConfig,
    observer: Observer,
    *,
    retry: str | None = None,
    other_sample: bool = False,
) -> None:
    """Bring the state to where the work begins.

    Args:
        retry: try failed items again: "all", or those of one type of failure.
        other_sample: `--sample` has changed: choose again among the items of the state.

    Raises:
        InputError: a list cannot be read.
    """
    if lists:
        _read(state, lists, choices, observer)
    if lists or other_sample:
        _choose(state, out, choices, observer)
    _adopt_shards(state, out, observer)
    if retry is not None:
        _retry(state, retry, observer, with_captions=choices.batch.caption)
    state.put("began", time.time())
    state.commit()


def _retry(state: StateDatabase, kind: str, observer: Observer, *, with_captions: bool) -> None:
    videos = state.retry_failed(None if kind == "all" else kind)
    keyframes = state.request_descriptions() if with_captions and kind in {"all", "caption"} else 0
    of = "" if kind == "all" else f" ({kind})"
    if keyframes:
        observer.note(
            f"{counted(keyframes, 'keyframe')} that could not be described {'is' if keyframes == 1 else 'are'} asked about again."
        )
    if videos or not keyframes:
        observer.note(f"{counted(videos, 'video')} that failed{of} {'is' if videos == 1 else 'are'} tried again.")


def _read(state: StateDatabase, lists: Sequence[str], choices: BatchConfig, observer: Observer) -> None:
    vocabulary = load_vocabulary(choices.batch.vocabulary) if choices.batch.vocabulary else None
    weights, seed = load_weights(choices.batch.weights), choices.batch.seed

    def sampled_items() -> Iterator[SampledItem | BadRow]:
        for row in read_items(lists, public_only=choices.batch.public_only, vocabulary=vocabulary):
            yield row if isinstance(row, BadRow) else SampledItem(row, *sampling_key(row, weights, seed))

    noted = 0
    for count in state.add(sampled_items()):
        if count >= noted + NOTE_INTERVAL:
            noted = count
            observer.note(f"{counted(count, 'row is', 'rows are')} read.")
    state.commit()


def _choose(state: StateDatabase, out: str, choices: BatchConfig, observer: Observer) -> None:
    tally = SamplingTally(load_weights(choices.batch.weights))
    state.choose(choices.batch.sample)
    for item, count, chosen in state.sample_counts():
        tally.add(item, count, chosen)
    distribution = tally.distribution()
    write_whole((escaped_json(distribution.model_dump_json(indent=2)) + "\n").encode(), out, DISTRIBUTION)
    are = "is" if distribution.chosen == 1 else "are"
    observer.note(f"{distribution.chosen:,} of {counted(distribution.videos, 'video')} {are} chosen.")
    if len(distribution.shares) > 1:
        for line in distribution.lines():
            observer.note(f"  {line}")


def _adopt_shards(state: StateDatabase, out: str, observer: Observer) -> None:
    """Record shards in the output that the state does not know, because it was lost or the batch began on another machine."""
    known = state.shard_numbers()
    for info in read_shards(out, observer.note):
        if info.number not in known:
            rows = [(video.key, video.counts.keyframes if video.counts else 0, video.youtube_id, video.duration_s) for video in info.videos]
            state.adopt_shard(
                info.number,
                rows,
                size_bytes=info.bytes,
                rows=info.rows,
                undescribed=tuple(undescribed_in(info)),
                generation=info.generation,
            )
    delete_leftovers(out)
    state.commit()
