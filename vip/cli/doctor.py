"""`vip doctor`: what works here, and what `auto` would pick and why. Each row is found out by trying, not by version."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec

from vip.cli.console import AsJson, print_json
from vip.wording import counted

EXAMPLES = """[bold]Examples[/bold]
vip doctor
vip doctor --json | jq '.rows[] | select(.works == false)'
"""

DECODERS = ("h264", "hevc", "vp8", "vp9", "libvpx-vp9", "av1", "libdav1d", "mpeg4", "mpeg2video", "mjpeg", "gif", "prores")
EXTRAS = {"shots": "scenedetect", "clip": "open_clip", "transformers": "transformers"}
ALWAYS_THERE = ("classic", "opencv", "sync", "uniform", "every", "katna", "algorithm1", "k-center", "threshold", "aks", "none", "offline")
WITH_FILES = ("clip", "transformers", "file")  # told by their models, or there is nothing to tell


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that works or does not, and what to do about it."""

    group: str
    name: str
    works: bool
    detail: str


def doctor_command(as_json: AsJson = False) -> None:
    """Say what works here: decoders, backends, weights, device, engines, and what `auto` would pick and why."""
    rows = [*_basis(), *_decoders(), *_backends(), *_engines()]
    picks = _auto()
    if as_json:
        print_json({"rows": [asdict(row) for row in rows], "auto": picks})
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    group = ""
    for row in rows:
        mark = "[green]✓[/]" if row.works else "[yellow]–[/]"
        table.add_row(row.group if row.group != group else "", mark, escape(row.name), escape(row.detail))
        group = row.group
    console = Console(highlight=False)
    console.print(table)
    console.print()
    for what, pick in picks.items():
        console.print(f"auto {what}: {pick}", markup=False)


def _basis() -> list[Row]:
    from vip import __version__

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0
    return [
        Row("vip", "vip", True, f"{__version__} on Python {platform.python_version()}"),
        Row("device", "cpu", True, f"{counted(os.cpu_count() or 1, 'core')}, {memory:.0f} GiB; the embedded backends need no more"),
    ]


def _decoders() -> list[Row]:
    from importlib.metadata import version

    import av

    ffmpeg = ".".join(str(part) for part in av.library_versions["libavcodec"])
    rows = [Row("video", "PyAV", True, f"{version('av')} with libavcodec {ffmpeg}")]
    missing = [name for name in DECODERS if name not in av.codecs_available]
    there = ", ".join(name for name in DECODERS if name not in missing)
    return [*rows, Row("video", "decoders", not missing, f"{there}{'; missing: ' + ', '.join(missing) if missing else ''}")]


def _backends() -> list[Row]:
    from vip import registry

    tries: list[tuple[registry.Kind, Callable[[str], object]]] = [
        ("sampler", registry.sampler),
        ("pruner", registry.pruner),
        ("embedder", registry.embedder),
        ("detector", registry.detector),
    ]
    rows = [_try(kind, name, make) for kind, make in tries for name in registry.names(kind) if name not in WITH_FILES]
    rows += [Row(*row) for row in registry.models()]
    for extra, module in EXTRAS.items():
        there = find_spec(module) is not None
        rows.append(Row("extra", extra, there, _installed(module) if there else f"not installed: pip install 'vip-keyframes[{extra}]'"))
    return rows


def _try(kind: str, name: str, make: Callable[[str], object]) -> Row:
    from vip.errors import VipError

    try:
        make(name)
    except VipError as exc:
        return Row(kind, name, False, str(exc))
    return Row(kind, name, True, "embedded, no weights needed" if name in ALWAYS_THERE else "ready")


def _installed(module: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version({"open_clip": "open_clip_torch", "scenedetect": "scenedetect-headless"}.get(module, module))
    except PackageNotFoundError:
        return "installed"


def _engines() -> list[Row]:
    key, address = os.environ.get("OPENAI_API_KEY", "").strip(), os.environ.get("OPENAI_BASE_URL", "").strip()
    ready = bool(key or address)
    if not ready:
        detail = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
    else:
        detail = f"key {_masked(key)}, server {_without_login(address) or 'api.openai.com'}; not asked anything now"
    local = find_spec("transformers") is not None and find_spec("llguidance") is not None
    return [
        Row("engine", "offline", True, "embedded: describes what it measures"),
        Row("engine", "openai", ready, detail),
        Row(
            "engine",
            "transformers",
            local,
            "models in this process" if local else "not installed: pip install 'vip-keyframes[transformers]'",
        ),
        _answers(),
    ]


def _answers() -> Row:
    """Where answers are kept."""
    from vip.asking.answers import Answers, default_path
    from vip.errors import VipError

    path = default_path()
    if not path.exists():
        return Row("answers", "kept in", True, f"{path}, not made yet")
    try:
        answers = Answers(path)
    except VipError as exc:
        return Row("answers", "kept in", False, str(exc))
    try:
        return Row("answers", "kept in", True, f"{path}: {counted(answers.count(), 'answer')}, {path.stat().st_size / 1e6:.1f} MB")
    finally:
        answers.close()


def _masked(key: str) -> str:
    return "not set" if not key else f"…{key[-4:]}" if len(key) >= 20 else "set"


def _without_login(address: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        host = None
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl() if host else "(unreadable address)"


def _auto() -> dict[str, str]:
    from vip.captioning.engines import choose_engine
    from vip.registry import auto_embedder

    engine = choose_engine("auto", None, os.environ)
    embedder, why = auto_embedder("auto")
    return {"embedder": f"{embedder}; {why}", "engine": f"{engine.engine}; {engine.reason}"}
