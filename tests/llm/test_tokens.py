"""Tokens of pictures and texts, against the examples of the providers' guides, bills, and a counter of tokens."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

from vip.llm.tokens import (
    ClaudePatches,
    Detail,
    FixedTokens,
    GeminiTiles,
    OpenAIPatches,
    OpenAIPictureLimits,
    OpenAITiles,
    PictureRule,
    QwenPatches,
    picture_tokens,
    text_tokens,
)
from vip.records import Famous

GPT_4O = OpenAITiles(rule="tiles", base=85, tile=170)
GPT_5_MINI = OpenAIPatches(rule="patches", multiplier=1.2, high=OpenAIPictureLimits(patches=1536))
GPT_5_4 = OpenAIPatches(
    rule="patches",
    multiplier=1.2,
    high=OpenAIPictureLimits(longest_px=2048, patches=2500),
    low=OpenAIPictureLimits(longest_px=512),
    auto=OpenAIPictureLimits(longest_px=6000),
)
PLAIN = OpenAIPatches(rule="patches", multiplier=1, high=OpenAIPictureLimits(patches=1536))
SONNET, OPUS = ClaudePatches(rule="claude"), ClaudePatches(rule="claude", edge_px=2576, tokens=4784)
GEMINI, LLAVA, QWEN = GeminiTiles(rule="gemini_tiles"), FixedTokens(rule="fixed", tokens=576), QwenPatches(rule="qwen")
QWEN3 = QwenPatches(rule="qwen", side_px=32, least_px=65536, most_px=16777216)
RULES: list[PictureRule] = [GPT_4O, GPT_5_MINI, GPT_5_4, PLAIN, SONNET, OPUS, GEMINI, LLAVA, QWEN, QWEN3]
MOST = {"tiles": 85 + 8 * 170, "claude": 4784, "fixed": 576, "qwen": 16384}
sides = st.integers(1, 12000)


@pytest.mark.parametrize(
    ("rule", "size", "detail", "tokens"),
    [
        # OpenAI, "Images and vision", cost calculation examples of 2025 and 2026
        (GPT_4O, (1024, 1024), "high", 765),
        (GPT_4O, (2048, 4096), "high", 1105),
        (GPT_4O, (4096, 8192), "low", 85),
        (PLAIN, (1024, 1024), "high", 1024),
        (PLAIN, (1800, 2400), "high", 1452),
        (GPT_5_4, (1024, 1024), "high", 1229),
        (GPT_5_4, (2048, 2048), "high", 3000),
        # bills that users of OpenAI published, less 8 tokens for the text: it rounds to whole pixels after fitting into 2048 px
        (GPT_4O, (2049, 513), "high", 1453 - 8),
        (GPT_4O, (2050, 513), "high", 773 - 8),
        # measured there as the difference of two questions, with and without the picture
        (GPT_5_MINI, (256, 256), "high", 77),
        (GPT_5_MINI, (512, 512), "high", 308),
        (GPT_5_MINI, (768, 1024), "high", 922),
        (GPT_5_MINI, (1280, 720), "high", 1104),
        (GPT_5_MINI, (2048, 768), "high", 1844),
        # Anthropic, "Coordinates and image resizing": 924 x 1307 and 1456 x 819 after resizing, 39 x 55 squares without
        (SONNET, (1075, 1520), "high", 33 * 47),
        (SONNET, (1920, 1080), "high", 52 * 30),
        (OPUS, (1075, 1520), "high", 39 * 55),
        (SONNET, (1600, 400), "high", 56 * 14),  # few squares, but too long: 1568 x 392
        # Google, "Image understanding"
        (GEMINI, (384, 384), "high", 258),
        (GEMINI, (960, 540), "high", 6 * 258),
        (GEMINI, (4000, 3000), "high", 6 * 4 * 258),  # the largest squares, of 768 px
        (GEMINI, (1000, 200), "high", 4 * 258),  # the smallest, of 256 px
        (GEMINI, (385, 100), "high", 2 * 258),
        (LLAVA, (4000, 3000), "low", 576),
        (QWEN, (28, 28), "high", 2 * 2),  # enlarged to the smallest that it takes, 56 x 56
    ],
)
def test_pictures_cost_what_the_providers_say(rule: PictureRule, size: tuple[int, int], detail: Detail, tokens: int) -> None:
    assert picture_tokens(rule, *size, detail) == tokens


@settings(max_examples=300, deadline=None)
@given(sides, sides)
def test_pictures_for_qwen_cost_what_its_own_code_makes_of_them(width: int, height: int) -> None:
    assume(max(width, height) / min(width, height) <= 200)  # that code refuses longer ones
    for rule in (QWEN, QWEN3):
        rows, columns = smart_resize(height, width, factor=rule.side_px, min_pixels=rule.least_px, max_pixels=rule.most_px)
        assert picture_tokens(rule, width, height, "high") == rows * columns // rule.side_px**2


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(RULES), sides, sides, st.sampled_from(["low", "high", "auto"]))
def test_any_picture_costs_something_and_no_more_than_the_most(rule: PictureRule, width: int, height: int, detail: Detail) -> None:
    tokens = picture_tokens(rule, width, height, detail)
    assert tokens >= 1
    if isinstance(rule, OpenAIPatches):
        assert tokens <= 1.2 * 2500 + 1 or (rule is GPT_5_4 and detail == "auto")
    elif not isinstance(rule, GeminiTiles):
        assert tokens <= MOST[rule.rule]
    assert tokens == picture_tokens(rule, height, width, detail)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(RULES), st.integers(28, 768), st.integers(28, 768), st.integers(0, 300), st.integers(0, 300))
def test_a_larger_picture_that_nobody_shrinks_costs_no_less(rule: PictureRule, width: int, height: int, wider: int, higher: int) -> None:
    assume(rule is not GEMINI)  # its squares grow with the picture, so that fewer may cover it
    assume(not isinstance(rule, QwenPatches) or width * height > 2 * rule.least_px)  # smaller ones are enlarged
    assume(not isinstance(rule, OpenAITiles) or max(width + wider, height + higher) <= 768)
    assert picture_tokens(rule, width, height, "high") <= picture_tokens(rule, width + wider, height + higher, "high")


def test_details_have_limits_of_their_own() -> None:
    size = (3000, 2000)
    assert picture_tokens(GPT_5_4, *size, "low") == -(-16 * 11 * 12 // 10)  # 512 x 341
    assert picture_tokens(GPT_5_4, *size, "high") < picture_tokens(GPT_5_4, *size, "auto") == -(-94 * 63 * 12 // 10)
    assert picture_tokens(GPT_5_MINI, *size, "low") == picture_tokens(GPT_5_MINI, *size, "auto")


def test_a_multiplier_is_exact() -> None:
    rule = OpenAIPatches(rule="patches", multiplier=1.1, high=OpenAIPictureLimits())
    assert picture_tokens(rule, 320, 320, "high") == 110  # 100 * 1.1 is a little more than 110 in binary fractions


@pytest.mark.parametrize("size", [(0, 5), (5, -1)])
def test_a_picture_without_pixels_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least 1 x 1"):
        picture_tokens(GPT_4O, *size, "high")


# ---------------------------------------------------------------- text

ENGLISH = (
    "A brown dog leaps across a sunlit meadow to catch a red frisbee, while a woman in a blue jacket watches from the left. "
    "The mood is playful and relaxed; trees and a low wooden fence close the scene in the background."
)
FIGURES = "12 345.678 0.82, 31 % 2026-11-21 1024x576 00:01:23.400"
COUNTED = {  # tokens of o200k_base, as bpe-openai 0.1.4 counts them
    ENGLISH: 48,
    "Ein brauner Hund springt über eine sonnenbeschienene Wiese, während eine Frau in blauer Regenjacke von links zuschaut.": 31,
    "Un chien brun bondit à travers une prairie ensoleillée pour attraper un frisbee rouge.": 20,
    "Ruskea koira hyppää aurinkoisen niityn poikki napatakseen punaisen frisbeen.": 24,
    "Коричневая собака прыгает через залитый солнцем луг, чтобы поймать красный фрисби.": 28,
    "كلب بني يقفز عبر مرج مشمس ليمسك قرصا أحمر بينما تشاهده امرأة ترتدي سترة زرقاء من اليسار.": 36,
    "एक भूरा कुत्ता लाल फ्रिसबी पकड़ने के लिए धूप वाले मैदान में छलांग लगाता है।": 26,
    "一只棕色的狗跃过阳光明媚的草地去接红色飞盘,一位穿蓝色夹克的女人从左边看着。": 39,
    "茶色の犬が赤いフリスビーを捕まえようと日の当たる草原を飛び越える。": 29,
    "갈색 개가 빨간 원반을 잡기 위해 햇살이 비치는 초원을 뛰어넘는다.": 25,
    FIGURES: 33,
    json.dumps(Famous.model_json_schema()): 152,
}


@pytest.mark.parametrize("text", COUNTED)
def test_texts_are_estimated_near_their_true_number_and_hardly_below(text: str) -> None:
    assert 0.75 <= text_tokens(text) / COUNTED[text] <= 1.6


def test_english_is_never_estimated_too_low() -> None:
    assert 48 <= text_tokens(ENGLISH) <= 60


def test_no_text_has_no_tokens() -> None:
    assert text_tokens("") == 0


@given(st.text(max_size=200), st.text(max_size=200))
@example("\u3000", "\u2028 ")
@example("\x85", "\xa0")
def test_a_longer_text_has_no_fewer_tokens(first: str, second: str) -> None:
    assert max(text_tokens(first), text_tokens(second)) <= text_tokens(f"{first}\n\n{second}") <= 3 * len(first + second) + 2
