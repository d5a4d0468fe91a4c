"""What the settings of a batch come to: engines and their models, limits, and who describes."""

from __future__ import annotations

import pytest

from tests.corpus.test_retries import Notes
from vip import registry
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.settings import BatchConfig, with_model
from vip.errors import BackendError, UsageError


@pytest.mark.parametrize(
    ("named", "found", "kept"),
    [
        ("openai", "openai:gpt", "openai:gpt"),
        ("openai:@http://host/v1", "openai:gpt", "openai:gpt@http://host/v1"),
        ("openai:gpt", "openai:gpt-2026", "openai:gpt"),
        ("openai:gpt@http://host/v1", "openai:gpt", "openai:gpt@http://host/v1"),
        ("transformers:@main", "transformers:a", "transformers:@main"),
        ("transformers", "transformers:small", "transformers:small"),
        ("offline", "offline", "offline"),
    ],
)
def test_a_model_that_was_found_is_named_and_one_that_was_given_stays(named: str, found: str, kept: str) -> None:
    assert with_model(named, found) == kept


@pytest.mark.parametrize(
    ("asked", "engine", "describe_engine", "structure_engine"),
    [
        ({"engine": "openai"}, "openai:sees", None, None),
        ({"engine": "openai", "describe_engine": "openai"}, "openai:writes", "openai:sees", None),
        ({"engine": "openai", "structure_engine": "openai"}, "openai:sees", None, "openai:writes"),
    ],
)
def test_each_engine_has_the_model_of_who_does_its_work(
    asked: dict[str, str], engine: str, describe_engine: str | None, structure_engine: str | None
) -> None:
    found = BatchConfig(captioning=CaptionSettings(**asked)).with_engines("openai:sees", "openai:writes").captioning
    assert (found.engine, found.describe_engine, found.structure_engine) == (engine, describe_engine, structure_engine)


def test_a_video_has_half_an_hour_where_no_other_limit_is_given() -> None:
    assert BatchConfig().limited.timeout == 1800
    assert BatchConfig(extraction=ExtractSettings(timeout=7)).limited.timeout == 7


def test_there_are_as_many_workers_as_cores_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 12)
    assert BatchConfig().workers == 12
    assert BatchConfig(BatchSettings(workers=3)).workers == 3


@pytest.mark.parametrize(
    ("caption", "engine", "measured", "asked"),
    [(True, "offline", True, False), (True, "openai:m", False, True), (False, "offline", False, False), (False, "openai:m", False, False)],
)
def test_descriptions_are_measured_or_asked_for_or_not_wanted(caption: bool, engine: str, measured: bool, asked: bool) -> None:
    choices = BatchConfig(BatchSettings(caption=caption), captioning=CaptionSettings(engine=engine))
    assert (choices.measured is not None, choices.asked is not None) == (measured, asked)


def test_a_batch_of_questions_without_captions_is_refused() -> None:
    with pytest.raises(UsageError, match="--batch is about captions, and has nothing to do without --caption"):
        BatchConfig(BatchSettings(batch=True)).resolve_auto(Notes(), {"embedder": "classic"})


def test_what_auto_became_it_stays_and_nothing_is_said_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.registry.auto_embedder", lambda name: ("clip", "its weights are here"))
    choices, notes = BatchConfig(BatchSettings(caption=True), captioning=CaptionSettings(engine="auto", verify=True)), Notes()
    begun = {"engine": "openai:m", "base_url": "http://host/v1", "embedder": "classic"}
    decided = choices.resolve_auto(notes, {"embedder": "classic"}, begun)
    assert (decided.extraction.embedder, decided.captioning.embedder) == ("classic", "classic")
    assert (decided.captioning.engine, decided.captioning.base_url) == ("openai:m", "http://host/v1")
    assert notes.told == []


def test_an_engine_of_the_same_batch_may_have_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = BatchConfig(BatchSettings(caption=True), captioning=CaptionSettings(engine="auto", base_url="http://other/v1"))
    decided = choices.resolve_auto(Notes(), {"embedder": "classic"}, {"engine": "openai:m", "base_url": "http://host/v1"})
    assert decided.captioning.base_url == "http://other/v1"


def test_what_auto_stands_for_is_said_at_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.registry.auto_embedder", lambda name: ("clip", "its weights are here"))
    notes = Notes()
    decided = BatchConfig(BatchSettings(caption=True), captioning=CaptionSettings(engine="auto")).resolve_auto(notes)
    assert (decided.extraction.embedder, decided.captioning.engine) == ("clip", "offline")
    assert [note.partition(";")[0] for note in notes.told] == ["embedder: clip", "engine: offline"]


@pytest.mark.parametrize(
    ("words", "is_installed", "found"),
    [
        ("auto", True, ("subtitles", "text")),
        ("auto", False, ("subtitles",)),
        ("text,auto", True, ("text", "subtitles")),
        ("subtitles", True, ("subtitles",)),
        ("none", True, ()),
    ],
)
def test_words_are_the_same_on_all_machines(
    words: str, is_installed: bool, found: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "has_text_reader", lambda: is_installed)
    config = BatchConfig(BatchSettings(words=words), ExtractSettings(embedder="classic"))  # type: ignore[arg-type]
    assert config.resolve_auto(Notes()).batch.words == found


def test_a_source_for_single_videos_is_refused() -> None:
    batch = BatchSettings(words=("text",)).model_copy(update={"words": ("sermons",)})
    with pytest.raises(UsageError, match="--words sermons is for single videos: a batch reads subtitles and text"):
        BatchConfig(batch, ExtractSettings(embedder="classic")).resolve_auto(Notes())


def test_text_that_cannot_be_read_here_ends_the_batch_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "has_text_reader", lambda: False)
    config = BatchConfig(BatchSettings(words=("text",)), ExtractSettings(embedder="classic"))
    with pytest.raises(BackendError, match="not installed"):
        config.resolve_auto(Notes())
