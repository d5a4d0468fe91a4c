"""docs/index.md lists every page once, and the navigation and llms.txt are made from it."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import site_index

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")
PAGES = sorted(DOCS.rglob("*.md"))
WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "examples" / "README.md", *PAGES]


def test_the_index_lists_every_page_once() -> None:
    listed = [page.path for pages in site_index.sections_of(INDEX).values() for page in pages]
    decisions = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (DOCS / "decisions" / "index.md").read_text(encoding="utf-8"))
    there = [path.relative_to(DOCS).as_posix() for path in PAGES]
    assert sorted(["index.md", *listed, *(f"decisions/{name}" for name in decisions)]) == there


def test_the_navigation_has_the_sections_of_the_index(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text(
        "# vip\n\n## Use\n\n- [First steps](start.md): Install it.\n- no page\n\n## More\n\n- [A](b/c.md): D.\n"
    )
    config = site_index.on_config(SimpleNamespace(docs_dir=str(tmp_path)))
    assert config.nav == [{"Home": "index.md"}, {"Use": [{"First steps": "start.md"}]}, {"More": [{"A": "b/c.md"}]}]


def test_llms_txt_names_every_page_with_its_summary(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "decisions").mkdir(parents=True)
    site_index.on_post_build(SimpleNamespace(docs_dir=str(DOCS), site_dir=str(site)))
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert re.match(r"# vip\n\n> vip turns any video into .+\n\n## Use\n\n- \[First steps\]\(start\.md\): ", text)
    entries = re.findall(r"^- \[.+?\]\((.+?)\): (.+)$", text, re.MULTILINE)
    assert len(entries) == sum(map(len, site_index.sections_of(INDEX).values()))
    assert all((site / path).read_bytes() == (DOCS / path).read_bytes() for path, _ in entries)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_module_that_is_named_is_there(page: Path) -> None:
    named = re.findall(r"`((?:vip|tests|benchmarks|docs|prompts)/[\w/.-]+\.\w+)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []
