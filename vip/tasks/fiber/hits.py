"""HITs for Mechanical Turk: five blanks each, as a CSV file and a page, in the authors' columns (Castro et al. 2022, section 3.2).

In: records with a blank. Out: `hits.csv` with `video1_id, video1_start_time, video1_end_time, question1, label1, …`, a row a HIT;
`page.html`, into which Mechanical Turk puts a row; `preview.html`, the first row on the same page, which sends nothing.

The contract of the page, which `results` reads: `answer-<q>-<i>` is answer i (from 0, the most natural first) to question q (from 1),
`answer-input-<q>` what still stood in its box, `comments` a remark. Each question has two different answers or more. They are compared in
lower case, first without punctuation, then without articles: the page says so by `normalize_as_page`. (Scores remove both in one pass.)

No text becomes a formula where the CSV file is opened: questions and ids are HTML, and a label gets an apostrophe, which is read away.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from urllib.parse import quote

from pydantic import ValidationError

from vip import store
from vip.errors import InputError, UsageError
from vip.html.layout import GENERATOR, resource, templates
from vip.tasks.fiber.records import BLANK, FiberRecord, read_records
from vip.tasks.fiber.submissions import is_records
from vip.tasks.files import read_samples
from vip.tasks.records import Blank, Sample
from vip.untrusted import one_line, printable
from vip.wording import option

PACKAGE = "vip.tasks.fiber"
SCRIPTS = ("answers.js", "annotation.js")
PER_HIT = 5
MOST_PER_HIT = 20
LEAST_ANSWERS = 2  # a question
UNAVAILABLE = ("unavailable video", "unavailable video 2")
"""What workers answer where the video is gone: two answers, since two are asked for."""
YOUTUBE = "https://www.youtube-nocookie.com/embed/{id}?start={start}&end={end}"
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_PLAIN = re.compile(r"[A-Za-z0-9_-]*")
_VIDEO_URL = re.compile(r"https://[^\s\"'<>]+")


# ---------------------------------------------------------------- what is asked


def read_blanks(path: Path) -> Iterator[FiberRecord]:
    """Yield the blanks of samples that `vip samples` wrote, or of records in the authors' form.

    Raises:
        InputError: the file is damaged, or has samples of another task.
    """
    if not path.is_file():
        raise InputError(f"{path} is no file. Give what `vip samples` wrote for the task fiber, or records of FIBER.")
    if path.suffix != ".jsonl" and is_records(path):
        yield from read_records(path)
    else:
        yield from map(record_of, read_samples(path))


def record_of(sample: Sample) -> FiberRecord:
    """Return the record of a sample, without the answers of workers.

    Raises:
        InputError: it is no sample of fiber, or has a name or times that no record has.
    """
    label = sample.reference.label if sample.reference else None
    if not isinstance(sample.ask, Blank) or label is None or sample.ask.text.count(BLANK) != 1:
        raise InputError(f'The sample "{one_line(sample.id)[:80]}" has no blank with a label. Give samples of fiber.')
    try:
        return FiberRecord(
            video_id=sample.video,
            video_start_time=int(sample.start_s or 0),
            video_end_time=-int(-(sample.end_s or 0) // 1),
            caption=sample.ask.text.replace(BLANK, label),
            masked_caption=sample.ask.text,
            label=label,
        )
    except ValidationError as exc:
        problem = one_line(exc.errors()[0]["msg"])[:200]
        raise InputError(f'The sample "{one_line(sample.id)[:80]}" is none of fiber: {problem}. Give samples of fiber.') from exc


# ---------------------------------------------------------------- cells of a CSV file


def escape_cell(text: str) -> str:
    """Return a text as HTML that no spreadsheet takes for a formula and Mechanical Turk for none of its own names."""
    escaped = html.escape(text).replace("${", "&#36;{")
    is_formula = _FORMULA.match(escaped) and not _PLAIN.fullmatch(escaped)
    return f"&#{ord(escaped[0])};{escaped[1:]}" if is_formula else escaped


def guard_cell(text: str) -> str:
    """Return a text with an apostrophe where a spreadsheet would take it for a formula; `unguard_cell` gives it back."""
    return f"'{text}" if _FORMULA.match(text) and not _PLAIN.fullmatch(text) else text


def unguard_cell(text: str) -> str:
    """Return the text of a cell that `guard_cell` wrote."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) and not _PLAIN.fullmatch(text[1:]) else text


# ---------------------------------------------------------------- files


def write_hits(out: Path, records: Iterable[FiberRecord], *, per_hit: int = PER_HIT, video_url: str = YOUTUBE) -> tuple[int, int]:
    """Write the CSV file and both pages, and return the number of blanks and of HITs.

    Args:
        video_url: address of a clip, with `{id}`, and `{start}` and `{end}` in seconds; one of a video file is played by the browser.

    Raises:
        UsageError: the address has another form, or a HIT would have no blank or too many.
        InputError: there is no blank.
        StoreError: not writable.
    """
    if not 1 <= per_hit <= MOST_PER_HIT:
        raise UsageError(f"A HIT has 1 to {MOST_PER_HIT} blanks, not {per_hit}. Change {option('per_hit')}.")
    if not _VIDEO_URL.fullmatch(video_url) or "{id}" not in video_url:
        raise UsageError(f"The address of videos must begin with https:// and have {{id}} in it. Change {option('video_url')}.")
    store.make_folder(out)
    blanks = count = 0
    first: dict[str, str] = {}
    with store.replacing(out / "hits.csv") as file:
        file.write(_csv_line(hit_columns(per_hit)))
        rest = iter(records)
        while group := list(islice(rest, per_hit)):
            cells = list(chain.from_iterable(hit_cells(record) for record in group))
            row = [*cells, *repeat("", 5 * per_hit - len(cells))]
            first = first or dict(zip(hit_columns(per_hit), row, strict=True))
            file.write(_csv_line(row))
            blanks, count = blanks + len(group), count + 1
        if not count:
            raise InputError("There is no blank to ask about. Make some with `vip samples` and the task fiber.")
    pages: dict[str, dict[str, str] | None] = {"page.html": None, "preview.html": first}
    for name, shown in pages.items():
        with store.replacing(out / name) as file:
            file.write(annotation_page(per_hit=per_hit, video_url=video_url, row=shown).encode())
    return blanks, count


def hit_columns(per_hit: int) -> list[str]:
    return [
        name
        for place in range(1, per_hit + 1)
        for name in (f"video{place}_id", f"video{place}_start_time", f"video{place}_end_time", f"question{place}", f"label{place}")
    ]


def hit_cells(record: FiberRecord) -> tuple[str, ...]:
    times = str(record.video_start_time), str(record.video_end_time)
    video_id, masked, label = map(printable, (record.video_id, record.masked_caption, record.label))
    return (escape_cell(video_id), *times, escape_cell(masked), guard_cell(label))


def _csv_line(cells: Sequence[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue().encode()


def annotation_page(*, per_hit: int = PER_HIT, video_url: str = YOUTUBE, row: dict[str, str] | None = None) -> str:
    """Return the page; without a row that of Mechanical Turk, with the names of its columns in place of their cells."""
    names = hit_columns(per_hit)
    cells = row or {name: f"${{{name}}}" for name in names}
    style, script = resource("page.css") + resource("annotation.css", PACKAGE), "".join(resource(name, PACKAGE) for name in SCRIPTS)
    questions = []
    for place in range(1, per_hit + 1):
        video, start, end, question = (cells[name] for name in names[5 * place - 5 : 5 * place - 1])
        if row is not None:  # an id has no slashes of its own
            video = quote(html.unescape(video), safe="")
        address = html.escape(video_url).replace("{id}", video).replace("{start}", start).replace("{end}", end)
        questions.append({"place": place, "address": address, "text": question})
    text = templates(PACKAGE).get_template("annotation.html.jinja")
    return text.render(
        generator=GENERATOR,
        style=_markup(style),
        script=_markup(script),
        policy=_policy(style, script, video_url) if row is not None else "",
        is_preview=row is not None,
        plays_file=not video_url.startswith("https://www.youtube"),
        questions=[{**one, "address": _markup(str(one["address"])), "text": _markup(str(one["text"]))} for one in questions],
        blank=BLANK,
        least=LEAST_ANSWERS,
        unavailable=UNAVAILABLE,
    )


def _policy(style: str, script: str, video_url: str) -> str:
    """Return what the preview may load: its own style and script, and videos of one server. Mechanical Turk's page loads its library."""
    server = "/".join(video_url.split("/")[:3])
    own = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return f"default-src 'none'; style-src 'sha256-{own[0]}'; script-src 'sha256-{own[1]}'; frame-src {server}; media-src {server}"


def _markup(text: str) -> object:
    from markupsafe import Markup

    return Markup(text)  # what escape_cell escaped, and files of vip


# ---------------------------------------------------------------- checks of the page


def normalize_as_page(answer: str) -> str:
    """Return an answer as the page compares it: lower case, no ASCII punctuation, then no articles, single spaces."""
    letters = answer.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", letters).split())


def page_problems(answers: Sequence[str]) -> list[str]:
    """Return what the page objects to in the answers to one question, in order; nothing for answers that it sends."""
    normalized = [normalize_as_page(answer) for answer in answers]
    problems = [f'"{one_line(answer)[:80]}" has no word' for answer, words in zip(answers, normalized, strict=True) if not words]
    seen: set[str] = set()
    for answer, words in zip(answers, normalized, strict=True):
        if words and words in seen:
            problems.append(f'"{one_line(answer)[:80]}" is there already')
        seen.add(words)
    if len(seen - {""}) < LEAST_ANSWERS:
        problems.append(f"fewer than {LEAST_ANSWERS} answers")
    return problems
