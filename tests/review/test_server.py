"""The server: what it answers, and each thing that it refuses."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.review.corpora import make_described, open_state
from tests.review.serving import TOKEN, Served, serve
from vip.errors import InputError, StoreError
from vip.review import log_server
from vip.review import server as module

MARKUP = "<script>document.title='hacked'</script><img src=x onerror=alert(1)>\"'&"

pytestmark = pytest.mark.slow


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(open_state(make_described(tmp_path / "a", 4))) as running:
        yield running


def act(served: Served, *rows: dict[str, Any], reviewer: str = "Ann") -> Any:
    return served.ask("/api/actions", {"reviewer": reviewer, "actions": list(rows)})


def verdict(uid: str = "u1", item: str = "k0", after: str | None = "good") -> dict[str, Any]:
    return {"uid": uid, "item": item, "field": "verdict", "before": None, "after": after}


def edit(after: str, *, before: str, uid: str = "e1", item: str = "k0", field: str = "focus") -> dict[str, Any]:
    return {"uid": uid, "item": item, "field": field, "before": before, "after": after}


# ---------------------------------------------------------------- what it answers


def test_an_item_comes_with_its_texts_marks_and_neighbours(served: Served) -> None:
    found = served.ask("/api/items/2?reviewer=Ann").json
    assert found["texts"]["objects"] == "rope\nball"
    assert found["flagged"] == ["objects"]
    assert [one["number"] for one in found["neighbours"]] == [0, 1, 3]
    assert found["detections"][0]["label"] == "person"
    assert found["others"] is None


def test_in_the_first_stage_texts_are_not_changed(tmp_path: Path) -> None:
    with serve(open_state(make_described(tmp_path / "b", 2)), stage="1") as first:
        refused = act(first, edit("a juggler", before="a dancer"))
        assert (refused.status, refused.body) == (400, b"focus is not changed in this stage. Judge it, or mark it.\n")
        assert act(first, verdict(), edit("a juggler", before="a dancer")).status == 400
        assert list(first.state.log.read()) == [], "not the verdict before it either"
        assert act(first, verdict()).status == 200
        assert first.ask("/api/items/0?reviewer=Ann").json["texts"]["focus"] == "a dancer"


def test_a_verdict_is_in_the_log_when_it_is_acknowledged(served: Served) -> None:
    answer = act(served, verdict()).json
    assert (answer["actions"][0]["saved"], answer["can_undo"]) == (True, True)
    assert [row.after for row in open_state(served.state.index.folder).log.read()] == ["good"]
    assert served.ask("/api/queue?reviewer=Ann").json["progress"]["done"] == 1


def test_ones_own_verdict_is_that_of_the_stage(served: Served) -> None:
    act(served, verdict(after="needs work"), {**verdict("u2"), "field": "verdict.2"})
    stages = ("", "1", "2", "4")
    found = [served.ask(f"/api/items/0?reviewer=Ann&stage={stage}").json for stage in stages]
    assert [one["own"]["verdict"] for one in found] == ["needs work", "needs work", "good", None]
    assert [one["verdict_field"] for one in found] == ["verdict", "verdict", "verdict.2", "verdict.4"]
    assert served.ask("/api/queue?reviewer=Ann&stage=2").json["progress"]["good"] == 1


def test_a_queue_holds_what_is_asked_for(served: Served) -> None:
    asked = {
        "video=v": [0, 1, 2, 3],
        "video=w": [],
        "word=caption+of+2": [2],
        "view=flagged": [2],
        "video=w&view=flagged": [],
        "stage=2": [],
    }
    assert {one: served.ask(f"/api/queue?reviewer=Ann&{one}").json["numbers"] for one in asked} == asked


def test_a_replacement_keeps_to_the_queue(served: Served) -> None:
    sent = {"reviewer": "Ann", "uid": "r1", "find": "dancer", "put": "juggler"}
    for asked, count in (({}, 4), ({"video": "w"}, 0), ({"view": "flagged"}, 1), ({"word": "caption of 2"}, 1), ({"stage": "2"}, 0)):
        assert served.ask("/api/replace", {**sent, **asked}).json["count"] == count, asked


def test_what_fails_by_the_disk_is_sent_again_and_what_is_wrong_is_not(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page tries again where the status is 500, and tells the person where it is 400."""

    def full(actions: object) -> None:
        raise StoreError("The disk is full. Free space.")

    monkeypatch.setattr(served.state, "record", full)
    answer = act(served, verdict())
    assert (answer.status, answer.body) == (500, b"The disk is full. Free space.\n")
    monkeypatch.undo()
    assert act(served, verdict()).json["actions"][0]["saved"]
    assert act(served, verdict("u2", after="fine")).status == 400


def test_of_two_who_edit_one_text_the_second_is_told_what_it_is_now(served: Served) -> None:
    assert act(served, edit("a juggler", before="a dancer")).json["actions"][0]["saved"]
    answer = act(served, edit("a singer", before="a dancer", uid="e2"), reviewer="Bob").json
    assert answer["actions"] == [{"saved": False, "current": "a juggler"}]


def test_undo_and_redo_say_where_they_were(served: Served) -> None:
    act(served, verdict(item="k3"))
    answer = served.ask("/api/undo", {"reviewer": "Ann", "uid": "z1"}).json
    assert (answer["number"], answer["action"]["value"], answer["can_redo"]) == (3, None, True)
    assert served.ask("/api/redo", {"reviewer": "Ann", "uid": "z2"}).json["action"]["value"] == "good"
    assert served.ask("/api/redo", {"reviewer": "Ann", "uid": "z3"}).json["action"] is None


def test_others_are_hidden_until_both_have_judged_and_disagree(served: Served) -> None:
    act(served, verdict("b1", after="unusable"), reviewer="Bob")
    assert served.ask("/api/items/0?reviewer=Ann").json["others"] is None
    act(served, verdict())
    assert [one["verdict"] for one in served.ask("/api/items/0?reviewer=Ann").json["others"]] == ["unusable"]
    assert served.ask("/api/queue?reviewer=Ann&view=disagreed").json["numbers"] == [0]


def test_a_dispute_of_others_is_not_seen_before_ones_own_verdict(served: Served) -> None:
    act(served, verdict("a1"), reviewer="Ann")
    act(served, verdict("b1", after="unusable"), reviewer="Bob")
    assert served.ask("/api/items/0?reviewer=Eve").json["others"] is None
    assert served.ask("/api/items/0?reviewer=Ann&stage=2").json["others"] is None  # judged in the first stage alone
    act(served, verdict("c1", after="good"), reviewer="Eve")
    assert [one["reviewer"] for one in served.ask("/api/items/0?reviewer=Eve").json["others"]] == ["Ann", "Bob"]


def test_others_are_shown_where_that_was_asked_for(tmp_path: Path) -> None:
    with serve(open_state(make_described(tmp_path / "a", 2)), is_blind=False) as served:
        act(served, verdict("b1", after="unusable"), reviewer="Bob")
        assert [one["reviewer"] for one in served.ask("/api/items/0?reviewer=Ann").json["others"]] == ["Bob"]


def test_history_hides_what_others_judged_but_not_what_they_changed(served: Served) -> None:
    act(served, verdict(), edit("a juggler", before="a dancer"), reviewer="Bob")
    assert [row["field"] for row in served.ask("/api/history/0?reviewer=Ann").json] == ["focus"]
    assert [row["field"] for row in served.ask("/api/history/0?reviewer=Bob").json] == ["verdict", "focus"]


def test_history_has_the_last_actions_on_an_item_in_their_order(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_HISTORY", 2)
    before = "a dancer"
    for number, after in enumerate(("one", "two", "three")):
        act(served, edit(after, before=before, uid=f"e{number}"))
        before = after
    act(served, edit("other", before="a dancer", uid="o", item="k1"))
    assert [row["after"] for row in served.ask("/api/history/0?reviewer=Ann").json] == ["two", "three"]


def test_many_changes_are_written_in_pieces_and_others_in_between(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_server, "MOST_ACTIONS", 3)
    pieces: list[int] = []
    record = served.state.record
    monkeypatch.setattr(served.state, "record", lambda actions: (pieces.append(len(actions)), record(actions))[1])
    asked = {"reviewer": "Ann", "uid": "r1", "find": "dancer", "put": "juggler", "apply": True}
    assert served.ask("/api/replace", asked).json["written"] == 4
    assert served.ask("/api/rollback", {"reviewer": "Ann", "uid": "r2", "batch": "r1"}).json["written"] == 4
    assert pieces == [3, 1, 3, 1]


def test_a_replacement_is_seen_before_it_is_done_and_taken_back_as_one(served: Served) -> None:
    asked = {"reviewer": "Ann", "uid": "r1", "find": "dancer", "put": "juggler"}
    seen = served.ask("/api/replace", asked).json
    assert (seen["count"], seen["written"], seen["changes"][0]["after"]) == (4, 0, "a juggler")
    assert served.ask("/api/replace", {**asked, "apply": True}).json["written"] == 4
    act(served, edit("two jugglers", before="a juggler", item="k1"))
    (batch,) = served.ask("/api/batches").json
    assert (batch["count"], batch["reviewer"]) == (4, "Ann")
    assert served.ask("/api/rollback", {"reviewer": "Bob", "uid": "r2", "batch": "r1"}).json["written"] == 3
    texts = [served.state.value(f"k{number}", "focus") for number in range(4)]
    assert texts == ["a dancer", "two jugglers", "a dancer", "a dancer"]
    assert served.ask("/api/rollback", {"reviewer": "Bob", "uid": "r3", "batch": "r1"}).json["written"] == 0  # k1 is still another's
    assert served.ask("/api/replace", {**asked, "find": "ance", "whole_words": True}).json["count"] == 0


def test_a_picture_is_asked_for_by_number(served: Served) -> None:
    answer = served.ask("/picture/1")
    assert answer.body == (served.state.index.folder / "one.jpg").read_bytes()
    assert answer.headers["content-type"] == "image/jpeg"


def test_every_answer_has_a_policy_without_inline_script(served: Served) -> None:
    for path in ("/", "/api/session", "/picture/0", "/nowhere"):
        headers = served.ask(path).headers
        assert "default-src 'none'; script-src 'self';" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert "<script>" not in served.ask("/").body.decode()


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    "path", ["/", "/static/review.js", "/api/session", "/api/queue?reviewer=Ann", "/api/items/0?reviewer=Ann", "/picture/0"]
)
def test_nothing_is_answered_without_the_token(served: Served, path: str) -> None:
    assert served.ask(path, token=None).status == 401
    assert served.ask(path, token="wrong").status == 401
    assert served.ask(path, token=TOKEN[:-1]).status == 401
    assert served.ask(path, token="é").status == 401


def test_nothing_is_written_without_the_token(served: Served) -> None:
    body = {"reviewer": "Ann", "actions": [verdict()]}
    assert served.ask("/api/actions", body, token=None).status == 401
    assert served.ask(f"/api/actions?token={TOKEN[:-1]}", body, token=None).status == 401
    assert served.ask(f"/api/actions?token={TOKEN}", body, token=None).status == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80", ""])
def test_another_host_is_refused(served: Served, host: str) -> None:
    assert served.ask("/", headers={"Host": host}).status in (400, 421)


def test_the_other_name_of_this_machine_is_not_refused(served: Served) -> None:
    assert served.ask("/", headers={"Host": f"localhost:{served.port}"}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_request_that_another_site_caused_is_refused(served: Served, headers: dict[str, str]) -> None:
    assert served.ask("/api/actions", {"reviewer": "Ann", "actions": [verdict()]}, headers=headers).status == 403
    assert list(served.state.log.read()) == []


def test_a_form_of_another_site_is_refused(served: Served) -> None:
    body = json.dumps({"reviewer": "Ann", "actions": [verdict()]}).encode()
    assert served.ask("/api/actions", body, headers={"Content-Type": "text/plain"}).status == 415


@pytest.mark.parametrize(
    "path",
    [
        "/picture/../keyframes.jsonl",
        "/picture/..%2Fkeyframes.jsonl",
        "/picture/%2e%2e/%2e%2e/etc/passwd",
        "/picture//etc/passwd",
        "/picture/-1",
        "/picture/4",
        "/picture/99999999999999999999",
        "/picture/one.jpg",
        "/static/../server.py",
        "/static/..%2Fserver.py",
        "/static/server.py",
        "/static/%2Fetc%2Fpasswd",
        "/video/0",
        "/keyframes.jsonl",
        "/review.sqlite",
    ],
)
def test_nothing_but_the_pictures_of_the_run_is_served(served: Served, path: str) -> None:
    assert served.ask(path).status == 404


@pytest.mark.parametrize("error", [StoreError("It is damaged."), InputError("It has gone.")])
def test_a_picture_that_cannot_be_read_is_not_there(served: Served, error: Exception) -> None:
    item = served.state.index.items[0]

    def read_picture() -> bytes:
        raise error

    served.state.index.items[0] = SimpleNamespace(media_type=item.media_type, read_picture=read_picture)  # type: ignore[index, call-overload]
    answer = served.ask("/picture/0")
    assert (answer.status, answer.body) == (404, f"{error}\n".encode())


def test_a_picture_that_is_a_link_is_not_served(served: Served, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    picture = served.state.index.folder / "one.jpg"
    picture.unlink()
    picture.symlink_to(tmp_path / "secret")
    assert served.ask("/picture/0").status == 404


def test_ten_megabytes_are_refused_by_what_the_header_states(served: Served) -> None:
    headers = {"Content-Length": "10000000"}
    assert served.ask("/api/actions", b"", headers=headers).status == 413
    assert list(served.state.log.read()) == []


def test_ten_megabytes_are_refused_where_no_header_states_them(served: Served) -> None:
    head = f"POST /api/actions HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nX-Review-Token: {TOKEN}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as client:
        client.sendall(head.encode())
        with suppress(BrokenPipeError, ConnectionResetError):  # it hangs up before all is sent
            for _ in range(9):  # 576 kB; the limit is 512
                client.sendall(chunk)
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")
    assert list(served.state.log.read()) == []


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        b"[]",
        {"reviewer": "Ann"},
        {"reviewer": "", "actions": [verdict()]},
        {"reviewer": "x" * 61, "actions": [verdict()]},
        {"reviewer": "Ann", "actions": []},
        {"reviewer": "Ann", "actions": [verdict()] * 101},
        {"reviewer": "Ann", "actions": ["a"]},
        {"reviewer": "Ann", "actions": [verdict(uid="../a")]},
        {"reviewer": "Ann", "actions": [verdict(item="../../etc/passwd")]},
        {"reviewer": "Ann", "actions": [verdict(after="superb")]},
        {"reviewer": "Ann", "actions": [{**verdict(), "after": 3}]},
        {"reviewer": "Ann", "actions": [edit("x" * 20_001, before="a dancer")]},
    ],
)
def test_what_is_no_action_is_refused_with_a_sentence(served: Served, body: Any) -> None:
    answer = served.ask("/api/actions", body)
    assert answer.status == 400
    assert answer.body.decode().strip().endswith((".", "nothing.", "._-"))
    assert list(served.state.log.read()) == []


@pytest.mark.parametrize("query", ["", "reviewer=", "reviewer=Ann&view=other", "reviewer=Ann&stage=9", f"reviewer=Ann&word={'x' * 501}"])
def test_a_queue_that_is_none_is_refused(served: Served, query: str) -> None:
    assert served.ask(f"/api/queue?{query}").status == 400


def test_a_long_address_is_refused(served: Served) -> None:
    assert served.ask(f"/api/queue?reviewer=Ann&word={'x' * 9000}").status == 414
    assert served.ask(f"/picture/{'9' * 5000}").status == 414  # Python reads no number of so many digits


def test_markup_in_every_field_stays_text(tmp_path: Path) -> None:
    with serve(open_state(make_described(tmp_path / "a", 3, text=MARKUP))) as served:
        name = f"Ann{MARKUP}"[:60]
        item = served.state.index.items[0].id
        act(served, edit(MARKUP, before=served.state.value(item, "focus") or "", item=item), reviewer=name)
        answer = served.ask(f"/api/items/0?reviewer={quote(name)}")
        assert answer.headers["content-type"] == "application/json"
        assert answer.json["texts"]["focus"] == MARKUP


# ---------------------------------------------------------------- many


def test_clients_that_act_at_once_are_all_in_the_log_in_order_and_once(tmp_path: Path) -> None:
    with serve(open_state(make_described(tmp_path / "a", 100))) as served:

        def work(client: int) -> None:
            for number in range(20):
                rows = [
                    {"uid": f"{client}-{number}-{row}", "item": f"k{row}", "field": "comment", "before": None, "after": f"{number} {row}"}
                    for row in range(50)
                ]
                assert act(served, *rows, reviewer=f"client {client}").status == 200
                if number % 5 == 0:  # the answer was lost, and it is sent again
                    assert act(served, *rows, reviewer=f"client {client}").status == 200

        with ThreadPoolExecutor(10) as clients:
            list(clients.map(work, range(10)))
        rows = list(served.state.log.read())
    assert [row.number for row in rows] == list(range(1, 10_001))
    for client in range(10):
        own = [row.after for row in rows if row.reviewer == f"client {client}"]
        assert own == [f"{number} {row}" for number in range(20) for row in range(50)]
