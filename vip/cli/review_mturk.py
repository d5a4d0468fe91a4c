"""`vip review --mturk` and `--import-mturk`: workers of Mechanical Turk review keyframes or fill blanks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vip.cli.console import Console, print_json
from vip.cli.options import option
from vip.errors import UsageError
from vip.wording import counted
from vip.wording import option as named

if TYPE_CHECKING:
    from vip.review.mturk_log import ImportedResults
    from vip.tasks.fiber.policy import WorkerPolicy

MTURK = "Mechanical Turk"  # the panel of its options
Mturk = Annotated[Path | None, option("--mturk", help="Write HITs to DIR: CSV, page and preview, and exit.", metavar="DIR", panel=MTURK)]
ImportMturk = Annotated[
    list[Path] | None,
    option("--import-mturk", help="Read results of HITs, CSV, and exit; may be given several times.", metavar="FILE", panel=MTURK),
]
MediaUrl = Annotated[
    str | None,
    option(
        "--media-url",
        help="Where workers find pictures, with {file} in it; or clips, with {id}, {start} and {end}.",
        metavar="URL",
        default="for clips YouTube's player",
        panel=MTURK,
    ),
]
Workers = Annotated[
    Path | None,
    option("--workers", help="Who may work: policy.toml.", metavar="FILE", default="the paper's requirements", panel=MTURK),
]


@dataclass(frozen=True, slots=True)
class MturkRequest:
    """What the command line says."""

    source: Path
    """A folder of described keyframes, or a file of blanks."""
    out: Path | None
    results: list[Path] = field(default_factory=list)
    media_url: str | None = None
    workers: Path | None = None
    overwrite: bool = False


def use_mturk(given: MturkRequest, console: Console) -> None:
    """Write HITs, or read their results into the log of the review.

    Raises:
        UsageError: both are asked for, or a file is there already.
    """
    if given.out and given.results:
        raise UsageError(f"{named('mturk')} writes HITs, and {named('import_mturk')} reads their results. Leave one of them out.")
    is_file = given.source.is_file()
    if given.out:
        (_write_blank_hits if is_file else _write_keyframe_hits)(given, given.out, console)
        return
    found = _import_blanks(given) if is_file else _import_keyframes(given, console)
    if console.as_json:
        rows = {"assignments": found.assignments, "written": found.written, "taken_back": found.taken_back}
        print_json({**rows, "left_out": dict(found.left_out)})
    console.write_line(f"{counted(found.assignments, 'assignment')}: {counted(found.written, 'new action')} in the log.")
    if found.taken_back:
        console.write_line(f"{counted(found.taken_back, 'action')} of rejected assignments taken back.")
    for reason, count in found.left_out.most_common():
        console.write_line(f"{counted(count, 'row')} left out: {reason}")


def _write_keyframe_hits(given: MturkRequest, out: Path, console: Console) -> None:
    from vip.review.items import read_items
    from vip.review.mturk import PAPER, write_keyframe_hits
    from vip.tasks.fiber.policy import read_policy

    if given.media_url is None:
        raise UsageError(
            f"Workers see the pictures on the web. Say where they will lie: {named('media_url')} 'https://example.org/pictures/{{file}}'."
        )
    policy = read_policy(given.workers, paper=PAPER)
    index = read_items(given.source, console.note)
    _check_new(out, overwrite=given.overwrite)
    hits = write_keyframe_hits(out, index, media_url=given.media_url)
    _finish(out, policy, {"hits": hits}, f"{counted(hits, 'keyframe')}, one a HIT", f"Upload {out / 'pictures'}, and open", console)


def _write_blank_hits(given: MturkRequest, out: Path, console: Console) -> None:
    from vip.tasks.fiber.hits import YOUTUBE, read_blanks, write_hits
    from vip.tasks.fiber.policy import read_policy

    policy, records = read_policy(given.workers), list(read_blanks(given.source))
    _check_new(out, overwrite=given.overwrite)
    asked, hits = write_hits(out, records, video_url=given.media_url or YOUTUBE)
    _finish(out, policy, {"blanks": asked, "hits": hits}, f"{counted(asked, 'blank')} in {counted(hits, 'HIT')}", "Open", console)


def _check_new(out: Path, *, overwrite: bool) -> None:
    from vip import store

    if store.exists(out / "hits.csv") and not overwrite:
        raise UsageError(f"{out / 'hits.csv'} exists already. Add {named('overwrite')} to replace it, or name another folder.")


def _finish(out: Path, policy: WorkerPolicy, counts: dict[str, int], what: str, advice: str, console: Console) -> None:
    from vip.tasks.fiber.policy import write_qualifications

    write_qualifications(out / "qualifications.json", policy)
    if console.as_json:
        print_json({**counts, "assignments": counts["hits"] * policy.workers_per_hit, "path": str(out)})
    workers = counted(policy.workers_per_hit, "worker")
    console.write_line(f"{what}, for {workers} each: hits.csv and page.html in {out}. {advice} {out / 'preview.html'} to see one.")


def _import_keyframes(given: MturkRequest, console: Console) -> ImportedResults:
    from vip.review.items import read_items
    from vip.review.log import NAME, ReviewLog
    from vip.review.mturk import PAPER
    from vip.review.mturk_results import import_keyframe_results
    from vip.review.state import ReviewState
    from vip.tasks.fiber.policy import read_policy

    policy, index = read_policy(given.workers, paper=PAPER), read_items(given.source, console.note)
    with ReviewLog(index.folder / NAME) as log:
        return import_keyframe_results(ReviewState(index, log), given.results, policy)


def _import_blanks(given: MturkRequest) -> ImportedResults:
    from vip.review.blanks import BlankState, log_path, read_items
    from vip.review.log import ReviewLog
    from vip.review.mturk_results import import_blank_results
    from vip.tasks.fiber.policy import read_policy

    policy, items = read_policy(given.workers), read_items(given.source, None)
    with ReviewLog(log_path(given.source)) as log:
        return import_blank_results(BlankState(items, log), given.results, policy)
