"""`vip train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vip.cli import options, train_fiber, train_value
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.wording import option

EXAMPLES = """[bold]Examples[/bold]
vip train nextqa-mc --model hga --annotations nextqa/ --features f.h5 -o run/
vip train nextqa-mc --annotations nextqa/ --features f.h5 -o run/ --resume
vip train nextqa-mc --model blind-qa --annotations nextqa/ -o blind/
vip train nextqa-oe --model blind-qa --annotations nextqa-oe/ -o open/
vip train fiber --model text --weights t5:t5-base --annotations fiber/ -o run/
vip train value --regime st --annotations value/ --features f/ -o run/
"""
MACHINE = "Machine"
OF_WHICH = {
    **dict.fromkeys(("model", "epochs"), ("NExT-QA", "FIBER")),
    **dict.fromkeys(("glove", "bert", "text-features", "appearance", "decoder"), ("NExT-QA",)),
    **dict.fromkeys(("regime", "only", "subtitles", "tokenizer"), ("VALUE",)),
    "weights": ("VALUE", "FIBER"),
}
"""Which trainings know an option; the others are known to all."""

Task = Annotated[str, typer.Argument(help="nextqa-mc, nextqa-oe, fiber or value.", metavar="TASK", show_default=False)]
AnnotationsFolder = Annotated[
    Path,
    options.option("--annotations", help="Folder with train.csv and val.csv (fiber: .json), or all of VALUE, as published.", metavar="DIR"),
]
Model = Annotated[str | None, options.option("--model", help="The model: blind-qa, evqa, hga, …", metavar="NAME")]
Features = Annotated[
    list[Path] | None,
    options.option(
        "--features",
        help="HDF5 file of features of the videos (ids, feat); of VALUE also a folder with NAME.npz. Repeatable.",
        metavar="FILE",
    ),
]
Out = Annotated[Path, options.option("--out", "-o", help="The folder of the training.", metavar="DIR")]
Resume = Annotated[bool, options.switch("--resume", help="Go on with the training of the folder, behind its last whole epoch.")]
Overwrite = Annotated[bool, options.switch("--overwrite", help="Replace the training of the folder.")]
Glove = Annotated[Path | None, options.option("--glove", help="GloVe vectors that words begin with, else random ones.", metavar="FILE")]
Bert = Annotated[Path | None, options.option("--bert", help="Folder of a BERT and its tokenizer, for words.kind=bert.", metavar="DIR")]
TextFeatures = Annotated[
    list[Path] | None,
    options.option("--text-features", help="Stored vectors of train, then of val, for words.kind=features.", metavar="FILE"),
]
Appearance = Annotated[
    int | None, options.option("--appearance", help="How many numbers of a clip are appearance; the others are motion.", metavar="NUMBER")
]
DecoderName = Annotated[str | None, options.option("--decoder", help="Decoder of open-ended answers.", metavar="NAME", default="att-qns")]
Config = Annotated[Path | None, options.option("--config", help="TOML file of settings, over those of the model.", metavar="FILE")]
Assignments = Annotated[
    list[str] | None, options.option("--set", help="One setting, such as model.hidden=64. Repeatable.", metavar="NAME=VALUE")
]
Epochs = Annotated[int | None, options.option("--epochs", help="Number of epochs.", metavar="NUMBER", default="50 or 100")]
Seed = Annotated[int | None, options.option("--seed", help="What chance is drawn from.", metavar="NUMBER", default="666; VALUE: 77")]
Device = Annotated[str, options.option("--device", help="auto, cpu, cuda or mps.", metavar="NAME", default="auto", panel=MACHINE)]
Devices = Annotated[int, options.option("--devices", help="How many GPUs share each batch.", metavar="NUMBER", default="1", panel=MACHINE)]
Workers = Annotated[
    int, options.option("--workers", help="Processes that read features beside the training.", metavar="NUMBER", default="0", panel=MACHINE)
]


def train_command(
    task: Task,
    annotations: AnnotationsFolder,
    out: Out,
    model: Model = None,
    features: Features = None,
    glove: Glove = None,
    bert: Bert = None,
    text_features: TextFeatures = None,
    appearance: Appearance = None,
    decoder: DecoderName = None,
    config: Config = None,
    assignments: Assignments = None,
    epochs: Epochs = None,
    seed: Seed = None,
    regime: train_value.Regime = None,
    only: train_value.Only = None,
    subtitles: train_value.Subtitles = None,
    tokenizer: train_value.Tokenizer = None,
    weights: train_value.Weights = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
    devices: Devices = 1,
    workers: Workers = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a model of a paper on features of videos."""
    from vip.baselines.installed import is_first_process
    from vip.tasks.nextqa.trained_models import TrainRequest, train_on_annotations

    console = Console(quiet=quiet or as_json, as_json=as_json)
    _check_options(
        task,
        {"model": model, "epochs": epochs, "weights": weights, "regime": regime, "only": only, "subtitles": subtitles}
        | {"tokenizer": tokenizer, "glove": glove, "bert": bert, "text-features": text_features, "appearance": appearance}
        | {"decoder": decoder},
    )
    shared: dict[str, Any] = {
        **{"annotations": annotations, "out": out, "features": features or (), "config": config, "assignments": assignments or ()},
        **{"seed": seed, "device": device, "devices": devices, "workers": workers, "resume": resume, "overwrite": overwrite},
    }
    if task == train_value.TASK:
        of_value: dict[str, Any] = {"subtitles": subtitles, "tokenizer": tokenizer, "tasks": only or (), "weights": weights}
        train_value.train_on_value(regime, console, **of_value, **shared)
        return
    if task == train_fiber.TASK:
        train_fiber.train_on_fiber(console, model=model, weights=weights, epochs=epochs, **shared)
        return
    words = {"glove": glove, "bert": bert, "texts": text_features or ()}
    of_nextqa: dict[str, Any] = {"task": task, "model": model, "decoder": decoder, "appearance": appearance, "epochs": epochs, **words}
    request = TrainRequest(**of_nextqa, **shared)
    done = train_on_annotations(request, observer=console)
    if not is_first_process():
        return
    if as_json:
        print_json(
            {
                **{"run": str(out), "task": task, "model": done.settings.model, "decoder": done.settings.decoder, "engine": done.name},
                **{"epochs": done.settings.training.epochs, "best_epoch": done.best_epoch, "best_score": done.best_score},
                **{"score": done.settings.training.best_by, "train": done.train_items, "val": done.val_items},
            }
        )
        return
    score = f"{100 * (done.best_score or 0):.2f} {done.settings.training.best_by} on val in epoch {done.best_epoch}"
    console.write_line(f"{done.name}: {score}. Answer with: vip predict --task {task} --annotations val.csv --model {out}")


def _check_options(task: str, given: dict[str, Any]) -> None:
    """Refuse options of another kind of training.

    Raises:
        UsageError: one is given for a task that does not know it.
    """
    from vip.errors import UsageError

    kind = {train_value.TASK: "VALUE", train_fiber.TASK: "FIBER"}.get(task, "NExT-QA")
    wrong = next((name for name, value in given.items() if value and kind not in OF_WHICH[name]), None)
    if wrong is not None:
        raise UsageError(f"{option(wrong)} is for trainings of {' and '.join(OF_WHICH[wrong])}. Leave it out.")
