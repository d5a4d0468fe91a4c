"""The most frequent answers of people on a plane, as in Figure 3 of Castro et al. 2022: those that mean alike lie beside each other.

In: records with answers; what embeds phrases; names of clusters, where somebody sorted the answers by hand. Out: a page. Plurals count as
their singular where that is an answer too; the paper makes all answers singular.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from vip.errors import InputError
from vip.html.charts import Chart, draw
from vip.html.layout import render_page, resource
from vip.html.markup import percent, tag
from vip.html.parts import Fact
from vip.metrics.blank_answers import normalize_phrase
from vip.metrics.projection import LEAST_ROWS, project_tsne
from vip.store import replacing
from vip.tasks.fiber.records import FiberRecord
from vip.tasks.json_rows import open_bounded
from vip.tasks.table import Table, TableCell
from vip.untrusted import one_line

PACKAGE = "vip.tasks.fiber"
ENCODER = "sentence-transformers/stsb-roberta-base"
"""The paper's."""
MOST, SEED = 100, 0
HEIGHT_PX, EDGE_PX = 640, 24
COLOURS = 8
ENDINGS = (("ies", "y"), ("es", ""), ("s", ""), ("men", "man"), ("children", "child"), ("people", "person"))
Embed = Callable[[Sequence[str]], npt.NDArray[np.float64]]


class PlacedAnswer(NamedTuple):
    """An answer on the plane."""

    text: str
    times: int
    """How often people gave it."""
    x: float
    y: float
    """From 0 to 1, from the left and from the top."""
    cluster: str
    """"" where nobody sorted it."""


@dataclass(frozen=True, slots=True)
class AnswerMap:
    """The most frequent answers, the most frequent first."""

    answers: tuple[PlacedAnswer, ...]
    total: int
    """Answers of people, all of them."""

    @property
    def clusters(self) -> list[str]:
        """Return the names, that of the most frequent answer first."""
        return list(dict.fromkeys(one.cluster for one in self.answers if one.cluster))


def count_answers(records: Iterable[FiberRecord]) -> Counter[str]:
    """Return how often each phrase was answered, after normalisation; plurals count as their singular where that was answered too."""
    counts = Counter(
        words for record in records for worker in record.additional_answers for answer in worker if (words := normalize_phrase(answer))
    )
    merged = Counter[str]()
    for words, count in counts.items():
        merged[_singular(words, counts)] += count
    return merged


def _singular(words: str, known: Mapping[str, int]) -> str:
    for ending, instead in ENDINGS:
        if words.endswith(ending) and (one := words.removesuffix(ending) + instead) in known:
            return one
    return words


def make_map(
    records: Iterable[FiberRecord], embed: Embed, *, clusters: Mapping[str, str] | None = None, most: int = MOST, seed: int = SEED
) -> AnswerMap:
    """Place the most frequent answers.

    Args:
        embed: returns float64 (N, D), a row a phrase.
        clusters: normalised answer -> the name of its cluster.

    Raises:
        InputError: there are fewer than four different answers.
        BackendError: scikit-learn is not installed.
    """
    counts = count_answers(records)
    top = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:most]
    if len(top) < LEAST_ROWS:
        raise InputError(f"There are {len(top)} different answers, and a map needs {LEAST_ROWS}. Give records with answers of workers.")
    places = project_tsne(embed([words for words, _ in top]), seed=seed)
    named = clusters or {}
    answers = (
        PlacedAnswer(words, count, float(x), float(y), named.get(words, "")) for (words, count), (x, y) in zip(top, places, strict=True)
    )
    return AnswerMap(tuple(answers), counts.total())


def read_clusters(path: Path) -> dict[str, str]:
    """Return the cluster of each answer, normalised, from CSV with the columns `answer` and `cluster`.

    Raises:
        InputError: the file is damaged, or lacks a column.
    """
    with open_bounded(path) as file:
        try:
            rows = list(csv.DictReader(io.StringIO(file.read().decode("utf-8-sig"), newline="")))
        except (UnicodeDecodeError, csv.Error) as exc:
            raise InputError(f"{path} is no CSV in UTF-8 ({one_line(str(exc))[:80]}). Expected the columns answer and cluster.") from exc
    if not rows or not all(isinstance(row.get(name), str) for row in rows for name in ("answer", "cluster")):
        raise InputError(f"{path} lacks answers or clusters. Expected the columns answer and cluster.")
    return {normalize_phrase(row["answer"]): row["cluster"].strip() for row in rows}


# ---------------------------------------------------------------- the page


def write_map(path: Path, found: AnswerMap, *, encoder: str) -> None:
    """Write the page: the plane, and the same answers as a table.

    Raises:
        StoreError: not writable.
    """
    shown = sum(one.times for one in found.answers)
    facts = [Fact("Answers", f"{found.total:,}"), Fact("Shown", f"{len(found.answers):,}", f"{100 * shown / found.total:.0f} % of all")]
    text = render_page(
        PACKAGE,
        "answer_map.html.jinja",
        style=resource("answer_map.css", PACKAGE),
        facts=[*facts, Fact("Encoder", encoder)],
        chart=_chart(found),
        table=_table(found),
        clusters=[(name, place % COLOURS) for place, name in enumerate(found.clusters)],
    )
    with replacing(path) as file:
        file.write(text.encode())


def _chart(found: AnswerMap) -> Chart:
    colours = {name: place % COLOURS for place, name in enumerate(found.clusters)}
    marks = [_mark(one, colours) for one in reversed(found.answers)]  # the most frequent lie on top
    label = f"Map of the {len(found.answers)} most frequent answers"
    return Chart(
        "The most frequent answers",
        "t-SNE of their embeddings, as Figure 3 of Castro et al. 2022. What means alike lies together; the axes have no unit.",
        draw(tag("g", *marks, class_="axis"), height_px=HEIGHT_PX, label=label),
    )


def _mark(one: PlacedAnswer, colours: Mapping[str, int]) -> Markup:
    x, y = percent(5 + 90 * one.x), EDGE_PX + (HEIGHT_PX - 2 * EDGE_PX) * one.y
    kind = f"answer c{colours[one.cluster]}" if one.cluster else "answer"
    title = f"{one.text}: {one.times:,}{f', {one.cluster}' if one.cluster else ''}"
    return tag(
        "g",
        tag("title", title),
        tag("circle", cx=x, cy=y, r=4, class_=kind),
        tag("text", one.text, x=x, y=y - 7, text_anchor="middle", class_="word"),
    )


def _table(found: AnswerMap) -> Table:
    rows = [
        (
            TableCell(one.text),
            TableCell(f"{one.times:,}", one.times),
            TableCell(f"{100 * one.times / found.total:.2f}"),
            TableCell(one.cluster or "–"),
        )
        for one in found.answers
    ]
    return Table(title="Answers", columns=("Answer", "Times", "%", "Cluster"), rows=tuple(rows))
