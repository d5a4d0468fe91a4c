"""RoBERTa's tokenizer from a folder: a text to ids, and ids to a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vip import store
from vip.baselines.value.batches import END, PAD, START, UNKNOWN
from vip.errors import BackendError, InputError, StoreError
from vip.files import check_tree, read_named
from vip.untrusted import one_line
from vip.wording import option

FOLDER = "tokenizer"
FILES = ("vocab.json", "merges.txt")
SPECIAL = {"<s>": START, "<pad>": PAD, "</s>": END, "<unk>": UNKNOWN}
MOST_BYTES = 64 * 2**20


class TextEncoder:
    """A tokenizer of RoBERTa, without any code of its folder.

    Args:
        folder: with vocab.json and merges.txt, as RoBERTa's are published.
        vocabulary: how many ids the model knows.

    Raises:
        BackendError: transformers is not installed.
        InputError: the folder holds no such tokenizer, or one of another vocabulary.
    """

    def __init__(self, folder: Path, vocabulary: int) -> None:
        try:
            from transformers import RobertaTokenizer
        except ImportError as exc:
            raise BackendError(
                "Texts are read with transformers, which is not installed. Run: pip install 'vip-keyframes[train,transformers]'."
            ) from exc
        missing = next((name for name in FILES if not store.exists(folder / name)), None)
        if missing:
            raise InputError(f"{folder} has no {missing}. Give the folder of RoBERTa's tokenizer: {option('tokenizer', 'DIR')}.")
        try:
            check_tree(folder, links=True, most_bytes=MOST_BYTES)
            self._tokenizer: Any = RobertaTokenizer.from_pretrained(str(folder), local_files_only=True)
            size = len(self._tokenizer)
        except Exception as exc:  # the library's parsers raise anything
            raise InputError(f"{folder} holds no tokenizer that can be read ({one_line(str(exc))[:100]}). Copy it again.") from exc
        wrong = next((word for word, number in SPECIAL.items() if self._tokenizer.convert_tokens_to_ids(word) != number), None)
        if wrong is not None:
            raise InputError(f"{folder}: {wrong} is not number {SPECIAL[wrong]}, as in RoBERTa's vocabulary. Give RoBERTa's tokenizer.")
        if size > vocabulary:
            raise InputError(f"{folder} has {size:,} words, and the model {vocabulary:,}. Set model.vocabulary={size}.")
        self.folder = folder

    @property
    def mask(self) -> int:
        """The id of <mask>."""
        return int(self._tokenizer.mask_token_id)

    @property
    def words(self) -> range:
        """The ids that are neither special nor <mask>: `v_range` of C scripts/prepro_sub.py, but for the last few."""
        return range(UNKNOWN + 1, self.mask)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text, without special ones; capitals alone become small letters (C scripts/prepro_query.py)."""
        lowered = text.lower() if text.isupper() else text
        return tuple(self._tokenizer.encode(lowered, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return one_line(self._tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def copy_to(self, folder: Path) -> None:
        """Write the files of the tokenizer into a folder in a run folder."""
        store.make_folder(folder, inside=folder.parent)
        for name in FILES:
            try:
                data = read_named(self.folder / name, most_bytes=MOST_BYTES)
            except OSError as exc:
                raise StoreError(f"{self.folder / name} cannot be read ({exc.strerror}). Copy it again.") from exc
            with store.replacing(folder / name) as file:
                file.write(data)
