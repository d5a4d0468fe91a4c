"""`vip export`."""

from __future__ import annotations

from typing import Annotated

import typer

from vip.cli.completion import choices
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.options import option, switch
from vip.wording import counted

EXAMPLES = """[bold]Examples[/bold]
vip export video.vip --to vtt              captions as subtitles
vip export runs/ --to csv                  a table for spreadsheets
vip export video.vip --to sheet            a contact sheet, as a picture
vip export runs/*.vip --to hf -o hub/      for datasets.load_dataset("hub/")
vip export s3://bucket/corpus --to coco    from what vip batch wrote
vip export corpus --to webdataset -o s3://bucket/shards
"""

Sources = Annotated[
    list[str], typer.Argument(help="What vip batch wrote, under any address; run folders, or folders of them.", show_default=False)
]
FORMATS = ("parquet", "webdataset", "hf", "jsonl", "csv", "coco", "vtt", "sheet")
To = Annotated[str, option("--to", help=f"Format: {', '.join(FORMATS)}.", metavar="NAME", complete=choices(*FORMATS))]
Out = Annotated[str | None, option("--out", "-o", help="Folder, also s3:// or gs://.", metavar="DIR", default="NAME-FORMAT")]
Overwrite = Annotated[bool, switch("--overwrite", help="Replace what an earlier export wrote.")]


def export_command(
    sources: Sources, to: To, out: Out = None, overwrite: Overwrite = False, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Write keyframes and captions in a format that other programs read."""
    from vip.export.write import export
    from vip.review.reviewed import ReviewedTexts

    console = Console(quiet=quiet, as_json=as_json)
    done = export(sources, to, out=out, overwrite=overwrite, observer=console, revise=ReviewedTexts())
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    videos, files = counted(done.videos, "video"), counted(done.files, "file")
    console.write_line(f"{counted(done.keyframes, 'keyframe')} of {videos}, {done.described:,} described, in {files} in {done.out}")
