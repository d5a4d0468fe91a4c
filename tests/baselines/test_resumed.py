"""vip.baselines.resumed: a file to go on from that a stranger has changed is one sentence, before an epoch and without memory"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("lightning")

import torch

from tests.baselines.changed_checkpoints import epochs_are, without_rows
from vip.baselines import resumed
from vip.baselines.learner import Learner
from vip.baselines.resumed import check_like, check_sizes, stated_bytes
from vip.baselines.run_folder import EPOCHS, LAST, PART, WEIGHTS, check_begun, count_epochs, find_last
from vip.baselines.training import LinearDecay, Machine, Plateau, Schedule, make_loader, train
from vip.errors import InputError, StoreError
from vip.protocols import SilentObserver

Change = Callable[[dict[str, Any]], object]
SCHEDULES: dict[str, Schedule] = {
    "plateau": Plateau(factor=0.5, patience=1),
    "decay": LinearDecay(warmup_epochs=1, weight_decay=0.1),
}


class Batch(list[float]):
    def to(self, device: object) -> Batch:
        return self


class Line(Learner):
    """Two numbers that are to become 0."""

    def __init__(self, width: int = 2) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(width, 1, bias=False)

    def loss(self, batch: Any) -> torch.Tensor:
        return (self.layer.weight * batch[0]).square().sum()

    def scores(self, batch: Any) -> list[float]:
        return [0.5]


def go_on(folder: Path, schedule: Schedule, *, epochs: int = 4, resume: bool = True) -> Any:
    torch.manual_seed(0)
    batches = make_loader([1.0, 2.0], Batch, batch=1)
    settings = SimpleNamespace(epochs=epochs, seed=1, best_by="accuracy")
    given: Any = {"settings": settings, "schedule": schedule, "learning_rate": 0.1, "folder": folder, "machine": Machine(device="cpu")}
    return train(Line(), batches, batches, observer=SilentObserver(), resume=resume, **given)


@pytest.fixture(scope="module", params=SCHEDULES)
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Schedule]:
    """A training of two epochs."""
    folder, schedule = tmp_path_factory.mktemp(request.param), SCHEDULES[request.param]
    go_on(folder, schedule, epochs=2, resume=False)
    return folder, schedule


def changed(folder: Path, to: Path, change: Change) -> Path:
    shutil.copytree(folder, to)
    state = torch.load(to / LAST, weights_only=True)
    change(state)
    torch.save(state, to / LAST)
    return to


def moments(state: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = state["optimizer_states"][0]["state"][0]
    return found


def group(state: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = state["optimizer_states"][0]["param_groups"][0]
    return found


CHANGES: dict[str, Change] = {
    "large": lambda state: moments(state).update(exp_avg=torch.zeros(1, dtype=torch.float64).expand(10**9)),
    "shape": lambda state: moments(state).update(exp_avg=torch.zeros(3)),
    "no moment": lambda state: moments(state).pop("exp_avg"),
    "step": lambda state: moments(state).update(step=torch.tensor(float("nan"))),
    "lr": lambda state: group(state).update(lr="abc\x1b[31m"),
    "high lr": lambda state: group(state).update(lr=1e9),
    "betas": lambda state: group(state).update(betas=(5, "\x1b[31m")),
    "fused": lambda state: group(state).update(capturable=True),
    "negative": lambda state: epochs_are(state, -(10**9)),
    "other count": lambda state: epochs_are(state, 3),
    "text": lambda state: state["loops"]["fit_loop"]["epoch_progress"]["current"].update(completed="5"),
    "no rows": lambda state: without_rows(state, 4),
    "score": lambda state: state["vip"]["rows"][0].update(score=1e308),
    "loss": lambda state: state["vip"]["rows"][0].update(loss=float("inf")),
    "nothing": lambda state: state.clear(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_stranger_changed_is_one_sentence(change: str, begun: tuple[Path, Schedule], tmp_path: Path) -> None:
    folder = changed(begun[0], tmp_path / "run", CHANGES[change])
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read \(.*\)\. Begin the training anew: --overwrite\.$") as caught:
        go_on(folder, begun[1])
    assert not {"\n", "\x1b"} & set(str(caught.value))


@pytest.mark.parametrize(
    ("name", "value"), [("best", "x"), ("mode", "zz"), ("num_bad_epochs", -1), ("_last_lr", "x"), ("optimizer", 1), ("factor", None)]
)
def test_a_plateau_that_was_changed_is_one_sentence(name: str, value: object, begun: tuple[Path, Schedule], tmp_path: Path) -> None:
    if not isinstance(begun[1], Plateau):
        pytest.skip("it has none")
    folder = changed(begun[0], tmp_path / "run", lambda state: state["vip"]["plateau"].update({name: value}))
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read \("):
        go_on(folder, begun[1])


@pytest.mark.parametrize(("name", "value"), [("base_lrs", ["x"]), ("base_lrs", [5.0]), ("last_epoch", -5), ("step", 1), ("_last_lr", [])])
def test_a_schedule_that_was_changed_is_one_sentence(name: str, value: object, begun: tuple[Path, Schedule], tmp_path: Path) -> None:
    if isinstance(begun[1], Plateau):
        pytest.skip("it is none of Lightning's")
    folder = changed(begun[0], tmp_path / "run", lambda state: state["lr_schedulers"][0].update({name: value}))
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read \("):
        go_on(folder, begun[1])


def test_what_nobody_changed_goes_on_again_and_again(begun: tuple[Path, Schedule], tmp_path: Path) -> None:
    folder = changed(begun[0], tmp_path / "run", lambda state: None)
    for epochs in (3, 4, 4, 6):
        rows = go_on(folder, begun[1], epochs=epochs)
        assert [row.epoch for row in rows] == list(range(1, epochs + 1))


def test_moments_whose_numbers_share_their_place_go_on(begun: tuple[Path, Schedule], tmp_path: Path) -> None:
    folder = changed(begun[0], tmp_path / "run", lambda state: moments(state).update(exp_avg_sq=torch.ones(1, 1).expand(1, 2)))
    assert len(go_on(folder, begun[1])) == 4


def test_the_bytes_that_a_file_states_are_counted_as_often_as_they_are_named() -> None:
    one = torch.zeros(1).expand(1000)
    assert stated_bytes({"a": [one, (one, {"b": one})], "c": 5}) == 12_000
    endless: list[Any] = []
    endless += [endless, endless]
    with pytest.raises(ValueError, match="more than 2,000,000 values"):
        stated_bytes(endless)


def test_a_small_file_that_names_far_more_numbers_is_refused(tmp_path: Path) -> None:
    torch.save({"state_dict": {}, "x": [torch.zeros(1).expand(2**14)] * 1024}, tmp_path / LAST)
    assert find_last(tmp_path) == tmp_path / LAST
    torch.save({"state_dict": {}, "x": [torch.zeros(1).expand(2**14)] * 2048}, tmp_path / LAST)
    with pytest.raises(InputError, match="it names more numbers than it has bytes"):
        find_last(tmp_path)


def test_sizes_that_a_folder_states_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"begun with a model of 1,000,000,000,000 weights, and none were saved\. Begin .* --overwrite"):
        check_begun(tmp_path, lambda: Line(10**12))
    check_begun(tmp_path, Line)
    monkeypatch.setattr(resumed, "MOST_UNSAVED", 1)
    torch.save({"state_dict": {"learner.layer.weight": torch.zeros(1, 2)}}, tmp_path / LAST)
    check_begun(tmp_path, Line)
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read \(it holds weights of another model, such as layer\.weight\)"):
        check_begun(tmp_path, lambda: Line(10**12))
    for state in ({}, {"state_dict": 5}, {"state_dict": {"learner.layer.weight": 5}}):
        with pytest.raises(InputError, match="it has no weights"):
            check_sizes(tmp_path / LAST, state, Line, lambda model: model.state_dict().keys())


@pytest.mark.parametrize("name", [PART, WEIGHTS, EPOCHS])
def test_a_folder_in_the_way_is_found_before_the_first_epoch(name: str, begun: tuple[Path, Schedule], tmp_path: Path) -> None:
    folder = changed(begun[0], tmp_path / "run", lambda state: None)
    (folder / name).unlink(missing_ok=True)
    (folder / name).mkdir()
    with pytest.raises(StoreError, match=r"Delete it, or name another folder with -o\.") as caught:
        go_on(folder, begun[1])
    assert str(folder / name) in str(caught.value)


def test_rows_that_cannot_be_counted_name_the_next_step_of_a_training(tmp_path: Path) -> None:
    (tmp_path / EPOCHS).mkdir()
    with pytest.raises(StoreError, match=r"epochs\.jsonl cannot be read: Is a directory\. Begin the training anew: --overwrite\.$"):
        count_epochs(tmp_path)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [({"a": 1, "verbose": False}, {"a": 0, "b": 5}), ((1, 2.5), [0, 0.0]), (float("-inf"), float("-inf")), (True, False)],
)
def test_values_of_the_same_form_are_alike(value: object, pattern: object) -> None:
    check_like(value, pattern)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [({"c": 1}, {"a": 0}), ([1], [0, 0]), ("x", 0.0), (float("nan"), 0.0), (True, 0), (0, False), ("b", "a"), (5, None), (-1, 0), (5, [1])],
)
def test_values_of_another_form_are_not(value: object, pattern: object) -> None:
    with pytest.raises(ValueError, match="is no such value"):
        check_like(value, pattern)
