"""The clips that are made by rule: the features tell what fills the blank, the caption does not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from synthetic_fiber import CAPTIONS, FEATURES, THINGS, WIDTH, Result, make_data, missed

from vip.tasks.fiber.records import read_records

CLIPS = {"train": 400, "val": 100}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fiber") / "data"
    make_data(made, clips=CLIPS)
    return made


def test_records_are_in_the_authors_form_with_the_shares_of_things(folder: Path) -> None:
    records = list(read_records(folder / "train.json"))
    assert Counter(record.label for record in records) == {"a dog": 160, "a cat": 100, "a boy": 80, "a girl": 60}
    assert all(record.masked_caption.replace("_____", record.label) == record.caption for record in records)
    assert {record.clip_id for record in records}.isdisjoint(record.clip_id for record in read_records(folder / "val.json"))


def test_every_thing_stands_in_every_caption_alike(folder: Path) -> None:
    counts = Counter((record.masked_caption, record.label) for record in read_records(folder / "train.json"))
    assert len(counts) == len(CAPTIONS) * len(THINGS)
    shares = [counts[caption, "a dog"] / sum(counts[caption, thing] for thing in THINGS) for caption in CAPTIONS]
    assert all(0.25 < share < 0.55 for share in shares)


def test_the_features_tell_the_label(folder: Path) -> None:
    means: dict[str, list[np.ndarray]] = {}
    for record in read_records(folder / "train.json"):
        features = np.load(folder / "i3d" / f"{record.clip_id}.npy")
        assert features.shape == (1, FEATURES, WIDTH)
        means.setdefault(record.label, []).append(features.mean(axis=(0, 1)))
    shapes = {label: np.mean(rows, axis=0) for label, rows in means.items()}
    for record in read_records(folder / "val.json"):
        mean = np.load(folder / "i3d" / f"{record.clip_id}.npy").mean(axis=(0, 1))
        assert min(shapes, key=lambda label, mean=mean: np.linalg.norm(shapes[label] - mean)) == record.label  # type: ignore[misc]


def test_what_misses_its_goal_is_said() -> None:
    assert missed({"text": Result(0.42, 300, 1), "early-fusion": Result(0.9, 300, 1)}) == []
    assert missed({"text": Result(0.2, 300, 1)}) == ["text has 20.0 %, not the majority (40 %)"]
    assert missed({"text": Result(0.6, 300, 1), "late-fusion": Result(0.89, 300, 1)}) == [
        "text has 60.0 %, not the majority (40 %)",
        "late-fusion has 89.0 %, not 90 %",
    ]
