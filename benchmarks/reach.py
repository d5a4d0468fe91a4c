"""Which quick tests reach a line of vip: all of them run once with coverage, and what they reached is kept until vip or the tests change.

In: a tree. Out: for a mutant, the tests that run the lines it changes, those of its own file first.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from mutations import Mutant

MOST_TESTS = 250  # of one mutant
STATEMENT = 12  # lines of a statement, of which coverage notes the first
PASSED, FAILED = 0, 1  # exit statuses of pytest: also tests that fail have reached something
SETTINGS = "[run]\nbranch = true\nsource = vip\nrelative_files = true\n"


class Reach:
    """What the quick tests reach."""

    def __init__(self, data: Path) -> None:
        from coverage import CoverageData

        self._data = CoverageData(str(data))
        self._data.read()
        self._tests_by_line = lru_cache(maxsize=64)(self._read)

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that run what the mutant changes: those of its own file, of its room, of others."""
        by_line = self._tests_by_line(mutant.path)
        found: set[str] = set()
        for line in changed_lines(mutant):
            found |= next((by_line[near] for near in range(line, line - STATEMENT, -1) if by_line.get(near)), set())
        own = "tests/" + mutant.path.removeprefix("vip/").replace(Path(mutant.path).name, f"test_{Path(mutant.path).name}")
        room = "/".join(own.split("/")[:2])
        return sorted(found, key=lambda test: (not test.startswith(own), not test.startswith(room), test))[:MOST_TESTS]

    def _read(self, path: str) -> dict[int, set[str]]:
        lines = self._data.contexts_by_lineno(path)
        return {line: {context.rpartition("|")[0] for context in contexts if context} for line, contexts in lines.items()}


def changed_lines(mutant: Mutant) -> list[int]:
    """Return the numbers of the lines that a mutant changes or leaves out; of those that it adds, the one before."""
    matcher = difflib.SequenceMatcher(a=mutant.before.splitlines(), b=mutant.after.splitlines(), autojunk=False)
    spans = [(start, end) for tag, start, end, _, _ in matcher.get_opcodes() if tag != "equal"]
    return [line for start, end in spans for line in range(start + 1, end + 1) or [start]]


def reach_of(root: Path, *, processes: int) -> Reach:
    """Return what the quick tests of this tree reach; they run if that is not known yet."""
    data = Path(tempfile.gettempdir()) / f"vip-mutants-{_digest(root)}.coverage"
    if not data.exists():
        print("Running the quick tests once, to see what each reaches.", file=sys.stderr)
        with tempfile.TemporaryDirectory() as scratch:
            measured = _measure(root, Path(scratch), processes)
            measured.replace(data)
    return Reach(data)


def _measure(root: Path, scratch: Path, processes: int) -> Path:
    settings, data = scratch / "coveragerc", scratch / "reached"
    settings.write_text(SETTINGS)
    options = ["-q", "--core", "-n", str(processes), "-m", "not slow", "-p", "no:cacheprovider", f"--basetemp={scratch / 'files'}"]
    measuring = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
    environment = {**os.environ, "COVERAGE_FILE": str(data), "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-m", "pytest", *options, *measuring], cwd=root, env=environment, stdout=sys.stderr)
    if done.returncode not in (PASSED, FAILED):
        raise SystemExit(f"pytest ended with {done.returncode}, so it is not known which tests reach what.")
    return data


def _digest(root: Path) -> str:
    files = sorted(path for folder in ("vip", "tests") for path in (root / folder).rglob("*.py"))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(root)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]
