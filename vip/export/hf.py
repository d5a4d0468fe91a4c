"""`--to hf`: a folder that `datasets.load_dataset` loads, and that the Hugging Face Hub shows.

In: samples. Out: OUT/data/train-00000.parquet …, and README.md, the card that says what is in it and how to load it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vip.config import LANGUAGES
from vip.dataset import storage
from vip.dataset.rows import VideoSample
from vip.dataset.sanitize import without_secrets
from vip.dataset.schema import COLUMNS
from vip.dataset.shards import write_file
from vip.dataset.statistics import NameCounts
from vip.export.in_shards import in_shards
from vip.export.markdown import escape_markdown
from vip.untrusted import one_line, printable_json
from vip.wording import counted

STALE_FILES = r"data/train-\d{5,}\.parquet"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10_000_000, "1M<n<10M"))
SIZES_ABOVE = "10M<n<100M"
CODES = {language: code for code, language in reversed(LANGUAGES.items())}
MOST_ENGINES = 10  # that the card names


def write(samples: Iterator[VideoSample], out: str, note: Callable[[str], None]) -> int:
    """Write the Parquet files and the card."""
    facts = _CardFacts()
    files = 0
    for number, some in in_shards(facts.count_samples(samples)):
        write_file(number, some, "parquet", out, "data", f"train-{number:05d}.parquet")
        files += 1
    storage.write_whole(facts.card(without_secrets(out).rstrip("/").rpartition("/")[2]).encode(), out, "README.md")
    return files + 1


class _CardFacts:
    """The facts on the card, counted while the samples are written."""

    def __init__(self) -> None:
        self.videos = self.keyframes = 0
        self.seconds = 0.0
        self.described = 0
        self.languages: set[str] = set()
        self.engines = NameCounts()

    def count_samples(self, samples: Iterator[VideoSample]) -> Iterator[VideoSample]:
        """Yield the samples and count them."""
        for sample in samples:
            self.videos += 1
            self.keyframes += len(sample.frames)
            self.seconds += sample.video.duration_s or 0
            rows = [frame.description for frame in sample.frames if frame.description]
            self.described += len(rows)
            self.languages |= {CODES[row.language] for row in rows if row.language in CODES}
            for row in rows:
                self.engines.add(one_line(row.engine))
            yield sample

    def card(self, name: str) -> str:
        """Return the text of README.md."""
        title = one_line(name)
        head = {
            "pretty_name": title,
            "task_categories": ["image-to-text", "text-to-image"],
            "language": sorted(self.languages),
            "size_categories": [next((text for most, text in SIZES if self.keyframes < most), SIZES_ABOVE)],
            "tags": ["video", "keyframes", "captions"],
            "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "data/*.parquet"}]}],
        }
        engines, hours = [engine for engine, _ in self.engines.most() if engine], f"{self.seconds / 3600:,.1f} hours"
        named = sorted(map(escape_markdown, engines[:MOST_ENGINES])) + ["others"] * (len(engines) > MOST_ENGINES)
        described = f"{self.described:,} of them described{' by ' if named else ''}{', '.join(named)}"
        quoted = printable_json(name)
        lines = [f"| `{column}` | {text} |" for column, (_, text) in COLUMNS.items()]
        return "\n".join(
            (
                "---",
                *(f"{key}: {printable_json(value)}" for key, value in head.items() if value),  # JSON is YAML
                *("---", "", f"# {escape_markdown(title)}", ""),
                f"{counted(self.keyframes, 'keyframe')} of {counted(self.videos, 'video')} ({hours}), {described}.",
                *("", "```python", "from datasets import load_dataset", "", f'data = load_dataset({quoted}, split="train")', "```", ""),
                *("The rights in the pictures are those of the videos that `source` names.", ""),
                *("| Column | |", "|---|---|", *lines, ""),
            )
        )
