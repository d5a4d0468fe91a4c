"""What a data set is made of: its row of Table 1 and its domains as in Figure 2 of Himakunthala et al. 2023.

In: run folders, folders of them, data sets of `vip batch`. Out: two tables. One video is in memory at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vip.caption_length import tokens_in
from vip.dataset.items import UNKNOWN_VERTICAL
from vip.dataset.shards import read_shards, samples_in
from vip.errors import InputError
from vip.export.sources import sources_of
from vip.records import Description
from vip.tasks.table import Table, TableCell, number_cell
from vip.wording import counted

PUBLISHED = (
    ("MSR-VTT", "", "", "Open", "20.7s", "9.6", "3K"),
    ("YouCook2", "", "", "Cooking", "5.26m", "8.8", "2K"),
    ("ActyNet-Cap", "", "", "Open", "2m", "13.5", "5K"),
    ("HowTo100M", "", "", "Instructional", "18s", "4", "24K"),
    ("VATEX", "", "", "Open", "10s", "15.2", "6K"),
    ("VideoStory", "yes", "", "Events", "12.6m", "12.1", "16"),
    ("WebVid-2M", "", "", "Open", "18s", "12", "5K"),
    ("VIP", "yes", "yes", "Open", "3.6m", "114.2", "1.5K"),
)
"""Table 1 as printed."""
COLUMNS = ("Data set", "Frame level", "Structured", "Domain", "Video length", "Caption tokens", "Test samples")
PAPER = "Himakunthala et al. 2023"


class _Video(NamedTuple):
    length_s: float | None
    domains: Sequence[str]
    captions: Sequence[str]
    structured: int


@dataclass(slots=True)
class DataSetFacts:
    """Counts over the videos of a data set."""

    videos: int = 0
    seconds: float = 0.0
    timed: int = 0
    """Videos whose length is known."""
    captions: int = 0
    tokens: int = 0
    structured: int = 0
    """Keyframes with a FAMOuS description."""
    domains: Counter[str] = field(default_factory=Counter)
    """Videos of each domain; a video may be in several."""

    def add(self, video: _Video) -> None:
        self.videos += 1
        if video.length_s is not None:
            self.timed, self.seconds = self.timed + 1, self.seconds + video.length_s
        self.captions += len(video.captions)
        self.tokens += sum(map(tokens_in, video.captions))
        self.structured += video.structured
        self.domains.update(dict.fromkeys(video.domains, 1))


def measure_data_set(paths: Sequence[str]) -> DataSetFacts:
    """Return the counts.

    Raises:
        InputError: there is no run and no data set.
        StoreError: a run or a shard is damaged.
    """
    facts = DataSetFacts()
    for video in _videos(paths):
        facts.add(video)
    if not facts.videos:
        raise InputError(f"{', '.join(paths)}: no video is there. Give run folders, or what vip batch wrote.")
    return facts


def _videos(paths: Sequence[str]) -> Iterator[_Video]:
    for source in sources_of(paths):
        if source.run is None:
            for shard in read_shards(source.address, lambda note: None):
                for sample in samples_in(source.address, shard):
                    said = [frame.description for frame in sample.frames if frame.description]
                    domains = [name for name in sample.video.verticals if name != UNKNOWN_VERTICAL]
                    yield _Video(sample.video.duration_s, domains, *_texts(said))
            continue
        manifest = source.run.manifest
        video = manifest.video if manifest else None
        yield _Video(video.end_time_s - video.start_time_s if video else None, (), *_texts(source.run.descriptions))


def _texts(said: Sequence[Description]) -> tuple[list[str], int]:
    return [one.dense_caption for one in said if one.dense_caption], sum(one.famous is not None for one in said)


def data_set_tables(facts: DataSetFacts, *, name: str, samples: int | None) -> list[Table]:
    """Return Table 1 with the row of a data set below the published ones, and its domains as in Figure 2.

    Args:
        name: of the data set.
        samples: that were scored; None where nobody knows.
    """
    length_s = facts.seconds / facts.timed if facts.timed else None
    tokens = facts.tokens / facts.captions if facts.captions else None
    domain = "–" if not facts.domains else "Open" if len(facts.domains) > 1 else next(iter(facts.domains))
    own = [TableCell(name), TableCell("yes" if facts.captions else ""), TableCell("yes" if facts.structured else ""), TableCell(domain)]
    own += [_length(length_s), number_cell(tokens, digits=1), TableCell("–") if samples is None else TableCell(f"{samples:,}", samples)]
    rows = [*([TableCell(text) for text in row] for row in PUBLISHED), own]
    notes = [f"{name}: {counted(facts.videos, 'video')}; tokens are words and punctuation marks. The paper names no tokenizer."]
    if facts.timed < facts.videos:
        notes.append(f"{counted(facts.videos - facts.timed, 'video')} of unknown length left out of the mean length.")
    title = f"Statistics of data sets (Table 1 of {PAPER})"
    table = Table(title=title, columns=COLUMNS, rows=tuple(map(tuple, rows)), notes=tuple(notes), labels=4)
    return [table, *([_domain_table(facts, name)] if facts.domains else [])]


def _length(length_s: float | None) -> TableCell:
    if length_s is None:
        return number_cell(None)
    return TableCell(f"{length_s / 60:.1f}m" if length_s >= 60 else f"{length_s:.1f}s", round(length_s, 6))


def _domain_table(facts: DataSetFacts, name: str) -> Table:
    rows = [
        (TableCell(domain), TableCell(f"{count:,}", count), number_cell(100 * count / facts.videos, digits=1))
        for domain, count in sorted(facts.domains.items(), key=lambda one: (-one[1], one[0]))
    ]
    return Table(
        title=f"Domains of {name} (Figure 2 of {PAPER})",
        columns=("Domain", "Videos", "Share in %"),
        rows=tuple(rows),
        notes=("A video may be in several domains, so that the shares may add up to more than 100 %.",),
    )
