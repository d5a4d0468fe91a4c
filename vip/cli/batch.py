"""`vip batch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, Verbose, print_json
from vip.cli.values import choices
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
vip batch -o corpus/                           go on, as it was begun
vip batch -o corpus/ --retry-failed=caption    describe again what failed
vip export corpus/ --to hf -o hub/             see vip export --help
"""

CHOOSING, SHARDS, GETTING, RUNNING = "Choosing videos", "The data set", "Getting videos", "Running"
LISTS_HELP = "Text, CSV, JSONL, Parquet or TFRecord files with YouTube ids, YouTube-8M ids, addresses, paths; - for stdin; videos."
Lists = Annotated[list[str] | None, typer.Argument(help=LISTS_HELP, show_default=False)]
Out = Annotated[str | None, options.option("--out", "-o", help="Folder or address (s3://…) of the data set.", metavar="DIR")]
StatusOf = Annotated[str | None, options.option("--status", help="Tell how far the batch in DIR is, and end.", metavar="DIR")]
Retry = Annotated[str | None, options.option("--retry-failed", help="Try again what failed; =TYPE: of one type.", metavar="[=TYPE]")]
Caption = Annotated[bool | None, options.switch("--caption", help="Describe the keyframes too.")]
Batch = Annotated[
    bool | None,
    options.switch("--batch", help="Ask for captions through the server's Batch API: half the price, within a day.", panel=options.MONEY),
]
Sample = Annotated[str | None, options.option(help="Take so many of the videos, by weight.", metavar="N", default="all", panel=CHOOSING)]
Seed = Annotated[str | None, options.option(help="Of the choice by weight.", metavar="N", default="0", panel=CHOOSING)]
Weights = Annotated[
    Path | None,
    options.option(help="TOML file with a weight for each vertical and topic.", metavar="FILE", default="vip's own", panel=CHOOSING),
]
Vocabulary = Annotated[
    Path | None,
    options.option(help="vocabulary.csv of YouTube-8M: names, verticals, descriptions.", metavar="FILE", panel=CHOOSING),
]
MinLength = Annotated[str | None, options.option(help="Leave shorter videos out: seconds or hh:mm:ss.", metavar="TIME", panel=CHOOSING)]
MaxLength = Annotated[str | None, options.option(help="Leave longer videos out: seconds or hh:mm:ss.", metavar="TIME", panel=CHOOSING)]
Shards = Annotated[
    str | None,
    options.option(
        help="Format of the shards: parquet, webdataset.",
        metavar="NAME",
        default="parquet",
        panel=SHARDS,
        complete=choices("parquet", "webdataset"),
    ),
]
ShardSize = Annotated[str | None, options.option(help="Size of a shard, about.", metavar="SIZE", default="256MB", panel=SHARDS)]
Cookies = Annotated[Path | None, options.option(help="File with cookies, in Netscape's format.", metavar="FILE", panel=GETTING)]
Proxy = Annotated[str | None, options.option(help="Proxy for downloads.", metavar="URL", panel=GETTING)]
PerHost = Annotated[str | None, options.option(help="Downloads at once from one host.", metavar="N", default="2", panel=GETTING)]
Sleep = Annotated[str | None, options.option(help="Pause between two requests to a host.", metavar="TIME", default="1", panel=GETTING)]
RateLimit = Annotated[str | None, options.option(help="Bytes a second of a download: 4M.", metavar="SIZE", panel=GETTING)]
DownloadTimeout = Annotated[
    str | None, options.option(help="Give a download up after this time.", metavar="TIME", default="30:00", panel=GETTING)
]
KeepVideos = Annotated[
    Path | None, options.option(help="Keep what was downloaded in DIR; else it is deleted after use.", metavar="DIR", panel=GETTING)
]
DiskBudget = Annotated[
    str | None, options.option(help="Downloads that may lie around on a machine.", metavar="SIZE", default="20GB", panel=GETTING)
]
Audio = Annotated[bool | None, options.switch("--audio", help="Fetch the sound too.", panel=GETTING)]
PublicOnly = Annotated[
    bool | None,
    options.switch("--public-only", help="Refuse local paths and the private network, for lists of others.", panel=GETTING),
]
YtdlpOpts = Annotated[
    str | None, options.option("--ytdlp-opts", help="More options for yt-dlp, in quotes.", metavar="OPTIONS", panel=GETTING)
]
YouTube8M = Annotated[str | None, typer.Option("--youtube8m-base-url", hidden=True)]  # a mirror of the lookup
VideoBase = Annotated[str | None, typer.Option("--video-base-url", hidden=True)]  # a mirror of the pages
Runner = Annotated[
    str | None,
    options.option(help="local or ray.", metavar="NAME", default="local", panel=RUNNING, complete=choices("local", "ray")),
]
RayAddress = Annotated[
    str | None,
    options.option(help="A Ray cluster: auto, ray://…, host:port.", metavar="ADDRESS", default="one is started here", panel=RUNNING),
]
Workers = Annotated[str | None, options.option(help="Videos worked on at once.", metavar="N", default="one a core", panel=RUNNING)]
RetryWait = Annotated[
    str | None, options.option(help="Before the second try; longer each time.", metavar="TIME", default="30", panel=RUNNING)
]


def batch_command(
    context: typer.Context,
    lists: Lists = None,
    out: Out = None,
    keyframes: options.Keyframes = None,
    caption: Caption = None,
    batch: Batch = None,
    engine: options.EngineName = None,
    status: StatusOf = None,
    retry_failed: Retry = None,
    sample: Sample = None,
    seed: Seed = None,
    weights: Weights = None,
    vocabulary: Vocabulary = None,
    min_length: MinLength = None,
    max_length: MaxLength = None,
    shards: Shards = None,
    shard_size: ShardSize = None,
    embedder: options.Embedder = None,
    detector: options.Detector = None,
    sampler: options.Sampler = None,
    format: options.Format = None,  # noqa: A002 - the option's name
    device: options.Device = None,
    timeout: options.Timeout = None,
    recipe: options.Recipe = None,
    language: options.Language = None,
    base_url: options.BaseUrl = None,
    key_file: options.KeyFile = None,
    max_usd: options.MaxUsd = None,
    prices: options.PricesFile = None,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    runner: Runner = None,
    ray_address: RayAddress = None,
    workers: Workers = None,
    retry_wait: RetryWait = None,
    per_host: PerHost = None,
    sleep: Sleep = None,
    rate_limit: RateLimit = None,
    download_timeout: DownloadTimeout = None,
    cookies: Cookies = None,
    proxy: Proxy = None,
    ytdlp_opts: YtdlpOpts = None,
    audio: Audio = None,
    public_only: PublicOnly = None,
    keep_videos: KeepVideos = None,
    disk_budget: DiskBudget = None,
    youtube8m_base_url: YouTube8M = None,
    video_base_url: VideoBase = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Turn a list of videos into a data set. Started again, it goes on where it was.

    What is not named here is taken from the tables extract, caption and batch of vip.toml; without a list, from the batch itself.
    """
    from vip.corpus.status import status as status_of

    console = Console(quiet=quiet, verbose=verbose, as_json=as_json)
    if status is not None:
        _tell(status_of(status), console)
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
    told = batch(lists, out, asked, retry=retry, observer=console)
    _tell(told, console)
    if told.failed or told.bad_rows or told.undescribed:
        where = shown(join(out, "failures.jsonl"))
        again = " Try them again with --retry-failed." if told.failed or told.undescribed else ""
        raise SomeFailedError(f"{_failed(told)} failed; {where} says why.{again}")


def _failed(told: BatchStatus) -> str:
    """`2 videos, 1 row and 3 keyframes`, without what there is none of."""
    counts = ((told.failed, "video"), (told.bad_rows, "row"), (told.undescribed, "keyframe"))
    *more, last = (counted(count, noun) for count, noun in counts if count)
    return f"{', '.join(more)} and {last}" if more else last


def _tell(told: BatchStatus, console: Console) -> None:
    from vip.corpus.status import lines

    if console.as_json:
        print_json(told.model_dump(mode="json"))
    for line in lines(told):
        console.say(line)
