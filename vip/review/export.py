"""What a review came to, for other programs: one row an item, as JSON lines or as a table.

In: a review. Out: OUT.jsonl or OUT.csv with the reviewed texts, those of the engine, and who said what. The engine's own files stay as
they are.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vip import files
from vip.errors import StoreError, UsageError
from vip.export.csv import cell
from vip.review.fields import COMMENT, FINAL, WRONG, objects_of
from vip.review.rates import is_wrong
from vip.review.rich import LISTS
from vip.review.state import ReviewState
from vip.untrusted import printable_json
from vip.wording import option

SUFFIXES = (".jsonl", ".csv")


def export_review(state: ReviewState, out: Path, *, overwrite: bool = False) -> int:
    """Write the rows to a file, and return how many.

    Raises:
        UsageError: the name ends in neither `.jsonl` nor `.csv`, or the file exists.
        StoreError: it cannot be written.
    """
    if out.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{out}: the name ends in neither .jsonl nor .csv. Give one that does.")
    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists. Choose another name, or add {option('overwrite')}.")
    write = _write_csv if out.suffix.lower() == ".csv" else _write_jsonl
    try:
        with files.replacing(out) as file:
            return write(rows_of(state), file)
    except OSError as exc:
        raise StoreError(f"{out} cannot be written: {exc.strerror}. Choose another place.") from exc


def rows_of(state: ReviewState) -> Iterator[dict[str, Any]]:
    """Yield a row for each item, in order."""
    counts: dict[str, int] = {}
    last: dict[str, str] = {}
    for action in state.log.read():
        counts[action.item] = counts.get(action.item, 0) + 1
        last[action.item] = action.created_utc
    fields = state.index.fields
    for item in state.reviewed_items():
        texts = state.texts(item.id)
        original = item.original
        changed = {name: state.shared[item.id, name].reviewer for name in item.fields if texts[name] != original[name]}
        yield {
            "item": item.id,
            "video": item.video,
            "time_s": item.time_s,
            "engine": item.engine,
            **_listed(texts, fields),
            "original": _listed(original, fields),
            "changed_by": changed,
            "verdicts": state.said(item.id, "verdict"),
            "verdicts_stage_2": state.said(item.id, "verdict.2"),
            "verdicts_stage_3": state.verdicts(item.id, "3"),
            "verdicts_stage_4": state.verdicts(item.id, "4"),
            "verdict_settled": state.value(item.id, f"{FINAL}verdict"),
            "wrong": [name for name in item.fields if is_wrong(state, item.id, name)],
            "marked_wrong_by": {name: sorted(said) for name in item.fields if (said := state.said(item.id, f"{WRONG}:{name}"))},
            "comments": state.said(item.id, COMMENT),
            "actions": counts.get(item.id, 0),
            "last_action_utc": last.get(item.id),
        }


def _listed(texts: dict[str, str], fields: Sequence[str]) -> dict[str, Any]:
    """Return lists as lists; None for the fields that only other items have."""
    return {name: list(objects_of(texts[name])) if name in ("objects", *LISTS) and name in texts else texts.get(name) for name in fields}


def _write_jsonl(rows: Iterator[dict[str, Any]], file: Any) -> int:
    count = 0
    for row in rows:
        file.write(printable_json(row).encode() + b"\n")
        count += 1
    return count


def _write_csv(rows: Iterator[dict[str, Any]], file: Any) -> int:
    """UTF-8 with a byte order mark, which Excel needs; no cell becomes a formula."""
    file.write(codecs.BOM_UTF8)
    count = 0
    for count, row in enumerate(rows, 1):
        flat = {name: _flat(value) for name, value in row.items() if name != "original"}
        flat |= {f"original_{name}": _flat(value) for name, value in row["original"].items()}
        text = io.StringIO(newline="")
        table = csv.writer(text)
        if count == 1:
            table.writerow(flat)
        table.writerow([cell(value) for value in flat.values()])
        file.write(text.getvalue().encode("utf-8", "replace"))
    return count


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return [f"{name}: {', '.join(one) if isinstance(one, list) else one}" for name, one in value.items()]
    return value
