"""`vip batch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

import typer

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, Verbose, print_json
from vip.errors import SomeFailedError, UsageError, did_you_mean
from vip.wording import counted

if TYPE_CHECKING:
    from vip.corpus.status import BatchStatus

EXAMPLES = """[bold]Examples[/bold]
vip batch ids.txt -o corpus/                   12 keyframes of each video
vip batch 'clips/*.mp4' -o corpus/ --caption   local videos, with captions
find . -name '*.mkv' | vip batch - -o corpus/
vip batch train*.tfrecord -o s3://bucket/corpus --sample 10000
vip batch ids.txt -o corpus/ --runner ray --ray-address auto --workers 64
vip batch --status corpus/                     counts, failures, dollars
vip batch ids.txt -o corpus/ --caption --batch --max-usd 50
vip batch 'talks/*.mp4' -o talks/ --caption --words subtitles,text
vip batch -o corpus/                           continue with the same settings
vip batch -o corpus/ --retry-failed=caption    describe again what failed
vip export corpus/ --to hf -o hub/             see vip export --help
"""

WITHOUT = (  # settings that hold for one video, or that few need for many: vip.toml has them
    *("query", "candidates", "pruner", "min_sharpness", "min_objects", "text_weight", "labels", "precision", "start", "end", "stream"),
    *("describe_engine", "structure_engine", "topic", "context", "verify", "prompts", "picture_side", "picture_detail"),
    *("cache", "concurrency", "request_timeout"),
)
LISTS_HELP = "Text, CSV, JSONL, Parquet or TFRecord files with YouTube ids, YouTube-8M ids, addresses, paths; - for stdin; videos."
Lists = Annotated[list[str] | None, typer.Argument(help=LISTS_HELP, show_default=False)]
Out = Annotated[str | None, options.option("--out", "-o", help="Folder or address (s3://…) of the data set.", metavar="DIR")]
StatusOf = Annotated[str | None, options.option("--status", help="Show the progress of the batch in DIR and exit.", metavar="DIR")]
Retry = Annotated[
    str | None, options.option("--retry-failed", help="Try again what failed; =TYPE: only failures of this type.", metavar="[=TYPE]")
]


def batch_command(
    context: typer.Context,
    lists: Lists = None,
    out: Out = None,
    status: StatusOf = None,
    retry_failed: Retry = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Turn a list of videos into a data set. Run it again to continue where it stopped.

    Options that are left out are taken from the tables extract, caption and batch of vip.toml; without a list, from the batch in -o.
    """
    from vip.corpus.status import status as status_of

    console = Console(quiet=quiet, verbose=verbose, as_json=as_json)
    if status is not None:
        _show(status_of(status), console)
        return
    if out is None:
        raise UsageError("Say where the data set goes with -o DIR. See `vip batch --help`.")
    _run(context, lists or [], out, retry_failed, console)


def _run(context: typer.Context, lists: list[str], out: str, retry: str | None, console: Console) -> None:
    from vip import registry
    from vip.config import BatchSettings, CaptionSettings, ExtractSettings, resolve
    from vip.corpus.batch import batch
    from vip.corpus.inputs.rows import shown
    from vip.corpus.settings import BatchConfig
    from vip.dataset.storage import join
    from vip.errors import FailureKind

    whole = bool(lists)  # without a list, what is not named here is as it was before, whatever vip.toml says
    extraction = resolve(ExtractSettings, options.given(context, ExtractSettings), layered=whole, note=console.note)
    captioning = resolve(CaptionSettings, options.given(context, CaptionSettings), layered=whole, note=console.note)
    listed = resolve(BatchSettings, options.given(context, BatchSettings), layered=whole, note=console.note)
    asked = BatchConfig(listed, extraction, captioning)
    if retry not in (None, "all", *get_args(FailureKind)):
        raise UsageError(f'There is no type of failure "{retry}".{did_you_mean(retry or "", get_args(FailureKind))}')
    registry.check(sampler=extraction.sampler, pruner=extraction.pruner, embedder=extraction.embedder, detector=extraction.detector)
    if listed.caption:
        registry.check(engine=captioning.engine)
    status = batch(lists, out, asked, retry=retry, observer=console)
    _show(status, console)
    if status.failed or status.bad_rows or status.undescribed:
        where = shown(join(out, "failures.jsonl"))
        again = " Try them again with --retry-failed." if status.failed or status.undescribed else ""
        raise SomeFailedError(f"{_count_failures(status)} failed; {where} says why.{again}")


def _count_failures(status: BatchStatus) -> str:
    """Return `2 videos, 1 row and 3 keyframes`, without what there is none of."""
    counts = ((status.failed, "video"), (status.bad_rows, "row"), (status.undescribed, "keyframe"))
    *more, last = (counted(count, noun) for count, noun in counts if count)
    return f"{', '.join(more)} and {last}" if more else last


def _show(status: BatchStatus, console: Console) -> None:
    from vip.corpus.status import lines

    if console.as_json:
        print_json(status.model_dump(mode="json"))
    for line in lines(status):
        console.write_line(line)
