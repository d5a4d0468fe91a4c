"""The eleven tasks of VALUE: kind, metric, splits, names of files, licences (Li et al. 2021, sections 3 and E, table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["vcmr", "vr", "qa", "caption"]
"""Find a moment in a corpus of videos, find a video, choose an option, write a caption."""
Category = Literal["retrieval", "qa", "captioning"]
CATEGORIES: dict[Kind, Category] = {"vcmr": "retrieval", "vr": "retrieval", "qa": "qa", "caption": "captioning"}
PREFIX = "value-"
PAPER = "Li et al. 2021"
NON_COMMERCIAL, ATTRIBUTION = "CC BY-NC-SA 4.0", "CC BY 4.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One split as published; the counts are those of table 2, in thousands, as printed."""

    name: str
    """As in the names of files."""
    videos: float
    queries: float
    """Queries, questions or captions."""
    is_hidden: bool = False
    """Its answers are not public."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One of the eleven tasks."""

    key: str
    """As in the names of files: `vatex_en_r`."""
    title: str
    kind: Kind
    domain: Literal["tv", "youtube"]
    license: str
    """Of the annotations."""
    summary: str
    validation: Split
    test: Split
    train: tuple[float, float]
    """Videos and queries, in thousands."""
    options: int = 0
    """Of a question; 0 for other kinds."""

    @property
    def name(self) -> str:
        """As users type it: `value-vatex-en-r`."""
        return PREFIX + self.key.replace("_", "-")

    @property
    def category(self) -> Category:
        return CATEGORIES[self.kind]

    @property
    def target(self) -> str:
        """The metric that counts for the average of all tasks."""
        return {"retrieval": "aver", "qa": "accuracy", "captioning": "cider-d"}[self.category]

    @property
    def splits(self) -> tuple[str, ...]:
        return "train", self.validation.name, self.test.name

    def split_name(self, split: str) -> str:
        """Return the task's own name of `val` or `test`, the two splits of a submission."""
        return self.test.name if split == "test" else self.validation.name

    def submission_name(self, split: str) -> str:
        """Return the path of predictions in a submission: `tvc/tvc_val_predictions.jsonl`."""
        return f"{self.key}/{self.key}_{split}_predictions.json{'l' if self.kind == 'caption' else ''}"


def _test(name: str, videos: float, queries: float) -> Split:
    return Split(name=name, videos=videos, queries=queries, is_hidden=True)


DATASETS: tuple[Dataset, ...] = (
    Dataset(
        key="tvr",
        title="TVR",
        kind="vcmr",
        domain="tv",
        license=NON_COMMERCIAL,
        summary="Find the moment of a TV episode that a query describes.",
        train=(17.4, 87.1),
        validation=Split(name="val", videos=2.2, queries=10.9),
        test=_test("test", 2.2, 10.9),
    ),
    Dataset(
        key="how2r",
        title="How2R",
        kind="vcmr",
        domain="youtube",
        license=NON_COMMERCIAL,
        summary="Find the moment of an instructional video that a query describes.",
        train=(21.3, 27.1),
        validation=Split(name="val", videos=1.0, queries=1.3),
        test=_test("test_public", 1.0, 1.3),
    ),
    Dataset(
        key="yc2r",
        title="YC2R",
        kind="vr",
        domain="youtube",
        license=NON_COMMERCIAL,
        summary="Find the clip of a cooking video that a query describes.",
        train=(10.3, 10.3),
        validation=Split(name="val", videos=3.5, queries=3.5),
        test=_test("test", 1.6, 1.6),
    ),
    Dataset(
        key="vatex_en_r",
        title="VATEX-EN-R",
        kind="vr",
        domain="youtube",
        license=ATTRIBUTION,
        summary="Find the video that a query describes.",
        train=(26.0, 259.9),
        validation=Split(name="val", videos=3.0, queries=30.0),
        test=_test("test_public", 6.0, 60.0),
    ),
    Dataset(
        key="tvqa",
        title="TVQA",
        kind="qa",
        domain="tv",
        license=NON_COMMERCIAL,
        summary="Choose the answer to a question about a TV clip among five.",
        options=5,
        train=(17.4, 122.0),
        validation=Split(name="val", videos=2.2, queries=15.3),
        test=_test("test", 2.2, 15.3),
    ),
    Dataset(
        key="how2qa",
        title="How2QA",
        kind="qa",
        domain="youtube",
        license=NON_COMMERCIAL,
        summary="Choose the answer to a question about an instructional video among four.",
        options=4,
        train=(24.5, 34.2),
        validation=Split(name="val", videos=3.1, queries=3.1),
        test=_test("test_public", 3.1, 3.1),
    ),
    Dataset(
        key="violin",
        title="VIOLIN",
        kind="qa",
        domain="tv",
        license=NON_COMMERCIAL,
        summary="Say whether a statement is true of a clip.",
        options=2,
        train=(12.7, 76.1),
        validation=Split(name="test", videos=1.6, queries=9.6),
        test=_test("test_private", 1.3, 7.7),
    ),
    Dataset(
        key="vlep",
        title="VLEP",
        kind="qa",
        domain="tv",
        license=NON_COMMERCIAL,
        summary="Choose which of two events is more likely to come next.",
        options=2,
        train=(7.2, 20.1),
        validation=Split(name="dev", videos=1.6, queries=4.4),
        test=_test("test", 1.5, 4.2),
    ),
    Dataset(
        key="tvc",
        title="TVC",
        kind="caption",
        domain="tv",
        license=NON_COMMERCIAL,
        summary="Describe a moment of a TV episode.",
        train=(17.4, 86.7),
        validation=Split(name="val", videos=10.8, queries=43.6),
        test=_test("test", 10.8, 43.6),
    ),
    Dataset(
        key="yc2c",
        title="YC2C",
        kind="caption",
        domain="youtube",
        license=NON_COMMERCIAL,
        summary="Describe a clip of a cooking video.",
        train=(10.3, 10.3),
        validation=Split(name="val", videos=3.5, queries=3.5),
        test=_test("test", 1.6, 1.6),
    ),
    Dataset(
        key="vatex_en_c",
        title="VATEX-EN-C",
        kind="caption",
        domain="youtube",
        license=ATTRIBUTION,
        summary="Describe a video in one sentence.",
        train=(26.0, 259.9),
        validation=Split(name="test_public", videos=6.0, queries=60.0),
        test=_test("test_private", 6.2, 62.8),
    ),
)
BY_KEY = {dataset.key: dataset for dataset in DATASETS}
