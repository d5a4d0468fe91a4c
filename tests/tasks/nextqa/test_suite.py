"""Each file of predictions finds its task and its questions by its form."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.tasks.nextqa.published import MC_ROWS, OE_COLUMNS, OE_ROWS, write_csv, write_json
from tests.tasks.scoring import write
from vip.errors import InputError
from vip.tasks.nextqa.suite import has_options, nextqa_files, task_of
from vip.tasks.records import Prediction


@pytest.mark.parametrize(
    ("values", "task"),
    [([0, 1], "nextqa-mc"), ([None, 0], "nextqa-mc"), (["", "x"], "nextqa-oe"), ([None, ("a",)], "nextqa-oe"), ([None], None), ([], None)],
)
def test_the_first_answer_of_vip_says_which_task_it_is(values: list[object], task: str | None, tmp_path: Path) -> None:
    rows = [
        Prediction(sample_id=str(place), value=value, status="failed" if value is None else "ok")  # type: ignore[arg-type]
        for place, value in enumerate(values)
    ]
    path = write(tmp_path / "p.jsonl", rows)
    if task:
        assert task_of(path) == task
    elif rows:
        with pytest.raises(InputError, match="has no answer at all, so that its task is not known"):
            task_of(path)


def test_published_files_are_told_apart_by_what_they_hold(tmp_path: Path) -> None:
    assert task_of(write_json(tmp_path / "a.json", {"v_1": {"prediction": 0}})) == "nextqa-mc"
    assert task_of(write_json(tmp_path / "b.json", {"v": {"1": "dog"}})) == "nextqa-oe"
    assert task_of(tmp_path / "any.csv") == task_of(tmp_path / "any.csv.gz") == "nextqa-oe"


def test_questions_are_told_apart_by_their_columns_packed_or_not(tmp_path: Path) -> None:
    mc, oe = write_csv(tmp_path / "mc.csv", MC_ROWS), write_csv(tmp_path / "oe.csv", OE_ROWS, OE_COLUMNS)
    packed = tmp_path / "mc2.csv.gz"
    packed.write_bytes(gzip.compress(mc.read_bytes()))
    assert [has_options(path) for path in (mc, oe, packed)] == [True, False, True]
    (tmp_path / "bad.csv.gz").write_bytes(b"no archive")
    whole = packed.read_bytes()
    for damaged in (b"no archive", whole[:12], whole[:10] + b"\xff" * 20):  # another format, cut off, damaged inside
        (tmp_path / "bad.csv.gz").write_bytes(damaged)
        with pytest.raises(InputError, match=r"bad\.csv\.gz cannot be read"):
            has_options(tmp_path / "bad.csv.gz")


def test_all_questions_of_a_task_are_given_in_their_order_and_folders_are_looked_into(tmp_path: Path) -> None:
    mc = [write_csv(tmp_path / name, MC_ROWS[place : place + 1]) for place, name in enumerate(("b.csv", "a.csv"))]
    oe = write_csv(tmp_path / "oe.csv", OE_ROWS, OE_COLUMNS)
    folder = tmp_path / "results"
    folder.mkdir()
    write_json(folder / "z.json", {"v_1": {"prediction": 0}})
    write(folder / "m.jsonl", [Prediction(sample_id="v_1", value="dog")])
    (folder / "samples.jsonl").write_text('{"id": "x"}\n')
    (folder / "notes.txt").write_text("x")
    found = nextqa_files([folder], [mc[0], oe, mc[1]])
    assert [(one.predictions.name, one.task, [path.name for path in one.annotations]) for one in found] == [
        ("m.jsonl", "nextqa-oe", ["oe.csv"]),
        ("z.json", "nextqa-mc", ["b.csv", "a.csv"]),
    ]
    (folder / "linked.json").symlink_to("z.json")
    with pytest.raises(InputError, match=r"linked\.json is a link, and vip follows none inside a folder"):
        nextqa_files([folder], mc)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="holds no result of NExT-QA"):
        nextqa_files([empty], mc)
