"""Origin, limits and loading of a data set: the part of a data card that is no figure.

In: a `DataCard`. Out: tables, sentences, and code that runs. Texts of hosts and lists among them are as they came.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from vip.config import Settings
from vip.corpus.card.tables import MOST_ROWS, CardTable, DataCard, share
from vip.dataset.schema import COLUMNS
from vip.dataset.shard_names import FOLDER
from vip.dataset.storage import join
from vip.wording import counted

TITLES = {"batch": "Settings of the batch", "settings": "Settings", "captions": "Settings of the captions", "backends": "What auto became"}
SECRET_SETTINGS = {"key_file", "base_url"}
MOST_NOTES = 8


def columns() -> CardTable:
    """Return the columns of the rows of a data set."""
    rows = tuple((name, kind, text) for name, (kind, text) in COLUMNS.items())
    return CardTable("Columns", ("Column", "Type", "Meaning"), rows, "One row a keyframe; those of a video stand together, in order.")


def introduction(card: DataCard) -> str:
    """Return what the data set is, in two sentences."""
    by = ", ".join(name for name, _ in card.counts.keyframes.engines.most(5))
    words = "dense captions and structured descriptions (Focus, Action, Mood, Objects, Setting)"
    described = f", with {words} by {by}" if card.is_described else ""
    return f"Keyframes of {counted(card.counts.videos.videos, 'video')}{described}. Made by vip batch, as described in the VIP paper."


def options_given(card: DataCard) -> list[str]:
    """Return the settings that are not the defaults, as options."""
    if card.settings is None:
        return []
    chosen = card.settings
    given: list[Settings] = [chosen.batch, chosen.extraction, *([chosen.captioning] if chosen.batch.caption else [])]
    values = {
        name: value for one in given for name, value in one.model_dump(mode="json", exclude_defaults=True, exclude=SECRET_SETTINGS).items()
    }
    return [f"--{name.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(_text(value))}") for name, value in values.items()]


def provenance_tables(card: DataCard) -> Iterator[CardTable]:
    """Yield settings, backends, versions and devices as the videos say; several where they differ."""
    groups: dict[str, list[tuple[str, str]]] = {}
    if card.settings:
        groups["batch"] = [(name, _text(value)) for name, value in card.settings.batch.model_dump(mode="json").items()]
    for key, names in sorted(card.counts.videos.made.items()):
        group, _, name = key.partition(".")
        most = names.most(5)
        whole = len(most) == 1 and not names.others
        groups.setdefault(group, []).append(
            (name, ", ".join(value if whole else f"{value} ({counted(count, 'video')})" for value, count in most))
        )
    groups.setdefault("versions", []).extend(groups.pop("device", []))
    groups["prompts"] = [(name, counted(count, "request")) for name, count in card.counts.keyframes.prompts.most(MOST_ROWS)]
    for group, rows in groups.items():
        if rows:
            yield CardTable(TITLES.get(group, group.capitalize()), ("", ""), tuple(rows))


def _text(value: object) -> str:
    """Return a value as its option takes it."""
    if value and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ",".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- what it is not


def limits(card: DataCard) -> list[str]:
    """Return what those who build on the data set should know."""
    return [*_missing(card), *_captions(card), *_rights(card)]


def _missing(card: DataCard) -> Iterator[str]:
    status, counts = card.status, card.counts
    if not status.is_finished:
        waits = counted(status.waiting, "video waits", "videos wait")
        yield f"The batch has not ended: {waits}. This card describes what was there when it was written."
    if status.failed:
        missing = "is" if status.failed == 1 else "are"
        of = f"{status.failed:,} of {counted(status.chosen, 'chosen video')}"
        yield f"{of} failed ({share(status.failed, status.chosen)}), and {missing} missing here."
    if status.not_chosen:
        left_out = counted(status.not_chosen, "video of the list was", "videos of the list were")
        yield f"{left_out} not chosen: what is left is no even sample of the list."
    if status.undescribed:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in counts.keyframes.failures.most(5))
        why = f" ({kinds})" if kinds else ""
        yield f"{counted(status.undescribed, 'keyframe')} could not be described{why}; the column caption_failure says why."
    if counts.broken:
        yield f"{counted(counts.broken, 'shard is', 'shards are')} not whole, and not counted here. The first: {counts.problems[0]}"
    for note, count in counts.videos.notes.most(MOST_NOTES):
        yield f"Of {counted(count, 'video')} the run notes: {note}"


def _captions(card: DataCard) -> Iterator[str]:
    words = card.counts.keyframes
    if not words.described:
        yield "Nothing is described. Run vip batch with --caption into another folder for captions."
        return
    if words.engines.counts.get("offline"):
        yield "The engine offline says in sentences what was measured and detected; it does not understand pictures."
    yield "Captions were written by machines and not checked by people: they may name what is not there, and miss what is."
    if not words.verified:
        yield "No caption was held against its picture (--verify)."
        return
    verdicts, claims = words.verdicts.counts, words.verdicts.total
    found = ", ".join(f"{share(verdicts.get(name, 0), claims)} {name}" for name in ("supported", "unsupported", "unchecked"))
    yield (
        f"{share(words.verified, words.described)} of the captions were held against their pictures. "
        f"Of {counted(claims, 'claim')}: {found}. "
        f"A second look corrected {counted(words.corrected, 'caption')}."
    )


def _rights(card: DataCard) -> Iterator[str]:
    if card.counts.videos.subtitled:
        yield "Subtitles may be the automatic ones of the host."
    yield "The rights in the pictures are those of the videos that the column source names; licences are what hosts say, and may be wrong."


# ---------------------------------------------------------------- how to load it


def loading(card: DataCard) -> list[tuple[str, str]]:
    """Return libraries, and code that loads the data set with each."""
    found = []
    for kind, first in card.counts.files.items():
        folder = join(card.out, FOLDER)
        files, one = (json.dumps(join(folder, name)) for name in (f"*.{first.rpartition('.')[2]}", first))
        load = f'load_dataset("{kind}", data_files={files}, split="train", streaming=True)'
        found.append(("datasets", f"from datasets import load_dataset\n\ndata = {load}"))
        if kind == "parquet":
            names = json.dumps(["video_id", "time_s", "dense_caption" if card.is_described else "sharpness"])
            found.append(("pandas, one shard without its pictures", f"import pandas\n\nrows = pandas.read_parquet({one}, columns={names})"))
        else:
            read = f'webdataset.WebDataset({one}, shardshuffle=False).decode("pil")'
            found.append(("webdataset, one shard", f"import webdataset\n\ndata = {read}"))
    return [
        *found,
        ("vip", f"vip export {shlex.quote(card.out)} --to hf -o hub/    # also parquet, webdataset, jsonl, csv, coco, vtt, sheet"),
    ]
