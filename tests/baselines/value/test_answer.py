"""vip.baselines.value.answer: predictions are those of single items, whatever the batches"""

from __future__ import annotations

from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.baselines.value.tiny_hero import CAPTIONS, FUSIONS, LONG, QUERIES, QUESTIONS, SHORT, SILENT, STATEMENTS, tiny
from vip.baselines.value.answer import (
    answer_queries,
    answer_questions,
    caption_items,
    index_videos,
    join_streams,
    open_checkpoint,
    read_answer,
)
from vip.baselines.value.batches import collate_questions
from vip.baselines.value.checkpoint import to_published
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import CollateOptions, RankingOptions
from vip.errors import InputError

BOTH = CollateOptions()
CPU: dict[str, Any] = {"device": "cpu"}
HIDDEN = [replace(one, caption=None) for one in CAPTIONS]


def hero(**changed: Any) -> Hero:
    model = tiny(**changed)
    assert isinstance(model, Hero)
    return model


def test_the_answer_is_the_likeliest_option_and_the_first_of_equal_ones() -> None:
    assert read_answer((0.2, 0.4, 0.4)).value == 1
    assert (read_answer((0.75,)).value, read_answer((0.75,)).scores) == (1, (0.25, 0.75))
    assert read_answer((0.5,)).value == 0, "true is above 0.5"


def test_questions_of_several_kinds_are_answered_in_order() -> None:
    model = hero(spread=0.3)
    items = [QUESTIONS[0], *STATEMENTS, QUESTIONS[1]]
    answers = list(answer_questions(model, items, BOTH, **CPU, at_once=2))
    assert [len(one.scores) for one in answers] == [3, 2, 2, 3]
    alone = [next(answer_questions(model, [item], BOTH, **CPU)) for item in items]
    for one, other in zip(answers, alone, strict=True):
        assert one.value == other.value
        assert one.scores == pytest.approx(other.scores, abs=1e-5)


def test_the_model_answers_without_dropout() -> None:
    model = hero(spread=0.3).train()
    first, second = (next(answer_questions(model, QUESTIONS[:1], BOTH, **CPU)) for _ in range(2))
    assert first == second


def test_captions_come_in_order() -> None:
    model = hero()
    assert len(list(caption_items(model, HIDDEN, BOTH, **CPU, at_once=2))) == 3
    assert list(caption_items(model, [], BOTH, **CPU)) == []


def test_captions_are_said_without_dropout() -> None:
    model = hero(spread=0.3).train()
    assert len(list(caption_items(model, HIDDEN[:1], BOTH, **CPU))) == 1
    assert not model.training


@pytest.mark.parametrize("fusion", FUSIONS)
def test_queries_find_the_same_whatever_the_batches(fusion: str) -> None:
    model, ranking = tiny(fusion=fusion, spread=0.3), RankingOptions(least_frames=1, kept=5)
    queries = [(item.query, row) for item, row in zip(QUERIES, (0, 0, 1, None), strict=True)]
    large = index_videos(model, [LONG, SHORT, SILENT], BOTH, **CPU)
    small = index_videos(model, [LONG, SHORT, SILENT], BOTH, **CPU, at_once=1)
    torch.testing.assert_close(large.mask, small.mask)
    first = list(answer_queries(model, queries, large, BOTH, ranking=ranking, **CPU))
    second = list(answer_queries(model, queries, small, BOTH, ranking=ranking, **CPU, at_once=1))
    for one, other in zip(first, second, strict=True):
        assert one.videos.videos == other.videos.videos
        assert one.moments is not None
        assert other.moments is not None
        assert one.moments.scores == pytest.approx(other.moments.scores, rel=1e-3)
        assert len(one.moments.videos) == 5
    assert first[3].own_moments is None, "its video is hidden"
    assert first[2].own_moments is not None
    assert set(first[2].own_moments.videos) == {1}
    assert max(first[2].own_moments.ends_s) <= 6.0, "the video has four frames"


@pytest.mark.parametrize("fusion", ["hero", "two-stream"])
def test_videos_weigh_by_the_scale_of_the_ranking(fusion: str) -> None:
    model = tiny(fusion=fusion, spread=0.3)
    index = index_videos(model, [LONG], BOTH, **CPU)
    (plain,) = answer_queries(model, [((20,), 0)], index, BOTH, **CPU)
    twenty, two = (
        next(answer_queries(model, [((20,), 0)], index, BOTH, ranking=RankingOptions(scale=scale, least_frames=1), **CPU))
        for scale in (20.0, 2.0)
    )
    assert twenty.videos.scores == pytest.approx(plain.videos.scores)
    if fusion == "hero":  # a mean of two streams has no such power
        assert twenty.videos.scores[0] == pytest.approx(two.videos.scores[0] ** 10, rel=1e-3)
    assert abs(log(two.videos.scores[0])) < abs(log(twenty.videos.scores[0])) / 5
    assert twenty.moments is not None
    assert two.moments is not None
    ratio = twenty.videos.scores[0] / two.videos.scores[0]
    assert twenty.moments.scores[0] == pytest.approx(ratio * two.moments.scores[0], rel=1e-3)


def test_videos_alone_are_ranked_without_ranking_options() -> None:
    model = hero()
    index = index_videos(model, [LONG, SHORT], BOTH, **CPU)
    answer = next(answer_queries(model, [((20,), None)], index, BOTH, **CPU))
    assert sorted(answer.videos.videos) == [0, 1]
    assert answer.moments is None
    with pytest.raises(InputError, match="no videos to search"):
        index_videos(model, [], BOTH, **CPU)


def test_a_published_checkpoint_answers_as_the_model_that_was_saved(tmp_path: Path) -> None:
    model = hero(spread=0.3)
    torch.save(to_published(model), tmp_path / "hero.pt")
    opened, report = open_checkpoint(tmp_path / "hero.pt", "qa", heads=2)
    assert report.missing == ()
    assert list(answer_questions(opened, QUESTIONS, BOTH, **CPU)) == list(answer_questions(model, QUESTIONS, BOTH, **CPU))


def test_a_checkpoint_without_the_head_of_a_task_is_refused(tmp_path: Path) -> None:
    tensors = {name: one for name, one in to_published(hero()).items() if not name.startswith(("qa_", "st_ed_"))}
    torch.save(tensors, tmp_path / "hero.pt")
    with pytest.raises(InputError, match="no head for qa"):
        open_checkpoint(tmp_path / "hero.pt", "qa", heads=2)
    assert open_checkpoint(tmp_path / "hero.pt", "captioning", heads=2)[1].missing


@torch.no_grad()
def test_two_models_become_two_streams() -> None:
    first, second = hero(seed=1, spread=0.3), hero(seed=2, spread=0.3)
    both = join_streams(first, second)
    odds = [one.predict(collate_questions(QUESTIONS, CollateOptions(channels=channels))) for one, channels in _streams(first, second)]
    torch.testing.assert_close(both.predict(collate_questions(QUESTIONS, BOTH)), (odds[0] + odds[1]) / 2)


def _streams(first: Hero, second: Hero) -> list[tuple[Hero, Any]]:
    return [(first, "video"), (second, "sub")]
