"""`vip export`."""

from __future__ import annotations

from typing import Annotated

import typer

from vip.cli.console import AsJson, Console, Quiet, keyframes, print_json

EXAMPLES = """[bold]Examples[/bold]
vip export video.vip --to vtt                     captions as subtitles, for any player
vip export runs/ --to csv                         a table for spreadsheets, one row a keyframe
vip export video.vip --to sheet                   a contact sheet: all keyframes with their times, as pictures
vip export runs/*.vip --to hf -o my-dataset       datasets.load_dataset("my-dataset")
vip export s3://bucket/corpus --to coco           from what vip batch wrote
vip export corpus --to webdataset -o s3://bucket/shards
"""

Sources = Annotated[
    list[str], typer.Argument(help="What vip batch wrote, under any address; run folders, or folders of them.", show_default=False)
]
To = Annotated[
    str, typer.Option("--to", help="Format: parquet, webdataset, hf, jsonl, csv, coco, vtt, sheet.", show_default=False, metavar="NAME")
]
Out = Annotated[str | None, typer.Option("--out", "-o", help="Folder, also s3:// or gs://.", show_default="NAME-FORMAT", metavar="FOLDER")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier export wrote.")]


def export_command(
    sources: Sources, to: To, out: Out = None, overwrite: Overwrite = False, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Write keyframes and captions in a format that other programs read."""
    from vip.corpus.export.write import export

    console = Console(quiet=quiet, as_json=as_json)
    done = export(sources, to, out=out, overwrite=overwrite, observer=console)
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    videos, files = f"{done.videos:,} video{'s' * (done.videos != 1)}", f"{done.files:,} file{'s' * (done.files != 1)}"
    console.say(f"{keyframes(done.keyframes)} of {videos}, {done.described:,} described, in {files} in {done.out}")
