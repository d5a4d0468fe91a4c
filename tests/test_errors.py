"""The error tree: one exit code a branch, the same everywhere it is written down."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip import errors
from vip.errors import BusyError, GivenUpError, ItemError, NotInPartsError, OutageError, ReplyError, VipError, did_you_mean

PAGE = Path(__file__).parents[1] / "docs" / "failures.md"
CODES = {
    "UsageError": 2,
    "InputError": 3,
    "BackendError": 4,
    "EngineError": 5,
    "ReplyError": 6,
    "StoreError": 7,
    "SomeFailedError": 8,
}
WORDS = st.text(alphabet="abcdefgh", min_size=1, max_size=8)


def test_each_branch_has_the_exit_code_of_the_design() -> None:
    assert {kind.__name__: kind.exit_code for kind in VipError.__subclasses__()} == CODES


def test_no_branch_exits_like_success_a_bug_or_an_interrupt() -> None:
    assert not {0, 1, 130} & set(CODES.values())
    assert VipError.exit_code == 1


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"[├└]── (\w+) +(\d+)", errors.__doc__ or "")
    assert {name: int(code) for name, code in drawn} == CODES


def test_the_tree_in_the_docstring_names_each_error_below_its_parent() -> None:
    drawn = re.findall(r"(?:^    |[├└]── )(\w+Error)\b", errors.__doc__ or "", re.MULTILINE)
    assert drawn == list(names_below(VipError))


def names_below(kind: type[VipError]) -> Iterator[str]:
    yield kind.__name__
    for child in (one for one in kind.__subclasses__() if one.__module__ == errors.__name__):
        yield from names_below(child)


def test_the_page_on_failures_lists_every_exit_code() -> None:
    listed = [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)]
    assert listed == [0, 1, *CODES.values(), 130, 143]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("opencvv", ' Did you mean "opencv"?'), ("OpenCV", ' Did you mean "opencv"?'), ("xyz", " There is: classic, opencv.")],
)
def test_a_misspelt_name_gets_the_nearest_or_the_list(wrong: str, hint: str) -> None:
    assert did_you_mean(wrong, ["opencv", "classic"]) == hint


@given(wrong=WORDS, known=st.sets(WORDS, min_size=1))
def test_a_hint_names_only_what_there_is(wrong: str, known: set[str]) -> None:
    hint = did_you_mean(wrong, known)
    if (close := re.fullmatch(r' Did you mean "(.*)"\?', hint)) is None:
        assert hint == f" There is: {', '.join(sorted(known))}."
    else:
        assert close[1] in known


@pytest.mark.parametrize(
    "error",
    [
        GivenUpError("slow", "timeout"),
        BusyError("busy", kind="server", retry_after_s=3.0),
        OutageError("gone", "connection"),
        ReplyError("refused", kind="refusal", tokens_in=3),
        ItemError("gone", "deleted", 2.0),
        NotInPartsError("whole", "page", version='"v1"'),
    ],
)
def test_an_error_comes_whole_from_another_process(error: VipError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
