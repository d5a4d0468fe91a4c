"""`vip doctor`: what works here, and what `auto` would pick and why. Each row is found out by trying, not by version."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vip.cli.console import AsJson, print_json
from vip.untrusted import printable
from vip.wording import counted

EXAMPLES = """[bold]Examples[/bold]
vip doctor
vip doctor --json | jq '.rows[] | select(.works == false)'
"""

PACKAGE = "vip-keyframes"
SAMPLES = Path(__file__).with_name("doctor_samples")  # see examples/make_doctor_samples.py
NOT_FOR_USERS = frozenset({"bench", "dev", "docs", "mutants", "test"})
ALWAYS_THERE = ("classic", "opencv", "sync", "uniform", "every", "katna", "algorithm1", "k-center", "threshold", "aks", "none", "offline")
WITH_FILES = ("clip", "transformers", "file")  # told by their models, or there is nothing to tell


@dataclass(frozen=True, slots=True)
class DoctorRow:
    """One thing that works or does not, and what to do about it."""

    group: str
    name: str
    works: bool
    detail: str


def doctor_command(as_json: AsJson = False) -> None:
    """Show what works here: decoders, backends, weights, device, engines, and what `auto` picks and why."""
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
        table.add_row(row.group if row.group != group else "", mark, escape(printable(row.name)), escape(printable(row.detail)))
        group = row.group
    console = Console(highlight=False)
    console.print(table)
    console.print()
    for what, pick in picks.items():
        console.print(f"auto {what}: {pick}", markup=False)


def _basis() -> list[DoctorRow]:
    from vip import __version__

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0
    return [
        DoctorRow("vip", "vip", True, f"{__version__} on Python {platform.python_version()}"),
        DoctorRow("device", "cpu", True, f"{counted(os.cpu_count() or 1, 'core')}, {memory:.0f} GiB; what is built in needs no more"),
    ]


def _decoders() -> list[DoctorRow]:
    """Read a small file of each codec as `vip extract` would."""
    from importlib.metadata import version

    import av

    from vip.errors import VipError

    ffmpeg = ".".join(str(part) for part in av.library_versions["libavcodec"])
    read, failed = [], []
    for path in sorted(SAMPLES.iterdir()):
        try:
            _check_colours(path)
        except VipError as exc:
            failed.append(f"{path.stem} ({exc})")
        else:
            read.append(path.stem)
    return [
        DoctorRow("video", "PyAV", True, f"{version('av')} with libavcodec {ffmpeg}"),
        DoctorRow("video", "decoders", not failed, f"{', '.join(read)}{'; not read: ' + ', '.join(failed) if failed else ''}"),
    ]


def _check_colours(path: Path) -> None:
    """Read the two frames of a sample, in which red and blue change places.

    Raises:
        VipError: they cannot be read, or show something else.
    """
    from vip.errors import InputError
    from vip.video import FileSource, open_video

    with open_video(FileSource(path)) as video:
        frames = [frame.image for frame in video.frames(video.index.shown_pts.tolist())]
    sides = [image[:, side].mean(axis=(0, 1)) for image in frames for side in (slice(0, 24), slice(40, 64))]
    is_red = [bool(red > 2 * blue) for red, _, blue in sides]
    if is_red != [True, False, False, True]:
        raise InputError(f"{path.name} shows something else than it does.")


def _backends() -> list[DoctorRow]:
    from vip import registry

    tries: list[tuple[registry.Kind, Callable[[str], object]]] = [
        ("sampler", registry.sampler),
        ("pruner", registry.pruner),
        ("embedder", registry.embedder),
        ("detector", registry.detector),
    ]
    rows = [_try(kind, name, make) for kind, make in tries for name in registry.names(kind) if name not in WITH_FILES]
    return [*rows, *(DoctorRow(*row) for row in registry.models()), *_extras()]


def _extras() -> list[DoctorRow]:
    """The extras that the package itself names, and whether what they ask for is installed."""
    from importlib.metadata import PackageNotFoundError, metadata, requires, version

    try:
        names, wanted = metadata(PACKAGE).get_all("Provides-Extra") or [], requires(PACKAGE) or []
    except PackageNotFoundError:
        return [DoctorRow("extra", "all", False, f"unknown: vip runs from a folder, without `pip install {PACKAGE}`")]
    rows = []
    for extra in sorted(set(names) - NOT_FOR_USERS):
        here, missing = [], []
        for requirement in wanted:
            if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", requirement) and (found := re.match(r"[\w.-]+", requirement)):
                try:
                    here.append(f"{found[0]} {version(found[0])}")
                except PackageNotFoundError:
                    missing.append(found[0])
        lacks = f"{', '.join(missing)} missing: pip install '{PACKAGE}[{extra}]'" if missing else ""
        rows.append(DoctorRow("extra", extra, not missing, lacks or ", ".join(here)))
    return rows


def _try(kind: str, name: str, make: Callable[[str], object]) -> DoctorRow:
    from vip.errors import VipError

    try:
        _use(kind, make(name))
    except VipError as exc:
        return DoctorRow(kind, name, False, str(exc))
    except Exception as exc:  # another package's may fail in any way
        return DoctorRow(kind, name, False, f"it does not work ({type(exc).__name__}: {' '.join(str(exc).split())})")
    return DoctorRow(kind, name, True, "built in" if name in ALWAYS_THERE else "ready")


def _use(kind: str, made: Any) -> None:
    """Give a backend a picture to work on, where that is what it does."""
    import numpy as np

    picture = np.zeros((48, 64, 3), np.uint8)
    if kind == "embedder":
        made.embed_images([picture])
    elif kind == "detector":
        made.detect([picture])


def _engines() -> list[DoctorRow]:
    from vip import registry

    key, address = os.environ.get("OPENAI_API_KEY", "").strip(), os.environ.get("OPENAI_BASE_URL", "").strip()
    ready = bool(key or address)
    if not ready:
        detail = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
    else:
        detail = f"key {_masked(key)}, server {_without_login(address) or 'api.openai.com'}; not asked anything now"
    local = find_spec("transformers") is not None and find_spec("llguidance") is not None
    missing = "" if local else f", after pip install '{PACKAGE}[transformers]'"
    return [
        DoctorRow("engine", "offline", True, "built in: describes what it measures"),
        DoctorRow("engine", "openai", ready, detail),
        DoctorRow("engine", "transformers", local, f"models in this process, by default {registry.local_model()}{missing}"),
        *(_try("engine", name, registry.engine) for name in registry.names("engine") if name not in registry.BUILT_IN["engine"]),
        _answers(),
        _videos(),
    ]


def _videos() -> DoctorRow:
    """Where downloaded videos are kept."""
    from vip.download.cache import default_folder

    folder = default_folder()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.exists() else 0
    return DoctorRow("videos", "kept in", True, f"{folder}: {size / 1e6:.1f} MB of downloads" if size else f"{folder}, none yet")


def _answers() -> DoctorRow:
    """Where answers are kept."""
    from vip.errors import VipError
    from vip.llm.cache import AnswerCache, default_path

    path = default_path()
    if not path.exists():
        return DoctorRow("answers", "kept in", True, f"{path}, not made yet")
    try:
        answers = AnswerCache(path)
    except VipError as exc:
        return DoctorRow("answers", "kept in", False, str(exc))
    try:
        return DoctorRow("answers", "kept in", True, f"{path}: {counted(answers.count(), 'answer')}, {path.stat().st_size / 1e6:.1f} MB")
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
    from vip.captioning.session import choose_engine
    from vip.registry import auto_embedder

    engine = choose_engine("auto", None, os.environ)
    embedder, why = auto_embedder("auto")
    return {"embedder": f"{embedder}; {why}", "engine": f"{engine.engine}; {engine.reason}"}
