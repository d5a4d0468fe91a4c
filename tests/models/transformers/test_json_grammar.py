"""JSON by a schema: bounds of each kind of field, grammars compiled once, and which tokens each row of a batch may write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("llguidance")

from tests.models import tiny_chat_models  # noqa: E402
from vip.errors import BackendError  # noqa: E402
from vip.models.transformers.json_grammar import GrammarCache, JsonConstraint, bound_schema  # noqa: E402

TEXT: dict[str, Any] = {"type": "string"}


# ---------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    ("schema", "name", "item", "added"),
    [
        (TEXT, "", False, {"maxLength": 300, "minLength": 0}),
        (TEXT, "mood", True, {"maxLength": 60, "minLength": 0}),
        (TEXT, "caption", False, {"maxLength": 1500, "minLength": 1}),
        (TEXT, "dense_caption", True, {"maxLength": 1500, "minLength": 1}),
        ({"type": ["null", "string"]}, "", False, {"maxLength": 300, "minLength": 0}),
        ({**TEXT, "maxLength": 9000}, "caption", False, {"minLength": 1}),
        ({**TEXT, "minLength": 7}, "caption", False, {"maxLength": 1500}),
        *[({**TEXT, key: "x"}, "caption", False, {}) for key in ("enum", "const", "pattern", "format")],
        ({"type": "array"}, "", False, {"maxItems": 40}),
        ({"type": "array", "maxItems": 99}, "", False, {}),
        ({"type": "array", "maxItems": 0}, "", False, {}),
        ({"type": "integer"}, "", False, {"minimum": -(10**9), "maximum": 10**9}),
        ({"type": "integer", "minimum": 0}, "", False, {"maximum": 10**9}),
        ({"type": "integer", "exclusiveMinimum": 0}, "", False, {"maximum": 10**9}),
        ({"type": "integer", "exclusiveMaximum": 5}, "", False, {"minimum": -(10**9)}),
        ({"type": "integer", "enum": [1]}, "", False, {}),
        ({"type": "integer", "const": 1}, "", False, {}),
        ({"type": ["integer", "array"]}, "", False, {"minimum": -(10**9), "maximum": 10**9, "maxItems": 40}),
        ({"type": "number"}, "", False, {}),
        ({"type": "boolean"}, "", False, {}),
        ({}, "caption", False, {}),
        ({"type": "object"}, "", False, {}),
    ],
)
def test_each_kind_of_value_gets_the_bounds_that_it_lacks(schema: dict[str, Any], name: str, item: bool, added: dict[str, Any]) -> None:
    assert bound_schema(schema, name, item=item) == {**schema, **added}


LONG, SHORT, ITEM = {"maxLength": 1500, "minLength": 1}, {"maxLength": 300, "minLength": 0}, {"maxLength": 60, "minLength": 0}


@pytest.mark.parametrize(
    ("schema", "bound"),
    [
        ({"properties": {"caption": TEXT}}, {"properties": {"caption": {**TEXT, **LONG}}, "additionalProperties": False}),
        ({"properties": {"caption": True}, "additionalProperties": True}, {"properties": {"caption": True}, "additionalProperties": True}),
        ({"items": TEXT}, {"items": {**TEXT, **ITEM}}),
        ({"items": False}, {"items": False}),
        (
            {"properties": {"caption": {"items": TEXT}}},
            {"properties": {"caption": {"items": {**TEXT, **LONG}}}, "additionalProperties": False},
        ),
        ({"items": {"anyOf": [TEXT, {"type": "null"}]}}, {"items": {"anyOf": [{**TEXT, **ITEM}, {"type": "null"}]}}),
        *[({key: [TEXT, True]}, {key: [{**TEXT, **SHORT}, True]}) for key in ("anyOf", "allOf", "oneOf", "prefixItems")],
        *[
            ({key: {"caption": TEXT, "any": False}}, {key: {"caption": {**TEXT, **SHORT}, "any": False}})
            for key in ("$defs", "definitions")
        ],
        (
            {"properties": {"dense_caption": {"anyOf": [TEXT, {"type": "null"}]}}},
            {"properties": {"dense_caption": {"anyOf": [{**TEXT, **LONG}, {"type": "null"}]}}, "additionalProperties": False},
        ),
        (
            {"properties": {"caption": {"type": "array", "items": {"properties": {"mood": TEXT}}}}},
            {
                "properties": {
                    "caption": {
                        "type": "array",
                        "maxItems": 40,
                        "items": {"properties": {"mood": {**TEXT, **SHORT}}, "additionalProperties": False},
                    }
                },
                "additionalProperties": False,
            },
        ),
    ],
)
def test_schemas_within_a_schema_are_bound_by_the_name_of_their_field(schema: dict[str, Any], bound: dict[str, Any]) -> None:
    before = json.dumps(schema)
    assert bound_schema(schema) == bound
    assert json.dumps(schema) == before


# ---------------------------------------------------------------- grammars


@pytest.fixture(scope="module")
def words() -> Any:
    return tiny_chat_models.tokenizer()


END = 1
"""`</s>`"""
NUMBER: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["a"]}
TWO: dict[str, Any] = {
    "type": "object",
    "properties": {"b": NUMBER["properties"]["a"], "a": NUMBER["properties"]["a"]},
    "required": ["a", "b"],
}


def cache(words: Any, vocabulary: int | None = None) -> GrammarCache:
    return GrammarCache("tiny", words, len(words) if vocabulary is None else vocabulary, [END])


def fits(matcher: Any, words: Any, text: str) -> bool:
    """Whether a text is a whole answer; the matcher is used up."""
    tokens = words.encode(text, add_special_tokens=False)
    return all(matcher.consume_token(token) for token in tokens) and bool(matcher.is_accepting())


def test_each_answer_begins_anew_and_a_schema_is_compiled_once(words: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grammars = cache(words)
    compiled, compile_ = [], grammars._compile
    monkeypatch.setattr(grammars, "_compile", lambda schema: compiled.append(schema) or compile_(schema))
    first = grammars.start(NUMBER)
    assert fits(first, words, '{"a": 7}')
    assert fits(grammars.start(NUMBER), words, '{"a": 8}')
    assert fits(grammars.start(dict(NUMBER)), words, '{"a": 9}')
    assert compiled == [NUMBER]
    assert fits(grammars.start(TWO), words, '{"b": 1, "a": 2}')
    assert compiled == [NUMBER, TWO]


def test_fields_come_in_the_order_of_the_schema_and_that_of_another_is_another(words: Any) -> None:
    grammars = cache(words)
    turned = {**TWO, "properties": dict(reversed(TWO["properties"].items()))}
    assert turned == TWO
    assert fits(grammars.start(TWO), words, '{"b": 1, "a": 2}')
    assert fits(grammars.start(turned), words, '{"a": 2, "b": 1}')
    assert not fits(grammars.start(turned), words, '{"b": 1, "a": 2}')


@pytest.mark.parametrize("text", ['{"a":7}', '{ "a": 7}', '{"a": 77}', '{"a": "7"}', '{"a": 7', "{}", '{"a": 7, "c": 1}'])
def test_a_text_of_another_form_is_none(text: str, words: Any) -> None:
    assert not fits(cache(words).start(NUMBER), words, text)


def test_bounds_hold_while_it_is_written(words: Any) -> None:
    schema = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}}
    grammars = cache(words)
    assert fits(grammars.start(schema), words, json.dumps([1] * 40))
    assert not fits(grammars.start(schema), words, json.dumps([1] * 41))


def test_a_schema_that_cannot_be_kept_is_refused_each_time(words: Any) -> None:
    grammars = cache(words)
    for _ in range(2):
        with pytest.raises(
            BackendError, match=r"The answer cannot be held to its schema \(.+\)\. Take a simpler schema, or another engine\."
        ):
            grammars.start({"$ref": "#/$defs/Nowhere"})
    assert fits(grammars.start(NUMBER), words, '{"a": 7}')


def test_a_tokenizer_that_is_not_known_is_named(words: Any) -> None:
    class Unknown:
        """A fake of a kind that llguidance does not read."""

        def __len__(self) -> int:
            return 7

    with pytest.raises(BackendError, match=r"tiny cannot be held to a JSON schema: .*--structure-engine transformers:MODEL"):
        GrammarCache("tiny", Unknown(), 7, [END]).start(NUMBER)


@pytest.mark.parametrize("more", [0, 9, -5])
def test_tokens_that_only_one_of_model_and_tokenizer_knows_are_never_allowed(more: int, words: Any) -> None:
    """A model may score more tokens than the tokenizer has, or fewer."""
    vocabulary = len(words) + more
    matcher = cache(words, vocabulary).start(NUMBER)
    allowed = JsonConstraint._allowed_tokens(matcher, vocabulary)
    assert allowed.shape == (vocabulary,)
    assert set(np.flatnonzero(allowed)) == {token for token in range(len(words)) if words.decode([token]) in ("{", '{"')}


def test_tokens_behind_those_that_the_grammar_knows_are_not_allowed(words: Any) -> None:
    size = len(words)
    allowed = JsonConstraint._allowed_tokens(cache(words).start(NUMBER), size + 100)
    assert allowed.shape == (size + 100,)
    assert allowed[:size].any()
    assert not allowed[size:].any()


# ---------------------------------------------------------------- a batch


def step(constraint: JsonConstraint, written: Sequence[Sequence[int]], vocabulary: int) -> list[list[int]]:
    """Return the tokens that each row may write next."""
    scores = torch.zeros(len(written), vocabulary)
    found = constraint(torch.tensor(written), scores)
    assert torch.all(scores == 0), "the model's own scores stay"
    assert set(found.unique().tolist()) <= {0.0, -torch.inf}
    return [torch.nonzero(row == 0)[:, 0].tolist() for row in found]


def test_each_row_is_held_to_its_own_schema_and_free_text_to_none(words: Any) -> None:
    size = len(words)
    grammars = cache(words)
    letter = {"type": "string", "enum": ["x"]}
    constraint = JsonConstraint([grammars.start(NUMBER), None, grammars.start(letter)], [9, 9, 9], lambda row: False)
    prompt = [[5, 6, 7]] * 3
    first = step(constraint, prompt, size)
    assert constraint.start == 3
    brace, quote = words.encode("{", add_special_tokens=False)[0], words.encode('"', add_special_tokens=False)[0]
    assert brace in first[0]
    assert quote not in first[0]
    assert first[1] == list(range(size))
    assert quote in first[2]
    assert brace not in first[2]
    second = step(constraint, [[*prompt[0], token] for token in (brace, 11, quote)], size)
    assert constraint.start == 3
    assert quote in second[0]
    assert END not in second[0]
    assert second[1] == list(range(size))
    assert words.encode("x", add_special_tokens=False)[0] in second[2]


def test_a_whole_answer_is_followed_by_its_end_alone_and_padding_does_not_disturb_it(words: Any) -> None:
    size, constraint = len(words), JsonConstraint([cache(words).start(NUMBER), None], [99, 99], lambda row: False)
    written = [0]
    for token in [None, *words.encode('{"a": 7}', add_special_tokens=False), END, 2, 2]:
        if token is not None:
            written.append(token)
        allowed, free = step(constraint, [written, written], size)
        if written[-1] in (END, 2):
            assert free == list(range(size))
        if written[-1] == words.encode("}", add_special_tokens=False)[0]:
            assert allowed == [END]


def test_free_text_alone_gives_the_scores_as_they_are() -> None:
    constraint = JsonConstraint([None, None], [9, 9], lambda row: False)
    scores = torch.tensor([[0.5, -1.0], [2.0, 3.0]])
    for length in (4, 5):
        assert constraint(torch.zeros(2, length, dtype=torch.long), scores) is scores
    assert constraint.start == 4


def test_a_row_is_done_after_its_own_number_of_tokens_or_when_nobody_waits() -> None:
    abandoned: set[int] = set()
    constraint = JsonConstraint([None] * 3, [1, 3, 2], lambda row: row in abandoned)
    ids, scores = torch.zeros(3, 4, dtype=torch.long), torch.zeros(3, 8)
    done = [constraint.is_done(ids, scores).tolist()]
    for _ in range(3):
        constraint(ids, scores)
        done.append(constraint.is_done(ids, None, more=1).tolist())
    assert done == [[False, False, False], [True, False, False], [True, False, True], [True, True, True]]
    late = JsonConstraint([None] * 3, [9, 9, 9], lambda row: row in abandoned)
    abandoned.add(1)
    assert late.is_done(ids, scores).tolist() == [False, True, False]
    assert late.is_done(ids, scores).dtype == torch.bool
