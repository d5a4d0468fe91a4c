"""The model that is taken where none is named: a dated choice with its size and licence."""

from __future__ import annotations

import re
from datetime import date

import pytest

from vip import registry
from vip.models.local_models import local_models, vision_model
from vip.models.transformers import engine
from vip.models.transformers.engine import TransformersEngine


def test_the_choice_has_a_date_a_size_and_a_licence() -> None:
    choice = vision_model()
    assert local_models().as_of >= date(2026, 11, 1)
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", choice.model)
    assert 0 < choice.parameters < 4, "it is to run on a laptop"
    assert choice.parameters < choice.download_gb < 4 * choice.parameters, "16 or 32 bits a parameter"
    assert choice.licence in {"Apache-2.0", "MIT"}
    assert choice.why
    assert (
        str(choice) == registry.local_model() == "Qwen/Qwen3-VL-2B-Instruct (2.1 billion parameters, 4.3 GB to download once, Apache-2.0)"
    )


def test_the_engine_without_a_name_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found(Exception):  # noqa: N818 - nothing goes wrong
        pass

    def read(name: str, device: str, precision: str) -> None:
        raise Found(name)

    monkeypatch.setattr("vip.models.transformers.chat.load_chat_model", read)
    monkeypatch.setattr(engine, "_refuse_missing_packages", lambda: None)
    with pytest.raises(Found, match=f"^{vision_model().model}$"):
        TransformersEngine(None)
