"""vip.baselines.value.checkpoint: published names, saved and loaded on a tiny model"""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.baselines.value.tiny_hero import QUESTIONS, tiny
from vip.baselines import resumed
from vip.baselines.value import checkpoint
from vip.baselines.value.batches import collate_questions
from vip.baselines.value.checkpoint import (
    UNUSED,
    load_checkpoint,
    load_published,
    load_roberta,
    published_names,
    read_tensors,
    settings_of,
    to_published,
)
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import CollateOptions
from vip.errors import InputError

FUSIONS = ("hero", "add", "concat", "sequence")


def hero(**changed: Any) -> Hero:
    model = tiny(**changed)
    assert isinstance(model, Hero)
    return model


def saved(folder: Path, tensors: Any) -> Path:
    torch.save(tensors, folder / "hero.pt")
    return folder / "hero.pt"


@pytest.mark.parametrize("fusion", FUSIONS)
def test_every_tensor_has_published_names_of_its_own(fusion: str) -> None:
    names = published_names(hero(fusion=fusion))
    published = [one for theirs in names.values() for one in theirs]
    assert len(set(published)) == len(published)
    assert not any(UNUSED.fullmatch(one) for one in published)


def test_names_are_those_of_the_published_checkpoint() -> None:
    """Names that stand in the authors' code: eval_videoQA.py, train_captioning.py, model/*.py."""
    names = {one for theirs in published_names(hero()).values() for one in theirs}
    assert names >= {
        "v_encoder.f_encoder.img_embeddings.position_embeddings.weight",
        "v_encoder.f_encoder.embeddings.word_embeddings.weight",
        "v_encoder.f_encoder.encoder.layer.0.attention.self.query.weight",
        "v_encoder.c_encoder.encoder.layer.0.output.LayerNorm.bias",
        "v_encoder.frame_transform.net.1.weight",
        "v_encoder.feat_regress.net.3.weight",
        "v_encoder.fom_output.linear_2.weight",
        "q_feat_attn.modular_vector_mapping.weight",
        "video_st_predictor.weight",
        "qa_pred_head.linear_1.weight",
        "st_ed_pool.weight",
        "decoder.layer.1.dec_enc_attention.key.bias",
        "decoder.layer.0.intermidiate.dense.weight",
        "emb_LayerNorm.weight",
    }


@pytest.mark.parametrize("fusion", FUSIONS)
def test_saved_weights_come_back(tmp_path: Path, fusion: str) -> None:
    first, second = hero(fusion=fusion, seed=1, spread=0.3), hero(fusion=fusion, seed=2)
    report = load_checkpoint(saved(tmp_path, to_published(first)), second)
    assert (report.loaded, report.missing, report.extra) == (len(first.state_dict()), (), ())
    assert str(report) == f"{report.loaded} tensors are loaded."
    batch = collate_questions(QUESTIONS, CollateOptions())
    with torch.no_grad():
        assert torch.equal(first.predict(batch), second.predict(batch))


@pytest.mark.parametrize("fusion", FUSIONS)
def test_sizes_are_read_off_the_tensors(fusion: str) -> None:
    model = hero(fusion=fusion)
    assert (
        settings_of(to_published(model), "hero.pt", heads=2).model_dump() == model.settings.model_copy(update={"dropout": 0.1}).model_dump()
    )


def test_query_key_and_value_are_one_tensor_here() -> None:
    model = hero(spread=0.3)
    tensors = to_published(model)
    weights = model.encoder.temporal.transformer.layers[0].self_attn.in_proj_weight
    prefix = "v_encoder.c_encoder.encoder.layer.0.attention.self."
    assert torch.equal(weights, torch.cat([tensors[f"{prefix}{one}.weight"] for one in ("query", "key", "value")]))


def test_what_a_pre_trained_checkpoint_lacks_is_said_in_one_sentence() -> None:
    tensors = {name: one for name, one in to_published(hero()).items() if not name.startswith(("qa_", "st_ed_", "decoder.", "emb_"))}
    tensors |= {
        "v_encoder.pad": torch.zeros(8, 16),
        "v_encoder.f_encoder.pooler.dense.bias": torch.zeros(16),
        "old.head.weight": torch.ones(1),
    }
    before = hero(seed=3)
    drawn = before.question_head.answer.first.weight.clone()
    report = load_published(tensors, before, "hero.pt")
    assert report.extra == ("old.head.weight",)
    assert "qa_pool.weight" in report.missing
    assert str(report).count(".") < 12
    assert "are missing and stay as drawn (decoder.layer, emb_LayerNorm.bias, emb_LayerNorm.weight …)" in str(report)
    assert "1 have no place here (old.head)." in str(report)
    assert torch.equal(drawn, before.question_head.answer.first.weight)


def test_tables_of_words_without_padding_and_of_one_type_fit() -> None:
    tensors = to_published(hero(spread=0.3))
    words = "v_encoder.f_encoder.embeddings.word_embeddings.weight"
    bias, types = "v_encoder.f_encoder.lm_head.bias", "v_encoder.f_encoder.embeddings.token_type_embeddings.weight"
    tensors |= {words: tensors[words][:67], bias: tensors[bias][:67], types: tensors[types][:1]}
    model = hero(seed=4)
    load_published(tensors, model, "hero.pt")
    assert torch.equal(model.encoder.words.weight[:67], tensors[words])
    assert not model.encoder.words.weight[67:].any()
    assert torch.equal(*model.encoder.cross_modal.text.types.weight)


def test_names_before_value_are_known(tmp_path: Path) -> None:
    tensors = to_published(hero())
    renamed = {name.replace("qa_pool", "violin_pool").replace("qa_pred_head", "violin_pred_head"): one for name, one in tensors.items()}
    assert load_checkpoint(saved(tmp_path, renamed), hero(seed=5)).missing == ()


class Evil:
    """What a pickle runs where it is not stopped."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (os.mkdir, (self.path,))


def test_nothing_in_a_checkpoint_is_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no tensors that can be read"):
        read_tensors(saved(tmp_path, {"weight": Evil(str(tmp_path / "run"))}))
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Evil(str(tmp_path / "run"))))
    with pytest.raises(InputError, match="no tensors that can be read"):
        read_tensors(tmp_path / "plain.pt")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ([1, 2], "something else than tensors by name"),
        ({"step": 4}, "something else than tensors by name"),
        ({name: tensor.to("meta") for name, tensor in to_published(hero()).items()}, "something else than tensors by name"),
        ({"some.weight": torch.ones(2)}, "no tensor of HERO"),
        (to_published(hero(hidden=8)), "Set the sizes"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_one_sentence(tmp_path: Path, tensors: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_checkpoint(saved(tmp_path, tensors), hero())


WORDS = "v_encoder.f_encoder.embeddings.word_embeddings.weight"
QUERY = "v_encoder.c_encoder.encoder.layer.0.attention.self.query.weight"


@pytest.mark.parametrize(
    ("name", "tensor", "says"),
    [
        (QUERY, torch.ones(16), "has the shape"),
        (QUERY, torch.eye(16).to_sparse(), "no table of numbers"),
        (QUERY, torch.ones(16, 16, dtype=torch.int64), "no table of numbers"),
        (WORDS, torch.tensor(1.0), "no table of numbers"),
        (WORDS, torch.zeros(1).expand(10**6, 10**4), "more numbers than any checkpoint"),
    ],
)
def test_a_strange_tensor_is_one_sentence(tmp_path: Path, name: str, tensor: torch.Tensor, says: str) -> None:
    path = saved(tmp_path, {**to_published(hero()), name: tensor})
    with pytest.raises(InputError, match=says):
        load_checkpoint(path, hero())


@pytest.mark.parametrize("tensor", [torch.tensor(1.0), torch.ones(3), torch.ones(2, 10_000)])
def test_sizes_of_strange_tensors_are_one_sentence(tensor: torch.Tensor) -> None:
    with pytest.raises(InputError, match="holds no HERO"):
        settings_of({**to_published(hero()), WORDS: tensor}, "hero.pt")


def test_a_missing_and_a_cut_checkpoint_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no checkpoint"):
        load_checkpoint(tmp_path / "hero.pt", hero())
    path = saved(tmp_path, to_published(hero()))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(InputError, match="Download it again"):
        load_checkpoint(path, hero())
    with pytest.raises(InputError, match="holds no HERO"):
        settings_of({"some.weight": torch.ones(2)}, "x.pt")


@pytest.mark.slow
def test_a_roberta_gives_every_second_layer() -> None:
    import transformers

    config = transformers.RobertaConfig(
        vocab_size=67,
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        type_vocab_size=1,
    )
    roberta = transformers.RobertaForMaskedLM(config).eval()
    model = hero(cross_layers=2)
    report = load_roberta(roberta.state_dict(), model, "roberta")
    assert "v_encoder.f_encoder.embeddings.word_embeddings.weight" not in report.missing
    assert not any(name.startswith(("v_encoder.f_encoder.encoder.", "v_encoder.f_encoder.lm_head.")) for name in report.missing)
    second = roberta.roberta.encoder.layer[1].output.dense.weight
    assert torch.equal(model.encoder.cross_modal.transformer.layers[0].linear2.weight, second)
    whole = hero(cross_layers=4)
    load_roberta(roberta.state_dict(), whole, "roberta")
    tokens = torch.tensor([[0, 20, 21, 2]])
    with torch.no_grad():
        theirs = roberta.roberta(tokens).last_hidden_state  # places from 2 on, types of 0
        ours = whole.encoder.cross_modal.encode_text(tokens, torch.ones_like(tokens, dtype=torch.bool), first=2)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)  # norms have another epsilon there
    with pytest.raises(InputError, match="Give a larger one"):
        load_roberta({}, model, "roberta")


def test_a_checkpoint_that_unpacks_to_far_more_and_a_pipe_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(InputError, match="it is no regular file"):
        load_checkpoint(tmp_path / "pipe.pt", hero())
    plain = saved(tmp_path, {"a": torch.zeros(2**20)})
    with zipfile.ZipFile(plain) as whole, zipfile.ZipFile(tmp_path / "packed.pt", "w", zipfile.ZIP_DEFLATED) as packed:
        for name in whole.namelist():
            packed.writestr(name, whole.read(name))
    monkeypatch.setattr(checkpoint, "MOST_BYTES", 2**20)
    with pytest.raises(InputError, match="more than 1,048,576 bytes unpacked"):
        load_checkpoint(tmp_path / "packed.pt", hero())


def test_a_small_file_that_names_far_more_numbers_than_it_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor whose rows are all the same one, and a model of such sizes would have them all."""
    monkeypatch.setattr(resumed, "SPARE_BYTES", 0)
    tied = torch.zeros(2**18)
    assert set(read_tensors(saved(tmp_path, {"a": tied, "b": tied, "c": tied}))) == {"a", "b", "c"}
    with pytest.raises(InputError, match="names more numbers than any checkpoint of HERO has"):
        read_tensors(saved(tmp_path, {"a": torch.zeros(1, 2**18).expand(8, 2**18)}))
    packed = tmp_path / "packed.pt"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", bytes(2**20))
    with pytest.raises(InputError, match=r"more than [0-9,]{5,6} bytes unpacked"):
        read_tensors(packed)


@pytest.mark.parametrize("number", ["x", "9" * 5000, "\u00b9", "", "\u0663"])
def test_a_layer_of_roberta_without_a_number_has_no_place(number: str) -> None:
    own = hero()
    layers = len(own.encoder.cross_modal.transformer.layers)
    tensors = {
        f"roberta.{name.removeprefix('v_encoder.f_encoder.')}": one for name, one in to_published(own).items() if ".f_encoder." in name
    }
    strange = f"roberta.encoder.layer.{number}.attention.self.query.weight"
    report = load_roberta({**tensors, strange: torch.zeros(1)}, hero(seed=2), "roberta.pt")
    assert report.loaded == load_roberta(tensors, hero(seed=2), "roberta.pt").loaded
    assert report.extra == (f"v_encoder.f_encoder.{strange.removeprefix('roberta.')}",)
    with pytest.raises(InputError, match=f"holds a RoBERTa of 0 layers, and the cross-modal transformer has {layers}"):
        load_roberta({strange: torch.zeros(1)}, hero(seed=2), "roberta.pt")
