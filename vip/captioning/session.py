"""The engines that describe, with their limits, cache and budget.

In: the settings and the environment. Out: a `Describer` with a client for each engine. One sentence names the engine
that `auto` stands for, before the first call; an engine that was named is never replaced by another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from vip import registry
from vip.captioning.described_folder import OFFLINE
from vip.captioning.describer import RECIPES, RICH, CaptionConfig, Describer
from vip.config import CaptionSettings
from vip.errors import BackendError, UsageError
from vip.llm.budget import DEFAULT_MAX_USD, Budget
from vip.llm.cache import AnswerCache
from vip.llm.client import EngineClient
from vip.llm.limiter import AdaptiveLimiter
from vip.llm.prices import Price, load_prices, price_of
from vip.prompts import load_prompts
from vip.protocols import Engine
from vip.wording import SaidOnce, option

KEY, ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"


class EngineChoice(NamedTuple):
    """`engine` and `base_url` as `vip.registry.engine` takes them; `reason` in words."""

    engine: str
    base_url: str | None
    reason: str
    is_auto: bool = False


def choose_engine(name: str, base_url: str | None, environment: Mapping[str, str]) -> EngineChoice:
    """Return `openai` for `auto` where a key or an address is set, else `offline`; any other name stays."""
    address = base_url or environment.get(ADDRESS, "").strip() or None
    if name != "auto":
        return EngineChoice(name, address if name.partition(":")[0] == "openai" else base_url, "it was asked for")
    if address:
        origin = option("base_url", _host(address)) if base_url else f"{ADDRESS} is set to {_host(address)}"
        return EngineChoice("openai", address, origin, is_auto=True)
    if environment.get(KEY, "").strip():
        return EngineChoice("openai", None, f"{KEY} is set", is_auto=True)
    return EngineChoice(OFFLINE, None, f"no key is set ({KEY}, or {option('base_url', 'URL')} for a server of your own)", is_auto=True)


def _host(address: str) -> str:
    """Return host and port of an address, without the user name and password that it may carry."""
    try:
        parts = urlsplit(address)
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or "an unreadable address"
    except ValueError:
        return "an unreadable address"


@dataclass(frozen=True, slots=True)
class CaptionSession:
    """A describer, and what the user should know about it."""

    describer: Describer
    answers: AnswerCache
    budget: Budget
    notes: tuple[str, ...]
    is_auto_offline: bool = False
    """Nothing but the missing key makes it offline: what another engine wrote is worth more."""

    def close(self) -> None:
        self.answers.close()


def open_session(
    settings: CaptionSettings, environment: Mapping[str, str], budget: Budget | None = None, *, shows_pictures: bool = True
) -> CaptionSession:
    """Load the engines and open what their answers are kept in.

    Args:
        budget: shared by several calls; its ceiling is set here.
        shows_pictures: whether the engine must see; False where the caller asks about texts, or looks itself.

    Raises:
        UsageError: settings that do not go together.
        BackendError: an engine is unknown, not installed, or cannot do what is asked of it.
        EngineError: an engine's server is missing.
        StoreError: the file of answers cannot be used.
    """
    prompts, prices = load_prompts(settings.prompts), load_prices(settings.prices)
    choices = _choose_engines(settings, environment)
    engines = {choice: _load_engine(choice, settings) for choice in dict.fromkeys(choices)}
    known = {choice: price_of(prices, engine.name.partition(":")[2], _address_of(engine)) for choice, engine in engines.items()}
    budget = budget or Budget()
    budget.max_usd, budget.given = _spending_limit(settings, engines, known), settings.max_usd is not None
    limiters: dict[str, AdaptiveLimiter] = {}
    clients = {
        choice: EngineClient(engine, budget, _limiter_for(engine, settings, limiters), price=known[choice])
        for choice, engine in engines.items()
    }
    config = CaptionConfig(settings.recipe, settings.language, settings.picture_side, settings.context, settings.topic, settings.schema)
    describer = Describer(clients[choices[0]], clients[choices[1]], prompts, config)
    _check_capabilities(describer, shows_pictures=shows_pictures)
    answers = AnswerCache(settings.cache)
    for client in clients.values():
        client.answers = answers
        client.recall()
        if client.price and not client.price.thinking:
            # a model that does not think needs less money put aside
            client.engine.capabilities = replace(client.engine.capabilities, thinking_tokens=0)
    auto = [SaidOnce(f"engine: {engines[choice].name}; {choice.reason}") for choice in engines if choice.is_auto]
    return CaptionSession(describer, answers, budget, (*auto[:1], *_ignored_settings(describer)), _is_auto_offline(choices[0]))


def is_auto_offline(settings: CaptionSettings, environment: Mapping[str, str]) -> bool:
    """Return whether `offline` describes only because no key is set."""
    return _is_auto_offline(_choose_engines(settings, environment)[0])


def _is_auto_offline(choice: EngineChoice) -> bool:
    return choice.is_auto and choice.engine == OFFLINE


def check_settings(settings: CaptionSettings, environment: Mapping[str, str], *, asks: bool = True) -> None:
    """Refuse what cannot work before any video is looked at; no model is loaded.

    Args:
        asks: the engines will be asked, so their keys have to be there.

    Raises:
        UsageError, BackendError, EngineError: as of `open_session`.
    """
    load_prompts(settings.prompts)
    prices = load_prices(settings.prices)
    choices = dict.fromkeys(_choose_engines(settings, environment))
    engines = {choice: engine for choice in choices if (engine := _load_quick_engine(choice, settings)) is not None}
    known = {choice: price_of(prices, engine.name.partition(":")[2], _address_of(engine)) for choice, engine in engines.items()}
    _spending_limit(settings, engines, known)
    if asks:
        for engine in engines.values():
            check_engine(engine)


def quick_describing_engine(settings: CaptionSettings, environment: Mapping[str, str]) -> Engine | None:
    """Return the engine that sees pictures, where making it loads no model; else None.

    Raises:
        UsageError, BackendError, EngineError: as of `open_session`.
    """
    return _load_quick_engine(_choose_engines(settings, environment)[0], settings)


def check_engine(engine: Engine) -> None:
    """Refuse an engine that cannot be asked now.

    Raises:
        EngineError: its key is missing.
    """
    if engine.capabilities.check is not None:
        engine.capabilities.check()


def _choose_engines(settings: CaptionSettings, environment: Mapping[str, str]) -> list[EngineChoice]:
    """Return the engine that sees pictures, and the one that writes FAMOuS."""
    if settings.structure_engine and settings.recipe == "direct" and not settings.topic:
        raise UsageError(
            f"{option('structure_engine')} has nothing to do in the recipe direct. Add {option('recipe', 'paper')}, or leave it out."
        )
    names = [settings.describe_engine or settings.engine, settings.structure_engine or settings.engine]
    return [choose_engine(name, settings.base_url, environment) for name in names]


def _load_engine(choice: EngineChoice, settings: CaptionSettings) -> Engine:
    return registry.engine(choice.engine, **_engine_settings(choice, settings))


def _load_quick_engine(choice: EngineChoice, settings: CaptionSettings) -> Engine | None:
    return registry.quick_engine(choice.engine, **_engine_settings(choice, settings))


def _engine_settings(choice: EngineChoice, settings: CaptionSettings) -> dict[str, Any]:
    return {
        "base_url": choice.base_url,
        "key_file": settings.key_file,
        "timeout_s": settings.request_timeout,
        "picture_detail": settings.picture_detail,
        "device": settings.device,
        "precision": settings.precision,
    }


def _address_of(engine: Engine) -> str | None:
    return engine.capabilities.address


def _spending_limit(
    settings: CaptionSettings, engines: Mapping[EngineChoice, Engine], known: Mapping[EngineChoice, Price | None]
) -> float | None:
    """Return the dollars that may be spent; None where no price is known."""
    if settings.max_usd is not None:
        unknown = [engine.name for choice, engine in engines.items() if known[choice] is None and _address_of(engine)]
        if unknown:
            raise UsageError(
                f"{option('max_usd')} cannot be kept: the price of {unknown[0]} is unknown. Give it in a file with {option('prices')}."
            )
        return settings.max_usd
    return DEFAULT_MAX_USD if any(known.values()) else None


def _limiter_for(engine: Engine, settings: CaptionSettings, limiters: dict[str, AdaptiveLimiter]) -> AdaptiveLimiter:
    """Return the limiter of the engine's server; an engine of this process names its own limit."""
    address = _address_of(engine)
    own = engine.capabilities.max_in_flight or (1 if engine.capabilities.measures else None)
    most = min(filter(None, (own, settings.concurrency)), default=None)
    limiter = limiters.get(address or "") or AdaptiveLimiter(most, settings.rpm, settings.tpm)
    if address:
        limiters[address] = limiter
    return limiter


def _check_capabilities(describer: Describer, *, shows_pictures: bool) -> None:
    """Refuse what an engine cannot do, before anything is asked."""
    seeing, config = describer.describing_client.engine, describer.config
    if shows_pictures and not seeing.capabilities.sees:
        raise BackendError(f"{seeing.name} takes no pictures. Name a model that does with {option('describe_engine')}.")
    if config.schema == RICH and seeing.capabilities.captions_only:
        raise BackendError(f"{seeing.name} writes captions only. Leave {option('schema', RICH)} out, or use another {option('engine')}.")
    for name in RECIPES[config.recipe]:
        engine = describer.client_for(name).engine
        if name != "caption" and engine.capabilities.captions_only:
            raise BackendError(
                f"{engine.name} writes captions only. Add {option('recipe', 'paper')} {option('structure_engine')},"
                " with a model that reads text."
            )
    for client in describer.clients:
        languages = client.engine.capabilities.languages
        if languages and config.language not in languages:
            raise BackendError(
                f"{client.engine.name} writes {' and '.join(languages)} only. Leave {option('language')} out,"
                f" or use another {option('engine')}."
            )


def _ignored_settings(describer: Describer) -> list[str]:
    if not describer.measures:
        return []
    engine, config = describer.describing_client.engine.name, describer.config
    return (
        [f"The engine {engine} reads no text: {option('topic')} and {option('context')} are left aside."]
        if config.topic or config.context
        else []
    )
