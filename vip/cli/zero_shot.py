"""`vip predict --zero-shot`: its options, and what it does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vip.cli import options
from vip.cli.completion import backends
from vip.cli.console import Console

if TYPE_CHECKING:
    from vip.tasks.predict import PredictionSummary

ZeroShot = Annotated[
    str | None,
    options.option(
        "--zero-shot", help="Answer VALUE by the similarities of CLIP: clip:ARCH/TAG.", metavar="NAME", complete=backends("embedder")
    ),
]
VideoFeatures = Annotated[
    Path | None,
    options.option(
        "--video-features", help="Folder with NAME.npz of each video; with --videos, missing ones are made and kept.", metavar="DIR"
    ),
]
VideoIndex = Annotated[Path | None, options.option("--video-index", help="Corpus of a retrieval task, as published.", metavar="FILE")]
Window = Annotated[int, options.option("--window", help="Frames of a moment, each 1.5 s; for --zero-shot.", metavar="N", default="10")]
ThresholdOption = Annotated[
    str | None,
    options.option(
        "--threshold",
        help="Of VIOLIN and VLEP: a number, or NAME.zero-shot.json of a run on the validation split.",
        metavar="VALUE",
        default="tuned on the answers",
    ),
]


@dataclass(frozen=True, slots=True)
class Similarity:
    """Options of `vip predict --zero-shot` alone."""

    features: Path | None
    video_index: Path | None
    window: int
    threshold: str | None


def check_options(
    zero_shot: str | None, features: Path | None, video_index: Path | None, threshold: str | None, *, others: tuple[object, ...]
) -> None:
    """Refuse options that go without each other.

    Args:
        others: what answers in another way: samples, a baseline, a training set.

    Raises:
        UsageError: an option of --zero-shot stands alone, or another way of answering is named too.
    """
    from vip.errors import UsageError
    from vip.wording import option

    named = {"video_features": features, "video_index": video_index, "threshold": threshold}
    alone = next((name for name, value in named.items() if value is not None), None)
    if zero_shot is None and alone is not None:
        raise UsageError(f"{option(alone)} is for {option('zero_shot', 'clip:ARCH/TAG')}. Add it, or leave {option(alone)} out.")
    if zero_shot is not None and any(one is not None for one in others):
        raise UsageError(f"{option('zero_shot')} reads annotations and answers by itself. Leave samples, baselines and training sets out.")


def predict_by_similarity(
    context: typer.Context,
    name: str,
    task: str | None,
    annotations: list[str],
    out: Path,
    how: Similarity,
    *,
    overwrite: bool,
    console: Console,
) -> PredictionSummary:
    """Predict a task of VALUE without training.

    Raises:
        UsageError: the task or its annotations are not named.
    """
    from vip.config import SampleSettings, resolve
    from vip.errors import UsageError
    from vip.tasks.value.zero_shot_predict import ZeroShotOptions, predict_zero_shot
    from vip.wording import option

    if task is None or not annotations:
        raise UsageError(f"{option('zero_shot')} needs {option('task', 'NAME')} and {option('annotations', 'FILE')}.")
    if how.window < 1:
        raise UsageError(f"{option('window', how.window)}: a moment has at least one frame.")
    settings = resolve(SampleSettings, options.given(context, SampleSettings), note=console.note)
    chosen = ZeroShotOptions(
        embedder=name,
        annotations=tuple(annotations),
        settings=settings,
        features=how.features,
        video_index=how.video_index,
        window=how.window,
        threshold=how.threshold,
    )
    return predict_zero_shot(task, out, chosen, overwrite=overwrite, observer=console)
