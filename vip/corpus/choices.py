"""All settings of a batch."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from vip.config import BatchSettings, CaptionSettings, ExtractSettings

TIMEOUT_S = 1800.0  # of a video in a batch, where no other is given: it holds one worker up


@dataclass(frozen=True, slots=True)
class Choices:
    """What becomes of the list, how each video is extracted, and how it is described if it is."""

    batch: BatchSettings = field(default_factory=BatchSettings)
    extraction: ExtractSettings = field(default_factory=ExtractSettings)
    captioning: CaptionSettings = field(default_factory=CaptionSettings)

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
