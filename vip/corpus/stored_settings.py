"""What a batch was begun with, in its state: so that it goes on without its options, and never mixes videos that were done in two ways.

In: the settings that are given now. Out: those that hold. What the rows depend on stays as it was; of all else the last that was given
holds. Keys, passwords and the content of files are not kept: what had some has to be given again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from vip.config import BatchSettings, CaptionSettings, ExtractSettings, Settings, SettingsT, from_keywords
from vip.corpus.inputs.rows import shown
from vip.corpus.settings import BatchConfig, with_model
from vip.corpus.state import StateDatabase
from vip.dataset.sanitize import without_secrets
from vip.errors import UsageError
from vip.protocols import Observer
from vip.wording import option

BEGUN = "begun"  # in the state: all settings, as they were given last
ROWS = "settings"  # in the state: those that the rows depend on
OF_LISTS = ("weights", "seed")  # matter while a list is read, and only then
NOT_OF_ROWS = {"batch": {"sample", "seed", "weights"}, "extract": set[str](), "caption": {"key_file", "base_url", "topic"}}
ENGINES = ("engine", "describe_engine", "structure_engine")
SECRET_PARAMETERS = frozenset(
    {"password", "videopassword", "ap_password", "twofactor", "client_certificate_password", "http_headers", "username", "ap_username"}
)
"""Of yt-dlp."""


class _Setting(NamedTuple):
    """One that the rows depend on."""

    name: str
    """In the state and in messages."""
    value: Any
    is_given: bool


def settled(state: StateDatabase, out: str, given: BatchConfig, observer: Observer, *, with_list: bool) -> BatchConfig:
    """The settings that hold for this run.

    Args:
        with_list: the command is complete; else what it does not name is as it was before.

    Raises:
        UsageError: they contradict those that the rows depend on; or a secret is missing that was given before.
    """
    rows, begun = state.get(ROWS), state.get(BEGUN)
    choices = given
    if rows is None or begun is None:
        return given.decided(observer)
    if not with_list:
        _refuse_other_draws(begun, given.batch)
        choices = _recalled(begun, given)
    choices = replace(choices, captioning=_with_models(choices.captioning, begun["caption"]))
    choices = choices.decided(observer, begun["extract"], begun["caption"])
    other = [
        f"{one.name} {rows[one.name]}, now {one.value}"
        for one in _of_rows(choices, given)
        if (with_list or one.is_given) and rows.get(one.name, one.value) != one.value
    ]
    if other:
        raise UsageError(f"{shown(out)} holds a batch with other settings ({'; '.join(other)}). Give the same ones, or choose another -o.")
    return choices


def tables_of(state: StateDatabase) -> dict[str, dict[str, Any]]:
    """All settings as they were given last, by command, but for secrets; none where nothing was begun."""
    begun = state.get(BEGUN) or {}
    return {table: settings for table, settings in begun.items() if isinstance(settings, dict)}


def remember(state: StateDatabase, choices: BatchConfig) -> None:
    """Keep the settings of this run for the next ones."""
    if state.get(ROWS) is None:
        state.put(ROWS, {one.name: one.value for one in _of_rows(choices, choices)})
    tables, withheld = {}, []
    for table, settings in _tables(choices):
        tables[table], missing = _kept(settings)
        withheld += missing
    state.put(BEGUN, {**tables, "withheld": list(dict.fromkeys(withheld))})


def _tables(choices: BatchConfig) -> Iterator[tuple[str, Settings]]:
    yield "extract", choices.extraction
    yield "batch", choices.batch
    yield "caption", choices.captioning


def _of_rows(choices: BatchConfig, given: BatchConfig) -> Iterator[_Setting]:
    """Those that the rows depend on; captions and keyframes may have some of one name."""
    seen = set()
    for (table, settings), (_, named) in zip(_tables(choices), _tables(given), strict=True):
        if table == "caption" and not choices.batch.caption:
            continue
        for name, value in settings.model_dump(mode="json", exclude=NOT_OF_ROWS[table]).items():
            unique = f"caption_{name}" if name in seen else name
            seen.add(unique)
            yield _Setting(unique, without_secrets(value) if isinstance(value, str) else value, name in named.model_fields_set)


# ---------------------------------------------------------------- kept


def _kept(settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """The settings as JSON, and the names of those that hold secrets, which are left out."""
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
    from vip.download.options import passed_on

    return not SECRET_PARAMETERS.isdisjoint(passed_on(value))


# ---------------------------------------------------------------- and taken up


def _recalled(begun: dict[str, Any], given: BatchConfig) -> BatchConfig:
    named = given.batch.model_fields_set | given.extraction.model_fields_set | given.captioning.model_fields_set
    if missing := [name for name in begun["withheld"] if name not in named]:
        options = " and ".join(option(name) for name in missing)
        raise UsageError(f"This batch was begun with a secret in {options}, which is not kept. Give {options} again.")
    return BatchConfig(
        _over(BatchSettings, begun["batch"], given.batch),
        _over(ExtractSettings, begun["extract"], given.extraction),
        _over(CaptionSettings, begun["caption"], given.captioning),
    )


def _over(kind: type[SettingsT], begun: dict[str, Any], given: SettingsT) -> SettingsT:
    """What is given now over what was before."""
    now = {name: getattr(given, name) for name in given.model_fields_set}
    before = {name: value for name, value in begun.items() if name in kind.model_fields}
    if "runner" in now:
        before.pop("ray_address", None)  # of the other runner
    return from_keywords(kind, {**before, **now})


def _with_models(settings: CaptionSettings, begun: dict[str, Any]) -> CaptionSettings:
    """`openai` stands for the model that the batch has of it; `auto` for all that it was."""
    changed = {}
    for name in ENGINES:
        named, had = getattr(settings, name), begun.get(name)
        if named and had and named.partition(":")[0] == had.partition(":")[0]:
            changed[name] = with_model(named, had)
    return settings.model_copy(update=changed)


def _refuse_other_draws(begun: dict[str, Any], given: BatchSettings) -> None:
    for name in OF_LISTS:
        value = getattr(given, name)
        if name in given.model_fields_set and _kept(given)[0].get(name) != begun["batch"].get(name):
            raise UsageError(f"{option(name, value)} is about which rows of a list are taken. Give the list again, or leave it out.")
