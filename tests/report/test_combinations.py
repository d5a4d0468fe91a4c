from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vip import registry
from vip.config import ExtractSettings
from vip.errors import BackendError, UsageError
from vip.report.combinations import PRUNERS, SAMPLERS, Combination, combinations, further_samplers

SETTINGS = ExtractSettings()


@pytest.fixture(autouse=True)
def _some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are all that is needed here."""
    monkeypatch.setitem(registry.BUILT_IN, "sampler", dict.fromkeys(("sync", "every", "shots", "katna", "uniform"), "nowhere:Nothing"))
    monkeypatch.setitem(registry.BUILT_IN, "pruner", dict.fromkeys(("algorithm1", "k-center", "none"), "nowhere:Nothing"))


def names(*asked: str, settings: ExtractSettings = SETTINGS) -> list[str]:
    return [combination.name for combination in combinations(asked, settings)]


def test_by_default_each_sampler_and_each_pruner_is_compared_with_what_extract_does() -> None:
    found = combinations([], SETTINGS)
    assert found[0].name == "sync+algorithm1"
    assert {combination.sampler for combination in found} == set(SAMPLERS)
    assert {combination.pruner for combination in found} == {*PRUNERS, "none"}
    assert len(found) == len(SAMPLERS) + len(PRUNERS) == len(set(names()))
    assert found[-1].name == "uniform+none", "exactly as many evenly spaced frames"
    assert [combination.name for combination in found if combination.asked] == ["sync+algorithm1"]
    assert [combination.name for combination in found if combination.is_known] == [
        "sync+algorithm1", "uniform+algorithm1", "every:2s+algorithm1", "shots+algorithm1", "sync+k-center", "uniform+none"
    ]  # fmt: skip


def test_what_is_asked_for_is_compared_with_what_extract_does_and_with_evenly_spaced_frames() -> None:
    asked = combinations(["sync+k-center", "shots", "sync + k-center"], SETTINGS)
    assert [combination.name for combination in asked] == ["sync+algorithm1", "sync+k-center", "shots+algorithm1", "uniform+none"]
    assert [combination.is_evenly_spaced for combination in asked] == [False, False, False, True]
    assert [combination.asked for combination in asked] == [True, True, True, False]


def test_evenly_spaced_frames_are_compared_once_if_they_are_asked_for() -> None:
    assert names("uniform+none", "shots") == ["sync+algorithm1", "uniform+none", "shots+algorithm1"]
    assert all(combination.asked for combination in combinations(["uniform+none", "shots"], SETTINGS))  # none of them may be left out


def test_the_settings_say_what_extract_does() -> None:
    settings = ExtractSettings(sampler="every:5s", pruner="k-center")
    assert names("shots", settings=settings) == ["every:5s+k-center", "shots+k-center", "uniform+none"]
    assert names(settings=settings)[0] == "every:5s+k-center"


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ("shot", BackendError, 'There is no sampler "shot". Did you mean "shots"?'),
        ("sync+kcenter", BackendError, 'There is no pruner "kcenter". Did you mean "k-center"?'),
        ("k-center", UsageError, '"k-center" is a pruner. Write sync+k-center.'),
        ("+k-center", UsageError, '"+k-center" names no sampler. Write SAMPLER+PRUNER'),
        ("", UsageError, '"" names no sampler.'),
    ],
)
def test_a_name_that_is_wrong_is_refused_with_the_right_one(asked: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        combinations([asked], SETTINGS)


def test_the_samplers_that_were_left_out_are_known() -> None:
    assert further_samplers(combinations([], SETTINGS)) == ["katna"]


def test_folders_are_named_like_what_chose() -> None:
    assert Combination("every:2s", "threshold:0.93").folder_name == "every-2s+threshold-0.93"


@given(st.text(max_size=200), st.text(max_size=200))
@example("", "_")
def test_any_name_becomes_a_folder_name_that_every_file_system_takes(sampler: str, pruner: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,98}[A-Za-z0-9]", Combination(sampler, pruner).folder_name)


def test_names_that_differ_only_in_what_no_file_system_takes_have_different_folders() -> None:
    assert len({Combination(f"mine:a{sign}b", "algorithm1").folder_name for sign in "/\\*? \n"}) == 6
