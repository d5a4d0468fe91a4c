"""A transcriber for tests, said to be a fake: it takes loud samples for speech, and writes down where they begin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vip.protocols import SpokenSegment
from vip.video.sound import RATE, Samples

STEP = RATE // 50


class FakeTranscriber:
    """Returns `tone N` for each stretch, N being its length in tenths of a second; those of less than 0.15 s are unsure."""

    def __init__(self, name: str = "fake 1", language: str = "en") -> None:
        self.name, self.identity, self.language = name, name, language
        self.lengths: list[int] = []
        """Samples of each call of `transcribe`."""
        self.languages: list[str] = []
        self.most_samples = 0
        """The most that were given at once."""

    def speech(self, samples: Samples, *, least_pause_s: float) -> list[tuple[float, float]]:
        self.most_samples = max(self.most_samples, len(samples))
        loud = np.abs(samples[: len(samples) // STEP * STEP].reshape(-1, STEP)).max(axis=1) > 0.05
        spans: list[list[float]] = []
        for place in np.flatnonzero(loud):
            begin, end = place * STEP / RATE, (place + 1) * STEP / RATE
            if spans and begin - spans[-1][1] < least_pause_s:
                spans[-1][1] = end
            else:
                spans.append([begin, end])
        return [(begin, end) for begin, end in spans]

    def language_of(self, samples: Samples) -> str:
        return self.language

    def transcribe(self, samples: Samples, language: str) -> Iterator[SpokenSegment]:
        self.lengths.append(len(samples))
        self.languages.append(language)
        for begin, end in self.speech(samples, least_pause_s=0.3):
            yield SpokenSegment(begin, end, f" tone {round(10 * (end - begin))} ", end - begin > 0.15)
