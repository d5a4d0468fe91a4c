"""The reviewed texts in place of the engine's, for exports.

In: samples of runs and data sets. Out: the same with the texts as the log beside them has them now, and who changed which. The log of a
run lies in its folder, or in the folder of runs that was reviewed; that of a data set beside its shards. Other texts stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vip.dataset import storage
from vip.dataset.rows import KeyframeRow, VideoSample
from vip.errors import StoreError, UsageError
from vip.export.sources import ExportSource
from vip.records import Description, Famous, Reviewed, RichFields
from vip.review.fields import ALL_TEXTS, most_letters, objects_of
from vip.review.log import NAME, Action, ReviewLog
from vip.review.rich import RICH_TEXTS, rich_texts, rich_value
from vip.store import Run

Changes = dict[str, dict[str, Action]]
"""Item -> text -> the last action on it."""


def logs_of_run(run: Run) -> tuple[Path, Path]:
    """Return where the log of a run may lie: in its folder, and in the folder of runs above."""
    return run.folder / NAME, run.folder.absolute().parent / NAME


class ReviewedTexts:
    """Puts reviewed texts into samples; each log is read once."""

    def __init__(self) -> None:
        self._logs: dict[Path, Changes] = {}

    def __call__(self, source: ExportSource, sample: VideoSample) -> VideoSample:
        """Return the sample with the reviewed texts.

        Raises:
            StoreError: a log is damaged.
        """
        found = [self._changes_of(source, sample, place) for place in range(len(sample.frames))]
        if not any(found):
            return sample
        frames = tuple(_with_texts(frame, changes) for frame, changes in zip(sample.frames, found, strict=True))
        return replace(sample, frames=frames)

    def descriptions(self, run: Run) -> dict[str, Description]:
        """Return the descriptions of a run with the reviewed texts; errors as of a call."""
        return {name: _revised(row, self._changes_of_keyframe(run, name)) for name, row in run.described.items()}

    def _changes_of(self, source: ExportSource, sample: VideoSample, place: int) -> dict[str, Action]:
        if source.run is None:
            folder = storage.local_path(source.address)
            return self._read(folder / NAME).get(sample.frames[place].keyframe.id, {}) if folder else {}
        return self._changes_of_keyframe(source.run, source.run.keyframes[place].id)  # in a sample the ids begin with the key of the video

    def _changes_of_keyframe(self, run: Run, name: str) -> dict[str, Action]:
        own, shared = logs_of_run(run)
        return self._read(own).get(name) or self._read(shared).get(f"{run.folder.name}/{name}", {})

    def _read(self, path: Path) -> Changes:
        if path not in self._logs:
            changes: Changes = {}
            if path.exists():
                with ReviewLog(path) as log:
                    for action in log.read():
                        if action.field in ALL_TEXTS:
                            _check(action, path)
                            changes.setdefault(action.item, {})[action.field] = action
            self._logs[path] = changes
        return self._logs[path]


def _check(action: Action, path: Path) -> None:
    """Check that a text is not too long, and fits a rich field; a log may come from a stranger."""
    if len(action.after or "") > most_letters(action.field):
        raise StoreError(f"{path}: damaged (action {action.number} has too long a text). Rename it, or restore it from a copy.")
    if action.field in RICH_TEXTS:
        try:
            rich_value(action.field, action.after or "")
        except UsageError as exc:
            raise StoreError(f"{path}: damaged (action {action.number}). {exc}") from exc


def _with_texts(frame: KeyframeRow, changes: dict[str, Action]) -> KeyframeRow:
    return replace(frame, description=_revised(frame.description, changes)) if frame.description and changes else frame


def _revised(before: Description, changes: dict[str, Action]) -> Description:
    after = {name: action.after or "" for name, action in changes.items()}
    famous = {name: objects_of(text) if name == "objects" else text for name, text in after.items() if name in Famous.model_fields}
    texts = before.famous.model_copy(update=famous)
    caption = after.get("dense_caption", before.dense_caption)
    changed = [name for name in Famous.model_fields if getattr(texts, name) != getattr(before.famous, name)]
    changed = [*(["dense_caption"] if caption != before.dense_caption else []), *changed]
    rich = _rich(before.rich, {name: text for name, text in after.items() if name in RICH_TEXTS})
    changed += [name for name in RICH_TEXTS if before.rich and getattr(rich, name) != getattr(before.rich, name)]
    if not changed:
        return before
    reviewed = _reviewed(before.reviewed, {name: changes[name] for name in changed})
    update = {"famous": texts, "dense_caption": caption, "rich": rich, "reviewed": reviewed}
    return before.model_copy(update=update)


def _rich(before: RichFields | None, after: dict[str, str]) -> RichFields | None:
    """Return the rich fields with the reviewed ones; a text that was put back is the engine's own, entry by entry."""
    if before is None:
        return None
    original = dict(zip(RICH_TEXTS, rich_texts(before), strict=True))
    return before.model_copy(update={name: rich_value(name, text) for name, text in after.items() if text != original[name]})


def _reviewed(earlier: Reviewed | None, last: dict[str, Action]) -> Reviewed:
    """Return who changed which text; what an earlier review changed in a data set that was exported from it stays known."""
    changed_by = {**(earlier.changed_by if earlier else {}), **{name: action.reviewer for name, action in last.items()}}
    fields = {*(earlier.fields if earlier else ()), *last}
    unknown = earlier.reviewers if earlier and not earlier.changed_by else ()  # of an older export: who, but not what
    dates = [action.created_utc for action in last.values()] + ([earlier.changed_utc] if earlier else [])
    ordered = {name: changed_by[name] for name in ALL_TEXTS if name in changed_by}
    return Reviewed(
        fields=tuple(name for name in ALL_TEXTS if name in fields),
        reviewers=tuple(dict.fromkeys([*unknown, *ordered.values()])),
        changed_by=ordered,
        changed_utc=max(dates),
    )
