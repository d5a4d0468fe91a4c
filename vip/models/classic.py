"""The embedder `classic`: what a picture looks like, from OpenCV and numpy alone. No weights, deterministic.

Image vector (1,544 numbers), five blocks, each of length 1 and then weighted so that the cosine of two pictures is the
weighted mean of the blocks' cosines:

    palette   0.30   histogram of hue, saturation and value of the whole picture (12 × 6 × 6), square-rooted, so that the
                     cosine is the Bhattacharyya coefficient: the colours of a scene stay while camera and people move
    gradients 0.30   4 × 4 cells; in each a histogram of 8 edge directions, weighted by strength, square-rooted
    layout    0.15   the picture at 16 × 9 in CIELAB, as differences from mid-grey
    format    0.15   which rows and columns carry picture, and which are black bars
    regions   0.10   4 × 4 cells; in each a histogram of lightness (6 bins) and of chroma (5 × 5 bins), square-rooted

The weights were searched on 12 mixes of known clips: docs/decisions/0005-classic-embedder.md.

Text vector (256 numbers): the words of an object list, hashed (signed feature hashing), each word once for what and
once for where; and one constant word that every text shares, so that "nothing found" and "one face" are unlike but not
opposite: a detector that misses a face must not tear two pictures of one scene apart.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from vip.cielab import cielab_of_picture
from vip.errors import BackendError
from vip.protocols import EmbedderCapabilities
from vip.records import Image, Vectors
from vip.wording import option

Block = npt.NDArray[np.float32]
Plane = npt.NDArray[np.uint8]

WEIGHTS = {"palette": 0.3, "gradients": 0.3, "layout": 0.15, "format": 0.15, "regions": 0.1}
SIZE = (160, 90)
PALETTE_BINS = (12, 6, 6)
CELLS = 4
LIGHTNESS_BINS, CHROMA_BINS, DIRECTIONS = 6, 5, 8
LAYOUT = (16, 9)
COLUMNS, ROWS = 32, 24
BAR_LEVEL = 24  # grey level up to which a row or column is a black bar
CHROMA_STRETCH = 2  # chroma uses half the range that lightness does
DIMS = {
    "palette": PALETTE_BINS[0] * PALETTE_BINS[1] * PALETTE_BINS[2],
    "gradients": CELLS * CELLS * DIRECTIONS,
    "layout": LAYOUT[0] * LAYOUT[1] * 3,
    "format": COLUMNS + ROWS,
    "regions": CELLS * CELLS * (LIGHTNESS_BINS + CHROMA_BINS**2),
}
TEXT_DIM = 256
SHARED_WORD_WEIGHT = 5.0
SCORE, SEPARATORS, FILLERS = re.compile(r"\(\d+%\)"), re.compile(r"[,.]"), frozenset({"a", "at", "in", "the"})


class ClassicEmbedder:
    """Pictures and object lists to vectors, without a model."""

    name = "classic"
    dim = sum(DIMS.values())
    # of five clips with 1 to 12 shots, auto then keeps 1 to 12 frames; with 0.80 only one of most
    capabilities = EmbedderCapabilities(redundant_cosine=0.88)

    def __init__(self, detail: str | None, **where_models_run: str) -> None:
        if detail is not None:
            raise BackendError(f'The embedder "classic" takes no detail, but got "{detail}". Write {option("embedder", "classic")}.')

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        """Return float32 (N, 1544), rows of length 1."""
        return np.array([_image_vector(image) for image in images], np.float32).reshape(len(images), self.dim)

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Return float32 (N, 256), rows of length 1."""
        return np.array([_text_vector(text) for text in texts], np.float32).reshape(len(texts), TEXT_DIM)


def _image_vector(image: Image) -> Block:
    small = np.asarray(cv2.resize(image, SIZE, interpolation=cv2.INTER_AREA), np.uint8)
    grey = np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), np.uint8)
    lab = cielab_of_picture(small)
    blocks = {
        "palette": _palette(small),
        "gradients": _gradients(grey),
        "layout": _layout(lab),
        "format": _format(grey),
        "regions": _regions(lab),
    }
    return np.concatenate([np.float32(weight**0.5) * _normalize(blocks[name]) for name, weight in WEIGHTS.items()])


def _palette(small: Image) -> Block:
    hsv = cv2.cvtColor(small, cv2.COLOR_RGB2HSV)
    return np.asarray(np.sqrt(cv2.calcHist([hsv], [0, 1, 2], None, list(PALETTE_BINS), [0, 180, 0, 256, 0, 256])), np.float32).ravel()


def _gradients(grey: Plane) -> Block:
    level = grey.astype(np.float32)
    dx, dy = cv2.Sobel(level, cv2.CV_32F, 1, 0), cv2.Sobel(level, cv2.CV_32F, 0, 1)
    strength, angle = (np.asarray(part, np.float32) for part in cv2.cartToPolar(dx, dy))
    direction = (angle * (DIRECTIONS / np.pi)).astype(np.int32) % DIRECTIONS  # an edge and its reverse are one direction
    return np.asarray(np.sqrt(_cell_histograms(direction, DIRECTIONS, strength)), np.float32)


def _layout(lab: Image) -> Block:
    tiny = np.asarray(cv2.resize(lab, LAYOUT, interpolation=cv2.INTER_AREA), np.float32) - 128
    tiny[..., 1:] *= CHROMA_STRETCH
    return tiny.ravel()


def _format(grey: Plane) -> Block:
    has_picture = [(grey.max(axis=axis) > BAR_LEVEL).astype(np.float32) for axis in (0, 1)]
    parts = [
        cv2.resize(line[None], (size, 1), interpolation=cv2.INTER_AREA) for line, size in zip(has_picture, (COLUMNS, ROWS), strict=True)
    ]
    return np.asarray(np.concatenate(parts, axis=1) - 0.5, np.float32).ravel()


def _regions(lab: Image) -> Block:
    levels = lab.astype(np.int32)
    a, b = (np.clip((levels[..., channel] - 128 + 50) * CHROMA_BINS // 100, 0, CHROMA_BINS - 1) for channel in (1, 2))
    bins = [_cell_histograms(levels[..., 0] * LIGHTNESS_BINS // 256, LIGHTNESS_BINS), _cell_histograms(a * CHROMA_BINS + b, CHROMA_BINS**2)]
    return np.asarray(np.sqrt(np.concatenate(bins)), np.float32)


def _cell_histograms(values: npt.NDArray[np.int32], bins: int, weights: npt.NDArray[np.float32] | None = None) -> Block:
    """Return a histogram of `values` in each of the 4 × 4 cells: float32 (16 · bins,)."""
    height, width = values.shape
    cell = (np.arange(height) * CELLS // height)[:, None] * CELLS + np.arange(width) * CELLS // width
    counts = np.bincount(
        (cell * bins + values).ravel(), weights=None if weights is None else weights.ravel(), minlength=CELLS * CELLS * bins
    )
    return counts.astype(np.float32)


def _normalize(vector: Block) -> Block:
    length = float(np.linalg.norm(vector))
    if length < 1e-6:  # a flat picture has no gradients and no layout; two such pictures are alike
        return np.full(vector.shape, len(vector) ** -0.5, np.float32)
    return np.asarray(vector / np.float32(length), np.float32)


def _tokenize(text: str) -> list[str]:
    """Return the words and the whole phrases of an object list, without its scores. Phrases keep an object with its place."""
    phrases = [phrase.strip() for phrase in SEPARATORS.split(SCORE.sub("", text.lower())) if phrase.strip()]
    return [*phrases, *(word for phrase in phrases for word in phrase.split() if word not in FILLERS)]


def _text_vector(text: str) -> Block:
    vector = np.zeros(TEXT_DIM, np.float32)
    vector[0] = SHARED_WORD_WEIGHT
    for word, count in Counter(_tokenize(text)).items():
        digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
        index = 1 + int.from_bytes(digest[:3], "big") % (TEXT_DIM - 1)
        vector[index] += (1 if digest[3] % 2 else -1) * count**0.5
    return _normalize(vector)
