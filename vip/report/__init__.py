"""The page a person looks at, and the whole job that ends with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vip.asking.spending import Ledger
from vip.config import CaptionSettings, ExtractSettings
from vip.describing import caption
from vip.errors import EngineError, ReplyError, SomeFailedError
from vip.pipeline import extract
from vip.protocols import Observer
from vip.report.page import write_report
from vip.store import Run
from vip.video import Source


def run(
    video: str | Path | Sequence[str | Path] | Source,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    extraction: ExtractSettings | None = None,
    captioning: CaptionSettings | None = None,
    observer: Observer | None = None,
    isolated: bool = False,
    ledger: Ledger | None = None,
) -> Run:
    """Extract, caption and report in one go; `isolated` as for `vip.extract`, `ledger` as for `vip.caption`.

    Returns:
        The run, with keyframes, descriptions and report.html in its folder.

    Raises:
        VipError: as `vip.extract` and `vip.caption` do; where keyframes could not be described, the page is written first.
    """
    extracted = extract(video, out=out, overwrite=overwrite, settings=extraction, observer=observer, isolated=isolated)
    try:
        described = caption(extracted, overwrite=overwrite, settings=captioning, observer=observer, ledger=ledger)
    except (EngineError, ReplyError, SomeFailedError):
        write_report(Run(extracted.folder))
        raise
    write_report(described)
    return described
