"""A reader of text for tests, said to be a fake: it looks at no picture and returns lines that it was given."""

from __future__ import annotations

from vip.records import Image, TextLine


class FakeReader:
    """Returns the given lines for each picture, and counts the pictures."""

    def __init__(self, *lines: TextLine, name: str = "fake 1") -> None:
        self.lines, self.name = list(lines), name
        self.calls = 0

    def read(self, image: Image) -> list[TextLine]:
        self.calls += 1
        return self.lines


def line(text: str, left: float = 0.1, top: float = 0.1, right: float = 0.5, bottom: float = 0.2, score: float = 0.9) -> TextLine:
    return TextLine(text=text, score=score, box_xyxy=(left, top, right, bottom))
