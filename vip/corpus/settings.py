"""All settings of a batch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vip import registry
from vip.captioning.session import choose_engine
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.errors import UsageError
from vip.protocols import Observer
from vip.wording import listed, option

WORD_SOURCES = ("subtitles", "text")
TIMEOUT_S = 1800.0  # of a video in a batch without `--timeout`: a video that hangs occupies a worker


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """The settings of the batch, of the extraction, and of the captions."""

    batch: BatchSettings = field(default_factory=BatchSettings)
    extraction: ExtractSettings = field(default_factory=ExtractSettings)
    captioning: CaptionSettings = field(default_factory=CaptionSettings)

    def resolve_auto(
        self, observer: Observer, extracted: Mapping[str, Any] | None = None, described: Mapping[str, Any] | None = None
    ) -> BatchConfig:
        """Return the settings with an embedder and an engine for `auto`, the same on all machines; note which.

        Args:
            extracted, described: the settings that the batch was begun with; `auto` stays what it was then.

        Raises:
            UsageError: the settings contradict each other.
        """
        if self.batch.batch and not self.batch.caption:
            raise UsageError("--batch is about captions, and has nothing to do without --caption; add it, or leave --batch out.")
        extraction = self.extraction.model_copy(update={"embedder": _resolve_embedder(self.extraction.embedder, extracted, observer)})
        batch = _resolve_words(self.batch, observer) if self.batch.words else self.batch
        found = replace(self, batch=batch, extraction=extraction)
        return replace(found, captioning=_resolve_engines(self.captioning, described, observer)) if self.batch.caption else found

    def with_engines(self, describe_engine: str, structure_engine: str) -> BatchConfig:
        """Return the settings with the models that the engines have found, where none was named: they stay the same for the batch."""
        asked = self.captioning
        both = {"describe_engine": describe_engine, "structure_engine": structure_engine}
        changed: dict[str, Any] = {
            name: with_model(named, both[name]) for name, named in asked.model_dump(include=set(both)).items() if named
        }
        changed["engine"] = with_model(asked.engine, structure_engine if asked.describe_engine else describe_engine)
        return replace(self, captioning=asked.model_copy(update=changed))

    @property
    def workers(self) -> int:
        return self.batch.workers or os.cpu_count() or 1

    @property
    def limited(self) -> ExtractSettings:
        """The extraction with a time limit."""
        if self.extraction.timeout is not None:
            return self.extraction
        return self.extraction.model_copy(update={"timeout": TIMEOUT_S})

    @property
    def measured(self) -> CaptionSettings | None:
        """The caption settings for the offline engine, which describes in the workers; None for any other engine, or without captions."""
        return self.captioning if self.batch.caption and self.captioning.engine == "offline" else None

    @property
    def asked(self) -> CaptionSettings | None:
        """The caption settings for an engine that asks a model; None for the offline engine, or without captions."""
        return self.captioning if self.batch.caption and self.captioning.engine != "offline" else None


def _resolve_embedder(name: str, begun: Mapping[str, Any] | None, observer: Observer) -> str:
    if name == "auto" and begun is not None:
        return str(begun["embedder"])
    found, why = registry.auto_embedder(name)
    if why:
        observer.note(registry.auto_note(found, why))
    return found


def _resolve_words(settings: BatchSettings, observer: Observer) -> BatchSettings:
    """Return the settings with what `auto` stands for here.

    Raises:
        UsageError: a source that is for single videos.
        BackendError: text is to be read, and what reads it is not installed.
    """
    words = settings.words
    if others := [one for one in words if one not in (*WORD_SOURCES, "auto")]:
        raise UsageError(f"{option('words', others[0])} is for single videos: a batch reads {listed(WORD_SOURCES)}. Leave it out.")
    if "auto" in words:
        can = [name for name, is_here in (("subtitles", True), ("text", registry.has_text_reader())) if is_here]
        words = tuple(dict.fromkeys([*(one for one in words if one != "auto"), *can]))
        observer.note(f"words: {listed(words)}")
    if "text" in words:
        registry.check_text_reader()
    return settings.model_copy(update={"words": words})


def _resolve_engines(settings: CaptionSettings, begun: Mapping[str, Any] | None, observer: Observer) -> CaptionSettings:
    changed: dict[str, Any] = {}
    if settings.verify:
        changed["embedder"] = _resolve_embedder(settings.embedder, begun, observer)
    if begun is not None and settings.engine == "auto":
        changed |= {"engine": begun["engine"], "base_url": settings.base_url or begun["base_url"]}
    else:
        choice = choose_engine(settings.engine, settings.base_url, os.environ)
        if settings.engine == "auto":
            observer.note(f"engine: {choice.engine}; {choice.reason}")
        changed |= {"engine": choice.engine, "base_url": choice.base_url}
    return settings.model_copy(update=changed)


def with_model(named: str, found: str) -> str:
    """Return the name of an engine with the model that it found: `openai` and `openai:gpt` give `openai:gpt`."""
    head, _, detail = named.partition(":")
    if not detail:
        return found
    return f"{found}{detail}" if head == "openai" and detail.startswith("@") else named
