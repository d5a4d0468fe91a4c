"""T5 of transformers: from the hub or a folder, kept in a run folder, and made again from there."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vip import files, store
from vip.baselines.fiber.data import T5_BLANK, T5_NEXT
from vip.baselines.kept import MOST_WEIGHT_BYTES, check_kept_folder
from vip.errors import BackendError, InputError, StoreError, UsageError
from vip.models.transformers.model_files import ModelFiles
from vip.untrusted import one_line
from vip.wording import option

PREFIX, FOLDER = "t5", "t5"
MOST_LAYERS, MOST_WEIGHTS = 1000, 20_000_000_000  # the largest T5 has 11 billion


def name_in(text: str) -> str | None:
    """Return the name in `t5:NAME`; None where it is something else."""
    kind, sign, name = text.partition(":")
    return name if kind == PREFIX and sign else None


def load_t5(named: str) -> tuple[Any, Any]:
    """Return a T5 of any size and its tokenizer, by `t5:NAME`: a folder, or a repository of the hub. No code of it is run.

    Raises:
        UsageError: it is not named so.
        BackendError: transformers is not installed; or files are missing and cannot be downloaded, are damaged, or are no T5.
    """
    check_transformers()
    name = name_in(named)
    if not name:
        raise UsageError(f'"{named}" names no T5. Write t5:FOLDER, or t5:NAME of the hub, such as t5:google/t5-v1_1-base.')
    from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

    source = ModelFiles.find(name, "model", PREFIX)
    tokenizer = source.load(AutoTokenizer.from_pretrained)
    check_tokenizer(tokenizer, name)
    try:
        check_size(source.load(T5Config.from_pretrained), MOST_WEIGHTS)
    except (TypeError, ValueError) as exc:
        raise BackendError(f"{one_line(name)[:80]} is no T5 of a known size ({exc}). Choose a T5, such as google/t5-v1_1-base.") from exc
    return source.load_model(T5ForConditionalGeneration.from_pretrained, "float32"), tokenizer


def check_transformers() -> None:
    """Refuse to go on without the library.

    Raises:
        BackendError: it is not installed.
    """
    if find_spec("transformers") is None:
        raise BackendError("T5 is run with transformers, which is not installed. Run: pip install 'vip-keyframes[train,transformers]'.")


def check_tokenizer(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer that does not know T5's names of blanks.

    Raises:
        BackendError: it does not.
    """
    known = tokenizer.convert_tokens_to_ids([T5_BLANK, T5_NEXT])
    if None in known or tokenizer.unk_token_id in known or len(set(known)) < 2:
        raise BackendError(
            f"The tokenizer of {one_line(name)[:80]} has no {T5_BLANK} and {T5_NEXT}. Choose a T5, such as google/t5-v1_1-base."
        )


def check_size(config: Any, most_weights: int) -> None:
    """Refuse a T5 with more layers or weights than there may be, before it is built: of some numbers that would never end.

    Raises:
        ValueError: it is.
    """
    width, layers = int(config.d_model), int(config.num_layers) + int(config.num_decoder_layers)
    attention, feed_forward = 4 * width * int(config.num_heads) * int(config.d_kv), 2 * width * int(config.d_ff)
    count = layers * (attention + feed_forward) + int(config.vocab_size) * width
    if min(width, layers, attention, feed_forward, count) < 1 or count > most_weights or layers > MOST_LAYERS:
        raise ValueError(f"{layers:,} layers and {count:,} weights")


def save_t5(t5: Any, tokenizer: Any, folder: Path) -> None:
    """Write how a T5 is built, and its tokenizer, into a run folder; its weights lie in another file.

    Raises:
        StoreError: it cannot be written.
    """
    part = folder / f"{FOLDER}{store.PARTIAL_SUFFIX}"
    try:
        for leftover in (part, folder / FOLDER):
            if store.is_folder(leftover):
                files.remove_folder(leftover)
        t5.config.save_pretrained(part)
        tokenizer.save_pretrained(part)
        part.replace(folder / FOLDER)
    except OSError as exc:
        raise StoreError(f"{folder / FOLDER} cannot be written: {exc.strerror}. Choose another folder with {option('out')}.") from exc


def read_t5(folder: Path) -> tuple[Any, Any]:
    """Return how the T5 of a run folder is built, and its tokenizer.

    Raises:
        BackendError: transformers is not installed.
        InputError: the folder is damaged.
    """
    check_transformers()
    from transformers import AutoTokenizer, T5Config

    kept = folder / FOLDER
    check_kept_folder(kept)
    if not store.exists(kept / "config.json"):
        raise InputError(f"{kept} has no config.json. Train the model again.")
    try:
        config = T5Config.from_pretrained(str(kept), local_files_only=True)
        check_size(config, MOST_WEIGHT_BYTES // 4)
        tokenizer = AutoTokenizer.from_pretrained(str(kept), local_files_only=True, trust_remote_code=False)
        check_tokenizer(tokenizer, str(kept))
    except Exception as exc:  # there is no end to the ways in which damaged files make the library fail
        raise _not_built(kept, exc) from exc
    return config, tokenizer


def make_t5(config: Any, folder: Path) -> Any:
    """Return a T5 with random weights.

    Args:
        folder: the run folder that its configuration is of, for messages.

    Raises:
        InputError: it is none that can be built.
    """
    from transformers import T5ForConditionalGeneration

    try:
        return T5ForConditionalGeneration(config)
    except Exception as exc:
        raise _not_built(folder / FOLDER, exc) from exc


def _not_built(kept: Path, exc: Exception) -> InputError:
    return InputError(f"{kept} holds no T5 that can be built ({one_line(str(exc))[:150]}). Train the model again.")
