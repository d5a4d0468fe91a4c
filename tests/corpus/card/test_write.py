"""The data card: it says what is in the data set, loads where it says so, and shows hostile texts as texts."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from markdown_it import MarkdownIt

from tests.corpus.making import sample
from tests.corpus.s3 import BUCKET, S3, SECRET
from tests.report.pages import read
from tests.report.test_page import HOSTILE
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.card.tables import FAILURES
from vip.corpus.card.write import PAGE, README, write_card
from vip.corpus.inputs.sampling import Distribution, VerticalShare
from vip.corpus.prepare import DISTRIBUTION
from vip.corpus.settings import BatchConfig
from vip.corpus.status import BatchStatus
from vip.dataset.rows import VideoSample
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import Format, write_shard
from vip.dataset.storage import write_whole
from vip.errors import FailureKind, StoreError
from vip.records import CandidateCounts, Check, Verification

FORMATS: tuple[Format, ...] = ("parquet", "webdataset")
SHARES = (
    VerticalShare(vertical="Sports", videos=80, chosen=3, asked_share=0.75, chosen_share=0.6),
    VerticalShare(vertical="News", videos=20, chosen=2, asked_share=0.25, chosen_share=0.4),
)


def status(out: str, **changed: Any) -> BatchStatus:
    numbers = dict.fromkeys(("not_chosen", "bad_rows", "failed", "waiting", "again", "undescribed_videos", "undescribed", "tokens"), 0)
    told = {"chosen": 2, "done": 2, "keyframes": 6, "shards": 1, "not_in_shards": 0, "bytes": 1, "video_s": 1.0, "failures": {}, "usd": 0.0}
    unknown = dict.fromkeys(("process", "again_in_s", "per_minute", "left_s"))
    return BatchStatus(**{"out": out, **numbers, **told, **unknown, **changed})


def spoken(one: VideoSample, words: str, **call: Any) -> VideoSample:
    """The clip with other words, and calls with other figures."""

    def row(description: Any) -> Any:
        return description.model_copy(
            update={"dense_caption": words, "calls": tuple(each.model_copy(update=call) for each in description.calls)}
        )

    return replace(one, frames=tuple(replace(frame, description=row(frame.description)) for frame in one.frames))


def write(out: str, *, text: str = "", format: Format = "parquet", choices: BatchConfig | None = None, **changed: Any) -> None:  # noqa: A002
    """A data set of two videos and its card; `text` is appended to every text that comes from elsewhere."""
    counts = CandidateCounts(asked=12, candidates=3, bad=0, pruned=0, duplicates=0, keyframes=3)
    about = {"counts": counts, "notes": (f"a note{text}",), "info": {"license": f"CC BY{text}"}, "subtitles": {f"en{text}": ""}}
    made = {"settings": {f"keyframes{text}": f"12{text}"}, "versions": {f"vip{text}": f"1{text}"}, "device": f"cpu{text}"}
    call = {"tokens_in": 900, "tokens_out": 100, "usd": 0.002, "model": f"gpt{text}", "prompt": f"direct{text}"}
    some = []
    for number, seconds in enumerate((100.0, 140.0)):
        verticals = ("Sports", f"News{text}")[: number + 1]
        one = sample(f"v{number}", verticals=verticals, duration_s=seconds, width_px=1280, height_px=720, **about, **made)
        some.append(spoken(one, "A dog, a cat." if number else "Two dogs run.", **call))
    write_shard(out, 0, some, format)
    shares = tuple(share.model_copy(update={"vertical": share.vertical + text}) for share in SHARES)
    distribution = Distribution(videos=100, chosen=5, shares=shares)
    write_whole(distribution.model_dump_json().encode(), out, DISTRIBUTION)
    failures = {"deleted": 2, f"kind{text}": 1}
    told = {"chosen": 5, "failed": 3, "not_chosen": 95, "failures": failures, "usd": 0.02, "tokens": 7000}
    write_card(out, status(out, **{**told, **changed}), choices)


def rows(text: str, title: str) -> list[list[str]]:
    """The table below a title of README.md, without its head."""
    section = text.partition(f"## {title}\n")[2].partition("\n#")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if line.startswith("|")][2:]


# ---------------------------------------------------------------- what it says


@pytest.mark.parametrize("format", FORMATS)
def test_the_row_beside_table_1_of_the_paper_has_the_averages_of_the_data_set(tmp_path: Path, format: Format) -> None:  # noqa: A002
    write(str(tmp_path / "pets"), format=format)
    *published, own = rows((tmp_path / "pets" / README).read_text(), "Beside other data sets")
    assert published[-1] == ["VIP", "yes", "yes", "Open", "3.6 min", "114.2", "1.5K"]
    assert "5.0 tokens on average" in (tmp_path / "pets" / README).read_text()
    assert own == ["**pets**", "**yes**", "**yes**", "**Sports and News**", "**2 min**", "**5.0**", "**2**"]


def test_verticals_stand_as_asked_chosen_and_done(tmp_path: Path) -> None:
    write(str(tmp_path))
    told = rows((tmp_path / README).read_text(), "Verticals")
    assert told == [["Sports", "75.0 %", "60.0 %", "66.7 %"], ["News", "25.0 %", "40.0 %", "33.3 %"]]
    widths = [float(str(bar["width"]).removesuffix("%")) for bar in read(tmp_path / PAGE).of("rect", rx="2")]
    assert widths == pytest.approx([100, 80, 88.933, 33.333, 53.333, 44.4], abs=0.01)


def test_failures_stand_with_their_shares_and_what_they_mean(tmp_path: Path) -> None:
    write(str(tmp_path), chosen=9, bad_rows=1)
    told = rows((tmp_path / README).read_text(), "Failures")
    assert told[0] == ["deleted", "2", "20.0 %", "deleted by its owner or its host; not tried again"]
    assert told[1][2] == "10.0 %"


def test_every_type_of_failure_has_a_meaning() -> None:
    assert set(FAILURES) == set(get_args(FailureKind))


def test_the_cost_of_a_description_is_that_of_those_that_are_there(tmp_path: Path) -> None:
    write(str(tmp_path))
    text = (tmp_path / README).read_text()
    assert "on average: dollars \\$0.0020, tokens 1,000." in text
    assert "In all \\$0.0200 and 7,000 tokens were spent" in text
    assert rows(text, "Models that described")[0][:6] == ["gpt", "6", "0", "5,400", "600", "\\$0.0120"]


def test_what_is_missing_is_among_the_known_limits(tmp_path: Path) -> None:
    write(str(tmp_path), undescribed=4, waiting=7)
    told = read(tmp_path / PAGE).text
    for sentence in (
        "7 videos wait",
        "3 of 5 chosen videos failed (60.0 %)",
        "95 videos of the list",
        "4 keyframes could not be",
        "Of 2 vid",
    ):
        assert sentence in told


def test_settings_that_are_not_the_defaults_are_named_and_logins_are_not(tmp_path: Path) -> None:
    batch = BatchSettings(caption=True, sample=5, proxy="http://me:s3cret@proxy", ytdlp_opts=("--password", "s3cret"))
    captioning = CaptionSettings(engine="openai:gpt", base_url="http://me:s3cret@server/v1", key_file=Path("s3cret"))
    write(str(tmp_path), choices=BatchConfig(batch, ExtractSettings(keyframes=8), captioning))
    for name in (README, PAGE):
        text = (tmp_path / name).read_text()
        assert "--caption --sample 5 --keyframes 8 --engine openai:gpt" in text
        assert "s3cret" not in text


def test_settings_of_captions_are_named_only_where_captions_were_asked_for(tmp_path: Path) -> None:
    write(str(tmp_path), choices=BatchConfig(BatchSettings(sample=5), ExtractSettings(), CaptionSettings(engine="openai:gpt")))
    text = (tmp_path / README).read_text()
    assert "`vip batch` with --sample 5, and the defaults else." in text
    assert "--engine" not in text


def test_captions_that_were_held_against_their_pictures_are_told(tmp_path: Path) -> None:
    one = sample(count=3)
    checks = [Check(field="focus", claim="a", verdict=verdict) for verdict in ("supported", "supported", "supported", "unchecked")]
    first = one.frames[0].description
    assert first
    seen = first.model_copy(update={"verification": Verification(checks=tuple(checks), before=first.famous)})
    write_shard(
        str(tmp_path),
        0,
        [replace(one, frames=(replace(one.frames[0], description=seen), one.frames[1], replace(one.frames[2], description=None)))],
        "parquet",
    )
    write_card(str(tmp_path), status(str(tmp_path)))
    assert (
        "50.0 % of the captions were held against their pictures. Of 4 claims: 75.0 % supported, 0.0 % unsupported, 25.0 % unchecked."
        " A second look corrected 1 caption."
    ) in read(tmp_path / PAGE).text


def test_settings_that_differ_are_told_with_how_many_videos_have_them(tmp_path: Path) -> None:
    write_shard(str(tmp_path), 0, [sample(f"v{number}", settings={"count": 12, "fps": min(number, 1)}) for number in range(3)], "parquet")
    write_card(str(tmp_path), status(str(tmp_path)))
    text = (tmp_path / README).read_text()
    assert "| count | 12 |" in text
    assert "| fps | 1 (2 videos), 0 (1 video) |" in text


def test_a_data_set_of_which_nothing_is_left_has_a_card(tmp_path: Path) -> None:
    write_card(str(tmp_path), status(str(tmp_path), failed=2, done=0))
    assert "2 of 2 videos (100.0 %)" in (tmp_path / README).read_text()
    assert "2 of 2 videos (100.0 %)" in read(tmp_path / PAGE).text


def test_keyframes_without_captions_have_a_card_too(tmp_path: Path) -> None:
    write_shard(str(tmp_path), 0, [sample(described=False)], "parquet")
    write_card(str(tmp_path), status(str(tmp_path)))
    text = (tmp_path / README).read_text()
    assert "Nothing is described." in text
    assert "tokens on average" not in text
    assert "Tokens a caption" not in re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert rows(text, "Beside other data sets")[-1][5] == "**–**"


def test_a_damaged_distribution_costs_only_its_own_figures(tmp_path: Path) -> None:
    write(str(tmp_path))
    (tmp_path / DISTRIBUTION).write_text("{")
    write_card(str(tmp_path), status(str(tmp_path)))
    assert rows((tmp_path / README).read_text(), "Verticals") == []


# ---------------------------------------------------------------- readers of the card


def test_the_head_of_the_card_is_yaml_that_names_shards_and_languages(tmp_path: Path) -> None:
    write(str(tmp_path), text=" --- x: y")
    head = yaml.safe_load((tmp_path / README).read_text().split("\n---\n")[0])
    assert head["configs"] == [{"config_name": "default", "data_files": [{"split": "train", "path": "shards/*.parquet"}]}]
    assert (head["language"], head["size_categories"], head["pretty_name"]) == (["en"], ["n<1K"], tmp_path.name)


@pytest.mark.parametrize("format", FORMATS)
def test_datasets_loads_the_folder_by_its_card(tmp_path: Path, format: Format) -> None:  # noqa: A002
    import datasets

    write(str(tmp_path / "pets"), format=format)
    data = datasets.load_dataset(str(tmp_path / "pets"), cache_dir=str(tmp_path / "cache"))
    assert list(data) == ["train"]
    first = data["train"][0] if format == "parquet" else data["train"][0]["json"]
    assert (len(data["train"]), first["keyframe_id"]) == (6, "v0:0001")


@pytest.mark.parametrize("format", FORMATS)
def test_the_code_of_the_card_runs(tmp_path: Path, format: Format) -> None:  # noqa: A002
    out = tmp_path / "it's `a` set"
    write(str(out), format=format)
    code = re.findall(r"```python\n(.*?)```", (out / README).read_text(), re.DOTALL)
    assert len(code) == 2
    for name, one in zip(("data", "rows" if format == "parquet" else "data"), code, strict=True):
        script = f"{one}\nrows = len({name}) if hasattr({name}, '__len__') else sum(1 for _ in {name})\nprint(rows)"
        env = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "PATH": ""}
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, check=False)
        assert ran.stdout.split()[-1:] == ["6"], ran.stderr


@pytest.mark.parametrize("format", FORMATS)
def test_a_shard_that_was_written_anew_is_loaded_by_the_same_pattern(tmp_path: Path, format: Format) -> None:  # noqa: A002
    info = write_shard(str(tmp_path), 0, [sample("v0")], format, generation=3)
    write_card(str(tmp_path), status(str(tmp_path)))
    code = (tmp_path / README).read_text()
    suffix = "parquet" if format == "parquet" else "tar"
    assert f'data_files="{tmp_path}/{FOLDER}/*.{suffix}"' in code
    assert f'"{tmp_path}/{FOLDER}/{info.file}"' in code


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("calm") / "pets"
    write(str(out), text=" x")
    return out


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_change_no_element_of_the_page(text: str, calm: Path, tmp_path: Path) -> None:
    out = tmp_path / "pets"
    write(str(out), text=f" x{text}")
    page, plain = read(out / PAGE), read(calm / PAGE)
    assert sorted(page.skeleton) == sorted(plain.skeleton)
    assert page.inside("style") == plain.inside("style")
    assert not [name for name, attributes in page.elements if "style" in attributes], "the page's own policy forbids it"


MARKDOWN = [
    "[x](http://x.example)",
    "![x](x.png)",
    "**x** _x_ `x`",
    "| x | x |",
    "x\n\n# x\n- x",
    "http://x.example www.x.example",
    "$x$ :-:",
]


@pytest.mark.parametrize("text", [*HOSTILE, *MARKDOWN])
def test_hostile_texts_are_text_in_markdown(text: str, calm: Path, tmp_path: Path) -> None:
    out = tmp_path / "pets"
    write(str(out), text=f" x{text}")
    assert kinds(out) == kinds(calm)
    assert "http:" not in re.sub(r"http\\:", "", (out / README).read_text())


def kinds(out: Path) -> list[str]:
    """What a reader of Markdown takes the card for; rows may stand in another order, so may its cells."""
    body = (out / README).read_text().partition("\n---\n")[2]
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(body)
    return [token.type for token in tokens] + sorted(
        child.type for token in tokens for child in token.children or () if child.type not in ("text", "text_special")
    )


def test_a_hostile_name_of_the_data_set_is_only_text(tmp_path: Path) -> None:
    out = tmp_path / "<b>*x*&amp; \u202e"
    write(str(out))
    assert "# &lt;b&gt;\\*x\\*&amp;amp; \N{REPLACEMENT CHARACTER}" in (out / README).read_text()
    assert "<b>*x*&amp; \N{REPLACEMENT CHARACTER}" in read(out / PAGE).text


def test_the_page_asks_for_nothing_and_needs_no_script(calm: Path) -> None:
    found = read(calm / PAGE)
    assert [attributes for _, attributes in found.elements if attributes.get("src") or attributes.get("href") not in (None, "data:,")] == []
    assert len(found.of("svg")) == 2 + 5
    assert all(svg.get("aria-label") for svg in found.of("svg"))


# ---------------------------------------------------------------- elsewhere


def test_the_card_is_written_to_s3_without_credentials(s3: S3) -> None:
    write(f"s3://{BUCKET}/pets")
    assert {README, PAGE} <= {name.rpartition("/")[2] for name in s3.objects}
    assert not [name for name, data in s3.objects.items() if SECRET.encode() in data]
    assert "\n# pets\n" in s3.objects[f"pets/{README}"].decode()
    assert f's3://{BUCKET}/pets/{FOLDER}/00000.parquet"' in s3.objects[f"pets/{README}"].decode()


def test_a_card_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    write(str(tmp_path))
    (tmp_path / README).unlink()
    (tmp_path / README).mkdir()
    with pytest.raises(StoreError, match=r"README\.md cannot be written"):
        write_card(str(tmp_path), status(str(tmp_path)))
