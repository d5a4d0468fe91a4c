"""Mutants: the same for a seed, none that cannot matter, and each tried with the tests that should know it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import mutants
import mutations
import pytest
from mutants import CAUGHT, SURVIVED, TIMED_OUT, Known, Result, Run
from mutations import ROOMS, Mutant, draw, files_of, places, shares
from reach import Reach

SOURCE = '''"""A module."""

from __future__ import annotations

from dataclasses import dataclass

BOUND = 64 * 2**20
STEPS = 3


@dataclass(frozen=True, slots=True)
class Row:
    size: int | None = None


def total(rows: list[Row], *, most: int | None = None) -> int:
    found = 0
    for row in rows:
        if row.size is not None and found < STEPS:
            found = found + row.size
    check(found)
    raise ValueError(f"{found + 1} rows")
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    pytest.importorskip("cosmic_ray", reason="the extra mutants")
    (tmp_path / "vip" / "llm").mkdir(parents=True)
    (tmp_path / "vip" / "llm" / "rows.py").write_text(SOURCE)
    (tmp_path / "vip" / "store.py").write_text("STEPS = 1 + 2\n")
    return tmp_path


def test_places_are_where_the_code_does_something(root: Path) -> None:
    lines = {place.start[0] for place in places(root, "vip/llm/rows.py")}
    shown = SOURCE.splitlines()
    assert [shown[line - 1].strip() for line in sorted(lines)] == [
        *("BOUND = 64 * 2**20", "STEPS = 3", "found = 0", "for row in rows:"),
        *("if row.size is not None and found < STEPS:", "found = found + row.size", "check(found)"),
    ]


def test_a_seed_draws_the_same_mutants_each_a_change_of_one_place_that_is_python(root: Path) -> None:
    first, again = (draw(root, seed=3, sample=8) for _ in range(2))
    assert [(mutant.path, mutant.diff) for mutant in first] == [(mutant.path, mutant.diff) for mutant in again]
    assert len(first) == len({(mutant.path, mutant.diff) for mutant in first}) == 8
    assert [mutant.diff for mutant in first] != [mutant.diff for mutant in draw(root, seed=4, sample=8)]
    for mutant in first:
        compile(mutant.after, mutant.path, "exec")
        assert len(mutant.diff.splitlines()) == 2


def test_each_room_has_its_share() -> None:
    assert shares({"a": 80, "b": 14, "c": 6}, 10) == {"a": 8, "b": 1, "c": 1}
    assert sum(shares(dict.fromkeys(ROOMS, 7), 100).values()) == 100


def test_a_bug_by_hand_is_put_where_its_lines_stand_and_nowhere_else(root: Path) -> None:
    rows = root / "bugs.jsonl"
    bug = {
        "id": "a1",
        "path": "vip/llm/rows.py",
        "old": "    found = 0\n    for row",
        "new": "    found = 1\n    for row",
        "why": "one too many",
    }
    rows.write_text(json.dumps(bug) + "\n")
    [mutant] = mutations.by_hand(root, rows)
    assert (mutant.line, mutant.room, mutant.diff) == (17, "vip/llm", "-    found = 0\n+    found = 1")
    assert mutant.after == SOURCE.replace("found = 0", "found = 1")
    for old in ("nowhere", "found"):
        rows.write_text(json.dumps(bug | {"old": old}) + "\n")
        with pytest.raises(SystemExit, match=r"vip/llm/rows\.py has these lines \d times, not once"):
            mutations.by_hand(root, rows)


def test_every_room_has_files() -> None:
    assert {mutations.room_of(path) for path in files_of(mutants.ROOT)} == set(ROOMS)


def test_the_tests_of_a_module_come_first_then_those_that_import_it_then_its_folder_and_its_room() -> None:
    found = mutants.tests_of(mutants.ROOT, "vip/dataset/parts.py")
    assert found["tests/dataset/test_parts.py"] == 0
    assert found["tests/dataset/test_shards.py"] == 1
    assert found["tests/corpus/test_driver.py"] == 2
    assert found["tests/dataset/test_rows.py"] == 4
    assert "tests/extraction/pruners/test_algorithm1.py" not in found
    found = mutants.tests_of(mutants.ROOT, "vip/corpus/card/notes.py")
    assert (found["tests/corpus/card/test_write.py"], found["tests/corpus/test_driver.py"]) == (3, 5)
    assert mutants.tests_of(mutants.ROOT, "vip/store.py")["tests/test_store.py"] == 0


class Reached(Reach):
    """The tests that reach every mutant."""

    def __init__(self, *tests: str) -> None:
        self.found = list(tests)

    def tests(self, mutant: Mutant) -> list[str]:
        return self.found


class Scripted(mutants.Copy):
    """A copy of nothing, whose tests end as they are told: file -> with the mutant, without it."""

    def __init__(self, ends: dict[str, tuple[int | None, int | None]]) -> None:
        self.folder, self.ends, self.inside, self.ran, self.now_s = mutants.ROOT, ends, False, [], 0.0

    def _put(self, path: str, source: str) -> None:
        self.inside = source == "after"

    def test(self, *arguments: str, most_s: float) -> tuple[int | None, float, list[str]]:
        file = arguments[-1].partition("::")[0]
        self.ran.append(arguments[-1] if arguments[0] == "-x" else file)
        self.now_s += 100.0
        deselected = f"--deselect={file}::test_it" in arguments
        if "slow" in arguments:
            return mutants.NO_TESTS, 1.0, []
        status = 0 if deselected else self.ends.get(file, (0, 0))[0 if self.inside else 1]
        return status, 1.0, [f"{file}::test_it"] if status == 1 else []


@pytest.mark.parametrize(
    ("end", "outcome"),
    [((1, 0), CAUGHT), ((2, 0), CAUGHT), ((None, 0), TIMED_OUT), ((1, 1), SURVIVED), ((0, 0), SURVIVED)],
)
def test_what_fails_without_the_mutant_too_catches_nothing(end: tuple[int | None, int], outcome: str, tmp_path: Path) -> None:
    mutant = Mutant("vip/extraction/pruners/algorithm1.py", 1, "AddNot", "before", "after")
    copy = Scripted({"tests/extraction/pruners/test_algorithm1.py": end})
    result = mutants.judge(mutant, copy, Known(tmp_path / "known.json"), Reached())
    assert result.outcome == outcome
    assert copy.ran[0] == "tests/extraction/pruners/test_algorithm1.py"
    assert not copy.inside


@pytest.mark.parametrize(("end", "outcome", "ran"), [((1, 0), CAUGHT, 2), ((None, 0), TIMED_OUT, 2), ((1, 1), SURVIVED, 3)])
def test_the_tests_that_reach_a_mutant_come_first_without_those_that_fail_all_the_same(
    end: tuple[int | None, int], outcome: str, ran: int, tmp_path: Path
) -> None:
    file = "tests/test_far_away.py"
    mutant = Mutant("vip/extraction/pruners/algorithm1.py", 1, "AddNot", "before", "after")
    copy, known = Scripted({file: end}), Known(tmp_path / "known.json")
    result = mutants.judge(mutant, copy, known, Reached(f"{file}::test_it"))
    assert (result.outcome, copy.ran[:2]) == (outcome, [f"{file}::test_it", file])
    assert (known.failing, copy.ran[2:3]) == (
        (set(), []) if outcome != SURVIVED else ({f"{file}::test_it"}, ["tests/extraction/pruners/test_algorithm1.py"])
    )
    assert min(len(copy.ran), 3) == ran
    assert not [name for name in known.seconds if "reach" in name], "how long they take is nobody else's"


@pytest.mark.parametrize(("end", "files"), [((0, 0), 2), ((None, None), 3)])
def test_no_file_is_begun_after_the_limit_and_one_that_hangs_without_the_mutant_takes_no_time(
    end: tuple[int | None, int | None], files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Scripted({"tests/extraction/pruners/test_algorithm1.py": end})
    monkeypatch.setattr(mutants, "MOST_S", 120.0)
    monkeypatch.setattr(mutants, "time", SimpleNamespace(monotonic=lambda: copy.now_s))
    mutant = Mutant("vip/extraction/pruners/algorithm1.py", 1, "AddNot", "before", "after")
    result = mutants.judge(mutant, copy, Known(tmp_path / "known.json"), Reached())
    assert (result.files, result.seconds) == (files, 200.0)


def test_a_run_survives_a_file_and_tells_its_survivors(tmp_path: Path) -> None:
    rows = [Result("vip/store.py", 3, "AddNot", "-if a:\n+if not a:", end) for end in (CAUGHT, TIMED_OUT, SURVIVED)]
    run = Run(1, 3, "abc", "bugs.jsonl", ["tests/test_x.py::test_y"], rows)
    run.write(tmp_path / "run.json")
    assert Run.read(tmp_path / "run.json") == run
    told = run.markdown()
    assert "| vip/store.py | 3 | 2 | 1 | 1 | 0 | 67% |" in told
    assert told.count("+if not a:") == 1
