"""SentenceBERT is the cosine of sentence-transformers, on a small random encoder that is loaded as users load theirs."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer, util

from tests.metrics.tiny_encoders import POSITIONS, save_sentence_bert, texts
from vip.errors import BackendError
from vip.metrics import Pair
from vip.metrics.sentence_bert import SentenceBert

PREDICTIONS, REFERENCES = texts(300, seed=3), texts(300, seed=4)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sentence_bert(tmp_path_factory.mktemp("encoders"))


def test_values_are_those_of_the_library(encoder: Path) -> None:
    result = SentenceBert(str(encoder), device="cpu").score(list(map(Pair, PREDICTIONS, REFERENCES)))
    model = SentenceTransformer(str(encoder), device="cpu")
    expected = util.pairwise_cos_sim(model.encode(PREDICTIONS), model.encode(REFERENCES)).tolist()
    assert result.per_sample == pytest.approx(expected, abs=1e-6)
    assert result.value == pytest.approx(sum(expected) / len(expected), abs=1e-6)
    assert len({round(value, 4) for value in expected}) > 100, "the texts have different values"


def test_an_empty_text_scores_0_and_a_missing_answer_counts_as_0(encoder: Path) -> None:
    pairs = [Pair(" ", "a dog"), Pair("a dog", ""), Pair("a dog", "a dog"), Pair(None, "a dog", "refused")]
    result = SentenceBert(str(encoder), device="cpu").score(pairs)
    assert result.per_sample == pytest.approx((0.0, 0.0, 1.0, None), abs=1e-6)
    assert (result.value, result.value_answered) == pytest.approx((0.25, 1 / 3), abs=1e-6)


def test_the_signature_says_what_a_value_depends_on(encoder: Path) -> None:
    metric = SentenceBert(str(encoder), device="cpu")
    names = ("sentence-transformers", "transformers", "torch")
    libraries = ", ".join(f"{name} {version(name)}" for name in names)
    pattern = (
        rf"sentence-bert\|v:1\|cosine\|encoder:saved@[0-9a-f]{{12}}\|tokens:{POSITIONS}\|empty:0\|device:cpu\|lib:{re.escape(libraries)}"
    )
    assert re.fullmatch(pattern, metric.signature)
    assert metric.score([Pair("a", "a")]).signature == metric.signature


def test_a_device_that_is_not_there_is_said(encoder: Path) -> None:
    with pytest.raises(BackendError, match='There is no device "tpu"'):
        SentenceBert(str(encoder), device="tpu").score([Pair("a", "a")])


def test_with_another_encoder_the_device_stays(encoder: Path) -> None:
    other = SentenceBert(device="cuda:1").with_encoder(str(encoder))
    assert (other.encoder.folder, other.device) == (encoder, "cuda:1")


def test_an_encoder_that_is_nowhere_is_said() -> None:
    said = (
        "The encoder sentence-transformers/all-MiniLM-L6-v2 of the metric sentence-bert is not in the local cache and cannot be downloaded"
    )
    with pytest.raises(BackendError, match=f"{said}, because HF_HUB_OFFLINE is set"):
        SentenceBert().score([Pair("a", "a")])


def test_without_the_library_the_metric_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.metrics.metric.find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"needs sentence-transformers\. Run `pip install 'vip-keyframes\[eval\]'`\."):
        SentenceBert().check()
