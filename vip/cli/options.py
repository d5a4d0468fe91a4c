"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from vip.config import Settings

VIDEOS_HELP = "Video files, http(s) addresses, folders of videos; folders, patterns and lists of pictures."
Videos = Annotated[list[str], typer.Argument(help=VIDEOS_HELP, show_default=False)]
VideosOrRun = Annotated[list[str] | None, typer.Argument(help=VIDEOS_HELP, show_default=False)]
From = Annotated[
    Path | None,
    typer.Option(
        "--from", help="Choose again from this run instead of a video; -o is NAME-nN.vip then.", show_default=False, metavar="RUN"
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The run folder; with several videos, the folder for their run folders.", show_default="NAME.vip"),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a run of another video or of other settings.")]
Keyframes = Annotated[
    str | None,
    typer.Option("--keyframes", "-n", help="How many keyframes are wanted, or auto.", show_default="12", metavar="N"),
]
Sampler = Annotated[
    str | None,
    typer.Option(help="How candidates are chosen: sync, uniform, every:2s, shots, katna.", show_default="sync", metavar="NAME"),
]
Pruner = Annotated[
    str | None,
    typer.Option(
        help="How candidates are thinned out to keyframes: algorithm1, k-center, threshold:0.93.",
        show_default="algorithm1",
        metavar="NAME",
    ),
]
Candidates = Annotated[
    str | None,
    typer.Option(help="How many candidate frames are looked at.", show_default="as many as the sampler finds useful", metavar="N"),
]
Embedder = Annotated[
    str | None,
    typer.Option(help="What compares frames: classic, clip, clip:ARCH/TAG, clip:ARCH@FILE.", show_default="auto", metavar="NAME"),
]
Detector = Annotated[
    str | None,
    typer.Option(help="What finds people and objects: opencv, transformers:MODEL, file:PATH.", show_default="opencv", metavar="NAME"),
]
Labels = Annotated[
    str | None,
    typer.Option(help="What an open-vocabulary detector looks for: 'dog, frisbee', or @FILE.", show_default=False, metavar="WORDS"),
]
TextWeight = Annotated[
    str | None,
    typer.Option(
        help="Share of the objects' text in the likeness of two frames, 0 to 1; the picture has the rest.",
        show_default="0.5",
        metavar="SHARE",
    ),
]
Query = Annotated[
    str | None,
    typer.Option(help="Keep what fits this sentence, spread over the video. Needs --embedder clip.", show_default=False, metavar="TEXT"),
]
MinObjects = Annotated[str | None, typer.Option(help="Drop frames in which fewer objects are found.", show_default="0", metavar="N")]
Device = Annotated[str | None, typer.Option(help="Where models run: auto, cpu, cuda, cuda:1, mps.", show_default="auto", metavar="NAME")]
Precision = Annotated[
    str | None, typer.Option(help="Precision of the models' weights: auto, fp32, bf16, fp16.", show_default="auto", metavar="NAME")
]
MinSharpness = Annotated[
    float | None,
    typer.Option(help="Drop frames whose variance of the Laplacian is lower, whatever their surroundings.", show_default=False),
]
Format = Annotated[str | None, typer.Option(help="File format of the keyframes: jpg, png or webp.", show_default="jpg", metavar="NAME")]
Start = Annotated[
    str | None, typer.Option(help="Use the video from this time on: seconds or hh:mm:ss.", show_default=False, metavar="TIME")
]
End = Annotated[str | None, typer.Option(help="Use the video up to this time: seconds or hh:mm:ss.", show_default=False, metavar="TIME")]
Stream = Annotated[int | None, typer.Option(help="Which video stream of the file, counted from 0.", show_default="0", metavar="NUMBER")]
Timeout = Annotated[
    str | None,
    typer.Option(help="Give a video up when its keyframes take longer: seconds or hh:mm:ss.", show_default="no limit", metavar="TIME"),
]

ASKING = "Asking"  # the panel of --help for what only matters with a model behind an API
EngineName = Annotated[
    str | None,
    typer.Option("--engine", help="Who describes: offline, openai:MODEL, transformers:MODEL, auto.", show_default="auto", metavar="NAME"),
]
DescribeEngine = Annotated[
    str | None, typer.Option(help="Who looks at the pictures, where it is another one.", show_default="--engine", metavar="NAME")
]
StructureEngine = Annotated[
    str | None,
    typer.Option(help="Who makes FAMOuS of a caption (recipe paper) and reads --topic.", show_default="--engine", metavar="NAME"),
]
Recipe = Annotated[
    str | None,
    typer.Option(help="direct: one question a keyframe; paper: caption, dense caption, FAMOuS.", show_default="direct", metavar="NAME"),
]
Topic = Annotated[
    str | None, typer.Option(help="What the video is about: lets the model expect objects.", show_default=False, metavar="TEXT")
]
Language = Annotated[str | None, typer.Option(help="Language of the descriptions: German, de, …", show_default="English", metavar="NAME")]
Context = Annotated[
    str | None, typer.Option("--context", help="Tell each question the captions of the N keyframes before.", show_default="0", metavar="N")
]
Verify = Annotated[
    bool | None, typer.Option("--verify", help="Hold each claim against its frame; mark and look again at what finds no support.")
]
PromptsFolder = Annotated[
    Path | None, typer.Option("--prompts", help="Folder with prompts of your own.", show_default=False, metavar="DIR")
]
PictureSide = Annotated[
    str | None, typer.Option(help="Longest side of the pictures that are sent.", show_default="1024", metavar="PX", rich_help_panel=ASKING)
]
PictureDetail = Annotated[
    str | None,
    typer.Option(help="How closely the model looks: low, high, auto.", show_default="high", metavar="NAME", rich_help_panel=ASKING),
]
MaxUsd = Annotated[
    str | None, typer.Option(help="Stop before more dollars are spent.", show_default="5", metavar="USD", rich_help_panel=ASKING)
]
PricesFile = Annotated[
    Path | None,
    typer.Option("--prices", help="TOML file with prices of your own.", show_default=False, metavar="FILE", rich_help_panel=ASKING),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(help="File with the API key; owner-only.", show_default="OPENAI_API_KEY", metavar="FILE", rich_help_panel=ASKING),
]
CacheFile = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        help="SQLite file with the answers of all runs: nothing is asked twice.",
        show_default="~/.cache/vip/answers.sqlite",
        metavar="FILE",
        rich_help_panel=ASKING,
    ),
]
Concurrency = Annotated[
    str | None,
    typer.Option(
        help="Requests in flight at once.", show_default="as many as the server answers well", metavar="N", rich_help_panel=ASKING
    ),
]
Rpm = Annotated[str | None, typer.Option(help="Requests a minute at most.", show_default=False, metavar="N", rich_help_panel=ASKING)]
Tpm = Annotated[str | None, typer.Option(help="Tokens a minute at most.", show_default=False, metavar="N", rich_help_panel=ASKING)]
RequestTimeout = Annotated[
    str | None, typer.Option(help="Give a request up after this time.", show_default="120", metavar="TIME", rich_help_panel=ASKING)
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Address of an OpenAI-compatible server, for example http://localhost:8000/v1.", show_default=False, metavar="URL"),
]


def given(context: typer.Context, kind: type[Settings]) -> dict[str, Any]:
    """What the command line says about the settings of this kind; None for those that it does not name."""
    return {name: context.params.get(name, context.params.get(f"{name}_")) for name in kind.model_fields}
