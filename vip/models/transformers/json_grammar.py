"""JSON that fits a schema, enforced while a model of the library transformers writes it, by the library llguidance.

In: a JSON schema. Out: for each step of the writing the tokens that may come next. Texts, lists and whole numbers without a bound
get one here: a model that repeats itself would otherwise fill its last token with the same word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vip.errors import BackendError
from vip.models import hub
from vip.wording import option

if TYPE_CHECKING:
    import torch
    from llguidance import LLMatcher

LONG_TEXTS = frozenset({"caption", "dense_caption"})  # fields that hold a paragraph
MOST_CHARACTERS, MOST_OF_LONG, MOST_OF_ITEM = 300, 1500, 60  # a dense caption has about 600
MOST_ITEMS = 40
MOST_WHOLE = 10**9
LAYOUT: Any = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "lenient": True,
}  # as json.dumps writes it
_NAMED, _LISTED = frozenset({"$defs", "definitions"}), frozenset({"anyOf", "allOf", "oneOf", "prefixItems"})


def bound_schema(schema: Mapping[str, Any], name: str = "", *, item: bool = False) -> dict[str, Any]:
    """Return a copy of a schema in which every text, list and whole number has an end; bounds that it sets itself stay.

    Args:
        name: of the field that the schema is for.
        item: it is for the items of a list.
    """
    own = dict(schema)
    kinds = own.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "string" in kinds and not {"enum", "const", "pattern", "format"} & own.keys():
        own.setdefault("maxLength", MOST_OF_LONG if name in LONG_TEXTS else MOST_OF_ITEM if item else MOST_CHARACTERS)
        own.setdefault("minLength", 1 if name in LONG_TEXTS else 0)  # a paragraph that is empty is no answer
    if "array" in kinds:
        own.setdefault("maxItems", MOST_ITEMS)
    if "integer" in kinds and not {"enum", "const"} & own.keys():
        if "exclusiveMinimum" not in own:
            own.setdefault("minimum", -MOST_WHOLE)
        if "exclusiveMaximum" not in own:
            own.setdefault("maximum", MOST_WHOLE)
    if "properties" in own:
        own["properties"] = {key: _bound_inner(value, key) for key, value in own["properties"].items()}
        own.setdefault("additionalProperties", False)
    if "items" in own:
        own["items"] = _bound_inner(own["items"], name, item=True)
    for key in _NAMED & own.keys():
        own[key] = {title: _bound_inner(value, name) for title, value in own[key].items()}
    for key in _LISTED & own.keys():
        own[key] = [_bound_inner(value, name, item=item) for value in own[key]]
    return own


def _bound_inner(schema: Any, name: str, *, item: bool = False) -> Any:
    """Bound an inner schema. `true` and `false` are schemas too, without anything to bound."""
    return bound_schema(schema, name, item=item) if isinstance(schema, dict) else schema


class GrammarCache:
    """A cache of grammars: each JSON schema is compiled once for the tokens of a tokenizer."""

    def __init__(self, model_name: str, tokenizer: Any, vocabulary: int, end_tokens: list[int]) -> None:
        """Keep the tokenizer; nothing is computed yet: the tokens of a large vocabulary take a second.

        Args:
            vocabulary: for how many tokens the model gives a score, some of which the tokenizer may not know.
            end_tokens: tokens that end an answer.
        """
        self._model_name, self._tokenizer, self._end_tokens = model_name, tokenizer, end_tokens
        self._vocabulary = max(vocabulary, len(tokenizer))
        self._tokens: Any = None
        self._matchers: dict[str, LLMatcher] = {}
        self._lock = Lock()

    def start(self, schema: Mapping[str, Any]) -> LLMatcher:
        """Return a matcher for one answer from its first token on.

        Raises:
            BackendError: the tokenizer or the schema is of a kind that llguidance does not know.
        """
        key = json.dumps(schema)  # in the order of its fields, which is that of the answer
        with self._lock:
            if key not in self._matchers:
                self._matchers[key] = self._compile(schema)
            return self._matchers[key].deep_copy()

    def _compile(self, schema: Mapping[str, Any]) -> LLMatcher:
        from llguidance import LLMatcher

        if self._tokens is None:
            self._tokens = self._read_tokens()
        grammar = LLMatcher.grammar_from_json_schema(bound_schema(schema), overrides=LAYOUT)
        matcher = LLMatcher(self._tokens, grammar, log_level=0)
        if matcher.is_error():
            why = hub.first_line(ValueError(matcher.get_error()))
            raise BackendError(f"The answer cannot be held to its schema ({why}). Take a simpler schema, or another engine.")
        return matcher

    def _read_tokens(self) -> Any:
        from llguidance.hf import from_tokenizer

        try:
            return from_tokenizer(self._tokenizer, n_vocab=self._vocabulary, eos_token=self._end_tokens)
        except Exception as exc:  # its errors have no base class
            raise BackendError(
                f"{self._model_name} cannot be held to a JSON schema: llguidance does not read its tokenizer ({hub.first_line(exc)})."
                f" Let another model give the structure: {option('structure_engine', 'transformers:MODEL')}."
            ) from exc


class JsonConstraint:
    """A logits processor that holds each row of a batch to its own schema and to its own number of tokens."""

    def __init__(self, matchers: Sequence[LLMatcher | None], max_tokens: Sequence[int], is_abandoned: Callable[[int], bool]) -> None:
        """Set the constraints of each row.

        Args:
            matchers: None for free text.
            max_tokens: how many tokens a row may have.
            is_abandoned: whether nobody waits for a row any more, by its number.
        """
        self.start = 0
        """How many tokens precede the first that is written."""
        self._matchers, self._max_tokens, self._is_abandoned = matchers, max_tokens, is_abandoned
        self._steps = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Act as a logits processor: return the scores with those of tokens that may not come next at minus infinity."""
        if self._steps == 0:
            self.start = input_ids.shape[1]
        else:
            self._consume(input_ids[:, -1].tolist())
        self._steps += 1
        if all(matcher is None for matcher in self._matchers):
            return scores
        import torch

        rows = [self._allowed_tokens(matcher, scores.shape[1]) for matcher in self._matchers]
        return scores.masked_fill(~torch.from_numpy(np.stack(rows)).to(scores.device), -torch.inf)

    def is_done(self, input_ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
        """Act as a stopping criterion: return which rows have all the tokens that they may have, bool (rows,)."""
        import torch

        done = [self._steps >= max_tokens or self._is_abandoned(number) for number, max_tokens in enumerate(self._max_tokens)]
        return torch.tensor(done, device=input_ids.device)

    def _consume(self, tokens: list[int]) -> None:
        for matcher, token in zip(self._matchers, tokens, strict=True):
            if matcher is not None and not matcher.is_stopped():  # rows that are done get padding
                matcher.consume_token(token)

    @staticmethod
    def _allowed_tokens(matcher: LLMatcher | None, vocabulary: int) -> npt.NDArray[np.bool_]:
        """Return bool (vocabulary,): which tokens may come next; only end tokens once the JSON is whole."""
        if matcher is None:
            return np.ones(vocabulary, np.bool_)
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little")[:vocabulary].astype(np.bool_)
        return np.pad(bits, (0, vocabulary - len(bits)))
