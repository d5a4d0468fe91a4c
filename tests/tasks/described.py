"""Run folders whose keyframes are described, made quickly: no video is read."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from vip import store
from vip.records import Description, Famous, Keyframe, Quality

WORDS = ("dog", "frisbee", "park", "man", "ball", "river", "boat", "bird", "street", "car", "rain", "lamp", "table", "cup")


def described_folder(folder: Path, keyframes: int, *, first_word: int = 0) -> Path:
    """Write a folder of pictures with descriptions of their own words; its name names the video."""
    rows, said = [], []
    for number in range(keyframes):
        name, word = f"{number:04d}.jpg", f"{WORDS[(first_word + number) % len(WORDS)]} {number}"
        store.make_folder(folder / "keyframes")
        cv2.imwrite(str(folder / "keyframes" / name), np.full((90, 160, 3), 10 * number % 256, np.uint8))
        rows.append(
            Keyframe(
                id=f"{folder.name}:{number}",
                video_id=folder.name,
                time_s=float(number),
                pts=number,
                image_path=f"keyframes/{name}",
                width_px=160,
                height_px=90,
                quality=Quality(sharpness=100.0, brightness=0.5, contrast=0.2),
                detections=(),
                candidate=None,
            )
        )
        famous = Famous(focus=f"a {word}", action="it moves", mood="calm", objects=(word, "grass"), setting="outside")
        said.append(
            Description(
                keyframe_id=rows[-1].id,
                time_s=float(number),
                engine="by hand",
                grounding=(),
                dense_caption=f"A {word} in {folder.name}.",
                famous=famous,
                calls=(),
            )
        )
    store.write_rows(folder / store.KEYFRAMES, rows)
    store.write_rows(folder / store.DESCRIPTIONS, said)
    return folder
