"""BERTScore is that of the library bert-score, on a small random encoder that is loaded as users load theirs."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bert_score
import pytest

from tests.metrics.tiny_encoders import POSITIONS, save_bert, save_roberta, texts
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


def test_values_of_roberta_are_those_of_the_library_where_a_text_begins_with_a_space(tmp_path: Path) -> None:
    """The library asks for the space, as its baselines have it; transformers 5 ignores that unless the tokenizer itself has it."""
    published, spaced = save_roberta(tmp_path / "tiny-roberta"), save_roberta(tmp_path / "spaced", begins_with_space=True)
    pairs = list(map(Pair, PREDICTIONS[:40], REFERENCES[:40]))
    _, _, expected = bert_score.score(PREDICTIONS[:40], REFERENCES[:40], model_type=str(spaced), num_layers=2, device="cpu")
    for encoder in (published, spaced):
        metric = BertScore(str(encoder), layers=2, rescale=False, device="cpu")
        assert metric.score(pairs).per_sample == pytest.approx(expected.tolist(), abs=1e-6)


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


def test_a_folder_that_is_called_as_the_model_has_its_layer_and_its_baseline(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "bert-base-uncased", layers=10)
    baseline = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / "bert-base-uncased.tsv"
    settings: dict[str, Any] = {"model_type": str(folder), "num_layers": 9, "device": "cpu", "lang": "en", "rescale_with_baseline": True}
    _, _, expected = bert_score.score(PREDICTIONS[:20], REFERENCES[:20], baseline_path=str(baseline), **settings)
    metric = BertScore(device="cpu").with_encoder(str(folder))
    assert metric.score(list(map(Pair, PREDICTIONS[:20], REFERENCES[:20]))).per_sample == pytest.approx(expected.tolist(), abs=1e-6)
    assert "|layers:9|rescale:en|" in metric.signature


def test_with_another_encoder_the_device_and_the_scale_stay_and_what_belongs_to_the_first_one_goes(encoder: Path, baseline: Path) -> None:
    first = BertScore(layers=2, rescale=False, baseline=baseline, device="cpu")
    other = first.with_encoder(str(encoder))
    assert (other.encoder.folder, other.device, other.rescale) == (encoder, "cpu", False)
    assert (other.layers, other.baseline) == (None, None)
    assert BertScore().with_encoder(str(encoder)).rescale


def test_an_empty_text_scores_0_and_a_missing_answer_counts_as_0(encoder: Path, baseline: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pairs = [Pair(" ", "a dog"), Pair("a dog", ""), Pair("a dog", "a dog"), Pair(None, "a dog", "refused")]
    result = BertScore(str(encoder), layers=2, baseline=baseline, device="cpu").score(pairs)
    assert result.per_sample == pytest.approx((0.0, 0.0, 1.0, None), abs=1e-6)
    assert (result.value, result.value_answered) == pytest.approx((0.25, 1 / 3), abs=1e-6)
    assert "Warning" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("save", [save_bert, partial(save_roberta, begins_with_space=True)], ids=["bert", "roberta"])
def test_a_text_longer_than_the_encoder_is_cut(save: Callable[..., Path], tmp_path: Path) -> None:
    """Some tokenizers do not know the limit, and the library then fails."""
    text, reference = " ".join(["dog", "runs", "park"] * POSITIONS), "a cat sits"
    knowing, other = (str(save(tmp_path / f"tiny-{knows}", knows_limit=knows)) for knows in (True, False))
    _, _, expected = bert_score.score([text], [reference], model_type=knowing, num_layers=2, device="cpu")
    result = BertScore(other, layers=2, rescale=False, device="cpu").score([Pair(text, reference)])
    assert result.value == pytest.approx(float(expected[0]), abs=1e-6)


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
        (
            "FOLDER",
            None,
            r"bert-score knows no best layer of the encoder in .*tiny-bert\. Call the folder as the model is called on the hub",
        ),
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
