"""Where the code can be changed by a little so that it does something else, and a draw among these places by seed; bugs written by hand.

In: source files. Out: mutants, each a file with one change. The changes are those of cosmic-ray's operators, and one more: a call
that stands alone is left out. Only changes that look like a slip are made (`<` for `<=`, not `<` for `==`): a draw of others
would be caught by anything. What cannot matter is left aside, see `_is_idle`.
"""

from __future__ import annotations

import ast
import difflib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOMS = ("vip/extraction", "vip/llm", "vip/captioning", "vip/corpus", "vip/dataset", "vip/export", "vip/store.py", "vip/processes")
BINARY = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul", "BitOr_BitAnd", "BitAnd_BitOr")
COMPARED = ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt", "Is_IsNot", "IsNot_Is")
OTHERS = ("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue")
OTHERS += ("ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer", "ZeroIterationForLoop", "ReplaceUnaryOperator_USub_UAdd")
OTHERS += ("ReplaceUnaryOperator_Delete_Not",)
OPERATORS = (
    *(f"ReplaceBinaryOperator_{pair}" for pair in BINARY),
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARED),
    *OTHERS,
)
LEFT_OUT = "a call is left out"
NUDGE = 10  # a bound of so much or more that moves by 1 bounds as well

Position = tuple[int, int]
"""Line, from 1, and column, from 0, in characters."""


@dataclass(frozen=True)
class Place:
    """A place in a file, and the ways to change it: the operator and which of its changes in the file it is."""

    path: str
    start: Position
    ways: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Mutant:
    """A file with one change."""

    path: str
    line: int
    operator: str
    before: str
    after: str

    @cached_property
    def diff(self) -> str:
        """The lines that differ, each with its sign; without numbers, so that it stays the same when the file grows."""
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), n=0, lineterm="")
        return "\n".join(line.rstrip() for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))

    @property
    def room(self) -> str:
        return room_of(self.path)


def room_of(path: str) -> str:
    """The folder of `vip` a file lies in, or a file of `vip` itself."""
    return "/".join(Path(path).parts[:2])


def files_of(root: Path) -> list[str]:
    """The source files of all rooms, in order."""
    found = [root / room for room in ROOMS if room.endswith(".py")]
    found += [path for room in ROOMS for path in (root / room).rglob("*.py")]
    return sorted(path.relative_to(root).as_posix() for path in found)


def places(root: Path, path: str) -> list[Place]:
    """The places of a file that can be changed, in order."""
    source = (root / path).read_text()
    tree = ast.parse(source)
    found: dict[Position, list[tuple[str, int]]] = {}
    for operator, number, start in (*_of_cosmic_ray(source), *_lone_calls(tree)):
        found.setdefault(start, []).append((operator, number))
    idle = _idle(tree, source)
    return [Place(path, start, tuple(found[start])) for start in sorted(found) if not idle.covers(start)]


def draw(root: Path, *, seed: int, sample: int) -> list[Mutant]:
    """So many mutants, of each room as many as its share of the places; no place twice."""
    chance = random.Random(seed)
    rooms: dict[str, list[Place]] = {room: [] for room in ROOMS}
    for path in files_of(root):
        rooms[room_of(path)] += places(root, path)
    drawn = []
    for room, count in shares({room: len(found) for room, found in rooms.items()}, sample).items():
        mutants = (_mutated(root, place, chance) for place in chance.sample(rooms[room], len(rooms[room])))
        drawn += [mutant for mutant, _ in zip(filter(None, mutants), range(count), strict=False)]
    chance.shuffle(drawn)  # so that a run that was ended early is a draw too
    return drawn


def by_hand(root: Path, rows: Path) -> list[Mutant]:
    """Bugs that somebody wrote down, a JSON object a line: path, the lines that are there (`old`) and those in their place (`new`)."""
    return [_put_in(root, **{key: row[key] for key in ("path", "old", "new")}) for row in map(json.loads, rows.read_text().splitlines())]


def _put_in(root: Path, path: str, old: str, new: str) -> Mutant:
    before = (root / path).read_text()
    if before.count(old) != 1:
        raise SystemExit(f"{path} has these lines {before.count(old)} times, not once:\n{old}")
    return Mutant(path, before[: before.index(old)].count("\n") + 1, "by hand", before, before.replace(old, new))


def shares(sizes: dict[str, int], sample: int) -> dict[str, int]:
    """The sample, divided among rooms by their sizes; what rounding leaves goes to those that lose most by it."""
    exact = {room: sample * size / sum(sizes.values()) for room, size in sizes.items()}
    whole = {room: int(count) for room, count in exact.items()}
    short = sorted(exact, key=lambda room: whole[room] - exact[room])[: sample - sum(whole.values())]
    return {room: count + (room in short) for room, count in whole.items()}


def _mutated(root: Path, place: Place, chance: random.Random) -> Mutant | None:
    """The place, changed in one of its ways; None where that is no Python or no change."""
    before = (root / place.path).read_text()
    operator, number = chance.choice(place.ways)
    after = _without(before, number) if operator == LEFT_OUT else _by_cosmic_ray(before, operator, number)
    if after is None or not _differ(before, after):
        return None
    return Mutant(place.path, place.start[0], operator, before, after)


def _differ(before: str, after: str) -> bool:
    try:
        return ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    except SyntaxError:
        return False


# ---------------------------------------------------------------- the changes


def _of_cosmic_ray(source: str) -> Iterator[tuple[str, int, Position]]:
    """Operator, number of the change, where it is."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    nodes = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        found = [(node, start) for node in nodes for start, _ in operator.mutation_positions(node)]
        yield from ((name, number, start) for number, (node, start) in enumerate(found) if not _is_bare_star(node))


def _is_bare_star(node: Any) -> bool:
    """The `*` in `def f(a, *, b)`, which cosmic-ray takes for a product."""
    return node.parent is not None and node.parent.type == "parameters"


def _by_cosmic_ray(source: str, name: str, number: int) -> str | None:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    try:
        mutated: str | None = mutate_code(source, get_operator(f"core/{name}")(), number)
    except AttributeError:  # ExceptionReplacer knows no `except module.Error`
        return None
    return mutated


def _lone_calls(tree: ast.Module) -> Iterator[tuple[str, int, Position]]:
    for number, node in enumerate(_calls(tree)):
        yield LEFT_OUT, number, (node.lineno, node.col_offset)


def _calls(tree: ast.Module) -> list[ast.Expr]:
    """Statements that are one call, whose result nobody takes."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    return [node for node in found if isinstance(node.value.value if isinstance(node.value, ast.Await) else node.value, ast.Call)]


def _without(source: str, number: int) -> str:
    node, lines = _calls(ast.parse(source))[number], source.splitlines(keepends=True)
    assert node.end_lineno is not None
    return "".join([*lines[: node.lineno - 1], " " * node.col_offset + "pass\n", *lines[node.end_lineno :]])


# ---------------------------------------------------------------- what cannot matter


class _Spans:
    def __init__(self, spans: Sequence[tuple[Position, Position]]) -> None:
        self.spans = spans

    def covers(self, start: Position) -> bool:
        return any(first <= start < end for first, end in self.spans)


def _idle(tree: ast.Module, source: str) -> _Spans:
    lines = source.splitlines()

    def place(line: int, byte: int) -> Position:
        return line, len(lines[line - 1].encode()[:byte].decode())

    parts = [part for node in ast.walk(tree) for part in _is_idle(node)]
    return _Spans([(place(p.lineno, p.col_offset), place(p.end_lineno or p.lineno, p.end_col_offset or 0)) for p in parts])


def _is_idle(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Parts that change nothing when they are changed: annotations and their imports, `slots` and `frozen` of records, the words
    and figures of messages, `strict` of a zip, large bounds that move by 1."""
    match node:
        case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
            yield annotation
        case ast.FunctionDef(returns=ast.expr() as returns) | ast.AsyncFunctionDef(returns=ast.expr() as returns):
            yield returns
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            yield node
        case ast.ClassDef():
            yield from node.decorator_list
        case ast.JoinedStr():
            yield node
        case ast.keyword(arg="strict", value=value):
            yield value
        case ast.Module():
            yield from (number for statement in node.body if isinstance(statement, ast.Assign) for number in _large(statement))
            yield from (statement for statement in node.body if isinstance(statement, ast.Assign) and _is_type(statement.value))


def _large(statement: ast.Assign) -> Iterator[ast.expr]:
    for part in ast.walk(statement.value):
        if isinstance(part, ast.Constant) and isinstance(part.value, int | float) and part.value >= NUDGE:
            yield part


def _is_type(value: ast.expr) -> bool:
    """Whether a name is given to a type: `Row = dict[str, Any] | None`."""
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)
