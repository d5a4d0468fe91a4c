"""vip.baselines.fiber.filler and encoders: what a model sees, learns and says, on a tiny T5 with random weights"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("lightning")

import torch

from tests.baselines.fiber.made import WIDTH, make_items, write_npy, write_t5
from vip.baselines.fiber.data import BlankItem, Collator
from vip.baselines.fiber.settings import load_settings
from vip.baselines.fiber.t5 import load_t5
from vip.baselines.fiber.video import Clip, FeatureFolder
from vip.baselines.settings import parse_assignments

if TYPE_CHECKING:
    from vip.baselines.fiber.data import FillerBatch
    from vip.baselines.fiber.filler import Filler

pytestmark = pytest.mark.slow
MODELS = ("text", "early-fusion", "late-fusion")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_t5(tmp_path_factory.mktemp("t5"))


@pytest.fixture(scope="module")
def items() -> list[BlankItem]:
    return make_items(8)


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory, items: list[BlankItem]) -> FeatureFolder:
    return FeatureFolder(write_npy(tmp_path_factory.mktemp("i3d"), items))


def make(t5: Path, model: str, *settings: str) -> Filler:
    from vip.baselines.fiber.filler import Filler

    torch.manual_seed(0)
    found = load_settings(model, assignments=parse_assignments(settings))
    return Filler(found, *load_t5(f"t5:{t5}"), WIDTH if found.sees_video else 0).eval()


def batch_of(filler: Filler, items: Sequence[BlankItem], features: FeatureFolder) -> FillerBatch:
    seen = features if filler.settings.sees_video else None
    return Collator(filler.tokenizer, filler.settings.options, seen)(items)


def logits(filler: Filler, batch: FillerBatch) -> torch.Tensor:
    assert batch.labels is not None
    with torch.inference_mode():
        return filler.logits(batch, batch.labels)[0]


def test_without_its_video_early_fusion_says_what_the_text_alone_says(t5: Path, items: list[BlankItem], features: FeatureFolder) -> None:
    early, text = make(t5, "early-fusion", "model.modality_embeddings=false"), make(t5, "text")
    batch = batch_of(early, items, features)
    assert batch.video_mask is not None
    seen = logits(early, batch)
    batch.video_mask.zero_()
    torch.testing.assert_close(logits(early, batch), logits(text, batch), atol=1e-5, rtol=0)
    assert not torch.allclose(logits(early, batch), seen, atol=1e-3)


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_does_not_depend_on_the_others_of_its_batch(
    t5: Path, features: FeatureFolder, items: list[BlankItem], model: str
) -> None:
    filler = make(t5, model)
    longer = BlankItem("long", items[1].clip, f"{items[1].masked} Two of them is here in the park . Two of them", "a dog")
    alone = logits(filler, batch_of(filler, items[:1], features))
    beside = logits(filler, batch_of(filler, [items[0], longer], features))
    torch.testing.assert_close(alone[0], beside[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("model", MODELS[1:])
def test_an_answer_does_not_depend_on_how_long_the_other_videos_are(t5: Path, tmp_path: Path, model: str) -> None:
    one, other = make_items(2)
    write_npy(tmp_path, [one], features=3)
    features = FeatureFolder(write_npy(tmp_path, [other], features=7))
    filler = make(t5, model)
    alone = logits(filler, batch_of(filler, [one], features))
    batch = batch_of(filler, [one, other], features)
    assert batch.video_mask is not None
    assert batch.video_mask.sum(dim=1).tolist() == [3, 7]
    torch.testing.assert_close(logits(filler, batch)[0], alone[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("model", MODELS[1:])
def test_text_and_video_have_a_mark_each(t5: Path, items: list[BlankItem], features: FeatureFolder, model: str) -> None:
    filler: Any = make(t5, model)
    batch = batch_of(filler, items, features)
    before = logits(filler, batch)
    for mark in range(2):
        with torch.no_grad():
            filler.encoder.modalities[mark] += torch.linspace(-1, 1, 32)
        after = logits(filler, batch)
        assert not torch.allclose(after, before, atol=1e-4)
        before = after


@pytest.mark.parametrize("model", MODELS)
def test_every_part_gets_a_gradient(t5: Path, items: list[BlankItem], features: FeatureFolder, model: str) -> None:
    filler = make(t5, model)
    filler.loss(batch_of(filler, items, features)).backward()  # type: ignore[no-untyped-call]
    without = [name for name, one in filler.named_parameters() if one.requires_grad and (one.grad is None or not one.grad.abs().sum())]
    assert not without


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("text", {"t5"}),
        ("early-fusion", {"t5", "encoder.project", "encoder.modalities"}),
        ("late-fusion", {"t5", "encoder.project", "encoder.modalities", "encoder.over_video", "encoder.over_both"}),
    ],
)
def test_the_parts_of_a_model(t5: Path, model: str, parts: set[str]) -> None:
    names = {name for name, _ in make(t5, model).named_parameters()}
    assert {".".join(name.split(".")[: 1 if name.startswith("t5") else 2]) for name in names} == parts


def test_late_fusion_reads_video_and_both_with_one_layer_each(t5: Path) -> None:
    filler: Any = make(t5, "late-fusion")
    assert [len(part.encoder.block) for part in (filler.encoder.over_video, filler.encoder.over_both)] == [1, 1]
    assert len(filler.t5.get_encoder().block) == 2
    first: Any = make(t5, "late-fusion", "model.joint=first-layer")
    ours, theirs = (part.block[0].state_dict() for part in (first.encoder.over_both.encoder, first.t5.get_encoder()))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("model", MODELS[1:])
def test_a_single_feature_is_all_of_the_video_that_is_seen(t5: Path, items: list[BlankItem], features: FeatureFolder, model: str) -> None:
    filler = make(t5, model, "model.single_feature=true")
    video = batch_of(filler, items, features).video
    assert video is not None
    assert video.shape == (8, 1, WIDTH)
    assert torch.equal(video[0, 0], torch.from_numpy(features.read(items[0].clip)[4]))  # five features: the last is nearest to 2.5 s


@pytest.mark.parametrize("model", MODELS)
def test_eight_samples_are_learned(t5: Path, features: FeatureFolder, model: str) -> None:
    items = [
        BlankItem(f"v{number}", Clip(f"v{number}", 0, 10), f"_____ is {word} .", label, (label,))
        for number, (word, label) in enumerate(
            zip(("here", "in", "of", "ball", "park", "thrown", "them", "runs"), 4 * ("a dog", "Two girl"), strict=True)
        )
    ]
    filler = make(t5, model).train()
    optimizer = torch.optim.AdamW([one for one in filler.parameters() if one.requires_grad], lr=5e-3)
    batch = batch_of(filler, items, features)
    for step in range(150):
        optimizer.zero_grad()
        loss = filler.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % 10 == 9 and loss.item() < 0.02:  # dropout has its part in it: the answers below are given without
            break
    assert loss.item() < 0.1
    with torch.inference_mode():
        assert [one.phrase for one in filler.eval().fill(batch)] == [item.label for item in items]
        assert filler.scores(batch) == [1.0] * 8


def test_no_two_words_in_a_row_come_twice_and_answers_end(t5: Path, items: list[BlankItem], features: FeatureFolder) -> None:
    filler = make(t5, "text", "decoding.beams=4")
    with torch.inference_mode():
        ids, _ = filler._generate(batch_of(filler, items, features))
    assert ids.shape[:2] == (8, 4)
    assert ids.shape[2] <= 10
    ending, pad, end = (filler.tokenizer.convert_tokens_to_ids(name) for name in ("<extra_id_1>", "<pad>", "</s>"))
    assert filler._next == ending
    for row in ids.reshape(-1, ids.shape[2]).tolist():
        words = [token for token in row[1:] if token not in {pad, end}]
        pairs = list(pairwise(words))
        assert len(set(pairs)) == len(pairs)
        if ending in words:
            assert words[-1] == ending


def test_the_first_beam_that_is_a_noun_phrase_is_taken_and_else_the_first(
    t5: Path, items: list[BlankItem], features: FeatureFolder
) -> None:
    filler = make(t5, "text", "decoding.beams=4")
    batch = batch_of(filler, items[:2], features)
    asked: list[tuple[str, str]] = []

    def judge(pairs: Sequence[tuple[str, str]]) -> list[bool]:
        asked.extend(pairs)
        return [place in {2, 3} for place in range(len(pairs))]  # the third and fourth of the first caption, none of the second

    with torch.inference_mode():
        _, beams = filler._generate(batch)
        found = filler.fill(batch, judge)
    assert [one.phrase for one in found] == [beams[0][2], beams[1][0]]
    assert asked == [(item.masked, phrase) for item, phrases in zip(items[:2], beams, strict=True) for phrase in phrases]


def test_the_likelihood_of_a_label_equals_a_hand_product(t5: Path, items: list[BlankItem], features: FeatureFolder) -> None:
    filler = make(t5, "text")
    batch = batch_of(filler, items[:1], features)
    assert batch.labels is not None
    with torch.inference_mode():
        found = filler.fill(batch)[0].label_log_probabilities
        chances = logits(filler, batch)[0].softmax(dim=-1)
    tokens = batch.labels[0].tolist()
    assert tokens[-1] == 1
    product = math.prod(chances[place, token].item() for place, token in enumerate(tokens[:-1]))  # without the end of the text
    assert found is not None
    assert math.exp(math.fsum(found)) == pytest.approx(product, rel=1e-5)


def test_the_likelihood_of_an_answer_is_that_of_the_chosen_beam(t5: Path, items: list[BlankItem], features: FeatureFolder) -> None:
    filler = make(t5, "text", "decoding.beams=2")
    batch = batch_of(filler, items[:1], features)
    with torch.inference_mode():
        ids, _ = filler._generate(batch)
        said = filler.fill(batch)[0].log_probabilities
        own = filler.logits(batch, ids[0, :1, 1:])[0][0].log_softmax(dim=-1)
    places = [(place, token) for place, token in enumerate(ids[0, 0, 1:].tolist()) if token not in {0, 1}]
    assert said == pytest.approx([own[place, token].item() for place, token in places], abs=1e-5)
