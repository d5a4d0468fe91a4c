"""`vip review --rewrite`: the third stage, done by an engine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli import options
from vip.cli.console import Console, print_json
from vip.errors import SomeFailedError, UsageError
from vip.untrusted import one_line
from vip.wording import again, counted, option

if TYPE_CHECKING:
    from vip.review.rewrite import Rewriting
    from vip.review.state import ReviewState

WITHOUT = (
    *("describe_engine", "structure_engine", "recipe", "schema", "topic", "language", "context", "verify"),
    *("picture_side", "picture_detail", "embedder", "detector", "labels"),
)
"""Settings of captions that say nothing about a caption that is written again."""
MOST_SHOWN = 20  # failures

Rewrite = Annotated[
    bool,
    options.switch("--rewrite", help="Stage 3: let --engine write dense captions again, from the fields that people corrected."),
]


def check_unused(context: typer.Context, *, dry_run: bool) -> None:
    """Refuse the settings of an engine where none is asked.

    Raises:
        UsageError: one was given.
    """
    from vip.config import CaptionSettings

    given = ["dry_run"] if dry_run else [name for name, value in options.given(context, CaptionSettings).items() if value is not None]
    if given:
        raise UsageError(f"{option(given[0])} is for {option('rewrite')}, which asks an engine. Add it, or leave the option out.")


def rewrite(context: typer.Context, state: ReviewState, console: Console, *, dry_run: bool) -> None:
    """Write the captions of stage 3 again, or say what that would cost.

    Raises:
        SomeFailedError: some captions were not written.
    """
    from vip.config import CaptionSettings, resolve
    from vip.review.rewrite import count_waiting, expected_cost, rewrite_captions

    settings = resolve(CaptionSettings, options.given(context, CaptionSettings), note=console.note)
    if waiting := count_waiting(state):
        console.note(f"{counted(waiting, 'keyframe has', 'keyframes have')} corrected fields, but no verdict good of stage 2 yet.")
    if dry_run:
        expected = expected_cost(state, settings)
        if console.as_json:
            print_json(asdict(expected))
        console.write_line(f"{counted(expected.keyframes, 'caption')} to rewrite: {expected}.")
        return
    done = rewrite_captions(state, settings, observer=console, on_end=lambda done: _show(done, console))
    if done.failed:
        raise SomeFailedError(
            f"{len(done.failed):,} of {done.asked:,} captions could not be rewritten, and stay as they are. {again()} to try only those."
        )


def _show(done: Rewriting, console: Console) -> None:
    if console.as_json:
        print_json(asdict(done))
    of = f" ({done.unchanged:,} without a change)" if done.unchanged else ""
    next_ = ". Next: check them in stage 3" if done.written else ""
    console.write_line(f"{counted(len(done.written), 'caption')} rewritten by {done.engine}{of}{next_}.")
    if done.edited_meanwhile:
        console.write_line(f"{counted(len(done.edited_meanwhile), 'caption')} edited by somebody meanwhile, and left as they are.")
    for one in done.failed[:MOST_SHOWN]:
        console.note(f"{one_line(one.item)}: {one_line(one.reason)}")
    if len(done.failed) > MOST_SHOWN:
        console.note(f"… and {len(done.failed) - MOST_SHOWN:,} more")
