"""Where models err and people agree: Table 7 and section 5.3 of Castro et al. 2022, as a page and as CSV.

In: records or samples, and files of predictions. Out: each blank with its frames, what people answered, what each model answered and its
F1; the wrong answers where people agree, first; and which answer is given in place of which.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vip import store
from vip.errors import InputError
from vip.html.layout import render_page, resource
from vip.html.parts import Fact
from vip.html.pictures import Jpeg
from vip.metrics.blank_answers import exact_match, normalize_phrase, normalized_token_f1
from vip.metrics.human_agreement import leave_worker_out
from vip.tasks.fiber.hits import guard_cell
from vip.tasks.fiber.records import BLANK, FiberRecord, read_records
from vip.tasks.fiber.submissions import is_records, read_fillers
from vip.tasks.fiber.task import sample_of
from vip.tasks.files import read_predictions, read_samples
from vip.tasks.page_samples import PagePictures
from vip.tasks.pairs import is_ours
from vip.tasks.records import Blank, Prediction, Sample, SamplePicture
from vip.untrusted import one_line
from vip.wording import counted

PACKAGE = "vip.tasks.fiber"
MOST_SHOWN = 200
MOST_FRAMES = 3
MOST_CONFUSIONS = 20
AGREE = 0.5
"""Share of workers whose first answer another one gave too, above which people agree."""


class FilledBlank(NamedTuple):
    """What one model answered."""

    model: str
    text: str
    f1: float
    """× 100, normalised, against label and answers."""
    is_exact: bool
    status: str


@dataclass(frozen=True, slots=True)
class BlankCase:
    """A blank with the answers of people and of models."""

    sample: Sample
    answers: tuple[str, ...]
    """Normalised, each once, in order."""
    filled: tuple[FilledBlank, ...]
    agreement: float | None
    """Exact match of workers' first answers, one worker left out; None where no worker answered, or it is not known."""

    @property
    def is_error(self) -> bool:
        """Return whether a model has no exact match where people agree, or where it is not known whether they do."""
        return any(not one.is_exact for one in self.filled) and (self.agreement is None or self.agreement >= AGREE)

    @property
    def text(self) -> str:
        return self.sample.ask.text if isinstance(self.sample.ask, Blank) else ""


def read_cases(annotations: Path, predictions: Sequence[Path]) -> list[BlankCase]:
    """Return each blank with what each file of predictions has for it.

    Raises:
        InputError: a file is damaged, or has no answer to a blank.
    """
    agreements: dict[str, float | None] = {}
    if annotations.suffix != ".jsonl" and is_records(annotations):
        samples = []
        for record in read_records(annotations):
            samples.append(sample_of(record))
            agreements[samples[-1].id] = _agreement(record)
    else:
        samples = list(read_samples(annotations))
    names = _names(predictions)
    files = [_predictions(path, samples) for path in predictions]
    return [
        _case(sample, agreements.get(sample.id), [(name, rows[sample.id]) for name, rows in zip(names, files, strict=True)])
        for sample in samples
    ]


def _names(paths: Sequence[Path]) -> list[str]:
    stems = [path.stem for path in paths]
    return stems if len(set(stems)) == len(stems) else list(map(str, paths))


def _agreement(record: FiberRecord) -> float | None:
    scores = leave_worker_out(record.answers, exact_match)
    return sum(scores) / len(scores) if len(scores) > 1 else None


def _predictions(path: Path, samples: Sequence[Sample]) -> dict[str, Prediction]:
    found = {row.sample_id: row for row in (read_predictions(path) if is_ours(path) else read_fillers(path, samples))}
    if missing := [sample.id for sample in samples if sample.id not in found]:
        raise InputError(
            f'{path} has no answer to {counted(len(missing), "blank")}, such as "{one_line(missing[0])[:80]}". Predict the rest.'
        )
    return found


def _case(sample: Sample, agreement: float | None, predictions: Sequence[tuple[str, Prediction]]) -> BlankCase:
    if sample.reference is None or not isinstance(sample.ask, Blank):
        raise InputError(f'The sample "{one_line(sample.id)[:80]}" is no blank with answers. Give samples of fiber.')
    answers = list(map(str, sample.reference.values))
    filled = []
    for name, row in predictions:
        text = row.value if isinstance(row.value, str) else ""
        filled.append(FilledBlank(name, text, 100 * normalized_token_f1(text, answers), exact_match(text, answers) == 1, row.status))
    return BlankCase(sample, tuple(sorted({words for answer in answers if (words := normalize_phrase(answer))})), tuple(filled), agreement)


def count_confusions(cases: Iterable[BlankCase]) -> list[tuple[str, str, str, int]]:
    """Return model, its wrong answer, the label, and how often, the most frequent first; both are normalised."""
    counts = Counter(
        (one.model, normalize_phrase(one.text), normalize_phrase(case.sample.reference.label or ""))
        for case in cases
        for one in case.filled
        if not one.is_exact and one.status == "ok" and case.sample.reference is not None
    )
    return [(*names, count) for names, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:MOST_CONFUSIONS]]


def order_cases(cases: Iterable[BlankCase]) -> list[BlankCase]:
    """Return the errors, those where models differ most first, then by how well people agree."""

    def key(case: BlankCase) -> tuple[float, float, float, str]:
        values = [one.f1 for one in case.filled]
        return min(values) - max(values), -(case.agreement or 0.0), min(values), case.sample.id

    return sorted((case for case in cases if case.is_error), key=key)


# ---------------------------------------------------------------- files


def write_error_rows(path: Path, cases: Sequence[BlankCase]) -> int:
    """Write a row an error as CSV, and return their number; no text becomes a formula.

    Raises:
        StoreError: not writable.
    """
    errors = order_cases(cases)
    models = [one.model for one in cases[0].filled] if cases else []
    head = [
        "sample",
        "video",
        "masked_caption",
        "label",
        "answers",
        "agreement",
        *(cell for name in models for cell in (name, f"{name} F1")),
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(map(_cell, head))
    for case in errors:
        label = case.sample.reference.label if case.sample.reference else ""
        agreement = "" if case.agreement is None else f"{100 * case.agreement:.1f}"
        cells = [case.sample.id, case.sample.video, case.text, label or "", "; ".join(case.answers), agreement]
        writer.writerow(map(_cell, [*cells, *(cell for one in case.filled for cell in (one.text, f"{one.f1:.1f}"))]))
    with store.replacing(path) as file:
        file.write(text.getvalue().encode())
    return len(errors)


def _cell(text: str) -> str:
    return guard_cell(one_line(text))


class CaseView(NamedTuple):
    """A case as the page shows it."""

    id: str
    before: str
    after: str
    frames: Sequence[Jpeg]
    answers: str
    label: str
    agreement: str
    filled: Sequence[FilledBlank]


def write_error_page(path: Path, cases: Sequence[BlankCase], *, samples: Path, runs: Sequence[Path] = ()) -> None:
    """Write the page: a card an error in the form of Table 7, at most 200, and the frequent confusions.

    Args:
        samples: the file of the cases.
        runs: run folders of the samples, for their pictures.

    Raises:
        StoreError: not writable.
    """
    errors, pictures = order_cases(cases), PagePictures(runs)
    agreed = [case for case in cases if case.agreement is not None and case.agreement >= AGREE]
    facts = [Fact("Blanks", f"{len(cases):,}"), Fact("Errors", f"{len(errors):,}", f"{len(errors[:MOST_SHOWN]):,} are shown")]
    if agreed:
        facts.insert(1, Fact("People agree", f"{len(agreed):,}", f"on {100 * AGREE:.0f} % of first answers or more"))
    text = render_page(
        PACKAGE,
        "errors.html.jinja",
        style=resource("errors.css", PACKAGE),
        facts=facts,
        cases=[_view(case, pictures, samples) for case in errors[:MOST_SHOWN]],
        confusions=count_confusions(cases),
        blank=BLANK,
    )
    with store.replacing(path) as file:
        file.write(text.encode())


def _view(case: BlankCase, pictures: PagePictures, samples: Path) -> CaseView:
    before, _, after = case.text.partition(BLANK)
    pieces = [piece for piece in case.sample.context if isinstance(piece, SamplePicture)]
    step = max(1, len(pieces) // MOST_FRAMES)
    frames = [jpeg for piece in pieces[step // 2 :: step][:MOST_FRAMES] if (jpeg := pictures.of_piece(case.sample, piece, samples))]
    agreement = "" if case.agreement is None else f"{100 * case.agreement:.0f} % of first answers agree"
    label = case.sample.reference.label if case.sample.reference else ""
    return CaseView(case.sample.id, before, after, frames, ", ".join(case.answers), label or "", agreement, case.filled)
