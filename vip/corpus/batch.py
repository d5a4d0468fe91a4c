"""READ FIRST: a batch from its list to its shards.

    read the lists ▸ choose ▸ state                                                          reading, choosing, state
    state ▸ queue ▸ crew: fetch ▸ extract ▸ part ▸ (captions) ▸ packer: shard ▸ sidecar      queue, crew, captions, packer
    shard with keyframes that have no description ▸ parts ▸ captions ▸ its next generation   revisions

Settings come first: those that are given now, and those that the batch was begun with (remembered).

This process decides and writes the state, and does no work itself: a video's work is done in a crew (here, or many in a Ray cluster),
questions are asked in one process for all, shards are written in another. Any of them may be killed at any moment. What is in the
state is on the disk: a part before its item counts as done, a shard and then its sidecar before its items count as in a shard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from vip import store
from vip.captioning.in_batches import jobs_in
from vip.config import BatchSettings
from vip.corpus.card.write import write_card
from vip.corpus.driver import CAPTIONS_ANSWERED, CARD_IS_DUE, BatchDriver
from vip.corpus.prepare import prepare
from vip.corpus.settings import BatchConfig
from vip.corpus.state import StateDatabase
from vip.corpus.state_dir import claim, existing_home, home_of, leaving_none, locked
from vip.corpus.status import BATCHES, BatchStatus
from vip.corpus.stored_settings import remember, settled
from vip.corpus.workers.caption_client import CaptionClient, CaptionServerConfig, CostSoFar
from vip.corpus.workers.pool import Executor, crew_here
from vip.errors import UsageError
from vip.protocols import Observer, SilentObserver
from vip.wording import counted


def batch(
    lists: Sequence[str],
    out: str,
    choices: BatchConfig | None = None,
    *,
    retry: str | None = None,
    observer: Observer | None = None,
    executor: Callable[[BatchConfig, Path, bool], Executor] | None = None,
) -> BatchStatus:
    """Turn lists of videos into a data set; started again, it goes on where it was.

    Args:
        lists: see `vip.corpus.inputs.reading`; none to go on with what the batch has.
        out: a folder, or an address such as `s3://bucket/corpus`.
        retry: try again what failed: "all", or one type of failure.
        hands: who does the work; by default as the settings say.

    Returns:
        What became of it all.

    Raises:
        UsageError: settings that do not go together, or other ones than those it was begun with.
        InputError: a list cannot be read.
        BackendError, EngineError, StoreError: nothing more can be done; what is done stays.
    """
    observer, given = observer or SilentObserver(), choices or BatchConfig()
    home = home_of(out) if lists else existing_home(out)
    with ExitStack() as stack:
        stack.enter_context(locked(home, out))
        stack.enter_context(leaving_none(home))  # only by whoever is alone in it
        state = stack.enter_context(closing(StateDatabase(home)))
        claim(state, out)
        choices = settled(state, out, given, observer, with_list=bool(lists))
        choices, captions = _checked(state, choices, observer)
        if captions is not None:
            stack.callback(captions.close)
        remember(state, choices)
        prepare(state, out, lists, choices, observer, retry=retry, other_sample="sample" in given.batch.model_fields_set)
        _check_fetching(state, choices.batch, observer)
        make = partial(executor or executor_for, choices, home)
        driver = BatchDriver(state, out, choices, observer, make, captions)
        stack.callback(driver.close)
        told = driver.run()
        if driver.changed or state.get(CARD_IS_DUE):
            observer.note("Writing the data card.")
            write_card(out, told, choices)
            state.put(CARD_IS_DUE, False)
        return told


def _checked(state: StateDatabase, choices: BatchConfig, observer: Observer) -> tuple[BatchConfig, CaptionClient | None]:
    """The engines are loaded before anything else is done, so that what is missing is said at once: a key, a price, a package.

    Returns:
        The settings with the models that were found; and who asks for captions, where somebody wants any.

    Raises:
        VipError: as `vip caption` says it.
    """
    if not choices.batch.caption:
        return choices, None
    if not choices.batch.batch and (open_ := [job for job in jobs_in(state.home / BATCHES) if job.is_at_server]):
        batches = counted(len(open_), "batch of questions is", "batches of questions are")
        where = state.home / BATCHES
        raise UsageError(f"{batches} at the server. Add --batch to collect the answers, or delete {where} to ask anew at the full price.")
    usd, tokens = state.get("spent") or (0.0, 0)
    answered = bool(state.get(CAPTIONS_ANSWERED))
    orders = CaptionServerConfig(
        choices.captioning, state.home, CostSoFar(usd, tokens), choices.batch.retry_wait, in_batches=choices.batch.batch, answered=answered
    )
    captions = CaptionClient(orders, observer.note)
    try:
        choices = choices.with_engines(*captions.check())
    except BaseException:
        captions.close()
        raise
    if choices.asked is None:  # workers measure; the process is started again where videos in shards are described anew
        captions.close()
    captions.orders = replace(orders, settings=choices.captioning)
    return choices, captions


def _check_fetching(state: StateDatabase, settings: BatchSettings, observer: Observer) -> None:
    """Say what is missing to fetch what waits.

    Raises:
        UsageError, BackendError, StoreError: it cannot work at all.
    """
    if state.has_hosts():
        from vip.download.preflight import preflight

        if settings.keep_videos:
            store.make_folder(settings.keep_videos)
        for note in preflight(settings, "youtube" in state.hosts()):
            observer.note(note)


def executor_for(choices: BatchConfig, home: Path, fetch: bool) -> Executor:
    """Who does the work, as the settings say."""
    if choices.batch.runner == "ray":
        from vip.corpus.workers.ray_pool import RayPool

        return RayPool(choices, home, fetch=fetch)
    return crew_here(choices, home, fetch=fetch)
