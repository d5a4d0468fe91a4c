"""vip.baselines.fiber.settings, and how the learning rate goes"""

from __future__ import annotations

import pytest

from vip.baselines.fiber.settings import MODELS, load_settings
from vip.baselines.settings import parse_assignments
from vip.errors import UsageError


@pytest.mark.parametrize(("model", "beams"), [("text", 2), ("early-fusion", 4), ("late-fusion", 8)])
def test_each_model_has_the_beams_of_the_paper(model: str, beams: int) -> None:
    found = load_settings(model)
    assert found.decoding.beams == beams
    assert (found.training.learning_rate, found.training.weight_decay, found.training.batch) == (1e-4, 1e-4, 64)
    assert (found.training.epochs, found.training.warmup_epochs, found.training.seed) == (10, 1.0, 42)
    assert found.options.modality_embeddings


def test_the_hash_is_of_all_settings() -> None:
    changed = load_settings("text", assignments=parse_assignments(["model.text_length=64"]))
    assert len({load_settings(model).sha256 for model in MODELS} | {changed.sha256}) == 4


@pytest.mark.parametrize(
    ("model", "assignment", "said"),
    [
        ("early", "training.epochs=1", 'no model "early". Did you mean "early-fusion"'),
        ("text", "words.size=1", "There is no setting words"),
        ("text", "training.epoch=1", "training has no setting epoch"),
        ("text", "training.epochs=0", "training.epochs: "),
        ("text", "model=1", "model is a table of settings"),
        ("late-fusion", "model.joint=last", "model.joint: "),
    ],
)
def test_wrong_settings_are_one_sentence(model: str, assignment: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_settings(model, assignments=parse_assignments([assignment]))


@pytest.mark.extra("lightning")
def test_the_rate_rises_over_the_first_epoch_and_falls_to_nothing() -> None:
    pytest.importorskip("lightning")
    from vip.baselines.training import LinearDecay

    paper = LinearDecay(warmup_epochs=1.0, weight_decay=0.0)
    assert [paper.factor(epoch, 10) for epoch in (0, 0.5, 1, 5.5, 10)] == [0, 0.5, 1, 0.5, 0]
    code = LinearDecay(warmup_epochs=1.0, weight_decay=0.0, each="epoch")
    assert [code.factor(epoch, 10) for epoch in (0, 0.9, 1, 1.9, 9.5)] == [0, 0, 1, 1, pytest.approx(1 / 9)]
