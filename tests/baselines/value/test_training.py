"""The loop of a training of VALUE: its schedule, its weights, its validations, and going on where it stopped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.baselines.changed_checkpoints import epochs_are, without_rows
from tests.baselines.value.made_value import SMALL, WIDTH, make_examples, make_maker
from vip.baselines.settings import merge
from vip.baselines.training import Machine
from vip.baselines.value.interface import HeroModel
from vip.baselines.value.run_folder import LAST, VALIDATIONS, WEIGHTS, ValidationRecord, load_weights, mean_text
from vip.baselines.value.settings import ValueSettings, load_settings
from vip.baselines.value.training import StageData, StageLoop, draw_model, learning_rate_factor, parameter_groups, train_stage
from vip.errors import InputError, StoreError
from vip.protocols import SilentObserver

TASKS = ("tvr", "vatex_en_r", "tvqa", "violin", "vlep", "tvc", "yc2c")


def settings_of(*tasks: str, stage: str = "at", **training: Any) -> ValueSettings:
    assignments = merge([SMALL, {"training": training, "input": {"frames": 20, "text_tokens": 30}}])
    return load_settings(stage, tasks or TASKS, features=WIDTH, has_weights=True, assignments=assignments)


class Scores:
    """Gives the scores of one validation after the other."""

    def __init__(self, *scores: Mapping[str, float]) -> None:
        self.scores, self.models = list(scores), 0

    def __call__(self, model: HeroModel) -> Mapping[str, float]:
        assert not model.training
        self.models += 1
        return self.scores[min(self.models, len(self.scores)) - 1]


class StopsAtTheSecond(Scores):
    """Scores of a training that is stopped at its second validation."""

    def __call__(self, model: HeroModel) -> Mapping[str, float]:
        if self.models == 1:
            raise KeyboardInterrupt
        return super().__call__(model)


class Notes(SilentObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def train(
    folder: Path, settings: ValueSettings, scores: Scores, *, resume: bool = False, observer: SilentObserver | None = None
) -> list[ValidationRecord]:
    folder.mkdir(exist_ok=True)
    tasks = list(settings.tasks)
    data = StageData(train={task: make_examples(task) for task in tasks}, makers=dict.fromkeys(tasks, make_maker()), validate=scores)
    model = draw_model(settings)
    return train_stage(model, settings, data, folder, machine=Machine(device="cpu"), observer=observer or SilentObserver(), resume=resume)


# ---------------------------------------------------------------- schedule


@pytest.mark.parametrize(
    ("step", "factor"), [(1, 0.002), (250, 0.5), (499, 0.998), (500, 1.0), (2_750, 0.5), (4_999, 1 / 4_500), (5_000, 0.0), (6_000, 0.0)]
)
def test_the_learning_rate_rises_for_a_tenth_of_the_steps_and_falls_to_0(step: int, factor: float) -> None:
    assert learning_rate_factor(step, 500, 5_000) == pytest.approx(factor, abs=1e-12)


def test_a_training_of_warm_up_alone_does_not_fall() -> None:
    assert [learning_rate_factor(step, 2, 2) for step in (1, 2)] == [0.5, 1.0]


def test_the_first_step_has_the_first_rate_of_the_warm_up_and_the_last_none(tmp_path: Path) -> None:
    settings = settings_of("tvqa", stage="tvqa", steps=6, warmup_steps=2)
    model = draw_model(settings)
    data = StageData(train={}, makers={}, validate=Scores({}))
    loop = StageLoop(model, settings, data, tmp_path, SilentObserver(), Machine(device="cpu"))
    found = loop.configure_optimizers()
    optimizer, schedule = found["optimizer"], found["lr_scheduler"]["scheduler"]
    rates = []
    for _ in range(6):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([1e-3 * factor for factor in (0.5, 1.0, 0.75, 0.5, 0.25, 0.0)])
    assert found["lr_scheduler"]["interval"] == "step"


def test_the_gradients_of_the_batches_of_a_step_are_added_and_hard_negatives_weigh_from_their_step_on(tmp_path: Path) -> None:
    settings = settings_of("tvr", stage="tvr", accumulate=3, hard_negatives_from=4)
    model = draw_model(settings).eval()
    loop = StageLoop(
        model, settings, StageData(train={}, makers={}, validate=Scores({})), tmp_path, SilentObserver(), Machine(device="cpu")
    )
    batch = make_maker().batch(make_examples("tvr"))
    for step, is_hard in ((3, False), (4, True)):
        loop._trainer = SimpleNamespace(global_step=step)  # type: ignore[assignment]
        with torch.no_grad():
            expected = 3 * model.loss(batch, settings.loss.model_copy(update={"hard_negatives": is_hard}))
            assert loop.training_step(("tvr", batch), 0).item() == pytest.approx(expected.item())


def test_heads_have_their_own_rate_and_biases_and_norms_no_decay() -> None:
    settings = settings_of("tvqa", stage="tvqa")
    model = draw_model(settings)
    groups = parameter_groups(model, settings.training)
    rate = settings.training.learning_rate
    assert {(group["lr"], group["weight_decay"]) for group in groups} == {(rate, 0.0), (rate, 0.01), (10 * rate, 0.0), (10 * rate, 0.01)}
    counted = [id(one) for group in groups for one in group["params"]]
    assert len(counted) == len(set(counted)) == len(list(model.parameters()))
    named = {id(parameter): name for name, parameter in model.named_parameters()}
    for group in groups:
        for one in group["params"]:
            assert (group["lr"] == rate) == named[id(one)].startswith("encoder.")
            if group["weight_decay"] == 0.0:
                assert one.ndim == 1
            else:
                assert not named[id(one)].endswith("bias")


# ---------------------------------------------------------------- the loop


def test_all_kinds_of_tasks_train_one_model(tmp_path: Path) -> None:
    observer = Notes()
    rows = train(tmp_path, settings_of(steps=12, validate_every=6), Scores({"tvr": 1.0, "tvqa": 2.0}), observer=observer)
    assert [row.step for row in rows] == [6, 12]
    assert set().union(*(row.losses for row in rows)) <= set(TASKS)
    assert len(set().union(*(row.losses for row in rows))) > 3
    assert rows[-1].learning_rate == 0.0
    assert "val 1.50 (mean of 2 tasks, partial), best" in observer.notes[0]
    assert [ValidationRecord.model_validate(json.loads(line)) for line in (tmp_path / VALIDATIONS).read_text().splitlines()] == rows


def test_the_weights_with_the_best_mean_are_kept(tmp_path: Path) -> None:
    settings = settings_of("tvqa", stage="tvqa", steps=10, validate_every=2)
    scores = Scores({"tvqa": 10.0}, {"tvqa": 30.0}, {"tvqa": 20.0}, {"tvqa": 25.0}, {"tvqa": 30.0})
    rows = train(tmp_path / "three", settings, scores)
    assert [row.is_best for row in rows] == [True, True, False, False, False]
    model, last = draw_model(settings), draw_model(settings)
    load_weights(tmp_path / "three" / WEIGHTS, model)
    state = torch.load(tmp_path / "three" / LAST, weights_only=True)["state_dict"]
    last.load_state_dict({name.removeprefix("model."): tensor for name, tensor in state.items()})
    assert any(not torch.equal(one, other) for one, other in zip(model.parameters(), last.parameters(), strict=True))


def test_what_was_stopped_and_goes_on_has_the_same_weights(tmp_path: Path) -> None:
    settings = settings_of("tvr", "tvqa", steps=6, validate_every=2)
    scores = {"tvr": 1.0, "tvqa": 1.0}
    train(tmp_path / "whole", settings, Scores(scores))

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", settings, StopsAtTheSecond(scores))
    rows = train(tmp_path / "parts", settings, Scores(scores), resume=True)
    assert [row.step for row in rows] == [2, 4, 6]
    states = [torch.load(tmp_path / name / LAST, weights_only=True)["state_dict"] for name in ("whole", "parts")]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_a_loss_that_is_no_number_is_one_sentence(tmp_path: Path) -> None:
    settings = settings_of("tvqa", stage="tvqa", steps=2, validate_every=2)
    model = draw_model(settings)
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    data = StageData(train={"tvqa": make_examples("tvqa")}, makers={"tvqa": make_maker()}, validate=Scores({}))
    with pytest.raises(InputError, match=r"The loss of tvqa before step 2 is nan\. Lower training\.learning_rate"):
        train_stage(model, settings, data, tmp_path, machine=Machine(device="cpu"), observer=SilentObserver())


def test_a_damaged_file_to_go_on_from_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / LAST).write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read .* Begin the training anew: --overwrite"):
        train(tmp_path, settings_of("tvqa", stage="tvqa"), Scores({"tvqa": 1.0}), resume=True)


CHANGES: dict[str, Any] = {
    "shape": lambda state: state["optimizer_states"][0]["state"][0].update(exp_avg=torch.zeros(3)),
    "lr": lambda state: state["optimizer_states"][0]["param_groups"][0].update(lr="x"),
    "base_lrs": lambda state: state["lr_schedulers"][0].update(base_lrs=["\x1b[31m"] * 4),
    "last_epoch": lambda state: state["lr_schedulers"][0].update(last_epoch=-5),
    "count": lambda state: epochs_are(state, -5),
    "no rows": lambda state: without_rows(state, 2),
    "no scores": lambda state: state["vip"]["rows"][0].update(scores={}),
    "high score": lambda state: state["vip"]["rows"][0].update(scores={"tvqa": 1e308}),
    "other task": lambda state: state["vip"]["rows"][0].update(scores={"tvqa\x1b[31m": 1.0}),
    "large": lambda state: state.update(x=torch.zeros(1).expand(10**9)),
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ValueSettings]:
    """A training that was stopped behind its first validation."""
    settings, folder = settings_of("tvqa", stage="tvqa", steps=4, validate_every=2), tmp_path_factory.mktemp("run")

    with pytest.raises(KeyboardInterrupt):
        train(folder, settings, StopsAtTheSecond({"tvqa": 1.0}))
    return folder, settings


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_to_go_on_from_that_a_stranger_changed_is_one_sentence(
    change: str, stopped: tuple[Path, ValueSettings], tmp_path: Path
) -> None:
    shutil.copytree(stopped[0], tmp_path / "run")
    state = torch.load(tmp_path / "run" / LAST, weights_only=True)
    CHANGES[change](state)
    torch.save(state, tmp_path / "run" / LAST)
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read \(.*\)\. Begin the training anew: --overwrite\.$") as caught:
        train(tmp_path / "run", stopped[1], Scores({"tvqa": 1.0}), resume=True)
    assert "\x1b" not in str(caught.value)


def test_a_folder_in_the_way_is_found_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / f"{LAST}.vip-part").mkdir()
    scores = Scores({"tvqa": 1.0})
    with pytest.raises(StoreError, match=r"last\.ckpt\.vip-part cannot be deleted: .*\. Delete it, or name another folder with -o"):
        train(tmp_path, settings_of("tvqa", stage="tvqa", steps=1, validate_every=1), scores)
    assert scores.models == 0


# ---------------------------------------------------------------- means


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ({"tvqa": 71.08}, "71.08 (tvqa)"),
        ({"tvqa": 70.0, "vlep": 60.0}, "65.00 (mean of 2 tasks, partial)"),
        ({str(number): float(number) for number in range(11)}, "5.00 (Meta-Ave)"),
        ({}, "– (mean of 0 tasks, partial)"),
    ],
)
def test_a_mean_of_fewer_tasks_is_marked_partial(scores: dict[str, float], text: str) -> None:
    assert mean_text(scores) == text


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    train(tmp_path, settings_of("tvqa", stage="tvqa", steps=1, validate_every=1), Scores({"tvqa": 1.0}))
    other = load_settings("tvqa", ["tvqa"], features=WIDTH + 1, has_weights=True, assignments=SMALL)
    with pytest.raises(InputError, match="holds weights of another model"):
        load_weights(tmp_path / WEIGHTS, draw_model(other))
