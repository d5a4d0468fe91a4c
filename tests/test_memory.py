"""Memory that is freed goes back to the system, and threads share one heap."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the C library of other systems decides for itself")

HEAPS = """
import ctypes, sys, threading
from vip.memory import use_one_heap

libc = ctypes.CDLL(None)
if sys.argv[1] == "one":
    use_one_heap()

def work(barrier):
    kept = [bytes(3000) for _ in range(100)]
    barrier.wait()

barrier = threading.Barrier(4)
threads = [threading.Thread(target=work, args=(barrier,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""
FREED = """
from pathlib import Path
from vip.memory import give_back

def held_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

many = [bytes(3000) for _ in range(30_000)]
last = bytes(3000)
before = held_mb()
del many
freed = held_mb()
give_back()
print(before, freed, held_mb())
"""


FAULTS = """
import resource, sys
from vip.memory import use_one_heap

if sys.argv[1] == "one":
    use_one_heap()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    pictures = [bytearray(b"x") * 2**20 for _ in range(4)]
    del pictures
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def run(script: str, *arguments: str) -> str:
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("how", "is_one"), [("one", True), ("many", False)])
def test_threads_share_one_heap(how: str, is_one: bool) -> None:
    assert (run(HEAPS, how).count("<heap nr=") == 1) is is_one


def test_what_pictures_leave_is_used_for_the_next_ones() -> None:
    assert 5 * int(run(FAULTS, "one")) < int(run(FAULTS, "many"))


def test_what_was_freed_below_something_that_is_held_goes_back() -> None:
    before, freed, after = map(float, run(FREED).split())
    assert before - after > 60
    assert freed - after > 30
