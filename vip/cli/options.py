"""The options that several commands share, in the panels in which --help shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vip.cli.values import backends, choices

if TYPE_CHECKING:
    from vip.config import Settings

KEYFRAMES, MODELS, DESCRIPTIONS = "Choosing keyframes", "Models", "Describing"
MONEY, READING = "Money and requests", "Reading videos"

Complete = Callable[[str], Iterable[str | tuple[str, str]]]


def option(
    *names: str,
    help: str,  # noqa: A002 - as typer calls it
    metavar: str | None = None,
    default: str | bool = False,
    panel: str | None = None,
    complete: Complete | None = None,
) -> Any:
    """An option of the command line.

    Args:
        default: what --help says of it, where something is to be said.
        panel: None for those that a newcomer should see first.
        complete: what the shell offers for its value.
    """
    return typer.Option(*names, help=help, metavar=metavar, show_default=default, rich_help_panel=panel, autocompletion=complete)


def switch(*names: str, help: str, panel: str | None = None) -> Any:  # noqa: A002 - as above
    """An option without a value."""
    return typer.Option(*names, help=help, metavar=" ", rich_help_panel=panel)


# ---------------------------------------------------------------- what is read, and where results go

VIDEOS_HELP = "Video files, http(s) addresses, pages of video sites, folders of videos; folders, patterns and lists of pictures."
Videos = Annotated[list[str], typer.Argument(help=VIDEOS_HELP, show_default=False)]
VideosOrRun = Annotated[list[str] | None, typer.Argument(help=VIDEOS_HELP, show_default=False)]
Recursive = Annotated[bool, switch("--recursive", "-r", help="Take the videos of folders inside folders too.")]
From = Annotated[
    Path | None, option("--from", help="Choose again from this run instead of a video; -o is NAME-nN.vip then.", metavar="RUN")
]
Video = Annotated[str | None, option("--video", help="With --from: where its video lies now, for pictures the run lacks.", metavar="VIDEO")]
Out = Annotated[
    Path | None,
    option("--out", "-o", help="The run folder; with several videos, the folder for their run folders.", metavar="DIR", default="NAME.vip"),
]
Overwrite = Annotated[bool, switch("--overwrite", help="Replace a run of another video or of other settings.")]
Start = Annotated[str | None, option(help="Use the video from this time on: 75, 1:15 or 1m15s.", metavar="TIME", panel=READING)]
End = Annotated[str | None, option(help="Use the video up to this time.", metavar="TIME", panel=READING)]
Stream = Annotated[int | None, option(help="Which video stream of the file, counted from 0.", metavar="N", default="0", panel=READING)]
Timeout = Annotated[
    str | None, option(help="Give a video up when its keyframes take longer.", metavar="TIME", default="no limit", panel=READING)
]
Cookies = Annotated[Path | None, option(help="Cookies for video sites: a file in Netscape's format.", metavar="FILE", panel=READING)]
Proxy = Annotated[str | None, option(help="Proxy for video sites: http://… or socks5://….", metavar="URL", panel=READING)]

# ---------------------------------------------------------------- choosing keyframes

Keyframes = Annotated[
    str | None,
    option("--keyframes", "-n", help="How many keyframes are wanted, or auto.", metavar="N", default="12", complete=choices("auto")),
]
Query = Annotated[
    str | None,
    option(help="Keep what fits this sentence, spread over the video. Needs --embedder clip.", metavar="TEXT", panel=KEYFRAMES),
]
Sampler = Annotated[
    str | None,
    option(
        help="How candidates are chosen: sync, uniform, every:2s, shots, katna.",
        metavar="NAME",
        default="sync",
        panel=KEYFRAMES,
        complete=backends("sampler"),
    ),
]
Candidates = Annotated[
    str | None, option(help="How many candidate frames are looked at.", metavar="N", default="as the sampler finds useful", panel=KEYFRAMES)
]
Pruner = Annotated[
    str | None,
    option(
        help="How candidates are thinned out: algorithm1, k-center, threshold:0.93, aks (by --query).",
        metavar="NAME",
        default="algorithm1, or aks with --query",
        panel=KEYFRAMES,
        complete=backends("pruner"),
    ),
]
MinSharpness = Annotated[
    float | None, option(help="Drop frames whose variance of the Laplacian is lower.", metavar="NUMBER", panel=KEYFRAMES)
]
MinObjects = Annotated[str | None, option(help="Drop frames in which fewer objects are found.", metavar="N", default="0", panel=KEYFRAMES)]
TextWeight = Annotated[
    str | None,
    option(
        help="Share of the objects' text in the likeness of two frames, 0 to 1; the picture has the rest.",
        metavar="SHARE",
        default="0.5",
        panel=KEYFRAMES,
    ),
]
Format = Annotated[
    str | None,
    option(
        help="File format of the keyframes: jpg, png or webp.",
        metavar="NAME",
        default="jpg",
        panel=KEYFRAMES,
        complete=choices("jpg", "png", "webp"),
    ),
]

# ---------------------------------------------------------------- models

Embedder = Annotated[
    str | None,
    option(
        help="What compares frames: classic, clip, clip:ARCH/TAG, clip:ARCH@FILE.",
        metavar="NAME",
        default="auto",
        panel=MODELS,
        complete=backends("embedder"),
    ),
]
Detector = Annotated[
    str | None,
    option(
        help="What finds people and objects: opencv, transformers:MODEL, file:PATH.",
        metavar="NAME",
        default="opencv",
        panel=MODELS,
        complete=backends("detector"),
    ),
]
Labels = Annotated[
    str | None, option(help="What an open-vocabulary detector looks for: 'dog, frisbee', or @FILE.", metavar="WORDS", panel=MODELS)
]
Device = Annotated[
    str | None,
    option(
        help="Where models run: auto, cpu, cuda, cuda:1, mps.",
        metavar="NAME",
        default="auto",
        panel=MODELS,
        complete=choices("auto", "cpu", "cuda", "mps"),
    ),
]
Precision = Annotated[
    str | None,
    option(
        help="Precision of the models' weights: auto, fp32, bf16, fp16.",
        metavar="NAME",
        default="auto",
        panel=MODELS,
        complete=choices("auto", "fp32", "bf16", "fp16"),
    ),
]

# ---------------------------------------------------------------- describing

EngineName = Annotated[
    str | None,
    option(
        "--engine",
        help="Who describes: offline, openai:MODEL, transformers:MODEL, auto.",
        metavar="NAME",
        default="auto",
        complete=backends("engine"),
    ),
]
DescribeEngine = Annotated[
    str | None,
    option(
        help="Who looks at the pictures, where it is another one.",
        metavar="NAME",
        default="--engine",
        panel=DESCRIPTIONS,
        complete=backends("engine"),
    ),
]
StructureEngine = Annotated[
    str | None,
    option(
        help="Who makes FAMOuS of a caption (recipe paper) and reads --topic.",
        metavar="NAME",
        default="--engine",
        panel=DESCRIPTIONS,
        complete=backends("engine"),
    ),
]
BaseUrl = Annotated[
    str | None,
    option(help="Address of an OpenAI-compatible server: http://localhost:8000/v1.", metavar="URL", panel=DESCRIPTIONS),
]
KeyFile = Annotated[
    Path | None,
    option(help="File with the API key; owner-only.", metavar="FILE", default="OPENAI_API_KEY", panel=DESCRIPTIONS),
]
Recipe = Annotated[
    str | None,
    option(
        help="direct: one question a keyframe; paper: caption, dense caption, FAMOuS.",
        metavar="NAME",
        default="direct",
        panel=DESCRIPTIONS,
        complete=choices("direct", "paper"),
    ),
]
Topic = Annotated[str | None, option(help="What the video is about: lets the model expect objects.", metavar="TEXT", panel=DESCRIPTIONS)]
Language = Annotated[
    str | None,
    option(help="Language of the descriptions: German, de, …", metavar="NAME", default="English", panel=DESCRIPTIONS),
]
Context = Annotated[
    str | None,
    option("--context", help="Tell each question the captions of the N keyframes before.", metavar="N", default="0", panel=DESCRIPTIONS),
]
Verify = Annotated[
    bool | None,
    switch("--verify", help="Hold each claim against its frame; mark and look again at what finds no support.", panel=DESCRIPTIONS),
]
PromptsFolder = Annotated[Path | None, option("--prompts", help="Folder with prompts of your own.", metavar="DIR", panel=DESCRIPTIONS)]
PictureSide = Annotated[
    str | None, option(help="Longest side of the pictures that are sent.", metavar="PX", default="1024", panel=DESCRIPTIONS)
]
PictureDetail = Annotated[
    str | None,
    option(
        help="How closely the model looks: low, high, auto.",
        metavar="NAME",
        default="high",
        panel=DESCRIPTIONS,
        complete=choices("low", "high", "auto"),
    ),
]

# ---------------------------------------------------------------- money and requests

DryRun = Annotated[bool, switch("--dry-run", help="Say what would be asked and spent, and ask nothing. Needs no key.", panel=MONEY)]
MaxUsd = Annotated[str | None, option(help="Stop before more dollars are spent.", metavar="USD", default="5", panel=MONEY)]
PricesFile = Annotated[Path | None, option("--prices", help="TOML file with prices of your own.", metavar="FILE", panel=MONEY)]
CacheFile = Annotated[
    Path | None,
    option(
        "--cache",
        help="SQLite file with the answers of all runs: nothing is asked twice.",
        metavar="FILE",
        default="~/.cache/vip/answers.sqlite",
        panel=MONEY,
    ),
]
Concurrency = Annotated[
    str | None, option(help="Requests in flight at once.", metavar="N", default="as many as the server answers well", panel=MONEY)
]
Rpm = Annotated[str | None, option(help="Requests a minute at most.", metavar="N", panel=MONEY)]
Tpm = Annotated[str | None, option(help="Tokens a minute at most.", metavar="N", panel=MONEY)]
RequestTimeout = Annotated[str | None, option(help="Give a request up after this time.", metavar="TIME", default="120", panel=MONEY)]


def given(context: typer.Context, kind: type[Settings]) -> dict[str, Any]:
    """What the command line says about the settings of this kind; None for those that it does not name."""
    return {name: context.params.get(name, context.params.get(f"{name}_")) for name in kind.model_fields}
