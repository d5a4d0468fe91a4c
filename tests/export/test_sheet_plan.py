"""Plans of contact sheets: within the budget, none shrunk by its provider, as few pictures as that allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.export.sheet_plan import LEGIBLE_PX, plan_as_many, plan_sheets
from vip.llm.prices import load_prices, price_of
from vip.llm.tokens import Detail, FixedTokens, PictureRule, QwenPatches, is_shrunk, picture_tokens

MODELS = ("gpt-5.4-mini", "gpt-5-mini", "gpt-4o", "claude-sonnet-4-5", "claude-sonnet-5", "gemini-2.5-flash", "gemini-3.1-pro-preview")


def rule_of(model: str) -> PictureRule:
    price = price_of(load_prices(), model, None)
    assert price is not None
    assert price.picture is not None
    return price.picture


RULES: dict[str, PictureRule] = {model: rule_of(model) for model in MODELS} | {"qwen": QwenPatches(rule="qwen")}


@given(st.sampled_from(sorted(RULES)), st.integers(1, 60), st.floats(0.5, 2.4), st.integers(100, 6000))
def test_a_plan_keeps_the_budget_by_the_rule_of_the_provider_and_shows_each_frame_once(
    model: str, frames: int, aspect: float, tokens: int
) -> None:
    plan = plan_as_many(frames, aspect=aspect, rule=RULES[model], detail="high", tokens=tokens)
    if plan is None:
        assert picture_tokens(RULES[model], LEGIBLE_PX[-1], round(LEGIBLE_PX[-1] / 2.4), "high") > tokens or aspect < 2.4
        return
    counts = plan.frames_of()
    sizes = [plan.size_px(count) for count in counts]
    assert (sum(counts), len(counts)) == (plan.frames, plan.sheets)
    assert plan.frames <= frames
    assert sum(picture_tokens(RULES[model], *size, "high") for size in sizes) == plan.tokens <= tokens
    assert not any(is_shrunk(RULES[model], *size, "high") for size in sizes)
    assert max(plan.cell_width_px, plan.cell_height_px) >= LEGIBLE_PX[-1]


@given(st.sampled_from(sorted(RULES)), st.integers(2, 40), st.integers(500, 6000))
def test_fewer_sheets_never_fit(model: str, frames: int, tokens: int) -> None:
    plan = plan_sheets(frames, aspect=1.5, rule=RULES[model], detail="high", tokens=tokens)
    if plan is None or plan.sheets == 1:
        return
    longer_px = max(plan.cell_width_px, plan.cell_height_px)
    least_px = next(least for least in LEGIBLE_PX if longer_px >= least)
    height_px = round(least_px / 1.5)
    for columns in range(1, frames + 1):  # all frames on one sheet, at the least size
        size = columns * (least_px + 4) - 4, -(-frames // columns) * (height_px + 4) - 4
        too_dear = picture_tokens(RULES[model], *size, "high") > tokens
        assert too_dear or is_shrunk(RULES[model], *size, "high") or max(size) > 4096


@pytest.mark.parametrize(("model", "frames", "tokens"), [("gpt-4o", 30, 3000), ("gpt-5-mini", 37, 3000), ("claude-sonnet-4-5", 37, 3000)])
def test_the_last_of_several_sheets_costs_what_its_own_size_costs(model: str, frames: int, tokens: int) -> None:
    plan = plan_sheets(frames, aspect=1.5, rule=RULES[model], detail="high", tokens=tokens)
    assert plan is not None
    first, last = (picture_tokens(RULES[model], *plan.size_px(count), "high") for count in plan.frames_of())
    assert last < first  # it has fewer rows
    assert plan.tokens == first + last


def test_a_larger_budget_makes_the_frames_larger() -> None:
    small, large = (plan_sheets(12, aspect=16 / 9, rule=RULES["claude-sonnet-5"], detail="high", tokens=tokens) for tokens in (1000, 4000))
    assert small is not None
    assert large is not None
    assert small.sheets == large.sheets == 1
    assert small.cell_width_px < large.cell_width_px


def test_as_many_frames_as_fit_are_planned_and_one_more_is_too_many() -> None:
    rule = RULES["gpt-5.4-mini"]
    found = set()
    for tokens in range(10, 320, 10):
        plan = plan_as_many(40, aspect=16 / 9, rule=rule, detail="high", tokens=tokens)
        frames = plan.frames if plan else 0
        assert plan_sheets(frames + 1, aspect=16 / 9, rule=rule, detail="high", tokens=tokens) is None
        found.add(frames)
    assert {0, 1, 2, 3} < found
    assert plan_as_many(40, aspect=16 / 9, rule=rule, detail="high", tokens=10) is None


@pytest.mark.parametrize(
    ("rule", "whole", "shrunk"),
    [
        (RULES["gpt-4o"], (2048, 768), (2049, 768)),
        (RULES["gpt-4o"], (768, 2048), (769, 1024)),
        (RULES["gpt-5.4-mini"], (1600, 1600), (1600, 1601)),  # 50 x 50 patches of 32 px
        (RULES["gpt-5.4-mini"], (2048, 1024), (2049, 1024)),
        (RULES["claude-sonnet-4-5"], (1092, 1120), (1568, 1568)),
        (RULES["gemini-2.5-flash"], (4000, 4000), None),
        (FixedTokens(rule="fixed", tokens=1120), (1120, 784), (1121, 784)),
        (QwenPatches(rule="qwen", most_px=1000 * 1000), (1000, 1000), (1001, 1000)),
    ],
)
def test_a_picture_is_shrunk_from_the_size_that_its_provider_states(
    rule: PictureRule, whole: tuple[int, int], shrunk: tuple[int, int] | None
) -> None:
    assert not is_shrunk(rule, *whole, "high")
    assert shrunk is None or is_shrunk(rule, *shrunk, "high")


def test_low_detail_is_a_picture_of_512_px() -> None:
    assert not is_shrunk(RULES["gpt-4o"], 512, 512, "low")
    assert is_shrunk(RULES["gpt-4o"], 768, 512, "low")


@pytest.mark.parametrize(("detail", "whole", "shrunk"), [("low", (512, 512), (513, 512)), ("auto", (4000, 3000), None)])
def test_each_detail_has_a_size_of_its_own_from_which_a_picture_is_shrunk(
    detail: Detail, whole: tuple[int, int], shrunk: tuple[int, int] | None
) -> None:
    rule = rule_of("gpt-5.6-sol")
    assert not is_shrunk(rule, *whole, detail)
    assert shrunk is None or is_shrunk(rule, *shrunk, detail)
    for one in filter(None, (whole, shrunk)):
        assert is_shrunk(RULES["gpt-5.4-mini"], *one, detail) == is_shrunk(RULES["gpt-5.4-mini"], *one, "high"), "it has one size for all"


def test_a_long_list_of_frames_is_planned_too() -> None:
    plan = plan_as_many(20_000, aspect=16 / 9, rule=RULES["gpt-5.4-mini"], detail="high", tokens=1_000_000)
    assert plan is not None
    assert plan.frames == 20_000
    assert plan.tokens <= 1_000_000
    some = plan_as_many(20_000, aspect=16 / 9, rule=RULES["gpt-5.4-mini"], detail="high", tokens=4000)
    assert some is not None
    assert 100 < some.frames < 300
