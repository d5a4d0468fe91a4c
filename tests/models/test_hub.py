"""The hub's client: its cache is read without the network, a hub that does not answer costs no minute, and errors are one sentence."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("huggingface_hub")

from huggingface_hub import constants

from tests.models.hub_server import hub as serve
from tests.models.hub_server import put_into_cache
from vip.models.clip import weight_files
from vip.models.hub import download, find_cached, first_line, offline, probe_error, unreachable_reason

pytestmark = pytest.mark.extra("huggingface_hub")
REPO = "somebody/some-model"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    probe_error.cache_clear()
    yield
    probe_error.cache_clear()


def test_a_file_of_the_cache_is_found_by_its_repository_and_its_name(cache: Path) -> None:
    assert find_cached(REPO, "a.json") is None
    put_into_cache(cache, REPO, {"a.json": b"{}"})
    found = find_cached(REPO, "a.json")
    assert found is not None
    assert found.read_bytes() == b"{}"
    assert find_cached(REPO, "b.json") is None
    assert find_cached("somebody/other", "a.json") is None
    assert find_cached("a/b/c", "a.json") is None


@pytest.mark.parametrize(("files", "name"), [((0, 1), 0), ((1,), 1), ((), None)])
def test_weights_are_the_first_of_the_usual_files_or_the_one_that_is_named(cache: Path, files: tuple[int, ...], name: int | None) -> None:
    put_into_cache(cache, REPO, {weight_files.FILES[number]: b"x" for number in files} | {"own.bin": b"y"})
    usual = weight_files.find_cached({"hf_hub": f"{REPO}/"})
    assert (usual and usual.name) == (None if name is None else weight_files.FILES[name])
    own = weight_files.find_cached({"hf_hub": f"{REPO}/own.bin", "url": "https://h/other.pt"})
    assert own is not None
    assert own.read_bytes() == b"y"
    assert weight_files.find_cached({"hf_hub": f"{REPO}/other.bin"}) is None


def test_weights_of_an_address_lie_where_open_clip_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pretrained = {"url": "https://host/some/ViT.pt", "hf_hub": ""}
    assert weight_files.find_cached(pretrained) is None
    (tmp_path / ".cache" / "clip").mkdir(parents=True)
    (tmp_path / ".cache" / "clip" / "ViT.pt").touch()
    assert weight_files.find_cached(pretrained) == tmp_path / ".cache" / "clip" / "ViT.pt"


def test_the_first_file_that_the_repository_has_is_downloaded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(REPO, {"b.json": b"b", "c.json": b"c"}) as (address, asked):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        assert unreachable_reason() is None
        assert download(REPO, ["a.json", "b.json", "c.json"]) is None
        assert [find_cached(REPO, f"{name}.json") is not None for name in "abc"] == [False, True, False]
        assert "GET b.json" in asked
        assert download(REPO, ["x", "y"]) == f"{REPO} has none of the files x, y"


def test_a_hub_that_is_not_to_be_asked_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("vip.models.hub.probe_error", lambda address: pytest.fail("asked"))
    assert unreachable_reason() == "HF_HUB_OFFLINE is set"


def test_a_hub_that_nobody_runs_is_named_once_a_process_and_one_that_answers_with_an_error_is_there() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert probe_error(address) == "127.0.0.1 cannot be reached (Connection refused)"
    with serve(REPO, {}) as (there, asked):
        assert probe_error(there) is None
        assert probe_error(there) is None
        assert len(asked) == 1
    for wrong in ("nowhere://host", "http://", "host"):
        assert (probe_error(wrong) or "").count("\n") == 0
        assert "cannot be reached" in (probe_error(wrong) or "")


@pytest.mark.parametrize(
    ("before", "wanted", "inside"), [(False, True, True), (False, False, False), (True, False, True), (True, True, True)]
)
def test_the_client_is_offline_inside_the_block_alone(before: bool, wanted: bool, inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", before)
    with suppress(KeyError), offline(wanted):
        assert constants.HF_HUB_OFFLINE is inside
        raise KeyError
    assert constants.HF_HUB_OFFLINE is before


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("It is full.", "It is full"),
        ("\n  It is \t full  \nMore", "It is full"),
        ("Errors:\n - the first\nthe second", "Errors: - the first"),
        ("Errors:", "Errors"),
        ("", "KeyError"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200 + "…"),
    ],
)
def test_of_an_error_its_first_line_is_told(text: str, line: str) -> None:
    assert first_line(ValueError(text) if text else KeyError()) == line
