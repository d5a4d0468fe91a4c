"""The tools that return texts: describe, words. All of these come from the video, or from an engine that saw it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vip.errors import BackendError, EngineError, ReplyError, SomeFailedError, UsageError
from vip.export.sheet import format_time
from vip.llm.budget import dollars
from vip.mcp.results import ToolResult
from vip.mcp.tools import MOST_WORDS, DescribeArguments, WordsArguments
from vip.mcp.workshop import Workshop, name_of
from vip.pipeline import add_text, caption
from vip.records import Description, SpokenWords
from vip.store import Run
from vip.timecode import seconds_of
from vip.untrusted import one_line, shorten
from vip.wording import counted
from vip.words.picture_text import text_by_keyframe
from vip.words.subtitles import read_subtitles

MOST_LETTERS, MOST_IN_A_LIST = 2000, 50  # of a text in a description, which is an agent's to read


def describe(arguments: DescribeArguments, workshop: Workshop) -> ToolResult:
    """Return the descriptions of a run; what is described stays, also where the money ends in the middle."""
    run, problem = workshop.run(arguments.video), None
    if len(run.descriptions) < len(run.keyframes):
        run = workshop.own_copy(run)
        try:
            caption(run, settings=workshop.captions, observer=workshop.observer, budget=workshop.budget)
        except (EngineError, ReplyError, SomeFailedError) as exc:
            problem = exc
    rows = _descriptions(Run(run.folder))
    if problem and not rows:
        raise problem
    spent, limit = dollars(workshop.budget.committed_usd), dollars(workshop.settings.max_usd)
    text = f"{name_of(run)}: {len(rows)} of {counted(len(run.keyframes), 'keyframe')} described; {spent} of {limit} spent by this server."
    text += f" The first {MOST_WORDS} are here." if len(rows) > MOST_WORDS else ""
    return ToolResult(f"{text} {one_line(str(problem))}" if problem else text, data=tuple(rows[:MOST_WORDS]))


def _descriptions(run: Run) -> list[dict[str, Any]]:
    numbers = {frame.id: number for number, frame in enumerate(run.keyframes, 1)}
    return [_row(numbers[row.keyframe_id], row) for row in run.descriptions]


def _row(number: int, row: Description) -> dict[str, Any]:
    when = {} if row.time_s is None else {"time": format_time(row.time_s)}
    famous = {name: _clean(value) for name, value in row.famous.model_dump(mode="json").items() if value}
    return {"number": number, **when, "engine": _clean(row.engine), "caption": _clean(row.dense_caption), **famous}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return shorten(one_line(value), MOST_LETTERS)
    return [_clean(one) for one in value[:MOST_IN_A_LIST]] if isinstance(value, list) else value


def words(arguments: WordsArguments, workshop: Workshop) -> ToolResult:
    """Return the subtitles between two times, and where it is asked for the text in the keyframes between them."""
    start_s, end_s = _seconds("start", arguments.start), _seconds("end", arguments.end)
    if start_s is not None and end_s is not None and start_s >= end_s:
        raise UsageError("start does not lie before end.")
    read, text_notes = _text_rows(arguments, workshop, start_s, end_s) if arguments.pictures else ([], ())
    named = workshop.find(arguments.video)
    rows = workshop.run(arguments.video).words if named.kind == "run" else []
    notes: tuple[str, ...] = ()
    if not rows and not (read and named.kind == "run"):
        found = read_subtitles(workshop.video(arguments.video))
        rows, notes = list(found.words), found.notes
    chosen = [one for one in rows if (start_s is None or one.end_s > start_s) and (end_s is None or one.start_s < end_s)]
    said = [
        {"from": format_time(one.start_s), "to": format_time(one.end_s), "text": one_line(one.text), **_heard(one)}
        for one in chosen[:MOST_WORDS]
    ]
    more = f" The first {MOST_WORDS} are here; ask for the others with start." if max(len(chosen), len(read)) > MOST_WORDS else ""
    nothing = "" if rows else " There are no subtitles in the file or beside it that can be read."
    texts = f" Text in {counted(len(read), 'keyframe')}." if arguments.pictures else ""
    text = f"{_count(chosen)} in this time.{more}{nothing}{texts}"
    return ToolResult(text, data=(*said, *read[:MOST_WORDS], *({"note": one} for one in (*notes, *text_notes))))


def _heard(one: SpokenWords) -> dict[str, str]:
    return {"transcribed_by": one_line(one.origin)} if one.source == "speech" else {}


def _count(rows: Sequence[SpokenWords]) -> str:
    said = sum(one.source == "speech" for one in rows)
    read = counted(len(rows) - said, "subtitle")
    heard = counted(said, "segment of transcribed speech", "segments of transcribed speech")
    return read if not said else heard if said == len(rows) else f"{read} and {heard}"


def _text_rows(
    arguments: WordsArguments, workshop: Workshop, start_s: float | None, end_s: float | None
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the text in the keyframes between two times, and notes; the server's own runs are read first."""
    run = workshop.run(arguments.video)
    notes: tuple[str, ...] = ()
    if run.folder.parent == workshop.settings.work:
        try:
            add_text(run, "text", observer=workshop.observer)
        except BackendError as exc:
            notes = (one_line(str(exc)),)
    elif not run.texts:
        notes = ("Nobody read the text in the keyframes of this run folder. Name the video file.",)
    texts = text_by_keyframe(run)
    rows: list[dict[str, Any]] = []
    for number, frame in enumerate(run.keyframes, 1):
        if frame.id in texts and _is_between(frame.time_s, start_s, end_s):
            when = {} if frame.time_s is None else {"time": format_time(frame.time_s)}
            rows.append({"number": number, **when, "picture_text": list(texts[frame.id])})
    return rows, notes


def _is_between(time_s: float | None, start_s: float | None, end_s: float | None) -> bool:
    return time_s is None or ((start_s is None or time_s >= start_s) and (end_s is None or time_s <= end_s))


def _seconds(name: str, text: str | None) -> float | None:
    try:
        return None if text is None else float(seconds_of(text))
    except ValueError as exc:
        raise UsageError(f"{name}: {exc}.") from exc
