"""Files as OpenAI's API reference describes them.

In: calls to /v1/files. Out: their answers; what was sent lies in a folder.
"""

from __future__ import annotations

import itertools
import mmap
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.api.chats import Options
from tests.api.wire import Answer, Call, failure

PURPOSES = frozenset({"assistants", "batch", "fine-tune", "vision", "user_data", "evals"})


@dataclass(slots=True)
class Stored:
    path: Path
    record: dict[str, Any]


class Files:
    def __init__(self, folder: Path, options: Options) -> None:
        self.folder, self.options = folder, options
        self.stored: dict[str, Stored] = {}
        self.numbers = itertools.count(1)

    def answer(self, call: Call) -> Answer | None:
        """The answer to a call below /files; None for any other."""
        match [part for part in call.path.split("/") if part][1:], call.method:
            case ["files"], "POST":
                return self._upload(call)
            case ["files"], "GET":
                return Answer.of({"object": "list", "data": [file.record for file in self.stored.values()], "has_more": False})
            case ["files", name, *more], method:
                return self._file(name, more, method)
        return None

    def _upload(self, call: Call) -> Answer:
        boundary = re.search(r'boundary="?([^";]+)', call.headers.get("content-type", ""))
        parts = _parts(call, boundary[1].encode()) if boundary else {}
        purpose = parts.get("purpose", ("", b""))[1].decode("latin-1")
        if "file" not in parts or purpose not in PURPOSES:
            return bad("'file' and 'purpose' are required, and the purpose is one of the known ones.", param="purpose")
        name, data = parts["file"]
        if purpose == "batch" and not name.endswith(".jsonl"):
            return bad("Invalid file format for Batch API. Must be .jsonl")
        limit = self.options.file_bytes
        if purpose == "batch" and len(data) > limit:
            message = f"The batch input file is larger than the {limit} maximum. Please try again with a smaller batch."
            return failure(413, message, kind="invalid_request_error")
        return Answer.of(self.store(name, data, purpose).record)

    def store(self, name: str, data: bytes | memoryview, purpose: str) -> Stored:
        key = f"file-{next(self.numbers):06d}"
        path = self.folder / key
        path.write_bytes(data)
        record = {"id": key, "object": "file", "bytes": len(data), "created_at": int(time.time()), "filename": name}
        self.stored[key] = Stored(path, {**record, "purpose": purpose, "status": "processed", "expires_at": None, "status_details": None})
        return self.stored[key]

    def _file(self, name: str, more: list[str], method: str) -> Answer | None:
        stored = self.stored.get(name)
        if stored is None:
            return failure(404, f"No such File object: {name}", param="id", kind="invalid_request_error")
        if more == ["content"] and method == "GET":
            return Answer(200, kind="application/octet-stream", file=stored.path)
        if not more and method == "DELETE":
            del self.stored[name]
            stored.path.unlink()
            return Answer.of({"id": name, "object": "file", "deleted": True})
        return Answer.of(stored.record) if not more and method == "GET" else None


def bad(message: str, *, code: str | None = None, param: str | None = None) -> Answer:
    return failure(400, message, code=code, param=param, kind="invalid_request_error")


def _parts(call: Call, boundary: bytes) -> dict[str, tuple[str, bytes]]:
    """Parts of a form by name, each with its file name and its bytes."""
    parts: dict[str, tuple[str, bytes]] = {}
    assert call.file is not None
    call.file.flush()
    with mmap.mmap(call.file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        mark = b"--" + boundary
        at = data.find(mark)
        while (end := data.find(b"\r\n" + mark, at)) > 0:
            head_end = data.find(b"\r\n\r\n", at)
            names = dict(re.findall(r'(\w*name)="([^"]*)"', data[at:head_end].decode("utf-8", "replace")))
            parts[names.get("name", "")] = names.get("filename", ""), data[head_end + 4 : end]
            at = end + 2
    return parts
