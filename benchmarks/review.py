#!/usr/bin/env python3
"""How long people wait for `vip review`: the first item in Chromium, the next one, and the memory of the server.

    python benchmarks/review.py                              # 10,000 keyframes and 36,000 actions in their log: half a minute
    python benchmarks/review.py --keyframes 1000 --actions 0

A run folder and its log are made by rule. `first item` is the time from starting the program to the item in the page of a browser that is
open already; `start` is that of the program alone, in seconds of CPU, which other work on the machine disturbs less. `next item` is the
time from a click on "next" to the texts in the page, after looking for 0.2 s. Medians of `--rounds`. Needs Chromium, and the checkout
with its tests, which drive it. Exit 1 if a goal is missed: the first item in 1 s, the next in 50 ms, 200 MB.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
FIRST_S, NEXT_MS, PEAK_MB = 1.0, 50.0, 200.0
PIECE = 1000  # actions of one write
STEPS = 10
SETTLED_S = 2.0  # until a new browser is at rest
NEXT_ITEMS = f"""(async () => {{
    const times = [], by = document.getElementById("by");
    for (let step = 0; step < {STEPS}; step++) {{
        await new Promise((done) => setTimeout(done, 200));
        const start = performance.now();
        const shown = new Promise((done) => new MutationObserver(done).observe(by, {{ childList: true }}));
        document.getElementById("next").click();
        await shown;
        times.push(performance.now() - start);
    }}
    return times;
}})()"""
IS_SHOWN = "document.getElementById('item')?.hidden === false && document.getElementById('by')?.textContent !== ''"


@dataclass(frozen=True)
class Waited:
    """One start of the program."""

    first_s: float
    start_cpu_s: float
    """Of the program, until it has answered with the first item."""
    next_ms: float
    """The median of its items."""
    peak_mb: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keyframes", type=int, default=10_000, metavar="N", help="default: %(default)s")
    parser.add_argument("--actions", type=int, default=36_000, metavar="N", help="in the log; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: %(default)s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        make_review(run, keyframes=options.keyframes, actions=options.actions)
        rounds = [_wait(run, Path(folder) / f"profile-{number}") for number in range(options.rounds)]
    found = _medians(rounds)
    print(f"{options.keyframes:,} keyframes, {options.actions:,} actions, {options.rounds} rounds")
    print(f"first item {found.first_s:.2f} s ({min(one.first_s for one in rounds):.2f} to {max(one.first_s for one in rounds):.2f})")
    print(f"start      {found.start_cpu_s:.2f} s of CPU")
    print(f"next item  {found.next_ms:.0f} ms")
    print(f"memory     {found.peak_mb:.0f} MB")
    missed = goals_missed(found)
    for line in missed:
        print(f"MISSED: {line}")
    return 1 if missed else 0


def make_review(folder: Path, *, keyframes: int, actions: int) -> None:
    """Write a run folder of described pictures, and a log in which three people judge and one of them edits."""
    from tests.review.corpora import action, make_described, open_state

    state = open_state(make_described(folder, keyframes))
    verdicts = ("good", "needs work", "unusable")
    rows = [
        action(f"k{number}", "verdict", verdicts[(number + place) % 3], by=by)
        for place, by in enumerate(("Ann", "Bob", "Eve"))
        for number in range(keyframes)
    ]
    texts = (f"a juggler {number}" for number in range(actions))
    before = dict.fromkeys(range(keyframes), "a dancer")
    for number, text in zip((place % keyframes for place in range(actions)), texts, strict=True):
        rows.append(action(f"k{number}", "focus", text, before=before[number]))
        before[number] = text
    for start in range(0, actions, PIECE):
        state.record(rows[start : min(start + PIECE, actions)])
    state.log.close()


def _wait(run: Path, profile: Path) -> Waited:
    from tests.review.browser import browser

    with browser(profile) as tab:
        time.sleep(SETTLED_S)
        start = time.perf_counter()
        command = [sys.executable, "-m", "vip", "review", str(run), "--no-open"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                assert server.stdout is not None
                address = server.stdout.readline().split(" at ")[-1].strip()
                tab.call("Page.addScriptToEvaluateOnNewDocument", source="localStorage.setItem('vip-review-name', 'Ann')")
                tab.call("Page.navigate", url=address)
                tab.wait(IS_SHOWN)
                first_s, cpu_s = time.perf_counter() - start, _cpu_s(server.pid)
                times_ms = tab.run(NEXT_ITEMS)
                return Waited(first_s, cpu_s, statistics.median(times_ms), _peak_mb(server.pid))
            finally:
                server.terminate()


def _cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / 100  # ticks, of which Linux shows 100 a second


def _peak_mb(pid: int) -> float:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def _medians(rounds: Sequence[Waited]) -> Waited:
    return Waited(*(statistics.median(values) for values in zip(*(_values(one) for one in rounds), strict=True)))


def _values(one: Waited) -> tuple[float, ...]:
    return one.first_s, one.start_cpu_s, one.next_ms, one.peak_mb


def goals_missed(found: Waited) -> list[str]:
    """Return a line for each goal that is missed."""
    goals = (
        ("first item", found.first_s, FIRST_S, "s"),
        ("next item", found.next_ms, NEXT_MS, "ms"),
        ("memory", found.peak_mb, PEAK_MB, "MB"),
    )
    return [f"{name} {value:.2f} {unit}, at most {most:g}" for name, value, most, unit in goals if value > most]


if __name__ == "__main__":
    sys.exit(main())
