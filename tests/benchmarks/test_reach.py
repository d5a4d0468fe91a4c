"""Which tests reach a line: found by running them, kept until a file changes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import reach
from mutations import Mutant
from reach import changed_lines, reach_of

MODULE = """def larger(a, b):
    if a > b:
        return a
    return (
        b
    )


def largest(rows):
    return max(rows)
"""
TESTS = """import pytest
from vip.sizes import larger, largest


@pytest.mark.parametrize("a", [1, 3])
def test_larger(a):
    assert larger(a, 2) >= 2


def test_largest():
    assert largest([1, 2]) == 2
"""
ELSEWHERE = """from vip.sizes import larger


def test_that_fails():
    assert larger(3, 2) == 2
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("pytest_cov", reason="the extra mutants")
    for name, text in {
        "vip/__init__.py": "",
        "vip/sizes.py": MODULE,
        "tests/test_sizes.py": TESTS,
        "tests/test_others.py": ELSEWHERE,
        "tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--core', action='store_true')\n",
        "pytest.ini": "[pytest]\nmarkers = slow: nothing here\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def changed(old: str, new: str) -> Mutant:
    return Mutant("vip/sizes.py", 1, "by hand", MODULE, MODULE.replace(old, new))


@pytest.mark.slow
def test_a_mutant_is_reached_by_the_tests_that_run_its_lines_its_own_file_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = reach_of(root, processes=1)
    own = ["tests/test_sizes.py::test_larger[1]", "tests/test_sizes.py::test_larger[3]"]
    assert found.tests(changed("a > b", "a < b")) == [*own, "tests/test_others.py::test_that_fails"]
    assert found.tests(changed("return a", "return b")) == [own[1], "tests/test_others.py::test_that_fails"]
    assert found.tests(changed("        b\n", "        a\n")) == own[:1], "the statement begins a line before"
    assert found.tests(changed("max(rows)", "min(rows)")) == ["tests/test_sizes.py::test_largest"]
    assert found.tests(Mutant("vip/unknown.py", 1, "by hand", "a", "b")) == []

    monkeypatch.setattr(subprocess, "run", None)
    assert reach_of(root, processes=1).tests(changed("max", "min")), "nothing changed, so nothing runs"
    monkeypatch.setattr(reach, "MOST_TESTS", 1)
    assert reach_of(root, processes=1).tests(changed("a > b", "a < b")) == own[:1]


@pytest.mark.slow
def test_without_tests_nothing_is_known(root: Path) -> None:
    for file in (root / "tests").glob("test_*.py"):
        file.unlink()
    with pytest.raises(SystemExit, match="pytest ended with 5, so it is not known which tests reach what"):
        reach_of(root, processes=1)
    assert not list(root.glob("*.coverage"))


@pytest.mark.parametrize(
    ("after", "lines"),
    [("a\nB\nc\n", [2]), ("a\nc\n", [2]), ("A\nb\nC\n", [1, 3]), ("a\nb\nb2\nc\n", [2]), ("a\n", [2, 3])],
)
def test_the_lines_of_a_mutant(after: str, lines: list[int]) -> None:
    assert changed_lines(Mutant("vip/sizes.py", 1, "by hand", "a\nb\nc\n", after)) == lines
