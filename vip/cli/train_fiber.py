"""`vip train fiber`, and `vip predict --model` with a model of FIBER."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vip.cli import options
from vip.cli.console import Console, print_json
from vip.wording import option

if TYPE_CHECKING:
    from vip.tasks.predict import PredictionSummary

TASK = "fiber"

Parser = Annotated[
    str | None,
    options.option(
        "--parser",
        help="Says which beams are noun phrases, for models of fiber; none takes the first beam.",
        metavar="NAME",
        default="spacy:en_core_web_trf",
    ),
]
Beams = Annotated[int | None, options.option("--beams", help="Beams of a model of fiber.", metavar="N", default="as in its settings")]


def train_on_fiber(console: Console, **request: Any) -> None:
    """Train a model of FIBER and print how good it is."""
    from vip.baselines.installed import is_first_process
    from vip.tasks.fiber.trained_models import FillerRequest, train_on_records

    done = train_on_records(FillerRequest(**request), observer=console)
    if not is_first_process():
        return
    out, training = request["out"], done.settings.training
    if console.as_json:
        print_json(
            {
                **{"run": str(out), "task": TASK, "model": done.settings.model, "engine": done.name, "weights": done.weights},
                **{"epochs": training.epochs, "best_epoch": done.best_epoch, "best_score": done.best_score},
                **{"score": training.best_by, "train": done.train_items, "val": done.val_items},
            }
        )
        return
    score = f"{100 * (done.best_score or 0):.2f} {training.best_by} on val in epoch {done.best_epoch}"
    console.write_line(f"{done.name}: {score}. Answer with: vip predict --task {TASK} --annotations val.json --model {out}")


def is_filler(model: Path | None, parser: str | None, beams: int | None) -> bool:
    """Return whether a model fills blanks: a T5, or the folder of a model of FIBER.

    Raises:
        UsageError: an option of such models is given, and no such model.
    """
    from vip.errors import UsageError

    found = False
    if model is not None:
        from vip.tasks.fiber.trained_models import is_filler as is_model_of_fiber

        found = is_model_of_fiber(model)
    given = "parser" if parser is not None else "beams" if beams is not None else None
    if given and not found:
        raise UsageError(
            f"{option(given)} is for models of {TASK}. Add {option('model', 't5:NAME')} or its folder, or leave {option(given)} out."
        )
    return found


def predict_by_filler(
    samples: Path,
    out: Path,
    model: Path,
    features: list[Path] | None,
    parser: str | None,
    beams: int | None,
    *,
    overwrite: bool,
    console: Console,
) -> PredictionSummary:
    """Fill the blanks of samples by a T5, or by a model of a run folder."""
    from vip.tasks.fiber.trained_models import predict_fillers

    return predict_fillers(
        samples, out, str(model), features=features or (), parser=parser, beams=beams, overwrite=overwrite, observer=console
    )
