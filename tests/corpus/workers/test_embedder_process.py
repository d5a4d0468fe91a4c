"""The process that embeds for all extractors: who wants it, and that its address is known while it is there."""

from __future__ import annotations

import os

import pytest

from tests.corpus.workers.children import Children, Gone, children_of
from vip.config import ExtractSettings
from vip.corpus.workers.embedder_process import VARIABLE, EmbedderProcess, wants_gpu
from vip.errors import BackendError


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    monkeypatch.setenv(VARIABLE, "of somebody else")
    monkeypatch.delenv(VARIABLE)
    return children_of(monkeypatch)


@pytest.mark.parametrize(
    ("settings", "wants"),
    [
        ({"embedder": "classic"}, False),
        ({"embedder": "clip"}, True),
        ({"embedder": "clip:classic"}, True),
        ({"embedder": "clip", "device": "cpu"}, False),
    ],
)
def test_a_model_that_is_not_held_on_the_cpu_wants_the_gpu(settings: dict[str, str], wants: bool) -> None:
    assert wants_gpu(ExtractSettings(**settings)) == wants


def test_its_address_is_in_the_environment_until_it_is_closed(children: Children) -> None:
    children.first = ["127.0.0.1:1"]
    settings = ExtractSettings(embedder="clip")
    embedding = EmbedderProcess(settings)
    embedding.start()
    assert (os.environ[VARIABLE], children[0].sent) == ("127.0.0.1:1", [settings])
    embedding.close()
    embedding.close()
    assert (VARIABLE in os.environ, children[0].killed) == (False, 1)


def test_what_keeps_it_from_loading_is_said(children: Children) -> None:
    children.first = [BackendError("It is not installed.")]
    with pytest.raises(BackendError, match=r"It is not installed\."):
        EmbedderProcess(ExtractSettings(embedder="clip")).start()
    assert len(children) == 1


def test_one_that_is_killed_is_started_again(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[object] = [Gone(), Gone(), "127.0.0.1:1"]
    started = children.start

    def start(module: str, arguments: tuple[str, ...] = ()) -> object:
        children.first = [answers.pop(0)]
        return started(module, arguments)

    monkeypatch.setattr("vip.processes.supervisor.ChildProcess", start)
    EmbedderProcess(ExtractSettings(embedder="clip")).start()
    assert [child.killed for child in children] == [1, 1, 0]
