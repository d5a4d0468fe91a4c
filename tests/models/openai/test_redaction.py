"""Secrets that a server sends back: each is cut out in any usual spelling, and honest text stays as it is."""

from __future__ import annotations

import json
import time
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest

from vip.models.openai.redaction import REDACTED, remove_secrets

HOME = "http://box:8000/v1"
KEY = "sk-proj-Sup3rSecret"
LOGIN = "http://ann:p%40ss%23w%22rd%2BX1@box:8000/v1"
PASSWORD = 'p@ss#w"rd+X1'
TOKEN = "http://t0ken-0f-ann@box:8000/v1"
QUERY = "http://box:8000/v1?verify=true&code=aB3%2fdd+88&api=s3cret-value"
UNSEEN = (  # what text may hold and nobody sees, and marks on letters
    *"\u00ad\u034f\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u2060\u2065\u3164\ufe00\ufe0f\ufeff\uffa0\ufff0",
    *"\U0001d173\U000e0020\U000e0100\U000e0fff\u0332\u0301\u20e3",
)


@pytest.mark.parametrize("mark", UNSEEN, ids=lambda mark: f"{ord(mark):04x}")
@pytest.mark.parametrize(
    ("address", "secret"), [(HOME, KEY), (LOGIN, PASSWORD), (HOME, b64encode(KEY.encode()).decode()), (HOME, KEY.encode().hex())]
)
def test_a_secret_with_letters_between_that_nobody_sees_is_cut_out(address: str, secret: str, mark: str) -> None:
    for between in (mark, 3 * mark, f"{mark}\u200d"):
        assert remove_secrets(f"It is {between.join(secret)}, {secret}.", address, KEY) == f"It is {REDACTED}, {REDACTED}."


def test_letters_of_a_secret_that_nobody_sees_need_not_come_back() -> None:
    assert remove_secrets("It is passwort.", "http://ann:pass\u034fwort@box/v1", None) == f"It is {REDACTED}."


@pytest.mark.parametrize(
    "text",
    [
        "A family \U0001f468\u200d\U0001f469\u200d\U0001f467 and a heart \u2764\ufe0f.",
        "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645",  # Persian
        "\u0915\u094d\u200d\u0937 \u0939\u093f\u0928\u094d\u0926\u0940",  # Hindi
        "cafe\u0301 \u1112\u1161\u11ab\u3164",
        "s\u200dk\u200d-\u200dproj",
        "",
    ],
)
def test_text_without_a_secret_stays_as_it_is(text: str) -> None:
    assert remove_secrets(text, LOGIN, KEY) == text
    assert remove_secrets(f"{text} {KEY} {text}", LOGIN, KEY) == f"{text} {REDACTED} {text}"


@pytest.mark.parametrize(
    "told",
    [
        *("p%40ss%23w%22rd%2BX1", PASSWORD, json.dumps(PASSWORD)[1:-1], quote(PASSWORD, safe="")),
        *(encode(f"ann:{PASSWORD}".encode()).decode() for encode in (b64encode, urlsafe_b64encode)),
    ],
)
def test_a_password_is_cut_out_as_it_is_typed_as_it_is_sent_and_as_it_is_read(told: str) -> None:
    assert remove_secrets(f"It is {told}.", LOGIN, None) == f"It is {REDACTED}."


@pytest.mark.parametrize(
    ("address", "text", "shown"),
    [
        (TOKEN, "t0ken-0f-ann!", f"{REDACTED}!"),
        ("http://t0ken-0f-ann:@box/v1", "t0ken-0f-ann!", f"{REDACTED}!"),
        ("http://t0ken-0f-ann:X@box/v1", "t0ken-0f-ann!", f"{REDACTED}!"),
        ("http://t0k%65n-0f-ann@box/v1", "t0ken-0f-ann t0k%65n-0f-ann", f"{REDACTED} {REDACTED}"),
        (LOGIN, "ann and hannah", "ann and hannah"),
        ("http://ann@box/v1", "ann and hannah", "ann and hannah"),
        ("http://admin@box/v1", "the administrator", "the administrator"),
        ("http://user:pw@box/v1", "a user", "a user"),
        ("http://abcdefghijklmnop@box/v1", "abcdefghijklmnop", REDACTED),
    ],
)
def test_a_user_name_without_a_password_is_a_secret(address: str, text: str, shown: str) -> None:
    assert remove_secrets(text, address, None) == shown


@pytest.mark.parametrize(
    "told", ["aB3%2fdd+88", "aB3%2Fdd%2088", "aB3/dd+88", "aB3/dd 88", "s3cret-value", b64encode(b"aB3/dd 88").decode()]
)
def test_each_value_of_the_query_is_a_secret(told: str) -> None:
    assert remove_secrets(f"It is {told}.", QUERY, None) == f"It is {REDACTED}."


def test_a_short_value_of_the_query_is_a_word_like_any_other() -> None:
    assert remove_secrets('{"holds": true, "code": 1}', QUERY, None) == '{"holds": true, "code": 1}'
    azure = "http://box/v1?deployment=portrait&api-version=2024-02-01"
    assert remove_secrets("A portrait of 2024-02-01.", azure, None) == "A portrait of 2024-02-01."


def test_secrets_that_overlap_are_cut_out_as_one() -> None:
    assert remove_secrets("It is abcdefghij.", "http://ann:abcdefg@box/v1", "defghij") == f"It is {REDACTED}."


@pytest.mark.parametrize(
    "text",
    [
        "\u200d" * 100_000,
        f"{KEY[:-1]}\u200d" * 5_000,
        "\u200d".join(KEY) * 2_500,
        "s\u0301" * 50_000,
        b64encode(KEY.encode()).decode() * 4_000,
    ],
    ids=["marks", "almost", "keys", "letters", "base64"],
)
def test_a_long_answer_takes_no_longer_than_its_letters(text: str) -> None:
    start = time.process_time()
    assert KEY not in remove_secrets(text, QUERY, KEY).replace("\u200d", "")
    assert time.process_time() - start < 3
