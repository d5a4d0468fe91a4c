"""The engine `fake` is deterministic, says that it is made up, and fails on request."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError

from vip.errors import BackendError, EngineError, ReplyError
from vip.models.fake import FakeEngine
from vip.protocols import KeyframeFacts, Request
from vip.records import Famous, Quality

FACTS = KeyframeFacts(640, 360, 1.0, Quality(sharpness=100, brightness=0.5, contrast=0.2), (), (("blue", 1.0),), 0.5, None, None)
PLAIN = Request("describe", "Describe it.", FACTS)
STRUCTURED = Request("structure", "Structure it.", FACTS, schema=Famous.model_json_schema())


def test_answers_are_made_up_and_always_the_same() -> None:
    first, second = (asyncio.run(FakeEngine(None).generate(PLAIN)) for _ in range(2))
    assert first == second
    assert "Made up" in first.text
    assert "Made up" in Famous.model_validate_json(asyncio.run(FakeEngine(None).generate(STRUCTURED)).text).focus


@pytest.mark.parametrize(("detail", "kind"), [("refuse", ReplyError), ("auth", EngineError)])
def test_it_fails_as_told(detail: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="fake"):
        asyncio.run(FakeEngine(detail).generate(PLAIN))


def test_bad_json_is_bad_only_where_json_is_asked_for() -> None:
    engine = FakeEngine("badjson")
    assert "Made up" in asyncio.run(engine.generate(PLAIN)).text
    with pytest.raises(ValidationError):
        Famous.model_validate_json(asyncio.run(engine.generate(STRUCTURED)).text)


def test_an_unknown_way_to_fail_is_refused() -> None:
    with pytest.raises(BackendError, match='Did you mean "refuse"'):
        FakeEngine("refuze")
