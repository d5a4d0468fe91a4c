"""Whatever stands in the records of a run folder or a data set: every step works, or ends in one sentence."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vip
from tests.clips import SAMPLE
from vip import store
from vip.corpus.card.counts import count
from vip.dataset.rows import sample_of
from vip.dataset.shards import Format, read_samples, verify, write_shard
from vip.errors import VipError
from vip.export.write import export
from vip.records import KeyframeText, SpokenWords, TextLine
from vip.report.page import write_report

ROUNDS = 30
GONE = object()
WILD = (
    *(None, "", 0, -1, 1e308, 2**63 - 1, 2**70, True, [], {}, "x" * 10_000, "\x1b[31m", "../../x", "/etc/passwd", "\u202e", "nan"),
    *([[]], {"a": 1}, "-1/0", "0/0", "1/0", 1e-320, float("nan"), float("-inf"), GONE),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = vip.run(SAMPLE, out=tmp_path_factory.mktemp("made") / "sample.vip", engine="offline", keyframes=4)
    store.write_rows(run.folder / store.WORDS, [SpokenWords(start_s=n, end_s=n + 0.5, text=f"word {n}", origin="a.srt") for n in range(9)])
    lines = (TextLine(text="EXIT", score=0.9, box_xyxy=(0.1, 0.1, 0.4, 0.2)),)
    rows = [KeyframeText(keyframe_id=one.id, picture_sha256="0", reader="fake 1", lines=lines) for one in run.keyframes]
    store.write_rows(run.folder / store.TEXT, rows)
    return run.folder


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    inner = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for name, one in inner:
        yield from places(one, (*above, name))


def changed(text: str, chance: random.Random) -> str:
    """The JSON with one value that is another, or gone."""
    value = json.loads(text)
    *way, last = chance.choice(list(places(value))[1:])
    new, inner = chance.choice(WILD), value
    for name in way:
        inner = inner[name]
    if new is GONE:
        del inner[last]
    else:
        inner[last] = new
    return json.dumps(value)


def damage(path: Path, chance: random.Random) -> None:
    if path.suffix == ".json":
        path.write_text(changed(path.read_text(), chance))
    elif path.suffix == ".jsonl":
        lines = path.read_text().splitlines()
        number = chance.randrange(len(lines))
        lines[number] = changed(lines[number], chance)
        path.write_text("\n".join(lines) + "\n")
    else:
        data = bytearray(path.read_bytes())
        for _ in range(chance.randrange(1, 20)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)


def works_or_is_one_sentence(step: Callable[[], object]) -> None:
    assert "\n" not in sentence_of(step)


def sentence_of(step: Callable[[], object]) -> str:
    try:
        step()
    except VipError as exc:
        return str(exc)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["manifest.json", "keyframes.jsonl", "candidates.jsonl", "descriptions.jsonl", "words.jsonl", "text.jsonl"]
)
def test_any_value_in_a_run_folder(name: str, made: Path, tmp_path: Path) -> None:
    chance, run, out = random.Random(name), tmp_path / "sample.vip", tmp_path / "out"
    steps: list[Callable[[], object]] = [
        lambda: [list(vip.load_run(run).keyframes), vip.load_run(run).manifest, list(vip.load_run(run).descriptions)],
        lambda: write_report(vip.load_run(run)),
        lambda: export([str(run)], chance.choice(["csv", "jsonl", "coco", "vtt", "sheet"]), out=str(out), overwrite=True),
        lambda: vip.rechoose(run, out=tmp_path / "n2", keyframes=2, overwrite=True),
        lambda: vip.caption(run, engine="offline", overwrite=True),
        lambda: vip.extract(SAMPLE, out=run, keyframes=4),
    ]
    for _ in range(ROUNDS):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(made, run)
        damage(run / name, chance)
        for step in chance.sample(steps, 2):
            works_or_is_one_sentence(step)


@pytest.mark.slow
@pytest.mark.extra("pyarrow")
@pytest.mark.parametrize("name", ["00000.json", "00000.parquet", "00000.tar"])
def test_any_value_in_a_data_set(name: str, made: Path, tmp_path: Path) -> None:
    format_: Format = "webdataset" if name.endswith("tar") else "parquet"
    write_shard(str(tmp_path / "whole"), 0, [sample_of(vip.load_run(made))], format_)
    chance, out = random.Random(name), str(tmp_path / "corpus")
    for _ in range(ROUNDS):
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(tmp_path / "whole", out)
        damage(Path(out) / "shards" / name, chance)
        works_or_is_one_sentence(lambda: list(verify(out)))
        works_or_is_one_sentence(lambda: list(read_samples(out)))
        works_or_is_one_sentence(lambda: count(out))
        works_or_is_one_sentence(lambda: export([out], chance.choice(["csv", "jsonl", "vtt"]), out=str(tmp_path / "o"), overwrite=True))
