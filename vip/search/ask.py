"""`ask`: a question about a video, answered from frames that are cited.

    choose the frames (ask_frames) ▸ observe: what each shows that bears on the question, a request a frame ▸ answer: one request
    with all observations and the words near them ▸ check the citations (citations)

Frame by frame as in the video chain-of-thought of section 5. The question, words, names and observations go into the requests as quoted
data. An answer of the engine is text: it chooses no file, no frame and no further request. Without a model that answers questions nothing
is made up: the frames are listed with what is known of them.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from vip.captioning import caption_job
from vip.captioning.encoded_pictures import EncodedKeyframe, encode_keyframe
from vip.captioning.estimate import Estimate
from vip.captioning.run_async import run_async, task_group
from vip.captioning.session import CaptionSession, check_engine, open_session
from vip.config import CaptionSettings, ExtractSettings, settings_of_both
from vip.errors import BackendError, InputError, ReplyError, UsageError
from vip.llm.budget import Budget
from vip.llm.client import EngineAnswer
from vip.llm.prices import request_tokens
from vip.protocols import Observer, SilentObserver
from vip.records import AnswerFromFrames, Call, Description, FrameObservation
from vip.search.ask_corpus import choose_frames_of_corpus, corpus_of
from vip.search.ask_frames import (
    DEFAULT_FRAMES,
    ChosenFrames,
    ChosenKeyframe,
    VideoOrRun,
    choose_frames,
    text_of,
    words_of,
)
from vip.search.ask_ranking import rank_by_words
from vip.search.ask_records import AnswerStatus, AskedFrame, VideoAnswer
from vip.search.citations import check_citations, clock, label, unlike_names
from vip.store import KeyframePicture, Run
from vip.untrusted import one_line
from vip.wording import counted, option
from vip.words.around import quoted

FRAME, ANSWER = "ask-frame", "ask-answer"
MOST_QUESTION = 1000  # letters
MOST_OBSERVATION = 1000  # letters of one that go into the last request
AT_ONCE = 64  # requests in flight, at most; the limiter of the engine may want fewer
TOKENS_OUT = {FRAME: 70, ANSWER: 220}
OWN_LANGUAGE = "the language of the question"


def ask(
    source: VideoOrRun,
    question: str,
    *,
    frames: int = DEFAULT_FRAMES,
    words: bool = True,
    out: str | Path | None = None,
    overwrite: bool = False,
    extraction: ExtractSettings | None = None,
    captioning: CaptionSettings | None = None,
    observer: Observer | None = None,
    isolated: bool = False,
    budget: Budget | None = None,
    **options: Any,
) -> VideoAnswer:
    """Answer a question about a video from frames of it, each of which can be looked up.

    Args:
        source: a video as for `extract`, or a run or its folder; or a corpus: a folder of runs, a data set of `vip batch`, or a list of
            these and of runs. A corpus is searched first, and the keyframes are those of the best moments.
        frames: how many keyframes are looked at, one request each.
        words: read the subtitles in the video or beside it. A run has those that it was made with.
        out: the run folder of a video; by default `NAME.vip` in the current folder. A run of the same video in it is used as it is.
        overwrite: replace a run of another video or of other settings.
        extraction, captioning: settings, or their fields as keywords: `embedder="clip"`, `engine="openai:MODEL"`, `max_usd=1`.
        isolated, budget: as for `run`.

    Returns:
        The answer. Its `status` says whether frames support it; `failed` are frames that the engine could not look at.
        Where nothing in a corpus fits, it is `nothing_found`, and no model is asked.

    Raises:
        UsageError: there is no question, or a setting is wrong.
        BackendError: the engine cannot answer questions.
        EngineError: the engine cannot be asked, or the money is spent. What was observed is in the cache.
        ReplyError: no frame could be looked at, or no answer can be used.
        InputError, StoreError: as for `extract`.
    """
    question, observer = check_question(question), observer or SilentObserver()
    extraction, captioning = settings_of_both(extraction, captioning, options)
    caption_job.check(captioning)
    if corpus := corpus_of(source):
        if out is not None:
            raise UsageError(f"{option('out')} says nothing about runs and data sets, whose frames are analyzed already. Leave it out.")
        chosen = choose_frames_of_corpus(corpus, question, frames=frames, embedder=extraction.embedder, observer=observer)
    else:
        chosen = choose_frames(
            source,
            question,
            frames=frames,
            words=words,
            out=Path(out) if out is not None else None,
            overwrite=overwrite,
            settings=extraction,
            observer=observer,
            isolated=isolated,
        )
    for note in chosen.notes:
        observer.note(note)
    if not chosen.keyframes:
        return nothing_found(question, chosen)
    answer = ask_moments(question, chosen.keyframes, captioning, observer=observer, budget=budget, descriptions=chosen.descriptions)
    return answer.model_copy(update={"notes": (*chosen.notes, *answer.notes)})


def nothing_found(question: str, chosen: ChosenFrames) -> VideoAnswer:
    """Return what there is to say where no keyframe fits a question."""
    return VideoAnswer(question=question, status="nothing_found", text=None, frames=(), notes=chosen.notes)


def ask_moments(
    question: str,
    moments: Sequence[ChosenKeyframe],
    settings: CaptionSettings,
    *,
    observer: Observer | None = None,
    budget: Budget | None = None,
    descriptions: Mapping[str, Description] | None = None,
) -> VideoAnswer:
    """Answer a question from keyframes that somebody has chosen, of one run or of several.

    Args:
        moments: run folders and keyframes in them.
        descriptions: what is known of keyframes by their ids; by default what their runs say.

    Raises:
        As for `ask`.
    """
    question, observer = check_question(question), observer or SilentObserver()
    shown = _shown_frames(moments, descriptions)
    session = open_session(settings, os.environ, budget)
    try:
        for note in session.notes:
            observer.note(note)
        engine = session.describer.describing_client.engine
        if engine.capabilities.measures:
            ranked = rank_by_words(question, [one.frame for one in shown])
            return VideoAnswer(question=question, status="not_asked", text=None, engine=engine.name, frames=tuple(ranked))
        _check_answers(session)
        before = copy(session.budget.usage)
        for client in session.describer.clients:
            check_engine(client.engine)
            client.limiter.on_long_wait = observer.note
        try:
            return run_async(_Questioning(session, question, _language(settings), shown, observer).run())
        finally:
            used = session.budget.usage - before
            if used.requests or used.cached:
                observer.note(f"Used {used}.")
    finally:
        session.close()


def expected_cost(question: str, moments: Sequence[ChosenKeyframe], settings: CaptionSettings) -> Estimate:
    """Return what `ask_moments` would ask and spend; nothing is asked. Errors as of it."""
    shown = _shown_frames(moments, None)
    session = open_session(settings, os.environ)
    try:
        if session.describer.measures:
            return Estimate(len(shown), 0, 0, 0, None, ())
        _check_answers(session)
        return _Questioning(session, check_question(question), _language(settings), shown, SilentObserver()).cost()
    finally:
        session.close()


def check_question(question: str) -> str:
    """Return the question on one line.

    Raises:
        UsageError: it is empty or too long.
    """
    text = one_line(question)
    if not text:
        raise UsageError('The question is empty. Write one, such as "why does the pump fail?".')
    if len(text) > MOST_QUESTION:
        raise UsageError(f"The question has {len(text):,} letters. Ask in at most {MOST_QUESTION:,}.")
    return text


def _language(settings: CaptionSettings) -> str:
    return settings.language if "language" in settings.model_fields_set else OWN_LANGUAGE


def _check_answers(session: CaptionSession) -> None:
    """Refuse an engine that only describes pictures.

    Raises:
        BackendError: an engine answers no questions.
    """
    for client in session.describer.clients:
        can = client.engine.capabilities
        if can.captions_only or can.measures:
            raise BackendError(f"{client.engine.name} only describes pictures and answers no questions. Name another {option('engine')}.")


# ---------------------------------------------------------------- the frames


@dataclass(frozen=True, slots=True)
class _ShownFrame:
    """A frame of the question, and its picture."""

    frame: AskedFrame
    keyframe: KeyframePicture


def _shown_frames(moments: Sequence[ChosenKeyframe], descriptions: Mapping[str, Description] | None) -> list[_ShownFrame]:
    """Return the frames with their numbers and labels, each once, by video and time."""
    folders = list(dict.fromkeys(folder for folder, _ in moments))
    place = {folder: number for number, folder in enumerate(folders)}
    unique = {(folder, keyframe.id): keyframe for folder, keyframe in moments}
    order = sorted(unique.items(), key=lambda one: (place[one[0][0]], one[1].time_s if one[1].time_s is not None else 0.0, one[0][1]))
    names = unlike_names([(str(folder), keyframe.record.video_id) for (folder, _), keyframe in order])
    chosen = [(folder, keyframe) for (folder, _), keyframe in order]
    words, text = words_of(chosen), text_of(chosen)
    described = {} if descriptions is not None else {folder: Run(folder).described for folder in folders}
    shown = []
    for number, ((folder, name), keyframe) in enumerate(order, 1):
        row = descriptions.get(name) if descriptions is not None else described[folder].get(name)
        frame = AskedFrame(
            number=number,
            label=label(names[str(folder)], keyframe.time_s, keyframe.id),
            video_id=keyframe.record.video_id,
            run=str(folder),
            keyframe_id=keyframe.id,
            time_s=keyframe.time_s,
            image_path=str(keyframe.path),
            words=words.get((folder, name)),
            text=text.get((folder, name)),
            caption=row.dense_caption if row else None,
            described_by=row.engine if row else None,
        )
        shown.append(_ShownFrame(frame, keyframe))
    return shown


# ---------------------------------------------------------------- asking an engine


@dataclass(slots=True)
class _Questioning:
    """One question on its way to an answer."""

    session: CaptionSession
    question: str
    language: str
    shown: Sequence[_ShownFrame]
    observer: Observer
    calls: list[Call] = field(default_factory=list)

    async def run(self) -> VideoAnswer:
        """Observe each frame, and answer."""
        try:
            frames = await self._observe_all()
            return await self._answer(frames)
        finally:
            for client in self.session.describer.clients:
                await client.close()

    def cost(self) -> Estimate:
        """Return the expected cost; observations have the length that is asked for."""
        describer, requests = self.session.describer, []
        for one in self.shown:
            picture = EncodedKeyframe(encode_keyframe(one.keyframe, describer.config.longest_side_px))
            requests.append((FRAME, describer.request(FRAME, self._frame_values(one.frame), picture)[0]))
        observed = [one.frame.model_copy(update={"observation": "word " * 50, "is_relevant": True}) for one in self.shown]
        requests.append((ANSWER, describer.request(ANSWER, self._answer_values(observed))[0]))
        tokens_in = tokens_out = 0
        usd: float | None = 0.0
        for name, request in requests:
            client = describer.client_for(name)
            each_in = request_tokens(request, client.price, client.engine.capabilities.picture_detail)
            each_out = TOKENS_OUT[name] + (client.price.thinking if client.price else 0)
            tokens_in, tokens_out = tokens_in + each_in, tokens_out + each_out
            usd = None if usd is None or client.price is None else usd + client.price.usd(each_in, each_out)
        prices = {client.price.model: client.price for client in describer.clients if client.price}
        priced = tuple(f"{name}, price of {price.as_of or 'no date'}" for name, price in prices.items())
        return Estimate(len(self.shown), len(requests), tokens_in, tokens_out, usd, priced)

    # ------------------------------------------------------------ frame by frame

    async def _observe_all(self) -> list[AskedFrame]:
        """Return the frames with what the engine saw in each, or why it could not look.

        Raises:
            ReplyError: it could look at none.
        """
        found: dict[int, AskedFrame] = {}
        gate = asyncio.Semaphore(AT_ONCE)

        async def observe(one: _ShownFrame, advance: Callable[[], None]) -> None:
            async with gate:
                found[one.frame.number] = await self._observe(one)
            advance()

        with self.observer.track("Looking", len(self.shown)) as advance:
            async with task_group() as group:
                for one in self.shown:
                    group.create_task(observe(one, advance))
        frames = [found[one.frame.number] for one in self.shown]
        if all(frame.problem for frame in frames):
            raise ReplyError(
                f"None of {counted(len(frames), 'frame')} could be looked at: {frames[0].problem if frames else 'there is none'}"
            )
        return frames

    async def _observe(self, one: _ShownFrame) -> AskedFrame:
        describer = self.session.describer
        try:
            picture = EncodedKeyframe(await asyncio.to_thread(encode_keyframe, one.keyframe, describer.config.longest_side_px))
            answer = await describer.ask(FRAME, self._frame_values(one.frame), picture)
        except (InputError, ReplyError) as exc:
            return one.frame.model_copy(update={"problem": str(exc)})
        seen = self._taken(answer, FrameObservation)
        return one.frame.model_copy(update={"observation": seen.observation.strip(), "is_relevant": seen.is_relevant})

    def _frame_values(self, frame: AskedFrame) -> dict[str, str]:
        return {
            "question": quoted(self.question),
            "video": quoted(frame.video_id),
            "time": "unknown, the picture comes from no video" if frame.time_s is None else clock(frame.time_s),
            "position": f"number {frame.number} of {len(self.shown)}",
            "words": quoted(frame.words) if frame.words else "none are known",
            "language": self.language,
        }

    # ------------------------------------------------------------ the answer

    async def _answer(self, frames: Sequence[AskedFrame]) -> VideoAnswer:
        """Return the answer from what was observed, with its citations checked."""
        reply = self._taken(await self.session.describer.ask(ANSWER, self._answer_values(frames)), AnswerFromFrames)
        labels = {frame.number: frame.label for frame in frames if not frame.problem}
        checked = check_citations(reply.answer.strip(), reply.citations, labels)
        relevant = {frame.number for frame in frames if frame.is_relevant}
        status: AnswerStatus = "not_shown" if not reply.is_supported else "supported" if relevant & set(checked.cited) else "unsupported"
        notes = []
        if checked.dropped:
            cited = counted(len(checked.dropped), "citation")
            notes.append(f"Left out {cited} of frames that were not shown: {', '.join(map(one_line, islice(checked.dropped, 5)))}.")
            self.observer.note(notes[0])
        return VideoAnswer(
            question=self.question,
            status=status,
            text=checked.text,
            reasoning=reply.reasoning.strip() or None,
            engine=" + ".join(dict.fromkeys(client.engine.name for client in self.session.describer.clients)),
            frames=tuple(frame.model_copy(update={"is_cited": frame.number in checked.cited}) for frame in frames),
            dropped_citations=checked.dropped,
            notes=tuple(notes),
            calls=tuple(self.calls),
        )

    def _answer_values(self, frames: Sequence[AskedFrame]) -> dict[str, str]:
        shown = [frame for frame in frames if not frame.problem]
        return {
            "question": quoted(self.question),
            "frames": "\n".join(map(_as_data, shown)),
            "numbers": ", ".join(str(frame.number) for frame in shown),
            "language": self.language,
        }

    def _taken(self, answer: EngineAnswer, kind: type[Any]) -> Any:
        if not isinstance(answer.value, kind):
            raise TypeError(f"expected {kind.__name__}, got {type(answer.value).__name__}")
        self.calls += answer.calls
        return answer.value


def _as_data(frame: AskedFrame) -> str:
    """Return a frame as one line of JSON for the last request."""
    row = {
        "frame": frame.number,
        "video": one_line(frame.video_id),
        "time": None if frame.time_s is None else clock(frame.time_s),
        "observation": (frame.observation or "")[:MOST_OBSERVATION],
        "bears_on_the_question": frame.is_relevant,
        "subtitles": json.loads(quoted(frame.words)) if frame.words else None,
        **({"text_in_the_picture": json.loads(quoted(frame.text))} if frame.text else {}),
    }
    return json.dumps(row, ensure_ascii=False)
