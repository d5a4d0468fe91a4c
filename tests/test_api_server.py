"""The test server, driven by the real openai library: what tests rely on must itself hold."""

from __future__ import annotations

import base64
import hashlib
import http.client
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types import Batch

from tests.api_server import BEHAVIOURS, CAPTION, CUT, FAMOUS, KEPT, ROOT, ApiServer, Asked
from vip.records import Famous

PATIENCE_S = 30
CHAT = "/v1/chat/completions"
SCHEMA = {
    "title": "Direct",
    "type": "object",
    "additionalProperties": False,
    "required": ["dense_caption", "famous", "certain", "kind", "score"],
    "properties": {
        "dense_caption": {"type": "string"},
        "famous": {"$ref": "#/$defs/Famous"},
        "certain": {"type": "boolean"},
        "kind": {"enum": ["indoors", "outdoors"]},
        "score": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "$defs": {"Famous": Famous.model_json_schema()},
}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


def client_of(server: ApiServer, *, max_retries: int = 0, key: str = "k") -> openai.OpenAI:
    return openai.OpenAI(api_key=key, base_url=server.base_url, max_retries=max_retries, timeout=PATIENCE_S)


def picture(number: int) -> tuple[bytes, str]:
    """The bytes of a picture, and the name under which the server speaks of it."""
    data = b"\xff\xd8\xff" + number.to_bytes(4, "big") * 100
    return data, f"picture {hashlib.sha256(data).hexdigest()[:12]}"


def question(text: str, *pictures: bytes, schema: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    urls = [f"data:image/jpeg;base64,{base64.b64encode(data).decode()}" for data in pictures]
    parts = [{"type": "text", "text": text}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]
    body = {"model": "tiny-vlm", "messages": [{"role": "user", "content": parts}], **more}
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": True}}
    return body


def said(server: ApiServer, body: dict[str, Any]) -> str:
    with client_of(server) as client:
        return client.chat.completions.create(**body).choices[0].message.content or ""


def connection_to(server: ApiServer) -> closing[http.client.HTTPConnection]:
    return closing(http.client.HTTPConnection(server.base_url.split("/")[2], timeout=PATIENCE_S))


def post(connection: http.client.HTTPConnection, content: bytes) -> http.client.HTTPResponse:
    connection.request("POST", CHAT, content)
    return connection.getresponse()


def outcome(client: openai.OpenAI, body: dict[str, Any]) -> str:
    try:
        client.chat.completions.create(**body)
    except openai.APIStatusError as exc:
        return str(exc.status_code)
    except openai.APIConnectionError:
        return "none"
    return "200"


# ---------------------------------------------------------------- whose answer it is


def test_json_is_made_from_the_schema_and_names_the_picture_that_was_shown(server: ApiServer) -> None:
    data, name = picture(1)
    answer = json.loads(said(server, question("What is it?", data, schema=SCHEMA)))
    famous = answer.pop("famous")
    assert answer == {"dense_caption": f"dense_caption of {name}", "certain": True, "kind": "indoors", "score": 0}
    assert famous == {key: [f"objects of {name}"] if key == "objects" else f"{key} of {name}" for key in Famous.model_fields}


def test_a_schema_in_words_is_answered_as_one_in_the_request(server: ApiServer) -> None:
    data, name = picture(2)
    text = f"Describe it.\n\nAnswer with one JSON object and nothing else. It must fit this JSON schema:\n{json.dumps(SCHEMA)}\nThanks."
    assert json.loads(said(server, question(text, data)))["famous"]["mood"] == f"mood of {name}"


def test_a_question_without_picture_is_answered_for_the_one_that_its_text_names(server: ApiServer) -> None:
    _, name = picture(3)
    answer = said(server, question(f"Structure this: a dense caption of {name}.", schema=Famous.model_json_schema()))
    assert Famous.model_validate_json(answer).focus == f"focus of {name}"


def test_where_no_picture_is_known_the_answers_are_the_fixed_ones(server: ApiServer) -> None:
    assert said(server, question("Describe.")) == CAPTION
    assert json.loads(said(server, question("Structure.", schema=Famous.model_json_schema()))) == FAMOUS
    assert json.loads(said(server, question("Answer with one JSON object."))) == FAMOUS


def test_captions_name_their_picture_only_with_marks() -> None:
    data, name = picture(4)
    with ApiServer() as server:
        assert said(server, question("Describe.", data)) == CAPTION
        server.set(marks=True)
        assert said(server, question("Describe.", data)) == f"{CAPTION} It shows {name}."


# ---------------------------------------------------------------- what it notes


def test_what_is_asked_can_be_looked_at_during_and_after() -> None:
    data, _ = picture(5)
    with ApiServer() as server:
        said(server, question("One?"))
        assert [asked.text for asked in server.chats] == ["One?"]
        said(server, question("Two?", data))
    assert [asked.text for asked in server.chats] == ["One?", "Two?"]
    assert server.chats[0].headers["authorization"] == "Bearer k"
    assert base64.b64decode(server.chats[1].body["messages"][0]["content"][1]["image_url"]["url"].partition(",")[2]) == data
    assert server.stats().chats == 2


def test_only_the_first_requests_keep_their_pictures(server: ApiServer) -> None:
    with client_of(server) as client:
        for number in range(KEPT + 2):
            client.chat.completions.create(**question("Describe.", picture(number)[0]))
    urls = [chat.body["messages"][0]["content"][1]["image_url"]["url"] for chat in server.chats]
    assert [url.endswith(CUT) for url in urls] == [False] * KEPT + [True] * 2
    assert server.stats().questions == KEPT + 2


def test_what_was_answered_twice_is_seen(server: ApiServer) -> None:
    server.set(behaviours=("500", "refusal", "ok"))
    with client_of(server) as client:
        assert [outcome(client, question("A?")) for _ in range(3)] == ["500", "200", "200"]
        stats = server.stats()
        assert (stats.questions, stats.most_asked, stats.most_answered, stats.most_usable) == (1, 3, 2, 1)
        outcome(client, question("B?"))
        outcome(client, question("A?"))
    stats = server.stats()
    assert (stats.questions, stats.usable, stats.most_usable) == (2, 2, 2)
    assert stats.behaviours == {"500": 1, "refusal": 1, "ok": 3}
    assert stats.statuses == {"500": 1, "200": 4}


def test_most_in_flight_is_seen_and_can_be_limited() -> None:
    with ApiServer(delay_s=4, at_most=3, retry_after=7) as server, client_of(server) as client:
        with ThreadPoolExecutor(8) as pool:
            outcomes = sorted(pool.map(lambda number: outcome(client, question(str(number))), range(8)))
        assert outcomes == ["200"] * 3 + ["429"] * 5
        assert server.stats().peak == 3
        server.set(at_most=0)
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(**question("One more?"))
        assert caught.value.response.headers["retry-after"] == "7"


# ---------------------------------------------------------------- how it misbehaves


def test_a_share_misbehaves_by_the_content_of_the_question_and_not_by_the_order() -> None:
    def outcomes(order: range, seed: int) -> dict[int, str]:
        with ApiServer(mix={"500": 0.2, "drop": 0.1}, seed=seed) as server, client_of(server) as client:
            return {number: outcome(client, question(f"Question {number}?")) for number in order}

    first = outcomes(range(300), 1)
    assert first == outcomes(range(299, -1, -1), 1)
    assert first != outcomes(range(300), 2)
    counts = [list(first.values()).count(name) for name in ("500", "none", "200")]
    assert 40 <= counts[0] <= 80, counts
    assert 15 <= counts[1] <= 45, counts


def test_another_try_of_the_same_question_may_go_well() -> None:
    with ApiServer(mix={"500": 0.5}) as server, client_of(server, max_retries=20) as client:
        assert {outcome(client, question(f"Question {number}?")) for number in range(20)} == {"200"}
        assert server.stats().statuses["500"] > 5


@pytest.mark.parametrize("name", sorted(BEHAVIOURS))
def test_after_any_misbehaviour_the_next_answer_is_whole(name: str) -> None:
    with ApiServer(name, "ok", late_s=0.01) as server, client_of(server) as client:
        with suppress(openai.OpenAIError, ValueError):
            client.chat.completions.create(**question("Describe."))
        assert client.chat.completions.create(**question("Describe.")).choices[0].message.content == CAPTION


def test_a_misspelt_behaviour_is_refused() -> None:
    with pytest.raises(ValueError, match=r'no behaviour "refused".*refusal'):
        ApiServer("refused")
    with ApiServer() as server, pytest.raises(ValueError, match='no behaviour "refused"'):
        server.set(mix={"refused": 0.5})


def test_half_an_answer_and_noise_are_what_they_say() -> None:
    body = json.dumps(question("Describe.")).encode()
    with ApiServer("reset", "nonsense", "nonsense_stream") as server:
        with connection_to(server) as connection, pytest.raises(http.client.IncompleteRead):
            post(connection, body).read()
        for kind in ("application/json", "text/event-stream"):
            with connection_to(server) as connection, post(connection, body) as answer:
                assert (answer.status, answer.headers["content-type"]) == (200, kind)
                with pytest.raises(UnicodeDecodeError):
                    answer.read().decode()
    assert server.stats().statuses == {"none": 1, "200": 2}


def test_parameters_that_are_unknown_are_named() -> None:
    with ApiServer("max_tokens_unknown") as server, client_of(server) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(**question("Describe.", max_tokens=9))
        assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "max_tokens")
        assert "Use 'max_completion_tokens' instead" in str(caught.value)
        assert outcome(client, question("Describe.", max_completion_tokens=9)) == "200"


def test_a_schema_can_be_accepted_and_not_kept() -> None:
    data, _ = picture(6)
    with ApiServer("not_enforced", "outside_schema") as server:
        assert said(server, question("Describe.", data, schema=SCHEMA)) == CAPTION
        assert set(json.loads(said(server, question("Describe.", data, schema=SCHEMA)))) == {*SCHEMA["required"]} - {"score"}


def test_how_long_to_wait_is_said() -> None:
    def waits(server: ApiServer) -> dict[str, str]:
        with connection_to(server) as connection, post(connection, json.dumps(question("Describe.")).encode()) as answer:
            return {name.lower(): value for name, value in answer.getheaders() if name.lower().startswith(("retry", "x-"))}

    with ApiServer("429", "busy", "429", headers={"x-ratelimit-remaining-requests": "3"}) as server:
        assert waits(server) == {"retry-after-ms": "1", "x-ratelimit-remaining-requests": "3"}
        assert waits(server) == {"retry-after": "1", "x-ratelimit-remaining-requests": "3"}
        server.set(retry_after=2.5, headers={})
        assert waits(server) == {"retry-after": "2.5"}


def test_only_the_right_key_is_let_in() -> None:
    with ApiServer(key="right") as server:
        for path in (lambda client: client.models.list(), lambda client: client.chat.completions.create(**question("Describe."))):
            with client_of(server, key="wrong") as client, pytest.raises(openai.AuthenticationError) as caught:
                path(client)
            assert caught.value.code == "invalid_api_key"
            with client_of(server, key="right") as client:
                path(client)


def test_tokens_are_as_told_or_not_said_at_all() -> None:
    with ApiServer(usage=(500, 60)) as server, client_of(server) as client:
        usage = client.chat.completions.create(**question("Describe.")).usage
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (500, 60)
        server.set(usage=None)
        assert client.chat.completions.create(**question("Describe.")).usage is None


def test_a_client_that_does_not_wait_gets_no_answer_and_its_question_does_not_count_as_answered() -> None:
    with ApiServer("late", "ok", late_s=0.5) as server, client_of(server) as client:
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=0.1).chat.completions.create(**question("Describe."))
        wait_for(lambda: server.stats().statuses == {"none": 1})
        assert outcome(client, question("Describe.")) == "200"
        assert server.stats().most_answered == 1


# ---------------------------------------------------------------- its life


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_a_server_that_goes_away_comes_back_at_the_same_address_and_forgets_nothing(server: ApiServer) -> None:
    address = server.base_url
    server.set(delay_s=5)
    with client_of(server) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome, client, question("In flight?"))
        wait_for(lambda: len(server.chats) == 1)
        server.kill()
        assert waiting.result(PATIENCE_S) == "none"
        assert outcome(client, question("Gone?")) == "none"
        server.restart()
        server.set(delay_s=0)
        assert outcome(client, question("Back?")) == "200"
    assert server.base_url == address
    assert [chat.text for chat in server.chats] == ["In flight?", "Back?"]


def test_it_ends_with_the_process_that_started_it() -> None:
    code = "import sys, time; from tests.api_server import ApiServer\n"
    code += "with ApiServer() as server: print(server._process.pid, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        os.kill(pid, 0)
        process.kill()
    wait_for(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].startswith(" Z")
    except OSError:
        return True


def test_a_subclass_decides_about_each_chat_in_the_process_of_the_test() -> None:
    class Choosy(ApiServer):
        def next_behaviour(self, asked: Asked) -> str:
            return "500" if "bad" in asked.text else super().next_behaviour(asked)

    with Choosy("ok") as server, client_of(server) as client:
        assert [outcome(client, question(text)) for text in ("good", "bad", "good")] == ["200", "500", "200"]


def test_bodies_may_come_in_chunks_over_one_connection(server: ApiServer) -> None:
    body = json.dumps(question("Describe.", picture(7)[0])).encode()
    with connection_to(server) as connection:
        for _ in range(3):
            pieces = (body[start : start + 100] for start in range(0, len(body), 100))
            connection.request("POST", CHAT, pieces, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
            with connection.getresponse() as answer:
                assert json.load(answer)["choices"][0]["message"]["content"] == CAPTION
    assert server.stats().connections == 1


def test_what_is_no_request_is_refused(server: ApiServer) -> None:
    for content in (b"{", b"[]", b'{"model": "tiny-vlm"}'):
        with connection_to(server) as connection, post(connection, content) as answer:
            assert answer.status == 400
    with connection_to(server) as connection:
        connection.request("GET", "/v1/nowhere")
        with connection.getresponse() as answer:
            assert answer.status == 404


# ---------------------------------------------------------------- files and batches


def row(name: str, body: Mapping[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    return {"custom_id": name, "method": "POST", "url": CHAT, "body": body or question(f"Describe {name}."), **changed}


def started(client: openai.OpenAI, rows: list[Any], **metadata: str) -> Batch:
    lines = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in rows)
    file = client.files.create(file=("rows.jsonl", io.BytesIO(lines.encode())), purpose="batch")
    return client.batches.create(input_file_id=file.id, endpoint=CHAT, completion_window="24h", metadata=metadata)


def ended(client: openai.OpenAI, batch: Batch) -> Batch:
    end = time.monotonic() + PATIENCE_S
    while batch.status not in {"completed", "failed", "expired", "cancelled"}:
        assert time.monotonic() < end, batch
        time.sleep(0.01)
        batch = client.batches.retrieve(batch.id)
    return batch


def counts(batch: Batch) -> tuple[int, int, int]:
    assert batch.request_counts is not None
    return batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed


def lines_of(client: openai.OpenAI, file: str | None) -> dict[str, dict[str, Any]]:
    """Rows of a result file by their custom_id; none where there is no file."""
    rows = [json.loads(line) for line in client.files.content(file).iter_lines()] if file else []
    return {one["custom_id"]: one for one in rows}


def test_a_batch_answers_every_row_with_its_own_picture(server: ApiServer) -> None:
    pictures = {f"key-{number}": picture(number) for number in range(30)}
    with client_of(server) as client:
        batch = started(client, [row(key, question("?", data, schema=SCHEMA)) for key, (data, _) in pictures.items()], vip="tag")
        assert batch.status == "validating"
        batch = ended(client, batch)
        assert (batch.status, counts(batch), batch.metadata, batch.error_file_id) == ("completed", (30, 30, 0), {"vip": "tag"}, None)
        found = lines_of(client, batch.output_file_id)
    texts = {key: json.loads(one["response"]["body"]["choices"][0]["message"]["content"])["dense_caption"] for key, one in found.items()}
    assert texts == {key: f"dense_caption of {name}" for key, (_, name) in pictures.items()}
    assert list(texts) != list(pictures), "the order of the results is not that of the rows"
    assert batch.usage is not None
    assert (batch.usage.input_tokens, batch.usage.output_tokens) == (330, 210)
    assert (server.stats().rows, server.stats().chats) == (30, 0)


def test_a_batch_goes_through_the_documented_states() -> None:
    with ApiServer(batch_s=0.6) as server, client_of(server) as client:
        batch = started(client, [row("a")])
        seen = [batch.status]
        while seen[-1] != "completed":
            batch = client.batches.retrieve(batch.id)
            seen += [batch.status] if batch.status != seen[-1] else []
    states = ["validating", "in_progress", "finalizing", "completed"]
    assert seen == [state for state in states if state in seen]
    moments = [batch.created_at, batch.in_progress_at, batch.finalizing_at, batch.completed_at]
    assert None not in moments
    assert moments == sorted(moments, key=int)


def test_rows_that_fail_stand_in_the_error_file_with_their_response() -> None:
    with ApiServer("500", "429", "refusal", "length", "drop", "ok") as server, client_of(server) as client:
        batch = ended(client, started(client, [row(key) for key in "abcdef"]))
        assert (batch.status, counts(batch)) == ("completed", (6, 3, 3))
        good, bad = lines_of(client, batch.output_file_id), lines_of(client, batch.error_file_id)
    assert set(good) == {"c", "d", "f"}
    assert {key: one["response"]["status_code"] for key, one in bad.items()} == {"a": 500, "b": 429, "e": 500}
    assert "message" in bad["b"]["response"]["body"]["error"]
    assert good["c"]["response"]["body"]["choices"][0]["message"]["refusal"]


def test_rows_that_expire_are_told_from_those_that_were_answered() -> None:
    with ApiServer(batch_expires_after=2) as server, client_of(server) as client:
        batch = ended(client, started(client, [row(key) for key in "abcde"]))
        assert (batch.status, counts(batch)) == ("expired", (5, 2, 3))
        assert batch.expired_at is not None
        assert set(lines_of(client, batch.output_file_id)) == {"a", "b"}
        bad = lines_of(client, batch.error_file_id)
    assert {key: (one["response"], one["error"]["code"]) for key, one in bad.items()} == dict.fromkeys("cde", (None, "batch_expired"))


@pytest.mark.parametrize(
    ("rows", "errors"),
    [
        ([row("a"), row("a"), row("b")], [("duplicate_custom_id", 2)]),
        ([row("a"), "{half"], [("invalid_json_line", 2)]),
        ([row("a", method="GET")], [("invalid_method", 1)]),
        ([row("a", url="/v1/embeddings")], [("mismatched_url", 1)]),
        ([row("a"), row("b", {**question("?"), "model": "big-vlm"})], [("mismatched_model", 2)]),
        ([{"custom_id": "a", "method": "POST", "url": CHAT}], [("missing_required_parameter", 1)]),
        ([row("a"), row("b"), row("c"), row("d")], [("too_many_tasks", None)]),
    ],
)
def test_a_batch_with_a_wrong_row_fails_as_a_whole(rows: list[Any], errors: list[tuple[str, int | None]]) -> None:
    with ApiServer(batch_rows=3) as server, client_of(server) as client:
        batch = ended(client, started(client, rows))
    assert batch.status == "failed"
    assert batch.errors is not None
    assert [(error.code, error.line) for error in batch.errors.data or []] == errors
    assert server.stats().rows == 0


def test_a_batch_beyond_the_queue_fails_until_there_is_room() -> None:
    with ApiServer(batch_queue=3, batch_s=1.5) as server, client_of(server) as client:
        first = started(client, [row("a"), row("b")])
        wait_for(lambda: client.batches.retrieve(first.id).status != "validating")
        server.set(batch_s=0.03)
        second = ended(client, started(client, [row("c"), row("d")]))
        assert second.errors is not None
        assert [error.code for error in second.errors.data or []] == ["token_limit_exceeded"]
        assert ended(client, first).status == "completed"
        assert ended(client, started(client, [row("c"), row("d")])).status == "completed"


def test_a_batch_can_fail_for_no_reason_of_its_own() -> None:
    with ApiServer(batch_fails=True) as server, client_of(server) as client:
        batch = ended(client, started(client, [row("a")]))
    assert (batch.status, batch.output_file_id) == ("failed", None)


def test_a_batch_can_be_cancelled() -> None:
    with ApiServer(batch_s=1) as server, client_of(server) as client:
        batch = started(client, [row("a")])
        assert client.batches.cancel(batch.id).status == "cancelling"
        assert ended(client, batch).status == "cancelled"
        with pytest.raises(openai.ConflictError):
            client.batches.cancel(batch.id)


def test_batches_are_listed_in_pages_with_the_newest_first(server: ApiServer) -> None:
    with client_of(server) as client:
        made = [started(client, [row("a")], number=str(number)).id for number in range(7)]
        assert [batch.id for batch in client.batches.list(limit=3)] == made[::-1]
        pages = [asked for asked in server.requests if asked.path == "/v1/batches" and not asked.body]
        assert len(pages) == 3
        assert [batch.id for batch in client.batches.list(limit=3).data] == made[:3:-1]
        with pytest.raises(openai.BadRequestError):
            client.batches.list(limit=101)


def test_files_come_back_as_they_were_sent_until_they_are_deleted(server: ApiServer) -> None:
    data = bytes(range(256)) * 5000 + b"\r\n--almost a boundary\r\n"
    with client_of(server) as client:
        file = client.files.create(file=("any.bin", data), purpose="user_data")
        assert (file.bytes, file.filename, file.purpose) == (len(data), "any.bin", "user_data")
        assert client.files.content(file.id).content == data
        assert client.files.delete(file.id).deleted
        for ask in (client.files.retrieve, client.files.content, client.files.delete):
            with pytest.raises(openai.NotFoundError, match="No such File object"):
                ask(file.id)
        with pytest.raises(openai.NotFoundError, match="No batch found"):
            client.batches.retrieve("batch_none")


def test_files_that_are_too_large_or_no_jsonl_are_refused() -> None:
    with ApiServer(file_bytes=1000) as server, client_of(server) as client:
        client.files.create(file=("a.jsonl", b"x" * 1000), purpose="batch")
        with pytest.raises(openai.APIStatusError, match="larger than the 1000 maximum") as caught:
            client.files.create(file=("a.jsonl", b"x" * 1001), purpose="batch")
        assert caught.value.status_code == 413
        with pytest.raises(openai.BadRequestError, match=r"Must be \.jsonl"):
            client.files.create(file=("a.txt", b"x"), purpose="batch")


def test_a_missing_input_file_fails_the_batch_and_not_the_call(server: ApiServer) -> None:
    with client_of(server) as client:
        batch = client.batches.create(input_file_id="file-none", endpoint=CHAT, completion_window="24h")
        assert ended(client, batch).status == "failed"
