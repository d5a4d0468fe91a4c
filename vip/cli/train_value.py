"""`vip train value`: its own options, and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from vip.cli import options
from vip.cli.completion import choices
from vip.cli.console import Console, print_json
from vip.wording import option

TASK = "value"
REGIMES = ("st", "mt-task", "mt-domain", "at", "at-st")
PANEL = "VALUE"

Regime = Annotated[
    str | None,
    options.option(
        "--regime", help=f"Which tasks share a model: {', '.join(REGIMES)}.", metavar="NAME", complete=choices(*REGIMES), panel=PANEL
    ),
]
Subtitles = Annotated[
    Path | None,
    options.option("--subtitles", help="Folder with tv_subtitles.jsonl and so on, as published; or one file.", metavar="DIR", panel=PANEL),
]
Weights = Annotated[
    str | None,
    options.option(
        "--weights",
        help="What training begins with: hero:FILE, roberta:FILE, a folder of a training; fiber: t5:NAME.",
        metavar="WEIGHTS",
        panel=PANEL,
    ),
]
Tokenizer = Annotated[
    Path | None, options.option("--tokenizer", help="Folder of RoBERTa's vocab.json and merges.txt.", metavar="DIR", panel=PANEL)
]
Only = Annotated[
    list[str] | None,
    options.option("--only", help="A task of VALUE to train, such as value-tvqa. Repeatable.", metavar="TASK", default="all", panel=PANEL),
]


def train_on_value(regime: str | None, console: Console, **request: Any) -> None:
    """Train HERO under a regime and print each of its models.

    Raises:
        UsageError: no regime is named.
    """
    from vip.baselines.installed import is_first_process
    from vip.errors import UsageError
    from vip.tasks.value.trained_models import TrainValueRequest, train_value

    if regime is None:
        raise UsageError(f"Name which tasks share a model: {option('regime', '|'.join(REGIMES))}.")
    done: Sequence[Any] = train_value(TrainValueRequest(regime=regime, **request), observer=console)
    if not is_first_process():
        return
    out = request["out"]
    for one in done:
        if console.as_json:
            print_json(
                {
                    **{"run": str(out / one.stage), "task": TASK, "regime": one.regime, "stage": one.stage, "tasks": list(one.tasks)},
                    **{"steps": one.settings.training.steps, "best_step": one.best_step, "scores": one.best_scores},
                    **{"is_meta_average": len(one.tasks) == 11, "train": one.train_items, "val": one.val_items},
                }
            )
            continue
        scores = ", ".join(f"{task} {score:.2f}" for task, score in one.best_scores.items())
        console.write_line(f"{out / one.stage}: {mean(one.best_scores)} at step {one.best_step} ({scores})")
    if not console.as_json:
        console.write_line(f"Answer with: vip predict --task value-{done[-1].tasks[0].replace('_', '-')} --annotations FILE --model {out}")


def mean(scores: dict[str, float]) -> str:
    """Return the mean of tasks in words."""
    from vip.baselines.value.run_folder import mean_text

    return mean_text(scores)
