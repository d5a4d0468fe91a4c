"""BERTScore is that of the library bert-score, on a small random encoder that is loaded as users load theirs."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import bert_score
import pytest

from tests.metrics.tiny_encoders import POSITIONS, save_bert, texts
from vip.errors import BackendError
from vip.metrics import Pair
from vip.metrics.bert_score import BertScore

PREDICTIONS, REFERENCES = texts(300, seed=1), texts(300, seed=2)
BASELINE = "LAYER,P,R,F\n0,0.1,0.1,0.1\n1,0.2,0.2,0.2\n2,0.3,0.31,0.32\n3,0.4,0.4,0.4\n"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("encoders") / "tiny-bert")


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    (tmp_path / "baseline.tsv").write_text(BASELINE)
    return tmp_path / "baseline.tsv"


def test_values_are_those_of_the_library(encoder: Path) -> None:
    result = BertScore(str(encoder), layers=2, rescale=False, device="cpu").score(list(map(Pair, PREDICTIONS, REFERENCES)))
    _, _, expected = bert_score.score(PREDICTIONS, REFERENCES, model_type=str(encoder), num_layers=2, device="cpu")
    assert result.per_sample == pytest.approx(expected.tolist(), abs=1e-6)
    assert result.value == pytest.approx(float(expected.double().mean()), abs=1e-6)
    assert len({round(value, 4) for value in expected.tolist()}) > 100, "the texts have different values"


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # of the library itself
def test_rescaled_values_are_those_of_the_library(encoder: Path, baseline: Path) -> None:
    metric = BertScore(str(encoder), layers=2, baseline=baseline, device="cpu")
    _, _, expected = bert_score.score(
        PREDICTIONS[:40],
        REFERENCES[:40],
        model_type=str(encoder),
        num_layers=2,
        lang="en",
        rescale_with_baseline=True,
        baseline_path=str(baseline),
        device="cpu",
    )
    assert metric.score(list(map(Pair, PREDICTIONS[:40], REFERENCES[:40]))).per_sample == pytest.approx(expected.tolist(), abs=1e-6)
    assert metric.score([Pair("a dog runs", "a dog runs")]).value == pytest.approx(1.0, abs=1e-6)


def test_an_empty_text_scores_0_and_a_missing_answer_counts_as_0(encoder: Path, baseline: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pairs = [Pair(" ", "a dog"), Pair("a dog", ""), Pair("a dog", "a dog"), Pair(None, "a dog", "refused")]
    result = BertScore(str(encoder), layers=2, baseline=baseline, device="cpu").score(pairs)
    assert result.per_sample == pytest.approx((0.0, 0.0, 1.0, None), abs=1e-6)
    assert (result.value, result.value_answered) == pytest.approx((0.25, 1 / 3), abs=1e-6)
    assert "Warning" not in "".join(capfd.readouterr())


def test_a_text_longer_than_the_encoder_is_cut(tmp_path: Path) -> None:
    """Some tokenizers do not know the limit, and the library then fails."""
    encoder = save_bert(tmp_path / "tiny-bert", knows_limit=False)
    metric = BertScore(str(encoder), layers=2, rescale=False, device="cpu")
    whole = ["dog", "runs", "park"] * POSITIONS
    first, all_of_it = " ".join(whole[: POSITIONS - 2]), " ".join(whole)
    assert metric.score([Pair(all_of_it, "a cat sits")]).value == pytest.approx(metric.score([Pair(first, "a cat sits")]).value)


def test_the_signature_says_what_a_value_depends_on(encoder: Path, baseline: Path, tmp_path: Path) -> None:
    metric = BertScore(str(encoder), layers=2, rescale=False, device="cpu")
    libraries = f"bert-score {version('bert-score')}, transformers {version('transformers')}, torch {version('torch')}"
    settings = r"\|layers:2\|rescale:no\|idf:no\|empty:0\|device:cpu"
    assert re.fullmatch(rf"bert-score\|v:1\|f1\|encoder:tiny-bert@[0-9a-f]{{12}}{settings}\|lib:{re.escape(libraries)}", metric.signature)
    assert metric.score([Pair("a", "a")]).signature == metric.signature
    assert "|rescale:custom@" in BertScore(str(encoder), layers=2, baseline=baseline, device="cpu").signature
    assert "|layers:1|" in BertScore(str(encoder), layers=1, rescale=False, device="cpu").signature
    weights = (encoder / "model.safetensors").read_bytes()
    other = save_bert(tmp_path / "tiny-bert")
    (other / "model.safetensors").write_bytes(weights[:-4] + b"\0\0\0\0")
    assert BertScore(str(other), layers=2, rescale=False, device="cpu").signature != metric.signature


@pytest.mark.parametrize(
    ("name", "layers", "said"),
    [
        ("roberta-large", None, "The encoder roberta-large of the metric bert-score is not in the local cache and cannot be downloaded"),
        ("someone/other", None, "bert-score has no baseline other.tsv for the encoder someone/other, so its values cannot be rescaled"),
        ("scibert-scivocab-uncased", None, "bert-score downloads scibert-scivocab-uncased by commands of a shell"),
        ("./nowhere", 2, r"There is no folder \./nowhere"),
        ("FOLDER", None, r"bert-score knows no best layer of the encoder in .*tiny-bert\. Say how many to use \(layers=\)"),
        ("FOLDER", 9, r"The encoder .* cannot be loaded \(Invalid num_layers"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(name: str, layers: int | None, said: str, encoder: Path, baseline: Path) -> None:
    metric = BertScore(
        str(encoder) if name == "FOLDER" else name, layers=layers, baseline=baseline if name == "FOLDER" else None, device="cpu"
    )
    with pytest.raises(BackendError, match=said) as caught:
        metric.score([Pair("a dog", "a dog")])
    assert str(caught.value).count("\n") == 0


def test_a_folder_that_the_library_takes_for_t5_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "not-t5"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    with pytest.raises(BackendError, match='each folder with "t5" in its path for a T5 model'):
        BertScore(str(folder), layers=2, rescale=False).check()


def test_a_damaged_baseline_is_said(encoder: Path, baseline: Path) -> None:
    baseline.write_text("LAYER,P,R,F\n0,0.1,0.1,0.1\n")
    with pytest.raises(BackendError, match="cannot be loaded"):
        BertScore(str(encoder), layers=2, baseline=baseline, device="cpu").score([Pair("a dog", "a dog")])


def test_without_the_library_the_metric_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.metrics.metric.find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"The metric bert-score needs bert-score\. Run `pip install 'vip-keyframes\[eval\]'`\."):
        BertScore().check()
