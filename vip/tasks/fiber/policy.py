"""Who may fill blanks, how their work is reviewed, and what it is paid (Castro et al. 2022, section 3.2; the authors' code for the bounds).

In: a policy in TOML; each key may be left out. Out: a record with the paper's values for what is not named.

    workers_per_hit = 9
    countries = ["CA", "US"]
    approved_hits = 1000          # at least, on Mechanical Turk
    approval_percent = 92         # at least
    disqualified = ["A1B2C3"]     # ids of workers whose answers do not count

    [review]
    questions = 10                # of a worker, at most
    reject_below = 1.0            # correct answers a question
    warn_below = 1.5              # rejected too, with fewer questions than
    enough_questions = 25

    [pay]                         # cents
    hit = 20
    answer = 2                    # each correct one from the 11th to the 25th; the authors' code pays 1
    best = 20                     # to the worker with the most correct answers of a HIT
    thanks = 1                    # to a worker who gets nothing else; 0: none
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vip import store
from vip.errors import InputError
from vip.files import read_named
from vip.untrusted import one_line, parse_toml

MOST_BYTES = 2**20
Cents = Annotated[int, Field(ge=0, le=100_000)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class ReviewPolicy(_Part):
    """How many answers of a worker are looked at, and how good they must be."""

    questions: int = Field(10, ge=1)
    reject_below: float = Field(1.0, ge=0)
    """Correct answers a question."""
    warn_below: float = Field(1.5, ge=0)
    enough_questions: int = Field(25, ge=0)
    """With fewer, a worker below `warn_below` is rejected too."""


class PayPolicy(_Part):
    """Cents. The paper and the page of the authors imply 2 an answer (20 + 15 x 2 = 50), their code pays 1."""

    hit: Cents = 20
    answer: Cents = 2
    covered_answers: int = Field(10, ge=0)
    """Of a HIT, by its pay."""
    most_answers: int = Field(15, ge=0)
    """Of a HIT, beyond those."""
    best: Cents = 20
    thanks: Cents = 1


class WorkerPolicy(_Part):
    """Who may work, and how work is reviewed and paid."""

    workers_per_hit: int = Field(9, ge=1, le=1000)
    countries: tuple[Annotated[str, Field(pattern="^[A-Z]{2}$")], ...] = Field(("CA", "US"), strict=False)
    approved_hits: int = Field(1000, ge=0)
    approval_percent: int = Field(92, ge=0, le=100)
    disqualified: frozenset[str] = Field(frozenset(), strict=False)
    review: ReviewPolicy = ReviewPolicy()
    pay: PayPolicy = PayPolicy()

    @model_validator(mode="after")
    def _check_bounds(self) -> WorkerPolicy:
        if self.review.warn_below < self.review.reject_below:
            raise ValueError("review.warn_below is less than review.reject_below")
        return self


def read_policy(path: Path | None, *, paper: WorkerPolicy = WorkerPolicy()) -> WorkerPolicy:  # noqa: B008 - frozen
    """Return the policy of a file; that of the paper where there is none.

    Args:
        paper: what stands for the keys that the file does not name.

    Raises:
        InputError: it cannot be read, or a key or value is wrong.
    """
    if path is None:
        return paper
    try:
        return WorkerPolicy.model_validate({**paper.model_dump(), **parse_toml(read_named(path, most_bytes=MOST_BYTES))})
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror or exc}. Check the path.") from exc
    except ValidationError as exc:
        error = exc.errors()[0]
        where = one_line(".".join(map(str, error["loc"])))[:80]
        raise InputError(f"{path}{f', {where}' if where else ''}: {one_line(error['msg'])[:200]}. The docs list the keys.") from exc
    except ValueError as exc:
        raise InputError(f"{path} is no TOML ({one_line(str(exc))[:120]}). Repair it.") from exc


def write_qualifications(path: Path, policy: WorkerPolicy) -> None:
    """Write what Mechanical Turk's API calls QualificationRequirements: countries, approved HITs, share of approved ones.

    Raises:
        StoreError: not writable.
    """
    places = [{"Country": country} for country in policy.countries]
    rows = [
        {"QualificationTypeId": "00000000000000000071", "Comparator": "In", "LocaleValues": places} if places else None,
        _at_least("00000000000000000040", policy.approved_hits) if policy.approved_hits else None,
        _at_least("000000000000000000L0", policy.approval_percent),
    ]
    with store.replacing(path) as file:
        file.write(json.dumps([row for row in rows if row], indent=1).encode() + b"\n")


def _at_least(qualification: str, value: int) -> dict[str, object]:
    return {"QualificationTypeId": qualification, "Comparator": "GreaterThanOrEqualTo", "IntegerValues": [value]}
