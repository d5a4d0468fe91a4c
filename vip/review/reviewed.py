"""The reviewed texts in place of the engine's, for exports.

In: samples of runs and data sets. Out: the same with the texts as the log beside them has them now, and who changed which. The log of a
run lies in its folder, or in the folder of runs that was reviewed; that of a data set beside its shards. Other texts stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vip.dataset import storage
from vip.dataset.rows import KeyframeRow, VideoSample
from vip.export.sources import ExportSource
from vip.records import Famous, Reviewed
from vip.review.fields import TEXTS, objects_of
from vip.review.log import NAME, Action, ReviewLog

Changes = dict[str, dict[str, Action]]
"""Item -> text -> the last action on it."""


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

    def _changes_of(self, source: ExportSource, sample: VideoSample, place: int) -> dict[str, Action]:
        if source.run is None:
            folder = storage.local_path(source.address)
            return self._read(folder / NAME).get(sample.frames[place].keyframe.id, {}) if folder else {}
        home, own = source.run.folder, source.run.keyframes[place].id  # in a sample the ids begin with the key of the video
        return self._read(home / NAME).get(own) or self._read(home.absolute().parent / NAME).get(f"{home.name}/{own}", {})

    def _read(self, path: Path) -> Changes:
        if path not in self._logs:
            changes: Changes = {}
            if path.exists():
                with ReviewLog(path) as log:
                    for action in log.read():
                        if action.field in TEXTS:
                            changes.setdefault(action.item, {})[action.field] = action
            self._logs[path] = changes
        return self._logs[path]


def _with_texts(frame: KeyframeRow, changes: dict[str, Action]) -> KeyframeRow:
    before = frame.description
    if before is None:
        return frame
    after = {name: action.after or "" for name, action in changes.items()}
    famous = {name: objects_of(text) if name == "objects" else text for name, text in after.items() if name in Famous.model_fields}
    texts = before.famous.model_copy(update=famous)
    caption = after.get("dense_caption", before.dense_caption)
    changed = [name for name in Famous.model_fields if getattr(texts, name) != getattr(before.famous, name)]
    changed = [*(["dense_caption"] if caption != before.dense_caption else []), *changed]
    if not changed:
        return frame
    last = [changes[name] for name in changed]
    reviewed = Reviewed(
        fields=tuple(changed),
        reviewers=tuple(dict.fromkeys(action.reviewer for action in last)),
        changed_utc=max(action.created_utc for action in last),
    )
    return replace(frame, description=before.model_copy(update={"famous": texts, "dense_caption": caption, "reviewed": reviewed}))
