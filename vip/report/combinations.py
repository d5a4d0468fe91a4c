"""Combinations to compare: samplers and pruners by name, and the run or the failure of each pair."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vip import registry
from vip.config import ExtractSettings
from vip.errors import UsageError
from vip.records import Failure
from vip.report.measures import Measures
from vip.store import Run

SAMPLERS = ("sync", "uniform", "every:2s", "shots")
PRUNERS = ("algorithm1", "k-center", "threshold:0.93")
PAGE = "compare.html"
EVENLY_SPACED = ("uniform", "none")
FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,80}[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Combination:
    """A sampler and a pruner, as on the command line."""

    sampler: str
    pruner: str
    asked: bool = True
    """The user named it, so it must not be left out."""

    @property
    def name(self) -> str:
        return f"{self.sampler}+{self.pruner}"

    @property
    def folder_name(self) -> str:
        """Its name for a file system, `every-2s+algorithm1`; where characters are replaced, a hash keeps names apart."""
        name = self.name.replace(":", "-")
        if FOLDER_NAME.fullmatch(name):
            return name
        safe = re.sub(r"[^A-Za-z0-9._+-]+", "-", name)[:60]
        return f"{safe}-{hashlib.sha256(self.name.encode(errors='surrogateescape')).hexdigest()[:8]}".lstrip("._-+")

    @property
    def is_evenly_spaced(self) -> bool:
        """Evenly spaced frames as they come: the baseline of every comparison."""
        return (self.sampler, self.pruner) == EVENLY_SPACED

    @property
    def is_known(self) -> bool:
        """Whether both names exist here; nothing is loaded."""
        return _base_name(self.sampler) in registry.names("sampler") and _base_name(self.pruner) in registry.names("pruner")


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A combination that is done."""

    combination: Combination
    run: Run
    reused: bool
    """An earlier command made the run; its seconds are of then."""
    measures: Measures


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that was compared: at least one choice, and failures that name their combination."""

    folder: Path
    settings: ExtractSettings
    choices: tuple[ComparedRun, ...]
    failures: tuple[Failure, ...]

    @property
    def page(self) -> Path:
        return self.folder / PAGE


def combinations(asked: Sequence[str], settings: ExtractSettings) -> list[Combination]:
    """Return what to compare, each once: what `vip extract` does with these settings, what is asked for, and evenly spaced frames.

    Args:
        asked: `sync+k-center`, or `shots` alone for the pruner of the settings. Where it is empty: each sampler of
            `SAMPLERS` with the pruner of the settings, and each pruner of `PRUNERS` with the sampler of the settings.

    Raises:
        UsageError: a text that names no sampler.
        BackendError: a sampler or pruner that does not exist.
    """
    found = [Combination(settings.sampler, settings.pruner), *(_parse_combination(text, settings) for text in asked)]
    for combination in found:
        registry.check(sampler=combination.sampler, pruner=combination.pruner)
    if not asked:
        found += [Combination(sampler, settings.pruner, asked=False) for sampler in SAMPLERS]
        found += [Combination(settings.sampler, pruner, asked=False) for pruner in PRUNERS]
    found.append(Combination(*EVENLY_SPACED, asked=False))
    once: dict[str, Combination] = {}
    for combination in found:
        once.setdefault(combination.name, combination)
    return list(once.values())


def _parse_combination(text: str, settings: ExtractSettings) -> Combination:
    sampler, _, pruner = (part.strip() for part in text.partition("+"))
    if not sampler:
        raise UsageError(f'"{text}" names no sampler. Write SAMPLER+PRUNER, for example sync+k-center.')
    if _base_name(sampler) not in registry.names("sampler") and _base_name(sampler) in registry.names("pruner"):
        raise UsageError(f'"{sampler}" is a pruner. Write {settings.sampler}+{sampler}.')
    return Combination(sampler, pruner or settings.pruner)


def _base_name(name: str) -> str:
    return name.partition(":")[0]


def further_samplers(compared: Sequence[Combination]) -> list[str]:
    """Return the installed samplers that are not compared, by name."""
    return sorted(set(registry.names("sampler")) - {_base_name(combination.sampler) for combination in compared})
