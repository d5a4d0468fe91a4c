#!/usr/bin/env python3
"""How many small bugs the tests catch: mutants drawn by seed, each tried in a copy of the tree.

    pip install -e '.[dev,mutants]'
    python benchmarks/mutants.py --seed 1 --sample 100 -o mutants-1.json
    python benchmarks/mutants.py --again mutants-1.json       # after a kill, or once there are tests for the survivors
    python benchmarks/mutants.py --bugs bugs.jsonl            # bugs written by hand, in place of a draw

For each mutant the tests run that should know: the quick ones that reach its lines, then the file that mirrors the module, those that
import it, those that import one which does, the others of its folder and of its room, quick tests before slow ones; the first failure ends
it. A test counts that passes without the mutant; the others are left out, and named. A mutant that hangs is caught. Writes figures and
survivors to a JSON file after each mutant, and prints them as Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock, local

from mutations import Mutant, by_hand, draw, room_of
from reach import Reach, reach_of

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("vip", "tests", "benchmarks", "examples", "prompts", "docs", "pyproject.toml", "README.md", "CHANGELOG.md")
EQUIVALENT = Path(__file__).with_suffix(".toml")
HUNG_S = 150.0  # a file of tests that takes longer hangs; where its usual time is known,
SLOWER, START_S = 4.0, 45.0  # so many times that, and so long more
MOST_S = 300.0  # for a mutant: no file of tests is begun after that; what fails or hangs without the mutant as well does not count
WAITS = 2.5  # turns that the slow tests of a file come later than its quick ones
UNKNOWN_S = 5.0  # what a file of tests counts as that never ran
CAUGHT, TIMED_OUT, SURVIVED, EQUAL = "caught", "timed out", "survived", "equivalent"
NO_TESTS = 5  # the exit status of pytest where no test was left to run
FAILURES = (1, 2)  # exit statuses of pytest: a test failed; a file of tests could not be imported


@dataclass
class Result:
    """A mutant and its outcome."""

    path: str
    line: int
    operator: str
    diff: str
    outcome: str
    by: str = ""
    """The file of tests that caught it, or why it is equivalent."""
    files: int = 0
    """Files of tests that ran; those that reach it count as one."""
    seconds: float = 0.0

    @property
    def room(self) -> str:
        return room_of(self.path)


@dataclass
class Run:
    """A draw of mutants, and the outcomes of those that were tried so far."""

    seed: int
    sample: int
    commit: str
    bugs: str = ""
    """The list of bugs that were written by hand, where nothing was drawn."""
    left_out: list[str] = field(default_factory=list)
    """Tests that fail without any mutant."""
    results: list[Result] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Run:
        data = json.loads(path.read_text())
        rows = [Result(**row) for row in data["results"]]
        return cls(data["seed"], data["sample"], data["commit"], data.get("bugs", ""), data["left_out"], rows)

    def mutants(self) -> list[Mutant]:
        return by_hand(ROOT, Path(self.bugs)) if self.bugs else draw(ROOT, seed=self.seed, sample=self.sample)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({**asdict(self), "figures": self.figures()}, indent=1) + "\n")

    def figures(self) -> dict[str, dict[str, int]]:
        """How many came to each end, by room."""
        counts = Counter((row.room, row.outcome) for row in self.results)
        ends = (CAUGHT, TIMED_OUT, SURVIVED, EQUAL)
        return {room: {end: counts[room, end] for end in ends} for room in sorted({row.room for row in self.results})}

    def markdown(self) -> str:
        """The figures as a table, and the survivors with what was changed."""
        rows = {**self.figures(), "all": dict(Counter(row.outcome for row in self.results))}
        lines = ["| | mutants | caught | of these by a hang | survived | equivalent | share caught |", "|---|---|---|---|---|---|---|"]
        for room, ends in rows.items():
            hung, survived, equal = (ends.get(end, 0) for end in (TIMED_OUT, SURVIVED, EQUAL))
            caught = ends.get(CAUGHT, 0) + hung
            share = f"{caught / (caught + survived):.0%}" if caught + survived else "-"
            lines.append(f"| {room} | {caught + survived + equal} | {caught} | {hung} | {survived} | {equal} | {share} |")
        for row in self.results:
            if row.outcome == SURVIVED:
                lines += ["", f"`{row.path}`, line {row.line}", "```diff", row.diff, "```"]
        return "\n".join(lines)


# ---------------------------------------------------------------- which tests should know


def tests_of(root: Path, path: str) -> dict[str, int]:
    """The files of tests for a module, with their turn.

    0 its own, 1 those of its room that import it, 2 others that do, 3 those that import a module which does, 4 those of its folder, 5 those
    of its room.
    """
    folder = "tests" / Path(path).parent.relative_to("vip")
    own = (folder / f"test_{Path(path).stem}.py").as_posix()
    room = "tests/" + "/".join(Path(path).parent.parts[1:2])
    imported, users = _import_of(path), _users(root, path)
    turns = {}
    for file in sorted((root / "tests").rglob("test_*.py")):
        shown, text = file.relative_to(root).as_posix(), file.read_text()
        is_near = room != "tests/" and shown.startswith(f"{room}/")
        if shown == own:
            turns[shown] = 0
        elif imported.search(text):
            turns[shown] = 1 if is_near else 2
        elif any(user.search(text) for user in users):
            turns[shown] = 3
        elif is_near:
            turns[shown] = 4 if Path(shown).parent == folder else 5
    return turns


def _import_of(path: str) -> re.Pattern[str]:
    """What a file that imports this module has in its text."""
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    parent, _, name = module.rpartition(".")
    return re.compile(rf"{re.escape(module)}\b|from {re.escape(parent)} import [^\n]*\b{re.escape(name)}\b|{re.escape(parent)} as ")


def _users(root: Path, path: str) -> list[re.Pattern[str]]:
    imported = _import_of(path)
    files = [file for file in sorted((root / "vip").rglob("*.py")) if imported.search(file.read_text())]
    return [_import_of(file.relative_to(root).as_posix()) for file in files if file != root / path]


class Known:
    """What is known of the tests without a mutant: those that fail all the same, and how long files of tests take. Kept in a file."""

    def __init__(self, path: Path) -> None:
        data = json.loads(path.read_text()) if path.exists() else {"failing": [], "empty": [], "seconds": {}}
        self.path, self.failing, self.empty, self.seconds = path, set(data["failing"]), set(data.get("empty", ())), dict(data["seconds"])
        self._lock = Lock()

    def limit_s(self, part: str) -> float:
        """From when on a file of tests hangs."""
        return min(HUNG_S, SLOWER * self.seconds.get(part, HUNG_S) + START_S)

    def note(self, *, failing: str | None = None, part: str | None = None, seconds: float = 0.0, empty: bool = False) -> None:
        with self._lock:
            if failing is not None:
                self.failing.add(failing)
            if part is not None:
                self.seconds[part] = seconds
            if part is not None and empty:
                self.empty.add(part)
            known = {"failing": sorted(self.failing), "empty": sorted(self.empty), "seconds": self.seconds}
            self.path.write_text(json.dumps(known, indent=1))

    def left_out(self, file: str) -> list[str]:
        return [f"--deselect={test}" for test in sorted(self.failing) if test.startswith(f"{file}::")]


# ---------------------------------------------------------------- a copy of the tree


class Copy:
    """A copy of the tree, in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Put the mutant in, and take it out again."""
        try:
            self._put(mutant.path, mutant.after)
            yield
        finally:
            self._put(mutant.path, mutant.before)

    def _put(self, path: str, source: str) -> None:
        file = self.folder / path
        file.write_text(source)
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):  # a change within the second would go unnoticed
            compiled.unlink()

    def test(self, *arguments: str, most_s: float) -> tuple[int | None, float, list[str]]:
        """Run tests or files of them. Returns the exit status, None where they hung; the seconds; the tests that failed."""
        start, scratch, log = time.monotonic(), self.folder / "scratch", self.folder / "log"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={scratch}", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        with (
            log.open("wb") as output,
            subprocess.Popen(command, cwd=self.folder, env=environment, stdout=output, stderr=output, start_new_session=True) as process,
        ):
            try:
                status = process.wait(timeout=most_s)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(scratch, ignore_errors=True)
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", log.read_text(errors="replace"), re.MULTILINE)
        return status, time.monotonic() - start, failed


@dataclass(frozen=True)
class Part:
    """The quick tests of a file, or its slow ones."""

    file: str
    slow: bool

    @property
    def name(self) -> str:
        return f"{self.file}, slow" if self.slow else self.file

    def arguments(self, known: Known) -> list[str]:
        return ["-m", "slow" if self.slow else "not slow", *known.left_out(self.file), self.file]


@dataclass(frozen=True)
class Reaching:
    """The quick tests that reach a mutant."""

    name: str
    """Of the mutant: no other has the same tests."""
    tests: Sequence[str]

    def arguments(self, known: Known) -> list[str]:
        return [test for test in self.tests if test not in known.failing]


def parts_of(root: Path, path: str, known: Known) -> list[Part]:
    """The tests that should know a module, in the order in which they run."""
    turns = tests_of(root, path)
    parts = [Part(file, slow) for file in turns for slow in (False, True)]
    return sorted(parts, key=lambda part: (turns[part.file] + WAITS * part.slow, known.seconds.get(part.name, UNKNOWN_S)))


def judge(mutant: Mutant, copy: Copy, known: Known, reach: Reach) -> Result:
    """Run the tests that should know until one fails."""
    result = Result(mutant.path, mutant.line, mutant.operator, mutant.diff, SURVIVED)
    start = time.monotonic()
    reaching = Reaching(f"quick tests that reach {mutant.path}:{mutant.line}", reach.tests(mutant))
    for part in [*([reaching] if reaching.tests else []), *parts_of(copy.folder, mutant.path, known)]:
        if part.name in known.failing or part.name in known.empty or time.monotonic() - start > MOST_S:
            continue
        result.files += 1
        begun = time.monotonic()
        if outcome := _caught(mutant, copy, known, part):
            result.outcome, result.by = outcome, part.name
            break
        if part.name in known.failing:
            start += time.monotonic() - begun
    result.seconds = round(time.monotonic() - start, 1)
    return result


def _caught(mutant: Mutant, copy: Copy, known: Known, part: Part | Reaching) -> str | None:
    """How the tests catch a mutant; None where they do not. What fails or hangs without the mutant as well is left out."""
    while part.name not in known.failing and (arguments := part.arguments(known)):
        with copy.changed(mutant):
            status, seconds, failed = copy.test("-x", *arguments, most_s=known.limit_s(part.name))
        if status not in (None, *FAILURES):
            if isinstance(part, Part):
                known.note(part=part.name, seconds=seconds, empty=status == NO_TESTS)
            return None
        if copy.test(*(failed[:1] or arguments), most_s=known.limit_s(part.name))[0] not in (None, *FAILURES):
            return TIMED_OUT if status is None else CAUGHT
        known.note(failing=failed[0] if failed else part.name)
    return None


# ---------------------------------------------------------------- a run


def reasons() -> dict[tuple[str, str], str]:
    """The mutants that were judged to change nothing, by file and changed lines, and why."""
    rows = tomllib.loads(EQUIVALENT.read_text())["mutant"] if EQUIVALENT.exists() else []
    return {(row["path"], row["diff"].strip()): row["reason"] for row in rows}


def commit() -> str:
    shown = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True)
    return shown.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--bugs", type=Path, help="try these bugs, one JSON object a line: path, old, new; nothing is drawn")
    parser.add_argument("--again", type=Path, help="go on with this run: try what was not caught or not tried")
    parser.add_argument("--list", action="store_true", help="show the mutants and try none")
    parser.add_argument("--processes", type=int, default=2, choices=(1, 2))
    parser.add_argument(
        "--known", type=Path, default=Path(tempfile.gettempdir()) / "vip-mutants-known.json", help="what is known of the tests"
    )
    parser.add_argument("-o", "--out", type=Path)
    args = parser.parse_args()
    run = Run.read(args.again) if args.again else Run(args.seed, args.sample, "", str(args.bugs or ""))
    run.commit = commit()
    mutants = run.mutants()
    drawn = {(mutant.path, mutant.diff) for mutant in mutants}
    run.results = [row for row in run.results if row.outcome in (CAUGHT, TIMED_OUT) and (row.path, row.diff) in drawn]
    if args.list:
        print("\n".join(f"{mutant.path}:{mutant.line} {mutant.operator}\n{mutant.diff}" for mutant in mutants))
        return
    out = args.out or args.again or Path(f"mutants-{args.bugs.stem if args.bugs else run.seed}.json")
    try_all(run, mutants, Known(args.known), out, args.processes)
    print(run.markdown())


def try_all(run: Run, mutants: list[Mutant], known: Known, out: Path, processes: int) -> None:
    """Judge the mutants of which the run knows nothing yet, in as many copies as there are processes."""
    why, lock, mine = reasons(), Lock(), local()
    done = {(row.path, row.diff) for row in run.results}
    todo = [mutant for mutant in mutants if (mutant.path, mutant.diff) not in done]
    reach = reach_of(ROOT, processes=processes)

    def one(mutant: Mutant) -> None:
        if reason := why.get((mutant.path, mutant.diff)):
            result = Result(mutant.path, mutant.line, mutant.operator, mutant.diff, EQUAL, reason)
        else:
            if not hasattr(mine, "copy"):
                mine.copy = Copy(Path(tempfile.mkdtemp(dir=home)))
            result = judge(mutant, mine.copy, known, reach)
        with lock:
            run.results.append(result)
            run.left_out = sorted(known.failing)
            run.write(out)
        told = f"{result.outcome:10} {result.seconds:5.0f} s {mutant.path}:{mutant.line}"
        print(f"{len(run.results)}/{len(mutants)} {told}", file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="vip-mutants-") as home, ThreadPoolExecutor(processes) as pool:
        for end in [pool.submit(one, mutant) for mutant in todo]:
            end.result()


if __name__ == "__main__":
    main()
