"""Dominant colours by plain names: what a person would call the large areas of a picture.

In: an RGB picture. Out: names with shares, and how colourful it is. Each pixel of a small copy takes the name of the
nearest entry of a table in CIELAB, where distances are close to those that people see; the same picture gives the same
answer on every machine, which clustering from random seeds would not.
"""

from __future__ import annotations

from collections import Counter

import cv2
import numpy as np
import numpy.typing as npt

from vip.cielab import cielab_of_colours
from vip.records import Image

Colours = npt.NDArray[np.float32]  # (..., 3) RGB in [0, 1], or CIELAB

LONGEST_SIDE_PX = 128  # areas are asked for, not details; averaging down also takes the noise away
LEAST_SHARE = 0.05
MOST_NAMES = 5
LIGHTNESS_WEIGHT = 0.7  # shadow and light change L more than they change what people call a colour
NEAR_BLACK = 0.1  # HSV value below which saturation is noise

TABLE: dict[str, tuple[str, ...]] = {
    "black": ("000000", "101010", "1c1c1c", "140c0a", "0a0c14", "0c1410", "1a1210"),
    "dark grey": ("303030", "464646", "3a3835", "35383c", "2f4f4f"),
    "grey": ("666666", "808080", "969696", "8a867f", "7f868c"),
    "light grey": ("b0b0b0", "c8c8c8", "dadada", "c6c4be", "bcc4ca"),
    "white": ("f0f0f0", "ffffff", "fafaf2", "f2f5fa"),
    "beige": ("f5f5dc", "e8d8bc", "d8c4a4", "c8b08c", "e6c8ae", "d2b48c", "c4a68a", "ddb899"),
    "brown": (
        *("2e1c10", "44291a", "5a3a24", "70482c", "8b4513", "8a6242", "a0522d"),
        *("96704e", "a57c58", "553c30", "6e5442", "b8860b", "b87333"),
    ),
    "dark red": ("3c0608", "5a0a0e", "8b0000", "7c1a20"),
    "red": ("b41414", "d21e1e", "ff0000", "dc3c3c", "e04a42", "c8102e"),
    "pink": ("ffc0cb", "ff69b4", "e08ca0", "f4a0b4", "ff1493", "d87896", "e6b4be", "fa8072", "e9a08c"),
    "orange": ("ff8c00", "ffa500", "f07820", "e0641e", "ff7f50", "d2691e", "eb9650", "ffb060"),
    "yellow": ("ffff00", "ffd700", "f0dc3c", "e6c81e", "fff08c", "daa520", "e8d870"),
    "olive": ("808000", "6b6b2a", "8c8440", "5a5a1e", "a09a50", "56502c"),
    "dark green": ("003200", "0a460a", "143c1e", "234628", "2e4a2a", "1c3018"),
    "green": ("008000", "228b22", "32a032", "00c800", "3c8c50", "558048", "6aa050", "4e7040", "00ff00", "6b8e23"),
    "light green": ("90ee90", "98d878", "b4e6a0", "aad2aa", "c8f0b4", "adff2f"),
    "turquoise": ("008080", "20b2aa", "40e0d0", "00a0a0", "2a6e70", "00ffff", "78c8c8", "1a5052"),
    "light blue": ("add8e6", "87ceeb", "a0c4ff", "b0c8e6", "8cb4dc", "c8e0f4"),
    "blue": ("0000ff", "1e50c8", "4169e1", "4682b4", "1e90ff", "3c64a0", "507ab0", "6488b0", "0064b4"),
    "dark blue": ("000080", "0a1446", "14285a", "1e3264", "00003c", "1c2c48", "283c5c", "191970"),
    "purple": ("800080", "6a329f", "4b0082", "9370db", "b450c8", "5c3c78", "8c6ea8", "b49cd2", "ff00ff", "3c2050"),
}
"""Names with the sRGB colours they stand for. No entry names skin: it reads as beige, brown, pink or orange like anything else."""


def _weighted_lab(rgb: Colours) -> Colours:
    """Convert (N, 3) RGB in [0, 1] to (N, 3) CIELAB, lightness scaled by its weight."""
    lab = cielab_of_colours(rgb.reshape(1, -1, 3)).reshape(-1, 3)
    lab[:, 0] *= LIGHTNESS_WEIGHT
    return lab


def shrink(image: Image, longest_side_px: int) -> Image:
    """Return the picture with its longest side at most that long; a smaller one as it is."""
    height, width = image.shape[:2]
    scale = longest_side_px / max(height, width)
    if scale >= 1:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def names_of(rgb: Colours) -> list[str]:
    """Return the name of each of (N, 3) colours in [0, 1]."""
    names = [name for name, shades in TABLE.items() for _ in shades]
    entries = [tuple(bytes.fromhex(shade)) for shades in TABLE.values() for shade in shades]
    table = _weighted_lab(_unit(np.asarray(entries, np.uint8)))
    pixels = _weighted_lab(rgb)
    # |p - t|² without |p|², which is the same for every t
    distances = (table * table).sum(1) - 2 * pixels @ table.T
    return [names[index] for index in distances.argmin(1)]


def dominant_colours(image: Image) -> tuple[tuple[str, float], ...]:
    """Return up to five names with their share of the picture, the largest first; areas under 5 % are left out."""
    pixels = _unit(shrink(image, LONGEST_SIDE_PX).reshape(-1, 3))
    counts = Counter(names_of(pixels))
    shares = [(name, round(count / len(pixels), 3)) for name, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))]
    return tuple(entry for entry in shares[:MOST_NAMES] if entry[1] >= LEAST_SHARE) or tuple(shares[:1])


def _unit(rgb: npt.NDArray[np.uint8]) -> Colours:
    return rgb.astype(np.float32) / np.float32(255)


def colourfulness(image: Image) -> float:
    """Return mean HSV saturation in [0, 1], that of near-black pixels counted as 0."""
    small = _unit(shrink(image, LONGEST_SIDE_PX))
    hsv = cv2.cvtColor(small, cv2.COLOR_RGB2HSV)
    return round(float(np.where(hsv[..., 2] > NEAR_BLACK, hsv[..., 1], 0).mean()), 3)
