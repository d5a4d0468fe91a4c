"""Run one command and print what the operating system says about it, as JSON: wall_s, cpu_s, peak_mb, exit_code.

A process of its own because a child counts its parent's memory as its own peak until it has replaced the parent's program by
its own: a benchmark that has loaded OpenCV would find no program smaller than itself. This one is as small as Python gets.

    python -I -S benchmarks/launch.py COMMAND …
"""

import json
import os
import subprocess
import sys
import time

start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
wall_s = time.perf_counter() - start
cpu_s, peak_mb = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
json.dump({"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_mb, "exit_code": os.waitstatus_to_exitcode(status)}, sys.stdout)
