"""What the settings name is loaded with what the settings say, and refused where it cannot do what is asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vip import registry
from vip.config import ExtractSettings
from vip.errors import BackendError, UsageError
from vip.extraction import backends
from vip.extraction.backends import Backends, check_joint, detector_for, embedder_for, load, pruner_for
from vip.protocols import EmbedderCapabilities


class Made:
    """The registry's embedders and detectors: stand-ins that know what they were made with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.about: dict[str, dict[str, Any]] = {"joint": {"joint_space": True}, "model": {"device": "cuda in fp16"}}
        self.auto: tuple[str, str | None] = ("joint", "its weights are here")
        for kind in ("embedder", "detector"):
            monkeypatch.setattr(registry, kind, self.make)
        monkeypatch.setattr(registry, "auto_embedder", lambda name: self.auto if name == "auto" else (name, None))

    def make(self, name: str, **settings: Any) -> Any:
        return SimpleNamespace(name=name, settings=settings, capabilities=EmbedderCapabilities(**self.about.get(name, {})))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(monkeypatch)


def asked(**changes: Any) -> ExtractSettings:
    return ExtractSettings(**{"embedder": "classic", "detector": "opencv", **changes})


# ---------------------------------------------------------------- which


@pytest.mark.parametrize(
    ("pruner", "query", "name"),
    [("algorithm1", None, "algorithm1"), ("none", None, "none"), ("algorithm1", "a dog", "aks"), ("aks", "a dog", "aks")],
)
def test_a_question_chooses_the_pruner_that_goes_by_it(pruner: str, query: str | None, name: str) -> None:
    assert pruner_for(asked(pruner=pruner, query=query)).name == name


def test_a_question_and_another_pruner_contradict_each_other_and_so_does_aks_without_one() -> None:
    with pytest.raises(UsageError, match=r"--query chooses by relevance, and --pruner k-center does not\. Leave one of them out\."):
        pruner_for(asked(pruner="k-center", query="a dog"))
    with pytest.raises(UsageError, match=r"The pruner aks chooses by relevance to a question\. Add --query 'a dog"):
        pruner_for(asked(pruner="aks"))


def test_models_are_made_with_the_device_the_precision_and_the_labels_asked_for(made: Made) -> None:
    settings = asked(detector="model", labels=("cup",), device="cuda", precision="bf16")
    embedder, why = embedder_for(settings)
    assert (embedder.name, why) == ("classic", None)
    assert embedder.settings == {"device": "cuda", "precision": "bf16"}  # type: ignore[attr-defined]
    assert detector_for(settings).settings == {"labels": ("cup",), "device": "cuda", "precision": "bf16"}  # type: ignore[attr-defined]


def test_the_classic_embedder_tells_views_apart_whatever_the_other_is(made: Made) -> None:
    other, classic = load(asked(embedder="joint")), load(asked())
    assert (other.view.name, other.embedder.name) == ("classic", "joint")
    assert classic.view is classic.embedder


def test_what_auto_became_is_said(made: Made) -> None:
    assert load(asked(embedder="auto")).notes == ("embedder: joint; its weights are here",)
    assert load(asked(embedder="joint")).notes == ()
    made.auto = ("classic", "open_clip is not installed")
    found = load(asked(embedder="auto"))
    assert found.notes == ("embedder: classic (built in); open_clip is not installed",)
    assert found.view is found.embedder


def test_the_manifest_names_all_four(made: Made) -> None:
    found = load(asked(embedder="joint", sampler="every:2s", pruner="none"))
    assert found.names == {"sampler": "every:2s", "pruner": "none", "embedder": "joint", "detector": "opencv"}


@pytest.mark.parametrize(
    ("embedder", "detector", "device"),
    [
        (None, None, "cpu"),
        ("cuda in fp16", "cuda in fp16", "cuda in fp16"),
        ("cuda in fp16", None, "embedder cuda in fp16, detector cpu"),
        (None, "mps", "embedder cpu, detector mps"),
    ],
)
def test_the_device_is_said_once_where_both_share_it(embedder: str | None, detector: str | None, device: str) -> None:
    first, second = (SimpleNamespace(capabilities=EmbedderCapabilities(device=where)) for where in (embedder, detector))
    unused: Any = None
    assert Backends(unused, unused, unused, first, second, ()).device == device  # type: ignore[arg-type]


# ---------------------------------------------------------------- what cannot be done


@pytest.mark.parametrize("option", [{"device": "cuda"}, {"precision": "fp16"}])
def test_a_device_or_a_precision_is_refused_where_no_model_would_use_it(made: Made, option: dict[str, str]) -> None:
    ((name, value),) = option.items()
    with pytest.raises(UsageError, match=rf"--{name} {value}: neither the embedder classic nor the detector opencv is a model"):
        load(asked(**option))
    assert load(asked(**option, embedder="model")).embedder.name == "model"
    assert load(asked(**option, detector="model")).detector.name == "model"


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_the_processor_is_no_wish_that_needs_a_model(made: Made, device: str) -> None:
    assert load(asked(device=device)).device == "cpu"


def test_a_question_needs_pictures_and_texts_in_one_space(made: Made) -> None:
    assert embedder_for(asked(embedder="joint", query="a dog"))[0].name == "joint"
    assert embedder_for(asked())[0].name == "classic", "without a question any embedder will do"
    with pytest.raises(BackendError, match="--query needs an embedder that puts pictures and texts into one space, and classic does not"):
        embedder_for(asked(query="a dog"))


@pytest.mark.parametrize(
    ("has_clip", "why", "advice"),
    [
        (False, None, r"Write --embedder clip, after pip install 'vip-keyframes\[clip\]'\."),
        (False, "open_clip is not installed", r"Write --embedder clip, after pip install 'vip-keyframes\[clip\]'\."),
        (True, "its weights are not here", "clip is installed, but its weights are not here. Run it once with a connection"),
        (True, None, r"Write --embedder clip\.$"),
    ],
)
def test_what_lacks_for_a_question_is_said(monkeypatch: pytest.MonkeyPatch, has_clip: bool, why: str | None, advice: str) -> None:
    monkeypatch.setattr(registry, "has_clip", lambda: has_clip)
    embedder: Any = SimpleNamespace(name="classic", capabilities=EmbedderCapabilities())
    with pytest.raises(BackendError, match=advice):
        check_joint(embedder, why)


def test_where_auto_finds_no_clip_a_question_is_refused_with_the_reason(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made.auto = ("classic", "its weights are not here")
    monkeypatch.setattr(registry, "has_clip", lambda: True)
    with pytest.raises(BackendError, match="clip is installed, but its weights are not here"):
        backends.load(asked(embedder="auto", query="a dog"))
