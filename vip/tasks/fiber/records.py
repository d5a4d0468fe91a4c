"""Records of FIBER in the authors' form: a list of objects, read and written one at a time.

    {"video_id", "video_start_time", "video_end_time", "caption", "masked_caption", "label", "additional_answers": [[str, …] a worker]}

Training records have no additional answers. A worker's first answer is the most natural one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vip import store
from vip.errors import InputError
from vip.metrics.human_agreement import BlankAnswers
from vip.tasks.json_rows import iterate_array, open_bounded
from vip.untrusted import one_line, printable_json

BLANK = "_____"
FORM = '[{"video_id": …, "masked_caption": …, "label": …, "additional_answers": [[…]]}, …]'
MOST_BYTES = 2**30
MOST_LETTERS = 10_000  # of a caption
MOST_ANSWERS = 1000
"""Of a record, and of its workers: each is held against all others. FIBER has some ten workers."""
Seconds = Annotated[int, Field(ge=-(10**9), le=10**9)]


class FiberRecord(BaseModel):
    """A caption with one blank, and what people filled it with."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    video_id: str = Field(max_length=1000)
    video_start_time: Seconds
    video_end_time: Seconds
    caption: str = Field(max_length=MOST_LETTERS)
    masked_caption: str = Field(max_length=MOST_LETTERS)
    label: str = Field(max_length=MOST_LETTERS)
    additional_answers: list[list[str]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_blank(self) -> FiberRecord:
        if self.masked_caption.count(BLANK) != 1:
            raise ValueError(f"the masked caption has {self.masked_caption.count(BLANK)} blanks ({BLANK}) instead of one")
        return self

    @property
    def clip_id(self) -> str:
        """As VATEX names it: `<id>_<start>_<end>`, seconds with six digits."""
        return f"{self.video_id}_{self.video_start_time:06}_{self.video_end_time:06}"

    @property
    def answers(self) -> BlankAnswers:
        return BlankAnswers(self.label, tuple(map(tuple, self.additional_answers)))


def read_records(path: Path) -> Iterator[FiberRecord]:
    """Yield the records of a file.

    Raises:
        InputError: it is damaged; the message names the row.
    """
    with open_bounded(path, MOST_BYTES) as file:
        for number, row in enumerate(iterate_array(file, path, FORM), 1):
            try:
                record = FiberRecord.model_validate(row)
            except ValidationError as exc:
                error = exc.errors()[0]
                where = ".".join(map(str, error["loc"]))
                raise InputError(
                    f"{path}, row {number:,}: {one_line(where)[:80]}{': ' if where else ''}"
                    f"{one_line(error['msg'].removeprefix('Value error, '))[:200]}. Expected {FORM}."
                ) from exc
            workers = record.additional_answers
            if max(len(workers), sum(map(len, workers))) > MOST_ANSWERS:
                raise InputError(f"{path}, row {number:,}: it has more than {MOST_ANSWERS:,} workers or answers. Give a part of them.")
            yield record


def write_records(path: Path, records: Iterable[FiberRecord]) -> int:
    """Write a file of records and return their number."""
    count = 0
    with store.replacing(path) as file:
        for record in records:
            row: dict[str, Any] = record.model_dump()
            if not record.additional_answers:
                del row["additional_answers"]
            file.write((("[" if not count else ",") + "\n" + printable_json(row)).encode())
            count += 1
        file.write(b"\n]\n" if count else b"[]\n")
    return count
