"""Figures 3, 7, 8, 9 and 10 of Xiao et al. 2021 for any questions in the published form, with the tables beside them.

In: csv files of one task. Out: `DataDescription`. Words are split at white space. Parts of speech need the data of NLTK's tagger; where it
is missing the figure is left out, and a note says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vip.errors import BackendError, InputError
from vip.html.bars import Bar, draw_bars, draw_lines, line_legend
from vip.html.charts import Chart
from vip.html.parts import Fact
from vip.metrics.perceptron_tagger import load_tagger
from vip.tasks.data_description import DataDescription
from vip.tasks.nextqa.data_tables import place_table, rule_table, table_1, table_2, type_table, video_table
from vip.tasks.nextqa.files import Kind, Question, read_questions
from vip.tasks.nextqa.statistics import GROUPS, Lengths, QuestionStatistics, Tag, annotation_faults, describe_questions, statistics_table
from vip.tasks.table import Table

OPENINGS, BELOW_OPENING, WORDS = 8, 2, 30
"""Bars of first words, of what follows each, and of frequent words."""
LEAST_SHARE = 0.001
"""Of all questions: rarer first words have no bar."""
MOST_OF_LIST = 100
"""Openings and frequent words in the record of a set."""


def describe_sets(paths: Sequence[Path], task: Kind) -> DataDescription:
    """Return the statistics of each file.

    Raises:
        InputError: a file is damaged, or two have one name.
    """
    tag, notes = _tagger()
    sets: dict[str, QuestionStatistics] = {}
    rules: list[Table] = []
    everything: list[Question] = []
    faults: dict[str, dict[str, int]] = {}
    for path, name in zip(paths, _names(paths), strict=True):
        questions = list(read_questions(path, task))
        sets[name] = describe_questions(questions, tag=tag)
        everything += questions
        rules.append(rule_table(name, questions, sets[name]))
        faults[name] = {rule: len(ids) for rule, ids in annotation_faults(questions).items()}
    counted = sets if len(sets) == 1 else {**sets, "all of these": describe_questions(everything)}
    tables = [table_1(counted, task), table_2(counted, task), statistics_table(counted), type_table(counted)]
    tables += [video_table(name, one) for name, one in sets.items()] + rules
    tables += [place_table(sets)] if task == "nextqa-mc" else []
    return DataDescription(
        title=f"Questions of {task}: {', '.join(sets)}",
        facts=[
            Fact("Questions", " and ".join(f"{one.questions:,}" for one in sets.values())),
            Fact("Videos", " and ".join(f"{one.videos:,}" for one in sets.values())),
        ],
        tables=tables,
        charts=[*_comparisons(sets), *(chart for name, one in sets.items() for chart in set_charts(name, one))],
        records=[{"set": name, "task": task, **set_record(one), "faults": faults.get(name, {})} for name, one in counted.items()],
        notes=notes,
    )


def _tagger() -> tuple[Tag | None, tuple[str, ...]]:
    try:
        return load_tagger().tag, ()
    except BackendError as exc:
        return None, (f"Parts of speech of answers (Figure 10 (c)) are left out: {exc}",)


def _names(paths: Sequence[Path]) -> list[str]:
    names = [path.name.removesuffix(".gz").removesuffix(".csv") for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.parent.name}/{name}" for path, name in zip(paths, names, strict=True)]
    if len(set(names)) < len(names):
        raise InputError("Two files of questions have one name. Give each once.")
    return names


# ---------------------------------------------------------------- charts


def _comparisons(sets: Mapping[str, QuestionStatistics]) -> list[Chart]:
    """Return the lengths of several sets, one line each, as in Figure 10 (a) and (b)."""
    if len(sets) < 2:
        return []
    asked = {name: _shares(one.question_words["all"].counts) for name, one in sets.items()}
    answered = {name: _shares(one.answer_words["all"].counts) for name, one in sets.items()}
    return [
        _lines("Words a question, by set", "Figure 10 (a).", asked, "questions"),
        _lines("Words an answer, by set", "Figure 10 (b).", answered, "answers"),
    ]


def set_charts(name: str, one: QuestionStatistics) -> list[Chart]:
    """Return the figures of a set; those of answers are left out where it has none."""
    charts = [_bars(f"{name}: types of questions", "Figure 3 (a).", _type_bars(one))]
    if one.openings:
        charts.append(_lines(f"{name}: words a question", "Figure 3 (b).", _by_group(one.question_words), "questions"))
    if one.answer_words["all"].counts:
        charts.append(_lines(f"{name}: words an answer", "Figure 3 (c).", _by_group(one.answer_words), "answers"))
    if one.openings:
        charts.append(_bars(f"{name}: first words of questions", 'Figure 7, without "the".', opening_bars(one.openings)))
    videos = {name: _shares(Counter(one.per_video.values()))}
    charts.append(_lines(f"{name}: questions a video", "Figure 8 (a).", videos, "videos"))
    if one.frequent_words:
        about = "Figure 9: without stop words, yes and no."
        charts.append(_bars(f"{name}: frequent words of answers", about, _count_bars(one.frequent_words.most_common(WORDS))))
    if one.parts_of_speech:
        about = "Figure 10 (c)."
        charts.append(_bars(f"{name}: parts of speech in answers", about, _share_bars(one.parts_of_speech.most_common())))
    return charts


def _bars(title: str, about: str, bars: Sequence[Bar]) -> Chart:
    return Chart(title, about, draw_bars(bars, title))


def _lines(title: str, about: str, lines: Mapping[str, Mapping[int, float]], of: str) -> Chart:
    return Chart(title, f"{about} Share of {of} in %. {line_legend(list(lines))}".strip(), draw_lines(lines, title, unit=" %"))


def _by_group(words: Mapping[str, Lengths]) -> dict[str, dict[int, float]]:
    return {group: _shares(words[group].counts) for group in GROUPS if words[group].counts}


def _shares(counts: Counter[int]) -> dict[int, float]:
    """Return each number with its share in percent."""
    total = counts.total()
    return {number: 100 * count / total for number, count in sorted(counts.items())}


def _type_bars(one: QuestionStatistics) -> list[Bar]:
    bars = []
    for group in GROUPS:
        kinds = [(kind, count) for kind, count in sorted(one.types.items(), key=lambda row: -row[1]) if kind[0] == group]
        for level, (name, count) in enumerate([(group, sum(count for _, count in kinds)), *kinds]):
            bars.append(Bar(name, count, f"{count:,} · {100 * count / one.questions:.1f} %", min(level, 1)))
    return bars


def opening_bars(openings: Counter[tuple[str, ...]]) -> list[Bar]:
    """Return the most frequent first words, and below each what follows most often: two words, then three."""
    by_length = [Counter[tuple[str, ...]]() for _ in range(4)]
    for words, count in openings.items():
        for length in range(1, len(words) + 1):
            by_length[length][words[:length]] += count
    total = openings.total()
    bars: list[Bar] = []

    def add(start: tuple[str, ...], most: int) -> None:
        length = len(start) + 1
        below = [(words, count) for words, count in by_length[length].items() if words[:-1] == start]
        for words, count in sorted(below, key=lambda row: (-row[1], row[0]))[:most]:
            if count < LEAST_SHARE * total:
                break
            bars.append(Bar(" ".join(words), count, f"{100 * count / total:.1f} %", length - 1))
            if length < 3:
                add(words, BELOW_OPENING)

    add((), OPENINGS)
    return bars


def _count_bars(counts: Sequence[tuple[str, int]]) -> list[Bar]:
    return [Bar(name, count, f"{count:,}") for name, count in counts]


def _share_bars(counts: Sequence[tuple[str, int]]) -> list[Bar]:
    total = sum(count for _, count in counts)
    return [Bar(name, count, f"{100 * count / total:.1f} %") for name, count in counts]


# ---------------------------------------------------------------- records


def set_record(one: QuestionStatistics) -> dict[str, Any]:
    """Return the statistics of a set as JSON has them; lists of words hold the hundred most frequent."""
    lengths = {"question_words": one.question_words, "answer_words": one.answer_words}
    return {
        "questions": one.questions,
        "videos": one.videos,
        "types": dict(sorted(one.types.items())),
        "shares": {name: round(one.type_share(name), 6) for name in (*GROUPS, "CW", "CH", "TPN", "TC", "DC", "DL", "DO", "DB")},
        "why_share": None if one.why_share is None else round(one.why_share, 6),
        **{name: {group: _length_record(words[group]) for group in ("all", *GROUPS)} for name, words in lengths.items()},
        "questions_a_video": {str(number): count for number, count in sorted(Counter(one.per_video.values()).items())},
        "openings": {" ".join(words): count for words, count in one.openings.most_common(MOST_OF_LIST)},
        "frequent_words": dict(one.frequent_words.most_common(MOST_OF_LIST)),
        "parts_of_speech": dict(one.parts_of_speech.most_common()),
        "yes_no": {word: one.yes_no[word] for word in ("yes", "no")},
        "places": [one.places[place] for place in range(5)],
    }


def _length_record(lengths: Lengths) -> dict[str, Any]:
    mean, share = lengths.mean, lengths.share_up_to(6)
    return {
        "mean": None if mean is None else round(mean, 6),
        "up_to_6": None if share is None else round(share, 6),
        "counts": {str(number): count for number, count in sorted(lengths.counts.items())},
    }
