"""Names that any system takes, and texts without secrets, however deep they lie."""

from __future__ import annotations

import time

import pytest

from vip.dataset.sanitize import KEY, MOST_NAME_BYTES, is_plain_name, json_value, safe_key, without_secrets, writable
from vip.records import Failure


def test_a_long_text_makes_a_key_of_a_hundred_letters() -> None:
    assert safe_key("a" * 300) == "a" * 100
    assert safe_key("/films/") == "films"
    assert safe_key("…") == "video"
    assert KEY.fullmatch(safe_key("a" * 300))
    assert not KEY.fullmatch("a" * 101)


def test_a_name_is_as_long_as_its_bytes() -> None:
    longest = f"{'é' * ((MOST_NAME_BYTES - 4) // 2)}.jpg"
    assert is_plain_name(longest)
    assert not is_plain_name(f"a{longest}")


def test_a_record_that_utf8_can_encode_is_the_same_and_another_shows_its_bytes() -> None:
    good = Failure(item="a", kind="other", message="größe https://ann:word@host/a?b=1", exit_code=3)
    assert writable(good) is good
    bad = writable(good.model_copy(update={"item": "a\udcff", "message": "\udcfe"}))
    assert (bad.item, bad.message, bad.exit_code) == (r"a\udcff", r"\udcfe", 3)
    assert Failure.model_validate_json(bad.model_dump_json()) == bad


def test_an_address_is_shown_without_login_query_and_fragment() -> None:
    told = "https://ann:word@host.test/a?key=1#top, then https://host.test/b#token=secret."
    assert without_secrets(told) == "https://host.test/a then https://host.test/b"


def test_a_number_that_json_does_not_have_is_null() -> None:
    assert json_value([float("inf"), float("-inf"), float("nan"), 1.5]) == [None, None, None, 1.5]


def test_queries_are_cut_in_lists_and_tables_too() -> None:
    told = {"at": ["https://host.test/a?token=secret", {"deep": ("https://host.test/b?token=secret",)}]}
    assert json_value(told, secret_queries=True) == {"at": ["https://host.test/a", {"deep": ["https://host.test/b"]}]}
    assert json_value(told) == {"at": ["https://host.test/a?token=secret", {"deep": ["https://host.test/b?token=secret"]}]}


@pytest.mark.parametrize("part", ["://", "://a:", "//:", "://a", "://a:b?", "@://"])
def test_a_long_text_takes_no_longer_than_its_letters(part: str) -> None:
    start = time.process_time()
    assert len(json_value(part * 100_000, secret_queries=True)) <= len(part) * 100_000
    assert time.process_time() - start < 3
