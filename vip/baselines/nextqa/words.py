"""Texts to vectors of words: a trained embedding, a BERT, or vectors from a file (Xiao et al. 2021, section 4.2; networks/EncoderRNN.py).

In: a question, and perhaps one option of it. Out: `Words`, what every model gets. The text of a pair is `<start> question <end> option
<end>`, or for BERT `[CLS] question [SEP] option [SEP]`; that of a question alone `<start> question`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from vip import files
from vip.baselines.features import DAMAGED, MOST_WIDTH, check_batch, dataset_in, open_hdf5
from vip.baselines.kept import check_kept_folder
from vip.baselines.nextqa.interface import Words, mask_of
from vip.baselines.settings import WordSettings
from vip.baselines.vocabulary import END, PAD, START, WordVocabulary, tokenize
from vip.errors import BackendError, InputError
from vip.untrusted import one_line

MOST_BYTES = 2**29  # of the stored vectors of a batch; 64 × 5 of 37 pieces have 36 MB
MOST_LAYERS = 1000
MOST_DRAWN = 2**24
"""Weights that a file of a BERT may lack, such as its last layer: they are drawn at random."""


@dataclass(frozen=True, slots=True)
class QuestionText:
    """A question, and perhaps an option of it."""

    question: str
    option: str | None = None
    file: int = 0
    """Which file of stored vectors it is in: 0 for train, 1 for val."""
    row: int = 0
    """Place of the question in its file."""
    number: int = 0
    """Place of the option in the file."""


@dataclass(frozen=True, slots=True)
class TextBatch:
    """B texts, prepared on the CPU."""

    lengths: Tensor
    """(B,) int64; stays on the CPU."""
    numbers: Tensor | None = None
    """(B, T) int64: words of a vocabulary, or pieces of BERT; 0 behind the end."""
    kinds: Tensor | None = None
    """(B, T) int64: for BERT, 1 for the pieces of the option."""
    vectors: Tensor | None = None
    """(B, T, D): vectors from a file."""
    question_lengths: Tensor | None = None
    """(B,) int64, as of `Words`; stays on the CPU."""

    def to(self, device: torch.device) -> TextBatch:
        def moved(value: Tensor | None) -> Tensor | None:
            return None if value is None else value.to(device)

        return TextBatch(self.lengths, moved(self.numbers), moved(self.kinds), moved(self.vectors), self.question_lengths)


class WordVectors(nn.Module, ABC):
    """Makes the vectors of words; a part of the trained model."""

    @abstractmethod
    def prepare(self, texts: Sequence[QuestionText]) -> TextBatch:
        """Return the batch of some texts; runs beside the training."""

    @abstractmethod
    def forward(self, batch: TextBatch) -> Words:
        """Return the vectors of the words."""

    def frozen_names(self) -> set[str]:
        """Return the names of tensors that training never changes, and that are kept beside the weights."""
        return set()


def trained_embedding(vectors: Tensor) -> nn.Embedding:
    """Return an embedding that begins with copies of these vectors (V, E)."""
    return nn.Embedding(vectors.shape[0], vectors.shape[1], _weight=vectors.clone())


class EmbeddedWords(WordVectors):
    """Vectors of a vocabulary, trained with the model; GloVe is what they begin with.

    Args:
        vectors: (V, E).
    """

    def __init__(self, vocabulary: WordVocabulary, settings: WordSettings, vectors: Tensor) -> None:
        super().__init__()
        self.vocabulary, self.settings = vocabulary, settings
        self.embedding = trained_embedding(vectors)

    def prepare(self, texts: Sequence[QuestionText]) -> TextBatch:
        rows = [self._encode(text) for text in texts]
        asked = None if texts[0].option is None else torch.tensor([row.index(END) + 1 for row in rows])
        return TextBatch(torch.tensor([len(row) for row in rows]), _pad(rows), question_lengths=asked)

    def _encode(self, text: QuestionText) -> list[int]:
        """Return the words' numbers. Of a text that is too long, the end of the question is left out; the option stays whole."""
        settings = self.settings
        question = self.vocabulary.encode(tokenize(text.question)[: settings.part_length])
        if text.option is None:
            return [START, *question][: settings.length]
        option = [*self.vocabulary.encode(tokenize(text.option)[: settings.part_length]), END][: settings.length - 2]
        return [START, *question[: settings.length - 2 - len(option)], END, *option]

    def forward(self, batch: TextBatch) -> Words:
        return Words(self.embedding(batch.numbers), batch.lengths, batch.question_lengths)


class BertWords(WordVectors):
    """Vectors of the pieces of words from a hidden layer of a BERT, projected to the model's size.

    Args:
        folder: what `save_pretrained` of transformers wrote, of model and tokenizer; weights as safetensors.

    Raises:
        BackendError: transformers is not installed.
        InputError: the folder holds no such model.
    """

    def __init__(self, folder: Path, settings: WordSettings) -> None:
        super().__init__()
        self.settings = settings
        check_kept_folder(folder)
        self.bert, self.tokenizer = load_bert(folder)
        layers = int(self.bert.config.num_hidden_layers)
        if not -layers - 1 <= settings.layer <= layers:
            raise InputError(f"The BERT in {folder} has {layers} layers, and no layer {settings.layer}. Choose another words.layer.")
        most = int(getattr(self.bert.config, "max_position_embeddings", settings.length))
        if settings.length > most:
            raise InputError(f"The BERT in {folder} takes {most} pieces, not {settings.length}. Choose a smaller words.length.")
        self.project = nn.Linear(int(self.bert.config.hidden_size), settings.size)
        if not settings.fine_tune:
            self.bert.requires_grad_(False)

    def prepare(self, texts: Sequence[QuestionText]) -> TextBatch:
        options = [text.option for text in texts]
        found = self.tokenizer(
            [text.question for text in texts],
            None if options[0] is None else options,
            truncation="longest_first",
            max_length=self.settings.length,
            padding=True,
            return_tensors="pt",
        )
        lengths, kinds = found["attention_mask"].sum(dim=1), found.get("token_type_ids")
        asked = None if options[0] is None or kinds is None else lengths - kinds.sum(dim=1)
        return TextBatch(lengths, found["input_ids"], kinds, question_lengths=asked)

    def forward(self, batch: TextBatch) -> Words:
        assert batch.numbers is not None
        if not self.settings.fine_tune:
            self.bert.eval()  # no dropout in what is not trained
        mask = mask_of(batch.lengths, batch.numbers.shape[1], batch.numbers.device)
        kinds = {} if batch.kinds is None else {"token_type_ids": batch.kinds}
        with torch.set_grad_enabled(self.settings.fine_tune and torch.is_grad_enabled()):
            layers = self.bert(batch.numbers, attention_mask=mask.long(), output_hidden_states=True, **kinds).hidden_states
        return Words(self.project(layers[self.settings.layer]), batch.lengths, batch.question_lengths)

    def frozen_names(self) -> set[str]:
        return set() if self.settings.fine_tune else {f"bert.{name}" for name in self.bert.state_dict()}


class StoredWords(WordVectors):
    """Vectors of pieces of words from HDF5 files, projected to the model's size; as the authors' `bert_ft_train.h5`.

    Args:
        width: D of the files.
        files: set before texts are prepared.
    """

    def __init__(self, width: int, settings: WordSettings) -> None:
        super().__init__()
        self.settings, self.width = settings, width
        self.files: Sequence[StoredTexts] = ()
        self.project = nn.Linear(width, settings.size)

    def prepare(self, texts: Sequence[QuestionText]) -> TextBatch:
        rows: list[npt.NDArray[np.float32]] = []
        for text in texts:
            rows.append(self.files[text.file].read(text)[: self.settings.length].copy())  # so that the others are not kept
            check_batch(len(texts), max(map(len, rows)) * self.width, MOST_BYTES)  # as they are padded
        lengths = torch.tensor([len(row) for row in rows])
        vectors = np.zeros((len(rows), int(lengths.max()), self.width), np.float32)
        for vector, row in zip(vectors, rows, strict=True):
            vector[: len(row)] = row
        return TextBatch(lengths, vectors=torch.from_numpy(vectors))

    def forward(self, batch: TextBatch) -> Words:
        return Words(self.project(batch.vectors), batch.lengths)


class StoredTexts:
    """A file of vectors of texts: `feat` (questions, options, T, D), questions in the order of their csv; rows of zeros end a text.

    Raises:
        BackendError: h5py is not installed.
        InputError: it cannot be read, or is of another form.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        feat = dataset_in(open_hdf5(path), "feat", path)
        if feat is None or len(feat.shape) != 4 or 0 in feat.shape or feat.dtype.kind != "f":
            raise InputError(f"{path} has no feat of shape (questions, options, pieces, numbers). Give vectors of questions with options.")
        self._feat = feat
        self.questions, self.options, _, self.width = (int(size) for size in self._feat.shape)
        if self.width > MOST_WIDTH:
            raise InputError(f"{path} has {self.width:,} numbers a piece. Give vectors of at most {MOST_WIDTH:,} numbers.")

    def check(self, questions: int, options: int) -> None:
        """Refuse a file of other questions.

        Raises:
            InputError: the numbers differ.
        """
        if (self.questions, self.options) != (questions, options):
            raise InputError(
                f"{self.path} is of {self.questions:,} questions with {self.options} options, and there are {questions:,} with {options}."
                " Give the file of these annotations."
            )

    def read(self, text: QuestionText) -> npt.NDArray[np.float32]:
        """Return (T, D) of a text; at least one row."""
        try:
            vectors: npt.NDArray[np.float32] = np.asarray(self._feat[text.row, text.number], np.float32)
        except DAMAGED as exc:
            raise InputError(f"{self.path} cannot be read ({one_line(str(exc))[:100]}). Copy it again.") from exc
        if not np.isfinite(vectors).all():
            raise InputError(f"{self.path}: the vectors of row {text.row} hold numbers that are not finite. Make them again.")
        zero = np.flatnonzero(~vectors.any(axis=1))
        return vectors[: max(1, int(zero[0]))] if len(zero) else vectors


def load_bert(folder: Path) -> tuple[Any, Any]:
    """Return the model and the tokenizer of a folder, without any code of it.

    Raises:
        BackendError: transformers is not installed.
        InputError: the folder holds no such model.
    """
    try:
        from transformers import AutoConfig, AutoModel, AutoTokenizer
    except ImportError as exc:
        raise BackendError(
            "BERT is run with transformers, which is not installed. Run: pip install 'vip-keyframes[train,transformers]'."
        ) from exc
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} has no config.json. Give a folder that save_pretrained() wrote, of a BERT and its tokenizer.")
    try:
        files.check_tree(folder, links=True)
        safe = {"local_files_only": True, "trust_remote_code": False}
        _check_size(AutoConfig.from_pretrained(folder, **safe), folder)
        return AutoModel.from_pretrained(folder, use_safetensors=True, **safe), AutoTokenizer.from_pretrained(folder, **safe)
    except Exception as exc:  # there is no end to the ways in which damaged files make the library fail
        raise InputError(
            f"{folder} holds no BERT that can be loaded ({one_line(str(exc))[:150]}). It needs safetensors and a tokenizer."
        ) from exc


def _check_size(config: Any, folder: Path) -> None:
    """Refuse a BERT whose configuration states far more weights than its files have: they would be drawn at random.

    Raises:
        ValueError: it does.
    """
    from transformers import AutoModel

    if (layers := getattr(config, "num_hidden_layers", 0)) > MOST_LAYERS:
        raise ValueError(f"{layers:,} layers")
    with torch.device("meta"):  # shapes alone
        count = sum(parameter.numel() for parameter in AutoModel.from_config(config).parameters())  # type: ignore[no-untyped-call]
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    if count > size + MOST_DRAWN:  # of 2 or 4 bytes each
        raise ValueError(f"{count:,} weights, and {size:,} bytes of them")


def _pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return (B, T) with padding behind each row."""
    padded = torch.full((len(rows), max(map(len, rows))), PAD)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = torch.tensor(row)
    return padded
