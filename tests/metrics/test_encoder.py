"""The files of an encoder: in a folder, in the cache or on a hub, and one sentence where they are nowhere or are damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.metrics.tiny_encoders import save_bert
from tests.models.hub_server import hub, put_into_cache
from vip.errors import BackendError
from vip.metrics.encoder import BATCH, EncoderFiles, file_digest, score_in_batches
from vip.models.hub import probe_error

REPO = "someone/tiny-bert"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A repository of the hub."""
    return {path.name: path.read_bytes() for path in save_bert(tmp_path_factory.mktemp("encoders") / "tiny").iterdir()}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache of the hub's client, which is offline."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    probe_error.cache_clear()
    yield tmp_path / "hub"
    probe_error.cache_clear()


def load(encoder: EncoderFiles) -> int:
    """Load an encoder and return the number of its layers."""
    from transformers import AutoModel

    return int(encoder.load(lambda: AutoModel.from_pretrained(str(encoder.folder or encoder.name)).config.num_hidden_layers))


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def test_an_encoder_in_the_cache_is_loaded_and_named_with_its_revision(cache: Path, files: dict[str, bytes]) -> None:
    put_into_cache(cache, REPO, files)
    encoder = EncoderFiles(REPO, "bert-score")
    assert load(encoder) == 3
    assert encoder.identity == f"{REPO}@{'0' * 12}"


def test_an_encoder_in_a_folder_is_named_with_the_hash_of_its_weights(tmp_path: Path, files: dict[str, bytes]) -> None:
    folder = write(tmp_path / "tiny", files)
    encoder = EncoderFiles(str(folder), "bert-score")
    assert load(encoder) == 3
    assert encoder.identity == f"tiny@{file_digest(folder / 'model.safetensors')}"


@pytest.mark.parametrize(
    ("offline", "said"), [(True, "HF_HUB_OFFLINE is set"), (False, r"127\.0\.0\.1 cannot be reached \(Connection refused\)")]
)
def test_an_encoder_that_is_nowhere_is_said(offline: bool, said: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(
        BackendError, match=f"someone/tiny-bert of the metric bert-score is not in the local cache .*, because {said}"
    ) as caught:
        EncoderFiles(REPO, "bert-score").check()
    assert caught.value.exit_code == 4


def test_a_download_is_tried_only_where_the_hub_answers(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with hub(REPO, {}) as (address, asked):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        EncoderFiles(REPO, "bert-score").check()
        assert asked == ["HEAD /"]


@pytest.mark.extra("bert_score", "sentence_transformers")
def test_a_missing_encoder_is_said_before_torch_is_loaded() -> None:
    code = (
        "import sys\n"
        "from vip.errors import BackendError\n"
        "from vip.metrics.bert_score import BertScore\n"
        "from vip.metrics.sentence_bert import SentenceBert\n"
        "for metric in (BertScore(), SentenceBert()):\n"
        "    try: metric.check()\n"
        "    except BackendError as exc: print(exc)\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *said, loaded = done.stdout.splitlines()
    assert len(said) == 2
    assert all("not in the local cache and cannot be downloaded" in sentence for sentence in said)
    assert loaded == "False False"


@pytest.mark.extra("bert_score")
def test_an_encoder_that_is_not_in_the_cache_is_downloaded_once(tmp_path: Path, files: dict[str, bytes]) -> None:
    code = (
        "from vip.metrics import Pair\n"
        "from vip.metrics.bert_score import BertScore\n"
        f"result = BertScore({REPO!r}, layers=2, rescale=False, device='cpu').score([Pair('a dog', 'a dog')])\n"
        "print(round(result.value, 4), result.signature.split('|')[3])"
    )
    with hub(REPO, files) as (address, asked):
        env = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
        command = [sys.executable, "-c", code]
        first = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
        assert asked.count("GET model.safetensors") == 1
        asked.clear()
        assert subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout == first
        assert asked == []
    assert first == f"1.0 encoder:{REPO}@{'0' * 12}\n"


def test_a_folder_without_a_model_and_one_that_is_not_there_are_said(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"has no config\.json"):
        EncoderFiles(str(tmp_path), "bert-score").check()
    with pytest.raises(BackendError, match="There is no folder"):
        EncoderFiles(str(tmp_path / "nowhere"), "bert-score").check()


def test_weights_of_another_model_are_refused_instead_of_filled_with_random_numbers(tmp_path: Path, files: dict[str, bytes]) -> None:
    folder = write(tmp_path / "tiny", files)
    config = json.loads(files["config.json"])
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 4}))
    with pytest.raises(BackendError, match=r"The weights of .*tiny are not those of its model: 16 tensors are missing .*encoder\.layer\.3"):
        load(EncoderFiles(str(folder), "bert-score"))


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_damaged_file_is_said(name: str, tmp_path: Path, files: dict[str, bytes]) -> None:
    folder = write(tmp_path / "tiny", {**files, name: b"\0" * 50})
    with pytest.raises(BackendError, match=r"The encoder .*tiny of the metric bert-score cannot be loaded \(.*\)\. Copy or download"):
        load(EncoderFiles(str(folder), "bert-score"))


def test_half_a_download_in_the_cache_is_said_where_the_rest_cannot_be_fetched(cache: Path, files: dict[str, bytes]) -> None:
    put_into_cache(cache, REPO, {name: data for name, data in files.items() if name.endswith(".json")})
    with pytest.raises(BackendError, match="The encoder someone/tiny-bert of the metric bert-score cannot be loaded"):
        load(EncoderFiles(REPO, "bert-score"))


def test_a_package_that_the_library_lacks_is_named(tmp_path: Path, files: dict[str, bytes]) -> None:
    def lacks() -> None:
        raise ModuleNotFoundError("No module named 'matplotlib'")

    with pytest.raises(BackendError, match=r"No module named 'matplotlib'\)\. Run `pip install 'vip-keyframes\[eval\]'`"):
        EncoderFiles(str(write(tmp_path / "tiny", files)), "bert-score").load(lacks)


def test_texts_are_scored_a_batch_at_a_time_and_values_keep_their_places() -> None:
    sizes: list[int] = []

    def score(predictions: list[str], references: list[str]) -> list[float]:
        sizes.append(len(predictions))
        return [float(text) for text in predictions]

    texts = [(str(number), "" if number % 3 == 0 else "x") for number in range(1000)]
    assert score_in_batches(texts, score) == [0.0 if number % 3 == 0 else float(number) for number in range(1000)]
    assert sizes == [BATCH, BATCH, 666 - 2 * BATCH]


def test_a_digest_is_of_all_files_in_their_order(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(path.name.encode())
    digests = [file_digest(*some) for some in (paths[:1], paths[:2], paths[1:2], paths, [*reversed(paths)])]
    assert len(set(digests)) == 5
    assert all(len(digest) == 12 for digest in digests)
