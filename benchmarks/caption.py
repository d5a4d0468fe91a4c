"""Describing against a server on localhost: throughput, CPU and memory, beside a bare asyncio loop over the openai library.

    python benchmarks/caption.py

The server is a process of its own that answers after a given time. The bare loop does the least there is to do: read a picture,
encode it, ask for the same JSON with the same number of requests in flight. Each runs in a process of its own, in turn; CPU
counts from the first request on, without what is imported before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PICTURES, IN_FLIGHT, PICTURE_BYTES = 1000, 64, 100_000
SLOW_S, QUICK_S = 1.0, 0.2


def make_folder(folder: Path, count: int) -> None:
    """Pictures of about 100 kB, each another, as keyframes of a run folder."""
    import cv2
    import numpy as np

    from vip import store
    from vip.records import Keyframe, Quality

    folder.mkdir()
    random = np.random.default_rng(1)
    noise = random.integers(0, 256, (576, 1024, 3), np.uint8)
    image = cv2.addWeighted(cv2.GaussianBlur(noise, (0, 0), 1.2), 0.6, cv2.GaussianBlur(noise, (0, 0), 9), 0.4, 0)
    quality = next(q for q in range(30, 100) if len(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, q])[1]) >= PICTURE_BYTES)
    rows = []
    for number in range(count):
        cv2.putText(image, str(number), (20 + number % 900, 40 + number % 500), cv2.FONT_HERSHEY_SIMPLEX, 1, (255, 255, 255), 2)
        (folder / f"{number:06d}.jpg").write_bytes(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes())
        rows.append(
            Keyframe(
                id=f"{number:06d}.jpg",
                video_id="bench",
                time_s=None,
                pts=None,
                image_path=f"{number:06d}.jpg",
                width_px=1024,
                height_px=576,
                quality=Quality(sharpness=100, brightness=0.5, contrast=0.2),
                detections=(),
                detector="opencv",
                candidate=None,
            )
        )
    store.write_rows(folder / store.KEYFRAMES, rows)


# ---------------------------------------------------------------- what is compared, each in a process of its own


def bare(folder: Path, address: str) -> None:
    """The loop that a user would write."""
    import base64

    import openai

    from vip.prompts import load_prompts

    prompt = load_prompts()["direct"]
    form = {"type": "json_schema", "json_schema": {"name": "Direct", "schema": prompt.schema, "strict": True}}
    client = openai.AsyncOpenAI(base_url=address, api_key="none", max_retries=0)
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def ask(path: Path) -> None:
        async with slots:
            url = "data:image/jpeg;base64," + base64.b64encode(path.read_bytes()).decode()
            parts: Any = [{"type": "text", "text": prompt.body}, {"type": "image_url", "image_url": {"url": url, "detail": "high"}}]
            done = await client.chat.completions.create(
                model="tiny-vlm",
                messages=[{"role": "user", "content": parts}],
                max_tokens=2048,
                response_format=form,  # type: ignore[arg-type]
            )
            json.loads(done.choices[0].message.content or "")

    async def go() -> None:
        async with asyncio.TaskGroup() as group:
            for path in sorted(folder.glob("*.jpg")):
                group.create_task(ask(path))

    measured(lambda: asyncio.run(go()))


def described(folder: Path, address: str) -> None:
    """`vip caption`."""
    import vip.models.openai.engine
    import vip.pipeline

    with tempfile.TemporaryDirectory() as home:
        settings = {"engine": "openai:tiny-vlm", "base_url": address, "concurrency": IN_FLIGHT, "cache": Path(home) / "answers.sqlite"}
        measured(lambda: vip.pipeline.caption(folder, **settings))


def measured(work: Any) -> None:
    """Print what the work took: seconds, CPU seconds, and how much memory it needed beyond what was there before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, cpu = time.perf_counter(), time.process_time()
    work()
    took = {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}
    print(json.dumps({**took, "memory_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}))


def child(what: str, folder: Path, address: str) -> dict[str, float]:
    for name in ("descriptions.jsonl", "descriptions.partial.jsonl", "failures.jsonl"):
        (folder / name).unlink(missing_ok=True)
    command = [sys.executable, __file__, "--child", what, str(folder), address]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)


# ---------------------------------------------------------------- the comparison


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=PICTURES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        {"bare": bare, "vip": described}[given.child[0]](Path(given.child[1]), given.child[2])
        return
    from tests.api_server import ApiServer

    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "pictures"
        make_folder(folder, given.pictures)
        with ApiServer(delay_s=SLOW_S) as server:
            slow = child("vip", folder, server.base_url)
        with ApiServer(delay_s=QUICK_S) as server:
            rounds = [{what: child(what, folder, server.base_url) for what in ("bare", "vip")} for _ in range(given.rounds)]
    sys.exit(report(given.pictures, slow, rounds))


def report(pictures: int, slow: dict[str, float], rounds: list[dict[str, dict[str, float]]]) -> int:
    """Print the figures and what is missed; the exit code."""
    share = pictures * SLOW_S / IN_FLIGHT / slow["wall_s"]
    turns = ceil(pictures / IN_FLIGHT) * SLOW_S  # what the limit allows to a number of requests that it does not divide
    speed = median(one["bare"]["wall_s"] / one["vip"]["wall_s"] for one in rounds)
    cpu = median(one["vip"]["cpu_s"] / one["bare"]["cpu_s"] for one in rounds)
    walls = ", ".join(f"{one['bare']['wall_s']:.1f} and {one['vip']['wall_s']:.1f}" for one in rounds)
    print(f"{pictures} pictures of {PICTURE_BYTES // 1000} kB, {IN_FLIGHT} in flight")
    print(f"answers after {SLOW_S:g} s: {slow['wall_s']:.1f} s, {share:.1%} of the limit, {turns / slow['wall_s']:.1%} in whole turns")
    print(f"memory: {slow['memory_mb']:.0f} MB above the start")
    print(f"answers after {QUICK_S:g} s, the bare loop and vip: {walls} s: {speed:.1%} of its throughput, {cpu:.2f} times its CPU")
    goals = {
        "95 % of what the limit allows": share >= 0.95,
        "150 MB above the start": slow["memory_mb"] <= 150,
        "95 % of the bare loop's throughput": speed >= 0.95,
        "1.25 times its CPU": cpu <= 1.25,
    }
    missed = [name for name, kept in goals.items() if not kept]
    for name in missed:
        print(f"MISSED: {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    main()
