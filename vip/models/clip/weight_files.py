"""Weight files of open_clip models: in the cache, or downloaded; and whether `auto` can take clip, without loading open_clip."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vip.errors import BackendError
from vip.models import hub
from vip.wording import option

DEFAULT_ARCH, DEFAULT_TAG = "ViT-B-32", "laion2b_s34b_b79k"
DEFAULT_REPO = "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"
DEFAULT_PRETRAINED = {"hf_hub": f"{DEFAULT_REPO}/"}
FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")


def find_or_download(pretrained: Mapping[str, Any], arch: str) -> Path:
    """Return the file with the weights, downloaded where it is not in the cache yet.

    Args:
        pretrained: what open_clip knows about a tag: `hf_hub` (`owner/name/` or `owner/name/file`), `url`.

    Raises:
        BackendError: it is not in the cache and cannot be downloaded.
    """
    reason = None if find_cached(pretrained) else _download(pretrained)
    path = find_cached(pretrained)
    if path is None:
        raise BackendError(
            f"The weights of {arch} are not in the cache and cannot be downloaded: {reason}."
            f" Run the command once online, write {option('embedder', f'clip:{arch}@FILE')} with a checkpoint,"
            f" or {option('embedder', 'classic')}."
        )
    return path


def find_cached(pretrained: Mapping[str, Any]) -> Path | None:
    """Return the file with the weights, if it was downloaded before."""
    name = str(pretrained.get("hf_hub") or "")
    if name:
        repo, _, file = name.rpartition("/")
        return next((path for each in ([file] if file else FILES) if (path := hub.find_cached(repo, each))), None)
    path = Path("~/.cache/clip").expanduser() / str(pretrained["url"]).rpartition("/")[2]
    return path if path.is_file() else None


def _download(pretrained: Mapping[str, Any]) -> str | None:
    """Download the weights, with the progress bar of the library that does it; why that failed, or None."""
    if name := str(pretrained.get("hf_hub") or ""):
        repo, _, file = name.rpartition("/")
        return hub.unreachable_reason() or hub.download(repo, [file] if file else FILES)
    from open_clip import download_pretrained

    try:
        download_pretrained(dict(pretrained))
    except Exception as exc:  # of urllib, the disk, or a wrong checksum
        return hub.first_line(exc)
    return None


def auto_unavailable_reason() -> str | None:
    """Return why `auto` does not take clip, in words; None where it does, with its weights in the cache.

    Loads neither torch nor open_clip, and takes 2 s at most where nothing can be downloaded.
    """
    if find_spec("open_clip") is None:
        return "open_clip is not installed"
    if find_cached(DEFAULT_PRETRAINED):
        return None
    reason = _download(DEFAULT_PRETRAINED)
    return reason and f"clip's weights are not here, and {reason}"
