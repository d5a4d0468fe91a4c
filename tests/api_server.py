"""A real HTTP server on localhost that speaks the OpenAI chat completions and batches, and can be told to misbehave.

    with ApiServer("refusal", "ok") as server:
        OpenAIEngine("tiny-vlm", base_url=server.base_url)

It is a process of its own, so that it takes no time from what is tested, and ends with the process that started it.
Each chat request takes the next of the given behaviours; the last one repeats. `server.requests` is what was asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Lock, Thread
from typing import Any, Self

from tests.api.answers import CAPTION, CUT, FAMOUS
from tests.api.chats import BEHAVIOURS, KEPT, Options, Stats

__all__ = ["BEHAVIOURS", "CAPTION", "CUT", "FAMOUS", "KEPT", "ApiServer", "Asked", "Stats"]

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-S", "-m", "tests.api.process")  # -S: the standard library is all it needs, and starts fast
PATIENCE_S = 60


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    behaviour: str = "ok"

    @property
    def text(self) -> str:
        content = self.body["messages"][0]["content"]
        return content if isinstance(content, str) else next(part["text"] for part in content if part["type"] == "text")


class ApiServer:
    """Behaviours of a chat request; `models=` takes those marked with * as well, for the page of models.

    - HTTP: a status* (`401`, `429`, `500`, …); `quota`* and `filtered_picture`, errors with a code; `busy`*, a 503 that says
      how long to wait; `drop`*, closed without an answer; `reset`, closed in the middle of the answer; `late`, the answer after
      `late_s`; `half_json`*; `page`*, a web page; `nonsense`* and `nonsense_stream`*, 200 with random bytes
    - parameters: `no_schema` rejects json_schema, `no_format` every response_format, `max_tokens_unknown` max_tokens,
      `its_own_temperature` a temperature
    - answers: `ok`, `no_choices`, `empty`, `length`, `content_filter`, `refusal`, `wrong_schema`, `outside_schema` (lacks a
      key), `not_enforced` (prose in the place of JSON), `half_reply`, `fenced`, `thinking`

    `ok` answers JSON made from the schema that is asked for, in the request or in words, and else CAPTION. The JSON names
    the picture that was shown (`mood of picture 0123456789ab`, from its SHA-256), or the one that the prompt names so; where
    there is none, a schema with the title Famous gives FAMOUS.
    """

    def __init__(self, *behaviours: str, **options: Any) -> None:
        """Set up the server, which starts with the `with` block.

        Args:
            models: what /v1/models lists; a behaviour instead of a tuple makes that page misbehave.
            mix: behaviour -> share of the chat requests that get it where the last behaviour repeats (`{"500": 0.05}`); decided
                by `seed`, the content of the request and how often it came, so that another try may go well.
            delay_s: how long every answer to a chat takes. `late_s`: how much longer `late` takes.
            at_most: chats in flight; more get 429.
            retry_after: seconds in the Retry-After of 429 and 503; else answers say `retry-after-ms: 1`.
            headers: added to each answer.
            key: the only API key that is let in.
            usage: tokens in and out of each answer; None: it does not say.
            marks: captions name their picture too.
            says: pairs of a part of a question and the answer to it; the first that fits counts.
            batch_s: how long a batch takes. `batch_fails`: its status becomes `failed`. `batch_expires_after`: so many rows are
                done, the others expire. `batch_queue`: rows that may be in progress at once; a batch beyond fails with
                token_limit_exceeded. `batch_rows`, `file_bytes`: the limits of a batch.

        Raises:
            ValueError: there is no such behaviour.
        """
        self.options = {"behaviours": behaviours, **options}
        Options(**self.options)
        self.base_url = ""
        self._requests: list[Asked] = []
        self._stats: Stats | None = None
        self._asking, self._reading, self._writing = Lock(), Lock(), Lock()
        self._results: Queue[dict[str, Any]] = Queue()

    def __enter__(self) -> Self:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
        self._process = subprocess.Popen(COMMAND, cwd=ROOT, **pipes)
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.set(**self.options)
        self.base_url = f"http://127.0.0.1:{self._command('up')}/v1"
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._requests, self._stats = self.requests, self.stats()
        finally:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            try:
                self._process.wait(PATIENCE_S)
            finally:
                self._process.kill()
                self._listener.join()
                self._process.stdout.close()

    # ------------------------------------------------------------ what it was asked

    @property
    def requests(self) -> list[Asked]:
        """All of them, in order; from the 201st on without the data of pictures."""
        with self._reading:
            while self._stats is None:
                rows = self._command("requests", start=len(self._requests))
                self._requests += [Asked(**row) for row in rows]
                if not rows:
                    break
            return list(self._requests)

    @property
    def chats(self) -> list[Asked]:
        return [asked for asked in self.requests if asked.path.endswith("/chat/completions")]

    def stats(self) -> Stats:
        return self._stats or Stats(**self._command("stats"))

    # ------------------------------------------------------------ what it is told

    def set(self, *, behaviours: tuple[str, ...] | list[str] | None = None, **options: Any) -> None:
        """Change options, as in the constructor, while it runs."""
        given = {} if behaviours is None else {"behaviours": list(behaviours)}
        asks = type(self).next_behaviour is not ApiServer.next_behaviour
        self._command("set", options={**options, **given, "asks": asks})

    def kill(self) -> None:
        """Go away: connections break, new ones are refused. What was asked and uploaded is not forgotten."""
        self._command("down")

    def restart(self) -> None:
        """Come back at the same address."""
        self._command("up")

    def next_behaviour(self, asked: Asked) -> str:
        """How to behave. A subclass that overrides it is asked about every chat, in a thread of this process."""
        return asked.behaviour

    # ------------------------------------------------------------ the pipe to the process

    def _command(self, name: str, **told: Any) -> Any:
        with self._asking:
            self._write({"do": name, **told})
            result = self._results.get(timeout=PATIENCE_S)
        if "error" in result:
            raise ValueError(result["error"])
        return result["result"]

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with self._writing:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "ask" in message:
                Thread(target=self._decide, args=(message["number"], Asked(**message["ask"])), daemon=True).start()
            else:
                self._results.put(message)
        self._results.put({"error": "The server has ended."})

    def _decide(self, number: int, asked: Asked) -> None:
        with suppress(OSError, ValueError):  # the server ended in the meantime
            self._write({"do": "decided", "number": number, "behaviour": self.next_behaviour(asked)})
