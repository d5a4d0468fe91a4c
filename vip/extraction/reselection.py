"""Selection again from a run: which settings may change, and with which video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vip import store
from vip.config import ExtractSettings, from_keywords
from vip.download.sources import resolve_source
from vip.errors import InputError, StoreError, UsageError
from vip.extraction.existing_run import is_same_file
from vip.records import Manifest
from vip.video import Source, source_of
from vip.wording import call

CHANGEABLE = ("keyframes", "pruner", "text_weight", "query", "min_objects", "min_sharpness", "format")
"""The settings that do not need the video to be analyzed again."""


def default_reselect_folder(video_id: str, settings: ExtractSettings) -> Path:
    """Return `NAME-n6.vip` or `NAME-auto.vip` in the current folder."""
    number = "auto" if settings.keyframes == "auto" else f"n{settings.keyframes}"
    return store.unlinked(Path(f"{video_id}-{number}.vip"))


def reselect_settings(manifest: Manifest, changes: dict[str, Any]) -> ExtractSettings:
    """Return the run's settings with the changes.

    Raises:
        UsageError: one of them needs the video to be analyzed again.
        StoreError: those of the run are damaged.
    """
    if isinstance(manifest.settings.get("labels"), str):  # else it could name a file to be read
        raise StoreError("The manifest of the run is damaged: its labels are no list of words. Extract the video again.")
    before = from_keywords(ExtractSettings, manifest.settings)
    after = from_keywords(ExtractSettings, {**manifest.settings, **changes})
    for name, value in after.model_dump(mode="json").items():
        had = getattr(before, name)
        if name not in CHANGEABLE and value not in (had, manifest.backends.get(name)):
            raise UsageError(
                f"The run was made with {name} {had}, and {name} {value} needs another look at the video."
                f" Run {call('extract', 'VIDEO')} instead."
            )
    return after.model_copy(update={name: getattr(before, name) for name in before.model_fields_set if name not in CHANGEABLE})


def video_of(manifest: Manifest, video: str | Path | None) -> Source | None:
    """Return the video of a run: as the user names it, or as the manifest does where this machine wrote that; else None.

    Raises:
        InputError: it is another video.
    """
    if video is None:
        return resolve_source(source_of(manifest.video.path)) if store.is_own(manifest) else None
    named = resolve_source(source_of(video))
    if not is_same_file(manifest.video, named):
        raise InputError(f"{named} is not the video that the run was made from ({manifest.video.path}), or has changed since.")
    return named
