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
from vip.captioning.batch import jobs_in
from vip.config import BatchSettings
from vip.corpus.beginning import begin
from vip.corpus.card.write import write_card
from vip.corpus.choices import Choices
from vip.corpus.driver import CAPTIONS_ANSWERED, CARD_IS_DUE, Driver
from vip.corpus.home import claim, existing_home, home_of, leaving_none, locked
from vip.corpus.remembered import remember, settled
from vip.corpus.state import State
from vip.corpus.status import BATCHES, Status
from vip.corpus.work.captions import Captions, Orders, Paid
from vip.corpus.work.crew import Hands, crew_here
from vip.errors import UsageError
from vip.protocols import Observer, Silent
from vip.wording import counted


def batch(
    lists: Sequence[str],
    out: str,
    choices: Choices | None = None,
    *,
    retry: str | None = None,
    observer: Observer | None = None,
    hands: Callable[[Choices, Path, bool], Hands] | None = None,
) -> Status:
    """Turn lists of videos into a data set; started again, it goes on where it was.

    Args:
        lists: see `vip.corpus.listing.reading`; none to go on with what the batch has.
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
    observer, given = observer or Silent(), choices or Choices()
    home = home_of(out) if lists else existing_home(out)
    with ExitStack() as stack:
        stack.enter_context(locked(home, out))
        stack.enter_context(leaving_none(home))  # only by whoever is alone in it
        state = stack.enter_context(closing(State(home)))
        claim(state, out)
        choices = settled(state, out, given, observer, with_list=bool(lists))
        choices, captions = _checked(state, choices, observer)
        if captions is not None:
            stack.callback(captions.close)
        remember(state, choices)
        begin(state, out, lists, choices, observer, retry=retry, other_sample="sample" in given.batch.model_fields_set)
        _check_fetching(state, choices.batch, observer)
        make = partial(hands or hands_for, choices, home)
        driver = Driver(state, out, choices, observer, make, captions)
        stack.callback(driver.close)
        told = driver.run()
        if driver.changed or state.get(CARD_IS_DUE):
            observer.note("Writing the data card.")
            write_card(out, told, choices)
            state.put(CARD_IS_DUE, False)
        return told


def _checked(state: State, choices: Choices, observer: Observer) -> tuple[Choices, Captions | None]:
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
    orders = Orders(
        choices.captioning, state.home, Paid(usd, tokens), choices.batch.retry_wait, in_batches=choices.batch.batch, answered=answered
    )
    captions = Captions(orders, observer.note)
    try:
        choices = choices.with_engines(*captions.check())
    except BaseException:
        captions.close()
        raise
    if choices.asked is None:  # workers measure; the process is started again where videos in shards are described anew
        captions.close()
    captions.orders = replace(orders, settings=choices.captioning)
    return choices, captions


def _check_fetching(state: State, settings: BatchSettings, observer: Observer) -> None:
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


def hands_for(choices: Choices, home: Path, fetch: bool) -> Hands:
    """Who does the work, as the settings say."""
    if choices.batch.runner == "ray":
        from vip.corpus.work.ray_crews import RayCrews

        return RayCrews(choices, home, fetch=fetch)
    return crew_here(choices, home, fetch=fetch)
