"""What people's answers are like: Tables 1 and 2, Figures 5 to 9 and Appendix A.5 of Castro et al. 2022, from records.

In: records with answers of workers; a parser for what needs one. Out: figures, and tables beside the published ones. Deviations are
those of a population. Texts are normalised first, as the paper does.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from vip.metrics.blank_answers import exact_match, normalize_phrase, normalized_token_f1
from vip.metrics.human_agreement import Agreement, leave_worker_out, measure_all_answers, measure_first_answers
from vip.tasks.fiber.notes import EntityNotes
from vip.tasks.fiber.noun_phrases import ParsedToken, Parser, judge_answers, strip_punctuation
from vip.tasks.fiber.records import BLANK, FiberRecord
from vip.tasks.fiber.tables import PAPER, published_cell
from vip.tasks.table import Table, TableCell, number_cell

GENDER = {
    "male": frozenset(("boy", "brother", "father", "guy", "he", "him", "himself", "his", "male", "man", "son")),
    "female": frozenset(("daughter", "female", "girl", "her", "herself", "lady", "mother", "she", "sister", "woman")),
    "neutral": frozenset(("adult", "baby", "child", "human", "kid", "parent", "people", "person", "sibling")),
}
"""As printed in Appendix A.5."""
PUBLISHED_GENDER = {"male": (10.9, 9.1), "female": (6.2, 5.9), "neutral": (6.0, 6.6)}
"""Percent of the original phrases, and of the answers."""
COLORS = "black blue brown gold golden gray green grey orange pink purple red silver tan violet white yellow colorful colored"
NUMBERS = "one two three four five six seven eight nine ten eleven twelve dozen hundred thousand several many few both"
SIZES = "big small large little tiny huge tall short long wide narrow giant thick thin"
VISUAL = {name: frozenset(words.split()) for name, words in (("color", COLORS), ("number", NUMBERS), ("size", SIZES))}
"""Lists of this project: the paper names the kinds and prints no lists."""
TOP = 20
_TOKEN = re.compile(r"\w+|[^\w\s]+")


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean and its deviation."""

    mean: float
    deviation: float
    n: int


def spread(values: Iterable[float]) -> Spread | None:
    """Return the mean and the population deviation; None of nothing."""
    some = list(values)
    if not some:
        return None
    mean = math.fsum(some) / len(some)
    return Spread(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in some) / len(some)), len(some))


@dataclass(frozen=True, slots=True)
class PhraseStatistics:
    """Original phrases, or answers."""

    count: int
    tokens: Spread | None
    characters_a_token: Spread | None
    visual: dict[str, float]
    """Share of phrases with a word of each list, and of any."""
    gender: dict[str, float]
    top: tuple[tuple[str, int], ...]
    noun_phrases: float | None = None
    """Share; None without a parser."""
    tags: dict[str, float] = field(default_factory=dict)
    """Share of each universal part of speech among their words."""
    tag_sequences: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerStatistics:
    """What `vip fiber statistics` says."""

    captions: int
    unique_a_caption: Spread | None
    unique_a_worker: Spread | None
    """Of a caption, per worker; over captions."""
    labels: PhraseStatistics
    answers: PhraseStatistics
    first_answers: Agreement | None
    all_answers: Agreement | None
    by_unique_answers: dict[int, tuple[float, float, int]]
    """Number of different answers -> F1 and exact match of first answers, and captions."""
    dependencies: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Dependency of the root of the label -> captions, and different answers a worker."""


def measure_answers(records: Sequence[FiberRecord], parser: Parser | None = None) -> AnswerStatistics:
    """Return the statistics of records; what needs a parse is empty without a parser."""
    answers = [(record, answer) for record in records for worker in record.additional_answers for answer in worker]
    labels = [(record, record.label) for record in records]
    people = [record.answers for record in records]
    return AnswerStatistics(
        captions=len(records),
        unique_a_caption=spread(len(_unique(answer for worker in record.additional_answers for answer in worker)) for record in records),
        unique_a_worker=spread(value for record in records if (value := _unique_a_worker(record)) is not None),
        labels=_phrases(labels, parser),
        answers=_phrases(answers, parser),
        first_answers=measure_first_answers(people),
        all_answers=measure_all_answers(people),
        by_unique_answers=_by_unique_answers(records),
        dependencies=_dependencies(records, parser) if parser else {},
    )


def _unique(phrases: Iterable[str]) -> set[str]:
    return {words for phrase in phrases if (words := normalize_phrase(phrase))}


def _unique_a_worker(record: FiberRecord) -> float | None:
    counts = [len(_unique(worker)) for worker in record.additional_answers]
    return sum(counts) / len(counts) if counts else None


def tokens_of(phrase: str) -> list[str]:
    """Return words and runs of punctuation of a phrase, normalised."""
    return _TOKEN.findall(normalize_phrase(phrase))


def _phrases(pairs: Sequence[tuple[FiberRecord, str]], parser: Parser | None) -> PhraseStatistics:
    texts = [tokens_of(phrase) for _, phrase in pairs]
    top = Counter(words for _, phrase in pairs if (words := normalize_phrase(phrase)))
    masked = [(record.masked_caption, phrase) for record, phrase in pairs]
    parsed = _tag_sequences(masked, parser) if parser else []
    return PhraseStatistics(
        count=len(pairs),
        tokens=spread(map(len, texts)),
        characters_a_token=spread(len(token) for tokens in texts for token in tokens),
        visual=_shares(texts, {**VISUAL, "any": frozenset().union(*VISUAL.values())}),
        gender=_shares(texts, GENDER),
        top=tuple(sorted(top.items(), key=lambda one: (-one[1], one[0]))[:TOP]),
        noun_phrases=sum(judge_answers(masked, parser)) / len(masked) if parser and masked else None,
        tags=_share_of(tag for sequence in parsed for tag in sequence),
        tag_sequences=_share_of(" ".join(sequence) for sequence in parsed if sequence),
    )


def _shares(texts: Sequence[Sequence[str]], lists: dict[str, frozenset[str]]) -> dict[str, float]:
    return {name: sum(not words.isdisjoint(tokens) for tokens in texts) / len(texts) if texts else 0.0 for name, words in lists.items()}


def _share_of(names: Iterable[str]) -> dict[str, float]:
    counts = Counter(names)
    return {name: count / counts.total() for name, count in counts.most_common()}


def _in_caption(pairs: Sequence[tuple[str, str]], parser: Parser) -> Iterable[tuple[int, int, Sequence[ParsedToken]]]:
    """Yield for each masked caption and phrase its first and last letter in the parsed caption, and the tokens."""
    words = [strip_punctuation(phrase) for _, phrase in pairs]
    parsed = parser(masked.replace(BLANK, text) for (masked, _), text in zip(pairs, words, strict=True))
    for (masked, _), text, tokens in zip(pairs, words, parsed, strict=True):
        start = masked.index(BLANK)
        yield start, start + len(text), tokens


def _tag_sequences(pairs: Sequence[tuple[str, str]], parser: Parser) -> list[list[str]]:
    found = _in_caption(pairs, parser)
    return [[token.pos for token in tokens if start <= token.start and token.end <= end] for start, end, tokens in found]


def _dependencies(records: Sequence[FiberRecord], parser: Parser) -> dict[str, tuple[int, float]]:
    """Return the dependency of the label's root on the caption, with captions and different answers a worker (Figures 8 and 9)."""
    counts, unique = Counter[str](), defaultdict[str, list[float]](list)
    pairs = [(record.masked_caption, record.label) for record in records]
    for record, (start, end, tokens) in zip(records, _in_caption(pairs, parser), strict=True):
        inside = {place for place, token in enumerate(tokens) if start <= token.start and token.end <= end}
        root = next((place for place in sorted(inside) if tokens[place].head not in inside or tokens[place].head == place), None)
        if root is not None:
            counts[tokens[root].dep] += 1
            unique[tokens[root].dep] += [value for value in [_unique_a_worker(record)] if value is not None]
    return {name: (count, sum(unique[name]) / len(unique[name]) if unique[name] else 0.0) for name, count in counts.most_common()}


def _by_unique_answers(records: Sequence[FiberRecord]) -> dict[int, tuple[float, float, int]]:
    rows: dict[int, list[tuple[float, float]]] = {}
    for record in records:
        scores = [leave_worker_out(record.answers, measure) for measure in (normalized_token_f1, exact_match)]
        if scores[0]:
            count = len(_unique(answer for worker in record.additional_answers for answer in worker))
            rows.setdefault(count, []).append((sum(scores[0]) / len(scores[0]), sum(scores[1]) / len(scores[1])))
    return {
        count: (math.fsum(f1 for f1, _ in some) / len(some), math.fsum(em for _, em in some) / len(some), len(some))
        for count, some in sorted(rows.items())
    }


def as_row(found: AnswerStatistics, *, caption_agreement: float | None = None, notes: EntityNotes | None = None) -> dict[str, Any]:
    """Return all figures as `--json` prints them."""
    return {**asdict(found), "caption_agreement": caption_agreement, "notes": asdict(notes) if notes else None}


# ---------------------------------------------------------------- tables


def statistics_tables(found: AnswerStatistics, *, caption_agreement: float | None = None) -> list[Table]:
    """Return Tables 1 and 2 beside the published ones, then what the figures show.

    Args:
        caption_agreement: token F1 of each caption of a captioning set against the others of its video.
    """
    tables = [_table_1(found), _table_2(found, caption_agreement), _gender_table(found), _top_table(found), _unique_table(found)]
    if found.answers.tags:
        tables += [
            _share_table("Parts of speech (Figure 6", found, lambda one: one.tags),
            _share_table("Sequences of parts of speech (Figure 7", found, lambda one: one.tag_sequences),
            _dependency_table(found),
        ]
    return tables


def _spread_cell(value: Spread | None) -> TableCell:
    return TableCell(f"{value.mean:.2f} ± {value.deviation:.2f}", value.mean) if value else number_cell(None)


def _percent(value: float | None) -> TableCell:
    return number_cell(None if value is None else 100 * value)


def _table_1(found: AnswerStatistics) -> Table:
    rows = (
        ("Noun phrases before filtering %", _percent(found.labels.noun_phrases), _percent(found.answers.noun_phrases)),
        ("Unique answers per caption", number_cell(None), _spread_cell(found.unique_a_caption)),
        ("Unique answers per caption per annotator", number_cell(None), _spread_cell(found.unique_a_worker)),
        ("Characters per token", _spread_cell(found.labels.characters_a_token), _spread_cell(found.answers.characters_a_token)),
        ("Tokens", _spread_cell(found.labels.tokens), _spread_cell(found.answers.tokens)),
        ("Visual word use %", _percent(found.labels.visual["any"]), _percent(found.answers.visual["any"])),
    )
    return Table(
        title=f"Original phrases and answers (Table 1 of {PAPER})",
        columns=("Statistic", "published original", "published answers", "your original", "your answers"),
        rows=tuple(
            (TableCell(name), published_cell(1, name, "original phrases"), published_cell(1, name, "annotated"), labels, answers)
            for name, labels, answers in rows
        ),
        notes=(f"Yours: {found.captions:,} captions, {found.answers.count:,} answers. Lists of visual words are vip's own.",),
    )


def _table_2(found: AnswerStatistics, caption_agreement: float | None) -> Table:
    rows = []
    for which, agreement in (("per caption", found.first_answers), ("per answer", found.all_answers)):
        for name, mean, deviation in (("F1", "f1", "f1_deviation"), ("Exact Match", "exact_match", "exact_match_deviation")):
            row = f"{name} first answers ({which})"
            own = [_percent(getattr(agreement, field) if agreement else None) for field in (mean, deviation)]
            theirs = [published_cell(2, row, column) for column in ("mean %", "standard deviation")]
            rows.append((TableCell(row), *theirs, *own))
    if caption_agreement is not None:
        rows.append((TableCell("F1 of captions"), number_cell(None), number_cell(None), _percent(caption_agreement), number_cell(None)))
    return Table(
        title=f"Agreement of people, one worker left out (Table 2 of {PAPER})",
        columns=("Statistic", "published", "deviation", "yours", "deviation, yours"),
        rows=tuple(rows),
        notes=(
            "Per answer: all answers of every worker, the label as one more worker.",
            "The published deviation per answer is over workers, whom records do not name; yours is over answers.",
        ),
    )


def _gender_table(found: AnswerStatistics) -> Table:
    rows = [
        (
            TableCell(name),
            *(number_cell(value) for value in PUBLISHED_GENDER[name]),
            _percent(found.labels.gender[name]),
            _percent(found.answers.gender[name]),
        )
        for name in GENDER
    ]
    columns = ("Words", "published original", "published answers", "your original", "your answers")
    return Table(title=f"Phrases with words of gender, % (Appendix A.5 of {PAPER})", columns=columns, rows=tuple(rows))


def _top_table(found: AnswerStatistics) -> Table:
    both = [*found.labels.top, *[("", 0)] * TOP][:TOP], [*found.answers.top, *[("", 0)] * TOP][:TOP]
    rows = [
        (
            TableCell(label),
            _percent(count / found.labels.count if label else None),
            TableCell(answer),
            _percent(times / found.answers.count if answer else None),
        )
        for (label, count), (answer, times) in zip(*both, strict=True)
        if label or answer
    ]
    return Table(title=f"Most frequent phrases (Figure 5 of {PAPER})", columns=("Original", "%", "Answer", "% "), rows=tuple(rows))


def _unique_table(found: AnswerStatistics) -> Table:
    rows = [
        (TableCell(str(count), count), _percent(f1), _percent(exact), TableCell(f"{number:,}", number))
        for count, (f1, exact, number) in found.by_unique_answers.items()
    ]
    return Table(
        title="Agreement of first answers by number of different answers", columns=("Answers", "F1", "EM", "Captions"), rows=tuple(rows)
    )


def _share_table(title: str, found: AnswerStatistics, shares: Callable[[PhraseStatistics], dict[str, float]]) -> Table:
    labels, answers = shares(found.labels), shares(found.answers)
    names = list(dict.fromkeys([*answers, *labels]))[:TOP]
    rows = [(TableCell(name), _percent(labels.get(name, 0.0)), _percent(answers.get(name, 0.0))) for name in names]
    return Table(title=f"{title} of {PAPER})", columns=("Part of speech", "original %", "answers %"), rows=tuple(rows))


def _dependency_table(found: AnswerStatistics) -> Table:
    rows = [(TableCell(name), TableCell(f"{count:,}", count), number_cell(mean)) for name, (count, mean) in found.dependencies.items()]
    columns = ("Dependency of the root", "Captions", "Different answers a worker")
    return Table(title=f"Where the blank stands (Figures 8 and 9 of {PAPER})", columns=columns, rows=tuple(rows))
