"""Who has which item open now."""

from __future__ import annotations

from pathlib import Path

import pytest

from vip.review.presence import HERE_S, MOST_PEOPLE, Other, Presence


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_others_at_the_same_item_are_named_until_they_leave_it() -> None:
    presence = Presence(Clock())
    assert presence.note("Ann", 3, is_editing=True) == []
    assert presence.note("Bob", 3, is_editing=False) == [Other("Ann", True)]
    assert presence.note("Eve", 4, is_editing=False) == []
    assert presence.note("Ann", 3, is_editing=False) == [Other("Bob", False)]
    presence.note("Bob", 5, is_editing=False)
    assert presence.note("Ann", 3, is_editing=False) == []


def test_a_page_that_says_nothing_for_a_while_is_gone() -> None:
    clock = Clock()
    presence = Presence(clock)
    presence.note("Ann", 3, is_editing=True)
    clock.now_s = HERE_S
    assert presence.note("Bob", 3, is_editing=False) == [Other("Ann", True)]
    clock.now_s = 2 * HERE_S
    assert presence.note("Eve", 3, is_editing=False) == [Other("Bob", False)]


def test_so_many_people_are_remembered() -> None:
    presence = Presence(Clock())
    for number in range(MOST_PEOPLE + 50):
        others = presence.note(f"r{number}", 0, is_editing=False)
    assert len(others) == MOST_PEOPLE - 1


def test_the_server_says_who_else_is_there_and_what_they_saved(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    from tests.review.corpora import action, make_described, open_state
    from tests.review.serving import serve

    with serve(open_state(make_described(tmp_path / "a", 2))) as served:
        assert served.ask("/api/here/0", {"reviewer": "Ann", "is_editing": True}).json["others"] == []
        focus = served.ask("/api/items/0?reviewer=Ann").json["texts"]["focus"]
        change = action("k0", "focus", "a kite", before=focus)
        sent = {"uid": change.uid, "item": "k0", "field": "focus", "before": focus, "after": "a kite"}
        assert served.ask("/api/actions", {"reviewer": "Ann", "actions": [sent]}).json["actions"][0]["saved"]
        found = served.ask("/api/here/0", {"reviewer": "Bob"}).json
        assert found["others"] == [{"reviewer": "Ann", "is_editing": True}]
        assert (found["texts"]["focus"], found["changed_by"]) == ("a kite", {"focus": "Ann"})
        assert served.ask("/api/here/1", {"reviewer": "Bob"}).json["others"] == []
        assert served.ask("/api/here/2", {"reviewer": "Bob"}).status == 404
        assert served.ask("/api/here/0", {"reviewer": ""}).status == 400
