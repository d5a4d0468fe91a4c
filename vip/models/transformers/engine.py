"""The engine `transformers:MODEL`: a vision-language or language model in this process, by the library transformers.

In: a prompt, encoded pictures, a JSON schema or none. Out: the text of one complete answer, which fits the schema where there is
one. What concurrent callers ask is answered in batches, in a thread of its own. See `vip.models.transformers.chat` for the models it reads.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any

from vip.errors import BackendError, EngineError, ReplyError, VipError
from vip.models import hub
from vip.models.hardware import ShrinkingBatches
from vip.models.local_models import vision_model
from vip.models.transformers.model_files import silence_transformers
from vip.protocols import EngineCapabilities, Picture, Reply, Request
from vip.wording import counted

if TYPE_CHECKING:
    import PIL.Image
    import torch
    from llguidance import LLMatcher

    from vip.models.transformers.chat import ChatModel, ChatQuestion

IN_FLIGHT = {"cpu": 4, "mps": 4, "cuda": 16}
GATHER_S = 0.03  # a batch starts when for so long nobody has asked anything more; an answer takes seconds


class TransformersEngine:
    """One loaded model. The same question gets the same answer: the likeliest token is taken each time."""

    def __init__(
        self,
        detail: str | None,
        *,
        base_url: str | None = None,
        device: str = "auto",
        precision: str = "auto",
        timeout_s: float = 120.0,
        key_file: Path | None = None,
        picture_detail: str = "high",
    ) -> None:
        """Load the model; it moves to its device with the first question.

        Args:
            detail: a folder with config.json, or the model's name on the hub; by default that of local_models.toml.
            base_url, timeout_s, key_file, picture_detail: for engines that ask a server.

        Raises:
            BackendError: the model, a package, or the device is not there, or the model does not write text.
        """
        _refuse_missing_packages()
        detail = detail or vision_model().model
        hub.silence_hub_client()
        from vip.models.transformers.chat import CaptionModel, load_chat_model
        from vip.models.transformers.json_grammar import GrammarCache

        self._model: ChatModel = load_chat_model(detail, device, precision)
        hardware = self._model.hardware
        in_flight = IN_FLIGHT[hardware.device.partition(":")[0]]
        self.name, self.model, self.device = f"transformers:{detail}", detail, str(hardware)
        self.capabilities = EngineCapabilities(
            sees=self._model.takes_pictures,
            captions_only=isinstance(self._model, CaptionModel),
            max_in_flight=in_flight,
            parameters={"decoding": "greedy", "precision": hardware.precision, "weights": self._model.fingerprint},
            stays_loaded=True,
        )
        self._grammars = GrammarCache(detail, self._model.tokenizer, self._model.vocabulary, self._model.end_tokens)
        self._batches = ShrinkingBatches(in_flight, f"The model {detail}")
        self._batcher = RequestBatcher(self._answer, in_flight)

    @staticmethod
    def check_installed() -> None:
        """Refuse the engine if a package is missing; load nothing.

        Raises:
            BackendError: a package is missing.
        """
        _refuse_missing_packages()

    def __repr__(self) -> str:
        return f"TransformersEngine({self.model!r}, {self.device})"

    async def generate(self, request: Request) -> Reply:
        """Answer one request, together with others that are asked at the same time.

        Raises:
            BackendError: the model is not made for such a request.
            EngineError: the memory does not suffice, or the library fails.
            ReplyError: the answer was cut off or empty, the request too long, or its picture not readable.
        """
        self._model.check_request(request)
        return await self._batcher.submit(request)

    async def close(self) -> None:
        """Do nothing: no connection is open, and the model stays loaded."""

    def _answer(self, queued: Sequence[QueuedRequest]) -> Sequence[Reply | VipError]:
        try:
            return self._batches.map(self._answer_batch, queued)
        except BackendError as exc:  # not even one fits into memory
            raise EngineError(str(exc)) from exc

    def _answer_batch(self, queued: Sequence[QueuedRequest]) -> list[Reply | VipError]:
        """Return an answer or an error for each request; an invalid one does not fail the others."""
        answers: dict[int, Reply | VipError] = {}
        rows: dict[int, _BatchRow] = {}
        for number, one in enumerate(queued):
            try:
                rows[number] = self._prepare_row(one)
            except VipError as exc:
                answers[number] = exc
        inputs = self._prepare_inputs(rows, answers)
        if rows:
            answers |= zip(rows, self._generate(list(rows.values()), inputs), strict=True)
        return [answers[number] for number in range(len(queued))]

    def _prepare_row(self, one: QueuedRequest) -> _BatchRow:
        from vip.models.transformers.chat import ChatQuestion

        request = one.request
        pictures = tuple(_decode(picture) for picture in request.pictures)
        matcher = None if request.schema is None else self._grammars.start(request.schema)
        return _BatchRow(one, ChatQuestion(request.prompt, pictures, request.schema is not None), matcher)

    def _prepare_inputs(self, rows: dict[int, _BatchRow], answers: dict[int, Reply | VipError]) -> dict[str, Any]:
        """Return the tensors of the rows, and set the length of each; rows that are too long move from `rows` to `answers`."""
        inputs: dict[str, Any] = {}
        context = self._model.context
        while rows and not inputs:
            with self._translate_errors():
                inputs = self._model.prepare_inputs([row.question for row in rows.values()])
                lengths = self._model.token_counts(inputs)
            for (number, row), length in list(zip(rows.items(), lengths, strict=True)):
                row.length, row.max_tokens = length, row.queued.request.max_tokens
                if context is not None:
                    row.max_tokens = min(row.max_tokens, context - length)
                if row.max_tokens < 1:
                    answers[number] = self._too_long_error(length)
                    del rows[number]
                    inputs = {}
        return inputs

    def _too_long_error(self, length: int) -> ReplyError:
        return ReplyError(
            f"The request has {length} tokens, and {self.model} takes {self._model.context} with its answer."
            " Send fewer or smaller pictures, or choose a model with a longer context.",
            kind="too_large",
            tokens_in=length,
        )

    def _generate(self, rows: list[_BatchRow], inputs: dict[str, Any]) -> list[Reply | VipError]:
        import torch

        from vip.models.transformers.json_grammar import JsonConstraint

        model, hardware = self._model, self._model.hardware
        if model.model.device.type != hardware.device.partition(":")[0]:
            model.model = model.model.to(hardware.device)
        given = {key: _place_on_device(value, hardware.device, hardware.dtype) for key, value in inputs.items()}
        constraint = JsonConstraint(
            [row.matcher for row in rows], [row.max_tokens for row in rows], lambda number: rows[number].queued.is_abandoned
        )
        with torch.inference_mode(), silence_transformers(), self._translate_errors():
            sequences = model.model.generate(
                **given,
                max_new_tokens=max(row.max_tokens for row in rows),
                do_sample=False,
                num_beams=1,
                logits_processor=[constraint],
                stopping_criteria=[constraint.is_done],
            )
        return [self._to_reply(row, tokens) for row, tokens in zip(rows, sequences[:, constraint.start :].tolist(), strict=True)]

    def _to_reply(self, row: _BatchRow, tokens: list[int]) -> Reply | ReplyError:
        ended = next((place + 1 for place, token in enumerate(tokens[: row.max_tokens]) if token in self._model.end_tokens), None)
        count = min(row.max_tokens, len(tokens)) if ended is None else ended
        cost = {"tokens_in": row.length, "tokens_out": count}
        if ended is None:
            return ReplyError(f"{self.model} was cut off after {counted(count, 'token')}.", kind="length", **cost)
        if row.matcher is not None and row.matcher.is_error():
            return ReplyError(f"{self.model} could not be held to the schema ({row.matcher.stop_reason()}).", kind="broken", **cost)
        text = self._model.decode_answer(tokens[:ended], as_json=row.matcher is not None)
        if not text:
            return ReplyError(f"{self.model} gave an empty answer.", kind="empty", **cost)
        return Reply(text, model=self.model, tokens_in=row.length, tokens_out=count)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate errors of models and processors for invalid inputs. RuntimeError passes: it means that memory is full."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, NotImplementedError, OSError, TypeError, ValueError) as exc:
            raise EngineError(f"The model {self.model} failed ({hub.first_line(exc)}). Choose another model.") from exc


@dataclass(slots=True, eq=False)
class QueuedRequest:
    """A request with the event loop and the future of its caller."""

    request: Request
    answer: asyncio.Future[Reply]
    loop: asyncio.AbstractEventLoop

    @property
    def is_abandoned(self) -> bool:
        return self.answer.cancelled() or self.loop.is_closed()

    def resolve(self, answer: Reply | BaseException) -> None:
        """Give the caller its answer, from any thread."""
        with suppress(RuntimeError):  # its loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self._resolve, answer)

    def _resolve(self, answer: Reply | BaseException) -> None:
        if self.answer.done():
            return
        if isinstance(answer, Reply):
            self.answer.set_result(answer)
        else:
            self.answer.set_exception(answer)


class RequestBatcher:
    """A queue that gathers the requests of several callers into batches of one kind.

    Its thread lives while there is work: a process with threads is not forked, and one that ends waits for them.
    """

    def __init__(self, answer: Callable[[Sequence[QueuedRequest]], Sequence[Reply | VipError]], max_requests: int) -> None:
        self._answer, self._max_requests = answer, max_requests
        self._queue: list[QueuedRequest] = []
        self._changed, self._is_running = Condition(), False

    async def submit(self, request: Request) -> Reply:
        loop = asyncio.get_running_loop()
        one = QueuedRequest(request, loop.create_future(), loop)
        with self._changed:
            self._queue.append(one)
            self._changed.notify()
            if not self._is_running:
                self._is_running = True
                Thread(target=self._run, name="transformers engine").start()
        return await one.answer

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                answers: Sequence[Reply | BaseException] = self._answer(batch)
            except BaseException as exc:  # raised again where somebody waits
                answers = [exc] * len(batch)
            for one, answer in zip(batch, answers, strict=True):
                one.resolve(answer)

    def _next_batch(self) -> list[QueuedRequest]:
        """Return the oldest request and others of its kind; empty if none is left, and then the thread ends."""
        with self._changed:
            count = -1
            while 0 < len(self._queue) != count and len(self._queue) < self._max_requests:
                count = len(self._queue)
                self._changed.wait(GATHER_S)
            self._queue = [one for one in self._queue if not one.is_abandoned]
            batch = [one for one in self._queue if _batch_key(one) == _batch_key(self._queue[0])][: self._max_requests]
            self._queue = [one for one in self._queue if one not in batch]
            self._is_running = bool(batch)
            return batch


@dataclass(slots=True)
class _BatchRow:
    """A request in a batch."""

    queued: QueuedRequest
    question: ChatQuestion
    matcher: LLMatcher | None
    length: int = 0
    """Tokens of the question."""
    max_tokens: int = 0
    """Tokens that the answer may have."""


def _batch_key(one: QueuedRequest) -> tuple[bool, bool]:
    """Return the key of requests that may share a batch: processors take no mixture of rows with and without pictures."""
    return one.request.schema is not None, bool(one.request.pictures)


def _refuse_missing_packages() -> None:
    try:
        import llguidance  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as exc:
        raise BackendError(f"The engine transformers is not installed ({exc}). Run `pip install 'vip-keyframes[transformers]'`.") from exc


def _decode(picture: Picture) -> PIL.Image.Image:
    from PIL import Image as Pillow

    try:
        with Pillow.open(io.BytesIO(picture.data)) as opened:
            return opened.convert("RGB")
    except (OSError, SyntaxError, ValueError) as exc:
        raise ReplyError(f"The picture cannot be read ({hub.first_line(exc)}). Send it as JPEG or PNG.", kind="picture") from exc


def _place_on_device(value: Any, device: str, dtype: torch.dtype) -> Any:
    """Return a tensor on the model's device; pixels in its precision, token numbers and masks as they are."""
    if not hasattr(value, "is_floating_point"):
        return value
    return value.to(device, dtype if value.is_floating_point() else value.dtype)
