"""What becomes of an engine's name once it has found its model."""

from __future__ import annotations

import pytest

from vip.corpus.choices import with_model


@pytest.mark.parametrize(
    ("named", "found", "kept"),
    [
        ("openai", "openai:gpt", "openai:gpt"),
        ("openai:@http://host/v1", "openai:gpt", "openai:gpt@http://host/v1"),
        ("openai:gpt", "openai:gpt-2026", "openai:gpt"),
        ("openai:gpt@http://host/v1", "openai:gpt", "openai:gpt@http://host/v1"),
        ("transformers:@main", "transformers:a", "transformers:@main"),
        ("transformers", "transformers:small", "transformers:small"),
        ("offline", "offline", "offline"),
    ],
)
def test_a_model_that_was_found_is_named_and_one_that_was_given_stays(named: str, found: str, kept: str) -> None:
    assert with_model(named, found) == kept
