"""Which settings of a file that merely lies there hold, and which ask for trust first."""

from __future__ import annotations

from pathlib import Path

import pytest

from vip import trust
from vip.config import BatchSettings, CaptionSettings, ExtractSettings, resolve

ASKING = {
    ExtractSettings: {"cookies", "proxy"},
    CaptionSettings: {"base_url", "key_file", "prompts", "max_usd", "prices", "cache"},
    BatchSettings: {"weights", "vocabulary", "caption", "batch", "cookies", "proxy", "ytdlp_opts", "keep_videos", "ray_address"}
    | {"youtube8m_base_url", "video_base_url", "words"},
}
"""Written out: a setting that is added has to be put on one side or the other."""
BY_VALUE = {"sampler", "pruner", "embedder", "detector", "engine", "describe_engine", "structure_engine", "labels"}


@pytest.mark.parametrize("kind", ASKING)
def test_what_decides_where_data_keys_and_money_go_asks_for_trust(kind: type[ExtractSettings]) -> None:
    assert {name for name in kind.model_fields if name not in BY_VALUE and trust.asks_for_trust(name, "x")} == ASKING[kind]


@pytest.mark.parametrize(
    ("name", "value", "asks"),
    [
        ("sampler", "every:2s", False),
        ("sampler", "mine:thing", True),
        ("pruner", "threshold:0.9", False),
        ("pruner", ["x"], True),
        ("embedder", "clip", False),
        ("embedder", "clip:ViT-B-32@/home/me/weights.pt", True),
        ("detector", "opencv", False),
        ("detector", "file:/etc/passwd", True),
        ("engine", "offline", False),
        ("engine", "openai:gpt-5.4-mini", False),
        ("engine", "openai:x@http://evil/v1", True),
        ("structure_engine", "transformers:someone/model", True),
        ("labels", "dog, frisbee", False),
        ("labels", "@/home/me/notes.txt", True),
        ("keyframes", 8, False),
        ("whatever_comes_later", 1, True),
    ],
)
def test_of_backends_the_detail_decides(name: str, value: object, asks: bool) -> None:
    assert trust.asks_for_trust(name, value) is asks


def test_harmless_names_exist() -> None:
    fields = {name for kind in ASKING for name in kind.model_fields}
    assert fields >= trust.HARMLESS


# ---------------------------------------------------------------- layers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vip.toml").write_text('[caption]\nbase_url = "http://evil/v1"\ntopic = "surfing"\nkey_file = "key"\n')
    return tmp_path


def resolved(folder: Path, **given: str) -> tuple[CaptionSettings, list[str]]:
    notes: list[str] = []
    return resolve(CaptionSettings, given, environment={}, folder=folder, note=notes.append), notes


def test_what_needs_trust_is_ignored_and_named_in_one_line(folder: Path) -> None:
    settings, notes = resolved(folder)
    assert (settings.base_url, settings.key_file, settings.topic) == (None, None, "surfing")
    assert notes == [
        "vip.toml sets base_url and key_file, which does not count: the file only lies in this folder. If you trust it, run `vip trust`."
    ]


def test_a_file_that_was_allowed_counts_until_it_changes_or_lies_elsewhere(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = folder / "vip.toml"
    trust.trust(path, path.read_bytes())
    settings, notes = resolved(folder)
    assert (settings.base_url, str(settings.key_file), notes) == ("http://evil/v1", "key", [])
    other = tmp_path_factory.mktemp("other") / "vip.toml"
    other.write_bytes(path.read_bytes())
    assert resolved(other.parent)[0].base_url is None
    path.write_text(path.read_text().replace("evil", "worse"))
    assert resolved(folder)[0].base_url is None


def test_what_was_allowed_can_be_taken_back(folder: Path) -> None:
    path = folder / "vip.toml"
    trust.trust(path, path.read_bytes())
    trust.distrust(path, path.read_bytes())
    assert resolved(folder)[0].base_url is None


def test_the_users_own_file_counts_and_lies_below_that_of_the_folder(tmp_path: Path) -> None:
    home = tmp_path / "config"
    (home / "vip").mkdir(parents=True)
    (home / "vip" / "vip.toml").write_text('[caption]\nbase_url = "http://mine/v1"\ntopic = "mine"\n')
    (tmp_path / "vip.toml").write_text('[caption]\ntopic = "of the folder"\n')
    settings = resolve(CaptionSettings, {}, environment={"XDG_CONFIG_HOME": str(home)}, folder=tmp_path)
    assert (settings.base_url, settings.topic) == ("http://mine/v1", "of the folder")


def test_a_key_goes_only_to_the_server_that_stands_beside_it(tmp_path: Path) -> None:
    home = tmp_path / "config"
    (home / "vip").mkdir(parents=True)
    (home / "vip" / "vip.toml").write_text('[caption]\nbase_url = "http://mine/v1"\nkey_file = "/my/key"\n')
    environment = {"XDG_CONFIG_HOME": str(home)}
    notes: list[str] = []
    own = resolve(CaptionSettings, {}, environment=environment, folder=tmp_path, note=notes.append)
    assert (str(own.key_file), notes) == ("/my/key", [])
    other = resolve(CaptionSettings, {"base_url": "http://other/v1"}, environment=environment, folder=tmp_path, note=notes.append)
    assert other.key_file is None
    assert notes == ["The key in /my/key was given for another server, and does not go to this one."]
    both = {"base_url": "http://other/v1", "key_file": "/other/key"}
    assert str(resolve(CaptionSettings, both, environment=environment, folder=tmp_path).key_file) == "/other/key"


@pytest.mark.parametrize("name", ["engine", "describe_engine", "structure_engine"])
@pytest.mark.parametrize("place", ["typed", "environment"])
def test_of_several_addresses_each_has_to_stand_beside_the_key(place: str, name: str, tmp_path: Path) -> None:
    given = {name: "openai:m@http://other/v1"}
    home = tmp_path / "config"
    (home / "vip").mkdir(parents=True)
    (home / "vip" / "vip.toml").write_text('[caption]\nbase_url = "http://mine/v1"\nkey_file = "/my/key"\n')
    environment = {"XDG_CONFIG_HOME": str(home)}
    if place == "environment":
        environment[f"VIP_{name.upper()}"] = given[name]
    settings = resolve(CaptionSettings, given if place == "typed" else {}, environment=environment, folder=tmp_path)
    assert settings.key_file is None
    assert settings.base_url == "http://mine/v1"


def test_a_key_without_an_address_is_not_for_the_server_of_the_environment(tmp_path: Path) -> None:
    home = tmp_path / "config"
    (home / "vip").mkdir(parents=True)
    (home / "vip" / "vip.toml").write_text('[caption]\nkey_file = "/my/key"\n')
    environment = {"XDG_CONFIG_HOME": str(home)}
    assert str(resolve(CaptionSettings, {}, environment=environment, folder=tmp_path).key_file) == "/my/key"
    environment["OPENAI_BASE_URL"] = "http://other/v1"
    assert resolve(CaptionSettings, {}, environment=environment, folder=tmp_path).key_file is None
    environment["VIP_KEY_FILE"] = "/other/key"
    assert str(resolve(CaptionSettings, {}, environment=environment, folder=tmp_path).key_file) == "/other/key"


def test_a_key_that_is_typed_or_stands_beside_its_address_goes_there_whatever_the_environment_names(tmp_path: Path) -> None:
    typed = resolve(CaptionSettings, {"key_file": "/my/key"}, environment={"VIP_BASE_URL": "http://mine/v1"}, folder=tmp_path)
    assert (typed.base_url, str(typed.key_file)) == ("http://mine/v1", "/my/key")
    home = tmp_path / "config"
    (home / "vip").mkdir(parents=True)
    (home / "vip" / "vip.toml").write_text('[caption]\nbase_url = "http://mine/v1"\nkey_file = "/my/key"\n')
    environment = {"XDG_CONFIG_HOME": str(home), "OPENAI_BASE_URL": "http://other/v1"}
    own = resolve(CaptionSettings, {}, environment=environment, folder=tmp_path)
    assert (own.base_url, str(own.key_file)) == ("http://mine/v1", "/my/key")
