"""HCRN: which subsets are related, and which clips make a segment."""

from __future__ import annotations

from math import comb

import pytest
import torch

from vip.baselines.nextqa.hcrn import HCRN, ConditionalRelations, HCRNOptions, subset_sizes
from vip.baselines.nextqa.interface import InputSizes, VideoFeatures, Words
from vip.errors import InputError, UsageError

OPTIONS = {
    "hidden": 8,
    "segments": 8,
    "frames": 8,
    "subsets": 1,
    "joined": True,
    "word_dropout": 0.1,
    "question_dropout": 0.1,
    "dropout": 0.1,
}


def sizes(clips: int) -> InputSizes:
    return InputSizes(appearance=6, motion=5, clips=clips, words=7, length=9)


@pytest.mark.parametrize(("objects", "expected"), [(16, list(range(15, 1, -1))), (4, [3, 2]), (3, [2]), (2, [2])])
def test_subsets_are_of_all_sizes_but_one_and_all(objects: int, expected: list[int]) -> None:
    assert list(subset_sizes(objects)) == expected


def test_the_layout_of_the_paper_leaves_48_relations() -> None:
    """8 segments of 16 frames: 12 relations a segment, 4 among segments (Le et al. 2020)."""
    reader = HCRN(sizes(128), HCRNOptions(**OPTIONS | {"frames": 16})).reader
    assert torch.equal(reader.places.flatten(), torch.arange(128))
    *_, relations = reader(VideoFeatures(torch.randn(2, 128, 6), torch.randn(2, 128, 5)), Words(torch.randn(2, 9, 7), torch.tensor([9, 1])))
    assert relations.shape == (2, 48, 8)


def test_sixteen_clips_make_eight_segments_that_overlap() -> None:
    places = HCRN(sizes(16), HCRNOptions(**OPTIONS)).reader.places
    assert places[:, 0].tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert places[-1].tolist() == list(range(8, 16))


def test_too_few_clips_name_what_to_set() -> None:
    with pytest.raises(InputError, match=r"of 5 clips make no segments of 8\. Set model\.frames=5"):
        HCRN(sizes(5), HCRNOptions(**OPTIONS))


@torch.no_grad()
def test_a_relation_is_the_mean_of_its_subset_under_the_condition() -> None:
    torch.manual_seed(1)
    relations = ConditionalRelations(3, objects=3, subsets=comb(3, 2), has_gate=True).eval()
    objects, condition = torch.randn(1, 3, 1, 3), torch.randn(1, 3)
    assert relations.gates is not None
    expected = torch.zeros(3)
    for pair in ([0, 1], [0, 2], [1, 2]):
        joint = torch.cat((objects[0, pair, 0].mean(dim=0), condition[0]))
        expected += torch.nn.functional.elu(relations.relations[0](joint)) * torch.sigmoid(relations.gates[0](joint)) / 3
    torch.testing.assert_close(relations(objects, condition)[0, 0, 0], expected)


@torch.no_grad()
def test_only_training_draws_subsets() -> None:
    torch.manual_seed(1)
    relations, objects, condition = (
        ConditionalRelations(3, objects=8, subsets=1, has_gate=False),
        torch.randn(2, 8, 1, 3),
        torch.randn(2, 3),
    )
    drawn = {float(relations.train()(objects, condition).sum()) for _ in range(8)}
    fixed = {float(relations.eval()(objects, condition).sum()) for _ in range(8)}
    assert len(drawn) > 1
    assert len(fixed) == 1


@torch.no_grad()
def test_an_option_is_read_apart_unless_joined() -> None:
    """Apart, the video is read under the question alone: another option leaves its relations as they are."""
    torch.manual_seed(1)
    model, video = (
        HCRN(sizes(16), HCRNOptions(**OPTIONS | {"joined": False})).eval(),
        VideoFeatures(torch.randn(2, 16, 6), torch.randn(2, 16, 5)),
    )
    one, other = torch.randn(2, 2, 9, 7)
    other[:, :3] = one[:, :3]
    lengths, asked = torch.tensor([9, 6]), torch.tensor([3, 3])
    seen: list[torch.Tensor] = []
    model.reader.segments_question.register_forward_hook(lambda _, __, relations: seen.append(relations))
    scores = [model(video, Words(vectors, lengths, asked)) for vectors in (one, other)]
    torch.testing.assert_close(seen[0], seen[1])
    assert (scores[0] - scores[1]).abs().min() > 1e-6


@torch.no_grad()
def test_apart_the_video_is_attended_to_by_the_question_and_by_the_option() -> None:
    torch.manual_seed(1)
    model = HCRN(sizes(16), HCRNOptions(**OPTIONS | {"joined": False})).eval()
    video, words = VideoFeatures(torch.randn(2, 16, 6), torch.randn(2, 16, 5)), torch.randn(2, 9, 7)
    asked: list[torch.Tensor] = []
    model.reader.attention.register_forward_hook(lambda _, given, __: asked.append(given[0]))
    model(video, Words(words, torch.tensor([9, 9]), torch.tensor([3, 3])))
    for by, part in zip(asked, (words[:, :3], words[:, 3:]), strict=True):
        torch.testing.assert_close(by, model.reader.words(Words(part, torch.full((2,), part.shape[1])))[1])


def test_words_that_say_nothing_of_the_option_are_refused() -> None:
    model = HCRN(sizes(16), HCRNOptions(**OPTIONS | {"joined": False}))
    with pytest.raises(UsageError, match=r"where an option begins\. Set model\.joined=true"):
        model(VideoFeatures(torch.randn(1, 16, 6), torch.randn(1, 16, 5)), Words(torch.randn(1, 9, 7), torch.tensor([9])))


def test_question_and_option_apart_are_the_words_of_each() -> None:
    vectors = torch.arange(10.0).view(2, 5, 1)
    question, option = Words(vectors, torch.tensor([5, 3]), torch.tensor([2, 1])).apart()
    assert question.lengths.tolist() == [2, 1]
    assert option.lengths.tolist() == [3, 2]
    assert option.vectors[0, :3, 0].tolist() == [2.0, 3.0, 4.0]
    assert option.vectors[1, :2, 0].tolist() == [6.0, 7.0]
