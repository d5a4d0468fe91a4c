"""`vip batch`: throughput, overhead, memory, kills, a list of a million ids, and a simulated cluster; the goals beside each figure.

    python benchmarks/batch.py                       all of it, about 30 minutes
    python benchmarks/batch.py throughput list       some of it

The videos are made here: 200 files of 12 s each, H.264, every one with another content. Ratios are of runs in turn on one machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

VIDEOS, SECONDS = 200, 12
KILLS = 20
VIP = [sys.executable, "-m", "vip"]


def goal(text: str, value: float, unit: str, met: bool) -> None:
    print(f"  {text}: {value:.3g} {unit}  {'met' if met else 'MISSED'}", flush=True)


def make_videos(folder: Path, count: int) -> Path:
    """Videos of moving shapes and noise, 640 x 360, 25 frames a second, and a list of them."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        path = folder / f"video{number:03d}.mp4"
        if not path.exists():
            source = "testsrc2=size=640x360:rate=25"
            flags = f"hue=h={number * 7}:s=1+t/10,rotate={number / 30}+t/9"
            command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-vf", flags, "-t", str(SECONDS), "-c:v", "libx264"]
            subprocess.run([*command, "-preset", "ultrafast", "-g", "50", "-pix_fmt", "yuv420p", "-y", str(path)], check=True)
    names = folder / "list.txt"
    names.write_text("".join(f"{path}\n" for path in sorted(folder.glob("*.mp4"))[:count]))
    return names


def run(*arguments: str | Path, check: bool = True) -> float:
    """Wall seconds of one `vip`."""
    start = time.perf_counter()
    subprocess.run([*VIP, *map(str, arguments)], check=check, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


# ---------------------------------------------------------------- throughput and overhead


PLAIN = """
import sys
from pathlib import Path
import vip
from vip import cores
cores.limit(1)
for number, name in enumerate(Path(sys.argv[1]).read_text().split()):
    vip.extract(name, out=Path(sys.argv[2]) / str(number), isolated=True)
"""


def throughput(work: Path, rounds: int) -> None:
    """One worker against two, and one worker against a loop over `vip.extract` that uses one core too."""
    names = make_videos(work / "videos", VIDEOS)
    walls: dict[str, list[float]] = {"one": [], "two": [], "plain": []}
    for _ in range(rounds):
        for name, workers in (("one", 1), ("two", 2)):
            walls[name].append(run("batch", names, "-q", "-o", _fresh(work / name), "--workers", str(workers)))
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", PLAIN, names, _fresh(work / "plain")], check=True, cwd=ROOT)
        walls["plain"].append(time.perf_counter() - start)
    one, two, plain = (median(walls[name]) for name in ("one", "two", "plain"))
    print(f"throughput: {VIDEOS} videos of {SECONDS} s: one worker {one:.1f} s, two {two:.1f} s, a plain loop on one core {plain:.1f} s")
    goal("two workers over one (asked 1.8)", one / two, "times", one / two >= 1.8)
    goal("one worker over the plain loop (asked 1.05)", one / plain, "times", one / plain <= 1.05)


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


# ---------------------------------------------------------------- memory


def memory(work: Path, rounds: int) -> None:
    """Of all processes together, shared pages counted once, from the 20th video to the 200th."""
    names, out = make_videos(work / "videos", VIDEOS), _fresh(work / "memory")
    process = subprocess.Popen([*VIP, "batch", names, "-q", "-o", out, "--workers", "2", "--shard-size", "4MB"])
    samples: list[tuple[int, float]] = []
    while process.poll() is None:
        time.sleep(0.3)
        if (out / "state").exists():
            samples.append((_done(out), sum(_memory_mb(pid) for pid in _family(process.pid))))
    early = [mb for done, mb in samples if 20 <= done < 65]
    late = [mb for done, mb in samples if done >= 155]
    print(f"memory: {median(early):.0f} MB from the 20th to the 65th video, {median(late):.0f} MB from the 155th to the 200th")
    goal("growth (asked: flat, within 10 %)", median(late) / median(early), "times", median(late) < 1.1 * median(early))


def _done(out: Path) -> int:
    import sqlite3

    with sqlite3.connect(f"file:{out}/state/state.sqlite?mode=ro", uri=True, timeout=5) as db:
        try:
            return int(db.execute("SELECT count(*) FROM items WHERE state IN (4, 5)").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def _family(pid: int) -> list[int]:
    """A process and all that it started."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                todo += map(int, task.read_text().split())
    return found


def _memory_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


# ---------------------------------------------------------------- kills


def kills(work: Path, rounds: int) -> None:
    """SIGKILL at random moments of one run: the driver, a worker, and with Ray one of two nodes."""
    names = make_videos(work / "videos", VIDEOS)
    _killed(names, work / "kills-local", [], {"driver": _kill_driver, "worker": _kill_worker})
    with _cluster() as (address, kill_node):
        more = ["--runner", "ray", "--ray-address", address]
        _killed(names, work / "kills-ray", more, {"driver": _kill_driver, "worker": _kill_seat, "node": lambda driver, chance: kill_node()})


Kill = Callable[[int, random.Random], bool]


def _killed(names: Path, out: Path, more: Sequence[str], kinds: dict[str, Kill]) -> None:
    command = [*VIP, "batch", names, "-q", "-o", _fresh(out), "--workers", "2", "--shard-size", "1MB", "--retry-wait", "1", *more]
    chance, killed, starts = random.Random(f"{out.name} 1"), Counter[str](), 0
    while _done_or_0(out) < VIDEOS or starts == 0:
        starts += 1
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None and sum(killed.values()) < KILLS:
            time.sleep(chance.uniform(1.0, 8.0))
            whom = chance.choice(list(kinds))
            killed[whom] += kinds[whom](process.pid, chance)
        process.wait()
    subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
    _check_whole(out, killed, starts)


@contextlib.contextmanager
def _cluster() -> Iterator[tuple[str, Callable[[], bool]]]:
    """A Ray cluster of a head without workers and two nodes; its address, and what kills one node and starts another."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]

    def kill_node() -> bool:
        cluster.remove_node(nodes.pop(0), allow_graceful=False)
        nodes.append(cluster.add_node(num_cpus=1))
        return True

    try:
        yield cluster.address, kill_node
    finally:
        cluster.shutdown()


def _kill_driver(driver: int, chance: random.Random) -> bool:
    return _kill([driver], chance)


def _kill_worker(driver: int, chance: random.Random) -> bool:
    return _kill(_family(driver)[1:], chance)


def _kill_seat(driver: int, chance: random.Random) -> bool:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return _kill([pid for pid in pids if _command_of(pid).startswith("ray::RayWorker")], chance)


def _done_or_0(out: Path) -> int:
    return _done(out) if (out / "state" / "state.sqlite").exists() else 0


def _kill(candidates: Sequence[int], chance: random.Random) -> bool:
    """Kill one of these processes; False where there is none just now."""
    try:
        os.kill(chance.choice(candidates), signal.SIGKILL)
    except (IndexError, ProcessLookupError):
        return False
    return True


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _check_whole(out: Path, killed: Counter[str], starts: int) -> None:
    from vip.dataset.shards import read_samples, read_shards, verify

    reports: list[str] = []
    shards = list(read_shards(str(out), reports.append))
    keys = Counter(clip.video.key for clip in read_samples(str(out)))
    twice = [key for key, count in keys.items() if count > 1]
    told = ", ".join(f"{count} {whom}s" for whom, count in killed.items())
    print(f"kills ({out.name}): {told}; {starts} starts; {len(shards)} shards")
    goal(f"videos in the shards (asked {VIDEOS})", len(keys), "videos", len(keys) == VIDEOS)
    goal("videos twice (asked 0)", len(twice), "videos", not twice)
    problems = [*reports, *verify(str(out))]
    goal("what is wrong with the shards (asked 0)", len(problems), "problems", not problems)


# ---------------------------------------------------------------- a million ids


LIST = """
import resource, sys, time
from vip.config import BatchSettings
from vip.corpus.batch import batch
from vip.corpus.settings import BatchConfig

class First(Exception):
    pass

class Workers:
    def has_capacity(self, *, fetch): return True
    def submit(self, work): raise First
    def events(self, timeout_s): return []
    def close(self): pass

start = time.perf_counter()
try:
    batch([sys.argv[1]], sys.argv[2], BatchConfig(BatchSettings(sample=500_000)), executor=lambda *given: Workers())
except First:
    pass
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def million(work: Path, rounds: int) -> None:
    """Read, weighted, half of them chosen, and the first handed out."""
    chance, names = random.Random(1), work / "million.csv"
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
    verticals = ("Games", "News", "Sports", "Music", "Science", "Arts & Entertainment")
    with names.open("w") as file:
        file.write("id,verticals\n")
        for _ in range(1_000_000):
            file.write(f"{''.join(chance.choices(letters, k=11))},{chance.choice(verticals)}\n")
    told = subprocess.run(
        [sys.executable, "-c", LIST, names, _fresh(work / "million")], check=True, capture_output=True, text=True, cwd=ROOT
    )
    seconds, megabytes = map(float, told.stdout.split())
    print("list: 1,000,000 ids with verticals")
    goal("read, weighted and started (asked 60)", seconds, "s", seconds <= 60)
    goal("memory (asked 500)", megabytes, "MB", megabytes <= 500)


# ---------------------------------------------------------------- a simulated cluster


def simulation(work: Path, rounds: int, *, items: int = 100_000, workers: int = 64, pace: float = 4.0) -> None:
    """Ray actors whose downloads and decoding are sleeps; for how much of their time they wait for the scheduler.

    Args:
        pace: so much quicker than real, which is so much harder for the scheduler.
    """
    from simulated import simulate

    told = simulate(_fresh(work / "simulation"), items, workers, pace=pace)
    print(f"simulation: {items:,} items on {workers} Ray workers at {pace:g} times the real pace: {told['wall_s']:.0f} s")
    late, network = (100 * told[name] / (told["wall_s"] * workers) for name in ("late_s", "network_s"))
    waits = told["scheduler_s"] / sum(told[name] for name in ("scheduler_s", "network_s", "late_s", "work_s"))
    goal("of the workers' time waiting for the scheduler (asked 2)", 100 * waits, "%", waits < 0.02)
    idle = 1 - told["work_s"] / (told["wall_s"] * workers)
    print(f"  {100 * idle:.1f} % of the time without work: {network:.1f} % for downloads, {late:.1f} % since {workers} processes share")
    print("  this machine and wake up late, and the rest for their start and the end of the list")
    print(f"  the driver used {told['driver_cpu_s']:.0f} CPU seconds, {1e3 * told['driver_cpu_s'] / items:.2f} ms an item")


PARTS: dict[str, Callable[[Path, int], None]] = {
    "throughput": throughput,
    "memory": memory,
    "kills": kills,
    "list": million,
    "simulation": simulation,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which of them; all by default")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "vip-benchmark-batch")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    for name in given.parts or PARTS:
        PARTS[name](given.work, given.rounds)


if __name__ == "__main__":
    main()
