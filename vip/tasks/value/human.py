"""People on the caption tasks of VALUE: of each clip one caption at random, scored against the others (Li et al. 2021, appendix C).

In: samples with several captions. Out: the one as a prediction, and the sample with the others as its references. Of YC2C there is one
caption a clip, so that the paper reports no people there.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from vip import store
from vip.config import SampleSettings
from vip.errors import InputError, UsageError
from vip.tasks.files import check_new, draw_samples, write_samples
from vip.tasks.predict import PredictionSummary
from vip.tasks.records import FreeText, Prediction, Reference, Sample
from vip.tasks.registry import load_task
from vip.tasks.task import SampleSource
from vip.tasks.value.task import ValueTask
from vip.untrusted import one_line
from vip.wording import option

NAME = "human"
ENGINE = "baseline:human"


def hold_out_captions(samples: Iterable[Sample], seed: int) -> Iterator[tuple[Sample, Prediction]]:
    """Yield each sample without one of its captions, and that caption as its prediction; which one, the seed and the order decide.

    Raises:
        InputError: a sample has fewer than two captions.
    """
    draw = random.Random(seed)
    for sample in samples:
        captions = [str(value) for value in sample.reference.values] if sample.reference else []
        if not isinstance(sample.ask, FreeText) or len(captions) < 2:
            raise InputError(
                f'The clip "{one_line(sample.id)[:80]}" has {len(captions)} captions, and people are one against the others.'
                " Give annotations of TVC or VATEX-EN-C with answers."
            )
        place = draw.randrange(len(captions))
        others = tuple(captions[:place] + captions[place + 1 :])
        left = sample.model_copy(update={"reference": Reference(values=others)})
        yield left, Prediction(sample_id=sample.id, value=captions[place], engine=f"{ENGINE} seed:{seed}")


def predict_human(
    task_name: str | None, annotations: Sequence[str], out: Path, settings: SampleSettings, *, overwrite: bool = False
) -> PredictionSummary:
    """Write one caption a clip as predictions, and beside them the samples with the others.

    Raises:
        UsageError: the task writes no captions, or the annotations are not named.
        InputError: a clip has one caption alone.
    """
    if task_name is None or not annotations:
        raise UsageError(f"{option('baseline', NAME)} needs {option('task', 'NAME')} and {option('annotations', 'FILE')}.")
    task = load_task(task_name)
    if not isinstance(task, ValueTask) or task.dataset.category != "captioning":
        raise UsageError(f"{task.name} is no caption task of VALUE, which {option('baseline', NAME)} is for. Name another baseline.")
    check_new(out, overwrite=overwrite)
    plain = settings.model_copy(update={"videos": None, "subtitles": None})
    samples = draw_samples(task.samples(SampleSource(paths=tuple(annotations), settings=plain)), settings.most, settings.seed)
    pairs = list(hold_out_captions(samples, settings.seed))
    write_samples(out.with_name(f"{out.stem}.samples.jsonl"), (sample for sample, _ in pairs))
    store.write_rows(out, (prediction for _, prediction in pairs))
    return PredictionSummary(out, task.name, f"{ENGINE} seed:{settings.seed}", {"ok": len(pairs)})
