"""Lists of every kind, whole and damaged, to items and bad rows."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.lists import bad, example, items, read, record, vocabulary, vocabulary_file
from vip.corpus.inputs import lines
from vip.corpus.inputs.lines import RECORD_BYTES, lines_of, objects_of, records_of
from vip.corpus.inputs.reading import read_items
from vip.corpus.inputs.rows import BadRow
from vip.dataset.items import ListItem
from vip.errors import InputError

IDS = ["dQw4w9WgXcQ", "nXSc", "aaaaaaaaaa1"]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def keys(rows: list[ListItem | BadRow]) -> list[str]:
    return [row.key for row in items(rows)]


def wheres(rows: list[ListItem | BadRow]) -> list[str]:
    return [row.where.rpartition(", ")[2] for row in bad(rows)]


# ---------------------------------------------------------------- text


def test_a_text_file_has_a_video_a_row_and_skips_comments_and_blank_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "ids.txt", "\ufeffdQw4w9WgXcQ\r\n\n# a comment\n  nXSc\t\naaaaaaaaaa1")
    found = read(path)
    assert keys(found) == IDS
    assert [row.where for row in found] == [f"{path}, line {number}" for number in (1, 4, 5)]


def test_bad_rows_are_named_with_their_line_and_stop_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # above which no file is called x
    hostile = [b"../../x", b"-o evil", b"file:///etc/passwd", b"\xff\xfe\xfd", b"a\x00b", b"x" * 1_000_000]
    path = written(tmp_path / "ids.txt", b"nXSc\n" + b"\n".join(hostile) + b"\ndQw4w9WgXcQ\n")
    found = read(path)
    assert keys(found) == ["nXSc", "dQw4w9WgXcQ"]
    assert wheres(found) == [f"line {number}" for number in range(2, 8)]
    assert found[-1].where.endswith("line 8")
    assert all(len(row.text) <= 120 and row.text.isprintable() for row in bad(found))


def test_a_list_packed_with_gzip_is_unpacked_whatever_it_is_called(tmp_path: Path) -> None:
    for name in ("ids.txt.gz", "ids.txt", "ids"):
        assert keys(read(written(tmp_path / name, gzip.compress(b"nXSc\ndQw4w9WgXcQ\n")))) == ["nXSc", "dQw4w9WgXcQ"]


@pytest.mark.parametrize(
    ("name", "first", "nothing"),
    [
        *(("a.txt", "nXSc", nothing) for nothing in ("", " ", "# a comment")),
        *(("a.csv", "id,labels\nnXSc,x", nothing) for nothing in ("", ",")),
        ("a.tsv", "id\tlabels\nnXSc\tx", "\t"),
        ("a.jsonl", '{"id": "nXSc"}', ""),
    ],
)
def test_a_list_ends_where_a_million_lines_hold_no_row(
    name: str, first: str, nothing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred kilobytes of gzip unpack to a hundred million of them."""
    monkeypatch.setattr(lines, "MOST_LINES_WITHOUT_ROW", 1000)
    row, blank = first.rpartition("\n")[2], f"{nothing}\n"
    found = read(written(tmp_path / name, f"{first}\n{998 * blank}{row}\n{998 * blank}{row}\n"))
    assert (len(found), bad(found)) == (3, [])
    *rows, end = read(written(tmp_path / name, gzip.compress(f"{first}\n{998 * blank}{row}\n{3000 * blank}{row}\n".encode())))
    assert len(items(rows)) == 2
    assert isinstance(end, BadRow)
    assert end.message == "The list cannot be read from here on: 1,000 lines one after another are blank or comments. Remove them."


@pytest.mark.slow
def test_a_packed_list_that_is_cut_off_gives_what_was_there_and_a_bad_row(tmp_path: Path) -> None:
    whole = gzip.compress(os.urandom(300_000).hex().encode().replace(b"0", b"\n"))
    found = read(written(tmp_path / "ids.txt.gz", whole[: len(whole) // 2]))
    assert len(found) > 1000
    last = bad(found)[-1]
    assert found[-1] is last
    assert "cannot be read from here on" in last.message


def test_relative_paths_start_at_the_folder_of_the_list(tmp_path: Path) -> None:
    written(tmp_path / "clip.mp4", b"")
    (found,) = items(read(written(tmp_path / "ids.txt", "clip.mp4\n")))
    assert found.source == str(tmp_path / "clip.mp4")


@pytest.mark.slow
def test_a_line_without_an_end_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    with path.open("wb") as file:
        file.truncate(200 * 2**20)
        file.seek(0, os.SEEK_END)
        file.write(b"\nnXSc\n")
    tracemalloc.start()
    try:
        found = read(written(tmp_path / "list.txt", "nXSc\n"))  # what is imported on the way does not count
        tracemalloc.reset_peak()
        found = [*found, *read_items([str(path)])]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert keys(found) == ["nXSc", "nXSc"]
    assert wheres(found) == ["line 1"]
    assert peak < 10 * 2**20


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length_of_a_list(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = written(tmp_path / "ids.txt", "".join(f"{number:011}\n" for number in range(count)))
        rows = read_items([str(path)])
        next(rows)
        tracemalloc.start()
        try:
            assert sum(1 for _ in rows) == count - 1
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(200_000) < 1.2 * peak(50_000)


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line)), st.integers(1, 40))
def test_lines_are_the_same_in_whatever_pieces_they_arrive(lines: list[bytes], size: int) -> None:
    class Trickle(io.BytesIO):
        def read1(self, _: int | None = -1, /) -> bytes:
            return super().read1(size)

    expected = lines[:-1] if lines and not lines[-1] else lines
    assert list(lines_of(Trickle(b"\n".join(lines)))) == list(enumerate(expected, 1))


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_no_bytes_crash_a_reader(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("lists")
    for suffix in (".txt", ".csv", ".tsv", ".jsonl", ".tfrecord"):
        try:
            found = read(written(folder / f"list{suffix}", b"\n".join(lines)), public_only=True)
        except InputError:
            continue
        assert all(isinstance(row, BadRow) or row.kind != "file" for row in found)


# ---------------------------------------------------------------- CSV


def test_a_csv_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    text = 'Title,Video ID,Labels,Duration\n"A, b ""c""\nd",nXSc,252|3,10\n\n,dQw4w9WgXcQ,,\n'
    found = read(written(tmp_path / "ids.csv", text), vocabulary=vocabulary(tmp_path))
    first, second = items(found)
    assert (first.key, first.labels, first.verticals) == ("nXSc", ("Snow", "Concert"), ("News", "Science", "Arts & Entertainment"))
    assert (first.duration_s, first.where.rpartition(", ")[2]) == (10, "line 2")
    assert (second.key, second.labels, second.duration_s, second.where.rpartition(", ")[2]) == ("dQw4w9WgXcQ", (), None, "line 5")


def test_a_first_row_that_could_be_a_path_is_no_header(tmp_path: Path) -> None:
    (tmp_path / "video").mkdir()
    written(tmp_path / "video" / "a.mp4", b"")
    assert len(items(read(written(tmp_path / "ids.txt", "video\nnXSc\n")))) == 2
    assert keys(read(written(tmp_path / "ids.txt", "video_id\nnXSc\n"))) == ["nXSc"]
    found = read(written(tmp_path / "ids.csv", "-o evil,x\nnXSc,y\n"))
    assert (keys(found), wheres(found)) == (["nXSc"], ["line 1"])


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t"), ("a.txt", ","), ("a", ",")])
def test_the_marks_between_columns_are_found_out(tmp_path: Path, name: str, mark: str) -> None:
    path = written(tmp_path / name, f"url{mark}topic\nhttps://example.com/a?b=1{mark}dogs\n")
    (found,) = items(read(path))
    assert (found.source, found.topic) == ("https://example.com/a?b=1", "dogs")


def test_an_empty_first_column_of_a_tsv_moves_no_other(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "title\tvideo_id\ttopic\n\tdQw4w9WgXcQ\tnXSc\nA dog\tnXSc\t\n")
    found = read(path)
    assert (keys(found), wheres(found)) == (["dQw4w9WgXcQ", "nXSc"], [])
    assert [one.topic for one in items(found)] == ["nXSc", None]


def test_a_csv_without_a_header_has_videos_in_its_first_column(tmp_path: Path) -> None:
    assert keys(read(written(tmp_path / "ids.csv", "dQw4w9WgXcQ,x\nnXSc,y\naaaaaaaaaa1\n"))) == IDS


def test_a_quote_that_is_never_closed_costs_its_own_line(tmp_path: Path) -> None:
    text = 'id,title\nnXSc,"open\ndQw4w9WgXcQ,fine\n' + "aaaaaaaaaa1,more\n" * 30_000
    found = read(written(tmp_path / "ids.csv", text))
    assert wheres(found) == ["line 2"]
    assert len(items(found)) == 30_001


@given(st.lists(st.lists(st.text(st.sampled_from('ab",;\n é')), min_size=2, max_size=3), min_size=1, max_size=5))
def test_what_a_csv_writer_writes_is_read_back(rows: list[list[str]]) -> None:
    import csv

    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    lines = lines_of(io.BytesIO(file.getvalue().encode()))
    assert [values for _, values in records_of(lines, "x", ",")] == rows


def test_a_csv_of_other_columns_is_refused_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Rename one of its columns: title, views"):
        read(written(tmp_path / "ids.csv", "title,views\na cat,12\n"))
    with pytest.raises(InputError, match="Give it with --vocabulary"):
        read(vocabulary_file(tmp_path))


# ---------------------------------------------------------------- JSONL


def test_jsonl_has_an_object_a_line_or_a_text(tmp_path: Path) -> None:
    text = '{"id": "dQw4w9WgXcQ", "labels": ["Car"], "duration_s": 2.5}\n"nXSc"\n\n{"Video-ID": "aaaaaaaaaa1"}\n'
    found = read(written(tmp_path / "ids.jsonl", text))
    assert keys(found) == IDS
    assert (items(found)[0].labels, items(found)[0].duration_s) == (("Car",), 2.5)
    assert keys(read(written(tmp_path / "ids.txt", text))) == IDS


def test_damaged_objects_are_bad_rows(tmp_path: Path) -> None:
    lines = ["{", "[]", "12", "null", "[" * 100_000, '{"a": 1}', '{"id": "\\ud800"}', "9" * 5000, '{"id": "nXSc"}']
    found = read(written(tmp_path / "ids.jsonl", "\n".join(lines)))
    assert keys(found) == ["nXSc"]
    assert wheres(found) == [f"line {number}" for number in range(1, 9)]


def test_one_json_array_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"jq -c"):
        read(written(tmp_path / "ids.json", '[{"id": "nXSc"}]'))


def test_an_object_that_is_too_long_is_a_bad_row() -> None:
    (found,) = objects_of(iter([(1, b'{"id": "' + b"a" * RECORD_BYTES + b'"}')]), "x")
    assert isinstance(found[1], BadRow)


# ---------------------------------------------------------------- Parquet


def test_parquet_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "ids.parquet"
    labels = [["Car", "Dance"], None, []]
    table = pa.table(
        {"pixels": [b"x"] * 3, "YouTube ID": [IDS[0], "", IDS[2]], "id": [1, 2, 3], "labels": labels, "duration": [1.5, None, 3.0]}
    )
    parquet.write_table(table, path)
    found = read(path)
    assert keys(found) == [IDS[0], IDS[2]]
    assert (items(found)[0].labels, items(found)[0].duration_s) == (("Car", "Dance"), 1.5)
    assert wheres(found) == ["row 2"]


def test_damaged_parquet_is_told(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    whole = io.BytesIO()
    parquet.write_table(pa.table({"id": [f"{number:04}" for number in range(5000)]}), whole, row_group_size=1000, compression="gzip")
    with pytest.raises(InputError, match="no Parquet file"):
        read(written(tmp_path / "cut.parquet", whole.getvalue()[:-20]))
    half = bytearray(whole.getvalue())
    half[len(half) // 2 : len(half) // 2 + 50] = bytes(50)
    found = read(written(tmp_path / "half.parquet", bytes(half)))
    assert 1000 <= len(items(found)) < 5000
    assert "from here on" in bad(found)[-1].message
    invalid = pa.array([b"nXSc", b"\xff\xff", b"XE00"]).cast(pa.binary())
    text = pa.StringArray.from_buffers(3, invalid.buffers()[1], invalid.buffers()[2])
    parquet.write_table(pa.table({"id": text}), tmp_path / "text.parquet")
    found = read(tmp_path / "text.parquet")
    assert (keys(found), wheres(found)) == (["nXSc", "XE00"], ["row 2"])


def test_parquet_with_a_column_whose_name_is_no_text_is_damaged(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    whole = io.BytesIO()
    parquet.write_table(pa.table({"id": ["nXSc"], "title": ["x"]}), whole, store_schema=False)
    path = written(tmp_path / "names.parquet", whole.getvalue().replace(b"title", b"\xff" * 5))
    with pytest.raises(InputError, match=r"names\.parquet is no Parquet file, or damaged: 'utf-8' codec"):
        read(path)


def test_parquet_without_a_known_column_is_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"title": ["x"], "views": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="title, views"):
        read(tmp_path / "a.parquet")
    parquet.write_table(pa.table({"anything": ["nXSc"]}), tmp_path / "a.parquet")
    assert keys(read(tmp_path / "a.parquet")) == ["nXSc"]


def test_a_column_of_any_kind_costs_the_rows_whose_values_no_python_has(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    twice = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([1, 2])], names=["a", "a"])
    odd = {
        **{kind: pa.array([2**31 - 1, 1], pa.int32()).cast(kind) for kind in (pa.date32(), pa.time32("s"))},
        **{kind: pa.array([2**62, 1], pa.int64()).cast(kind) for kind in (pa.timestamp("us"), pa.time64("us"), pa.duration("s"))},
        **{
            pa.timestamp("us", zone): pa.array([1, 1], pa.int64()).cast(pa.timestamp("us", zone))
            for zone in ("No/Where", "../../etc", "America")
        },
        twice.type: twice,
    }
    path = tmp_path / "odd.parquet"
    for column in odd.values():
        parquet.write_table(pa.table({"id": ["nXSc", "XE00"], "duration": column}), path)
        found = read(path)
        assert len(found) == 2
        assert all("has a value that cannot be read" in row.message for row in bad(found))
        parquet.write_table(pa.table({"url": column}), path)
        assert wheres(read(path)) == ["row 1", "row 2"]


def test_a_row_of_parquet_is_no_longer_than_any_other_row(tmp_path: Path) -> None:
    """A value that is stored once may stand in all of them."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "same.parquet"
    parquet.write_table(pa.table({"id": ["nXSc", "XE00"] * 20, "topic": ["x" * RECORD_BYTES] * 39 + [None]}), path)
    assert path.stat().st_size < 20_000
    found = read(path)
    assert (len(bad(found)), keys(found)) == (39, ["XE00"])
    assert bad(found)[0].message == f"The row is longer than {RECORD_BYTES} bytes."
    parquet.write_table(pa.table({"id": ["nXSc"] * 9, "topic": ["x" * (RECORD_BYTES - 100)] * 9}), path)
    assert keys(read(path)) == ["nXSc"] * 9


def test_categories_of_pandas_are_texts(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = pa.array(["nXSc", "XE00", "nXSc", None]).dictionary_encode()
    path = tmp_path / "categories.parquet"
    parquet.write_table(pa.table({"id": names, "topic": pa.array(["x" * RECORD_BYTES, "a", "b", "c"]).dictionary_encode()}), path)
    found = read(path)
    assert (keys(found), [row.topic for row in items(found)], wheres(found)) == (["XE00", "nXSc"], ["a", "b"], ["row 1", "row 4"])


# ---------------------------------------------------------------- what the user typed


def test_videos_ids_and_addresses_may_be_typed_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "clip.mp4", b"")
    written(tmp_path / "clip", b"\0\0\0\x18ftypmp42" + bytes(100))
    (tmp_path / "nine").mkdir()
    written(tmp_path / "nine" / "a.mp4", b"")
    found = list(read_items(["clip.mp4", "clip", "dQw4w9WgXcQ", "nXSc", "https://example.com/a.mp4", "nine", "nin*/*.mp4"]))
    assert [(row.kind, Path(row.source).name) for row in items(found)] == [
        ("file", "clip.mp4"),
        ("file", "clip"),
        ("youtube", "dQw4w9WgXcQ"),
        ("youtube8m", "nXSc"),
        ("address", "a.mp4"),
        ("file", "a.mp4"),
        ("file", "a.mp4"),
    ]


def test_a_folder_or_a_glob_of_lists_is_all_of_them_without_the_vocabulary(tmp_path: Path) -> None:
    vocabulary_file(tmp_path)
    written(tmp_path / "train01.tfrecord", record(example(b"nXSc", [])))
    written(tmp_path / "train00.tfrecord", record(example(b"XE00", [])))
    written(tmp_path / "more.txt.gz", gzip.compress(b"dQw4w9WgXcQ\n"))
    written(tmp_path / "README.md", b"nothing")
    assert keys(read(tmp_path)) == ["dQw4w9WgXcQ", "XE00", "nXSc"]
    assert keys(read(tmp_path / "train*.tfrecord")) == ["XE00", "nXSc"]


def test_a_list_that_is_missing_is_told_before_anything_is_read(tmp_path: Path) -> None:
    first = written(tmp_path / "ids.txt", "nXSc\n")
    for name in ("none.txt", "*.none", "a**b", f"{'x' * 300}/*.txt"):
        with pytest.raises(InputError, match=r"There is no list|is no pattern"):
            read_items([str(first), str(tmp_path / name)])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="neither videos nor lists"):
        read_items([str(tmp_path / "empty")])


def test_utf_16_and_an_empty_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Save it as UTF-8"):
        read(written(tmp_path / "ids.txt", "nXSc".encode("utf-16")))
    assert read(written(tmp_path / "ids.txt", b"")) == []


@pytest.mark.extra("google_crc32c")
def test_standard_input_is_a_list_packed_or_not() -> None:
    code = "from vip.corpus.inputs.reading import read_items; print(*[row.key for row in read_items(['-'])])"
    for content in (
        b"nXSc\ndQw4w9WgXcQ\n",
        gzip.compress(b"id,x\nnXSc,1\ndQw4w9WgXcQ,2\n"),
        record(example(b"nXSc", [])) + record(example(b"dQw4w9WgXcQ", [])),
    ):
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], input=content, capture_output=True, timeout=60, check=True)
        assert (done.stdout.split(), done.stderr) == ([b"nXSc", b"dQw4w9WgXcQ"], b"")


def test_a_standard_input_that_is_no_file_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    with io.TextIOWrapper(io.BytesIO(b"nXSc\n")) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert keys(read("-")) == ["nXSc"]
        assert not stream.buffer.closed


def test_a_standard_input_that_is_a_file_is_read_and_where_there_is_none_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with written(tmp_path / "ids.txt", "nXSc\n").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert keys(read("-")) == ["nXSc"]
        assert not stream.buffer.closed
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="There is no standard input"):
        read("-")


def test_a_list_that_cannot_be_unpacked_at_all_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "ids.txt", gzip.compress(b"nXSc\n")[:2] + b"no gzip")
    with pytest.raises(InputError, match=r"ids\.txt cannot be read: "):
        read(path)


def test_a_named_pipe_is_a_list(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"nXSc\n",))
    writer.start()
    assert keys(read(tmp_path / "pipe")) == ["nXSc"]
    writer.join()


def test_lists_are_read_through_fsspec_by_address_and_glob() -> None:
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    try:
        files.pipe(
            {
                "/lists/a.txt": b"nXSc\n",
                "/lists/b.csv.gz": gzip.compress(b"id\ndQw4w9WgXcQ\n"),
                "/lists/c.mp4": b"",
                "/lists/vocabulary.csv": b"abcd\n",
            }
        )
        assert keys(read("memory://lists/a.txt")) == ["nXSc"]
        assert keys(read("memory://lists/*")) == ["nXSc", "dQw4w9WgXcQ"]
        assert keys(read("memory://lists/")) == ["nXSc", "dQw4w9WgXcQ"]
        with pytest.raises(InputError, match=r"There is no list at memory://lists/\*\.none"):
            read("memory://lists/*.none")
        with pytest.raises(InputError, match="cannot be read"):
            read("memory://lists/none.txt")
        with pytest.raises(InputError, match="cannot be read"):
            read("nonsense://lists/none.txt")
    finally:
        files.store.clear()


def test_rows_behind_a_quote_that_is_never_closed_keep_their_order(tmp_path: Path) -> None:
    text = 'id,title\nnXSc,"open\nXE00,a\nUL0a,b\naaaa,c\n'
    assert keys(read(written(tmp_path / "ids.csv", text))) == ["XE00", "UL0a", "aaaa"]


def test_a_row_of_empty_cells_is_passed_over(tmp_path: Path) -> None:
    found = read(written(tmp_path / "ids.csv", "id,title\n,\nnXSc,\n"))
    assert (keys(found), bad(found)) == (["nXSc"], [])


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.txt", "clip.mp4\n"), ("a.csv", "path,x\nclip.mp4,\n"), ("a.jsonl", '{"path": "clip.mp4"}\n'), ("b.jsonl", '"clip.mp4"\n')],
)
def test_files_of_this_machine_are_refused_with_public_only_in_every_list(tmp_path: Path, name: str, text: str) -> None:
    written(tmp_path / "clip.mp4", b"")
    path = written(tmp_path / name, text)
    assert [row.kind for row in read(path)] == ["file"]
    assert [row.kind for row in read(path, public_only=True)] == ["not_public"]


def test_a_video_that_was_typed_is_refused_with_public_only(tmp_path: Path) -> None:
    path = written(tmp_path / "clip.mp4", b"")
    assert [row.kind for row in read(path, public_only=True)] == ["not_public"]


def test_parquet_from_a_pipe_is_refused_with_what_to_do(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"PAR1" * 100,))
    writer.start()
    with pytest.raises(InputError, match="cannot be read from a pipe"):
        read(tmp_path / "pipe")
    writer.join()


def test_parquet_without_a_suffix_is_a_list(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": ["nXSc"]}), tmp_path / "part-0")
    assert keys(read(tmp_path / "part-0")) == ["nXSc"]


def test_a_packed_list_that_is_cut_off_names_the_line_behind_the_last_whole_one(tmp_path: Path) -> None:
    ids = "".join(f"{os.urandom(8).hex()[:11]}\n" for _ in range(5000))
    *whole, last = read(written(tmp_path / "ids.txt.gz", gzip.compress(ids.encode())[:30_000]))
    assert wheres([last]) == [f"line {len(items(whole)) + 1}"]
