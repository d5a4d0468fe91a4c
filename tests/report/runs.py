"""Small run folders, written through vip.store as a real run is, with every text open to a hostile hand."""

from __future__ import annotations

import zipfile
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np

from vip import store
from vip.records import (
    Call,
    Candidate,
    CandidateCounts,
    Decision,
    Description,
    Detection,
    Embeddings,
    Failure,
    Famous,
    Image,
    Keyframe,
    Manifest,
    Quality,
    Rule,
    VideoInfo,
)
from vip.store import Run, load_run

TIME_BASE = Fraction(1, 1000)
RULES: tuple[Rule, ...] = (
    "kept",
    "pruned",
    "blurred",
    "kept",
    "duplicate",
    "black",
    "unreadable",
    "kept",
    "flat",
    "white",
    "below_min_sharpness",
)
"""The rules of the candidates, one every second."""


def picture(seed: int, *, width_px: int = 64, height_px: int = 48) -> Image:
    return np.random.default_rng(seed).integers(0, 256, (height_px, width_px, 3), np.uint8)


def candidates(rules: tuple[Rule, ...] = RULES, *, text: str = "") -> list[Candidate]:
    return [
        Candidate(
            index=i,
            pts=1000 * i,
            time_base=TIME_BASE,
            time_s=float(i),
            is_sync=i == 0,
            quality=None if rule == "unreadable" else Quality(sharpness=100.0 + i, brightness=0.5, contrast=0.2),
            stands_in_for=2400 if i == 3 else None,
            decision=Decision(kept=rule == "kept", rule=rule, reason=f"reason {i}{text}"),
        )
        for i, rule in enumerate(rules)
    ]


def keyframes(folder: Path, rows: list[Candidate], *, text: str = "", width_px: int = 64, height_px: int = 48) -> list[Keyframe]:
    """With their pictures."""
    found = []
    for row in rows:
        if row.decision.kept and row.quality:
            name = f"keyframes/{row.index:04d}.jpg"
            (folder / "keyframes").mkdir(exist_ok=True)
            store.write_picture(folder / name, picture(row.index, width_px=width_px, height_px=height_px))
            detection = Detection(label=f"person{text}", score=0.75, box_xyxy=(0.1, 0.2, 0.5, 1.2), source=f"opencv{text}")
            found.append(
                Keyframe(
                    id=f"k{row.index}{text}",
                    video_id="v",
                    time_s=row.time_s,
                    pts=row.pts,
                    image_path=name,
                    width_px=width_px,
                    height_px=height_px,
                    quality=row.quality,
                    detections=(detection,),
                    candidate=row.index,
                )
            )
    return found


def manifest(rows: list[Candidate], *, text: str = "") -> Manifest:
    kept = sum(row.decision.kept for row in rows)
    return Manifest(
        command=f"vip extract{text}",
        settings={"keyframes": kept + 1, "min_sharpness": 90.0, f"more{text}": [text]},
        backends={"embedder": f"classic{text}"},
        versions={"vip": f"0.1{text}"},
        device="cpu",
        video_id="v",
        video=VideoInfo(
            path=f"/films/holiday{text}.mp4",
            sha256="ab" * 32,
            size_bytes=2_500_000,
            modified_ns=0,
            container="mp4",
            codec=f"h264{text}",
            pixel_format="yuv420p",
            width_px=64,
            height_px=48,
            rotation_deg=0,
            pixel_aspect_ratio=Fraction(1),
            frame_rate=Fraction(25),
            duration_s_from_header=None,
            start_time_s=0.0,
            end_time_s=float(len(rows) - 1),
            frames=300,
            sync_frames=3,
        ),
        notes=(f"fewer keyframes than asked{text}",),
        counts=CandidateCounts(asked=kept + 1, candidates=len(rows), bad=0, pruned=len(rows) - kept, duplicates=0, keyframes=kept),
        seconds={f"sample{text}": 0.5, "select": 0.25},
        created_utc="2025-03-05T14:03:00+00:00",
    )


def description(keyframe: Keyframe, *, text: str = "", engine: str = "openai:gpt-5-mini") -> Description:
    call = Call(
        engine=engine,
        model=f"gpt-5-mini-2025-08-07{text}",
        prompt=f"describe{text}",
        prompt_version="1",
        prompt_sha256="cd" * 32,
        parameters={},
        tokens_in=800,
        tokens_out=None,
        usd=None,
        latency_s=1.5,
        created_utc="2025-03-05T14:03:00+00:00",
    )
    return Description(
        keyframe_id=keyframe.id,
        time_s=keyframe.time_s,
        engine=f"{engine}{text}",
        grounding=(f"a person at the left{text}",),
        dense_caption=f"The caption of {keyframe.time_s}{text}",
        famous=Famous(
            focus=f"a dancer{text}",
            action=f"leaps{text}",
            mood="not determined",
            objects=(f"rope{text}", f"ball{text}"),
            setting=f"a hall{text}",
        ),
        calls=(call,),
    )


def make_run(
    folder: Path, *, rules: tuple[Rule, ...] = RULES, text: str = "", described: bool = True, failed: int = 0, width_px: int = 64
) -> Run:
    """A run with everything; `text` is appended to every text of it. The last `failed` keyframes have no description."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = candidates(rules, text=text)
    frames = keyframes(folder, rows, text=text, width_px=width_px)
    store.write_rows(folder / store.CANDIDATES, rows)
    store.write_rows(folder / store.KEYFRAMES, frames)
    store.write_json(folder / store.MANIFEST, manifest(rows, text=text))
    decoded = [row.index for row in rows if row.quality]
    vectors = np.array([[np.cos(i / 10), np.sin(i / 10)] for i in decoded], np.float32)
    store.write_embeddings(folder / store.EMBEDDINGS, Embeddings(vectors, vectors, f"classic{text}"))
    write_thumbnails(folder, decoded)
    if described:
        store.write_rows(folder / store.DESCRIPTIONS, [description(frame, text=text) for frame in frames[: len(frames) - failed]])
    if failed:
        failures = [Failure(item=frame.id, kind="ReplyError", message=f"refused {frame.id}", exit_code=6) for frame in frames[-failed:]]
        store.write_rows(folder / store.FAILURES, failures)
    return load_run(folder)


def make_pictures(folder: Path, *, text: str = "") -> Run:
    """A folder of pictures that come from no video."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for i in range(3):
        name = f"holiday {i}.png"
        store.write_picture(folder / name, picture(i))
        quality = Quality(sharpness=50.0, brightness=0.5, contrast=0.2)
        rows.append(
            Keyframe(
                id=f"p{i}{text}", video_id="photos", time_s=None, pts=None, image_path=name, width_px=64, height_px=48, quality=quality,
                detections=(), candidate=None,
            )
        )  # fmt: skip
    store.write_rows(folder / store.KEYFRAMES, rows)
    return load_run(folder)


def write_thumbnails(folder: Path, indices: list[int]) -> None:
    with zipfile.ZipFile(folder / store.THUMBNAILS, "w") as archive:
        for i in indices:
            archive.writestr(f"{i:06d}.jpg", cv2.imencode(".jpg", picture(i))[1].tobytes())


def make_own(run: Run) -> Run:
    """Sign a run, as this machine does with those that it made, and return it anew."""
    assert run.manifest is not None
    store.write_json(run.folder / store.MANIFEST, store.sign(run.manifest))
    return load_run(run.folder)
