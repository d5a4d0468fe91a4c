"""vip.corpus.inputs.lines: long lines, streams that break, quotes that do not fit, and the numbers of lines behind them"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest

from vip.corpus.inputs.lines import BLOCK_BYTES, RECORD_BYTES, CutOffError, decode_line, lines_of, objects_of, records_of
from vip.corpus.inputs.rows import BadRow

LONG = b"x" * (RECORD_BYTES + 1)


class Blocks:
    """A stream that gives these blocks, one a read, and raises what stands among them."""

    def __init__(self, *blocks: bytes | Exception) -> None:
        self._blocks = iter(blocks)
        self.sizes: list[int] = []

    def read1(self, size: int = -1, /) -> bytes:
        self.sizes.append(size)
        block = next(self._blocks, b"")
        if isinstance(block, Exception):
            raise block
        return block


def numbered(*lines: bytes) -> Iterator[tuple[int, bytes]]:
    return iter(list(enumerate(lines, 1)))


def records(*lines: bytes, delimiter: str = ",") -> list[tuple[int, list[str] | str]]:
    """The number of the line of each record, and its values or what is wrong with it."""
    found = records_of(numbered(*lines), "a.csv", delimiter)
    return [(int(where.removeprefix("a.csv, line ")), values.message if isinstance(values, BadRow) else values) for where, values in found]


# ---------------------------------------------------------------- lines


@pytest.mark.parametrize(
    ("blocks", "lines"),
    [
        ((), []),
        ((b"\n",), [b""]),
        ((b"a",), [b"a"]),
        ((b"a\n",), [b"a"]),
        ((b"a\r\n\nb",), [b"a\r", b"", b"b"]),
        ((b"a", b"b\nc", b"\n", b"d"), [b"ab", b"c", b"d"]),
    ],
)
def test_lines_are_numbered_from_1_without_their_ends(blocks: Sequence[bytes], lines: Sequence[bytes]) -> None:
    stream = Blocks(*blocks)
    assert list(lines_of(stream)) == list(enumerate(lines, 1))
    assert set(stream.sizes) == {BLOCK_BYTES}


@pytest.mark.parametrize(
    "blocks",
    [
        (b"a\n" + LONG, b"rest of it\nb\n\nc"),
        (b"a\n" + LONG, b"rest", b"more", b"of it\nb\n\nc"),
        (b"a\n" + LONG, LONG, LONG + b"\n", b"b\n\n", b"c"),
        (b"a\n" + LONG, b"\nb\n\nc\n"),
    ],
)
def test_of_a_line_that_is_too_long_the_beginning_is_given_once_and_the_others_keep_their_numbers(blocks: Sequence[bytes]) -> None:
    assert list(lines_of(Blocks(*blocks))) == [(1, b"a"), (2, LONG), (3, b"b"), (4, b""), (5, b"c")]


def test_two_lines_that_are_too_long_are_two() -> None:
    found = list(lines_of(Blocks(LONG, b"\n" + LONG, LONG, b"\na")))
    assert found == [(1, LONG), (2, LONG), (3, b"a")]


@pytest.mark.parametrize("end", [(), (b"more",)])
def test_a_last_line_that_is_too_long_and_has_no_end_is_given_once(end: Sequence[bytes]) -> None:
    assert list(lines_of(Blocks(b"a\n", LONG, *end))) == [(1, b"a"), (2, LONG)]


def test_a_line_of_the_longest_length_is_whole() -> None:
    longest = LONG[:-1]
    assert list(lines_of(Blocks(longest, b"\nb"))) == [(1, longest), (2, b"b")]
    (_, longer), second = lines_of(Blocks(longest, b"y\nb"))
    assert (len(longer) > RECORD_BYTES, second) == (True, (2, b"b")), "so that its beginning is not taken for a row"


@pytest.mark.parametrize(("error", "why"), [(OSError("gone"), "gone"), (EOFError(), "EOFError"), (KeyError(), "KeyError")])
def test_a_stream_that_breaks_names_the_last_whole_line_and_why(error: Exception, why: str) -> None:
    lines = lines_of(Blocks(b"a\nb\nhalf", error))
    assert [next(lines), next(lines)] == [(1, b"a"), (2, b"b")]
    with pytest.raises(CutOffError, match=f"^{why}$") as caught:
        next(lines)
    assert (caught.value.number, caught.value.__cause__) == (2, error)


def test_a_stream_that_breaks_within_a_line_that_is_too_long_has_counted_it() -> None:
    with pytest.raises(CutOffError) as caught:
        list(lines_of(Blocks(b"a\n" + LONG, b"more", OSError("gone"))))
    assert caught.value.number == 2


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (b" a \r", 4, "a"),
        (b"", 0, ""),
        ("é".encode(), 2, "é"),
        (b"abcd ", 4, "The row is longer than 4 bytes."),  # also of blank space
        ("éé".encode(), 3, "The row is longer than 3 bytes."),
        (b"a\xff", 2, "The row is no UTF-8. Save the list as UTF-8."),
    ],
)
def test_a_line_is_text_without_space_around_it_or_a_bad_row(line: bytes, limit: int, expected: str) -> None:
    found = decode_line(line, "a, line 7", limit)
    assert (found.message if isinstance(found, BadRow) else found) == expected
    if isinstance(found, BadRow):
        assert found.where == "a, line 7"
        assert found.text[0] in "aé"
        assert len(found.text) <= limit


def test_the_longest_row_is_that_of_a_record() -> None:
    assert decode_line(LONG[:-1], "x") == "x" * RECORD_BYTES
    assert isinstance(decode_line(LONG, "x"), BadRow)


# ---------------------------------------------------------------- records


@pytest.mark.parametrize(
    ("line", "delimiter", "values"),
    [
        (b"a,b", ",", ["a", "b"]),
        (b"a", ",", ["a"]),
        (b"a, b,,", ",", ["a", " b", "", ""]),
        (b",b", ",", ["", "b"]),
        (b"a;b,c", ";", ["a", "b,c"]),
        (b'"a,b",c', ",", ["a,b", "c"]),
        (b'"a;b";c', ";", ["a;b", "c"]),
        (b'a, "b ""c"""', ",", ["a", 'b "c"']),
        (b'a\t"b\tc"', "\t", ["a", "b\tc"]),
    ],
)
def test_a_record_is_split_at_the_delimiter_outside_of_quotes(line: bytes, delimiter: str, values: list[str]) -> None:
    assert records(line, delimiter=delimiter) == [(1, values)]


def test_a_field_in_quotes_may_be_as_long_as_a_record() -> None:
    title = "t" * (RECORD_BYTES - 4)
    (found,) = records_of(iter([(1, f'a,"{title}"'.encode())]), "x.csv", ",")
    assert found == ("x.csv, line 1", ["a", title])


BAD_QUOTES = "Its quotes do not fit together."


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], []),
        ([b"", b"  ", b"a"], [(3, ["a"])]),
        ([b'a,"one', b"", b'two",b', b"c,d"], [(1, ["a", "one\n\ntwo", "b"]), (4, ["c", "d"])]),
        ([b'"a', b'b","c', b'd"', b"e"], [(1, ["a\nb", "c\nd"]), (4, ["e"])]),
        ([b'a,"open', b"b,c", b"d,e"], [(1, BAD_QUOTES), (2, ["b", "c"]), (3, ["d", "e"])]),
        ([b'"a" b,c', b"d"], [(1, BAD_QUOTES), (2, ["d"])]),  # closed, and yet no CSV
        ([b'"open', b'x"y', b'"a', b'b",c'], [(1, BAD_QUOTES), (2, ['x"y']), (3, ["a\nb", "c"])]),
        ([b'"open', b"b", b'"again', b'c" d'], [(1, BAD_QUOTES), (2, ["b"]), (3, BAD_QUOTES), (4, ['c" d'])]),
    ],
)
def test_a_quote_costs_the_lines_it_belongs_to_and_no_other(lines: Iterable[bytes], found: list[tuple[int, list[str] | str]]) -> None:
    assert records(*lines) == found


def test_a_line_that_is_no_text_is_a_bad_row_wherever_it_stands() -> None:
    no_text = "The row is no UTF-8. Save the list as UTF-8."
    assert records(b"a\xff,b", b"c,d") == [(1, no_text), (2, ["c", "d"])]
    assert records(b'"a', b'\xff",b', b"c,d") == [(1, BAD_QUOTES), (2, no_text), (3, ["c", "d"])]


def test_a_bad_record_shows_its_own_first_line() -> None:
    ((where, row), *_) = records_of(numbered(b'a,"open', b"b,c"), "a.csv", ",")
    assert (where, row) == ("a.csv, line 1", BadRow('a,"open', "a.csv, line 1", BAD_QUOTES))


def test_no_more_than_a_record_is_held_while_a_closing_quote_is_looked_for() -> None:
    read = 0

    def lines() -> Iterator[tuple[int, bytes]]:
        nonlocal read
        yield 1, b'"open'
        for number in range(2, 10_000):
            read = number
            yield number, b"x" * 1023

    found = records_of(lines(), "a.csv", ",")
    assert isinstance(next(found)[1], BadRow)
    assert read == RECORD_BYTES // 1024 + 1
    assert [where for where, _ in found] == [f"a.csv, line {number}" for number in range(2, 10_000)], "none is lost"


def test_a_record_of_many_lines_is_no_longer_than_a_row() -> None:
    part = b"x" * (RECORD_BYTES // 8)
    first, rest = b'"' + part, b",".join([part + b'"', *[part] * 6])[:-9]
    assert len(first) + 1 + len(rest) == RECORD_BYTES
    assert [len(value) for value in records(first, rest)[0][1]] == [2 * len(part) + 1, *[len(part)] * 5, len(part) - 9]
    assert records(first, rest + b"x", b"a")[0] == (1, BAD_QUOTES)
    assert records(first, rest + b"x", b"a")[2] == (3, ["a"])


# ---------------------------------------------------------------- objects


def test_each_line_of_jsonl_is_an_object_a_text_or_a_bad_row_with_its_number() -> None:
    lines = [b'{"id": "a"}', b"", b"  ", b'"b"', b'""', b"{}", b"7", b"null", b'["a"]', b"{", b"\xff", b' {"id": "c"}\r']
    found = list(objects_of(numbered(*lines), "a.jsonl"))
    no_object, no_text = "The row is no JSON object. Write one a line, such as", "The row is no UTF-8."
    assert [
        (where, value.message.partition(" {")[0] if isinstance(value, BadRow) else value)
        for where, value in found
        if where != "a.jsonl, line 11"
    ] == [
        ("a.jsonl, line 1", {"id": "a"}),
        ("a.jsonl, line 4", "b"),
        ("a.jsonl, line 5", ""),
        ("a.jsonl, line 6", {}),
        *((f"a.jsonl, line {number}", no_object) for number in (7, 8, 9, 10)),
        ("a.jsonl, line 12", {"id": "c"}),
    ]
    (damaged,) = [value for where, value in found if where == "a.jsonl, line 11"]
    assert isinstance(damaged, BadRow)
    assert damaged.message.startswith(no_text)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (b"\tdQw4w9WgXcQ\tmusic", ["", "dQw4w9WgXcQ", "music"]),
        (b"dQw4w9WgXcQ\t\t", ["dQw4w9WgXcQ", "", ""]),
        (b'\t"a b"\t', ["", "a b", ""]),
        (b"  one \t two\r\n", ["one ", " two"]),
    ],
)
def test_an_empty_column_at_an_end_keeps_its_place(line: bytes, values: list[str]) -> None:
    assert list(records_of(iter([(1, line)]), "list", "\t")) == [("list, line 1", values)]


@pytest.mark.parametrize("line", [b"", b"\t\t", b"  \t \r\n"])
def test_a_row_of_nothing_but_tabs_is_no_record(line: bytes) -> None:
    assert list(records_of(iter([(1, line)]), "list", "\t")) == []
