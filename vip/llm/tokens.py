"""Token count of a question before it is asked: its pictures by the rule of their provider, its text by an estimate.

In: a rule and a picture's size, or a text. Out: tokens. The rules are those of the providers' guides, read in November 2026,
and stand model by model in prices.toml. Providers bill within a token or two of them.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated, Literal, assert_never

from pydantic import Field, PositiveFloat, PositiveInt

from vip.records import RecordPart

Detail = Literal["low", "high", "auto"]


class OpenAITiles(RecordPart):
    """OpenAI, "Images and vision", tile-based: squares of 512 px after fitting into 2048 px and a shortest side of 768."""

    rule: Literal["tiles"]
    base: PositiveInt
    """What a picture costs at least, and with `low` detail at most."""
    tile: PositiveInt


class OpenAIPictureLimits(RecordPart):
    """The size from which OpenAI shrinks a picture."""

    longest_px: PositiveInt | None = None
    patches: PositiveInt | None = None


class OpenAIPatches(RecordPart):
    """OpenAI, "Images and vision", patch-based: squares of 32 px, as many as the limits allow, times a multiplier."""

    rule: Literal["patches"]
    multiplier: PositiveFloat
    high: OpenAIPictureLimits
    low: OpenAIPictureLimits | None = None
    """None where it is as `high`; the same holds for `auto`."""
    auto: OpenAIPictureLimits | None = None


class ClaudePatches(RecordPart):
    """Anthropic, "Coordinates and image resizing": squares of 28 px of the largest picture within both limits."""

    rule: Literal["claude"]
    edge_px: PositiveInt = 1568
    tokens: PositiveInt = 1568


class GeminiTiles(RecordPart):
    """Google, "Image understanding" of Gemini 2.5: squares of a size between 256 and 768 px; a small picture is one."""

    rule: Literal["gemini_tiles"]
    tile: PositiveInt = 258


class QwenPatches(RecordPart):
    """Qwen-VL's `smart_resize`: squares of `side_px` after rounding both sides to them, within a number of pixels."""

    rule: Literal["qwen"]
    side_px: PositiveInt = 28
    least_px: PositiveInt = 56 * 56
    most_px: PositiveInt = 16384 * 28 * 28


class FixedTokens(RecordPart):
    """Models for which every picture has the same number of tokens (LLaVA 1.5: 576, Gemini 3: 1120)."""

    rule: Literal["fixed"]
    tokens: PositiveInt


PictureRule = Annotated[OpenAITiles | OpenAIPatches | ClaudePatches | GeminiTiles | QwenPatches | FixedTokens, Field(discriminator="rule")]


def picture_tokens(rule: PictureRule, width_px: int, height_px: int, detail: Detail) -> int:
    """Return the tokens of one picture, at least 1.

    Raises:
        ValueError: a side below 1 px.
    """
    if width_px < 1 or height_px < 1:
        raise ValueError(f"expected a picture of at least 1 x 1 px, got {width_px} x {height_px}")
    match rule:
        case OpenAITiles():
            return rule.base if detail == "low" else rule.base + rule.tile * _tiles(width_px, height_px)
        case OpenAIPatches():
            limits = {"low": rule.low, "auto": rule.auto, "high": rule.high}[detail] or rule.high
            return math.ceil(Fraction(str(rule.multiplier)) * _count_patches(width_px, height_px, limits))
        case ClaudePatches():
            return _claude(max(width_px, height_px), min(width_px, height_px), rule)
        case GeminiTiles():
            return rule.tile * _gemini_tiles(width_px, height_px)
        case QwenPatches():
            return _qwen(width_px, height_px, rule)
        case FixedTokens():
            return rule.tokens
    assert_never(rule)


def is_shrunk(rule: PictureRule, width_px: int, height_px: int, detail: Detail) -> bool:
    """Return whether the provider makes a picture smaller before the model sees it.

    Where a rule has one number for all pictures, nobody says at what size; 28 px a token and side are taken, as most models have them.
    """
    match rule:
        case OpenAITiles():
            longest, shortest = (512, 512) if detail == "low" else (2048, 768)
            return max(width_px, height_px) > longest or min(width_px, height_px) > shortest
        case OpenAIPatches():
            limits = {"low": rule.low, "auto": rule.auto, "high": rule.high}[detail] or rule.high
            is_too_long = limits.longest_px is not None and max(width_px, height_px) > limits.longest_px
            return is_too_long or (limits.patches is not None and _count_squares(width_px, height_px, 32) > limits.patches)
        case ClaudePatches():
            return -(-max(width_px, height_px) // 28) * 28 > rule.edge_px or _count_squares(width_px, height_px, 28) > rule.tokens
        case GeminiTiles():
            return False
        case QwenPatches():
            return width_px * height_px > rule.most_px
        case FixedTokens():
            return width_px * height_px > rule.tokens * 28**2
    assert_never(rule)


def _count_squares(width_px: int, height_px: int, side_px: int) -> int:
    """Return how many squares cover the picture."""
    return -(-width_px // side_px) * -(-height_px // side_px)


def _fit_size(width_px: int, height_px: int, longest_px: int | None) -> tuple[int, int]:
    """Return the size with its longest side at most that long, rounded to whole pixels as bills show that OpenAI does."""
    longest = max(width_px, height_px)
    if longest_px is None or longest <= longest_px:
        return width_px, height_px
    width, height = ((2 * side * longest_px + longest) // (2 * longest) for side in (width_px, height_px))
    return max(1, width), max(1, height)


def _tiles(width_px: int, height_px: int) -> int:
    width, height = _fit_size(width_px, height_px, 2048)
    shortest = min(width, height)
    if shortest > 768:
        width, height = width * 768 // shortest, height * 768 // shortest
    return _count_squares(width, height, 512)


def _count_patches(width_px: int, height_px: int, limits: OpenAIPictureLimits) -> int:
    width, height = _fit_size(width_px, height_px, limits.longest_px)
    count = _count_squares(width, height, 32)
    if limits.patches is None or count <= limits.patches:
        return count
    scale = math.sqrt(32**2 * limits.patches / (width * height))
    scale *= min(math.floor(side * scale / 32) / (side * scale / 32) for side in (width, height))
    if not scale:  # narrower than a patch, where the guide's formula ends in nothing
        return limits.patches
    return min(limits.patches, _count_squares(math.floor(width * scale), math.floor(height * scale), 32))


def _claude(longer_px: int, shorter_px: int, rule: ClaudePatches) -> int:
    def size(longer: int) -> tuple[int, int]:
        return longer, max(1, round(shorter_px * longer / longer_px))

    def fits(longer: int) -> bool:
        return -(-longer // 28) * 28 <= rule.edge_px and _count_squares(*size(longer), 28) <= rule.tokens

    if fits(longer_px):
        return _count_squares(longer_px, shorter_px, 28)
    low, high = 1, longer_px  # by halves, as Anthropic does it: another search could end on another size
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return _count_squares(*size(low), 28)


def _gemini_tiles(width_px: int, height_px: int) -> int:
    if max(width_px, height_px) <= 384:
        return 1
    side = min(768, max(256, int(min(width_px, height_px) / 1.5)))
    return _count_squares(width_px, height_px, side)


def _qwen(width_px: int, height_px: int, rule: QwenPatches) -> int:
    side = rule.side_px
    across, down = round(width_px / side), round(height_px / side)
    if across * down * side**2 > rule.most_px:
        shrink = math.sqrt(width_px * height_px / rule.most_px)
        across, down = (max(1, math.floor(length / shrink / side)) for length in (width_px, height_px))
    elif across * down * side**2 < rule.least_px:
        grow = math.sqrt(rule.least_px / (width_px * height_px))
        across, down = (math.ceil(length * grow / side) for length in (width_px, height_px))
    return across * down


# ---------------------------------------------------------------- text

_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[ ]?[0-9]+|(?a:\s{2,})|[!-~]|[^\x00-\x7f]")
_PER_CHARACTER = (  # by the code point before which it holds
    (0x250, 1.0),  # accented Latin
    (0x800, 0.5),  # Greek, Cyrillic, Hebrew, Arabic
    (0x1000, 0.6),  # scripts of India, Thai
    (0x2E80, 2.4),  # Ethiopic and other rare ones, signs
    (0xD7B0, 1.2),  # Chinese, Japanese, Korean
)
_RARE = 2.8  # emoji and the rest


def text_tokens(text: str) -> int:
    """Return an estimate of the tokens; counting would take the model's vocabulary.

    Against o200k_base (GPT-4o, GPT-5), counted with bpe-openai 0.1.4: English prose and prompts 1.1 to 1.25 times the truth,
    JSON schemas 1.0 to 1.3, 17 other languages 0.8 (Finnish) to 1.45, Vietnamese 2.4. Too low by more only for letters that make no words.
    Claude's newer models and open ones have other vocabularies, and up to a third more tokens for the same text.
    """
    total = 0.0
    for piece in _PIECES.findall(text):
        if not piece[0].isascii():
            total += next((weight for end, weight in _PER_CHARACTER if ord(piece) < end), _RARE)
        elif piece.isalpha():
            total += max(1.0, len(piece) / 4)
        elif piece[-1].isdigit():
            total += 0.5 + math.ceil(len(piece.strip()) / 3)
        else:
            total += 0.75
    return math.ceil(total)
