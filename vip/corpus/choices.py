"""All settings of a batch."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from vip import registry
from vip.captioning.engines import choose_engine
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.protocols import Observer

TIMEOUT_S = 1800.0  # of a video in a batch, where no other is given: it holds one worker up


@dataclass(frozen=True, slots=True)
class Choices:
    """What becomes of the list, how each video is extracted, and how it is described if it is."""

    batch: BatchSettings = field(default_factory=BatchSettings)
    extraction: ExtractSettings = field(default_factory=ExtractSettings)
    captioning: CaptionSettings = field(default_factory=CaptionSettings)

    def decided(self, observer: Observer) -> Choices:
        """With an embedder and an engine in the place of `auto`, the same for all machines; the user is told."""
        name, why = registry.auto_embedder(self.extraction.embedder)
        if why:
            observer.note(registry.auto_note(name, why))
        found = replace(self, extraction=self.extraction.model_copy(update={"embedder": name}))
        if not self.batch.caption or self.captioning.engine != "auto":
            return found
        choice = choose_engine(self.captioning.engine, self.captioning.base_url, os.environ)
        observer.note(f"engine: {choice.engine}; {choice.reason}")
        return replace(found, captioning=self.captioning.model_copy(update={"engine": choice.engine, "base_url": choice.base_url}))

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
        """The settings of descriptions that are measured beside the keyframes; None where there are none, or a model is asked."""
        return self.captioning if self.batch.caption and self.captioning.engine == "offline" else None

    @property
    def asked(self) -> CaptionSettings | None:
        """The settings of descriptions for which a model is asked."""
        return self.captioning if self.batch.caption and self.captioning.engine != "offline" else None
