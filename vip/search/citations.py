"""Citations of frames: `[talk@1:02]`, each checked to be a frame that was shown.

In: an answer of an engine, which cites frames by their numbers (`[2]`), and the labels of the frames that it was shown. Out: the answer
with labels in place of the numbers. What looks like a citation and names no such frame is taken out, and listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from vip.untrusted import one_line

_BRACKETS = str.maketrans("[]", "()")  # a name with brackets would end its citation
_CITATION = re.compile(r"[\[【][^\[\]【】]*[\]】]|(?<![^\s\[\]【】()])[^\s\[\]【】()]*@-?\d+:\d\d(?::\d\d)?(?:\.\d+)?")
_NUMBERS = re.compile(r"(?:frames?)?[\s#]*+\d++(?:(?:\s*+(?:,|;|&|-|–|and)|\s)\s*+(?:frames?)?[\s#]*+\d++)*+", re.IGNORECASE)
_BEFORE_MARK = re.compile(r"\s+(?=[.,;:!?)]|$)")
MOST_DIGITS = 9  # of the number of a frame


@dataclass(frozen=True, slots=True)
class CheckedText:
    """An answer whose citations were checked."""

    text: str
    """Each citation in it is the label of a frame in `cited`."""
    cited: tuple[int, ...]
    """Frames by number, in the order in which they are cited."""
    dropped: tuple[str, ...]
    """Citations of frames that were not shown."""


def clock(time_s: float) -> str:
    """Return `1:02`, `1:00:02`: the second that a time lies in."""
    whole = int(abs(time_s))
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if time_s < 0 and whole else ""
    return f"{sign}{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{sign}{minutes}:{seconds:02d}"


def label(name: str, time_s: float | None, keyframe_id: str) -> str:
    """Return `talk@1:02`; for a picture without a time the id of its keyframe."""
    words = one_line(keyframe_id if time_s is None else name).translate(_BRACKETS)
    return words if time_s is None else f"{words}@{clock(time_s)}"


def unlike_names(names: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return a name for each run folder that no other has, from pairs of folder and video: the video's, or else an end of the path."""
    videos = dict(names)
    counts = Counter(videos.values())
    taken = {video for video, count in counts.items() if count == 1}
    alike = [PurePath(folder) for folder, video in videos.items() if counts[video] > 1]
    return {folder: video if counts[video] == 1 else _ending(PurePath(folder), alike, taken) for folder, video in videos.items()}


def _ending(folder: PurePath, others: Sequence[PurePath], taken: Collection[str]) -> str:
    """Return the shortest end of a path that no other has."""
    for count in range(1, len(folder.parts)):
        ending = "/".join(folder.parts[-count:])
        if ending not in taken and not any(other.parts[-count:] == folder.parts[-count:] for other in others if other != folder):
            return ending
    return str(folder)


def check_citations(text: str, listed: Sequence[int], labels: Mapping[int, str]) -> CheckedText:
    """Return the answer with labels in place of the numbers of frames, those that are only listed at its end.

    Args:
        listed: the numbers that the engine gave apart from its text.
        labels: of the frames that it was shown, by number.
    """
    cited: dict[int, None] = {}
    dropped: dict[str, None] = {}
    by_label: dict[str, int] = {}
    for number, name in labels.items():
        by_label.setdefault(name, number)

    def replace(match: re.Match[str]) -> str:
        inside = match[0].strip("[]【】").strip()
        if inside in by_label:
            numbers = [by_label[inside]]
        elif _NUMBERS.fullmatch(inside):
            numbers = _known(re.findall(r"\d+", inside), labels, dropped)
        elif "@" in inside:
            dropped[inside] = None
            numbers = []
        else:
            return match[0]
        cited.update(dict.fromkeys(numbers))
        return " ".join(f"[{name}]" for name in dict.fromkeys(labels[number] for number in numbers))

    checked = _CITATION.sub(replace, text)
    if dropped:
        checked = _BEFORE_MARK.sub("", " ".join(checked.replace("()", "").split()))
    inline = {labels[number] for number in cited}
    more = [number for number in _known(map(str, listed), labels, dropped) if number not in cited]
    cited.update(dict.fromkeys(more))
    for name in dict.fromkeys(labels[number] for number in more):
        if name not in inline:
            checked += f" [{name}]"
    return CheckedText(checked.strip(), tuple(cited), tuple(dropped))


def _known(numbers: Iterable[str], labels: Mapping[int, str], dropped: dict[str, None]) -> list[int]:
    """Return the numbers of frames that were shown; the others are put into `dropped`."""
    found: list[int] = []
    for text in numbers:
        if len(text) <= MOST_DIGITS and int(text) in labels:
            found.append(int(text))
        else:
            dropped[f"frame {text[:MOST_DIGITS]}"] = None
    return list(dict.fromkeys(found))
