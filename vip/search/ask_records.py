"""What a question about videos comes to: the frames that were looked at, the answer, and what of it was checked."""

from __future__ import annotations

from typing import Literal

from vip.records import Call, RecordPart

AnswerStatus = Literal["supported", "unsupported", "not_shown", "not_asked", "nothing_found"]
"""The frames show it; an answer without a frame that supports it; the frames do not show it; no model was asked. `nothing_found`: no moment
of a corpus fits, and no model was asked."""

LEADS: dict[AnswerStatus, str] = {
    "supported": "",
    "unsupported": "Not supported by the frames shown: ",
    "not_shown": "The frames shown do not show it: ",
}
"""What stands before the words of the engine."""


class AskedFrame(RecordPart):
    """One keyframe that belongs to a question."""

    number: int
    """From 1; the engine cites by it."""
    label: str
    """Video and time as citations have them: `talk@1:02`."""
    video_id: str
    run: str
    """Its run folder."""
    keyframe_id: str
    time_s: float | None
    image_path: str
    """The picture's path, from where the command runs."""
    words: str | None = None
    """The subtitles near it."""
    text: str | None = None
    """What stands in the picture, where a program has read it."""
    caption: str | None = None
    """What a description of it says."""
    described_by: str | None = None
    """The engine of that description."""
    observation: str | None = None
    """What the engine saw in it that bears on the question; None where no engine looked."""
    is_relevant: bool | None = None
    is_cited: bool = False
    problem: str | None = None
    """Why the engine could not look at it."""


class VideoAnswer(RecordPart):
    """The answer to a question about videos. Every citation is a frame that was shown to the engine."""

    question: str
    status: AnswerStatus
    text: str | None
    """The answer with citations such as `[talk@1:02]`; None where no model was asked."""
    reasoning: str | None = None
    engine: str | None = None
    frames: tuple[AskedFrame, ...]
    """In the order of time; where no model was asked, those whose words fit the question first."""
    dropped_citations: tuple[str, ...] = ()
    """What the engine cited and nobody had shown to it."""
    notes: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()

    @property
    def citations(self) -> tuple[AskedFrame, ...]:
        """The frames that the answer cites."""
        return tuple(frame for frame in self.frames if frame.is_cited)

    @property
    def failed(self) -> tuple[AskedFrame, ...]:
        """The frames that the engine could not look at."""
        return tuple(frame for frame in self.frames if frame.problem)

    @property
    def sentence(self) -> str | None:
        """The answer as it is shown: with a mark before it where the frames do not support it."""
        return None if self.text is None else f"{LEADS[self.status]}{self.text}"
