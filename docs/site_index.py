"""The site follows docs/index.md: its list of pages is the navigation and llms.txt. mkdocs loads this file as a hook (mkdocs.yml)."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

SECTION = re.compile(r"^## (.+)$")
ENTRY = re.compile(r"^- \[(.+?)\]\((.+?\.md)\): (.+)$")


class Page(NamedTuple):
    """An entry of the index."""

    title: str
    path: str
    summary: str


def sections_of(index: str) -> dict[str, list[Page]]:
    """Return the pages that the text of docs/index.md lists, by section."""
    sections: dict[str, list[Page]] = {}
    title = ""
    for line in index.splitlines():
        if found := SECTION.match(line):
            title = found[1]
        elif found := ENTRY.match(line):
            sections.setdefault(title, []).append(Page(*found.groups()))
    return sections


def llms_txt(index: str) -> str:
    """Return llms.txt (llmstxt.org): what vip is, and each page with its summary."""
    name, summary = re.findall(r"^# (.+)$", index, re.MULTILINE)[0], " ".join(re.findall(r"^> (.+)$", index, re.MULTILINE))
    lines = [f"# {name}", "", f"> {summary}"]
    for section, pages in sections_of(index).items():
        lines += ["", f"## {section}", "", *(f"- [{page.title}]({page.path}): {page.summary}" for page in pages)]
    return "\n".join(lines) + "\n"


def on_config(config: Any) -> Any:
    """Set the navigation."""
    index = (Path(config.docs_dir) / "index.md").read_text(encoding="utf-8")
    config.nav = [
        {"Home": "index.md"},
        *({section: [{page.title: page.path} for page in pages]} for section, pages in sections_of(index).items()),
    ]
    return config


def on_post_build(config: Any) -> None:
    """Write llms.txt, and the Markdown of each page beside its HTML."""
    docs, site = Path(config.docs_dir), Path(config.site_dir)
    (site / "llms.txt").write_text(llms_txt((docs / "index.md").read_text(encoding="utf-8")), encoding="utf-8")
    for page in docs.rglob("*.md"):
        shutil.copyfile(page, site / page.relative_to(docs))
