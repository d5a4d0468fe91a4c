"""Contents of an existing run folder: nothing, a run to go on with, a finished one, or something that must not be lost."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

from vip import store
from vip.config import ExtractSettings
from vip.errors import InputError, StoreError, UsageError
from vip.extraction.analysis_store import analyses_of
from vip.records import Manifest, Origin, VideoInfo
from vip.store import Run
from vip.untrusted import one_line
from vip.video import AddressSource, Source
from vip.wording import option

MOST_LETTERS = 300  # of a value in a message
SELECTED, WRITTEN = "select", "write"  # the stages in Manifest.seconds


def is_selected(manifest: Manifest | None) -> bool:
    """Return whether all but the pictures is written."""
    return manifest is not None and SELECTED in manifest.seconds


def is_finished(manifest: Manifest | None) -> bool:
    """Return whether the pictures are written, too."""
    return manifest is not None and WRITTEN in manifest.seconds


def existing_run(
    folder: Path, named: Source | None, settings: ExtractSettings, overwrite: bool, *, origin: Origin | None = None
) -> Manifest | None:
    """Return the manifest of an earlier run of the same video and settings; None where there is nothing to go on with.

    Args:
        named: the video; None where it is not opened, and `origin` says enough.
        origin: the run whose candidates are selected from; None where the video is analyzed.

    Raises:
        UsageError: the folder holds something else, and `overwrite` is not set.
        StoreError: its manifest is damaged.
    """
    if not store.exists(folder / store.MANIFEST):
        if not overwrite and not store.is_empty(folder, besides=(store.ASKED,)):
            raise UsageError(
                f"{folder} is not empty and no run of vip. Choose another folder with {option('out')}, or add {option('overwrite')}."
            )
        return None
    try:
        manifest = store.read_json(folder / store.MANIFEST, Manifest)
    except StoreError:
        if overwrite:
            return None
        raise
    differences = _differences(manifest, named, settings, origin)
    if not differences:
        return None if overwrite and is_finished(manifest) and _is_damaged(Run(folder)) else manifest
    if not overwrite:
        raise UsageError(
            f"{folder} holds another run ({'; '.join(differences)})."
            f" Choose another folder with {option('out')}, or add {option('overwrite')}."
        )
    return None


def is_same_file(known: VideoInfo, named: Source) -> bool:
    """Return whether a video is the one of a manifest, as far as its size, time and content say."""
    state = named.state()
    if state is None:
        return known.path in {named.location, named.exact_location if isinstance(named, AddressSource) else ""}  # it may be done already
    if state.size_bytes != known.size_bytes:
        return False
    if known.sha256 is None:
        return known.path == named.location and state.modified_ns == known.modified_ns
    return state.modified_ns == known.modified_ns or named.sha256() == known.sha256


def _differences(manifest: Manifest, named: Source | None, settings: ExtractSettings, origin: Origin | None) -> list[str]:
    """Return what the earlier run has otherwise, in words."""
    had, wanted = _with_defaults(manifest.settings), settings.model_dump(mode="json")
    other = [f"{key} {_shortened(had.get(key))}, now {value}" for key, value in wanted.items() if had.get(key) != value]
    if manifest.selected_from != origin:
        other.append(_candidates_of(manifest.selected_from))
    if named and not is_same_file(manifest.video, named):
        before, now = PurePath(_shortened(manifest.video.path)), PurePath(named.location)
        other.insert(0, f"video {before}, now {now}" if before.name == now.name else f"video {before.name}, now {now.name}")
    return other


def _with_defaults(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a manifest, with the defaults of those that vip did not have yet."""
    return {**ExtractSettings().model_dump(mode="json"), **settings}


def _is_damaged(run: Run) -> bool:
    """Return whether a finished run cannot be read back whole."""
    try:
        whole = analyses_of(run) and run.descriptions is not None
        return not whole or any(not keyframe.path.exists() for keyframe in run.keyframes)
    except (InputError, StoreError):
        return True


def _candidates_of(origin: Origin | None) -> str:
    if origin is None:
        return "candidates of its own"
    return f"candidates of {_shortened(origin.run)} as of {_shortened(origin.created_utc)}"


def _shortened(value: object) -> str:
    """Return a value of a manifest on one line; it may come from a stranger."""
    return one_line(str(value))[:MOST_LETTERS]
