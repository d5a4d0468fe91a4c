"""What `vip doctor` says of models: a model works where it is in the cache or can be downloaded, and the hub is asked only where needed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from vip.errors import BackendError
from vip.models import faster_whisper, hardware, hub, status
from vip.models.clip import weight_files
from vip.models.hardware import Hardware
from vip.models.status import DETECTORS, Row, rows

ALL = frozenset({"open_clip", "transformers", "faster_whisper"})
NOWHERE = "the hub cannot be reached"
DEVICE = ("model", "device", True, "models run on cpu in fp32")


class Machine:
    """A fake of what is installed, what is in the cache, and whether the hub answers; notes what is asked."""

    def __init__(self) -> None:
        self.installed, self.cached = ALL, frozenset[str]()
        self.reason: str | None = None
        self.asked: list[str] = []

    def find_spec(self, name: str) -> ModuleSpec | None:
        assert name in ALL
        return ModuleSpec(name, None) if name in self.installed else None

    def find_repository(self, repo: str, filename: str) -> Path | None:
        assert filename == "config.json"
        return Path("x") if repo in self.cached else None

    def find_weights(self, pretrained: object) -> Path | None:
        assert pretrained is weight_files.DEFAULT_PRETRAINED
        return Path("x") if "clip" in self.cached else None

    def speech(self, model: str) -> str | None:
        return None if model in self.cached else "it is not here"

    def unreachable_reason(self) -> str | None:
        self.asked.append("hub")
        return self.reason

    def rows(self) -> dict[str, Row]:
        found = list(rows())
        assert len({row[1] for row in found}) == len(found)
        assert {row[0] for row in found} == {"model"}
        return {row[1]: row for row in found}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(status, "find_spec", made.find_spec)
    monkeypatch.setattr(hub, "find_cached", made.find_repository)
    monkeypatch.setattr(hub, "unreachable_reason", made.unreachable_reason)
    monkeypatch.setattr(weight_files, "find_cached", made.find_weights)
    monkeypatch.setattr(faster_whisper, "unavailable_reason", made.speech)
    monkeypatch.setattr(hardware, "choose_hardware", lambda device, precision: Hardware("cpu", "fp32"))
    return made


def test_rows_come_in_one_order(machine: Machine) -> None:
    assert list(machine.rows()) == ["clip", "RT-DETR", "DETR", "OWLv2", "Grounding DINO", "Florence-2", "speech", "hub", "device"]


@pytest.mark.parametrize(
    ("cached", "reason", "works", "end"),
    [
        (True, None, True, "in the cache"),
        (True, NOWHERE, True, "in the cache"),
        (False, None, True, "not in the cache, downloaded when first used"),
        (False, NOWHERE, False, "not in the cache, and cannot be downloaded"),
    ],
)
def test_a_model_works_where_it_is_in_the_cache_or_can_be_downloaded(
    cached: bool, reason: str | None, works: bool, end: str, machine: Machine
) -> None:
    machine.reason = reason
    machine.cached = frozenset({"clip", "small", *DETECTORS.values()}) if cached else frozenset()
    found = machine.rows()
    assert found["clip"] == ("model", "clip", works, f"ViT-B-32, {end}")
    assert found["speech"] == ("model", "speech", works, f"Whisper small, {end}")
    for kind, name in DETECTORS.items():
        assert found[kind] == ("model", kind, works, f"transformers:{name}, {end}")


@pytest.mark.parametrize("name", ["clip", "small", *DETECTORS.values()])
def test_each_model_is_looked_for_by_itself(name: str, machine: Machine) -> None:
    machine.cached, machine.reason = frozenset({name}), NOWHERE
    names = {"clip": "clip", "speech": "small", **DETECTORS}
    assert [names[row[1]] for row in machine.rows().values() if row[1] in names and row[2]] == [name]


@pytest.mark.parametrize(("reason", "works", "told"), [(None, True, "answers"), (NOWHERE, False, NOWHERE)])
def test_the_hub_answers_or_it_is_said_why_not(reason: str | None, works: bool, told: str, machine: Machine) -> None:
    machine.reason = reason
    assert machine.rows()["hub"] == ("model", "hub", works, told)
    assert machine.asked == ["hub"]


@pytest.mark.parametrize(
    ("installed", "names", "asks"),
    [
        ((), ["clip", "transformers:MODEL", "speech"], False),
        (("open_clip",), ["clip", "transformers:MODEL", "speech", "hub", "device"], True),
        (("transformers",), ["clip", *DETECTORS, "speech", "hub", "device"], True),
        (("faster_whisper",), ["clip", "transformers:MODEL", "speech"], True),
    ],
)
def test_only_what_is_installed_is_looked_for(installed: tuple[str, ...], names: list[str], asks: bool, machine: Machine) -> None:
    machine.installed = frozenset(installed)
    found = machine.rows()
    assert (list(found), machine.asked) == (names, ["hub"] * asks)
    advice = {
        "clip": ("open_clip", "not installed: pip install 'vip-keyframes[clip]'"),
        "transformers:MODEL": ("transformers", "not installed: pip install 'vip-keyframes[transformers]'"),
        "speech": ("faster_whisper", "not installed: pip install 'vip-keyframes[speech]'"),
    }
    for name, (library, told) in advice.items():
        assert (found.get(name) == ("model", name, False, told)) == (library not in installed)


def test_speech_that_is_installed_alone_works_only_with_the_hub_or_the_cache(machine: Machine) -> None:
    machine.installed, machine.reason = frozenset({"faster_whisper"}), NOWHERE
    assert machine.rows()["speech"][2:] == (False, "Whisper small, not in the cache, and cannot be downloaded")


def refuse(error: Exception) -> Callable[[str, str], Hardware]:
    def choose(device: str, precision: str) -> Hardware:
        assert (device, precision) == ("auto", "auto")
        raise error

    return choose


@pytest.mark.parametrize("error", [BackendError("There is no device."), ImportError("No module named 'torch'")])
def test_a_device_that_cannot_be_chosen_is_told_with_the_reason(
    error: Exception, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine.rows()["device"][:3] == DEVICE[:3]
    monkeypatch.setattr(hardware, "choose_hardware", refuse(error))
    assert machine.rows()["device"] == ("model", "device", False, str(error))


def test_the_device_is_told_in_the_words_of_a_manifest(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "choose_hardware", lambda device, precision: Hardware("cuda:1", "fp16"))
    assert machine.rows()["device"] == ("model", "device", True, f"models run on {Hardware('cuda:1', 'fp16')}")
    assert "cuda:1" in machine.rows()["device"][3]


def test_an_error_of_programming_is_not_taken_for_a_missing_device(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "choose_hardware", refuse(AttributeError("a slip")))
    with pytest.raises(AttributeError, match="a slip"):
        machine.rows()
