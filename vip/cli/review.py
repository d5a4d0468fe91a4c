"""`vip review`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli.collector import all_stays
from vip.cli.completion import choices
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.options import DryRun, option, switch
from vip.cli.review_mturk import ImportMturk, MediaUrl, Mturk, MturkRequest, Workers, use_mturk
from vip.cli.review_questions import QuestionReview, review_questions
from vip.cli.review_rewrite import Rewrite, check_unused, rewrite
from vip.cli.review_written import review_written
from vip.errors import BackendError, InputError, StoreError, UsageError
from vip.wording import counted
from vip.wording import option as wording_option

if TYPE_CHECKING:
    import socket

    from vip.review.log_server import LogServer
    from vip.review.log_state import LogState
    from vip.review.question_items import FileKind
    from vip.review.state import ReviewState

EXAMPLES = """[bold]Examples[/bold]
vip review video.vip/                       a page to check and correct it
vip review runs/ --stage 2                  what stage 1 found wanting
vip review runs/ --rewrite --engine openai:gpt-5.4-mini --max-usd 5
vip review video.vip/ --report              agreement; rates of each engine
vip review corpus/ --export reviewed.jsonl  the reviewed texts, and by whom
vip review blanks.jsonl --videos clips/     FIBER: people fill the blanks
vip review blanks.jsonl --export results.csv   for vip fiber collect
vip review how2qa.jsonl --judgements 3      VALUE: people answer questions
vip review options.csv                      NExT-QA: check the options
vip review answers.jsonl --samples s.jsonl  are open answers correct?
vip review infilling.jsonl --export human.jsonl   what people answered
vip review runs/ --mturk hits/ --media-url "https://example.org/{file}"
vip review runs/ --import-mturk results.csv
"""
STAGES = ("1", "2", "3", "4")
HOST = "127.0.0.1"
EVERYWHERE = ("", "0.0.0.0", "::")
"""With these the server could not know the names that it is asked by."""

Folder = Annotated[
    Path,
    typer.Argument(
        help="A described run folder, a folder of runs, what vip batch wrote; or a file of blanks, questions, samples or answers.",
        metavar="DIR",
        show_default=False,
    ),
]
Videos = Annotated[Path | None, option("--videos", help="Folder of the clips of blanks or questions, by their names.", metavar="DIR")]
Samples = Annotated[
    Path | None, option("--samples", help="Of a file of answers: what they answer; people call each correct or wrong.", metavar="FILE")
]
Port = Annotated[int, option("--port", help="Port of the page.", metavar="N", default="a free one")]
Host = Annotated[
    str, option("--host", help="Address that the server is bound to; others than the default let other machines in.", default=HOST)
]
Stage = Annotated[
    str | None,
    option(
        "--stage",
        help="Queue of the paper: 1 classify, 2 correct what was found wanting, 3 rewrite its dense caption, 4 check again.",
        metavar="N",
        complete=choices(*STAGES),
    ),
]
Judgements = Annotated[
    int | None,
    option(
        "--judgements",
        help="So many people judge an item, then nobody else is asked.",
        metavar="K",
        default="everybody",
    ),
]
Sample = Annotated[
    int | None,
    option(
        "--sample",
        help="Review and report so many items, drawn by chance: rates and labels that speak for all.",
        metavar="N",
        default="all",
    ),
]
Seed = Annotated[int, option("--seed", help="Of the draw; everybody with the same one sees the same items.", metavar="N", default=0)]
ShowOthers = Annotated[bool, switch("--show-others", help="Show what others say before the reviewer has judged.")]
NoOpen = Annotated[bool, switch("--no-open", help="Print the address, and open no browser.")]
Report = Annotated[bool, switch("--report", help="Print progress, agreement and the rates of the engines, and exit.")]
Export = Annotated[
    Path | None,
    option("--export", help="Write the reviewed texts to OUT.jsonl or OUT.csv, and exit; of blanks, results.csv.", metavar="FILE"),
]
Answer = Annotated[bool, switch("--answer", help="Let people answer questions of nextqa-mc, and not check their options.")]
Overwrite = Annotated[bool, switch("--overwrite", help="Replace the file of --export.")]


def review_command(
    context: typer.Context,
    folder: Folder,
    port: Port = 0,
    host: Host = HOST,
    stage: Stage = None,
    rewrite_captions: Rewrite = False,
    judgements: Judgements = None,
    sample: Sample = None,
    seed: Seed = 0,
    show_others: ShowOthers = False,
    no_open: NoOpen = False,
    report: Report = False,
    export: Export = None,
    videos: Videos = None,
    samples: Samples = None,
    answer: Answer = False,
    mturk: Mturk = None,
    import_mturk: ImportMturk = None,
    media_url: MediaUrl = None,
    workers: Workers = None,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check, correct and agree: a page for people who review descriptions, fill blanks, answer questions or check their options.

    Everything is kept beside what is reviewed.
    """
    from vip.review.draw import draw_ids
    from vip.review.items import read_items
    from vip.review.log import NAME, ReviewLog
    from vip.review.state import ReviewState

    if stage not in (None, *STAGES):
        raise UsageError(f'There is no stage "{stage}". Give one of {", ".join(STAGES)}.')
    if judgements is not None and judgements < 1:
        raise UsageError(f"--judgements {judgements}: at least one person judges a keyframe.")
    if sample is not None and sample < 1:
        raise UsageError(f"--sample {sample}: at least one item is drawn.")
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port}: a port is a number from 1 to 65535.")
    if host in EVERYWHERE:
        raise UsageError(f"--host {host}: give the one address or name by which others reach this machine.")
    if not folder.exists():
        raise InputError(f"{folder} is not a folder and not a file. Check the path.")
    if not rewrite_captions:
        check_unused(context, dry_run=dry_run)
    elif any((stage, judgements, sample, show_others, report, export, videos, samples, answer, mturk, import_mturk, media_url, workers)):
        raise UsageError("--rewrite asks an engine and ends. Leave the other options of the review out.")
    elif folder.is_file():
        raise UsageError(f"{folder} is a file, and --rewrite is for the captions of a run folder. Leave it out.")
    console = Console(quiet=quiet, as_json=as_json)
    kind = _kind_of(folder) if folder.is_file() else None
    has_questions = kind == "questions"
    if mturk or import_mturk:
        if kind in ("questions", "samples"):
            raise UsageError(f"{folder} holds {kind}; HITs are made of described keyframes and of blanks.")
        if stage or judgements or sample or show_others or report or export or videos or samples or answer:
            raise UsageError(
                "Workers of Mechanical Turk do the first stage. Leave the options of the page, of the report and of the export out."
            )
        use_mturk(MturkRequest(folder, mturk, import_mturk or [], media_url, workers, overwrite), console)
        return
    if media_url or workers:
        raise UsageError(f"{wording_option('media_url')} and {wording_option('workers')} go with {wording_option('mturk', 'DIR')}.")
    draw = (sample, seed) if sample is not None else None
    serve = partial(_run_server, console=console, host=host, port=port, no_open=no_open)
    if kind == "samples":
        if stage or show_others or samples or answer:
            raise UsageError(f"{folder} is a file of samples that people answer: it has no stages and no options. Leave these out.")
        review_written(
            folder,
            console,
            serve,
            videos=videos,
            judgements=judgements,
            draw=draw,
            is_report=report,
            export=export,
            overwrite=overwrite,
        )
        return
    if has_questions:
        if stage or show_others:
            raise UsageError(f"{folder} is a file of questions, which has no stages, and nobody sees what others say there.")
        given = QuestionReview(
            folder, samples, videos, judgements, draw, is_answered=answer, is_report=report, export=export, overwrite=overwrite
        )
        review_questions(given, console, serve)
        return
    if samples is not None:
        raise UsageError(f"{wording_option('samples')} is for a file of answers, as `vip predict` writes it. Leave it out.")
    if answer:
        raise UsageError(f"{wording_option('answer')} is for a file of questions with options. Leave it out.")
    if folder.is_file():
        if stage or judgements or sample or report or show_others:
            raise UsageError(f"{folder} is a file of blanks: it has no stages, judgements, draws or report. See `vip fiber collect`.")
        _review_blanks(folder, videos, console, export=export, overwrite=overwrite, host=host, port=port, no_open=no_open)
        return
    if videos is not None:
        raise UsageError(f"{wording_option('videos')} is for a file of blanks or questions. Leave it out.")
    with all_stays():
        index = read_items(folder, console.note)
    path = index.folder / NAME
    if (report or export or rewrite_captions) and not path.exists():
        raise UsageError(f"{folder} was not reviewed yet. Run `vip review {folder}` first.")
    drawn = draw_ids((item.id for item in index.items), sample, seed=seed) if sample is not None else None
    with ReviewLog(path) as log:
        with all_stays():
            state = ReviewState(index, log, judgements=judgements, drawn=drawn)
        if rewrite_captions:
            rewrite(context, state, console, dry_run=dry_run)
            return
        if export:
            _export(state, export, overwrite, console)
        if report:
            _report(state, console)
        if not (report or export):
            _serve(state, console, host=host, port=port, stage=stage, is_blind=not show_others, no_open=no_open)


def _kind_of(path: Path) -> FileKind:
    from vip.review.question_items import kind_of_file

    return kind_of_file(path)


def _export(state: ReviewState, out: Path, overwrite: bool, console: Console) -> None:
    from vip.review.export import export_review

    rows = export_review(state, out, overwrite=overwrite)
    if console.as_json:
        print_json({"export": str(out), "items": rows})
    console.write_line(f"{counted(rows, 'item')} in {out}")


def _report(state: ReviewState, console: Console) -> None:
    from vip.review.report import make_report, report_lines

    if console.as_json:
        print_json(make_report(state))
        return
    for line in report_lines(state):
        console.write_line(line)


def _review_blanks(
    blanks: Path, videos: Path | None, console: Console, *, export: Path | None, overwrite: bool, host: str, port: int, no_open: bool
) -> None:
    """Let people fill the blanks of a file, or write what they filled them with."""
    from vip.review.blanks import BlankState, export_answers, log_path, read_items
    from vip.review.log import ReviewLog

    items, path = read_items(blanks, videos), log_path(blanks)
    if export and not path.exists():
        raise UsageError(f"Nobody has filled {blanks} yet. Run `vip review {blanks}` first.")
    with ReviewLog(path) as log:
        state = BlankState(items, log)
        if export:
            rows = export_answers(state, export, overwrite=overwrite)
            if console.as_json:
                print_json({"export": str(export), "assignments": rows})
            console.write_line(f"{counted(rows, 'assignment')} in {export}. Next: vip fiber collect {export}")
            return

        def make(token: str, hosts: list[str]) -> LogServer:
            from vip.review.blank_server import BlankServer

            return BlankServer(state, title=blanks.name, token=token, hosts=hosts)

        _run_server(make, state, counted(len(items), "blank"), console, host=host, port=port, no_open=no_open)


def _serve(state: ReviewState, console: Console, *, host: str, port: int, stage: str | None, is_blind: bool, no_open: bool) -> None:
    title = state.index.folder.resolve().name

    def make(token: str, hosts: list[str]) -> LogServer:
        from vip.review.server import ReviewServer

        def report(state: ReviewState) -> str:
            from vip.review.report import report_page  # here: it computes with numpy, and the first item does without

            return report_page(state, title=title, token=token)

        return ReviewServer(state, title=title, token=token, hosts=hosts, stage=stage, is_blind=is_blind, report=report)

    _run_server(make, state, counted(sum(1 for _ in state.reviewed_items()), "item"), console, host=host, port=port, no_open=no_open)


def _run_server(
    make: Callable[[str, list[str]], LogServer], state: LogState, what: str, console: Console, *, host: str, port: int, no_open: bool
) -> None:
    """Serve a review until Ctrl-C.

    Args:
        make: the server, given the token and the names by which it may be asked.
        what: is reviewed, with its number.
    """
    import secrets

    token = secrets.token_urlsafe(24)
    with bind(host, port) as sock:
        port = sock.getsockname()[1]
        names = {host, "localhost", HOST} if host in (HOST, "localhost") else {host}
        try:
            from vip.review.connections import serve

            server = make(token, [f"{f'[{name}]' if ':' in name else name}:{port}" for name in names])
        except ImportError as exc:
            raise BackendError("The page needs starlette and uvicorn: pip install 'vip-keyframes[review]'.") from exc
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={token}"
        if console.as_json:
            print_json({"address": address, "items": len(state.item_numbers)})
        console.write_line(f"{what} at {address}")
        console.write_line(f"Ctrl-C ends the server. Everything is kept in {state.log.path.name}.")
        if not no_open:
            _open_browser(address)
        try:
            serve(server.app(), sock)
        except KeyboardInterrupt:
            console.note(f"Ended. What was done is in {state.log.path}.")


def bind(host: str, port: int, name: str = "--port") -> socket.socket:
    """Return a socket that listens there.

    Args:
        name: the option of the port, for the message.

    Raises:
        StoreError: the port is taken, or the address is not this machine's.
    """
    import socket

    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as exc:
        raise StoreError(f"{host}:{port} cannot be used: {exc.strerror}. Choose another {name}, or none.") from exc


def _open_browser(address: str) -> None:
    import threading
    import webbrowser

    threading.Timer(0.3, webbrowser.open, (address,)).start()
