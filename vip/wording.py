"""Words in messages: settings as options on the command line or as keywords in Python, and numbers with their nouns.

    option("max_usd", 20)                 --max-usd 20                 max_usd=20
    option("overwrite")                   --overwrite                  overwrite=True
    call("extract", "VIDEO", "overwrite") `vip extract VIDEO --overwrite`   `vip.extract(VIDEO, overwrite=True)`
    counted(1, "shard")                   1 shard

`on_command_line` decides which of the two, for this process and those that it starts.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

VARIABLE = "VIP_COMMAND_LINE"  # in the environment, so that new interpreters see it too
SHORT = {"out": "-o"}
KEYWORDS = {"batch": "in_batches"}  # options with another name in Python
SWITCHES = frozenset({"overwrite", "verify", "batch", "recursive"})


class SaidOnce(str):
    """A note that a command prints once for all videos: what `auto` stands for."""

    __slots__ = ()


@contextmanager
def on_command_line() -> Iterator[None]:
    """Write messages for the command line inside the block."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)


def is_on_command_line() -> bool:
    """Return whether messages are for the command line."""
    return VARIABLE in os.environ


def option(name: str, value: object = None) -> str:
    """Return the option of a setting: `--min-sharpness 50`, or the keyword `min_sharpness=50`.

    Args:
        value: written as a user would type it; words in capitals are placeholders (`FILE`). None: only the name.
    """
    if is_on_command_line():
        flag = SHORT.get(name, f"--{name.replace('_', '-')}")
        return flag if value is None else f"{flag} {shlex.quote(str(value))}"
    keyword = KEYWORDS.get(name, name)
    if value is None:
        return f"{keyword}=True" if name in SWITCHES else f"{keyword}="
    return f"{keyword}={_literal(value)}"


def call(name: str, *arguments: str, **options: object) -> str:
    """Return a command with its arguments, in backquotes; a switch is an option whose value is True."""
    on_line = is_on_command_line()
    given = [option(key, None if value is True else value) for key, value in options.items()]
    return f"`vip {' '.join([name, *arguments, *given])}`" if on_line else f"`vip.{name}({', '.join([*arguments, *given])})`"


def again() -> str:
    """Return `Run the same command again`, or its words for Python."""
    return "Run the same command again" if is_on_command_line() else "Make the same call again"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return `1 shard`, `1,234 shards`; phrases agree too: `counted(count, "video waits", "videos wait")`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def _literal(value: object) -> str:
    return str(value) if not isinstance(value, str) or value.isupper() or value.replace(".", "", 1).isdigit() else f'"{value}"'


def listed(names: Iterable[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def agreeing(count: int, one: str, many: str, noun: str = "") -> str:
    """Return a number with a verb that agrees: `1 is`, `2 are`; with a noun `is 1 candidate`, `are 2 candidates`."""
    verb = one if count == 1 else many
    return f"{verb} {counted(count, noun)}" if noun else f"{count:,} {verb}"
