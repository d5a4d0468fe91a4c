"""Prices: those that ship, those of the user, and which one holds for a model at an address."""

from __future__ import annotations

import io
import os
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vip.errors import UsageError
from vip.llm.prices import MESSAGE_TOKENS, Price, load_prices, price_of, request_tokens
from vip.protocols import Picture, Request
from vip.records import Famous

OPENAI, OPENROUTER = "https://api.openai.com/v1", "https://openrouter.ai/api/v1"
SHIPPED = load_prices()
MINE = """
as_of = 2026-11-20
[[price]]
models = ["gpt-5-mini", "house-*"]
usd_in = 1
usd_out = 2.5
"""


def own(folder: Path, text: str) -> Path:
    path = folder / "prices.toml"
    path.write_text(text, encoding="utf-8")
    return path


def found(model: str, address: str | None = OPENAI) -> Price:
    price = price_of(SHIPPED, model, address)
    assert price is not None
    return price


def picture(width: int, height: int, form: str) -> Picture:
    file = io.BytesIO()
    Image.fromarray(np.zeros((height, width, 3), np.uint8)).save(file, form)
    return Picture(file.getvalue(), f"image/{form.lower()}")


# ---------------------------------------------------------------- what ships


def test_every_price_that_ships_has_a_date_that_has_been() -> None:
    assert len(SHIPPED.built_in) > 40
    for price in SHIPPED.built_in:
        assert price.as_of is not None
        assert date(2025, 1, 1) <= date.fromisoformat(price.as_of) <= date.fromisoformat(SHIPPED.as_of)
        assert price.usd_in <= price.usd_out
        assert price.usd_cached_in is None or price.usd_cached_in <= price.usd_in
        assert price.batch in (0.5, 1.0)


def test_no_model_has_two_prices_at_one_address() -> None:
    places = [(price.model, price.address) for price in SHIPPED.built_in]
    assert len(places) == len(set(places))


@pytest.mark.parametrize(
    ("model", "usd_in", "usd_out"),
    [
        ("gpt-5-mini", 0.25, 2.0),
        ("gpt-5-mini-2025-08-07", 0.25, 2.0),
        ("gpt-5-mini-latest", 0.25, 2.0),
        ("GPT-5-Mini", 0.25, 2.0),
        ("gpt-5", 1.25, 10.0),
        ("gpt-4o-2024-11-20", 2.5, 10.0),
        ("gpt-4o-2024-05-13", 5.0, 15.0),
        ("gpt-4o-mini-2024-07-18", 0.15, 0.6),
        ("claude-sonnet-4-5-20250929", 3.0, 15.0),
        ("claude-opus-5-5", 4.0, 20.0),
        ("claude-opus-5", 5.0, 25.0),
        ("models/gemini-2.5-flash", 0.3, 2.5),
        ("gemini-2.5-flash-lite", 0.1, 0.4),
    ],
)
def test_a_model_has_the_price_of_the_longest_name_that_fits(model: str, usd_in: float, usd_out: float) -> None:
    assert (found(model).usd_in, found(model).usd_out) == (usd_in, usd_out)


@pytest.mark.parametrize(
    "model",
    ["gpt-5-pro", "gpt-5-mini-turbo", "gpt-5-2025", "ft:gpt-4o-mini-2024-07-18:acme::x1", "gpt-4o-audio-preview", "my-gpt-4o", "llava", ""],
)
def test_a_model_that_only_sounds_like_another_has_no_price(model: str) -> None:
    assert price_of(SHIPPED, model, OPENAI) is None


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:8000/v1",
        "localhost:8000",
        "http://127.0.0.1:1234/v1",
        "http://10.0.0.7/v1",
        "http://192.168.1.9:8000",
        "http://[::1]:8000/v1",
        "http://gpu-box:8000/v1",
        "http://models.lan/v1",
        "http://models.lan./v1",
        "http://llm.internal",
        "http://nas.home.arpa:8000/v1",
        "http://box.local",
        "http://a.localhost",
    ],
)
def test_a_model_at_home_is_not_priced_by_its_name(address: str) -> None:
    assert price_of(SHIPPED, "gpt-4o", address) is None


@pytest.mark.parametrize("address", [None, OPENAI, "https://acme.openai.azure.com/openai/v1", "https://eu.api.openai.com/v1"])
def test_a_model_in_the_open_is_priced_by_its_name(address: str | None) -> None:
    assert price_of(SHIPPED, "gpt-4o", address) == found("gpt-4o")


def test_a_price_of_one_server_holds_only_there() -> None:
    model = "qwen/qwen2.5-vl-72b-instruct"
    assert price_of(SHIPPED, model, OPENROUTER) is not None
    for elsewhere in ("https://example.com/v1", "https://notopenrouter.ai/v1", "https://openrouter.ai.example.com/v1", "localhost"):
        assert price_of(SHIPPED, model, elsewhere) is None


def test_free_models_of_openrouter_cost_nothing_and_others_named_so_are_not_known() -> None:
    free = price_of(SHIPPED, "qwen/qwen2.5-vl-32b-instruct:free", OPENROUTER)
    assert free is not None
    assert free.usd(10**6, 10**6) == 0
    assert price_of(SHIPPED, "something:free", "https://example.com") is None


# ---------------------------------------------------------------- dollars


def test_dollars_are_for_a_million_tokens_and_half_in_a_batch() -> None:
    price = found("gpt-5-mini")
    assert price.usd(1_000_000, 0) == pytest.approx(0.25)
    assert price.usd(1377, 290) == pytest.approx(0.00034425 + 0.00058)
    assert price.usd(1377, 290, batch=True) == pytest.approx((0.00034425 + 0.00058) / 2)
    assert price.usd(1000, 0, cached_in=1000) == pytest.approx(0.000025)


def test_where_no_batch_is_offered_nothing_is_taken_off() -> None:
    price = found("openai/gpt-5-mini", OPENROUTER)
    assert price.usd(1000, 1000, batch=True) == price.usd(1000, 1000)


@pytest.mark.slow
@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_more_tokens_never_cost_less(tokens_in: int, tokens_out: int, more: int) -> None:
    price = found("gpt-4.1-nano")
    assert 0 <= price.usd(tokens_in, tokens_out) <= price.usd(tokens_in + more, tokens_out)
    assert price.usd(tokens_in, tokens_out) <= price.usd(tokens_in, tokens_out + more)


# ---------------------------------------------------------------- the user's own


def test_the_users_prices_go_before_those_that_ship(tmp_path: Path) -> None:
    prices = load_prices(own(tmp_path, MINE))
    mine = price_of(prices, "gpt-5-mini-2025-08-07", OPENAI)
    assert mine is not None
    assert (mine.usd_in, mine.usd_out, mine.as_of, mine.batch) == (1.0, 2.5, "2026-11-20", 1.0)
    assert price_of(prices, "house-7b", OPENAI) is not None
    assert price_of(prices, "gpt-5", OPENAI) == found("gpt-5")


@pytest.mark.parametrize("pattern", ["gpt-5-mini-2025-08-07", "gpt-5-mini", "gpt-5-*", "*mini*", "*"])
@pytest.mark.parametrize("address", [OPENAI, None])
def test_a_price_of_the_users_holds_however_exact_one_that_ships_is(pattern: str, address: str | None, tmp_path: Path) -> None:
    prices = load_prices(own(tmp_path, f'[[price]]\nmodels = ["{pattern}"]\nusd_in = 77\nusd_out = 88\n'))
    price = price_of(prices, "gpt-5-mini-2025-08-07", address)
    assert price is not None
    assert (price.usd_in, price.usd_out) == (77, 88)


@pytest.mark.parametrize(("pattern", "model"), [("My-Model", "my-model"), ("my-model", "My-Model"), ("Qwen/*", "Qwen/Qwen3-VL")])
def test_capitals_do_not_hide_a_price(pattern: str, model: str, tmp_path: Path) -> None:
    """Without one there is no ceiling."""
    price = price_of(load_prices(own(tmp_path, f'[[price]]\nmodels = ["{pattern}"]\nusd_in = 77\nusd_out = 88\n')), model, None)
    assert price is not None
    assert (price.usd_in, price.usd_out) == (77, 88)


def test_an_own_server_is_priced_by_its_address_before_a_price_for_all(tmp_path: Path) -> None:
    text = MINE + '[[price]]\nmodels = ["*"]\naddress = "localhost:8000"\nusd_in = 0.1\nusd_out = 0.1\n'
    prices = load_prices(own(tmp_path, text))
    here = price_of(prices, "anything", "http://localhost:8000/v1")
    assert here is not None
    assert here.usd_in == 0.1
    assert price_of(prices, "anything", "http://localhost:9000/v1") is None
    assert price_of(prices, "gpt-5", "http://10.0.0.1/v1") is None, "which comes with vip"
    elsewhere = price_of(prices, "house-7b", "http://10.0.0.1/v1")
    assert elsewhere == price_of(prices, "house-7b", OPENAI)


def test_the_more_exact_of_the_users_prices_holds(tmp_path: Path) -> None:
    text = MINE + '[[price]]\nmodels = ["house-7b"]\nusd_in = 7\nusd_out = 7\n'
    price = price_of(load_prices(own(tmp_path, text)), "house-7b", OPENAI)
    assert price is not None
    assert price.usd_in == 7


def test_of_two_prices_of_one_name_that_of_the_server_holds(tmp_path: Path) -> None:
    text = MINE + '[[price]]\nmodels = ["house-*"]\naddress = "llm.example.com"\nusd_in = 7\nusd_out = 7\n'
    prices = load_prices(own(tmp_path, text))
    for address, usd_in in (("https://llm.example.com/v1", 7.0), ("https://other.example.com/v1", 1.0)):
        price = price_of(prices, "house-7b", address)
        assert price is not None
        assert price.usd_in == usd_in


def test_a_price_with_a_date_of_its_own_keeps_it(tmp_path: Path) -> None:
    text = MINE + '[[price]]\nmodels = ["other"]\nusd_in = 7\nusd_out = 7\nas_of = 2026-01-02\n'
    assert [price.as_of for price in load_prices(own(tmp_path, text)).own] == ["2026-11-20", "2026-11-20", "2026-01-02"]


def test_what_was_read_before_costs_as_much_where_nothing_is_taken_off(tmp_path: Path) -> None:
    (price, _) = load_prices(own(tmp_path, MINE)).own
    assert price.usd(1_000_000, 0, cached_in=400_000) == 1.0


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("usd_in = 1", "usd_in = -1", r"\[\[price\]\] number 1 \(.*gpt-5-mini.*usd_in = -1: "),
        ("usd_in = 1", "usd_in = nan", "usd_in = nan"),
        ("usd_in = 1", "usd_in = inf", "usd_in = inf"),
        ("usd_in = 1", 'usd_in = "1"', "usd_in = '1'"),
        ("usd_in = 1", "usd_in = true", "usd_in = True"),
        ("usd_in = 1\n", "", 'lacks "usd_in"'),
        ("usd_in = 1", "usd_in = 1\nusd_inn = 2", 'unknown key "usd_inn".*Did you mean "usd_in"'),
        ("usd_in = 1", 'usd_in = 1\naddress = "http://"', "address = .*openrouter.ai"),
        ("usd_in = 1", 'usd_in = 1\naddress = "host:port"', "address = "),
        ("usd_in = 1", "usd_in = 1\nbatch = 2", "batch = 2"),
        ("usd_in = 1", 'usd_in = 1\npicture = { rule = "dice" }', "picture = .*dice"),
        ("usd_in = 1", 'usd_in = 1\npicture = { rule = "fixed" }', 'lacks "picture.fixed.tokens"'),
        ('["gpt-5-mini", "house-*"]', "[]", "models = "),
        ("[[price]]", "[[prices]]", 'unknown key "prices".*Did you mean "price"'),
        ("[[price]]", "[[price", "not valid TOML"),
        ("[[price]]", "price = [1]\n[x]", "number 1: .* = 1"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_a_sentence_that_names_the_key(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert before in MINE
    path = own(tmp_path, MINE.replace(before, after))
    with pytest.raises(UsageError, match=words) as caught:
        load_prices(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_file_or_endless_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with (tmp_path / "huge.toml").open("wb") as file:
        file.truncate(2**33)
    for name, why in (("none", "No such file"), ("pipe", "it is no regular file"), ("huge", "it is larger than 4,194,304 bytes")):
        with pytest.raises(UsageError, match=rf"{name}\.toml cannot be read: {why}"):
            load_prices(tmp_path / f"{name}.toml")


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize(("form", "share"), [("JPEG", 1.0), ("JPEG", 0.5), ("PNG", 1.0), ("PNG", 0.5), ("WEBP", 1.0)])
def test_the_size_of_a_picture_is_read_from_its_header(form: str, share: float) -> None:
    whole = picture(1024, 576, form)
    one = Picture(whole.data[: int(len(whole.data) * share)], whole.media_type)  # a half cannot be decoded
    assert request_tokens(Request("describe", "", pictures=(one,)), found("gpt-5-mini"), "high") == MESSAGE_TOKENS + 692


def test_a_question_costs_its_text_its_schema_and_each_picture() -> None:
    price, prompt, one = found("gpt-4o"), "What is in these pictures?", picture(1024, 1024, "PNG")
    bare = request_tokens(Request("describe", prompt), price, "high")
    assert bare == 12 + 7, "what is around a prompt, four words of one token, one of two, and the mark"
    assert request_tokens(Request("describe", prompt, pictures=(one, one)), price, "high") == bare + 2 * 765
    assert request_tokens(Request("describe", prompt, pictures=(one,)), price, "low") == bare + 85
    assert request_tokens(Request("structure", prompt, schema=Famous.model_json_schema()), price, "high") > bare + 100


def test_pictures_are_counted_where_the_model_or_the_size_is_not_known() -> None:
    assert request_tokens(Request("describe", "", pictures=(picture(1024, 1024, "PNG"),)), None, "high") > 1000
    assert request_tokens(Request("describe", "", pictures=(Picture(b"no picture", "image/jpeg"),)), found("gpt-5.4-mini"), "high") == 1241


@pytest.mark.parametrize("address", [None, "http://localhost:8000/v1", "http://10.0.0.7/v1", "https://llm.example.com/v1"])
def test_a_price_of_your_own_without_an_address_holds_for_every_server(address: str | None, tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('[[price]]\nmodels = ["house-*"]\nusd_in = 0.2\nusd_out = 0.8\n')
    price = price_of(load_prices(path), "house-7b", address)
    assert price is not None
    assert (price.usd_in, price.usd_out) == (0.2, 0.8)


def test_a_price_that_comes_with_vip_does_not_hold_at_home() -> None:
    assert price_of(load_prices(), "gpt-5", "http://localhost:8000/v1") is None
    assert price_of(load_prices(), "gpt-5", "https://api.openai.com/v1") is not None
