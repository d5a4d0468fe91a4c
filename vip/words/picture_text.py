"""The text in the keyframes of a run: text.jsonl.

In: a run folder and a reader of text. Out: text.jsonl, a row for each keyframe that was read, with its lines in the order in which they
are read. A picture that was read before by the same reader is not read again. Captions, pages and exports read the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from vip import files, store
from vip.errors import InputError
from vip.protocols import Observer, TextReader
from vip.records import MOST_TEXT_LINES, KeyframeText, TextLine
from vip.store import KeyframePicture, Run
from vip.untrusted import one_line
from vip.wording import counted
from vip.words.around import MOST_LETTERS

LIST_MARKS = "•●▪◦‣· "
WRITTEN_EACH = 10  # pictures: a killed run loses the text of no more


def read_texts(run: Run, reader: TextReader, observer: Observer) -> None:
    """Write text.jsonl of a run, and note how much was read; a picture that cannot be opened is left out and named.

    Raises:
        BackendError: the reader does not work here.
        StoreError: the folder cannot be written, or is damaged.
    """
    known = {(row.picture_sha256, row.reader): row for row in run.texts}
    frames = run.keyframes
    rows, waiting = dict[str, KeyframeText](), list[tuple[KeyframePicture, str]]()
    for frame in frames:
        if (digest := _digest(frame, observer)) is None:
            continue
        if row := known.get((digest, reader.name)):
            rows[frame.id] = row.model_copy(update={"keyframe_id": frame.id})
        else:
            waiting.append((frame, digest))
    with observer.track("Reading text", len(waiting)) as advance:
        for number, (frame, digest) in enumerate(waiting, 1):
            try:
                lines = in_reading_order(reader.read(frame.image))[:MOST_TEXT_LINES]
            except InputError as exc:
                observer.note(f"words: no text is read in {frame.path.name}: {exc}")
            else:
                rows[frame.id] = KeyframeText(keyframe_id=frame.id, picture_sha256=digest, reader=reader.name, lines=tuple(lines))
            if number % WRITTEN_EACH == 0:
                _write(run, frames, rows)
            advance()
    _write(run, frames, rows)
    found = [row for row in rows.values() if row.lines]
    lines_in_all = counted(sum(len(row.lines) for row in found), "line")
    observer.note(f"words: {lines_in_all} of text in {len(found):,} of {counted(len(frames), 'keyframe')}, read by {reader.name}")


def copy_texts(old: Run, new: Run) -> None:
    """Give a run the text that was read in another run's pictures, where it has the same pictures.

    Raises:
        StoreError: the text of the other run is damaged, or the folder cannot be written.
    """
    known = {row.picture_sha256: row for row in old.texts}
    if not known:
        return
    rows: dict[str, KeyframeText] = {}
    for frame in new.keyframes:
        if row := known.get(hashlib.sha256(frame.data).hexdigest()):
            rows[frame.id] = row.model_copy(update={"keyframe_id": frame.id})
    _write(new, new.keyframes, rows)


def _digest(frame: KeyframePicture, observer: Observer) -> str | None:
    try:
        return hashlib.sha256(frame.data).hexdigest()
    except InputError as exc:
        observer.note(f"words: no text is read in {frame.path.name}: {exc}")
        return None


def _write(run: Run, frames: Sequence[KeyframePicture], rows: dict[str, KeyframeText]) -> None:
    """Write the rows in the order of the keyframes, where they have changed."""
    path, wanted = run.folder / store.TEXT, [rows[frame.id] for frame in frames if frame.id in rows]
    if not wanted:
        files.remove(path, inside=run.folder)
    elif not path.exists() or run.texts != wanted:
        store.write_rows(path, wanted)


def in_reading_order(lines: Iterable[TextLine]) -> list[TextLine]:
    """Return the lines row by row from the top, each row from left to right.

    A line belongs to the row whose first line has the middle of it between top and bottom.
    """
    rows: list[list[TextLine]] = []
    for line in sorted(lines, key=lambda one: (_middle(one), one.box_xyxy, one.text)):
        _, top, _, bottom = rows[-1][0].box_xyxy if rows else line.box_xyxy
        if rows and top <= _middle(line) <= bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda one: (one.box_xyxy, one.text))]


def _middle(line: TextLine) -> float:
    _, top, _, bottom = line.box_xyxy
    return (top + bottom) / 2


def text_by_keyframe(run: Run) -> dict[str, tuple[str, ...]]:
    """Return the lines of text in each keyframe, by its id, without those that have none.

    Raises:
        StoreError: text.jsonl is damaged.
    """
    rows = run.texts
    if not rows:
        return {}
    ids = {frame.id for frame in run.keyframes}
    found = {row.keyframe_id: plain_lines(row) for row in rows if row.keyframe_id in ids}
    return {name: lines for name, lines in found.items() if lines}


def plain_lines(row: KeyframeText) -> tuple[str, ...]:
    """Return the lines without what does not belong on a line, and without marks of lists; those that were nothing else are left out."""
    return tuple(text for line in row.lines if (text := one_line(line.text).lstrip(LIST_MARKS)))


def quoted_lines(lines: Sequence[str]) -> str:
    """Return the lines as one JSON list, which nothing in them can end, with … in place of those that are too many."""
    kept, letters = list[str](), 0
    for line in map(one_line, lines):
        room = MOST_LETTERS - letters
        kept.append(line if len(line) <= room else f"{line[: max(0, room - 2)]} …".lstrip())
        letters += len(line) + 1
        if letters >= MOST_LETTERS:
            if len(kept) < len(lines) and not kept[-1].endswith("…"):
                kept.append("…")
            break
    return json.dumps(kept, ensure_ascii=False)
