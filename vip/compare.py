"""A comparison of several samplers and pruners on one video, side by side: what a user needs to choose settings.

Each combination is a run of its own in a folder of its own, so that one can go on with the run one likes. Out comes a
`Comparison`, and compare.html beside the run folders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from vip import store
from vip.config import ExtractSettings
from vip.download.sources import resolve_source
from vip.errors import BackendError, UsageError, VipError
from vip.pipeline import extract
from vip.protocols import Observer, SilentObserver
from vip.records import Failure
from vip.report.combinations import Combination, ComparedRun, Comparison
from vip.report.compare_page import write_comparison
from vip.report.measures import measure_all
from vip.store import Run
from vip.video import Source, source_of
from vip.wording import SaidOnce, option


def default_folder(video: Source) -> Path:
    """Return `NAME.compare` in the current folder."""
    return store.unlinked(Path(f"{video.stem}.compare"))


def compare(
    video: str | Path,
    wanted: Sequence[Combination],
    *,
    out: Path | None = None,
    overwrite: bool = False,
    settings: ExtractSettings,
    observer: Observer | None = None,
    isolated: bool = False,
) -> Comparison:
    """Run each combination, measure what it chose, and write the page.

    Args:
        wanted: as `combinations` returns them. One that nobody asked for and that is not installed is left out with a note.
        out: the folder; by default `NAME.compare` in the current folder.
        isolated: as for `extract`.
        settings: what all combinations share; their sampler and pruner are put in.

    Returns:
        The comparison. Combinations that failed are in its `failures` and in failures.jsonl.

    Raises:
        UsageError: the folder is a run, or holds runs of other settings or of another embedder.
        VipError: the first failure, where no combination is done.
    """
    named = resolve_source(source_of(video))
    folder, observer = out if out is not None else default_folder(named), observer or SilentObserver()
    if store.exists(folder / store.MANIFEST):
        raise UsageError(f"{folder} is a run folder. Choose another folder for the comparison with {option('out')}.")
    noted: set[str] = set()
    here = [combination for combination in wanted if combination.asked or combination.is_known]
    if absent := [combination.name for combination in wanted if combination not in here]:
        observer.note(f"Left out, because not installed here: {', '.join(absent)}.")
    done: list[tuple[Combination, Run, bool]] = []
    errors: list[tuple[Combination, VipError]] = []
    with store.create_folder(folder):
        for combination in here:
            path = store.unlinked(folder / combination.folder_name)
            before = _written_ns(path)
            try:
                voice, of_one = _PrefixedObserver(observer, combination.name, noted), _settings_of(combination, settings, done)
                run = extract(named, out=path, overwrite=overwrite, settings=of_one, observer=voice, isolated=isolated)
            except UsageError:  # a folder of other settings: the command is wrong, not the combination
                raise
            except VipError as exc:
                errors.append((combination, exc))
            else:
                done.append((combination, run, before == _written_ns(path)))
        if not done:
            raise errors[0][1]
    measured = measure_all([run for _, run, _ in done])
    choices = tuple(ComparedRun(*one, measures) for one, measures in zip(done, measured, strict=True))
    comparison = Comparison(folder, settings, choices, _failures(errors, observer))
    store.write_failures(folder / store.FAILURES, comparison.failures)
    write_comparison(comparison)
    return comparison


def _settings_of(combination: Combination, settings: ExtractSettings, done: Sequence[tuple[Combination, Run, bool]]) -> ExtractSettings:
    """Return the settings of one combination. With `-n auto`, evenly spaced frames are as many as the first combination kept."""
    update: dict[str, object] = {"sampler": combination.sampler, "pruner": combination.pruner}
    if combination.is_evenly_spaced and settings.keyframes == "auto" and done:
        update["keyframes"] = len(done[0][1].keyframes)
    return settings.model_copy(update=update)


def _failures(errors: Sequence[tuple[Combination, VipError]], observer: Observer) -> tuple[Failure, ...]:
    """Return what failed; what nobody asked for and needs something that is not here is only noted."""
    failures = []
    for combination, exc in errors:
        if isinstance(exc, BackendError) and not combination.asked:
            observer.note(f"Left out {combination.name}: {exc}")
        else:
            failures.append(Failure(item=combination.name, kind=exc.failure_kind, message=str(exc), exit_code=exc.exit_code))
    return tuple(failures)


def _written_ns(folder: Path) -> int | None:
    """Return when the manifest of a run was last written, in nanoseconds; None without a manifest."""
    try:
        return (folder / store.MANIFEST).stat().st_mtime_ns
    except OSError:
        return None


@dataclass(frozen=True)
class _PrefixedObserver:
    """The observer of one combination: says whose words they are, and nothing that another has said already."""

    observer: Observer
    name: str
    noted: set[str]

    def note(self, text: str) -> None:
        if text not in self.noted:
            self.noted.add(text)
            self.observer.note(text if isinstance(text, SaidOnce) else f"{self.name}: {text}")

    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> AbstractContextManager[Callable[[], None]]:
        return self.observer.track(f"{self.name}: {title}", total)
