"""`vip fiber`: blanks for people to fill, and what they filled them with."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer

from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.options import option, switch
from vip.wording import counted
from vip.wording import option as named_option

EXAMPLES = """[bold]Examples[/bold]
vip fiber hits blanks.jsonl -o hits/
vip fiber collect results.csv -o answers.jsonl --workers policy.toml
vip fiber statistics answers.records.json
vip fiber errors gpt.jsonl --annotations answers.records.json
"""
COLLECT_EXAMPLES = """[bold]Examples[/bold]
vip fiber collect results.csv -o answers.jsonl         writes a sheet to mark
vip fiber collect results.csv -o answers.jsonl --reviewed sheet.csv
vip fiber collect r1.csv r2.csv --workers policy.toml --parser none
vip fiber collect results.csv --reviewed sheet.csv --paid bonuses.jsonl
"""
STATISTICS_EXAMPLES = """[bold]Examples[/bold]
vip fiber statistics answers.records.json
vip fiber statistics val.json --parser spacy:en_core_web_trf --table latex
vip fiber statistics val.json --captions vatex_validation_v1.0.json
vip fiber statistics val.json --notes notes.csv --json
"""
LIKELIHOODS_EXAMPLES = """[bold]Examples[/bold]
vip fiber likelihoods t5.jsonl
vip fiber likelihoods t5.jsonl early-fusion.jsonl --json
"""
ERRORS_EXAMPLES = """[bold]Examples[/bold]
vip fiber errors t5.jsonl gpt.jsonl --annotations val.json -o errors.html
vip fiber errors gpt.jsonl --annotations samples.jsonl --runs frames/
"""
MAP_EXAMPLES = """[bold]Examples[/bold]
vip fiber map answers.records.json --encoder stsb-roberta-base/
vip fiber map val.json --clusters clusters.csv -o map.html
"""
HITS_EXAMPLES = """[bold]Examples[/bold]
vip fiber hits blanks.jsonl -o hits/                  five blanks a HIT
vip fiber hits val.json -o hits/ --workers policy.toml
vip fiber hits blanks.jsonl --video-url "https://example.org/{id}.mp4"
"""

MOST_SEED = 2**32 - 1  # of scikit-learn

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Let people fill the blanks of FIBER, and collect their answers.")

Blanks = Annotated[Path, typer.Argument(help="What vip samples --task fiber wrote, or records in the authors' form.", show_default=False)]
HitsOut = Annotated[Path | None, option("--out", "-o", help="Folder to write.", metavar="DIR", default="hits")]
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
Records = Annotated[Path, typer.Argument(help="Records in the authors' form, with answers of workers.", show_default=False)]
ParserOfStatistics = Annotated[
    str,
    option(
        "--parser",
        help="Finds parts of speech and noun phrases too: spacy:MODEL, or one of another package.",
        metavar="NAME",
        default="none",
    ),
]
Captions = Annotated[Path | None, option("--captions", help="Captions of VATEX or VALUE: how well those of a video agree.", metavar="FILE")]
Notes = Annotated[
    Path | None, option("--notes", help="Where entities are seen: CSV with video,second,row,column on a grid of 4 by 4.", metavar="FILE")
]
TableOption = Annotated[str, option("--table", help="text, markdown, latex, csv or json.", metavar="FORMAT", default="text")]
Predictions = Annotated[list[Path], typer.Argument(help="Files of predictions.", show_default=False)]
ErrorAnnotations = Annotated[
    Path, option("--annotations", help="Records in the authors' form, or samples with their frames.", metavar="FILE")
]
ErrorsOut = Annotated[
    Path, option("--out", "-o", help="Page to write; the CSV file stands beside it.", metavar="FILE", default="errors.html")
]
Runs = Annotated[list[Path] | None, option("--runs", help="Run folders with the pictures; may be given several times.", metavar="DIR")]
MapOut = Annotated[Path, option("--out", "-o", help="Page to write.", metavar="FILE", default="map.html")]
MapEncoder = Annotated[
    str | None,
    option(
        "--encoder",
        help="Folder or model of sentence-transformers that says how alike answers are.",
        metavar="NAME",
        default="sentence-transformers/stsb-roberta-base",
    ),
]
Clusters = Annotated[Path | None, option("--clusters", help="Names of clusters: CSV with answer,cluster.", metavar="FILE")]
Most = Annotated[int, option("--most", help="How many of the most frequent answers are shown.", metavar="N", default="100")]
MapSeed = Annotated[int, option("--seed", help="What chance is drawn from.", metavar="N", default="0")]
Seed = Annotated[int, option("--seed", help="Seed that draws the questions of the sheet.", metavar="N", default="1337")]
Overwrite = Annotated[bool, switch("--overwrite", help="Replace the files that are there.")]


@app.command("hits", epilog=HITS_EXAMPLES)
def hits_command(
    blanks: Blanks,
    out: HitsOut = None,
    per_hit: PerHit = 5,
    video_url: VideoUrl = None,
    workers: Workers = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write HITs for Mechanical Turk: a CSV file, the page that goes with it, and a preview."""
    from vip.store import unlinked
    from vip.tasks.fiber.hits import YOUTUBE, read_blanks, write_hits
    from vip.tasks.fiber.policy import read_policy, write_qualifications
    from vip.tasks.files import check_new

    console = Console(quiet=quiet, as_json=as_json)
    out = out or unlinked(Path("hits"))
    policy, records = read_policy(workers), read_blanks(blanks)
    first = list(islice(records, 1))  # a file that cannot be read leaves no folder behind
    check_new(out / "hits.csv", overwrite=overwrite)
    asked, hits = write_hits(out, chain(first, records), per_hit=per_hit, video_url=video_url or YOUTUBE)
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
    from vip.tasks.fiber.collected_files import BESIDE, beside, write_collected
    from vip.tasks.fiber.noun_phrases import load_parser
    from vip.tasks.fiber.policy import read_policy
    from vip.tasks.fiber.results import read_results
    from vip.tasks.files import check_new

    console = Console(quiet=quiet, as_json=as_json)
    for path in (out, *(beside(out, name) for name in BESIDE)):
        check_new(path, overwrite=overwrite)
    policy, marks, sent = read_policy(workers), read_marks(reviewed) if reviewed else None, read_paid(paid or [])
    answered = read_results(results)
    done = write_collected(out, answered, policy, load_parser(parser), marks=marks, paid=sent, seed=seed)
    if as_json:
        print_json(done.as_row())
    for line in done.lines():
        console.write_line(line)


@app.command("statistics", epilog=STATISTICS_EXAMPLES)
def statistics_command(
    records: Records,
    captions: Captions = None,
    parser: ParserOfStatistics = "none",
    notes: Notes = None,
    table: TableOption = "text",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Describe the answers of people: Tables 1 and 2 beside the published ones, agreement, frequent phrases, gender."""
    from vip.cli.score import FORMATS, check_word, print_tables
    from vip.metrics.human_agreement import measure_captions
    from vip.tasks.fiber.notes import notes_tables, read_notes
    from vip.tasks.fiber.noun_phrases import load_parser
    from vip.tasks.fiber.records import read_records
    from vip.tasks.fiber.statistics import as_row, measure_answers, statistics_tables
    from vip.tasks.fiber.vatex import read_captions

    check_word("table", table, FORMATS)
    console = Console(quiet=quiet, as_json=as_json)
    found = measure_answers(list(read_records(records)), load_parser(parser))
    agreement = measure_captions(video.captions for video in read_captions(captions)) if captions else None
    seen = read_notes(notes) if notes else None
    if as_json:
        print_json(as_row(found, caption_agreement=agreement, notes=seen))
        return
    tables = statistics_tables(found, caption_agreement=agreement)
    print_tables([*tables, *(notes_tables(seen) if seen else [])], table, console)


@app.command("errors", epilog=ERRORS_EXAMPLES)
def errors_command(
    predictions: Predictions,
    annotations: ErrorAnnotations,
    out: ErrorsOut = Path("errors.html"),
    runs: Runs = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show what models answer wrong where people agree: a page in the form of Table 7, and the same as CSV."""
    from vip.errors import UsageError
    from vip.tasks.fiber.errors import read_cases, write_error_page, write_error_rows
    from vip.tasks.files import check_new

    console = Console(quiet=quiet, as_json=as_json)
    if out.suffix.lower() == ".csv":
        raise UsageError(f"{out} is the name of the CSV file, which stands beside the page. Name the page with {named_option('out')}.")
    rows = out.with_suffix(".csv")
    for path in (out, rows):
        check_new(path, overwrite=overwrite)
    cases = read_cases(annotations, predictions)
    count = write_error_rows(rows, cases)
    write_error_page(out, cases, samples=annotations, runs=runs or ())
    if as_json:
        print_json({"blanks": len(cases), "errors": count, "path": str(out), "rows": str(rows)})
    console.write_line(f"{counted(count, 'error')} in {counted(len(cases), 'blank')}: open {out}; {rows} has all of them")


@app.command("likelihoods", epilog=LIKELIHOODS_EXAMPLES)
def likelihoods_command(predictions: Predictions, table: TableOption = "text", as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Show how likely models hold their answers and the labels, where their predictions say it."""
    import math
    from dataclasses import asdict

    from vip.cli.score import FORMATS, check_word, print_tables
    from vip.errors import InputError
    from vip.tasks.fiber.likelihoods import likelihood_table, measure_likelihoods
    from vip.tasks.files import read_predictions

    check_word("table", table, FORMATS)
    console = Console(quiet=quiet, as_json=as_json)
    found = {str(path): measure_likelihoods(read_predictions(path)) for path in predictions}
    if without := [name for name, one in found.items() if one.answer_probability is None and not one.n]:
        raise InputError(f"{without[0]} has no likelihoods. Give predictions of a model that writes them.")
    if as_json:
        for name, one in found.items():
            figures = {key: value if value is None or math.isfinite(value) else None for key, value in asdict(one).items()}
            print_json({"predictions": name, **figures})
        return
    print_tables([likelihood_table(found)], table, console)


@app.command("map", epilog=MAP_EXAMPLES)
def map_command(
    records: Records,
    out: MapOut = Path("map.html"),
    encoder: MapEncoder = None,
    clusters: Clusters = None,
    most: Most = 100,
    seed: MapSeed = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show the most frequent answers on a plane: what means alike lies together (t-SNE)."""
    from vip.errors import UsageError
    from vip.metrics.projection import LEAST_ROWS, check_tsne
    from vip.metrics.sentence_bert import SentenceBert
    from vip.tasks.fiber.answer_map import ENCODER, make_map, read_clusters, write_map
    from vip.tasks.fiber.records import read_records
    from vip.tasks.files import check_new

    console = Console(quiet=quiet, as_json=as_json)
    if most < LEAST_ROWS:
        raise UsageError(f"A map shows {LEAST_ROWS} answers or more, not {most}. Change {named_option('most')}.")
    if not 0 <= seed <= MOST_SEED:
        raise UsageError(f"A seed is a number from 0 to {MOST_SEED:,}, not {seed}. Change {named_option('seed')}.")
    check_new(out, overwrite=overwrite)
    next(read_records(records), None)  # what cannot be read is said before the encoder is asked for
    check_tsne()
    embedder = SentenceBert(encoder or ENCODER, advice=named_option("encoder", "FOLDER"))
    embedder.check()
    named = read_clusters(clusters) if clusters else None
    with console.track("Placing answers", 0):
        found = make_map(read_records(records), embedder.embed, clusters=named, most=most, seed=seed)
    write_map(out, found, encoder=embedder.encoder.identity)
    if as_json:
        print_json({"answers": [one._asdict() for one in found.answers], "total": found.total, "path": str(out)})
    console.write_line(f"{counted(len(found.answers), 'answer')} of {found.total:,} on a plane: open {out}")
