"""`--to hf`: what the card counts, the name that it gives the data set, and which files it is made of."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.corpus.making import sample
from vip.dataset.rows import VideoSample
from vip.dataset.schema import COLUMNS
from vip.export import hf, in_shards


def unheard(text: str) -> None:
    raise AssertionError(f"nobody expected: {text}")


def told(one: VideoSample, *rows: tuple[str, str] | None) -> VideoSample:
    """The video with descriptions in these languages and of these engines."""
    frames = []
    for frame, row in zip(one.frames, rows, strict=True):
        assert frame.description
        changed = frame.description.model_copy(update={"language": row[0], "engine": row[1]}) if row else None
        frames.append(dataclasses.replace(frame, description=changed))
    return VideoSample(one.video, tuple(frames))


def card_of(*some: VideoSample, name: str = "films") -> str:
    facts = hf._CardFacts()
    assert list(facts.count_samples(iter(some))) == list(some)
    return facts.card(name)


def head_of(card: str) -> dict[str, Any]:
    return yaml.safe_load(card.split("---\n")[1])  # type: ignore[no-any-return]


def sentence_of(card: str) -> str:
    return next(line for line in card.splitlines() if "described" in line and not line.startswith("|"))


# ---------------------------------------------------------------- the card


def test_videos_keyframes_hours_and_engines_are_summed_over_all_videos() -> None:
    card = card_of(
        told(sample("one", count=3, duration_s=3600.0), ("English", "openai:b"), None, ("English", "offline")),
        told(sample("two", count=2, duration_s=5400.0), ("English", "openai:b"), ("English", "anthropic:a")),
        sample("three", count=1, described=False, duration_s=None),
    )
    assert sentence_of(card) == "6 keyframes of 3 videos (2.5 hours), 4 of them described by anthropic:a, offline, openai:b."


def test_what_nobody_described_names_no_engine_and_no_language() -> None:
    card = card_of(sample("one", count=1, described=False, duration_s=360.0))
    assert sentence_of(card) == "1 keyframe of 1 video (0.1 hours), 0 of them described."
    assert "language" not in head_of(card)


def test_thousands_of_hours_and_keyframes_are_grouped() -> None:
    facts = hf._CardFacts()
    facts.videos, facts.keyframes, facts.seconds = 1234, 12_345, 3600 * 1234.56
    facts.described = 2345
    facts.engines.add("offline")
    assert sentence_of(facts.card("x")) == "12,345 keyframes of 1,234 videos (1,234.6 hours), 2,345 of them described by offline."


def test_an_export_without_videos_has_a_card() -> None:
    card = card_of()
    assert sentence_of(card) == "0 keyframes of 0 videos (0.0 hours), 0 of them described."
    assert head_of(card)["size_categories"] == ["n<1K"]


def test_the_languages_are_codes_in_order_each_once() -> None:
    rows = [("German", "x"), ("English", "x"), ("Brazilian Portuguese", "x"), ("German", "x"), ("Klingon", "x"), ("Arabic", "x")]
    assert head_of(card_of(told(sample(count=6), *rows)))["language"] == ["ar", "de", "en", "pt-br"]


@pytest.mark.parametrize(
    ("count", "size"),
    [
        (999, "n<1K"),
        (1000, "1K<n<10K"),
        (9999, "1K<n<10K"),
        (10_000, "10K<n<100K"),
        (100_000, "100K<n<1M"),
        (1_000_000, "1M<n<10M"),
        (9_999_999, "1M<n<10M"),
        (10_000_000, "10M<n<100M"),
    ],
)
def test_the_size_is_that_of_the_keyframes_in_the_words_of_the_hub(count: int, size: str) -> None:
    facts = hf._CardFacts()
    facts.videos, facts.keyframes = 7, count
    assert head_of(facts.card("x"))["size_categories"] == [size]


def test_the_head_says_what_the_hub_shows() -> None:
    assert head_of(card_of(sample())) == {
        "pretty_name": "films",
        "task_categories": ["image-to-text", "text-to-image"],
        "language": ["en"],
        "size_categories": ["n<1K"],
        "tags": ["video", "keyframes", "captions"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "data/*.parquet"}]}],
    }


def test_the_card_has_a_title_code_that_loads_and_a_row_for_each_column() -> None:
    lines = card_of(sample(), name="größe").splitlines()
    assert lines.count("# größe") == 1
    assert 'pretty_name: "größe"' in lines, "a person can read it"
    assert 'data = load_dataset("größe", split="train")' in lines
    assert lines[0] == "---"
    assert [line.split("`")[1] for line in lines if line.startswith("| `")] == list(COLUMNS)
    kind, text = COLUMNS["video_id"]
    assert f"| `video_id` | {text} |" in lines
    assert f"| `video_id` | {kind} |" not in lines


@pytest.mark.parametrize("name", ['my "films": 1', "a: b", "- a", "null", "größe 草"])
def test_a_name_of_any_letters_is_still_yaml(name: str) -> None:
    assert head_of(card_of(sample(), name=name))["pretty_name"] == name


HOSTILE = "\x1b[31mx\x1b]0;t\x07\x9b31m\x85\u2028\u202e<img src=x onerror=alert(1)>\r\n# *y* [z](http://example.org) |`"
SHOWN = "x &lt;img src=x onerror=alert(1)&gt; # \\*y\\* \\[z\\](http\\://example.org) \\|\\`"


def test_the_name_of_an_engine_is_text_on_one_line() -> None:
    card = card_of(told(sample(count=1), ("English", HOSTILE)))
    assert sentence_of(card).endswith(f"1 of them described by {SHOWN}.")
    assert not re.search(r"[^\n\x20-\x7e]", card)


def test_the_name_of_the_folder_is_text_in_the_title_the_head_and_the_code() -> None:
    card = card_of(sample(count=1), name=HOSTILE)
    assert f"# {SHOWN}" in card.split("\n")
    assert head_of(card)["pretty_name"] == "x <img src=x onerror=alert(1)> # *y* [z](http://example.org) |`"
    assert not re.search(r"[^\n\x20-\x7e]", card)


def test_ten_engines_are_named_the_most_frequent_and_none_at_length() -> None:
    facts = hf._CardFacts()
    some = [told(sample(count=2), ("English", "often"), ("English", f"{number:03}{'x' * 10_000}")) for number in range(300)]
    assert len(list(facts.count_samples(iter(some)))) == 300
    sentence = sentence_of(facts.card("x"))
    assert "600 of them described by" in sentence
    assert sentence.endswith("x, often, others.")
    assert len(sentence) < 1500
    assert len(facts.engines.counts) <= 200


# ---------------------------------------------------------------- files


def test_the_code_of_the_card_is_python_whatever_the_name() -> None:
    [line] = [line for line in hf._CardFacts().card('my "films" \\').split("\n") if line.startswith("data = ")]
    call = ast.parse(line).body[0].value  # type: ignore[attr-defined]
    assert call.args[0].value == 'my "films" \\'


@pytest.mark.parametrize("end", ["", "/", "//"])
def test_the_data_set_is_called_after_the_last_folder(end: str, tmp_path: Path) -> None:
    hf.write(iter([sample()]), f"{tmp_path}/far/films{end}", unheard)
    assert head_of((tmp_path / "far" / "films" / "README.md").read_text())["pretty_name"] == "films"


def test_the_data_set_elsewhere_is_called_after_its_address_without_secrets() -> None:
    import fsspec

    hf.write(iter([sample()]), "memory://hf-name/box/films?token=secret", unheard)
    files = fsspec.filesystem("memory").find("/hf-name")
    (place,) = (file for file in files if file.endswith("README.md"))
    card = fsspec.filesystem("memory").cat_file(place).decode()
    assert head_of(card)["pretty_name"] == "films"
    assert "secret" not in card


def test_each_shard_is_a_numbered_file_and_all_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_shards, "SHARD_BYTES", 1)
    some = [sample(key, count=count) for key, count in (("one", 1), ("two", 2), ("three", 3))]
    assert hf.write(iter(some), str(tmp_path), unheard) == 4
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()) == [
        "README.md",
        "data/train-00000.parquet",
        "data/train-00001.parquet",
        "data/train-00002.parquet",
    ]
    rows = [pq.read_table(tmp_path / "data" / f"train-{number:05d}.parquet").column("video_id").to_pylist() for number in range(3)]
    assert rows == [["one"], ["two"] * 2, ["three"] * 3]
    assert sentence_of((tmp_path / "README.md").read_text()).startswith("6 keyframes of 3 videos")


def test_without_videos_the_card_is_the_only_file(tmp_path: Path) -> None:
    assert hf.write(iter([]), str(tmp_path), unheard) == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["README.md"]


@pytest.mark.parametrize(
    ("name", "is_stale"),
    [
        ("data/train-00000.parquet", True),
        ("data/train-123456.parquet", True),
        ("data/train-0000.parquet", False),
        ("data/train-00000xparquet", False),
        ("data/test-00000.parquet", False),
        ("train-00000.parquet", False),
        ("README.md", False),
    ],
)
def test_of_an_earlier_export_only_its_numbered_files_are_stale(name: str, is_stale: bool) -> None:
    assert bool(re.fullmatch(hf.STALE_FILES, name)) == is_stale
