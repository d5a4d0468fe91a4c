"""Tables 1 and 2 of Xiao et al. 2021 with rows of one's own, and the tables of the figures of one's questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vip.tasks.nextqa.files import Kind, Question
from vip.tasks.nextqa.statistics import QuestionStatistics, annotation_faults
from vip.tasks.nextqa.tables import PAPER
from vip.tasks.table import Table, TableCell, number_cell

NAMES: Mapping[Kind, str] = {"nextqa-mc": "Multi-choice QA", "nextqa-oe": "Open-ended QA"}
SHORT: Mapping[Kind, str] = {"nextqa-mc": "MC", "nextqa-oe": "OG"}
PUBLISHED_SETS = (
    ("train", 3870, "nextqa-mc", 34132),
    ("val", 570, "nextqa-mc", 4996),
    ("test", 1000, "nextqa-mc", 8564),
    ("all", 5440, "nextqa-mc", 47692),
    ("train", 3870, "nextqa-oe", 37523),
    ("val", 570, "nextqa-oe", 5343),
    ("test", 1000, "nextqa-oe", 9178),
    ("all", 5440, "nextqa-oe", 52044),
)
"""Table 1 as printed: set, videos, task, questions."""
PUBLISHED_DATA_SETS = (
    ("MSVD-QA", "MSVD", "descriptive QA", "Auto", 1970, 50505, 10, "OC"),
    ("MSRVTT-QA", "MSRVTT", "descriptive QA", "Auto", 10000, 243690, 15, "OC"),
    ("TGIF-QA", "TGIF", "spatio-temporal reasoning", "Auto", 71741, 165165, 3, "MC&OC"),
    ("TVQA", "TV Show", "subtitle&concept comprehension", "Man", 21793, 152545, 76, "MC"),
    ("ActivityNet-QA", "ActivityNet", "descriptive QA", "Man", 5800, 58000, 180, "OC"),
    ("Social-IQ", "YouTube", "social intelligence understanding", "Man", 1250, 7500, 60, "MC"),
    ("NExT-QA", "YFCC-100M", "causal & temporal action interactions", "Man", 5440, 52044, 44, "MC&OG"),
)
"""Table 2 as printed."""
QUESTIONS_A_VIDEO = 6
"""From so many on, questions of a type about a video are counted together."""
TYPES = ("CW", "CH", "TPN", "TC", "DB", "DC", "DL", "DO")


def table_1(sets: Mapping[str, QuestionStatistics], task: Kind) -> Table:
    """Return the published sets with their numbers of videos and questions, and one's own below."""
    rows = [(TableCell(name), TableCell(NAMES[kind]), _count(videos), _count(questions)) for name, videos, kind, questions in _known()]
    rows += [(TableCell(name), TableCell(NAMES[task]), _count(one.videos), _count(one.questions)) for name, one in sets.items()]
    return Table(
        title=f"Statistics of the data (Table 1 of {PAPER})",
        columns=("Set", "Task", "Videos", "Questions"),
        rows=tuple(rows),
        notes=(f"The first {len(PUBLISHED_SETS)} rows are as published.",),
        labels=2,
    )


def _known() -> Sequence[tuple[str, int, Kind, int]]:
    return PUBLISHED_SETS  # type: ignore[return-value]  # mypy widens the names of the tasks to str


def table_2(sets: Mapping[str, QuestionStatistics], task: Kind) -> Table:
    """Return the published data sets, and one's own below: their videos, questions and kind of answer."""
    rows = [(*map(TableCell, row[:4]), *map(_count, row[4:7]), TableCell(row[7])) for row in PUBLISHED_DATA_SETS]
    unknown = TableCell("–")
    rows += [
        (TableCell(name), unknown, unknown, unknown, _count(one.videos), _count(one.questions), unknown, TableCell(SHORT[task]))
        for name, one in sets.items()
    ]
    return Table(
        title=f"Data sets (Table 2 of {PAPER})",
        columns=("Data set", "Videos of", "Goal", "Annotation", "Videos", "Questions", "Seconds a video", "Answers"),
        rows=tuple(rows),
        notes=(
            "OC, OG: open-ended, as a class or generated. MC: multi-choice. The files name no source, and no frame rate to tell seconds.",
        ),
        labels=4,
    )


def _count(value: int) -> TableCell:
    return TableCell(f"{value:,}", value)


def type_table(sets: Mapping[str, QuestionStatistics]) -> Table:
    """Return the share of each type, as in Figure 3 (a); TN and TP apart, as annotated."""
    kinds = ("CW", "CH", "TN", "TP", "TC", "DC", "DL", "DO", "DB")
    rows = [
        (TableCell(kind), *(cell for one in sets.values() for cell in (_count(_of_type(one, kind)), _share(_of_type(one, kind), one))))
        for kind in kinds
    ]
    columns = tuple(text for name in sets for text in (name, "%"))
    return Table(title=f"Types of questions (Figure 3 (a) of {PAPER})", columns=("Type", *columns), rows=tuple(rows))


def _of_type(one: QuestionStatistics, kind: str) -> int:
    return sum(count for name, count in one.types.items() if name == kind)


def _share(count: int, one: QuestionStatistics) -> TableCell:
    return number_cell(100 * count / one.questions if one.questions else None, digits=1)


def video_table(name: str, one: QuestionStatistics) -> Table:
    """Return how many videos have 0, 1, 2 … questions of each type, as in Figure 8 (b) to (d)."""
    rows = []
    for kind in TYPES:
        counts = [min(one.types_per_video[video, kind], QUESTIONS_A_VIDEO) for video in one.per_video]
        rows.append((TableCell(kind), *(_count(counts.count(number)) for number in range(QUESTIONS_A_VIDEO + 1))))
    columns = (*map(str, range(QUESTIONS_A_VIDEO)), f"{QUESTIONS_A_VIDEO} or more")
    return Table(title=f"{name}: videos by their questions of a type (Figure 8 of {PAPER})", columns=("Type", *columns), rows=tuple(rows))


def rule_table(name: str, questions: Sequence[Question], one: QuestionStatistics) -> Table:
    """Return how many questions break a rule of the annotation (section 3.2), with examples."""
    rows = [(TableCell(rule), TableCell(", ".join(ids[:3]) or "–"), _count(len(ids))) for rule, ids in annotation_faults(questions).items()]
    yes, no = one.yes_no["yes"], one.yes_no["no"]
    notes = (f"Answers yes and no of the type DB: {yes:,} and {no:,}; the paper balances them.",) if yes or no else ()
    return Table(
        title=f"{name}: rules of the annotation (section 3.2 of {PAPER})",
        columns=("Rule", "Such as", "Questions"),
        rows=tuple(rows),
        notes=("Advice: the published sets break them at times.", *notes),
        labels=2,
    )


def place_table(sets: Mapping[str, QuestionStatistics]) -> Table:
    """Return how often the right option is at each place."""
    rows = [(TableCell(name), *(_count(one.places[place]) for place in range(5))) for name, one in sets.items()]
    return Table(title="Places of the right options", columns=("Set", *"01234"), rows=tuple(rows))
