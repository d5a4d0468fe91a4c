"""Whatever an engine, a batch or the file of answers gives: what is kept, written and shown obeys nobody."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.llm.test_client import FAMOUS, PROMPTS, request
from vip.errors import ReplyError, StoreError, VipError
from vip.llm.budget import Budget
from vip.llm.cache import AnswerCache
from vip.llm.client import EngineAnswer, EngineClient
from vip.llm.limiter import AdaptiveLimiter
from vip.llm.prices import Price
from vip.llm.replies import check_reply
from vip.models.openai.engine import OpenAIEngine
from vip.protocols import LONGEST_ANSWER, EngineCapabilities, RateLimits, Reply, Request
from vip.records import Famous

PRICE = Price("m", usd_in=1.0, usd_out=10.0, batch=0.5, thinking=0, as_of="2026-01-01", picture=None)
ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\r\nvip: done"
SHOWN = "gnp.exe vip: done"
TEXTS = st.text(st.characters(exclude_categories=())) | st.lists(
    st.sampled_from(list("a\x1b[]0;m\x07\x9b\x90\x9c\n\u202e\u2066\x00\u2028"))
).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS, lambda one: st.lists(one) | st.dictionaries(TEXTS, one)
)


def is_plain(text: str) -> bool:
    """True for a text without control characters, marks that turn its direction, and half pairs."""
    return not {unicodedata.category(letter) for letter in text} & {"Cc", "Cs", "Zl", "Zp"} and not set(text) & set(
        "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


class Gives:
    """An engine of somebody else, which gives one thing whatever it is asked."""

    name, capabilities = "theirs:m", EngineCapabilities()

    def __init__(self, reply: Any) -> None:
        self.reply, self.asked = reply, 0

    async def generate(self, request: Request) -> Reply:
        self.asked += 1
        return self.reply  # type: ignore[no-any-return]

    async def close(self) -> None:
        pass


def room_of(reply: Any, answers: AnswerCache | None = None) -> EngineClient:
    return EngineClient(Gives(reply), Budget(5.0), AdaptiveLimiter(4), answers, PRICE, wait_s=0.0)


def ask(client: EngineClient, question: Request | None = None, prompt: str = "structure") -> EngineAnswer:
    return asyncio.run(client.ask(question or request(), PROMPTS[prompt], {}))


def caption(client: EngineClient) -> EngineAnswer:
    return ask(client, Request("caption", "Describe."), "caption")


def outcome(asks: Callable[[], EngineAnswer]) -> str:
    """What comes of a question: as it goes to descriptions.jsonl, with its escapes read; or the sentence."""
    try:
        answer = asks()
    except VipError as exc:
        return str(exc)
    value = answer.value.model_dump_json() if isinstance(answer.value, Famous) else json.dumps(answer.value)
    return "".join(strings(json.loads(value))) + "".join(f"{call.model}{call.engine}" for call in answer.calls)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from strings(one)


# ---------------------------------------------------------------- any engine


@pytest.mark.slow
@given(TEXTS, TEXTS)
def test_any_caption_and_any_name_of_a_model_are_plain(text: str, model: str) -> None:
    assert is_plain(outcome(lambda: caption(room_of(Reply(text, model)))))


@given(TEXTS, st.lists(TEXTS), st.booleans(), st.booleans())
def test_any_record_is_plain(text: str, objects: list[str], in_ascii: bool, broken: bool) -> None:
    spelt = json.dumps({**FAMOUS, "focus": text, "objects": objects}, ensure_ascii=in_ascii)
    reply = Reply(spelt.replace('": ', '":\x1b[0m\n ', 1) if broken else spelt, "m")
    assert is_plain(outcome(lambda: ask(room_of(reply))))


@pytest.mark.slow
@given(JSON)
def test_any_json_is_a_record_or_one_sentence(value: Any) -> None:
    with pytest.raises(VipError) as failed:
        ask(room_of(Reply(json.dumps(value), "m")))
    assert is_plain(str(failed.value))


@given(TEXTS)
def test_what_was_checked_stays_as_it_is(text: str) -> None:
    once = check_reply(Reply(text, "m"), "e")
    assert check_reply(once, "e") == once


def test_names_in_json_are_cleaned_as_texts_are() -> None:
    assert check_reply(Reply(json.dumps({ESCAPES: [{ESCAPES: 1}]}), "m"), "e").text == json.dumps({SHOWN: [{SHOWN: 1}]})


def test_a_break_within_a_string_does_not_hide_what_its_numbers_spell() -> None:
    text = '{"focus": "a\nb", "action": "\\u001b[2J\\u202ex", "mood": "m", "objects": [], "setting": "s"}'
    value = ask(room_of(Reply(text, "m"))).value
    assert isinstance(value, Famous)
    assert (value.focus, value.action) == ("a b", "x")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[" * 100_000,
            '{"focus": ' * 9_000,
            '{"focus": ' + "9" * 5000 + "}",
            '{"number": 18446744073709551616}',
            '{"a": NaN}',
            '{"a": 1e999}',
        ),
        *('{"' + ESCAPES.replace("\r\n", "") + '": 1}', json.dumps({ESCAPES: 1}), '"\\ud83d"', "\ud83d", "null", "5"),
    ],
)
def test_what_is_no_record_is_one_sentence(text: str) -> None:
    with pytest.raises(ReplyError) as failed:
        ask(room_of(Reply(text, "m")))
    assert failed.value.kind == "schema"
    assert is_plain(str(failed.value))
    assert len(str(failed.value)) < 500


@pytest.mark.parametrize("reply", [None, "text", 5, {"text": "a"}, Reply(None, "m"), Reply(b"bytes", "m"), Reply(["a"], "m")])  # type: ignore[arg-type]
def test_what_is_no_reply_costs_one_item(reply: Any) -> None:
    with pytest.raises(ReplyError, match="theirs:m sent an answer that is no text") as failed:
        caption(room_of(reply))
    assert failed.value.kind == "broken"


def test_an_answer_without_end_is_asked_for_once_and_counted() -> None:
    client = room_of(Reply("a" * (LONGEST_ANSWER + 1), "m"))
    with pytest.raises(ReplyError, match="100,001 letters") as failed:
        caption(client)
    assert failed.value.kind == "too_long"
    with pytest.raises(ReplyError) as counted:
        check_reply(Reply("a" * (LONGEST_ANSWER + 1), "m", 11, 7), "theirs:m")
    assert (counted.value.tokens_in, counted.value.tokens_out) == (11, 7)
    assert client.engine.asked == 1  # type: ignore[attr-defined]
    assert client.budget.usage.unsure_usd > 0, "the server may have charged for it"
    assert caption(room_of(Reply("a" * LONGEST_ANSWER, "m"))).value == "a" * LONGEST_ANSWER


@pytest.mark.parametrize("tokens", [-1, 2**53 + 1, 2**70, 1.5, "5", True, [1], float("nan")])
def test_tokens_that_cannot_be_are_not_known(tokens: Any) -> None:
    client = room_of(Reply("A dog.", "m", tokens, tokens))
    (call,) = caption(client).calls
    assert (call.tokens_in, call.tokens_out) == (None, None)
    assert 0 <= client.budget.usage.usd < 1


@pytest.mark.parametrize("model", ["m" * 1_000_000, "", "\x1b[2J", None, 5])
def test_a_model_without_a_name_is_called_as_its_engine(model: Any) -> None:
    assert caption(room_of(Reply("A dog.", model))).calls[0].model == "theirs:m"


def test_limits_that_are_none_are_left_out() -> None:
    assert check_reply(Reply("a", "m", limits="soon"), "e").limits is None  # type: ignore[arg-type]
    assert check_reply(Reply("a", "m", limits=RateLimits(5)), "e").limits == RateLimits(5)


# ---------------------------------------------------------------- the file of answers


def test_what_is_kept_is_plain(answers: AnswerCache, path: Path) -> None:
    client = room_of(Reply(json.dumps({**FAMOUS, "focus": ESCAPES}), f"m {ESCAPES}"), answers)
    ask(client)
    with sqlite3.connect(path) as file:
        ((text, model),) = file.execute("select text, model from answers").fetchall()
    file.close()
    assert is_plain(text)
    assert json.loads(text)["focus"] == SHOWN
    assert model == f"m {SHOWN}"


def put(path: Path, question: bytes, *values: Any) -> None:
    """Write a row past vip."""
    with sqlite3.connect(path) as file:
        file.execute("insert into answers values (?, 'e', ?, ?, ?, ?, '2026')", (question, *values))
    file.close()


def test_what_a_stranger_put_into_the_file_is_cleaned(answers: AnswerCache, path: Path) -> None:
    client = room_of(Reply(json.dumps(FAMOUS), "m"), answers)
    put(path, client.digest(request()), "m" * 1000, json.dumps({**FAMOUS, "focus": ESCAPES}), "many", -5)
    answer = ask(client)
    assert isinstance(answer.value, Famous)
    assert answer.value.focus == SHOWN
    (call,) = answer.calls
    assert (call.model, call.tokens_in, call.tokens_out, call.cached) == ("theirs:m", None, None, True)


@pytest.mark.parametrize("text", ["[" * 100_000, "a" * (LONGEST_ANSWER + 1), b"\xff\xfe", 5, "{}", '{"focus": ' + "9" * 5000 + "}"])
def test_what_cannot_be_used_in_the_file_is_asked_for_again(text: Any, answers: AnswerCache, path: Path) -> None:
    client = room_of(Reply(json.dumps(FAMOUS), "m"), answers)
    put(path, client.digest(request()), "m", text, 1, 1)
    assert ask(client).value == Famous.model_validate(FAMOUS)
    assert client.engine.asked == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["a" * 5_000_000, sqlite3.Binary(b"a" * 5_000_000)])
def test_a_row_that_fills_the_memory_is_one_sentence(text: Any, answers: AnswerCache, path: Path) -> None:
    client = room_of(Reply(json.dumps(FAMOUS), "m"), answers)
    put(path, client.digest(request()), "m", text, 1, 1)
    with pytest.raises(StoreError, match=r"answers\.sqlite .*too big.*--cache"):
        ask(client)


@pytest.mark.parametrize(
    "statements",
    [
        "create view answers as with recursive n(x) as (select 1 union all select x + 1 from n) select x as question, x as text from n",
        "create table answers (a); create trigger evil after insert on answers begin delete from answers; end",
        "create virtual table answers using fts5(question)",
        "create table other (a)",
        'create table "\x1b[2J\u202eother" (a)',
    ],
)
def test_a_database_that_does_more_than_hold_answers_is_one_sentence(statements: str, path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.executescript(statements)
    file.close()
    with pytest.raises(StoreError, match=r"holds no answers of vip \(it holds the .*--cache") as failed:
        AnswerCache(path)
    assert is_plain(str(failed.value))


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["fifo", "link", "dangling", "folder"])
def test_what_is_no_file_in_its_place_is_one_sentence(kind: str, suffix: str, path: Path, tmp_path: Path) -> None:
    place = path.with_name(path.name + suffix)
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(tmp_path / "elsewhere")
    if kind == "link":
        (tmp_path / "elsewhere").write_text("precious")
    with pytest.raises(StoreError, match=f"{'it is a link' if place.is_symlink() else 'is no regular file'}.*--cache"):
        AnswerCache(path)
    assert (tmp_path / "elsewhere").exists() == (kind == "link")
    assert kind != "link" or (tmp_path / "elsewhere").read_text() == "precious"


def test_a_cache_folder_that_is_a_link_of_the_user_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    AnswerCache(tmp_path / "cache" / "answers.sqlite").close()
    assert (tmp_path / "disk" / "answers.sqlite").is_file()


@pytest.mark.parametrize(
    "traits", ["[" * 100_000, "5", '{"form": 5}', '{"form": "evil", "length": "messages"}', '{"api_key": "x"}', b"\xff", None]
)
def test_what_the_file_says_of_a_server_is_not_believed(traits: Any, answers: AnswerCache, path: Path) -> None:
    engine = OpenAIEngine("tiny", base_url="http://localhost:9/v1")
    before = engine.build_body(request())
    client = EngineClient(engine, Budget(5.0), AdaptiveLimiter(4), answers)
    with sqlite3.connect(path) as file:
        file.execute("create table if not exists servers (engine text primary key, traits text) without rowid")
        file.execute("insert into servers values (?, ?)", (client.server, traits if traits is not None else 5))
    file.close()
    client.recall()
    assert engine.build_body(request()) == before
    assert set(engine.traits) == {"form", "length", "temperature"}
