"""Settings that a batch was begun with: kept without secrets, taken up again, and not contradicted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.settings import BatchConfig
from vip.corpus.state import StateDatabase
from vip.corpus.stored_settings import BEGUN, ROWS, remember, resolve_settings, tables_of
from vip.errors import StoreError, UsageError
from vip.protocols import SilentObserver

CLASSIC = {"embedder": "classic"}
NOTHING = BatchConfig()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    state = StateDatabase(tmp_path)
    yield state
    state.close()


def begun(state: StateDatabase, batch: dict[str, Any] | None = None, caption: dict[str, Any] | None = None, **extract: Any) -> BatchConfig:
    given = BatchConfig(BatchSettings(**(batch or {})), ExtractSettings(**(CLASSIC | extract)), CaptionSettings(**(caption or {})))
    choices = resolve_settings(state, "corpus", given, SilentObserver(), with_list=True)
    remember(state, choices)
    return choices


def gone_on_with(state: StateDatabase, given: BatchConfig = NOTHING, *, with_list: bool = False) -> BatchConfig:
    return resolve_settings(state, "corpus", given, SilentObserver(), with_list=with_list)


def test_every_setting_comes_back_as_it_was(state: StateDatabase, tmp_path: Path) -> None:
    batch = {"workers": 7, "disk_budget": "3GB", "cookies": tmp_path / "c.txt", "ytdlp_opts": "--retries 5", "min_length": 4.0}
    caption = {"engine": "openai:m", "max_usd": 0.5, "base_url": "http://x/v1", "key_file": tmp_path / "key", "verify": True}
    choices = begun(state, {**batch, "caption": True}, {**caption, **CLASSIC}, keyframes="auto", labels="dog, cat", timeout="1:30")
    assert gone_on_with(state) == choices


def test_paths_hold_from_any_folder(state: StateDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    begun(state, {"keep_videos": Path("kept")})
    monkeypatch.chdir("/")
    assert gone_on_with(state).batch.keep_videos == tmp_path / "kept"


def test_what_is_given_now_wins_and_holds_from_then_on(state: StateDatabase) -> None:
    begun(state, {"workers": 7, "caption": True}, {"engine": "offline", "max_usd": 5})
    now = gone_on_with(state, BatchConfig(BatchSettings(workers=2), captioning=CaptionSettings(max_usd=50)))
    remember(state, now)
    later = gone_on_with(state)
    assert (later.batch.workers, later.captioning.max_usd, later.batch.caption) == (2, 50, True)


def test_another_runner_needs_no_address_of_ray(state: StateDatabase) -> None:
    begun(state, {"runner": "ray", "ray_address": "auto"})
    assert gone_on_with(state, BatchConfig(BatchSettings(runner="local"))).batch.ray_address is None


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (BatchConfig(extraction=ExtractSettings(keyframes=4)), "keyframes 12, now 4"),
        (BatchConfig(BatchSettings(shards="webdataset")), "shards parquet, now webdataset"),
        (BatchConfig(BatchSettings(caption=False)), "caption True, now False"),
        (BatchConfig(captioning=CaptionSettings(engine="openai:other")), "engine offline, now openai:other"),
        (BatchConfig(extraction=ExtractSettings(embedder="clip")), "embedder classic, now clip"),
    ],
)
def test_what_the_rows_depend_on_is_refused_by_name(now: BatchConfig, told: str, state: StateDatabase) -> None:
    begun(state, {"caption": True}, {"engine": "offline"})
    with pytest.raises(UsageError, match=rf"^corpus holds a batch with other settings \({told}\)\. Give the same ones"):
        gone_on_with(state, now)


def test_with_a_list_the_command_is_complete(state: StateDatabase) -> None:
    begun(state, {"workers": 7}, keyframes=5)
    with pytest.raises(UsageError, match=r"\(keyframes 5, now 12\)"):
        gone_on_with(state, BatchConfig(extraction=ExtractSettings(**CLASSIC)), with_list=True)
    found = gone_on_with(state, BatchConfig(extraction=ExtractSettings(**CLASSIC, keyframes=5)), with_list=True)
    assert found.batch.workers is None


def test_the_embedder_of_the_captions_is_one_of_its_own(state: StateDatabase) -> None:
    begun(state, {"caption": True}, {"engine": "offline", "verify": True, "embedder": "clip:a"})
    assert (state.get(ROWS)["embedder"], state.get(ROWS)["caption_embedder"]) == ("classic", "clip:a")
    with pytest.raises(UsageError, match=r"caption_embedder clip:a, now clip:b"):
        gone_on_with(state, BatchConfig(captioning=CaptionSettings(embedder="clip:b")))


@pytest.mark.parametrize(
    ("batch", "caption", "option"),
    [
        ({"proxy": "http://me:s3cret@proxy:3128"}, {}, "--proxy"),
        ({"ytdlp_opts": "--add-headers Authorization:s3cret"}, {}, "--ytdlp-opts"),
        ({"ytdlp_opts": "--extractor-args site:base_url=http://me:s3cret@server"}, {}, "--ytdlp-opts"),
        *(
            ({"ytdlp_opts": f"{words}s3cret"}, {}, "--ytdlp-opts")
            for words in (
                *(
                    "--password=a --username=",
                    "--username=a --password=",
                    "--ap-password=a --ap-username=",
                    "--ap-username=a --ap-password=",
                ),
                *("--twofactor=", "--video-password=", "--retries=5 --client-certificate-password="),
            )
        ),
        ({"video_base_url": "https://me:s3cret@videos"}, {}, "--video-base-url"),
        ({"caption": True}, {"engine": "openai:m", "base_url": "https://server/v1?key=s3cret"}, "--base-url"),
        ({"caption": True}, {"engine": "openai:m@http://me:s3cret@server/v1"}, "--engine"),
    ],
)
def test_a_secret_is_kept_nowhere_and_has_to_be_given_again(
    batch: dict[str, Any], caption: dict[str, Any], option: str, state: StateDatabase
) -> None:
    choices = begun(state, batch, caption)
    assert "s3cret" not in json.dumps([state.get(ROWS), state.get(BEGUN)])
    with pytest.raises(UsageError, match=f"^This batch was begun with a secret in {option}, which is not kept"):
        gone_on_with(state)
    given = BatchConfig(BatchSettings(**batch), captioning=CaptionSettings(**caption))
    assert gone_on_with(state, given).batch == choices.batch


def test_a_proxy_without_a_password_is_kept(state: StateDatabase) -> None:
    begun(state, {"proxy": "http://proxy:3128", "ytdlp_opts": "--retries 5"})
    assert gone_on_with(state).batch.proxy == "http://proxy:3128"


def test_other_draws_need_the_list(state: StateDatabase) -> None:
    begun(state, {"seed": 3, "sample": 10})
    assert gone_on_with(state, BatchConfig(BatchSettings(seed=3, sample=20))).batch.sample == 20
    with pytest.raises(UsageError, match=r"^--seed 4 is about which rows of a list are taken\. Give the list again"):
        gone_on_with(state, BatchConfig(BatchSettings(seed=4)))


def test_an_engine_without_a_model_stands_for_the_one_that_the_batch_has(state: StateDatabase) -> None:
    begun(state, {"caption": True}, {"engine": "openai:m"})
    given = BatchConfig(BatchSettings(caption=True), ExtractSettings(**CLASSIC), CaptionSettings(engine="openai"))
    assert gone_on_with(state, given, with_list=True).captioning.engine == "openai:m"
    other = BatchConfig(BatchSettings(caption=True), ExtractSettings(**CLASSIC), CaptionSettings(engine="offline"))
    with pytest.raises(UsageError, match="engine openai:m, now offline"):
        gone_on_with(state, other, with_list=True)


def test_captions_that_nobody_wants_contradict_nothing(state: StateDatabase) -> None:
    begun(state, {}, {"engine": "offline"})
    assert gone_on_with(state, BatchConfig(captioning=CaptionSettings(engine="openai:m"))).captioning.engine == "openai:m"


def test_the_same_weights_from_another_folder_are_no_other_draw(
    state: StateDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(state, {"weights": tmp_path / "weights.toml"})
    monkeypatch.chdir(tmp_path)
    gone_on_with(state, BatchConfig(BatchSettings(weights=Path("weights.toml"))))
    with pytest.raises(UsageError, match=r"^--weights other\.toml is about which rows"):
        gone_on_with(state, BatchConfig(BatchSettings(weights=Path("other.toml"))))


def test_a_secret_in_two_tables_is_asked_for_once_and_two_secrets_are_both_named(state: StateDatabase) -> None:
    begun(state, {"proxy": "http://me:s3cret@proxy:3128", "video_base_url": "https://me:s3cret@videos"})
    with pytest.raises(UsageError, match="in --proxy and --video-base-url, which is not kept"):
        gone_on_with(state)


def test_tables_are_the_settings_by_command_and_none_where_nothing_was_begun(state: StateDatabase) -> None:
    assert tables_of(state) == {}
    begun(state, {"workers": 7})
    tables = tables_of(state)
    assert list(tables) == ["extract", "batch", "caption"]
    assert (tables["batch"]["workers"], tables["extract"]["embedder"]) == (7, "classic")


@pytest.mark.parametrize(
    "value", [1, [1], [None, None], "x", {}, {"extract": [1], "batch": {}, "caption": {}, "withheld": []}, {"withheld": [1]}]
)
def test_settings_of_a_stranger_that_are_none_are_one_sentence(value: Any, state: StateDatabase) -> None:
    begun(state)
    state.put(BEGUN, value)
    with pytest.raises(StoreError, match="its settings are none of vip"):
        tables_of(state)
    with pytest.raises(StoreError, match="its settings are none of vip"):
        gone_on_with(state)


@pytest.mark.parametrize("value", [1, [1], "x"])
def test_what_the_rows_depend_on_is_no_setting_of_vip_if_it_has_no_names(value: Any, state: StateDatabase) -> None:
    begun(state)
    state.put(ROWS, value)
    with pytest.raises(StoreError, match="its settings are none of vip"):
        gone_on_with(state)


@pytest.mark.parametrize("text", ["", "[", "x", "[" * 100_000, "NaN", "1" + "0" * 5000, b"\xff"])
def test_a_value_of_a_stranger_that_is_no_json_is_one_sentence(text: Any, state: StateDatabase) -> None:
    state.put(BEGUN, {})
    state._write("UPDATE meta SET value = ?", (text,))
    with pytest.raises(StoreError, match="is damaged"):
        tables_of(state)
