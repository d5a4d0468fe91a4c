"""Names to backends: built-ins, those of other packages, and what is said of the rest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tests.models.test_conformance import NEEDS_FILES
from vip import registry
from vip.errors import BackendError
from vip.registry import BUILT_IN, Kind

BACKEND = """
from vip.errors import BackendError
from vip.registry import CAPABILITIES

class Bare:
    name = "mine"
    dim = 1
    def __init__(self, detail, **settings):
        self.detail, self.settings = detail, settings

class OfOlder(Bare):
    capabilities = {"exact": False}

for kind, record in CAPABILITIES.items():
    globals()[kind] = type(kind, (Bare,), {"capabilities": record()})

class Loading(Bare):
    capabilities = CAPABILITIES["engine"](stays_loaded=True)
    @staticmethod
    def check_installed():
        pass

class Lacking(Loading):
    @staticmethod
    def check_installed():
        raise BackendError("a driver is missing")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that adds backends of every kind."""
    (tmp_path / "vip_extra_backends.py").write_text(BACKEND)
    (tmp_path / "vip_extra_broken.py").write_text("import a_module_that_is_not_there")
    (tmp_path / "vip_extra_syntax.py").write_text("this is no Python")
    (tmp_path / "vip_extra_raises.py").write_text("raise RuntimeError('no\\ndriver')")
    info = tmp_path / "vip_extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vip-extra\nVersion: 1.0\n")
    lines = [
        "mine = vip_extra_backends:KIND",
        "broken = vip_extra_broken:Mine",
        "syntax = vip_extra_syntax:Mine",
        "raises = vip_extra_raises:Mine",
        "absent = vip_extra_backends:Absent",
        "bare = vip_extra_backends:Bare",
        "older = vip_extra_backends:OfOlder",
        "loading = vip_extra_backends:Loading",
        "lacking = vip_extra_backends:Lacking",
        "extras = vip_extra_backends:KIND [gpu]",
        *(f"{name} = vip_extra_backends:KIND" for name in ("sync", "classic", "opencv", "offline")),
    ]
    groups = [f"[vip.{kind}s]\n" + "\n".join(lines).replace("KIND", kind) for kind in get_args(Kind)]
    (info / "entry_points.txt").write_text("\n".join(groups))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


MAKERS = [registry.sampler, registry.pruner, registry.embedder, registry.detector, registry.engine]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_built_in_can_be_named(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    make = getattr(registry, kind)
    for name in BUILT_IN[kind].keys() - NEEDS_FILES:
        assert make(name).name.startswith(name)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.usefixtures("package")
def test_a_backend_of_another_package_is_found_and_gets_its_detail(make) -> None:  # type: ignore[no-untyped-def]
    assert make("mine").detail is None
    assert make("mine:").detail is None
    assert make("mine:a/b:c").detail == "a/b:c"
    assert make("extras").name == "mine"


@pytest.mark.usefixtures("package")
def test_an_engine_of_another_package_gets_all_settings_of_engines() -> None:
    given = {"base_url": "http://here/v1", "key_file": Path("key"), "timeout_s": 3.0, "picture_detail": "low"}
    engine = registry.engine("mine", **given, device="cpu", precision="fp32")  # type: ignore[arg-type]
    assert engine.settings == {**given, "device": "cpu", "precision": "fp32"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", [registry.embedder, registry.detector, registry.extractor])
@pytest.mark.usefixtures("package")
def test_a_model_runs_where_and_as_precisely_as_was_asked(make) -> None:  # type: ignore[no-untyped-def]
    labels = {"labels": ("dog", "frisbee")} if make is registry.detector else {}
    assert make("mine", device="cuda:1", precision="bf16", **labels).settings == {"device": "cuda:1", "precision": "bf16", **labels}
    assert make("mine").settings == {"device": "auto", "precision": "auto", **dict.fromkeys(labels)}


@pytest.mark.usefixtures("package")
def test_another_package_cannot_take_the_name_of_a_built_in() -> None:
    assert type(registry.embedder("classic")).__module__ == "vip.models.classic"
    assert type(registry.engine("offline")).__module__ == "vip.models.offline"
    assert registry.names("sampler")["sync"] == BUILT_IN["sampler"]["sync"]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("name", "words"), [("broken", "a_module_that_is_not_there"), ("syntax", "syntax"), ("raises", "no driver"), ("absent", "Absent")]
)
@pytest.mark.usefixtures("package")
def test_a_broken_backend_is_one_sentence_with_its_name(make, name: str, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BackendError, match=f'"{name}" cannot be loaded .*{words}') as caught:
        make(name)
    assert "\n" not in str(caught.value)
    assert "vip doctor" in str(caught.value)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("name", ["bare", "older:x"])
@pytest.mark.usefixtures("package")
def test_a_backend_that_does_not_state_what_it_can_do_is_refused(kind: Kind, name: str) -> None:
    with pytest.raises(BackendError) as caught:
        getattr(registry, kind)(name)
    record = f"vip.protocols.{kind.capitalize()}Capabilities"
    lacks = f'The {kind} "{name.partition(":")[0]}" has no `capabilities` of the type {record}.'
    assert str(caught.value) == f"{lacks} Update the package that it comes with."


@pytest.mark.usefixtures("package")
def test_broken_backends_are_listed_and_do_not_break_the_others() -> None:
    assert {"opencv", "mine", "broken"} <= set(registry.names("detector"))
    assert registry.detector("opencv").name == "opencv"


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("sampler", "sink", 'Did you mean "sync"?'),
        ("embedder", "Classic", 'Did you mean "classic"?'),
        ("detector", "opencv4", 'Did you mean "opencv"?'),
        ("engine", "opanai:gpt-5-mini", 'Did you mean "openai"?'),
        ("engine", "gpt-5-mini", "There is: fake, offline, openai, transformers."),
        ("detector", "", "There is: file, opencv, transformers."),
    ],
)
def test_an_unknown_backend_is_never_replaced(kind: Kind, name: str, hint: str) -> None:
    with pytest.raises(BackendError) as caught:
        getattr(registry, kind)(name)
    assert str(caught.value).endswith(hint)
    assert f'There is no {kind} "{name.partition(":")[0]}"' in str(caught.value)


@pytest.mark.usefixtures("package")
def test_a_backend_that_stays_loaded_is_made_once_for_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_loaded", {})
    assert registry.engine("mine") is not registry.engine("mine")
    kept = registry.engine("loading:a")
    assert kept is registry.engine("loading:a")
    assert kept is not registry.engine("loading:b")
    assert kept is not registry.engine("loading:a", device="cuda")


@pytest.mark.usefixtures("package")
def test_an_engine_that_loads_a_model_is_checked_without_loading_it() -> None:
    assert registry.quick_engine("loading:a") is None
    assert registry.quick_engine("fake") is not None
    with pytest.raises(BackendError, match="a driver is missing"):
        registry.quick_engine("lacking")


@pytest.mark.parametrize("name", ["classic", "clip:ViT-B-32/x", "misspelt"])
def test_only_auto_becomes_another_embedder(name: str) -> None:
    assert registry.auto_embedder(name) == (name, None)
    chosen, why = registry.auto_embedder("auto")
    assert chosen in BUILT_IN["embedder"]
    assert why


def test_only_weights_that_their_library_knows_by_name_are_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "evil").mkdir(parents=True)
    named = (
        "classic",
        "clip:ViT-B-32/openai",
        "clip:models/evil",
        "clip:../x",
        "clip:ViT@w.pt",
        "clip:hf-hub:a/b",
        "transformers:x",
        "clip:a/b/c",
    )
    assert [name for name in named if registry.is_published(name)] == ["classic", "clip:ViT-B-32/openai"]


@pytest.mark.parametrize("missing", ["rapidocr", "onnxruntime"])
def test_text_in_pictures_is_not_read_where_one_of_two_libraries_is_missing(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == missing else object())
    assert not registry.has_text_reader()
    with pytest.raises(BackendError, match=re.escape("Run: pip install 'vip-keyframes[text]'")):
        registry.check_text_reader()
    monkeypatch.setattr(registry, "find_spec", lambda name: object())
    registry.check_text_reader()
