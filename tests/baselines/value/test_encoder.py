"""vip.baselines.value.encoder: what frames read, and that padding changes nothing"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from tests.baselines.value.tiny_hero import CAPTIONS, FUSIONS, LONG, QUERIES, QUESTIONS, SHORT, SILENT, STATEMENTS, TINY, tiny
from vip.baselines.value.batches import collate_captions, collate_questions, collate_retrieval, collate_videos
from vip.baselines.value.captions import encode_moments
from vip.baselines.value.encoder import HeroEncoder, by_video, collect_frames, make_encoder
from vip.baselines.value.hero import Hero
from vip.baselines.value.interface import CaptionItem, CollateOptions, HeroModel, HeroSettings, RetrievalScores, build
from vip.errors import UsageError

BOTH = CollateOptions()
CLOSE = {"atol": 1e-5, "rtol": 0.0}


def says(model: HeroModel, items: Sequence[Any], options: CollateOptions) -> list[torch.Tensor]:
    """Return what the heads say to each item of a batch, without padding."""
    with torch.no_grad():
        if items[0] in QUERIES:
            queries = collate_retrieval(items, options)
            scores = model.predict(queries)
            assert isinstance(scores, RetrievalScores)
            rows = enumerate(queries.query_video.tolist())
            counts = queries.video.frame_mask.sum(1).tolist()
            return [torch.stack((scores.starts[q, v, : counts[v]], scores.ends[q, v, : counts[v]])) for q, v in rows]
        answers = model.predict(collate_questions(items, options))
        assert isinstance(answers, torch.Tensor)
        return list(answers)


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("items", [QUERIES, QUESTIONS, STATEMENTS])
def test_padding_changes_nothing(fusion: str, items: Sequence[Any]) -> None:
    model = tiny(fusion=fusion, spread=0.3)
    together = says(model, items, BOTH)
    alone = [says(model, [item], BOTH)[0] for item in items]
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("channels", ["video+sub", "video", "sub"])
def test_padding_changes_no_frame_in_any_channel(channels: Any) -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    options = CollateOptions(channels=channels)
    with torch.no_grad():
        together = model.encoder(collate_videos([LONG, SHORT, SILENT], options))
        for row, one in enumerate((LONG, SHORT, SILENT)):
            alone = model.encoder(collate_videos([one], options))[0]
            torch.testing.assert_close(together[row, : len(one.frames)], alone, **CLOSE)


@torch.no_grad()
def test_padding_changes_no_caption() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)

    def logits(items: Sequence[CaptionItem]) -> torch.Tensor:
        batch = collate_captions(items, BOTH)
        return model.caption_head.decode(model.encoder, batch.inputs, *encode_moments(model.encoder, batch))

    together = logits(CAPTIONS)
    for row, one in enumerate(CAPTIONS):
        alone = logits([one])[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, **CLOSE)


def test_a_frame_gets_the_sum_of_what_it_read_in_its_sentences() -> None:
    batch = collate_videos([LONG, SHORT], BOTH)
    read = torch.arange(5 * 3, dtype=torch.float32).view(5, 3, 1)
    total = collect_frames(read, batch)[..., 0]
    assert total[0].tolist() == [0.0, 1.0 + 3.0, 4.0, 5.0, 0.0, 0.0, 0.0, 9.0, 10.0]
    assert total[1, :4].tolist() == [12.0, 13.0, 14.0, 0.0]


def test_frames_are_what_they_were_and_what_they_read() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    assert isinstance(model.encoder, HeroEncoder)
    batch = collate_videos([LONG], BOTH)
    with torch.no_grad():
        fused, mask, places = model.encoder.fuse(batch)
        frames, _ = model.encoder.cross_modal(batch)
        plain = model.encoder.frame_transform(batch.frames)
    torch.testing.assert_close(fused[0, 1], plain[0, 1] + frames[0, 1] + frames[1, 0])
    torch.testing.assert_close(fused[0, 5], plain[0, 5])
    assert mask.all()
    assert places is None


def test_without_video_the_first_token_stands_for_all_frames_of_a_sentence() -> None:
    model = tiny(spread=0.3)
    assert isinstance(model, Hero)
    batch = collate_videos([LONG], CollateOptions(channels="sub"))
    with torch.no_grad():
        fused, _, _ = model.encoder.fuse(batch)
        words = model.encoder.encode_text(batch.sentences, batch.sentence_mask)
        plain = model.encoder.frame_transform(batch.frames)
    torch.testing.assert_close(fused[0, 0], plain[0, 0] + words[0, 0], **CLOSE)


@pytest.mark.parametrize("fusion", ["sequence", "add", "concat"])
@torch.no_grad()
def test_words_of_sentences_have_the_places_from_the_third_on(fusion: str) -> None:
    """As RoBERTa counts them, the first two of whose places are no word's."""
    model = tiny(fusion=fusion, spread=0.3)
    assert isinstance(model, Hero)
    batch, places = collate_videos([LONG, SHORT], BOTH), model.encoder.cross_modal.text.places.weight
    before = model.encoder(batch)
    places[:2] += torch.linspace(-1, 1, 16)
    assert torch.equal(model.encoder(batch), before)
    places[2] += torch.linspace(-1, 1, 16)
    assert (model.encoder(batch) - before).abs().max() > 1e-5


def test_sentences_of_each_video_have_a_row_of_their_own() -> None:
    rows, mask = by_video(torch.arange(5.0)[:, None], collate_videos([LONG, SHORT], BOTH))
    assert rows[..., 0].tolist() == [[0.0, 1.0, 2.0, 3.0], [4.0, 0.0, 0.0, 0.0]]
    assert mask.tolist() == [[True] * 4, [True, False, False, False]]


def test_dropout_of_transformer_layers_is_that_of_bert() -> None:
    layer = make_encoder(TINY).temporal.transformer.layers[0]
    assert (layer.dropout.p, layer.dropout1.p, layer.dropout2.p, layer.self_attn.dropout) == (0.0, 0.1, 0.1, 0.1)


def test_the_published_settings_are_those_of_the_paper() -> None:
    settings = HeroSettings()
    assert (settings.cross_layers, settings.temporal_layers, settings.hidden, settings.heads) == (6, 3, 768, 12)
    assert (settings.vocabulary, settings.frame_positions, settings.features) == (50_272, 100, 4352)
    with torch.device("meta"):
        count = sum(one.numel() for one in make_encoder(settings).parameters())
    assert 110e6 < count < 130e6, count


def test_heads_that_do_not_share_the_size_are_refused() -> None:
    with pytest.raises(UsageError, match="multiple of heads"):
        build(TINY.model_copy(update={"heads": 3}))
    with pytest.raises(UsageError, match="odd number"):
        build(TINY.model_copy(update={"span_kernel": 4}))
