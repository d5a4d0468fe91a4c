"""Rows of long JSON, one at a time: what is read, and what a damaged file is told."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from vip.errors import InputError
from vip.tasks import json_rows
from vip.tasks.json_rows import iterate_array, iterate_rows, open_bounded

SCALARS = st.integers(-9, 9) | st.booleans() | st.text(st.sampled_from('a}{"[]\\,é'), max_size=5)
ROWS = st.dictionaries(st.text(st.sampled_from('x}"'), max_size=2), SCALARS | st.lists(SCALARS, max_size=3), max_size=3)


def read(path: Path) -> list[tuple[str, object]]:
    with open_bounded(path) as file:
        return list(iterate_rows(file, path, "FORM"))


def read_array(path: Path) -> list[object]:
    with open_bounded(path) as file:
        return list(iterate_array(file, path, "FORM"))


@pytest.mark.parametrize("block", [1, 7, 2**20])
@settings(max_examples=25)
@given(rows=st.lists(ROWS, max_size=4))
def test_rows_are_those_of_the_json_library_wherever_a_block_ends(
    block: int, rows: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "BLOCK_BYTES", block)
        path.write_text(json.dumps({"VR": rows, "VCMR": rows[:1]}, indent=1), encoding="utf-8")
        assert read(path) == [*(("VR", row) for row in rows), *(("VCMR", row) for row in rows[:1])]
        path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
        assert read_array(path) == rows


def test_a_packed_file_is_read_and_a_damaged_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.json.gz"
    data = gzip.compress(b'{"VR": [{"a": 1}]}')
    path.write_bytes(data)
    assert read(path) == [("VR", {"a": 1})]
    path.write_bytes(data[:-6])
    with pytest.raises(InputError, match="cannot be read: it is damaged"):
        read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "byte 1: expected {, found the end"),
        ("[1]", r"byte 1: expected \{, found \["),
        ('{"VR": [{"a": 1}', r"expected ,, found the end"),
        ('{"VR": [{"a": 1', "a row of VR is no JSON"),
        ('{"VR": [{"a": NaN}]}', "byte 9: a row of VR is no JSON"),
        ('{"VR": [1]}', "a row of VR is no object"),
        ('{"VR": {"a": 1}}', r"expected \[, found \{"),
        ('{"VR": []} x', "something follows the end"),
        ("{VR: []}", "expected the name of a section"),
    ],
)
def test_a_damaged_file_is_one_sentence_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("Expected FORM.")


def test_what_is_too_large_is_refused_before_it_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.json"
    with path.open("wb") as file:
        file.truncate(200 * 10**6)
    with pytest.raises(InputError, match="has 200,000,000 bytes, and more than 167,772,160 are not read"):
        read(path)
    path.write_text(json.dumps({"VR": [{"a": [1] * 5000}]}), encoding="utf-8")
    monkeypatch.setattr(json_rows, "MOST_ROW_BYTES", 100)
    monkeypatch.setattr(json_rows, "BLOCK_BYTES", 64)
    with pytest.raises(InputError, match="a row of VR has more than 100 bytes"):
        read(path)
    packed = tmp_path / "bomb.json.gz"
    packed.write_bytes(gzip.compress(b'{"VR": [' + b" " * 100_000))
    with pytest.raises(InputError, match="too many bytes unpacked"), open_bounded(packed, 10_000) as file:
        list(iterate_rows(file, packed, "FORM"))
    with pytest.raises(InputError, match="is no file"):
        read(tmp_path)


def test_lines_of_a_packed_file_are_bounded_as_all_of_it_is(tmp_path: Path) -> None:
    packed = tmp_path / "bomb.jsonl.gz"
    packed.write_bytes(gzip.compress(b"x" * 50_000 + b"\n" + b"y" * 60_000))
    with open_bounded(packed, 100_000) as file:
        assert len(file.readline(10**6)) == 50_001
        with pytest.raises(InputError, match="too many bytes unpacked"):
            file.readline(10**6)
    with open_bounded(packed, 120_000) as file:
        assert len(file.read()) == 110_001


def test_a_packed_file_of_blank_lines_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "MOST_BLANK_LINES", 100)
    packed = tmp_path / "bomb.jsonl.gz"
    packed.write_bytes(gzip.compress(b"{}\n" + b"\n" * 100 + b"{}\n \r\n"))
    with open_bounded(packed, advice="Give another.") as file:
        assert [len(file.readline(99)) for _ in range(102)] == [3, *[1] * 100, 3]
        with pytest.raises(InputError, match=r"has more than 100 blank lines\. Give another\."):
            file.readline(99)


def test_blanks_before_a_row_take_no_time(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(b"[" + b" \n" * 2**23 + b"{}]")
    started = time.process_time()
    assert read_array(path) == [{}]
    assert time.process_time() - started < 1


@pytest.mark.parametrize("block", [5, 16, 2**20])
def test_the_place_of_a_fault_is_counted_from_the_beginning_of_the_file(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_rows, "BLOCK_BYTES", block)
    path = tmp_path / "rows.json"
    rows = ", ".join(f'{{"a": {number}}}' for number in range(40))
    for end in ("} x", ', "VCMR": [1]}', ', "VCMR": 5}'):
        text = f'{{"VR": [{rows}]{end}'
        path.write_text(text)
        place = len(text) if end == "} x" else text.rindex("[1" if "[" in end[2:] else "5}") + (2 if "[" in end[2:] else 1)
        with pytest.raises(InputError, match=f"byte {place:,}: "):
            read(path)


def test_braces_inside_a_row_cost_no_more_than_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    monkeypatch.setattr(json_rows, "from_json", lambda data, **how: (parsed.append(len(data)), from_json(data, **how))[1])
    path = tmp_path / "rows.json"
    row = {"a": "}" * 1000, "b": [{"c": {"d": '\\"}'}}] * 1000, "e": "é{" * 50_000}
    path.write_text(json.dumps({"VR": [row, row]}, ensure_ascii=False), encoding="utf-8")
    assert read(path) == [("VR", row)] * 2
    assert sum(parsed) < 1.1 * path.stat().st_size


@pytest.mark.parametrize("block", [1, 50, 2**20])
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{"a": {"b": 1}, "c" 2}', "is no JSON"),
        ('{"a": {"b": 1}, "c": "x', "is no JSON"),
        ('{"a": {"b": 1}, "c": tru', "is no JSON"),
        ('{"a": {"b": NaN}}', "is no JSON"),
        ('{"a": ' * 100_000 + "}" * 3, "is nested too deep"),
        ('{"a": {"b": 1}, "c": ' + "9" * 5000 + "}", "is no JSON|no object"),
    ],
)
def test_a_damaged_row_with_objects_inside_is_one_sentence(
    row: str, problem: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_rows, "BLOCK_BYTES", max(block, len(row) // 100))
    monkeypatch.setattr(json_rows, "FIRST_BYTES", 8)
    path = tmp_path / "rows.json"
    path.write_text(f'{{"VR": [{row}')
    with pytest.raises(InputError, match=f"a row of VR ({problem})"):
        read(path)
