"""A model hub on this machine, for the client library that users have: HEAD and GET of the files of one repository."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def hub(repo: str, files: Mapping[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """The address of a hub that has one repository, and a list that grows by each request: `GET name`."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, body: bool) -> None:
            name = self.path.removeprefix(f"/{repo}/resolve/main/")
            asked.append(f"{self.command} {name}")
            data = files.get(name)
            self.send_response(404 if data is None else 200)
            if data is None:
                self.send_header("X-Error-Code", "EntryNotFound")
                data = b""
            self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

        def do_GET(self) -> None:
            self._answer(True)

        def do_HEAD(self) -> None:
            self._answer(False)

        def log_message(self, format: str, *values: object) -> None:  # noqa: A002 - the name of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def put_into_cache(cache: Path, repo: str, files: Mapping[str, bytes]) -> None:
    """Files of a repository as the hub's client leaves them in its cache."""
    home = cache / f"models--{repo.replace('/', '--')}"
    snapshot = home / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("0" * 40)
    for name, data in files.items():
        (snapshot / name).write_bytes(data)
