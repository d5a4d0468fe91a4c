"""Goals are missed on the right side of their bounds, and figures survive a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import results
from results import Goal, GrowthRow, MixResult, Results, Row

SYNC = Row(results.SYNC, 1.0, 0.5, 80)
VIP = Row(results.VIP, 1.5, 3.0, 140, keyframes=20, coverage=0.95, bad=0.0)
MORE = Row(results.VIP_MORE, 2.6, 3.0, 140, keyframes=26, coverage=1.0, bad=0.0)
KATNA = Row(results.KATNA, 400.0, 500.0, 2000, keyframes=20, coverage=0.6, bad=0.1)
GROWTH = (GrowthRow(300, 2.5, 3, 140, 1), GrowthRow(3600, 25, 30, 150, 10))


def mix(*rows: Row, timed: bool = True, name: str = "h264 1280x720 GOP 150") -> MixResult:
    return MixResult(name, 1, 200.0, 20, timed, rows)


def missed(*mixes: MixResult, growth: tuple[GrowthRow, ...] = GROWTH) -> list[str]:
    return [goal.name for goal in results.goals(Results(mixes, growth)) if goal.missed]


def test_a_good_run_misses_nothing() -> None:
    assert missed(mix(SYNC, VIP, MORE, KATNA)) == []


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (Row(results.VIP, 1.9, 3, 140, 20, 0.95, 0.0), "h264 1280x720 GOP 150: wall, times ffmpeg, sync frames"),
        (Row(results.VIP, 1.5, 3, 140, 20, 0.94, 0.0), "vip: mean coverage"),
        (Row(results.VIP, 1.5, 3, 140, 20, 0.95, 0.006), "vip: bad share of the keyframes"),
    ],
)
def test_each_goal_can_be_missed(row: Row, name: str) -> None:
    assert missed(mix(SYNC, row, MORE, KATNA)) == [name]


@pytest.mark.parametrize(("peer", "wall_s"), [(results.KATNA, 149.0), (results.SCENEDETECT, 22.0), (results.CLAUDE_REAL_VIDEO, 37.0)])
def test_a_peer_that_is_too_fast_is_a_goal_missed(peer: str, wall_s: float) -> None:
    assert missed(mix(SYNC, VIP, MORE, Row(peer, wall_s, 400, 2000, 20, 0.6, 0.1))) == [f"h264 1280x720 GOP 150: times faster than {peer}"]
    assert missed(mix(SYNC, VIP, MORE, Row(peer, wall_s + 2, 400, 2000, 20, 0.6, 0.1))) == []


def test_a_file_with_one_sync_frame_is_held_to_full_decoding() -> None:
    full = Row(results.FULL, 2.0, 3.0, 80)
    assert missed(mix(full, VIP, MORE)) == []
    assert missed(mix(full, Row(results.VIP, 3.1, 3, 140, 20, 0.95, 0.0), MORE)) == [
        "h264 1280x720 GOP 150: wall, times ffmpeg, all frames"
    ]


def test_a_small_mix_counts_for_the_choice_and_not_for_the_time() -> None:
    slow = Row(results.VIP, 99.0, 99, 140, 20, 0.2, 0.0)
    assert missed(mix(SYNC, VIP, MORE), mix(SYNC, slow, MORE, timed=False)) == ["vip: mean coverage"]


def test_growth_of_time_and_memory_is_held() -> None:
    late = GrowthRow(3600, 31, 30, 251, 10)
    for between in ((), (GrowthRow(900, 5, 6, 141, 3),)):
        names = missed(mix(SYNC, VIP, MORE), growth=(GROWTH[0], *between, late))
        assert names == ["60 minutes: times the wall time of 5", "60 minutes: times the memory of 5", "60 minutes: memory, MB"]


def test_what_was_not_measured_is_not_missed_and_says_so() -> None:
    failed = Row(results.KATNA, note="failed: exit 1")
    found = results.goals(Results((mix(SYNC, VIP, MORE, failed),), GROWTH))
    goal = next(goal for goal in found if "Katna" in goal.name)
    assert goal.value is None
    assert not goal.missed
    assert "not measured" in results.goals_table([goal])


def test_bad_keyframes_are_a_share_of_all_keyframes_not_a_mean_of_shares() -> None:
    assert results.share_bad([Row("a", keyframes=30, bad=0.1), Row("a", keyframes=10, bad=0.5)]) == pytest.approx(0.2)


def test_means_side_by_side_are_over_mixes_that_all_programs_ran_on() -> None:
    both, ours = mix(SYNC, VIP, MORE, KATNA), mix(SYNC, VIP, MORE, name="vp9")
    assert results.side_by_side([both, ours]) == [both]


def test_the_table_gives_multiples_of_the_yardstick() -> None:
    line = next(line for line in results.mix_table(mix(SYNC, VIP)).splitlines() if line.startswith("  vip "))
    assert line.split() == ["vip", "1.50", "1.50", "3.00", "6.00", "140", "20", "0.95", "0.00"]


def test_figures_come_back_from_json(tmp_path: Path) -> None:
    found = Results((mix(SYNC, VIP, MORE, KATNA),), GROWTH, {"cores": 2})
    results.write_json(tmp_path / "all.json", found)
    assert results.read_json(tmp_path / "all.json") == found


def test_a_goal_is_met_at_its_bound() -> None:
    assert not Goal("at most", 3.0, 3.0).missed
    assert not Goal("at least", 0.9, 0.9, at_least=True).missed
