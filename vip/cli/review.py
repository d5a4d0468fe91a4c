"""`vip review`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli.completion import choices
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.options import option, switch
from vip.errors import BackendError, StoreError, UsageError
from vip.wording import counted

if TYPE_CHECKING:
    import socket

    from vip.review.state import ReviewState

EXAMPLES = """[bold]Examples[/bold]
vip review video.vip/                       a page to check and correct it
vip review runs/ --stage 2                  what stage 1 found wanting
vip review video.vip/ --report              agreement; rates of each engine
vip review corpus/ --export reviewed.jsonl  the reviewed texts, and by whom
"""
STAGES = ("1", "2", "3", "4")
HOST = "127.0.0.1"
EVERYWHERE = ("", "0.0.0.0", "::")
"""With these the server could not know the names that it is asked by."""

Folder = Annotated[
    Path, typer.Argument(help="A described run folder, a folder of runs, or what vip batch wrote.", metavar="DIR", show_default=False)
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
ShowOthers = Annotated[bool, switch("--show-others", help="Show what others say before the reviewer has judged.")]
NoOpen = Annotated[bool, switch("--no-open", help="Print the address, and open no browser.")]
Report = Annotated[bool, switch("--report", help="Print progress, agreement and the rates of the engines, and exit.")]
Export = Annotated[Path | None, option("--export", help="Write the reviewed texts to OUT.jsonl or OUT.csv, and exit.", metavar="FILE")]
Overwrite = Annotated[bool, switch("--overwrite", help="Replace the file of --export.")]


def review_command(
    folder: Folder,
    port: Port = 0,
    host: Host = HOST,
    stage: Stage = None,
    show_others: ShowOthers = False,
    no_open: NoOpen = False,
    report: Report = False,
    export: Export = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check, correct and agree: a page for the people who review descriptions. Everything is kept in DIR/review.sqlite."""
    from vip.review.items import read_items
    from vip.review.log import NAME, ReviewLog
    from vip.review.state import ReviewState

    if stage not in (None, *STAGES):
        raise UsageError(f'There is no stage "{stage}". Give one of {", ".join(STAGES)}.')
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port}: a port is a number from 1 to 65535.")
    if host in EVERYWHERE:
        raise UsageError(f"--host {host}: give the one address or name by which others reach this machine.")
    console = Console(quiet=quiet, as_json=as_json)
    index = read_items(folder, console.note)
    path = index.folder / NAME
    if (report or export) and not path.exists():
        raise UsageError(f"{folder} was not reviewed yet. Run `vip review {folder}` first.")
    with ReviewLog(path) as log:
        state = ReviewState(index, log)
        if export:
            _export(state, export, overwrite, console)
        if report:
            _report(state, console)
        if not (report or export):
            _serve(state, console, host=host, port=port, stage=stage, is_blind=not show_others, no_open=no_open)


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


def _serve(state: ReviewState, console: Console, *, host: str, port: int, stage: str | None, is_blind: bool, no_open: bool) -> None:
    import secrets

    try:
        import uvicorn

        from vip.review.server import ReviewServer
    except ImportError as exc:
        raise BackendError("The page needs starlette and uvicorn: pip install 'vip-keyframes[review]'.") from exc
    from vip.review.report import report_page

    token, title = secrets.token_urlsafe(24), state.index.folder.resolve().name
    with _bind(host, port) as sock:
        port = sock.getsockname()[1]
        names = {host, "localhost", HOST} if host in (HOST, "localhost") else {host}
        server = ReviewServer(
            state,
            title=title,
            token=token,
            hosts=[f"{f'[{name}]' if ':' in name else name}:{port}" for name in names],
            stage=stage,
            is_blind=is_blind,
            report=lambda state: report_page(state, title=title, token=token),
        )
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={token}"
        if console.as_json:
            print_json({"address": address, "items": len(state.index.items)})
        console.write_line(f"{counted(len(state.index.items), 'item')} at {address}")
        console.write_line("Ctrl-C ends the server. Everything is kept in review.sqlite.")
        if not no_open:
            _open_browser(address)
        try:
            uvicorn.Server(uvicorn.Config(server.app(), log_level="warning", ws="none", lifespan="on", server_header=False)).run(
                sockets=[sock]
            )
        except KeyboardInterrupt:
            console.note(f"Ended. What was done is in {state.log.path}.")


def _bind(host: str, port: int) -> socket.socket:
    import socket

    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as exc:
        raise StoreError(f"{host}:{port} cannot be used: {exc.strerror}. Choose another --port, or none.") from exc


def _open_browser(address: str) -> None:
    import threading
    import webbrowser

    threading.Timer(0.3, webbrowser.open, (address,)).start()
