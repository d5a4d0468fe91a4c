"""READ FIRST: a batch from its list to its shards.

    settings: given now, and stored when the batch was begun                     settings, stored_settings
    read the lists ▸ sample ▸ state                                              inputs/, prepare, state
    state ▸ queue ▸ worker: fetch ▸ extract ▸ part                               driver, queue, workers/pool, workers/worker, retries
    part ▸ captions ▸ shard ▸ sidecar                                            workers/caption_client, workers/shard_writer
    shard with undescribed keyframes ▸ parts ▸ captions ▸ its next generation    workers/shard_revisions

This process decides and writes the state; all work is done in child processes (`vip.processes.supervisor`). Videos are fetched and
extracted by a pool of workers, here or in a Ray cluster; one process asks models for all; another writes shards. Any of them may be
killed at any moment. The disk is ahead of the state: a part is on it before its item counts as done, a shard and then its sidecar
before its items count as in a shard.
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
from vip.corpus.state_dir import claim, existing_home, hold_lock, home_of, removed_on_failure
from vip.corpus.status import BATCHES, BatchStatus
from vip.corpus.stored_settings import remember, resolve_settings
from vip.corpus.workers.caption_client import CaptionClient, CaptionServerConfig, CostSoFar
from vip.corpus.workers.pool import Executor, local_pool
from vip.errors import StoreError, UsageError
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
    """Turn lists of videos into a data set; called again, continue where it stopped.

    Args:
        lists: see `vip.corpus.inputs.reading`; none to continue with the items of the batch.
        out: a folder, or an address such as `s3://bucket/corpus`.
        retry: try again what failed: "all", or one type of failure.
        executor: starts the workers; by default as the settings say.

    Returns:
        The final status.

    Raises:
        UsageError: settings contradict each other, or those that the batch was begun with.
        InputError: a list cannot be read.
        BackendError, EngineError, StoreError: nothing more can be done; finished items stay.
    """
    observer, given = observer or SilentObserver(), choices or BatchConfig()
    home = home_of(out) if lists else existing_home(out)
    with ExitStack() as stack:
        stack.enter_context(hold_lock(home, out))
        stack.enter_context(removed_on_failure(home))  # inside the lock
        state = stack.enter_context(closing(StateDatabase(home)))
        claim(state, out)
        choices = resolve_settings(state, out, given, observer, with_list=bool(lists))
        choices, captions = _check_engines(state, choices, observer)
        if captions is not None:
            stack.callback(captions.close)
        remember(state, choices)
        prepare(state, out, lists, choices, observer, retry=retry, other_sample="sample" in given.batch.model_fields_set)
        _check_fetching(state, choices.batch, observer)
        make = partial(executor or executor_for, choices, home)
        driver = BatchDriver(state, out, choices, observer, make, captions)
        stack.callback(driver.close)
        final = driver.run()
        if driver.changed or state.get(CARD_IS_DUE):
            observer.note("Writing the data card.")
            write_card(out, final, choices)
            state.put(CARD_IS_DUE, False)
        return final


def _check_engines(state: StateDatabase, choices: BatchConfig, observer: Observer) -> tuple[BatchConfig, CaptionClient | None]:
    """Load the caption engines before any work, to find out at once that a key, a price or a package is missing.

    Returns:
        The settings with the models that were found, and the caption client; None without `--caption`.

    Raises:
        VipError: as in `vip caption`.
    """
    if not choices.batch.caption:
        if state.waits_for_captions:
            raise StoreError(
                f"{state.home} is damaged: videos wait for captions that nobody asked for. Begin the batch anew with another -o."
            )
        return choices, None
    if not choices.batch.batch and (open_ := [job for job in jobs_in(state.home / BATCHES) if job.is_at_server]):
        batches = counted(len(open_), "batch of questions is", "batches of questions are")
        where = state.home / BATCHES
        raise UsageError(f"{batches} at the server. Add --batch to collect the answers, or delete {where} to ask anew at the full price.")
    usd, tokens = state.spent
    answered = bool(state.get(CAPTIONS_ANSWERED))
    config = CaptionServerConfig(
        choices.captioning, state.home, CostSoFar(usd, tokens), choices.batch.retry_wait, in_batches=choices.batch.batch, answered=answered
    )
    captions = CaptionClient(config, observer.note)
    try:
        choices = choices.with_engines(*captions.check())
    except BaseException:
        captions.close()
        raise
    if choices.asked is None:  # workers describe; the process starts again if videos in shards have to be described
        captions.close()
    captions.config = replace(config, settings=choices.captioning)
    return choices, captions


def _check_fetching(state: StateDatabase, settings: BatchSettings, observer: Observer) -> None:
    """Note what is missing to fetch the waiting items.

    Raises:
        UsageError, BackendError, StoreError: nothing can be fetched.
    """
    if state.has_downloads():
        from vip.download.preflight import preflight

        if settings.keep_videos:
            store.make_folder(settings.keep_videos)
        for note in preflight(settings, "youtube" in state.hosts()):
            observer.note(note)


def executor_for(choices: BatchConfig, home: Path, fetch: bool) -> Executor:
    """Start the workers of the runner in the settings."""
    if choices.batch.runner == "ray":
        from vip.corpus.workers.ray_pool import RayPool

        return RayPool(choices, home, fetch=fetch)
    return local_pool(choices, home, fetch=fetch)
