"""`vip fiber`: blanks for people to fill, and what they filled them with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.options import option, switch
from vip.wording import counted

EXAMPLES = """[bold]Examples[/bold]
vip fiber hits blanks.jsonl -o hits/
vip fiber collect results.csv -o answers.jsonl --workers policy.toml
"""
HITS_EXAMPLES = """[bold]Examples[/bold]
vip fiber hits blanks.jsonl -o hits/                  five blanks a HIT
vip fiber hits val.json -o hits/ --workers policy.toml
vip fiber hits blanks.jsonl -o hits/ --video-url "https://example.org/{id}.mp4"
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Let people fill the blanks of FIBER, and collect their answers.")

Blanks = Annotated[
    Path, typer.Argument(help="What vip samples --task fiber wrote, or records in the authors' form.", show_default=False)
]
HitsOut = Annotated[Path, option("--out", "-o", help="Folder to write.", metavar="DIR", default="hits")]
PerHit = Annotated[int, option("--per-hit", help="Blanks a HIT.", metavar="N", default="5")]
VideoUrl = Annotated[
    str | None,
    option("--video-url", help="Address of a clip, with {id}, {start} and {end} in it.", metavar="URL", default="YouTube's player"),
]
Workers = Annotated[
    Path | None,
    option("--workers", help="Who may work and how they are paid: policy.toml.", metavar="FILE", default="the paper's policy"),
]
Overwrite = Annotated[bool, switch("--overwrite", help="Replace the files that are there.")]


@app.command("hits", epilog=HITS_EXAMPLES)
def hits_command(
    blanks: Blanks,
    out: HitsOut = Path("hits"),
    per_hit: PerHit = 5,
    video_url: VideoUrl = None,
    workers: Workers = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write HITs for Mechanical Turk: a CSV file, the page that goes with it, and a preview."""
    from vip.tasks.fiber.hits import YOUTUBE, read_blanks, write_hits
    from vip.tasks.fiber.policy import read_policy, write_qualifications
    from vip.tasks.files import check_new

    console = Console(quiet=quiet, as_json=as_json)
    policy = read_policy(workers)
    check_new(out / "hits.csv", overwrite=overwrite)
    asked, hits = write_hits(out, read_blanks(blanks), per_hit=per_hit, video_url=video_url or YOUTUBE)
    write_qualifications(out / "qualifications.json", policy)
    if as_json:
        print_json({"blanks": asked, "hits": hits, "assignments": hits * policy.workers_per_hit, "path": str(out)})
    console.write_line(
        f"{counted(asked, 'blank')} in {counted(hits, 'HIT')} for {counted(policy.workers_per_hit, 'worker')} each: hits.csv and page.html"
        f" in {out}. Open {out / 'preview.html'} to see one."
    )
