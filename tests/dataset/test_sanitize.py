"""Names that any system takes, and texts without secrets, however deep they lie."""

from __future__ import annotations

from vip.dataset.sanitize import json_value, safe_key


def test_a_long_text_makes_a_key_of_a_hundred_letters() -> None:
    assert safe_key("a" * 300) == "a" * 100
    assert safe_key("/films/") == "films"
    assert safe_key("…") == "video"


def test_queries_are_cut_in_lists_and_tables_too() -> None:
    told = {"at": ["https://host.test/a?token=secret", {"deep": ("https://host.test/b?token=secret",)}]}
    assert json_value(told, secret_queries=True) == {"at": ["https://host.test/a", {"deep": ["https://host.test/b"]}]}
    assert json_value(told) == {"at": ["https://host.test/a?token=secret", {"deep": ["https://host.test/b?token=secret"]}]}
