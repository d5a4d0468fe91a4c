"""What the benchmark of `vip review` measures on, and which goals it calls missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from review import Waited, goals_missed, make_review

from tests.review.corpora import open_state

WITHIN = Waited(first_s=0.9, start_cpu_s=3.0, next_ms=49.0, peak_mb=199.0)


def test_the_log_has_as_many_actions_as_were_asked_for_and_each_was_written(tmp_path: Path) -> None:
    make_review(tmp_path / "a", keyframes=4, actions=30)
    state = open_state(tmp_path / "a")
    assert len(list(state.log.read())) == 30
    assert list(state.reviewers()) == ["Ann", "Bob", "Eve"]
    assert state.value("k1", "focus") == "a juggler 17"
    state.log.close()


def test_a_goal_that_is_missed_is_named() -> None:
    assert goals_missed(WITHIN) == []
    assert goals_missed(replace(WITHIN, first_s=1.25)) == ["first item 1.25 s, at most 1"]
    assert len(goals_missed(replace(WITHIN, next_ms=51.0, peak_mb=201.0))) == 2
