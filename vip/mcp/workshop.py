"""What the function of a tool works with: the roots, the runs in the work folder, the budget, and whom progress is told.

In: what an agent named. Out: a finished run. Runs of the server lie in its work folder; a run folder inside the roots is read where it is
and never written to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vip import files, store
from vip.config import CaptionSettings, ExtractSettings, from_keywords
from vip.dataset.shard_names import has_shards
from vip.errors import InputError
from vip.llm.budget import Budget
from vip.llm.prices import Price
from vip.mcp.results import ServerSettings
from vip.mcp.roots import RUN_NAME, Named, Roots
from vip.pipeline import add_words, extract
from vip.protocols import Observer
from vip.search.ask_frames import run_folder_of
from vip.store import Run
from vip.video.source import FileSource

COPIED = (store.CANDIDATES, store.WORDS, store.TEXT, store.KEYFRAMES, store.MANIFEST)
"""Of a run folder inside the roots, where it is described: the manifest last, since it says that the others are there."""


@dataclass(slots=True)
class SharedBudget(Budget):
    """The part of the server's budget that is left to one call, which says what it puts aside before a request goes out."""

    report: Callable[[float], None] = field(default=lambda usd: None)
    spent_before_usd: float = 0.0

    async def hold(self, price: Price | None, tokens_in: int, tokens_out: int, *, batch: bool = False) -> float:
        held = await super(SharedBudget, self).hold(price, tokens_in, tokens_out, batch=batch)
        self.report(self.committed_usd - self.spent_before_usd)
        return held


@dataclass(frozen=True, slots=True)
class Workshop:
    """The surroundings of one call."""

    settings: ServerSettings
    observer: Observer
    budget: SharedBudget

    @property
    def captions(self) -> CaptionSettings:
        """How keyframes are described; the ceiling is the server's."""
        return self.settings.captions.model_copy(update={"max_usd": self.settings.max_usd})

    def find(self, text: str) -> Named:
        """Return what an agent named; errors as of `Roots.find`."""
        return Roots(self.settings.roots, self.settings.work).find(text)

    def video(self, text: str) -> FileSource:
        """Return the video file that an agent named, or that a run of the server was made of.

        Raises:
            UsageError, InputError: as of `Roots.find`; or it is a run folder, which says nothing that can be trusted about its video.
        """
        named = self.find(text)
        if named.kind == "video":
            return FileSource(named.path)
        manifest = store.load_run(named.path).manifest if named.kind == "own run" else None
        if manifest is None:
            raise InputError("This is a run folder without words. Name the video file.")
        found = self.find(manifest.video.path)  # checked again: it may have become a link
        return FileSource(found.path)

    def run(self, text: str, **options: Any) -> Run:
        """Return the run that an agent named, or the run of a video, which is made where there is none yet.

        Args:
            options: settings of the extraction of a video.
        """
        named = self.find(text)
        return self.run_of(named.path, **options) if named.kind == "video" else store.load_run(named.path)

    def run_of(self, path: Path, **options: Any) -> Run:
        """Return the run of a video in the work folder; one that is there already is not made again."""
        video, folder, settings = self.own_run(path, **options)
        return extract(video, out=folder, settings=settings, observer=self.observer)

    def own_run(self, path: Path, **options: Any) -> tuple[FileSource, Path, ExtractSettings]:
        """Return a video under the name of its run, the folder of that, and the settings; the run need not be there."""
        settings = from_keywords(ExtractSettings, {"keyframes": "auto", **options})
        state = FileSource(path).state()
        name = f"run-{_digest(f'{path}{chr(10)}{state}{chr(10)}{settings.model_dump_json()}')}"
        return FileSource(path, called=name), store.unlinked(self.settings.work / name), settings

    def named_sources(self, texts: Sequence[str]) -> list[str]:
        """Return the run folders and data sets that are meant; without names, those in the roots and the runs of the server.

        A video gets its run, with its subtitles. Folders are looked into two levels deep, and links out of the roots are left aside.

        Raises:
            UsageError, InputError: as of `Roots.find`; or there is nothing to search in.
        """
        found: list[Path] = []
        for named in map(self.find, texts):
            found += [self.run_with_words(named.path).folder] if named.kind == "video" else self._searchable(named.path, depth=2)
        for folder in () if texts else (*self.settings.roots, self.settings.work):
            found += self._searchable(folder, depth=2)
        if not found:
            where = "these sources" if texts else "the roots"
            raise InputError(f"There is no run and no data set in {where}. Call keyframes for a video first, or name the video in sources.")
        return [str(path) for path in dict.fromkeys(map(self._described_copy, found))]

    def run_with_words(self, path: Path) -> Run:
        """Return the run of a video, with its subtitles if it has any."""
        run = self.run_of(path)
        if not store.exists(run.folder / store.WORDS):
            add_words(run, FileSource(path), "auto", observer=self.observer)
        return run

    def index_of(self, texts: Sequence[str]) -> Path:
        """Return the folder for the index of what was named."""
        return self.settings.work / f"search-{_digest(chr(10).join(sorted(set(texts))))}"

    def _searchable(self, folder: Path, depth: int) -> list[Path]:
        if run_folder_of(folder) or has_shards(str(folder)):
            return [folder]
        if not depth:
            return []
        homes = (*self.settings.roots, self.settings.work)
        inside = [path.resolve() for name in files.names_in(folder) if store.is_folder(path := folder / name)]
        inside = [path for path in inside if any(path.is_relative_to(home) for home in homes)]
        return [found for path in inside for found in self._searchable(path, depth - 1)]

    def _described_copy(self, folder: Path) -> Path:
        """Return the copy of a run folder that was described in the work folder, where there is one."""
        copy = self.settings.work / f"run-{_digest(str(folder))}"
        return copy if store.exists(copy / store.MANIFEST) else folder

    def own_copy(self, run: Run) -> Run:
        """Return a run that may be written to: of a run folder inside the roots, a copy without descriptions in the work folder."""
        if run.folder.parent == self.settings.work:
            return run
        folder = self.settings.work / f"run-{_digest(str(run.folder))}"
        last = store.MANIFEST if run.manifest else store.KEYFRAMES  # a call that was ended may have left a part of the copy
        if store.exists(folder / last):
            return store.load_run(folder)
        return _copy_run(run, folder)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def name_of(run: Run) -> str:
    """Return the name of the server's run; of another one a word, since its folder may be called anything."""
    return run.folder.name if RUN_NAME.fullmatch(run.folder.name) else "the run folder"


def _copy_run(run: Run, folder: Path) -> Run:
    """Copy what describing needs of a run."""
    store.make_folder(folder)
    store.make_folder(folder / store.PICTURES, inside=folder)
    for keyframe in run.keyframes:
        with store.replacing(folder / keyframe.record.image_path, inside=folder) as out:
            out.write(keyframe.data)
    for name in COPIED:
        path = run.folder / name
        if path.exists():
            with store.replacing(folder / name, inside=folder) as out:
                out.write(files.read_bytes(path, most_bytes=store.MOST_JSON_BYTES))
    return store.load_run(folder)
