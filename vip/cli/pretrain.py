"""`vip pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.cli.train import Assignments, Config, Device, Devices, Features, Overwrite, Resume, Seed, Workers
from vip.cli.train_value import Tokenizer

EXAMPLES = """[bold]Examples[/bold]
vip pretrain --features tv/ --subtitles tv.jsonl --tokenizer roberta/ -o pre/
vip pretrain --features tv/ --subtitles tv.jsonl -o pre/ --resume
"""

Out = Annotated[Path | None, options.option("--out", "-o", help="The folder of the training.", metavar="DIR", default="pretrained")]
Subtitles = Annotated[Path | None, options.option("--subtitles", help="Subtitles of the videos to train on, as published.", metavar="FILE")]
Weights = Annotated[
    str | None, options.option("--weights", help="What training begins with: roberta:FILE or hero:FILE, else random.", metavar="WEIGHTS")
]


def pretrain_command(
    out: Out = None,
    features: Features = None,
    subtitles: Subtitles = None,
    tokenizer: Tokenizer = None,
    weights: Weights = None,
    config: Config = None,
    assignments: Assignments = None,
    seed: Seed = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
    devices: Devices = 1,
    workers: Workers = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Pre-train HERO on videos with subtitles: masked words and frames, order of frames, sentences as queries."""
    from vip.baselines.installed import is_first_process
    from vip.store import unlinked
    from vip.tasks.value.pretrain import PretrainRequest, pretrain

    console = Console(quiet=quiet or as_json, as_json=as_json)
    out = out or unlinked(Path("pretrained"))
    request = PretrainRequest(
        out=out,
        features=features or (),
        subtitles=subtitles,
        tokenizer=tokenizer,
        weights=weights,
        config=config,
        assignments=assignments or (),
        seed=seed,
        device=device,
        devices=devices,
        workers=workers,
        resume=resume,
        overwrite=overwrite,
    )
    done = pretrain(request, observer=console)
    if not is_first_process():
        return
    if as_json:
        print_json({"run": str(out), "steps": done.settings.training.steps, "best_step": done.best_step, "scores": done.best_scores})
        return
    scores = ", ".join(f"{task} {score:.2f}" for task, score in done.best_scores.items())
    console.write_line(f"{out}: best at step {done.best_step} ({scores}; 100 · exp(−loss) on {done.val_items['mlm']:,} videos).")
    console.write_line(f"Train with: vip train value --regime st --weights {out} --annotations DIR --features DIR")
