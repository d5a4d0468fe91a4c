"""The tools that look for something in many videos: search, ask. What they return comes from videos, or from an engine that saw them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vip import store
from vip.errors import UsageError
from vip.export.sheet import format_time
from vip.llm.budget import dollars
from vip.mcp.pictures import encode_picture, shrink
from vip.mcp.results import ToolResult
from vip.mcp.tools import AskArguments, SearchArguments
from vip.mcp.workshop import Workshop
from vip.search.ask import ask_moments, check_question, nothing_found
from vip.search.ask_corpus import choose_frames_of_corpus
from vip.search.ask_frames import ChosenFrames, choose_frames, choose_of_run, spread
from vip.search.ask_records import AskedFrame, VideoAnswer
from vip.search.find import SearchQuery, find_moments
from vip.search.moments import Moment
from vip.store import is_own, load_run
from vip.untrusted import one_line
from vip.wording import counted

MOST_PICTURES, PICTURE_SIDE_PX = 4, 768
MOST_LETTERS = 300  # of the words of a keyframe
LEADS = {
    "supported": "Answered from keyframes that were looked at",
    "unsupported": "NOT SUPPORTED: the answer cites no keyframe that bears on the question",
    "not_shown": "The keyframes that were looked at do not show it",
    "not_asked": "No model was asked: the engine of this server answers no questions. Keyframes whose words fit come first",
    "nothing_found": "Nothing fits the question, and no model was asked. Ask with other words, or describe the keyframes first",
}


# ---------------------------------------------------------------- search


def search(arguments: SearchArguments, workshop: Workshop) -> ToolResult:
    """Return the moments that fit a query."""
    query = SearchQuery(text=arguments.query, moments=arguments.moments)
    sources = workshop.named_sources(arguments.sources)
    found = find_moments(query, sources, folder=workshop.index_of(arguments.sources), observer=workshop.observer)
    how = "words and pictures" if found.embedder else "words"
    text = f"{counted(len(found.moments), 'moment')} of {counted(found.keyframes, 'keyframe')}, by {how}."
    return ToolResult(text if found.moments else f"{text} Nothing fits.", data=tuple(_row(moment, workshop) for moment in found.moments))


def _row(moment: Moment, workshop: Workshop) -> dict[str, Any]:
    span = {"from": moment.start_s, "to": moment.end_s, "best": moment.time_s}
    times = {name: format_time(value) for name, value in span.items() if value is not None}
    said = {"said_in" if "words" in moment.words.fields[:1] else "described_in": one_line(moment.words.plain)} if moment.words else {}
    return {"video": one_line(moment.video), **times, **_where(moment.source, workshop, is_run=not moment.part), **said}


def _where(folder: str, workshop: Workshop, *, is_run: bool = True) -> dict[str, str]:
    """Return the name by which the other tools take a run; that of a data set is for search and ask."""
    path = Path(folder)
    if path.is_relative_to(workshop.settings.work):
        own = path.relative_to(workshop.settings.work).parts[:1]
        is_there = own and own[0].startswith("run-") and store.exists(workshop.settings.work / own[0] / store.MANIFEST)
        return {"run": own[0]} if is_there else {}
    return {"run" if is_run else "data_set": one_line(folder)}


# ---------------------------------------------------------------- ask


def ask(arguments: AskArguments, workshop: Workshop) -> ToolResult:
    """Return the answer to a question, its status and the keyframes that it cites."""
    question = check_question(arguments.question)
    chosen = _chosen(question, arguments, workshop)
    if chosen.keyframes:
        about = {"observer": workshop.observer, "budget": workshop.budget, "descriptions": chosen.descriptions}
        answer = ask_moments(question, chosen.keyframes, workshop.captions, **about)  # type: ignore[arg-type]
    else:
        answer = nothing_found(question, chosen)
    return _result(answer, chosen, arguments, workshop)


def _chosen(question: str, arguments: AskArguments, workshop: Workshop) -> ChosenFrames:
    """Return the keyframes: of one video those that are chosen for the question, of many those of the best moments."""
    if len(arguments.sources) == 1:
        named = workshop.find(arguments.sources[0])
        about: dict[str, Any] = {"frames": arguments.frames, "words": True, "observer": workshop.observer, "isolated": False}
        if named.kind == "video":
            video, folder, settings = workshop.own_run(named.path)
            return choose_frames(video, question, out=folder, overwrite=False, settings=settings, **about)
        manifest = load_run(named.path).manifest if named.kind == "own run" else None
        if manifest and is_own(manifest):  # a copy of a run from elsewhere names an embedder that is not loaded
            return choose_of_run(load_run(named.path), workshop.video(arguments.sources[0]), question, **about)
    sources, index = workshop.named_sources(arguments.sources), workshop.index_of(arguments.sources)
    try:
        found = choose_frames_of_corpus(
            sources, question, frames=arguments.frames, embedder="auto", observer=workshop.observer, index=index
        )
    except UsageError:  # the question has no word that can be searched for
        if len(sources) > 1:
            raise
        found = ChosenFrames(())
    if found.keyframes or len(sources) > 1 or not store.exists(Path(sources[0]) / store.KEYFRAMES):
        return found
    run = load_run(Path(sources[0]))
    return ChosenFrames(tuple((run.folder, one) for one in spread(run.keyframes, arguments.frames)), None)


def _result(answer: VideoAnswer, chosen: ChosenFrames, arguments: AskArguments, workshop: Workshop) -> ToolResult:
    looked = f"{counted(len(answer.frames) - len(answer.failed), 'keyframe')} looked at, {len(answer.citations)} cited"
    money = f"{dollars(workshop.budget.committed_usd)} of {dollars(workshop.settings.max_usd)} spent by this server"
    lines = [f"{LEADS[answer.status]}.", f"{looked}; {money}." if answer.text is not None else ""]
    if answer.failed:
        lines.append(f"{counted(len(answer.failed), 'keyframe')} could not be looked at; ask again to try only those.")
    said: list[dict[str, Any]] = [] if answer.text is None else [{"answer": one_line(answer.text), "status": answer.status}]
    shown = answer.frames if answer.text is None else answer.citations
    said += [_frame_row(frame, workshop) for frame in shown]
    said += [{"note": one_line(note)} for note in (*chosen.notes, *answer.notes)]
    pictures = {(str(folder), one.id): one for folder, one in chosen.keyframes}
    cited = [pictures[frame.run, frame.keyframe_id] for frame in answer.citations[:MOST_PICTURES]] if arguments.pictures else []
    return ToolResult(
        " ".join(line for line in lines if line),
        data=tuple(said),
        pictures=tuple(encode_picture(shrink(one, PICTURE_SIDE_PX)) for one in cited),
    )


def _frame_row(frame: AskedFrame, workshop: Workshop) -> dict[str, Any]:
    text = frame.observation or frame.words or frame.caption or ""
    return {"frame": frame.label, "shows": one_line(text)[:MOST_LETTERS], **_where(frame.run, workshop)}
