"""`vip mcp`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli import options
from vip.cli.collector import all_stays
from vip.cli.console import AsJson, Console, Quiet, print_error, print_json
from vip.errors import BackendError, UsageError

if TYPE_CHECKING:
    from vip.config import CaptionSettings
    from vip.mcp.results import ServerSettings

EXAMPLES = """[bold]Examples[/bold]
vip mcp --root ~/videos                      what an agent's settings start
vip mcp --root ~/videos --root /srv/clips    several folders
vip mcp --root ~/videos --engine openai:gpt-5.4-mini --max-usd 2
vip mcp --root ~/videos --http 8765          over HTTP on this machine
vip mcp --root ~/videos --http 0 --json      a free port, for programs
"""
WITHOUT = ("prompts", "context", "topic")
"""Settings of captions that are about one video, or for writers of prompts."""
DEFAULT_MAX_USD = 0.50  # nobody sees each question of an agent
OFFLINE = "offline"

Root = Annotated[
    list[Path],
    options.option("--root", help="A folder whose videos an agent may see; again for another one.", metavar="DIR"),
]
Work = Annotated[
    Path | None,
    options.option("--work", help="Folder for the runs.", metavar="DIR", default="a temporary one, deleted at the end"),
]
Http = Annotated[
    int | None,
    options.option("--http", help="Serve over HTTP on this machine with a token; without a number, at a free port.", metavar="PORT"),
]


def mcp_command(
    context: typer.Context,
    root: Root,
    work: Work = None,
    http: Http = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Serve keyframes, contact sheets, descriptions and subtitles to agents over the Model Context Protocol.

    Agents start it and talk over stdin and stdout. Without --engine, descriptions are made offline and cost nothing.
    """
    from vip.config import CaptionSettings, resolve
    from vip.mcp.results import ServerSettings
    from vip.mcp.roots import real_roots

    if http is not None and not 0 <= http <= 65535:
        raise UsageError(f"--http {http}: a port is a number from 1 to 65535.")
    if as_json and http is None:
        raise UsageError("--json prints the address of --http. Over stdin and stdout, stdout is the protocol's. Leave it out.")
    note = Console(quiet=quiet, as_json=True).note  # on stderr
    captions = _offline_unless_named(resolve(CaptionSettings, options.given(context, CaptionSettings), note=note))
    limit = DEFAULT_MAX_USD if captions.max_usd is None else captions.max_usd
    settings = ServerSettings(roots=real_roots(root), work=Path(), max_usd=limit, captions=captions)
    try:
        with all_stays():  # the SDK makes hundreds of classes: a fifth of the time to the first answer
            from vip.mcp.serve import serve_stdio
    except ImportError as exc:
        raise BackendError("The server needs the SDK of the protocol: pip install 'vip-keyframes[mcp]'.") from exc
    if http is None:
        serve_stdio(settings, work)
    else:
        _serve_http(settings, work, http, as_json=as_json)


def _offline_unless_named(settings: CaptionSettings) -> CaptionSettings:
    """Return the settings with the engine that was named: a key in the environment is no permission to spend."""
    return settings.model_copy(update={"engine": OFFLINE}) if settings.engine == "auto" and not settings.base_url else settings


def _serve_http(settings: ServerSettings, work: Path | None, port: int, *, as_json: bool) -> None:
    import secrets

    from vip.cli.review import HOST, bind
    from vip.mcp.serve import PATH, serve_http

    token = secrets.token_urlsafe(24)
    with bind(HOST, port, "--http") as sock:
        address = f"http://{HOST}:{sock.getsockname()[1]}{PATH}"
        if as_json:
            print_json({"address": address, "token": token})
        print_error(f"MCP at {address}")
        print_error(f"Authorization: Bearer {token}")
        try:
            serve_http(settings, work, sock, token)
        except KeyboardInterrupt:
            print_error("Ended.")
