"""`vip review` of samples that people answer in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vip.cli.console import Console, print_json
from vip.cli.review_questions import RunServer
from vip.errors import UsageError
from vip.untrusted import one_line
from vip.wording import counted, option

if TYPE_CHECKING:
    from vip.review.log_server import LogServer
    from vip.review.written import WrittenState
    from vip.tasks.sample_pictures import PictureSources

MOST_NAMED = 4  # files


def review_written(
    source: Path,
    console: Console,
    serve: RunServer,
    *,
    videos: Path | None,
    judgements: int | None,
    draw: tuple[int, int] | None,
    is_report: bool,
    export: Path | None,
    overwrite: bool,
) -> None:
    """Let people answer samples in words; or write what they answered, or how far they are.

    Args:
        draw: how many samples are drawn, and the seed; None: all are asked.

    Raises:
        UsageError: nobody has answered anything yet.
        InputError: another machine made the file, and it names pictures elsewhere.
    """
    from vip.review.blanks import log_path
    from vip.review.draw import draw_ids
    from vip.review.log import ReviewLog
    from vip.review.written import WrittenState, read_written_items
    from vip.tasks.sample_pictures import PictureSources

    items, path = read_written_items(source, videos), log_path(source)
    if (export or is_report) and not path.exists():
        raise UsageError(f"Nobody has answered {source} yet. Run `vip review {source}` first.")
    if draw is not None:
        drawn = draw_ids((item.id for item in items), draw[0], seed=draw[1])
        items = [item for item in items if item.id in drawn]
    with ReviewLog(path) as log:
        state = WrittenState(items, log, judgements=judgements)
        if export:
            _export(state, export, source, console, overwrite=overwrite)
        if is_report:
            _report(state, console)
        if not (export or is_report):
            sources = PictureSources(source, (videos,) if videos else ())
            sources.check_all(item.sample for item in items)
            serve(_maker(state, source.name, sources), state, counted(len(items), "sample"))


def _maker(state: WrittenState, title: str, sources: PictureSources) -> Callable[[str, list[str]], LogServer]:
    def make(token: str, hosts: list[str]) -> LogServer:
        from vip.review.written_server import WrittenServer

        return WrittenServer(state, title=title, token=token, hosts=hosts, sources=sources)

    return make


def _export(state: WrittenState, out: Path, source: Path, console: Console, *, overwrite: bool) -> None:
    from vip.review.written import MOST_FILES, export_written

    done = export_written(state, out, source=source, overwrite=overwrite)
    if console.as_json:
        files = [str(path) for path in done.paths]
        counts = {"answered": done.answered, "missing": done.missing, "left_out": done.left_out}
        print_json({"export": files, **counts, "next": done.next.strip("`")})
    others = f" (second answers and so on in {_shown_names(done.paths[1:])})" if len(done.paths) > 1 else ""
    console.write_line(f"{counted(done.answered, 'answer')} in {done.paths[0]}{others}, {done.missing:,} missing. Next: {done.next}.")
    if done.left_out:
        console.write_line(
            f"Up to {done.most_answers:,} people answered one sample. The first {MOST_FILES} answers to each are written, and"
            f" {done.left_out:,} left out. Ask fewer people with {option('judgements')}."
        )


def _shown_names(paths: Sequence[Path]) -> str:
    """Return the names of the files; of many the first and the last."""
    names = [path.name for path in paths]
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{names[0]} to {names[-1]}"


def _report(state: WrittenState, console: Console) -> None:
    people = state.progress_by_reviewer()
    if console.as_json:
        print_json({"samples": len(state.items), "reviewers": people})
    console.write_line(counted(len(state.items), "sample"))
    for name, progress in people.items():
        console.write_line(f"  {one_line(name)}: {progress['done']:,} answered")
