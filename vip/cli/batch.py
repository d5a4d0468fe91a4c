"""`vip batch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, Verbose, print_json
from vip.errors import SomeFailedError, UsageError, did_you_mean
from vip.wording import counted

if TYPE_CHECKING:
    from vip.corpus.status import Status

EXAMPLES = """[bold]Examples[/bold]
vip batch ids.txt -o corpus/                     12 keyframes of each video of a list, in Parquet shards
vip batch 'clips/*.mp4' -o corpus/ --caption     local videos, with captions
find . -name '*.mkv' | vip batch - -o corpus/    a list from another program
vip batch train*.tfrecord -o s3://bucket/corpus --vocabulary vocabulary.csv --sample 10000
vip batch ids.txt -o corpus/ --runner ray --ray-address auto --workers 64
vip batch --status corpus/                       counts, rates, failures by type, dollars, time left
vip batch ids.txt -o corpus/ --caption --batch --max-usd 50      captions at half the price, within a day
vip batch -o corpus/                             go on, with the settings it was begun with
vip batch -o corpus/ --retry-failed=caption      go on, and describe again what could not be described
vip export corpus/ --to hf -o hub/               see vip export --help
"""

GETTING, RUNNING = "Getting videos", "Running"
Lists = Annotated[
    list[str] | None,
    typer.Argument(
        help="Text, CSV, JSONL, Parquet or TFRecord files with YouTube ids, YouTube-8M ids, addresses, paths; - for stdin; videos.",
        show_default=False,
    ),
]
Out = Annotated[str | None, typer.Option("--out", "-o", help="Folder or address (s3://…) of the data set.", show_default=False)]
StatusOf = Annotated[
    str | None, typer.Option("--status", help="Tell how far the batch in DIR is, and end.", show_default=False, metavar="DIR")
]
Retry = Annotated[
    str | None,
    typer.Option("--retry-failed", help="Try again what failed; =TYPE: of one type.", show_default=False, metavar="[=TYPE]"),
]
Caption = Annotated[bool | None, typer.Option("--caption", help="Describe the keyframes too.")]
Batch = Annotated[
    bool | None, typer.Option("--batch", help="Ask for captions through the server's Batch API: half the price, within a day.")
]
Shards = Annotated[str | None, typer.Option(help="Format of the shards: parquet, webdataset.", show_default="parquet", metavar="NAME")]
ShardSize = Annotated[str | None, typer.Option(help="Size of a shard, about.", show_default="256MB", metavar="SIZE")]
Weights = Annotated[
    Path | None, typer.Option(help="TOML file with a weight for each vertical and topic.", show_default="vip's own", metavar="FILE")
]
Vocabulary = Annotated[
    Path | None, typer.Option(help="vocabulary.csv of YouTube-8M: names, verticals, descriptions.", show_default=False, metavar="FILE")
]
Sample = Annotated[str | None, typer.Option(help="Take so many of the videos, by weight.", show_default="all", metavar="N")]
Seed = Annotated[str | None, typer.Option(help="Of the choice by weight.", show_default="0", metavar="N")]
MinLength = Annotated[str | None, typer.Option(help="Leave shorter videos out: seconds or hh:mm:ss.", show_default=False, metavar="TIME")]
MaxLength = Annotated[str | None, typer.Option(help="Leave longer videos out: seconds or hh:mm:ss.", show_default=False, metavar="TIME")]
Cookies = Annotated[
    Path | None, typer.Option(help="File with cookies, in Netscape's format.", show_default=False, metavar="FILE", rich_help_panel=GETTING)
]
Proxy = Annotated[str | None, typer.Option(help="Proxy for downloads.", show_default=False, metavar="URL", rich_help_panel=GETTING)]
PerHost = Annotated[
    str | None, typer.Option(help="Downloads at once from one host.", show_default="2", metavar="N", rich_help_panel=GETTING)
]
Sleep = Annotated[
    str | None, typer.Option(help="Pause between two requests to a host.", show_default="1", metavar="TIME", rich_help_panel=GETTING)
]
RateLimit = Annotated[
    str | None, typer.Option(help="Bytes a second of a download: 4M.", show_default=False, metavar="SIZE", rich_help_panel=GETTING)
]
DownloadTimeout = Annotated[
    str | None, typer.Option(help="Give a download up after this time.", show_default="30:00", metavar="TIME", rich_help_panel=GETTING)
]
KeepVideos = Annotated[
    Path | None,
    typer.Option(
        help="Keep what was downloaded in DIR; else it is deleted after use.", show_default=False, metavar="DIR", rich_help_panel=GETTING
    ),
]
DiskBudget = Annotated[
    str | None,
    typer.Option(help="Downloads that may lie around on a machine.", show_default="20GB", metavar="SIZE", rich_help_panel=GETTING),
]
Audio = Annotated[bool | None, typer.Option("--audio", help="Fetch the sound too.", rich_help_panel=GETTING)]
PublicOnly = Annotated[
    bool | None,
    typer.Option("--public-only", help="Refuse local paths and the private network, for lists of others.", rich_help_panel=GETTING),
]
YtdlpOpts = Annotated[
    str | None,
    typer.Option(
        "--ytdlp-opts", help="More options for yt-dlp, in quotes.", show_default=False, metavar="OPTIONS", rich_help_panel=GETTING
    ),
]
YouTube8M = Annotated[
    str | None,
    typer.Option(
        "--youtube8m-base-url", help="Where YouTube-8M's ids are looked up.", show_default=False, metavar="URL", rich_help_panel=GETTING
    ),
]
VideoBase = Annotated[
    str | None,
    typer.Option("--video-base-url", help="Where YouTube ids are watched.", show_default=False, metavar="URL", rich_help_panel=GETTING),
]
Runner = Annotated[str | None, typer.Option(help="local or ray.", show_default="local", metavar="NAME", rich_help_panel=RUNNING)]
RayAddress = Annotated[
    str | None,
    typer.Option(
        help="A Ray cluster: auto, ray://…, host:port.", show_default="one is started here", metavar="ADDRESS", rich_help_panel=RUNNING
    ),
]
Workers = Annotated[
    str | None, typer.Option(help="Videos worked on at once.", show_default="one a core", metavar="N", rich_help_panel=RUNNING)
]
RetryWait = Annotated[
    str | None, typer.Option(help="Before the second try; longer each time.", show_default="30", metavar="TIME", rich_help_panel=RUNNING)
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
    from vip.corpus.choices import Choices
    from vip.corpus.listing.rows import shown
    from vip.corpus.output.storage import join
    from vip.download.items import FailureKind

    whole = bool(lists)  # without a list, what is not named here is as it was before, whatever vip.toml says
    extraction = resolve(ExtractSettings, options.given(context, ExtractSettings), layered=whole)
    captioning = resolve(CaptionSettings, options.given(context, CaptionSettings), layered=whole)
    choices = Choices(resolve(BatchSettings, options.given(context, BatchSettings), layered=whole), extraction, captioning)
    if retry not in (None, "all", *get_args(FailureKind)):
        raise UsageError(f'There is no type of failure "{retry}".{did_you_mean(retry or "", get_args(FailureKind))}')
    registry.check(sampler=extraction.sampler, pruner=extraction.pruner, embedder=extraction.embedder, detector=extraction.detector)
    if choices.batch.caption:
        registry.check(engine=captioning.engine)
    told = batch(lists, out, choices, retry=retry, observer=console)
    _tell(told, console)
    if told.failed or told.bad_rows or told.undescribed:
        where = shown(join(out, "failures.jsonl"))
        again = " Try them again with --retry-failed." if told.failed or told.undescribed else ""
        raise SomeFailedError(f"{_failed(told)} failed; {where} says why.{again}")


def _failed(told: Status) -> str:
    """`2 videos, 1 row and 3 keyframes`, without what there is none of."""
    counts = ((told.failed, "video"), (told.bad_rows, "row"), (told.undescribed, "keyframe"))
    *more, last = (counted(count, noun) for count, noun in counts if count)
    return f"{', '.join(more)} and {last}" if more else last


def _tell(told: Status, console: Console) -> None:
    from vip.corpus.status import lines

    if console.as_json:
        print_json(told.model_dump(mode="json"))
    for line in lines(told):
        console.say(line)
