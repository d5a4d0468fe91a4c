"""The settings of a batch in its state: it continues without its options, and never mixes videos that were done in two ways.

In: the settings given now. Out: the settings that hold. Those that the rows depend on stay as they were; of all others the last given
holds. Keys, passwords and the content of files are not stored: settings with one have to be given again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from vip.config import BatchSettings, CaptionSettings, ExtractSettings, Settings, SettingsT, from_keywords
from vip.corpus.inputs.rows import shown
from vip.corpus.settings import BatchConfig, with_model
from vip.corpus.state import StateDatabase
from vip.dataset.sanitize import without_secrets
from vip.errors import StoreError, UsageError
from vip.protocols import Observer
from vip.records import RecordPart
from vip.wording import option

BEGUN = "begun"  # in the state: all settings as last given
ROWS = "settings"  # in the state: the settings that the rows depend on
OF_LISTS = ("weights", "seed")  # needed only while a list is read
NOT_OF_ROWS = {"batch": {"sample", "seed", "weights"}, "extract": set[str](), "caption": {"key_file", "base_url", "topic"}}
ENGINES = ("engine", "describe_engine", "structure_engine")
SECRET_PARAMETERS = frozenset(
    {"password", "videopassword", "ap_password", "twofactor", "client_certificate_password", "http_headers", "username", "ap_username"}
)
"""Of yt-dlp."""


class _Begun(RecordPart):
    """What `BEGUN` holds."""

    extract: dict[str, Any]
    batch: dict[str, Any]
    caption: dict[str, Any]
    withheld: tuple[str, ...]
    """Settings that are not stored, since they hold a secret."""


class _Setting(NamedTuple):
    """A setting that the rows depend on."""

    name: str
    """In the state and in messages."""
    value: Any
    is_given: bool


def resolve_settings(state: StateDatabase, out: str, given: BatchConfig, observer: Observer, *, with_list: bool) -> BatchConfig:
    """Return the settings that hold for this run.

    Args:
        with_list: the command is complete; else settings that it does not name stay as they were.

    Raises:
        UsageError: a setting that the rows depend on has changed; or a secret that was given before is missing.
    """
    rows, begun = _rows(state), _begun(state)
    choices = given
    if rows is None or begun is None:
        return given.resolve_auto(observer)
    if not with_list:
        _refuse_other_draws(begun, given.batch)
        choices = _restore(begun, given)
    choices = replace(choices, captioning=_resolve_models(choices.captioning, begun.caption))
    choices = choices.resolve_auto(observer, begun.extract, begun.caption)
    other = [
        f"{one.name} {rows[one.name]}, now {one.value}"
        for one in _row_settings(choices, given)
        if (with_list or one.is_given) and rows.get(one.name, one.value) != one.value
    ]
    if other:
        raise UsageError(f"{shown(out)} holds a batch with other settings ({'; '.join(other)}). Give the same ones, or choose another -o.")
    return choices


def tables_of(state: StateDatabase) -> dict[str, dict[str, Any]]:
    """Return all settings as last given, by command, without secrets; an empty dict before the batch was begun."""
    begun = _begun(state)
    return {} if begun is None else {"extract": begun.extract, "batch": begun.batch, "caption": begun.caption}


def _begun(state: StateDatabase) -> _Begun | None:
    """Return all settings as last given; None before the batch was begun.

    Raises:
        StoreError: they are damaged.
    """
    found = state.get(BEGUN)
    try:
        return None if found is None else _Begun.model_validate(found)
    except ValidationError as exc:
        raise _damaged(state) from exc


def _rows(state: StateDatabase) -> dict[str, Any] | None:
    """Return the settings that the rows depend on; errors as of `_begun`."""
    found = state.get(ROWS)
    if found is not None and not isinstance(found, dict):
        raise _damaged(state)
    return found


def _damaged(state: StateDatabase) -> StoreError:
    return StoreError(f"{state.home}: damaged (its settings are none of vip). Begin the batch anew with another -o.")


def remember(state: StateDatabase, choices: BatchConfig) -> None:
    """Store the settings of this run for the next ones."""
    if state.get(ROWS) is None:
        state.put(ROWS, {one.name: one.value for one in _row_settings(choices, choices)})
    tables, withheld = {}, []
    for table, settings in _tables(choices):
        tables[table], missing = _without_secrets(settings)
        withheld += missing
    state.put(BEGUN, {**tables, "withheld": list(dict.fromkeys(withheld))})


def _tables(choices: BatchConfig) -> Iterator[tuple[str, Settings]]:
    yield "extract", choices.extraction
    yield "batch", choices.batch
    yield "caption", choices.captioning


def _row_settings(choices: BatchConfig, given: BatchConfig) -> Iterator[_Setting]:
    """Yield the settings that the rows depend on; a name that both keyframes and captions have gets a prefix."""
    seen = set()
    for (table, settings), (_, named) in zip(_tables(choices), _tables(given), strict=True):
        if table == "caption" and not choices.batch.caption:
            continue
        for name, value in settings.model_dump(mode="json", exclude=NOT_OF_ROWS[table]).items():
            unique = f"caption_{name}" if name in seen else name
            seen.add(unique)
            yield _Setting(unique, without_secrets(value) if isinstance(value, str) else value, name in named.model_fields_set)


# ---------------------------------------------------------------- storing


def _without_secrets(settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """Return the settings as JSON without those that hold secrets, and the names of the latter."""
    values, withheld = {}, []
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if _is_secret(name, value):
            withheld.append(name)
        else:
            values[name] = str(value.absolute()) if isinstance(value, Path) else value
    return values, withheld


def _is_secret(name: str, value: Any) -> bool:
    texts = [value] if isinstance(value, str) else value if isinstance(value, tuple) else []
    if any(without_secrets(text) != text for text in texts):
        return True
    if name != "ytdlp_opts" or not value:
        return False
    from vip.download.options import parse_ytdlp_options

    return not SECRET_PARAMETERS.isdisjoint(parse_ytdlp_options(value))


# ---------------------------------------------------------------- restoring


def _restore(begun: _Begun, given: BatchConfig) -> BatchConfig:
    named = given.batch.model_fields_set | given.extraction.model_fields_set | given.captioning.model_fields_set
    if missing := [name for name in begun.withheld if name not in named]:
        options = " and ".join(option(name) for name in missing)
        raise UsageError(f"This batch was begun with a secret in {options}, which is not kept. Give {options} again.")
    return BatchConfig(
        _merge(BatchSettings, begun.batch, given.batch),
        _merge(ExtractSettings, begun.extract, given.extraction),
        _merge(CaptionSettings, begun.caption, given.captioning),
    )


def _merge(kind: type[SettingsT], begun: dict[str, Any], given: SettingsT) -> SettingsT:
    """Return the settings of before, with those given now over them."""
    now = {name: getattr(given, name) for name in given.model_fields_set}
    before = {name: value for name, value in begun.items() if name in kind.model_fields}
    if "runner" in now:
        before.pop("ray_address", None)  # belongs to the other runner
    return from_keywords(kind, {**before, **now})


def _resolve_models(settings: CaptionSettings, begun: dict[str, Any]) -> CaptionSettings:
    """Return the settings with the models of the batch: `openai` stands for the model of it that the batch began with."""
    changed = {}
    for name in ENGINES:
        named, had = getattr(settings, name), begun.get(name)
        if named and had and named.partition(":")[0] == had.partition(":")[0]:
            changed[name] = with_model(named, had)
    return settings.model_copy(update=changed)


def _refuse_other_draws(begun: _Begun, given: BatchSettings) -> None:
    for name in OF_LISTS:
        value = getattr(given, name)
        if name in given.model_fields_set and _without_secrets(given)[0].get(name) != begun.batch.get(name):
            raise UsageError(f"{option(name, value)} is about which rows of a list are taken. Give the list again, or leave it out.")
