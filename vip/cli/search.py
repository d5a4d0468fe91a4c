"""`vip search`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli.completion import backends, choices
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.options import option, switch
from vip.errors import UsageError
from vip.wording import counted

if TYPE_CHECKING:
    from vip.search.moments import Moment, Moments

EXAMPLES = """[bold]Examples[/bold]
vip search "someone pours milk" runs/        moments of all runs, best first
vip search "why it fails" talk.vip corpus/   runs and data sets together
vip search '"boiling point"' runs/           these words side by side
vip search --like frame.jpg runs/            what looks like this picture
vip search "a dog" runs/ --page dogs.html    a page with the pictures
vip search ocean runs/ --field setting -n 3  only where the setting says so
"""
FIELDS = ("caption", "focus", "action", "mood", "objects", "setting", "words", "text")
NARROW = "Narrow it down"

Given = Annotated[
    list[str],
    typer.Argument(
        metavar="[QUERY] SOURCES...",
        help="What to look for, in words; then run folders, folders of them, and what vip batch wrote.",
        show_default=False,
    ),
]
Like = Annotated[Path | None, option("--like", help="A picture to look for, in place of QUERY.", metavar="PICTURE")]
Count = Annotated[int, typer.Option("--moments", "-n", help="At most this many.", metavar="N", min=1, max=1000)]
Page = Annotated[Path | None, option("--page", help="Write a page with the pictures.", metavar="FILE")]
Index = Annotated[str | None, option("--index", help="Where the index is kept; also s3://.", metavar="DIR", default="in the cache")]
EmbedderName = Annotated[
    str,
    option("--embedder", help="What made the vectors, if unclear.", metavar="NAME", default=True, complete=backends("embedder")),
]
Field = Annotated[
    list[str] | None,
    option("--field", help=f"Search only there: {', '.join(FIELDS)}.", metavar="NAME", panel=NARROW, complete=choices(*FIELDS)),
]
Video = Annotated[str | None, option("--video", help="Videos with this name; * stands for any letters.", metavar="PATTERN", panel=NARROW)]
Domain = Annotated[str | None, option("--domain", help="Videos with this label or topic.", metavar="NAME", panel=NARROW)]
Start = Annotated[str | None, option("--start", help="Not before this time of a video.", metavar="TIME", panel=NARROW)]
End = Annotated[str | None, option("--end", help="Not behind this time.", metavar="TIME", panel=NARROW)]
People = Annotated[bool, switch("--people", help="Only keyframes in which people were found.", panel=NARROW)]


def search_command(
    given: Given,
    like: Like = None,
    moments: Count = 10,
    field: Field = None,
    video: Video = None,
    domain: Domain = None,
    start: Start = None,
    end: End = None,
    people: People = False,
    embedder: EmbedderName = "auto",
    index: Index = None,
    page: Page = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find moments in runs and data sets by what is seen and said in them."""
    from vip.search.find import SearchQuery, find_moments
    from vip.search.hits import SearchFilter

    text, sources = (None, given) if like else (given[0], given[1:])
    if not sources:
        raise UsageError(f'Nothing to search in. Write `vip search "{given[0]}" FOLDER`: a run, a folder of runs, or a data set.')
    among = SearchFilter(video=video, domain=domain, start_s=_seconds("start", start), end_s=_seconds("end", end), has_people=people)
    query = SearchQuery(text=text, like=like, fields=tuple(field or ()), among=among, moments=moments, embedder=embedder)
    console = Console(quiet=quiet, as_json=as_json)
    found = find_moments(query, sources, folder=index, observer=console)
    if page:
        from vip.search.page import write_page

        write_page(found, page)
        console.note(f"page: {page}")
    if as_json:
        print_json(found.model_dump(mode="json"))
    _print(console, found)


def _seconds(name: str, given: str | None) -> float | None:
    from vip.timecode import seconds_of

    try:
        return None if given is None else float(seconds_of(given))
    except ValueError as exc:
        raise UsageError(f"--{name}: {exc}.") from exc


def _print(console: Console, found: Moments) -> None:
    for number, moment in enumerate(found.moments, 1):
        console.write_line(f"{number:>3}  {headline(moment)}")
        console.write_item("", f"{moment.link or place_of(moment)}")
        if moment.words:
            console.write_item("/".join(moment.words.fields[:2]), moment.words.plain)
        if moment.cosine is not None:
            console.write_item("picture", f"cosine {moment.cosine:.3f} ({found.embedder})")
    searched = counted(found.keyframes, "keyframe") + ("" if found.embedder else ", by words")
    console.write_line(f"{counted(len(found.moments), 'moment')} of {searched}" if found.moments else f"Nothing fits: {searched}.")


def headline(moment: Moment) -> str:
    """Return `talk 1:02.40 (0:58.10 to 1:10.00)`."""
    from vip.timecode import timecode
    from vip.untrusted import one_line

    name = one_line(moment.video)
    if moment.time_s is None or moment.start_s is None or moment.end_s is None:
        return f"{name} {one_line(moment.keyframe_id)}"
    return f"{name} {timecode(moment.time_s)} ({timecode(moment.start_s)} to {timecode(moment.end_s)})"


def place_of(moment: Moment) -> str:
    """Return where the picture of a moment lies."""
    return f"{moment.source}, shard {moment.part}, {moment.picture}" if moment.part else str(Path(moment.source) / moment.picture)
