"""BERTScore: the F-measure of the best cosine of each word's contextual vector (Zhang et al. 2020), by the library bert-score."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from vip.errors import BackendError
from vip.metrics.encoder import EncoderFiles, choose_device, file_digest, score_in_batches
from vip.metrics.metric import Pair, Result, check_installed, library_version, score_mean

DEFAULT_ENCODER, DEFAULT_LAYERS = "roberta-large", 17
LANGUAGE = "en"
MOST_TOKENS = 512  # of encoders whose positions are relative


class BertScore:
    """The mean BERTScore F-measure of predicted texts. A pair with an empty text scores 0, which rescaled is what unrelated texts have.

    Args:
        encoder: a model that bert-score knows, with its own layer and baseline, or a folder.
        layers: how many layers of the encoder are used; None: as bert-score chose for this model by human judgements.
        rescale: stretch values so that unrelated texts have 0 and equal ones 1. The figures of the paper fit that.
        baseline: a file with the values of unrelated texts, in the form of bert-score's own; None: the one it has for this model.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.
    """

    name = "bert-score"

    def __init__(
        self,
        encoder: str = DEFAULT_ENCODER,
        *,
        layers: int | None = None,
        rescale: bool = True,
        baseline: Path | None = None,
        device: str = "auto",
    ) -> None:
        self.encoder = EncoderFiles(encoder, self.name)
        self.layers, self.rescale, self.baseline, self.device = layers, rescale, baseline, device
        self.needs = ("the library bert-score", f"the encoder {encoder}")

    def with_encoder(self, encoder: str) -> BertScore:
        """Return the metric with another encoder: a folder, or a repository of the hub."""
        return BertScore(encoder, rescale=self.rescale, device=self.device)

    @property
    def signature(self) -> str:
        """The name and what a value depends on; loads the encoder."""
        layers = self._scorer.num_layers
        rescale = "no" if not self.rescale else f"custom@{file_digest(self.baseline)}" if self.baseline else LANGUAGE
        return (
            f"{self.name}|v:1|f1|encoder:{self.encoder.identity}|layers:{layers}|rescale:{rescale}|idf:no|empty:0"
            f"|device:{choose_device(self.device).partition(':')[0]}|lib:{library_version('bert-score', 'transformers', 'torch')}"
        )

    def check(self) -> None:
        check_installed(self.name, "bert_score", "bert-score")
        self._check_encoder_name()
        if self.rescale and not (path := self._baseline_path()).is_file():
            raise BackendError(
                f"bert-score has no baseline {path.name} for the encoder {self.encoder.name}, so its values cannot be rescaled."
                " Give the file of one (baseline=), or leave them as they are (rescale=False)."
            )
        self.encoder.check()

    def score(self, pairs: Sequence[Pair[str, str]]) -> Result:
        return score_mean(pairs, lambda texts: score_in_batches(texts, self._score_batch), self.signature)

    def _score_batch(self, predictions: list[str], references: list[str]) -> Sequence[float]:
        _, _, f_measures = self._scorer.score(predictions, references)
        return [float(value) for value in f_measures]

    @cached_property
    def _scorer(self) -> Any:
        """The library's scorer, with its encoder loaded."""
        self.check()
        device = choose_device(self.device)
        return self.encoder.load(lambda: self._load_scorer(device))

    def _load_scorer(self, device: str) -> Any:
        from bert_score import BERTScorer

        scorer = BERTScorer(
            str(self.encoder.folder or self.encoder.name),
            num_layers=self._layers,
            device=device,
            lang=LANGUAGE if self.rescale else None,
            rescale_with_baseline=self.rescale,
            baseline_path=str(self._baseline_path()) if self.rescale else None,
        )
        scorer.use_custom_baseline = self.baseline is not None
        if self.rescale:
            _ = scorer.baseline_vals  # reads the file
        _begin_with_space(scorer)
        _limit_tokens(scorer)
        return scorer

    def _baseline_path(self) -> Path:
        if self.baseline is not None:
            return Path(self.baseline)
        spec = find_spec("bert_score")
        home = Path(str(spec.origin)).parent if spec else Path()
        return home / "rescale_baseline" / LANGUAGE / f"{self.encoder.model}.tsv"

    def _check_encoder_name(self) -> None:
        """Refuse names that bert-score takes for something else.

        Raises:
            BackendError: it would run a download by itself, take the wrong class of model, or does not know which layer to use.
        """
        name, folder = self.encoder.name, self.encoder.folder
        if name.startswith("scibert"):
            raise BackendError(f"bert-score downloads {name} by commands of a shell. Use a folder with the model, or another encoder.")
        if folder is not None and "t5" in str(folder):
            raise BackendError(f'bert-score takes each folder with "t5" in its path for a T5 model: {folder}. Use another folder.')
        if folder is not None and self._layers is None:
            raise BackendError(
                f"bert-score knows no best layer of the encoder in {folder}. Call the folder as the model is called on the hub, such as"
                " roberta-large, or say how many to use (layers=)."
            )

    @cached_property
    def _layers(self) -> int | None:
        """How many layers are used: as given, else as bert-score knows of the model by its name; None where the library finds out."""
        if self.layers is not None or self.encoder.folder is None:
            return self.layers
        from bert_score.utils import model2layers

        return cast("int | None", model2layers.get(self.encoder.model))


def _begin_with_space(scorer: Any) -> None:
    """Let the first word be one like the others for RoBERTa and GPT-2, as bert-score means it and as its baselines were computed.

    It asks for that with each text, which transformers 5 ignores: values would depend on the version.
    """
    from transformers import AutoTokenizer, GPT2Tokenizer, RobertaTokenizer

    if isinstance(scorer._tokenizer, (GPT2Tokenizer, RobertaTokenizer)):
        scorer._tokenizer = AutoTokenizer.from_pretrained(scorer.model_type, add_prefix_space=True)


def _limit_tokens(scorer: Any) -> None:
    """Cut texts where the encoder has no more positions: some tokenizers do not know the limit, and the library then fails."""
    tokenizer, config = scorer._tokenizer, scorer._model.config
    positions = getattr(config, "max_position_embeddings", None) or MOST_TOKENS
    if "roberta" in config.model_type:  # its positions begin behind that of the padding
        positions -= config.pad_token_id + 1
    tokenizer.model_max_length = min(tokenizer.model_max_length, positions)
