"""The page a person looks at, and the two calls that end with it: `caption` and `run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from vip import store
from vip.captioning import caption_job
from vip.captioning.caption_job import RunOrPath
from vip.config import CaptionSettings, ExtractSettings, chosen
from vip.download.sources import resolve_source
from vip.errors import EngineError, ReplyError, SomeFailedError, UsageError, did_you_mean
from vip.llm.budget import Budget
from vip.pipeline import default_folder, extract
from vip.protocols import Observer
from vip.report.page import write_report
from vip.store import Run
from vip.video import Source, source_of

SHOWN = (store.MANIFEST, store.KEYFRAMES, store.DESCRIPTIONS, store.JOURNAL, store.FAILURES)  # files that the page is made of


@overload
def caption(runs: RunOrPath, **options: Any) -> Run: ...
@overload
def caption(runs: Sequence[RunOrPath], **options: Any) -> list[Run]: ...
def caption(
    runs: RunOrPath | Sequence[RunOrPath],
    *,
    overwrite: bool = False,
    in_batches: bool = False,
    settings: CaptionSettings | None = None,
    observer: Observer | None = None,
    budget: Budget | None = None,
    **options: Any,
) -> Run | list[Run]:
    """Describe the keyframes (section 3.2), and write the page of each folder: arguments, result and errors as of `describing.caption`.

    Where an engine fails on the way, the pages show what is described by then.
    """
    given = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    homes = [caption_job.home_of(run) for run in given]
    before = [_changed_ns(home) for home in homes]
    try:
        done = caption_job.caption(
            given, overwrite=overwrite, in_batches=in_batches, settings=settings, observer=observer, budget=budget, **options
        )
    except (EngineError, ReplyError, SomeFailedError):
        for home, changed_ns in zip(homes, before, strict=True):
            if _changed_ns(home) != changed_ns:
                write_report(Run(home))
        raise
    for home in homes:
        page = home / store.REPORT
        if not page.exists() or page.stat().st_mtime_ns < _changed_ns(home):
            write_report(Run(home))
    return done[0] if isinstance(runs, Run | str | Path) else done


def _changed_ns(home: Path) -> int:
    """When what the page shows was last written; 0 where there is nothing to show."""
    if not (home / store.KEYFRAMES).exists():
        return 0
    return max(path.stat().st_mtime_ns for name in SHOWN if (path := home / name).exists())


def run(
    video: str | Path | Sequence[str | Path] | Source,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    extraction: ExtractSettings | None = None,
    captioning: CaptionSettings | None = None,
    observer: Observer | None = None,
    isolated: bool = False,
    budget: Budget | None = None,
    **options: Any,
) -> Run:
    """Extract, caption and report in one go; `isolated` as for `vip.extract`, `ledger` as for `vip.caption`.

    Args:
        extraction, captioning: settings of the two, or their fields as keywords: `keyframes=6`, `engine="offline"`.

    Returns:
        The run, with keyframes, descriptions and report.html in its folder.

    Raises:
        VipError: as `vip.extract` and `vip.caption` do; where keyframes could not be described, the page is written first.
    """
    extraction, captioning = _settings(extraction, captioning, options)
    caption_job.check(captioning)
    named = resolve_source(source_of(video))
    folder = Path(out) if out is not None else default_folder(named)
    with store.making_folder(folder):
        extracted = extract(named, out=folder, overwrite=overwrite, settings=extraction, observer=observer, isolated=isolated)
        try:
            return caption(extracted, overwrite=overwrite, settings=captioning, observer=observer, budget=budget)
        except (EngineError, ReplyError, SomeFailedError):
            if not (folder / store.REPORT).exists():
                write_report(Run(folder))
            raise


def _settings(
    extraction: ExtractSettings | None, captioning: CaptionSettings | None, options: Mapping[str, Any]
) -> tuple[ExtractSettings, CaptionSettings]:
    """The settings of both; a keyword that both know is for both.

    Raises:
        UsageError: a keyword that neither knows, or a wrong value.
    """
    known = {**ExtractSettings.model_fields, **CaptionSettings.model_fields}
    for name in options:
        if name not in known:
            raise UsageError(f'There is no setting "{name}".{did_you_mean(name, known)}')
    of_extraction, of_captioning = (
        {name: value for name, value in options.items() if name in kind.model_fields} for kind in (ExtractSettings, CaptionSettings)
    )
    return chosen(ExtractSettings, extraction, of_extraction), chosen(CaptionSettings, captioning, of_captioning)
