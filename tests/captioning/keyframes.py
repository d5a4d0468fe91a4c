"""Keyframes on the disk, engines whose answers a test writes, and what the captioning stage told about them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tests.llm.clockwork import Clockwork
from vip import store
from vip.captioning import describe as stage
from vip.captioning.describe import DescribedKeyframe, FailedKeyframe, KeyframeSequence, KeyframeTask
from vip.captioning.describer import CaptionConfig, Describer
from vip.llm.budget import Budget, Usage
from vip.llm.client import EngineClient
from vip.llm.limiter import AdaptiveLimiter
from vip.models.fake import FakeEngine
from vip.prompts import load_prompts
from vip.protocols import Engine, EngineCapabilities, Reply, Request
from vip.records import Description, Detection, Failure, Image, Keyframe, Manifest, Quality, VideoInfo
from vip.store import KeyframePicture

PROMPTS = load_prompts()
FAMOUS = {"focus": "a test", "action": "not determined", "mood": "calm", "objects": ["a box"], "setting": "a room"}
DIRECT = {"dense_caption": "A dense caption.", **FAMOUS}
PERSON = Detection(label="person", score=0.9, box_xyxy=(0, 0, 0.3, 1), source="test")


def noise(number: int, size: tuple[int, int] = (48, 64)) -> Image:
    """(height, width, 3) that looks like no other."""
    return np.random.default_rng(number).integers(0, 256, (*size, 3), np.uint8)


def keyframe(
    folder: Path, number: int, *, size: tuple[int, int] = (48, 64), suffix: str = "jpg", video: str = "v", **changed: Any
) -> KeyframePicture:
    """With its picture."""
    (folder / "keyframes").mkdir(parents=True, exist_ok=True)
    name = f"keyframes/{number:04d}.{suffix}"
    store.write_picture(folder / name, noise(number + sum(os.fsencode(video)) * 1000, size))
    about = {
        **{"id": f"{video}:{number:04d}", "video_id": video, "time_s": number * 1.5, "pts": number, "image_path": name},
        **{"width_px": size[1], "height_px": size[0], "quality": Quality(sharpness=100, brightness=0.5, contrast=0.2)},
        **{"detections": (PERSON,), "candidate": number},
    }
    return KeyframePicture(Keyframe(**{**about, **changed}), folder)


def keyframes(folder: Path, count: int, **changed: Any) -> list[KeyframePicture]:
    return [keyframe(folder, number, **changed) for number in range(count)]


def run_folder(path: Path, count: int, **changed: Any) -> Path:
    """A finished extraction whose keyframes are not described yet."""
    items = keyframes(path, count, **{"video": path.name.partition(".")[0], **changed})
    store.write_rows(path / store.KEYFRAMES, [item.record for item in items])
    store.write_json(path / store.MANIFEST, manifest())
    return path


def manifest() -> Manifest:
    about: dict[str, Any] = {"sha256": None, "size_bytes": 1, "modified_ns": 0, "container": "mp4", "codec": "h264"}
    more: dict[str, Any] = {"pixel_format": "yuv420p", "width_px": 64, "height_px": 48, "rotation_deg": 0, "start_time_s": 0.0}
    video = VideoInfo(
        path="v.mp4",
        pixel_aspect_ratio=Fraction(1),
        frame_rate=Fraction(25),
        duration_s_from_header=9.0,
        end_time_s=9.0,
        frames=1,
        sync_frames=1,
        **about,
        **more,
    )
    return Manifest(
        command="vip extract v.mp4",
        settings={},
        backends={"detector": "test"},
        versions={},
        device="cpu",
        video_id="v",
        video=video,
        seconds={"extract": 1.0},
        created_utc="2026-01-01T00:00:00+00:00",
    )


def marker(item: KeyframePicture) -> str:
    """How the test server names the picture, where it gets the file as it lies."""
    return f"picture {sha256(item.path.read_bytes()).hexdigest()[:12]}"


# ---------------------------------------------------------------- engines


class Scripted(FakeEngine):
    """An engine that sees, whose answers a test writes; a JSON object where one is asked for."""

    tokens = (11, 7)

    def __init__(self, answer: Callable[[Request, int], Any] = lambda request, number: DIRECT, **about: Any) -> None:
        super().__init__(None)
        self.answer = answer
        can = {one.name for one in fields(EngineCapabilities)}
        self.capabilities = replace(self.capabilities, **{name: value for name, value in about.items() if name in can})
        for name in about.keys() - can:
            setattr(self, name, about[name])

    async def generate(self, request: Request) -> Reply:
        await super().generate(request)
        text = self.answer(request, len(self.requests))
        return Reply(text if isinstance(text, str) else json.dumps(text), f"{self.name}-model", *self.tokens)


def paper(request: Request, number: int) -> Any:
    """What a model says to each of the three questions, and to that about the topic."""
    said = {"caption": "AN OVERALL CAPTION", "describe": "A DENSE CAPTION", "topic": {"objects": ["surfboard", " wave ", "", "wave"]}}
    return said.get(request.stage, FAMOUS)


def describer(engine: Engine, structure: Engine | None = None, *, clock: Callable[[], float] | None = None, **config: Any) -> Describer:
    limiter = {"clock": clock} if clock else {}
    clients = [EngineClient(one, Budget(None), AdaptiveLimiter(**limiter)) for one in (engine, structure) if one is not None]
    return Describer(clients[0], clients[-1], PROMPTS, CaptionConfig(**config))


# ---------------------------------------------------------------- the stage


@dataclass
class Told:
    """What the stage reported."""

    descriptions: list[Description] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    over: int = 0

    @property
    def described(self) -> list[str]:
        return sorted(row.keyframe_id for row in self.descriptions)

    def add(self, outcome: stage.Outcome) -> None:
        if isinstance(outcome, DescribedKeyframe):
            self.descriptions.append(outcome.description)
        elif isinstance(outcome, FailedKeyframe):
            self.failures.append(outcome.failure)
        self.over += 1


def tasks_of(items: Sequence[KeyframePicture], known: dict[str, Description]) -> Iterator[KeyframeTask]:
    previous = None
    for number, item in enumerate(items, 1):
        yield KeyframeTask(item, previous, number, len(items), "test", Usage(), known.get(item.id))
        previous = item


def describe(
    items: Sequence[KeyframePicture],
    engine: Engine,
    told: Told | None = None,
    *,
    known: dict[str, Description] | None = None,
    structure: Engine | None = None,
    **config: Any,
) -> Told:
    """Describe them in made-up time: those with a context in a row, all others side by side."""
    told = told or Told()
    tasks = tasks_of(items, known or {})

    def sequences() -> Iterator[KeyframeSequence]:
        yield from [tasks] if config.get("context") else ([task] for task in tasks if task.known is None)

    with Clockwork() as clock:

        async def go() -> None:
            work = describer(engine, structure, clock=clock, **config)
            try:
                async with aclosing(stage.describe(work, sequences(), Usage())) as outcomes:
                    async for outcome in outcomes:
                        told.add(outcome)
            finally:
                await engine.close()

        clock.run(go())
    return told


async def settle() -> None:
    """Until everybody who can go on has gone on."""
    for _ in range(10):
        await asyncio.sleep(0)
