"""Cost of a question: dated prices by model and address, and the tokens of a question that is still to be asked.

In: prices.toml beside this file, and before it a file of the user's in the same form; a model's name, the address of its
server. Out: a Price, or None where it is unknown. None is not zero: a model at home has no price by its name, and neither has
a fine-tuned one.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PositiveInt, ValidationError

from vip.errors import UsageError, did_you_mean, validation_message
from vip.files import read_named
from vip.llm.tokens import Detail, PictureRule, QwenPatches
from vip.llm.tokens import picture_tokens as picture_tokens  # part of this module's API, as the next one
from vip.llm.tokens import text_tokens as text_tokens
from vip.protocols import Picture, Request
from vip.records import RecordPart
from vip.untrusted import parse_toml

BUILT_IN = Path(__file__).with_name("prices.toml")
MOST_BYTES = 4 * 2**20  # of a file of prices
MESSAGE_TOKENS = 12  # around a prompt: who speaks, where it ends, that an answer is due; 8 to 11 on bills
UNKNOWN_RULE = QwenPatches(rule="qwen")  # where a model's is not known: one without a cap in any size that vip sends
UNKNOWN_SIZE_PX = (1024, 1024)  # where a picture's header cannot be read: the largest that vip sends
PRIVATE_NAMES = (".local", ".localhost", ".internal", ".lan", ".home.arpa")
FORM = "Each [[price]] has models, usd_in and usd_out, in dollars per million tokens."

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)\Z")

Usd = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


def _host(address: str | None) -> tuple[str, int | None]:
    """Return host and port of an address with or without a scheme; no host where there is no address."""
    parts = urlsplit(address if address and "://" in address else f"//{address or ''}")
    return (parts.hostname or "").rstrip("."), parts.port


def _check_host(address: str) -> str:
    if not _host(address)[0]:
        raise ValueError("write the host of a server, such as openrouter.ai or localhost:8000")
    return address


class PriceEntry(RecordPart):
    """One [[price]] of a file."""

    models: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    """Names as the server knows them, `*` for any letters. A name stands for its dated snapshots too."""
    address: Annotated[str, AfterValidator(_check_host)] | None = None
    """Host of the server, with or without a port; only there the price holds."""
    usd_in: Usd
    """For a million tokens, as the next two."""
    usd_out: Usd
    usd_cached_in: Usd | None = None
    batch: Annotated[float, Field(ge=0, le=1, strict=True)] = 1.0
    """What a request costs in a batch, as a share of the price."""
    thinking: Annotated[int, Field(ge=0, strict=True)] = 0
    """Tokens that the model is expected to spend on thinking before an answer, billed as output."""
    context: PositiveInt | None = None
    """Tokens that question and answer may have together."""
    as_of: date | None = None
    """When the price was read; the date of the file where it does not say."""
    picture: PictureRule | None = None


class PriceFile(RecordPart):
    """A file of prices."""

    as_of: date | None = None
    source: str = ""
    price: tuple[PriceEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one model."""

    model: str
    """The name or pattern under which it was found."""
    usd_in: float
    """For a million tokens, as `usd_out` and `usd_cached_in`."""
    usd_out: float
    batch: float
    thinking: int
    as_of: str | None
    picture: PictureRule | None
    usd_cached_in: float | None = None
    context: int | None = None
    address: str | None = None

    def usd(self, tokens_in: int, tokens_out: int, *, cached_in: int = 0, batch: bool = False) -> float:
        """Return what so many tokens cost.

        Args:
            cached_in: how many of `tokens_in` the server had read before.
        """
        cached = self.usd_in if self.usd_cached_in is None else self.usd_cached_in
        usd = ((tokens_in - cached_in) * self.usd_in + cached_in * cached + tokens_out * self.usd_out) / 1e6
        return usd * self.batch if batch else usd


@dataclass(frozen=True, slots=True)
class PriceList:
    """The user's prices, and those that come with vip."""

    own: tuple[Price, ...]
    built_in: tuple[Price, ...]
    as_of: str
    """When those that come with vip were put together; each has a date of its own."""


def load_prices(path: Path | None = None) -> PriceList:
    """Return the prices that come with vip, and before them those of `path`.

    Raises:
        UsageError: the file is missing, is no TOML, has an unknown key or a value that is no price.
    """
    built_in = _read_prices(BUILT_IN)
    return PriceList(_prices_of(_read_prices(path)) if path else (), _prices_of(built_in), str(built_in.as_of))


def price_of(prices: PriceList, model: str, address: str | None) -> Price | None:
    """Return the price of a model at a server, by the longest name that fits, the user's first; None where it is not known.

    Args:
        address: None where it is the provider's own, or not known.
    """
    host, port = _host(address)
    for group in (prices.own, prices.built_in if not _is_private(host) else ()):
        found = [price for price in group if _fits(price, model, host, port)]
        if found:
            return max(found, key=lambda price: (len(price.model), price.address is not None))
    return None


def request_tokens(request: Request, price: Price | None, detail: Detail) -> int:
    """Return tokens of a question: text, schema and pictures. Pictures are not decoded, only their headers are read."""
    rule = price.picture if price and price.picture else UNKNOWN_RULE
    schema = text_tokens(json.dumps(request.schema)) if request.schema is not None else 0
    pictures = sum(picture_tokens(rule, *_size_px(picture), detail) for picture in request.pictures)
    return MESSAGE_TOKENS + text_tokens(request.prompt) + schema + pictures


def _size_px(picture: Picture) -> tuple[int, int]:
    import PIL.Image

    try:
        with PIL.Image.open(io.BytesIO(picture.data)) as image:
            return image.size
    except OSError:  # raised by Pillow for data that is no picture; the server will refuse it
        return UNKNOWN_SIZE_PX


def _fits(price: Price, model: str, host: str, port: int | None) -> bool:
    pattern, name = price.model.casefold(), model.casefold().removeprefix("models/")
    if not (fnmatchcase(name, pattern) or _SNAPSHOT.sub("", name) == pattern):
        return False
    if price.address is None:
        return True
    wanted, wanted_port = _host(price.address)
    return not host or ((host == wanted or host.endswith(f".{wanted}")) and wanted_port in (None, port))


def _is_private(host: str) -> bool:
    """Return whether a server runs at home or within a company, where names of models say nothing about money."""
    if not host:
        return False
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(PRIVATE_NAMES)


def _prices_of(file: PriceFile) -> tuple[Price, ...]:
    return tuple(
        Price(
            model=model,
            as_of=str(entry.as_of or file.as_of) if entry.as_of or file.as_of else None,
            **{name: getattr(entry, name) for name in PriceEntry.model_fields if name not in ("models", "as_of")},
        )
        for entry in file.price
        for model in entry.models
    )


def _read_prices(path: Path) -> PriceFile:
    try:
        content = parse_toml(read_named(path, most_bytes=MOST_BYTES))
        return PriceFile.model_validate(content)
    except OSError as exc:
        raise UsageError(f"The prices in {path} cannot be read: {exc.strerror}. Name another file.") from exc
    except ValidationError as exc:
        raise UsageError(f"{_describe_problem(exc.errors()[0], path, content)} {FORM}") from exc
    except ValueError as exc:
        raise UsageError(f"The prices in {path} are not valid TOML: {exc}. {FORM}") from exc


def _describe_problem(problem: Any, path: Path, content: dict[str, Any]) -> str:
    """Say what is wrong with which key of which entry of the file."""
    place = [str(part) for part in problem["loc"]]
    where = str(path)
    if place[:1] == ["price"] and len(place) > 1:
        names = content["price"][int(place[1])].get("models") if isinstance(content["price"][int(place[1])], dict) else None
        where += f", [[price]] number {int(place[1]) + 1}" + (f" ({names})" if names else "")
        place = place[2:]
    key = ".".join(place)
    if problem["type"] == "missing":
        return f'{where} lacks "{key}".'
    if problem["type"] == "extra_forbidden":
        known = PriceEntry.model_fields if "price" in problem["loc"] else PriceFile.model_fields
        return f'{where} has an unknown key "{key}".{did_you_mean(key, known)}'
    return f"{where}: {key} = {problem['input']!r}: {validation_message(problem)}."
