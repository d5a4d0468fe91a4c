"""Any video into a handful of keyframes with captions and structured scene descriptions people can trust.

run = vip.extract("video.mp4", keyframes=12)
for keyframe in run.keyframes:
    print(keyframe.time_s, keyframe.image.shape)
vip.caption(run)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Run", "__version__", "ask", "caption", "extract", "find_moments", "load_run", "rechoose", "run"]

if TYPE_CHECKING:
    from vip.pipeline import caption, extract, run
    from vip.pipeline import reselect as rechoose
    from vip.search.ask import ask
    from vip.search.find import find_moments
    from vip.store import Run, load_run

_HOMES = {
    "Run": "vip.store:Run",
    "ask": "vip.search.ask:ask",
    "caption": "vip.pipeline:caption",
    "extract": "vip.pipeline:extract",
    "find_moments": "vip.search.find:find_moments",
    "load_run": "vip.store:load_run",
    "rechoose": "vip.pipeline:reselect",
    "run": "vip.pipeline:run",
}


def __getattr__(name: str) -> Any:
    """Load on first use: `import vip` loads neither OpenCV nor FFmpeg."""
    if name not in _HOMES:
        raise AttributeError(f"module 'vip' has no attribute {name!r}")
    import importlib

    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
