"""vip.tasks.fiber.notes: what is counted once, the shapes of a file, and the three tables"""

from __future__ import annotations

from pathlib import Path

import pytest

from vip.errors import InputError
from vip.tasks.fiber.notes import EntityNotes, notes_tables, read_notes

HEADER = "video,second,row,column"


def write(path: Path, *rows: str, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.csv"


def test_rows_are_down_and_columns_across(path: Path) -> None:
    found = read_notes(write(path, "a,0,1,4", "a,0,3,2", "b,0,3,2"))
    assert found.cells == ((0, 0, 0, 0.5), (0, 0, 0, 0), (0, 1.0, 0, 0), (0, 0, 0, 0))


def test_a_cell_that_is_touched_in_many_seconds_counts_once_a_video(path: Path) -> None:
    found = read_notes(write(path, *(f"a,{second},4,1" for second in range(5)), "b,0,1,1", "c,0,1,1", "d,0,1,1"))
    assert (found.videos, found.cells[3][0], found.cells[0][0]) == (4, 0.25, 0.75)
    assert found.seconds == {0: 1.0, 1: 0.25, 2: 0.25, 3: 0.25, 4: 0.25}
    assert found.durations == {1: 0.75, 5: 0.25}


def test_a_second_with_many_cells_counts_once_and_seconds_nobody_saw_are_0(path: Path) -> None:
    found = read_notes(write(path, "a,3,1,1", "a,3,1,2", "a,3,2,1", "b,1,1,1"))
    assert list(found.seconds.items()) == [(0, 0.0), (1, 0.5), (2, 0.0), (3, 0.5)]
    assert found.durations == {1: 1.0}


def test_durations_are_numbers_of_seconds_in_their_order_and_without_those_of_no_video(path: Path) -> None:
    found = read_notes(write(path, *(f"a,{second},1,1" for second in (9, 1, 4)), "b,7,1,1"))
    assert list(found.durations.items()) == [(1, 0.5), (3, 0.5)]
    assert len(found.seconds) == 10


@pytest.mark.parametrize("second", [0, 5])
def test_one_note_is_enough(second: int, path: Path) -> None:
    found = read_notes(write(path, f"a,{second},4,4"))
    assert (found.videos, found.cells[3][3], found.durations) == (1, 1.0, {1: 1.0})
    assert found.seconds == {**dict.fromkeys(range(second), 0.0), second: 1.0}


def test_columns_are_found_by_their_names_in_any_order_and_others_passed_over(path: Path) -> None:
    swapped = read_notes(write(path, "2,who,4,a,0", "2,who,4,b,1", header="column,by,row,video,second"))
    assert swapped == read_notes(write(path, "a,0,4,2", "b,1,4,2"))
    assert swapped.cells[3][1] == 1.0


@pytest.mark.parametrize("text", ["\ufeffvideo,second,row,column\r\na,0,1,1\r\n", 'video,second,row,column\n"a",0,"1", 1\n\n'])
def test_files_of_spreadsheets_are_read(text: str, path: Path) -> None:
    path.write_bytes(text.encode())
    assert read_notes(path).videos == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (("a,0,1,1", "a,0,1,5"), r"line 3: 1, 5 is outside the grid of 4 by 4"),
        (('"a\nb",0,1,1', "a,-1,1,1"), r"line 4: .*-1 is no second"),  # as an editor counts
        (("a,86399,1,1", "a,86400,1,1"), "line 3: .*86400 is no second of a clip"),
        (("a,,1,1",), "line 2: invalid literal"),
        (("a,0,1.0,1",), "line 2: invalid literal"),
        (("a,0,1",), "line 2: invalid literal"),
        (("a,0,4,4", "a,0,5,4"), "line 3: 5, 4 is outside"),
        (("a,0,1,0",), "line 2: 1, 0 is outside"),
        ((f"a,{'x' * 500},1,1",), r"line 2: .{1,120}\. Write video,second,row,column\."),
    ],
)
def test_the_line_that_is_wrong_is_named(rows: tuple[str, ...], message: str, path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_notes(write(path, *rows))


def test_files_that_cannot_be_read_are_told_apart(path: Path) -> None:
    with pytest.raises(InputError, match=r"notes\.csv cannot be read: No such file"):
        read_notes(path)
    path.write_bytes(HEADER.encode() + b"\n\xe9,0,1,1\n")
    with pytest.raises(InputError, match=r"is not UTF-8 text \(byte 24\)"):
        read_notes(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="has no column video, second, row, column"):
        read_notes(path)
    with pytest.raises(InputError, match="has no column row"):
        read_notes(write(path, "a,0,1", header="video,second,column"))


def test_the_three_figures_are_tables_in_percent() -> None:
    cells = tuple(tuple(down / 10 + across / 100 for across in range(4)) for down in range(4))
    where, when, how_long = notes_tables(EntityNotes(1234, cells, {0: 0.5, 1: 0.25}, {3: 1 / 3, 7: 2 / 3}))
    assert where.title.startswith("Where the entity is seen, % of 1,234 videos (Figure 10 of ")
    assert where.columns == ("Row", "column 1", "column 2", "column 3", "column 4")
    assert [[cell.text for cell in row] for row in where.rows] == [
        ["1", "0.0", "1.0", "2.0", "3.0"],
        ["2", "10.0", "11.0", "12.0", "13.0"],
        ["3", "20.0", "21.0", "22.0", "23.0"],
        ["4", "30.0", "31.0", "32.0", "33.0"],
    ]
    assert ("Figure 11" in when.title, when.columns) == (True, ("Second", "%"))
    assert [[cell.text for cell in row] for row in when.rows] == [["0", "50.0"], ["1", "25.0"]]
    assert ("Figure 12" in how_long.title, how_long.columns) == (True, ("Seconds", "%"))
    assert [[cell.text for cell in row] for row in how_long.rows] == [["3", "33.3"], ["7", "66.7"]]
    assert [row[0].number for row in how_long.rows] == [3, 7]
    assert how_long.rows[0][1].number == pytest.approx(100 / 3), "unrounded"
