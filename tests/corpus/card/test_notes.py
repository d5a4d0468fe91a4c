"""Origin, limits and loading on a data card: only what is true of this data set, with its own figures, and code that names its files."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.card.test_write import status
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.card import notes
from vip.corpus.card.counts import DataSetCounts
from vip.corpus.card.notes import columns, introduction, limits, loading, options_given, provenance_tables
from vip.corpus.card.tables import MOST_ROWS, DataCard
from vip.corpus.settings import BatchConfig
from vip.dataset.schema import COLUMNS
from vip.dataset.statistics import KeyframeStatistics, NameCounts, VideoStatistics

RIGHTS = "The rights in the pictures are those of the videos that the column source names; licences are what hosts say, and may be wrong."
MACHINES = "Captions were written by machines and not checked by people: they may name what is not there, and miss what is."
UNCHECKED = "No caption was held against its picture (--verify)."
UNDESCRIBED = "Nothing is described. Run vip batch with --caption into another folder for captions."


def card(
    *,
    words: KeyframeStatistics | None = None,
    videos: VideoStatistics | None = None,
    settings: BatchConfig | None = None,
    counts: dict[str, Any] | None = None,
    out: str = "corpus",
    **told: Any,
) -> DataCard:
    """The card of a batch that ended well and described nothing, but for what is given."""
    found = DataSetCounts(videos=videos or VideoStatistics(), keyframes=words or KeyframeStatistics())
    return DataCard("corpus", out, status(out, **told), replace(found, **(counts or {})), None, settings)


def described(count: int = 4, **more: Any) -> KeyframeStatistics:
    return KeyframeStatistics(keyframes=9, described=count, **more)


def names(**counts: int) -> NameCounts:
    return NameCounts(dict(counts))


# ---------------------------------------------------------------- what it is


def test_each_column_of_the_schema_is_a_row_with_its_type_and_meaning() -> None:
    table = columns()
    assert table.head == ("Column", "Type", "Meaning")
    assert [row[0] for row in table.rows] == list(COLUMNS)
    assert {row[0]: row[1:] for row in table.rows} == COLUMNS


@pytest.mark.parametrize(
    ("videos", "words", "begin"),
    [
        (1, KeyframeStatistics(keyframes=3, engines=names(offline=3)), "Keyframes of 1 video. Made by vip batch"),
        (1200, KeyframeStatistics(keyframes=3), "Keyframes of 1,200 videos. Made by vip batch"),
        (
            2,
            described(engines=names(**{"a": 1, "b": 9, "c": 3, "d": 4, "e": 5, "f": 6})),
            "Keyframes of 2 videos, with dense captions and structured descriptions (Focus, Action, Mood, Objects, Setting)"
            " by b, f, e, d, c. Made by vip batch",
        ),
    ],
)
def test_the_introduction_names_the_engines_of_what_is_described_the_most_frequent_first(
    videos: int, words: KeyframeStatistics, begin: str
) -> None:
    assert introduction(card(videos=VideoStatistics(videos=videos), words=words)).startswith(begin)


# ---------------------------------------------------------------- settings


def test_settings_that_nobody_knows_are_no_options() -> None:
    assert options_given(card()) == []
    assert options_given(card(settings=BatchConfig())) == []


def test_a_list_of_words_is_an_option_that_vip_takes_again() -> None:
    [given] = options_given(card(settings=BatchConfig(batch=BatchSettings(words="subtitles,text"))))
    flag, value = shlex.split(given)
    assert (flag, BatchSettings(words=value).words) == ("--words", ("subtitles", "text"))


def test_settings_that_are_no_defaults_are_options_as_they_are_typed() -> None:
    settings = BatchConfig(
        BatchSettings(caption=True, sample=5, weights=Path("my weights.toml"), public_only=True),
        ExtractSettings(keyframes=8),
        CaptionSettings(engine="openai:gpt", topic="it's a dog"),
    )
    assert options_given(card(settings=settings)) == [
        "--caption",
        "--sample 5",
        "--weights 'my weights.toml'",
        "--public-only",
        "--keyframes 8",
        "--engine openai:gpt",
        """--topic 'it'"'"'s a dog'""",
    ]


def test_a_default_that_was_typed_and_what_decides_only_how_a_result_is_got_are_not_told() -> None:
    batch = BatchSettings(seed=0, shards="parquet", sleep=0.0, proxy="http://ann:secret@host", cookies=Path("/home/ann/cookies"), workers=3)
    assert options_given(card(settings=BatchConfig(batch, ExtractSettings(keyframes=12), CaptionSettings()))) == []


def test_a_number_that_is_zero_is_told_where_the_default_is_another() -> None:
    settings = BatchConfig(BatchSettings(seed=7), ExtractSettings(text_weight=0.0), CaptionSettings())
    assert options_given(card(settings=settings)) == ["--seed 7", "--text-weight 0.0"]


def test_settings_of_captions_count_only_where_there_are_captions() -> None:
    settings = BatchConfig(BatchSettings(), ExtractSettings(), CaptionSettings(engine="openai:gpt"))
    assert options_given(card(settings=settings)) == []


def test_where_the_key_and_the_server_are_is_not_told() -> None:
    captions = CaptionSettings(engine="openai:gpt", key_file=Path("/home/ann/key"), base_url="http://10.0.0.1/v1")
    settings = BatchConfig(BatchSettings(caption=True), ExtractSettings(), captions)
    assert options_given(card(settings=settings)) == ["--caption", "--engine openai:gpt"]


# ---------------------------------------------------------------- how it was made


def tables(found: DataCard) -> dict[str, dict[str, str]]:
    made = list(provenance_tables(found))
    assert all(table.head == ("", "") for table in made)
    return {table.title: dict(table.rows) for table in made}  # type: ignore[arg-type]


def test_what_all_videos_share_is_told_once_and_what_differs_with_its_videos() -> None:
    made = {"settings.seed": names(**{"1": 3}), "settings.keyframes": names(**{"8": 1, "12": 2}), "versions.vip": names(**{"1.0": 3})}
    found = tables(card(videos=VideoStatistics(videos=3, made=made)))
    assert found == {
        "Settings": {"keyframes": "12 (2 videos), 8 (1 video)", "seed": "1"},
        "Versions": {"vip": "1.0"},
    }


def test_one_value_is_not_that_of_all_where_others_were_not_counted() -> None:
    made = {"settings.topic": NameCounts({"dogs": 200}, others=7)}
    assert tables(card(videos=VideoStatistics(made=made))) == {"Settings": {"topic": "dogs (200 videos)"}}


def test_of_many_values_the_five_most_frequent_are_told() -> None:
    made = {"settings.topic": names(a=1, b=2, c=3, d=4, e=5, f=6)}
    (value,) = tables(card(videos=VideoStatistics(made=made)))["Settings"].values()
    assert value == "f (6 videos), e (5 videos), d (4 videos), c (3 videos), b (2 videos)"


def test_groups_have_titles_and_the_device_stands_last_among_the_versions() -> None:
    keys = ["versions.vip", "device.device", "backends.embedder", "captions.engine", "settings.a.b", "versions.numpy"]
    made = {key: names(x=1) for key in keys}
    found = tables(
        card(videos=VideoStatistics(made=made), settings=BatchConfig(), words=KeyframeStatistics(prompts=names(direct=1, look=2000)))
    )
    assert list(found) == ["Settings of the batch", "What auto became", "Settings of the captions", "Settings", "Versions", "Prompts"]
    assert list(found["Versions"]) == ["numpy", "vip", "device"]
    assert list(found["Settings"]) == ["a.b"]
    assert found["Prompts"] == {"look": "2,000 requests", "direct": "1 request"}


def test_a_device_without_versions_has_the_table_to_itself_and_nothing_else_is_shown() -> None:
    assert tables(card(videos=VideoStatistics(made={"device.device": names(cpu=1)}))) == {"Versions": {"device": "cpu"}}
    assert tables(card()) == {}


def test_the_settings_of_the_batch_are_all_told_texts_as_they_are_and_others_as_json() -> None:
    settings = BatchConfig(BatchSettings(caption=True, weights=Path("größe.toml")), ExtractSettings(), CaptionSettings())
    found = tables(card(settings=settings))["Settings of the batch"]
    assert list(found) == list(BatchSettings().model_dump())
    wanted = {"caption": "true", "weights": "größe.toml", "sample": "null", "words": "[]", "seed": "0", "shards": "parquet"}
    assert {name: found[name] for name in wanted} == wanted


def test_no_more_prompts_are_listed_than_there_is_room_for() -> None:
    words = KeyframeStatistics(prompts=names(**{f"p{number:03d}": 1 for number in range(MOST_ROWS + 5)}))
    assert list(tables(card(words=words))["Prompts"]) == [f"p{number:03d}" for number in range(MOST_ROWS)]


# ---------------------------------------------------------------- limits


def test_a_batch_that_ended_well_has_only_the_limits_that_all_have() -> None:
    assert limits(card()) == [UNDESCRIBED, RIGHTS]
    assert limits(card(words=described())) == [MACHINES, UNCHECKED, RIGHTS]


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"waiting": 1}, "The batch has not ended: 1 video waits. This card describes what was there when it was written."),
        ({"waiting": 2000}, "The batch has not ended: 2,000 videos wait. This card describes what was there when it was written."),
        ({"not_in_shards": 1}, "The batch has not ended: 0 videos wait. This card describes what was there when it was written."),
        ({"failed": 1, "chosen": 1}, "1 of 1 chosen video failed (100.0 %), and is missing here."),
        ({"failed": 1, "chosen": 8}, "1 of 8 chosen videos failed (12.5 %), and is missing here."),
        ({"failed": 2000, "chosen": 8000}, "2,000 of 8,000 chosen videos failed (25.0 %), and are missing here."),
        ({"not_chosen": 1}, "1 video of the list was not chosen: what is left is no even sample of the list."),
        ({"not_chosen": 1234}, "1,234 videos of the list were not chosen: what is left is no even sample of the list."),
        ({"undescribed": 1}, "1 keyframe could not be described; the column caption_failure says why."),
        ({"undescribed": 1234}, "1,234 keyframes could not be described; the column caption_failure says why."),
    ],
)
def test_what_is_missing_is_told_with_its_number(told: dict[str, Any], sentence: str) -> None:
    assert limits(card(**told)) == [sentence, UNDESCRIBED, RIGHTS]


def test_all_that_is_missing_is_told_in_order() -> None:
    words = KeyframeStatistics(failures=names(a=1, b=2000, c=3, d=4, e=5, f=6))
    counts = {"broken": 2, "problems": ["00003.parquet is missing.", "00007.parquet is missing."]}
    videos = VideoStatistics(notes=names(**{"n … lost": 1, "m … lost": 2}))
    found = limits(card(words=words, videos=videos, counts=counts, waiting=1, failed=1, not_chosen=1, undescribed=7))
    assert [one.split(":")[0][:24] for one in found[:3]] == [
        "The batch has not ended",
        "1 of 2 chosen videos fai",
        "1 video of the list was ",
    ]
    assert found[3] == "7 keyframes could not be described (b 2,000, f 6, e 5, d 4, c 3); the column caption_failure says why."
    assert found[4:] == [
        "2 shards are not whole, and not counted here. The first: 00003.parquet is missing.",
        "Of 2 videos the run notes: m … lost",
        "Of 1 video the run notes: n … lost",
        UNDESCRIBED,
        RIGHTS,
    ]


def test_one_shard_that_is_not_whole_is_told_of_one() -> None:
    found = limits(card(counts={"broken": 1, "problems": ["It is torn."]}))
    assert found[0] == "1 shard is not whole, and not counted here. The first: It is torn."


def test_failures_that_are_none_of_the_status_are_not_told() -> None:
    assert limits(card(words=KeyframeStatistics(failures=names(timeout=3)))) == [UNDESCRIBED, RIGHTS]


def test_the_most_frequent_notes_are_told_and_no_more_than_there_is_room_for() -> None:
    videos = VideoStatistics(notes=names(**{f"note {number}": number for number in range(1, notes.MOST_NOTES + 3)}))
    found = [one.rpartition(": ")[2] for one in limits(card(videos=videos)) if "the run notes" in one]
    assert found == [f"note {number}" for number in range(notes.MOST_NOTES + 2, 2, -1)]


@pytest.mark.parametrize(
    ("engines", "is_told"), [({"offline": 1, "openai:x": 3}, True), ({"openai:offline": 3}, False), ({"offline": 0}, False)]
)
def test_that_the_offline_engine_sees_nothing_is_told_where_it_wrote(engines: dict[str, int], is_told: bool) -> None:
    found = limits(card(words=described(engines=names(**engines))))
    assert found[0].startswith("The engine offline") == is_told
    assert found[-3:] == [MACHINES, UNCHECKED, RIGHTS]


def test_claims_are_told_in_shares_of_all_claims_and_captions_in_shares_of_the_described() -> None:
    words = described(40, verified=10, verdicts=names(supported=5, unsupported=2, unchecked=1), corrected=1)
    assert limits(card(words=words))[1:2] == [
        "25.0 % of the captions were held against their pictures. Of 8 claims: 62.5 % supported, 25.0 % unsupported, 12.5 % unchecked."
        " A second look corrected 1 caption."
    ]


def test_a_verdict_that_no_claim_has_is_a_share_of_nothing() -> None:
    (checked,) = limits(card(words=described(4, verified=4, verdicts=names(supported=1), corrected=0)))[1:-1]
    assert "Of 1 claim: 100.0 % supported, 0.0 % unsupported, 0.0 % unchecked. A second look corrected 0 captions." in checked
    (empty,) = limits(card(words=described(4, verified=1)))[1:-1]
    assert "Of 0 claims: – supported, – unsupported, – unchecked." in empty


def test_subtitles_of_hosts_are_named_where_a_video_has_some() -> None:
    assert limits(card(videos=VideoStatistics(subtitled=1)))[-2:] == ["Subtitles may be the automatic ones of the host.", RIGHTS]


# ---------------------------------------------------------------- loading


def test_a_data_set_in_parquet_is_loaded_with_datasets_and_pandas() -> None:
    found = loading(card(counts={"files": {"parquet": "00003.parquet"}}, out="/data/my corpus/", words=described()))
    assert [name for name, _ in found] == ["datasets", "pandas, one shard without its pictures", "vip"]
    code = [text.splitlines()[-1] for _, text in found]
    assert code[0] == 'data = load_dataset("parquet", data_files="/data/my corpus/shards/*.parquet", split="train", streaming=True)'
    assert code[1] == (
        'rows = pandas.read_parquet("/data/my corpus/shards/00003.parquet", columns=["video_id", "time_s", "dense_caption"])'
    )
    assert code[2].startswith("vip export '/data/my corpus/' --to hf -o hub/ ")


def test_without_captions_pandas_reads_the_sharpness() -> None:
    code = loading(card(counts={"files": {"parquet": "00000.parquet"}}))[1][1]
    assert code.endswith('columns=["video_id", "time_s", "sharpness"])')
    assert {"video_id", "time_s", "sharpness", "dense_caption"} <= set(COLUMNS)


def test_a_data_set_in_tar_files_is_loaded_with_datasets_and_webdataset() -> None:
    found = loading(card(counts={"files": {"webdataset": "00000.g2.tar"}}, out="s3://bucket/corpus"))
    assert [name for name, _ in found] == ["datasets", "webdataset, one shard", "vip"]
    code = [text.splitlines()[-1] for _, text in found]
    assert code[0] == 'data = load_dataset("webdataset", data_files="s3://bucket/corpus/shards/*.tar", split="train", streaming=True)'
    assert code[1] == 'data = webdataset.WebDataset("s3://bucket/corpus/shards/00000.g2.tar", shardshuffle=False).decode("pil")'
    assert code[2].startswith("vip export s3://bucket/corpus --to hf")


def test_a_data_set_of_both_formats_is_loaded_from_each_and_an_empty_one_by_vip_alone() -> None:
    both = loading(card(counts={"files": {"parquet": "00000.parquet", "webdataset": "00001.tar"}}))
    assert [name.partition(",")[0] for name, _ in both] == ["datasets", "pandas", "datasets", "webdataset", "vip"]
    assert [name for name, _ in loading(card())] == ["vip"]


@pytest.mark.parametrize("out", ['a"b', "a'b; rm -rf x", "a\\b", "größe\n1"])
def test_the_code_for_an_address_of_any_letters_is_still_code(out: str) -> None:
    found = dict(loading(card(counts={"files": {"parquet": "00000.parquet"}}, out=out)))
    for library in ("datasets", "pandas, one shard without its pictures"):
        compile(found[library], library, "exec")
        assert json.dumps(f"{out}/shards/")[:-1] in found[library]
