"""Reads a page the way a browser does, as far as the tests need it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from vip.html.markup import VOID


class Page(HTMLParser):
    """Elements with their attributes, and the text of those that are open when it comes."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}: {attrs}"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self) -> str:
        """What a person reads."""
        return " ".join(data for path, data in self.texts if path and path[-1] not in ("style", "script"))

    @property
    def skeleton(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every element with the names of its attributes, in order: what texts must not change."""
        return [(tag, tuple(attributes)) for tag, attributes in self.elements]

    def inside(self, tag: str) -> list[str]:
        return ["".join(data for path, data in self.texts if path and path[-1] == tag)]

    def of(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        """The attributes of the elements of this name that have these (class_ for class)."""
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [found for name, found in self.elements if name == tag and wanted.items() <= found.items()]


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))
