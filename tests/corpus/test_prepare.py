"""Before the work begins: a list is read and told of, a sample chosen, and what lies in the output already is done."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.making import sample
from tests.corpus.test_retries import Notes
from vip.config import BatchSettings
from vip.corpus.prepare import prepare
from vip.corpus.settings import BatchConfig
from vip.corpus.state import NAME, StateDatabase
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import UndescribedKeyframe, write_shard
from vip.records import CandidateCounts


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    (tmp_path / "out" / "state").mkdir(parents=True)
    state = StateDatabase(tmp_path / "out" / "state")
    yield state
    state.close()


def listed(folder: Path, rows: list[str]) -> str:
    path = folder / "list.txt"
    path.write_text("".join(f"{row}\n" for row in rows))
    return str(path)


def addresses(count: int) -> list[str]:
    return [f"http://example.org/{number}.mp4" for number in range(count)]


def begun(state: StateDatabase, lists: list[str], *, retry: str | None = None, other_sample: bool = False, **batch: Any) -> list[str]:
    notes = Notes()
    choices = BatchConfig(BatchSettings(**batch))
    prepare(state, str(state.home.parent), lists, choices, notes, retry=retry, other_sample=other_sample)
    return notes.told


def waiting(state: StateDatabase) -> int:
    return len(state.waiting("example.org", 0, 100))


def test_a_list_is_read_and_all_of_it_waits(state: StateDatabase, tmp_path: Path) -> None:
    names = listed(tmp_path, [*addresses(3), "http://"])
    assert begun(state, [names]) == ["3 of 3 videos are chosen."]
    assert (waiting(state), state.failure_counts()) == (3, {"bad_row": 1})
    assert state.get("began") is not None


def test_one_is_one_and_not_many(state: StateDatabase, tmp_path: Path) -> None:
    assert begun(state, [listed(tmp_path, addresses(2))], sample=1) == ["1 of 2 videos is chosen."]


def test_a_long_list_is_told_of_while_it_is_read(state: StateDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.corpus.prepare.NOTE_INTERVAL", 4)
    monkeypatch.setattr("vip.corpus.state.ROWS_AT_ONCE", 2)
    notes = begun(state, [listed(tmp_path, addresses(9))])
    assert notes[:-1] == ["4 rows are read.", "8 rows are read."]


def test_a_list_that_was_read_is_on_the_disk_before_anything_is_chosen(
    state: StateDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vip.corpus.prepare._choose", killed)
    with pytest.raises(KeyboardInterrupt):
        begun(state, [listed(tmp_path, addresses(3))])
    with closing(sqlite3.connect(state.home / NAME)) as other:
        assert other.execute("SELECT count(*) FROM items").fetchone() == (3,)


def test_another_number_is_chosen_anew_without_the_list(state: StateDatabase, tmp_path: Path) -> None:
    begun(state, [listed(tmp_path, addresses(6))], sample=2)
    assert begun(state, [], sample=4) == []
    assert waiting(state) == 2
    assert begun(state, [], sample=4, other_sample=True) == ["4 of 6 videos are chosen."]
    assert waiting(state) == 4


def test_the_shares_of_the_verticals_are_told_and_written_down(state: StateDatabase, tmp_path: Path) -> None:
    table = tmp_path / "list.csv"
    rows = "".join(f"{address},{'Games' if number < 2 else 'Pets'}\n" for number, address in enumerate(addresses(6)))
    table.write_text(f"url,verticals\n{rows}")
    notes = begun(state, [str(table)])
    assert notes[0] == "6 of 6 videos are chosen."
    assert len(notes) > 2
    assert all(note.startswith("  ") for note in notes[1:])
    counted = json.loads((state.home.parent / "distribution.json").read_text())
    assert {one["vertical"]: (one["videos"], one["chosen"]) for one in counted["shares"]} == {"Games": (2, 2), "Pets": (4, 4)}


# ---------------------------------------------------------------- shards that lie there


def test_shards_of_the_output_are_taken_over_once_and_what_a_killed_writer_left_goes(state: StateDatabase, tmp_path: Path) -> None:
    begun(state, [listed(tmp_path, addresses(3))])
    keys = [entry.item.key for entry in state.waiting("example.org", 0, 10)]
    counts = CandidateCounts(asked=None, candidates=3, bad=0, pruned=0, duplicates=0, keyframes=3)
    out = state.home.parent
    clips = [sample(keys[0], counts=counts, youtube_id="aaaaaaaaaaa"), sample(keys[1])]
    info = write_shard(str(out), 4, clips, "webdataset", generation=2)
    (out / FOLDER / "00004.g1.tar").write_bytes(b"left over")
    begun(state, [])
    assert not (out / FOLDER / "00004.g1.tar").exists()
    assert [entry.item.key for entry in state.waiting("example.org", 0, 10)] == keys[2:]
    assert state._fetch_all("SELECT number, bytes, rows, generation FROM shards") == [(4, info.bytes, 6, 2)]
    assert state._fetch_all("SELECT rows, youtube_id, length_s FROM items WHERE shard = 4 ORDER BY id") == [
        (3, "aaaaaaaaaaa", 9.0),
        (0, None, 9.0),
    ]
    state.requeue(1)
    begun(state, [])
    assert waiting(state) == 2, "what is known is not taken over again"


def test_a_shard_with_numbers_beyond_64_bits_is_one_sentence(state: StateDatabase, tmp_path: Path) -> None:
    write_shard(str(tmp_path / "out"), 0, [sample()], "parquet")
    sidecar = tmp_path / "out" / FOLDER / "00000.json"
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), "rows": 10**30}))
    (note,) = begun(state, [])
    assert note.startswith(f"{sidecar}: damaged")
    assert not state.shard_numbers()


# ---------------------------------------------------------------- another try


def failed(state: StateDatabase, tmp_path: Path) -> None:
    begun(state, [listed(tmp_path, addresses(3))])
    for id_, kind in ((1, "network"), (2, "network"), (3, "deleted")):
        state.record_failure(id_, kind, "gone")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("retry", "notes"),
    [
        ("all", ["3 videos that failed are tried again."]),
        ("network", ["2 videos that failed (network) are tried again."]),
        ("deleted", ["1 video that failed (deleted) is tried again."]),
        ("geo", ["0 videos that failed (geo) are tried again."]),
    ],
)
def test_what_is_tried_again_is_said(retry: str, notes: list[str], state: StateDatabase, tmp_path: Path) -> None:
    failed(state, tmp_path)
    assert begun(state, [], retry=retry) == notes


@pytest.mark.parametrize(
    ("retry", "caption", "wanted", "notes"),
    [
        ("caption", True, 2, ["2 keyframes that could not be described are asked about again."]),
        ("caption", False, 0, ["0 videos that failed (caption) are tried again."]),
        ("network", True, 0, ["0 videos that failed (network) are tried again."]),
    ],
)
def test_keyframes_in_shards_are_asked_about_again_where_captions_are_wanted(
    retry: str, caption: bool, wanted: int, notes: list[str], state: StateDatabase
) -> None:
    left = [UndescribedKeyframe("z", f"z:000{number}", "refusal", "no") for number in (1, 2)]
    state.adopt_shard(0, [("z", 3, None, 1.0)], size_bytes=10, rows=3, undescribed=left)
    assert begun(state, [], retry=retry, caption=caption) == notes
    assert state.keyframes_to_describe() == wanted


def test_videos_and_keyframes_are_both_told_of(state: StateDatabase, tmp_path: Path) -> None:
    failed(state, tmp_path)
    state.adopt_shard(0, [("z", 3, None, 1.0)], size_bytes=10, rows=3, undescribed=[UndescribedKeyframe("z", "z:0001", "refusal", "no")])
    assert begun(state, [], retry="all", caption=True) == [
        "1 keyframe that could not be described is asked about again.",
        "3 videos that failed are tried again.",
    ]
