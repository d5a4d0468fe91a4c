"""The server's process: `python -S -m tests.api.process`.

In: commands on stdin, one JSON object a line (`{"do": "set", …}`). Out: on stdout the port, then one line an answer, and
where it was told to ask, what to decide. It ends when stdin is closed, and so with the process that started it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import sys
import tempfile
import threading
from asyncio import StreamReader, StreamWriter
from pathlib import Path
from typing import Any

from tests.api.answers import Question
from tests.api.batches import Batches
from tests.api.chats import Chats, Options, misbehaved, read_question
from tests.api.files import Files
from tests.api.wire import LIMIT_BYTES, Answer, Call, failure, read_call, write_answer

PAGE = 500  # requests that are handed out at once
HOST = "127.0.0.1"


class Service:
    def __init__(self, folder: Path) -> None:
        self.options = Options()
        self.chats = Chats(self.options)
        self.files = Files(folder, self.options)
        self.batches = Batches(self.files, self.chats)
        self.writers: set[StreamWriter] = set()
        self.listener: asyncio.Server | None = None
        self.port = 0
        self.waiting: dict[int, asyncio.Future[str]] = {}

    # ------------------------------------------------------------ what it is told

    async def command(self, told: dict[str, Any]) -> Any:
        match told.pop("do"):
            case "up":
                self.listener = await asyncio.start_server(self.connected, HOST, self.port, limit=LIMIT_BYTES, backlog=1024)
                self.port = self.listener.sockets[0].getsockname()[1]
                return self.port
            case "down":
                assert self.listener is not None
                self.listener.close()
                for writer in self.writers:
                    writer.transport.abort()
            case "set":
                changed = dataclasses.replace(self.options, **told["options"])
                for field in dataclasses.fields(Options):
                    setattr(self.options, field.name, getattr(changed, field.name))
            case "requests":
                return self.chats.kept[told["start"] : told["start"] + PAGE]
            case "stats":
                return self.chats.stats()
            case "decided":
                self.waiting.pop(told["number"]).set_result(told["behaviour"])
        return None

    async def decided(self, asked: dict[str, Any]) -> str:
        """Return the behaviour that the process that started this one wants."""
        number = len(self.chats.kept)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        say({"ask": asked, "number": number})
        asked["behaviour"] = await self.waiting[number]
        return str(asked["behaviour"])

    # ------------------------------------------------------------ what it is asked

    async def connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.writers.add(writer)
        self.chats.connections += 1
        try:
            while call := await read_call(reader, writer, to_file="/files"):
                if call.path.endswith("/chat/completions"):
                    open_still = await self.chat(call, reader, writer)
                else:
                    open_still = await self.send(writer, self.page(call))
                if not open_still or call.headers.get("connection", "").lower() == "close":
                    break
        except ConnectionError:
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    async def send(self, writer: StreamWriter, answer: Answer) -> bool:
        waits = {} if any(name.lower() == "retry-after" for name in answer.headers) else {"retry-after-ms": "1"}
        return await write_answer(writer, answer, {**waits, **self.options.headers})

    async def chat(self, call: Call, reader: StreamReader, writer: StreamWriter) -> bool:
        self.chats.chats += 1
        body = parsed(call)
        question = read_question(body)
        if isinstance(question, Answer):
            self.chats.keep(call, {"unread": True}, {"unread": True}, str(question.status))
            return await self.send(writer, question)
        if refused := self.refused(call):
            self.chats.keep(call, body, question.short, "401")
            return await self.sent(question, "401", refused, reader, writer)
        crowded = self.options.at_most is not None and self.chats.in_flight >= self.options.at_most
        behaviour = "at_most" if crowded else self.chats.next_behaviour(question)
        asked = self.chats.keep(call, body, question.short, behaviour)
        if crowded:
            return await self.sent(question, behaviour, self.chats.answer(behaviour, question, call), reader, writer)
        self.chats.in_flight += 1
        self.chats.peak = max(self.chats.peak, self.chats.in_flight)
        try:
            if self.options.asks:
                behaviour = await self.decided(asked)
            await asyncio.sleep(self.options.delay_s + (self.options.late_s if behaviour == "late" else 0))
        finally:
            self.chats.in_flight -= 1
        return await self.sent(question, behaviour, self.chats.answer(behaviour, question, call), reader, writer)

    async def sent(self, question: Question, behaviour: str, answer: Answer, reader: StreamReader, writer: StreamWriter) -> bool:
        """Send an answer and count it; a client that has left gets none."""
        gone = reader.at_eof() or writer.is_closing()  # the reader learns of `down` one turn of the loop later
        whole = answer.manner in {"whole", "chunked"} and not gone
        self.chats.count(question, behaviour, answer.status if whole else None)
        self.chats.statuses[str(answer.status) if whole else "none"] += 1
        return await self.send(writer, answer)

    def page(self, call: Call) -> Answer:
        """The answer to anything but a chat."""
        body = {} if call.file else parsed(call) or {}
        self.chats.keep(call, body, body, "ok")
        try:
            if refused := self.refused(call):
                return refused
            if call.path.endswith("/models"):
                return self.models(call)
            answer = self.files.answer(call) or self.batches.answer(call, body)
            return answer or failure(404, f"Invalid URL ({call.method} {call.path})", kind="invalid_request_error")
        finally:
            if call.file:
                call.file.close()

    def models(self, call: Call) -> Answer:
        names = self.options.models
        if isinstance(names, str):
            said = f"You sent {call.headers.get('authorization', 'no key')} to {call.path}."
            return misbehaved(names, said, self.options) or failure(404, said)
        rows = [{"id": name, "object": "model", "created": 0, "owned_by": "me"} for name in names or ()]
        return Answer.of({"object": "list", "data": rows})

    def refused(self, call: Call) -> Answer | None:
        if self.options.key is None or call.headers.get("authorization") == f"Bearer {self.options.key}":
            return None
        said = call.headers.get("authorization", "Bearer no key").removeprefix("Bearer ")
        message = f"Incorrect API key provided: {said}."
        return failure(401, message, code="invalid_api_key", kind="invalid_request_error")


def parsed(call: Call) -> Any:
    try:
        return json.loads(call.body) if call.body else None
    except ValueError:
        return None


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def serve(folder: Path) -> None:
    loop, told = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def listen() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(told.put_nowait, line)
        loop.call_soon_threadsafe(told.put_nowait, None)

    threading.Thread(target=listen, daemon=True).start()
    service = Service(folder)
    while line := await told.get():
        command = json.loads(line)
        quiet = command["do"] == "decided"
        try:
            result = {"result": await service.command(command)}
        except (TypeError, ValueError, OSError) as exc:
            result = {"error": str(exc)}
        if not quiet:
            say(result)
    loop.set_exception_handler(lambda *_: None)  # answers that nobody waits for any more are no news


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the tests; they close stdin
    with tempfile.TemporaryDirectory(prefix="vip-api-") as place:
        asyncio.run(serve(Path(place)))
