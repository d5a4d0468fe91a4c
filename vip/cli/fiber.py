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
COLLECT_EXAMPLES = """[bold]Examples[/bold]
vip fiber collect results.csv -o answers.jsonl         writes a sheet to mark
vip fiber collect results.csv -o answers.jsonl --reviewed sheet.csv
vip fiber collect r1.csv r2.csv --workers policy.toml --parser none
vip fiber collect results.csv --reviewed sheet.csv --paid bonuses.jsonl
"""
HITS_EXAMPLES = """[bold]Examples[/bold]
vip fiber hits blanks.jsonl -o hits/                  five blanks a HIT
vip fiber hits val.json -o hits/ --workers policy.toml
vip fiber hits blanks.jsonl -o hits/ --video-url "https://example.org/{id}.mp4"
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Let people fill the blanks of FIBER, and collect their answers.")

Blanks = Annotated[Path, typer.Argument(help="What vip samples --task fiber wrote, or records in the authors' form.", show_default=False)]
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
Results = Annotated[list[Path], typer.Argument(help="Results as Mechanical Turk writes them, CSV.", show_default=False)]
AnswersOut = Annotated[
    Path, option("--out", "-o", help="File of samples to write; the others stand beside it.", metavar="FILE", default="answers.jsonl")
]
Reviewed = Annotated[Path | None, option("--reviewed", help="The sheet with marks: y for a correct answer.", metavar="FILE")]
Paid = Annotated[list[Path] | None, option("--paid", help="Bonuses that were sent already; may be given several times.", metavar="FILE")]
ParserName = Annotated[
    str,
    option(
        "--parser",
        help="Tells noun phrases: spacy:MODEL, one of another package, or none to keep every answer.",
        metavar="NAME",
        default="spacy:en_core_web_trf",
    ),
]
Seed = Annotated[int, option("--seed", help="Seed that draws the questions of the sheet.", metavar="N", default="1337")]
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


@app.command("collect", epilog=COLLECT_EXAMPLES)
def collect_command(
    results: Results,
    out: AnswersOut = Path("answers.jsonl"),
    workers: Workers = None,
    reviewed: Reviewed = None,
    paid: Paid = None,
    parser: ParserName = "spacy:en_core_web_trf",
    seed: Seed = 1337,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check what workers answered, keep noun phrases, review workers, and count what they are owed."""
    from vip.tasks.fiber.collect import read_marks, read_paid
    from vip.tasks.fiber.collected_files import write_collected
    from vip.tasks.fiber.noun_phrases import load_parser
    from vip.tasks.fiber.policy import read_policy
    from vip.tasks.fiber.results import read_results
    from vip.tasks.files import check_new

    console = Console(quiet=quiet, as_json=as_json)
    check_new(out, overwrite=overwrite)
    policy, marks, sent = read_policy(workers), read_marks(reviewed) if reviewed else None, read_paid(paid or [])
    loaded = load_parser(parser)
    done = write_collected(out, read_results(results), policy, loaded, marks=marks, paid=sent, seed=seed)
    if as_json:
        print_json(done.as_row())
    for line in done.lines():
        console.write_line(line)
