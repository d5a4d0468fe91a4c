"""What holds for every model of the tables, whoever wrote it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import vip.baselines.nextqa
from vip.baselines.nextqa.attention import AttentionWeights
from vip.baselines.nextqa.interface import (
    DECODERS,
    MULTI_CHOICE,
    OPEN_ENDED,
    Decoder,
    Encoder,
    InputSizes,
    MultiChoiceModel,
    VideoFeatures,
    Words,
    load_class,
)
from vip.baselines.nextqa.losses import hinge_loss

FOLDER = Path(next(iter(vip.baselines.nextqa.__path__)))
SIZES = InputSizes(appearance=6, motion=5, clips=16, words=7, length=9, maps=4)
SMALL = {
    "hidden": 24,
    "attention": 8,
    "fusion": 24,
    "fusion_chunks": 4,
    "heads": 4,
    "head_size": 6,
    "inner": 12,
    "positions": 8,
    "subsets": 20,
}
SCORERS = list(MULTI_CHOICE)
SEEING = [name for name in SCORERS if load_class(MULTI_CHOICE, name).sees_video]
READING = [name for name in SCORERS if name != "bert-choice"]  # that one looks at the first vector alone: BERT has read the others
STATELESS = [name for name in DECODERS if not load_class(DECODERS, name).needs_states]
QUESTIONS, OPTIONS, VOCABULARY = 4, 5, 11


def options_of(kind: Any, file: str, *, drops: bool, **changed: Any) -> Any:
    """Return the settings of a file, in small sizes, perhaps without any dropout."""
    table = tomllib.loads((FOLDER / file).read_text())["model"]
    small = {name: SMALL.get(name, value) if isinstance(value, int) else value for name, value in table.items()}
    without = {} if drops else {name: 0.0 for name in table if "dropout" in name}
    return kind.Options(**{**small, **without, **changed})


def scorer(name: str, *, drops: bool = True, **changed: Any) -> MultiChoiceModel:
    torch.manual_seed(1)
    kind = load_class(MULTI_CHOICE, name)
    model: MultiChoiceModel = kind(SIZES, options_of(kind, f"{name}.toml", drops=drops, **changed))
    return model.eval()


def encoder(name: str, *, drops: bool = True, **changed: Any) -> Encoder:
    torch.manual_seed(1)
    kind = load_class(OPEN_ENDED, name)
    model: Encoder = kind(SIZES, options_of(kind, f"{name}-oe.toml", drops=drops, **changed))
    return model.eval()


def decoder(name: str, of: Encoder, *, drops: bool = True, **changed: Any) -> Decoder:
    torch.manual_seed(1)
    kind = load_class(DECODERS, name)
    options = options_of(kind, f"{name}.toml", drops=drops, **changed)
    model: Decoder = kind(of, words=SIZES.words, vocabulary=VOCABULARY, options=options)
    return model.eval()


def dropouts_in(table: dict[str, str], ending: str) -> list[tuple[str, str]]:
    """Return all models of a table with the names of their settings of dropout."""
    found = [(name, tomllib.loads((FOLDER / f"{name}{ending}.toml").read_text())["model"]) for name in table]
    return [(name, option) for name, model in found for option in model if "dropout" in option]


def fitting(name: str) -> str:
    """Return the decoder that an encoder is used with first."""
    return str((load_class(OPEN_ENDED, name).decoders or ("att-qns",))[0])


def video(batch: int, seed: int = 2) -> VideoFeatures:
    random = torch.Generator().manual_seed(seed)
    return VideoFeatures(
        torch.randn(batch, SIZES.clips, SIZES.appearance, generator=random),
        torch.randn(batch, SIZES.clips, SIZES.motion, generator=random),
        torch.randn(batch, SIZES.clips, SIZES.maps, 7, 7, generator=random),
    )


def texts(batch: int, seed: int = 3) -> Words:
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, SIZES.length + 1, (batch,), generator=random)
    lengths[0] = SIZES.length
    return Words(torch.randn(batch, SIZES.length, SIZES.words, generator=random), lengths, lengths // 2)


def answer(reader: Encoder, speaker: Decoder, seen: VideoFeatures, asked: Words, given: Tensor) -> Tensor:
    """Return the logits (B, K, V) of K words, with the vectors (B, K, E) of the words before."""
    encoded = reader(seen, asked)
    state = speaker.start(encoded)
    logits = []
    for place in range(given.shape[1]):
        said, state = speaker.step(given[:, place], state, encoded)
        logits.append(said)
    return torch.stack(logits, dim=1)


def padded(words: Words, more: int, filler: float) -> Words:
    """Return the same texts with other numbers behind their ends, and more of them."""
    vectors = torch.where(words.mask[..., None], words.vectors, torch.tensor(filler))
    return Words(
        torch.cat((vectors, vectors.new_full((len(vectors), more, SIZES.words), filler)), dim=1), words.lengths, words.question_lengths
    )


def weights_of(model: nn.Module, *inputs: Any) -> list[Tensor]:
    """Return all weights of attention that were used, with the axis they add up along last."""
    found: list[Tensor] = []

    def keep(_: nn.Module, given: tuple[Any, ...], options: dict[str, Any], out: Tensor) -> None:
        found.append(out.movedim(options.get("dim", -1), -1))

    for module in model.modules():
        if isinstance(module, AttentionWeights):
            module.register_forward_hook(keep, with_kwargs=True)
    model(*inputs)
    return found


@pytest.mark.parametrize("name", SCORERS)
def test_a_model_gives_one_score_a_pair(name: str) -> None:
    assert scorer(name)(video(6), texts(6)).shape == (6,)


@pytest.mark.parametrize("name", SCORERS)
@torch.no_grad()
def test_permuted_options_permute_the_scores(name: str) -> None:
    model, pairs = scorer(name), texts(QUESTIONS * OPTIONS)
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = (torch.arange(QUESTIONS)[:, None] * OPTIONS + order).flatten()
    seen = video(QUESTIONS).repeat(OPTIONS)
    before = model(seen, pairs).view(QUESTIONS, OPTIONS)
    after = model(seen, Words(pairs.vectors[moved], pairs.lengths[moved], pairs.lengths[moved] // 2)).view(QUESTIONS, OPTIONS)
    assert (before.std(dim=1) > 0).all()
    torch.testing.assert_close(after, before[:, order], atol=1e-5, rtol=0)
    assert (order[after.argmax(dim=1)] == before.argmax(dim=1)).all()


@pytest.mark.parametrize("filler", [0.0, 50.0])
@pytest.mark.parametrize("name", SCORERS)
@torch.no_grad()
def test_padding_changes_no_score(name: str, filler: float) -> None:
    model, seen, pairs = scorer(name), video(8), texts(8)
    torch.testing.assert_close(model(seen, padded(pairs, 5, filler)), model(seen, pairs), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", OPEN_ENDED)
@torch.no_grad()
def test_padding_changes_no_logit_of_an_answer(name: str) -> None:
    reader = encoder(name)
    seen, asked, given = video(8), texts(8), torch.randn(8, 3, SIZES.words, generator=torch.Generator().manual_seed(4))
    for speaker in (decoder(kind, reader) for kind in reader.decoders or STATELESS):
        plain = answer(reader, speaker, seen, asked, given)
        assert plain.shape == (8, 3, VOCABULARY)
        torch.testing.assert_close(answer(reader, speaker, seen, padded(asked, 5, 50.0), given), plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", OPEN_ENDED)
@torch.no_grad()
def test_an_encoder_gives_what_it_promises(name: str) -> None:
    reader = encoder(name)
    encoded = reader(video(3), texts(3))
    assert encoded.fused.shape == (3, reader.fused_size)
    assert encoded.question_state.shape == (3, reader.hidden_size)
    assert encoded.question.shape == (3, SIZES.length, reader.hidden_size)
    assert encoded.question_mask.sum(dim=1).tolist() == texts(3).lengths.tolist()
    assert encoded.video.shape[::2] == (3, reader.hidden_size)


@pytest.mark.parametrize("name", SCORERS)
@torch.no_grad()
def test_a_pair_is_scored_as_if_it_were_alone(name: str) -> None:
    model, seen, pairs = scorer(name), video(3).repeat(2), texts(6)
    for row, score in enumerate(model(seen, pairs).tolist()):
        assert model(video_of(seen, row), words_of(pairs, row)).item() == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("name", OPEN_ENDED)
@torch.no_grad()
def test_a_question_is_read_as_if_it_were_alone(name: str) -> None:
    reader, seen, asked = encoder(name), video(3), texts(3)
    together = reader(seen, asked)
    for row in range(3):
        alone = reader(video_of(seen, row), words_of(asked, row))
        for part in ("fused", "question_state", "video"):
            torch.testing.assert_close(getattr(alone, part)[0], getattr(together, part)[row], atol=1e-5, rtol=0)
        for part in ("hidden", "cell"):
            if getattr(together, part) is not None:
                torch.testing.assert_close(getattr(alone, part)[:, 0], getattr(together, part)[:, row], atol=1e-5, rtol=0)


def video_of(seen: VideoFeatures, row: int) -> VideoFeatures:
    assert seen.maps is not None
    return VideoFeatures(seen.appearance[row : row + 1], seen.motion[row : row + 1], seen.maps[row : row + 1])


def words_of(words: Words, row: int) -> Words:
    """Return one of several texts, without the padding behind it."""
    assert words.question_lengths is not None
    length = int(words.lengths[row])
    return Words(words.vectors[row : row + 1, :length], words.lengths[row : row + 1], words.question_lengths[row : row + 1])


def test_a_video_stands_beside_each_of_its_own_options() -> None:
    seen = video(2)
    repeated = seen.repeat(3)
    for part in ("appearance", "motion", "maps"):
        assert all(torch.equal(getattr(repeated, part)[row], getattr(seen, part)[row // 3]) for row in range(6)), part


@pytest.mark.parametrize("place", [1, 6], ids=["question", "option"])
@pytest.mark.parametrize("name", READING)
@torch.no_grad()
def test_the_order_of_words_counts(name: str, place: int) -> None:
    words = texts(3).vectors
    order = [*range(place), place + 1, place, *range(place + 2, SIZES.length)]
    plain, turned = (Words(vectors, torch.full((3,), SIZES.length), torch.full((3,), 4)) for vectors in (words, words[:, order]))
    model = scorer(name)
    assert (model(video(3), plain) - model(video(3), turned)).abs().min() > 1e-7


@pytest.mark.parametrize("name", SEEING)
@torch.no_grad()
def test_the_order_of_clips_counts(name: str) -> None:
    model, seen = scorer(name), video(3)
    assert seen.maps is not None
    turned = VideoFeatures(seen.appearance.flip(1), seen.motion.flip(1), seen.maps.flip(1))
    assert (model(seen, texts(3)) - model(turned, texts(3))).abs().min() > 1e-7


@pytest.mark.parametrize("part", ["appearance", "motion"])
@pytest.mark.parametrize("name", [name for name in SEEING if name != "stvqa"])
@torch.no_grad()
def test_appearance_and_motion_of_every_clip_count(name: str, part: str) -> None:
    """PSAC alone sees no motion; STVQA sees maps, in which both are."""
    model, seen = scorer(name), video(2)
    before = model(seen, texts(2))
    for clip in range(SIZES.clips):
        changed = getattr(seen, part).clone()
        changed[:, clip] += 1.0
        other = VideoFeatures(**{"appearance": seen.appearance, "motion": seen.motion, part: changed})
        is_seen = bool((model(other, texts(2)) - before).abs().min() > 1e-9)
        assert is_seen is not (name == "psac" and part == "motion"), clip


@pytest.mark.parametrize("name", SEEING)
@torch.no_grad()
def test_a_model_that_sees_looks_at_the_video(name: str) -> None:
    assert (scorer(name)(video(4), texts(4)) - scorer(name)(video(4, seed=9), texts(4))).abs().min() > 1e-6


@pytest.mark.parametrize("name", [name for name in SEEING if name != "evqa"])
@torch.no_grad()
def test_the_video_decides_which_option_is_better(name: str) -> None:
    model, pairs = scorer(name), texts(2)
    margins = [model(video(1, seed=seed).repeat(2), pairs).diff() for seed in (2, 9)]
    assert (margins[0] - margins[1]).abs() > 1e-6


@torch.no_grad()
def test_evqa_ranks_options_without_the_video_unless_it_multiplies() -> None:
    kind, pairs = load_class(MULTI_CHOICE, "evqa"), texts(2)
    for fusion, is_blind in (("add", True), ("multiply", False)):
        torch.manual_seed(1)
        model = kind(SIZES, kind.Options(hidden=24, dropout=0.2, fusion=fusion)).eval()
        margins = [model(video(1, seed=seed).repeat(2), pairs).diff() for seed in (2, 9)]
        assert ((margins[0] - margins[1]).abs() < 1e-6).item() is is_blind


@pytest.fixture
def _double() -> Iterator[None]:
    """Numbers of 64 bits: in 32, a gradient that is 0 cannot be told from a small one."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("name", SCORERS)
def test_the_score_reaches_every_parameter(name: str) -> None:
    model = scorer(name).train()
    weights = torch.randn(12, generator=torch.Generator().manual_seed(5))
    (model(video(12), texts(12)) * weights).sum().backward()
    assert not unreached(model)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(("reader_name", "speaker_name"), [(name, fitting(name)) for name in OPEN_ENDED] + [("hme", "hme-lstm")])
def test_an_answer_reaches_every_parameter(reader_name: str, speaker_name: str) -> None:
    reader = encoder(reader_name).train()
    assert not unreached(*_answered(reader, speaker_name))


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("name", STATELESS)
def test_an_answer_reaches_every_parameter_of_a_decoder(name: str) -> None:
    for reader_name in ("evqa", "hme"):
        _, speaker = _answered(encoder(reader_name).train(), name)
        assert not unreached(speaker)


def _answered(reader: Encoder, speaker_name: str) -> tuple[Encoder, Decoder]:
    """Return both after the gradient of an answer was reckoned."""
    speaker = decoder(speaker_name, reader).train()
    random = torch.Generator().manual_seed(5)
    logits = answer(reader, speaker, video(12), texts(12), torch.randn(12, 3, SIZES.words, generator=random))
    (logits * torch.randn(logits.shape, generator=random)).sum().backward()
    return reader, speaker


def unreached(*models: nn.Module) -> list[str]:
    """Return the names of parameters that learn but have no gradient."""
    return [
        name
        for model in models
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and (parameter.grad is None or not parameter.grad.abs().max() > 1e-14)
    ]


def differs_in_training(model: nn.Module, run: Callable[[], Tensor]) -> bool:
    """Return whether two passes in training differ: whether chance has a part in them. Each layer of dropout has to be in the way."""
    passed: list[nn.Module] = []
    layers = [layer for layer in model.train().modules() if isinstance(layer, nn.Dropout) and layer.p > 0]
    for layer in layers:
        layer.register_forward_hook(lambda layer, *_: passed.append(layer))
    with torch.no_grad():
        differs = not torch.allclose(run(), run(), atol=1e-6)
    assert {id(layer) for layer in passed} == {id(layer) for layer in layers}
    return differs


ALL_SUBSETS = {"hcrn": {"subsets": 1024}}
"""All subsets are related, so that none is drawn."""


@pytest.mark.parametrize(("name", "option"), dropouts_in(MULTI_CHOICE, ""))
def test_each_dropout_of_a_model_drops_something_and_without_any_nothing_is_left_to_chance(name: str, option: str) -> None:
    for share in (0.0, 0.5):
        model = scorer(name, drops=False, **{option: share}, **ALL_SUBSETS.get(name, {}))
        assert differs_in_training(model, lambda model=model: model(video(6), texts(6))) is (share > 0)


@pytest.mark.parametrize(("name", "option"), dropouts_in(OPEN_ENDED, "-oe"))
def test_each_dropout_of_an_encoder_drops_something_and_without_any_nothing_is_left_to_chance(name: str, option: str) -> None:
    if name.startswith("psac") and option == "score_dropout":
        pytest.skip("it is before a score, which only the model with options has")
    for share in (0.0, 0.5):
        reader = encoder(name, drops=False, **{option: share}, **ALL_SUBSETS.get(name, {}))

        def run(reader: Encoder = reader) -> Tensor:
            encoded = reader(video(6), texts(6))
            return torch.cat((encoded.fused, encoded.question_state), dim=-1)

        assert differs_in_training(reader, run) is (share > 0)


HALF = {"stvqa": 0.25}
"""It reads the words twice, and drops others each time."""


@pytest.mark.parametrize("name", READING)
def test_half_of_the_numbers_of_words_are_dropped_where_it_is_asked_for(name: str) -> None:
    option = next(option for known, option in dropouts_in(MULTI_CHOICE, "") if known == name and option in {"word_dropout", "dropout"})
    assert _share_of_words_without_part(scorer(name, drops=False, **{option: 0.5})) == pytest.approx(HALF.get(name, 0.5), abs=0.1)


@pytest.mark.parametrize("name", OPEN_ENDED)
def test_half_of_the_numbers_of_words_of_an_encoder_are_dropped_where_it_is_asked_for(name: str) -> None:
    options = [option for known, option in dropouts_in(OPEN_ENDED, "-oe") if known == name]
    reader = encoder(name, drops=False, **{"word_dropout" if "word_dropout" in options else "dropout": 0.5})
    assert _share_of_words_without_part(reader) == pytest.approx(HALF.get(name, 0.5), abs=0.1)


def _share_of_words_without_part(model: MultiChoiceModel | Encoder) -> float:
    """Return how many numbers of the vectors of words have no gradient in training."""
    torch.manual_seed(1)
    vectors = torch.randn(30, SIZES.length, SIZES.words).requires_grad_()
    found = model.train()(video(30), Words(vectors, torch.full((30,), SIZES.length), torch.full((30,), 4)))
    (found if isinstance(found, Tensor) else found.fused + found.question_state.sum()).sum().backward()
    assert vectors.grad is not None
    return float((vectors.grad == 0).float().mean())


@pytest.mark.parametrize(("name", "option"), dropouts_in(DECODERS, ""))
def test_each_dropout_of_a_decoder_drops_something_and_without_any_nothing_is_left_to_chance(name: str, option: str) -> None:
    reader = encoder("hme")
    given = torch.randn(6, 3, SIZES.words, generator=torch.Generator().manual_seed(4))
    for share in (0.0, 0.5):
        speaker = decoder(name, reader, drops=False, **{option: share})
        run = partial(answer, reader, speaker, video(6), texts(6), given)
        assert differs_in_training(speaker, run) is (share > 0)


@pytest.mark.parametrize("name", ["stvqa", "co-mem", "hme", "hcrn", "psac", "psac-plus"])
@torch.no_grad()
def test_attention_adds_up_to_one_and_leaves_padding_out(name: str) -> None:
    words = Words(texts(5).vectors, torch.full((5,), 3), torch.full((5,), 2))
    found = weights_of(scorer(name), video(5), words)
    assert found
    for weights in found:
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
        assert (weights >= 0).all()
    over_words = [weights for weights in found if weights.shape[-1] == SIZES.length and name in {"psac", "psac-plus"}]
    assert all((weights[..., 3:] == 0).all() for weights in over_words)
    assert bool(over_words) == name.startswith("psac")


@torch.no_grad()
def test_attention_of_uatt_adds_up_to_one_and_leaves_padding_out() -> None:
    found = weights_of(encoder("uatt"), video(5), Words(texts(5).vectors, torch.full((5,), 3)))
    assert [len(weights[0]) for weights in found] == [SIZES.clips] * SIZES.length + [SIZES.length] * SIZES.clips
    for weights in found:
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(5))
        assert len(weights[0]) == SIZES.clips or (weights[:, 3:] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", READING)
def test_a_model_learns_eight_questions(name: str) -> None:
    model = scorer(name, drops=False).train()
    seen, pairs = video(8).repeat(OPTIONS), texts(8 * OPTIONS)
    right = torch.randint(OPTIONS, (8,), generator=torch.Generator().manual_seed(6))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(300):
        optimizer.zero_grad()
        hinge_loss(model(seen, pairs).view(8, OPTIONS), right).backward()
        optimizer.step()
        if step % 10 == 9 and _loss_of_scores(model, seen, pairs, right) < 0.1:
            return
    raise AssertionError(f"the loss is {_loss_of_scores(model, seen, pairs, right):.3f} after 300 steps")


@torch.no_grad()
def _loss_of_scores(model: MultiChoiceModel, seen: VideoFeatures, pairs: Words, right: Tensor) -> float:
    loss = hinge_loss(model.eval()(seen, pairs).view(len(right), OPTIONS), right)
    model.train()
    return float(loss)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader_name", "speaker_name"),
    [(name, fitting(name)) for name in OPEN_ENDED] + [("hme", "hme-lstm")] + [("evqa", name) for name in STATELESS],
)
def test_a_decoder_learns_eight_answers(reader_name: str, speaker_name: str) -> None:
    reader = encoder(reader_name, drops=False).train()
    speaker = decoder(speaker_name, reader, drops=False).train()
    seen, asked = video(8), texts(8)
    random = torch.Generator().manual_seed(6)
    table = torch.randn(VOCABULARY, SIZES.words, generator=random)
    said = torch.randint(VOCABULARY, (8, 4), generator=random)
    given = table[torch.cat((torch.zeros(8, 1, dtype=torch.int64), said[:, :-1]), dim=1)]
    optimizer = torch.optim.Adam([*reader.parameters(), *speaker.parameters()], lr=1e-2)
    for step in range(300):
        optimizer.zero_grad()
        functional.cross_entropy(answer(reader, speaker, seen, asked, given).flatten(0, 1), said.flatten()).backward()
        optimizer.step()
        if step % 10 == 9:
            reader.eval(), speaker.eval()
            with torch.no_grad():
                loss = float(functional.cross_entropy(answer(reader, speaker, seen, asked, given).flatten(0, 1), said.flatten()))
            if loss < 0.1:
                return
            reader.train(), speaker.train()
    raise AssertionError(f"the loss is {loss:.3f} after 300 steps")
