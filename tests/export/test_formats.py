"""What other programs read of the exported files."""

from __future__ import annotations

import dataclasses
import json
import re
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
import yaml
from hypothesis import given

from tests.clips import clip as film
from tests.corpus.making import sample, samples
from vip.dataset.rows import VideoSample
from vip.dataset.schema import COLUMNS
from vip.errors import InputError
from vip.export import coco, hf, jsonl, vtt
from vip.records import Detection

LONG_WORD = "Internationalisation" * 2 + "en"  # more than can be read in the two seconds from one keyframe to the next


def unheard(text: str) -> None:
    raise AssertionError(f"nobody expected: {text}")


def said(one: VideoSample, *texts: str | None) -> VideoSample:
    """The clip with these captions."""
    frames = []
    for frame, text in zip(one.frames, texts, strict=True):
        row = frame.description and frame.description.model_copy(update={"dense_caption": text})
        frames.append(dataclasses.replace(frame, description=row if text is not None else None))
    return VideoSample(one.video, tuple(frames))


def cues_of(one: VideoSample) -> list[tuple[str, str]]:
    """Times and text of each cue of the file, as a strict reader of WebVTT has them."""
    first, *blocks = vtt.webvtt(vtt.captions_of(one)).removesuffix("\n").split("\n\n")
    assert first == "WEBVTT" or (first == "WEBVTT\n" and not blocks)
    found = []
    for block in blocks:
        times, *lines = block.split("\n")
        assert re.fullmatch(r"\d{2,}:[0-5]\d:[0-5]\d\.\d{3} --> \d{2,}:[0-5]\d:[0-5]\d\.\d{3}", times), block
        assert 1 <= len(lines) <= 2, block
        assert all(line.strip() == line != "" and "-->" not in line and not re.search(r"<|&(?!amp;|lt;|gt;)", line) for line in lines), (
            block
        )
        found.append((times, "\n".join(lines)))
    return found


# ---------------------------------------------------------------- vtt


def test_a_caption_lasts_until_the_next_keyframe() -> None:
    assert cues_of(said(sample(), "one", None, "three")) == [
        ("00:00:02.000 --> 00:00:04.000", "one"),
        ("00:00:06.000 --> 00:00:09.000", "three"),
    ]


@pytest.mark.parametrize(
    ("cue", "lines"),
    [
        ("00:01.000 --> 00:02.000\nFish\nand chips", ("Fish", "and chips")),
        ("00:01.000 --> 00:02.000\n<c> </c>\n", None),
        ("00:01.000 --> 00:02.000", None),
        ("00:01.000 --> 00:01.000\nFish", None),
        ("00:02.000 --> 00:01.000\nFish", None),
        ("NOTE Fish", None),
    ],
)
def test_of_the_subtitles_of_a_page_those_with_words_and_time_are_written(cue: str, lines: tuple[str, ...] | None) -> None:
    found = list(vtt._subtitles_of(f"WEBVTT\n\n{cue}\n\n00:03.000 --> 00:04.000\nBye"))
    shown = [cue.lines for caption in found for cue in caption.cues]
    assert shown == [*([lines] if lines else []), ("Bye",)]


def test_without_a_length_the_last_caption_is_shown_for_a_while() -> None:
    for length in (None, 3.0, 6.0):
        assert cues_of(sample(duration_s=length))[-1][0] == "00:00:06.000 --> 00:00:11.000"


def test_signs_that_mean_something_in_webvtt_are_escaped() -> None:
    one = said(sample(count=1), "a --> b\n\n<b>R&B</b> &amp;")
    assert cues_of(one) == [("00:00:02.000 --> 00:00:09.000", "a --&gt; b &lt;b&gt;R&amp;B&lt;/b&gt; &amp;amp;")]


@pytest.mark.slow
@given(samples())
def test_whatever_is_said_stays_in_its_cue(one: VideoSample) -> None:
    edges = [time for times, _ in cues_of(one) for time in times.split(" --> ")]
    assert all((len(start), start) <= (len(end), end) for start, end in pairwise(edges))
    assert all(start != end for start, end in zip(edges[::2], edges[1::2], strict=True))
    assert ffmpeg_cues(one) == [text for _, text in cues_of(one)]


def ffmpeg_cues(one: VideoSample) -> list[str]:
    """The texts as FFmpeg has them."""
    with av.open(BytesIO(vtt.webvtt(vtt.captions_of(one)).encode()), format="webvtt") as file:
        return [bytes(packet).decode() for packet in file.demux(file.streams.subtitles[0]) if packet.size]


def test_ffmpeg_reads_the_subtitles(tmp_path: Path) -> None:
    path = film(tmp_path / "v.mp4")
    one = said(sample(), "a < b", "größe", "It is three, and then a second line follows.")
    (tmp_path / "v.vtt").write_text(vtt.webvtt(vtt.captions_of(one)))
    assert path.exists()
    with av.open(str(tmp_path / "v.vtt")) as file:
        stream = file.streams.subtitles[0]
        found = [(packet.pts, packet.duration, bytes(packet).decode()) for packet in file.demux(stream) if packet.size]
    assert found == [(2000, 2000, "a &lt; b"), (4000, 2000, "größe"), (6000, 3000, "It is three, and then\na second line follows.")]


@pytest.mark.parametrize(
    ("captions", "sentence"),
    [
        (("word " * 30, "two", "three"), "Of 3 captions, 1 ends early with … for lack of time before the next keyframe."),
        (("word " * 30, "word " * 30, "x"), "Of 3 captions, 2 end early with … for lack of time before the next keyframe."),
        ((LONG_WORD, LONG_WORD, "word " * 60), "Of 3 captions, 1 ends early with … for lack of time before the next keyframe."),
    ],
)
def test_captions_that_end_early_are_counted(captions: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    told: list[str] = []
    assert vtt.write(iter([said(sample(duration_s=8.0), *captions)]), str(tmp_path), told.append) == 1
    assert told == [f"{sentence} Export with --to jsonl to have all of the text."]


def test_a_caption_with_hardly_any_time_is_shown_all_the_same(tmp_path: Path) -> None:
    one = said(sample(count=1, duration_s=2.04), "one")
    assert vtt.write(iter([one]), str(tmp_path), list[str]().append) == 1
    assert cues_of(one) == [("00:00:02.000 --> 00:00:02.040", "one")]


def test_videos_without_captions_are_counted(tmp_path: Path) -> None:
    told: list[str] = []
    some = [sample("one"), sample("two", described=False)]
    assert vtt.write(iter(some), str(tmp_path), told.append) == 1
    assert told == ["1 of 2 videos has no described keyframes, and so no subtitles. `vip caption` describes them."]
    with pytest.raises(InputError, match="vip caption"):
        vtt.write(iter(some[1:]), str(tmp_path), unheard)


def test_a_video_without_captions_has_its_subtitles_all_the_same(tmp_path: Path) -> None:
    one = sample("one", described=False)
    subtitles = {"en": "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n"}
    heard = VideoSample(one.video.model_copy(update={"subtitles": subtitles}), one.frames)
    assert vtt.write(iter([heard]), str(tmp_path), list[str]().append) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["one~words.vtt"]


# ---------------------------------------------------------------- jsonl


def test_each_line_is_a_keyframe_whose_picture_lies_beside(tmp_path: Path) -> None:
    some = [sample("one"), sample("a.b", described=False)]
    assert jsonl.write(iter(some), str(tmp_path), unheard) == 7
    rows = [json.loads(line) for line in (tmp_path / "keyframes.jsonl").read_text().splitlines()]
    assert [row["keyframe_id"] for row in rows] == [frame.keyframe.id for one in some for frame in one.frames]
    assert all(set(row) == set(COLUMNS) for row in rows)
    for row, frame in zip(rows, [frame for one in some for frame in one.frames], strict=True):
        assert (tmp_path / row["picture"]).read_bytes() == frame.picture
        assert np.array_equal(np.array(row["embedding"], np.float32), frame.vector)  # type: ignore[arg-type]
    assert rows[0]["picture"] == "pictures/one/0001.jpg"


# ---------------------------------------------------------------- coco


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def test_boxes_are_pixels_within_the_picture(tmp_path: Path) -> None:
    coco.write(iter([sample(count=1)]), str(tmp_path), unheard)
    found = load(tmp_path / "instances.json")
    assert found["annotations"] == [
        {
            **{"id": 1, "image_id": 1, "category_id": 1, "score": 0.75, "bbox": [16.0, 24.0, 32.0, 24.0]},
            **{"area": 768.0, "iscrowd": 0, "segmentation": []},
        }
    ]
    assert found["categories"] == [{"id": 1, "name": "dog", "supercategory": ""}]
    assert cv2.imread(str(tmp_path / found["images"][0]["file_name"])).shape == (48, 64, 3)


def test_captions_and_objects_name_the_same_pictures(tmp_path: Path) -> None:
    some = [sample("one"), said(sample("two"), "x", None, "z")]
    assert coco.write(iter(some), str(tmp_path), unheard) == 8
    captions, instances = load(tmp_path / "captions.json"), load(tmp_path / "instances.json")
    assert captions["images"] == instances["images"]
    assert {(image["width"], image["height"]) for image in captions["images"]} == {(64, 48)}
    assert captions["images"][4]["file_name"] == "pictures/two/0002.jpg"
    assert captions["annotations"][4] == {"id": 5, "image_id": 6, "caption": "z"}
    assert [image["keyframe_id"] for image in captions["images"]] == [frame.keyframe.id for one in some for frame in one.frames]
    assert [row["image_id"] for row in captions["annotations"]] == [1, 2, 3, 4, 6]
    assert "categories" not in captions  # pycocotools would look for the category of each caption


def test_regions_and_boxes_outside_are_no_objects(tmp_path: Path) -> None:
    one = sample(count=1)
    boxes = [((0.1, 0.1, 0.2, 0.2), "region"), ((1.1, 0.0, 1.3, 0.5), "object"), ((0.5, 0.5, 0.5, 0.9), "object")]
    rows = tuple(Detection(label="x", score=0.5, box_xyxy=box, source="t", kind=kind) for box, kind in boxes)  # type: ignore[arg-type]
    frame = dataclasses.replace(one.frames[0], keyframe=one.frames[0].keyframe.model_copy(update={"detections": rows}))
    coco.write(iter([VideoSample(one.video, (frame,))]), str(tmp_path), unheard)
    assert load(tmp_path / "instances.json")["annotations"] == []


def test_text_in_any_script_can_be_read_in_the_file(tmp_path: Path) -> None:
    one = sample(count=1)
    description = one.frames[0].description
    assert description is not None
    frame = dataclasses.replace(one.frames[0], description=description.model_copy(update={"dense_caption": "Ein Hund läuft über 草"}))
    coco.write(iter([VideoSample(one.video, (frame,))]), str(tmp_path), unheard)
    assert "Ein Hund läuft über 草" in (tmp_path / "captions.json").read_text(encoding="utf-8")


def test_without_captions_the_user_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    coco.write(iter([sample(described=False)]), str(tmp_path), told.append)
    assert "No keyframe is described" in told[0]
    assert load(tmp_path / "captions.json")["annotations"] == []


def test_pycocotools_reads_both_files(tmp_path: Path) -> None:
    tools = pytest.importorskip("pycocotools.coco")
    coco.write(iter([sample("one"), sample("two", count=2)]), str(tmp_path), unheard)
    instances = tools.COCO(str(tmp_path / "instances.json"))
    assert len(instances.getImgIds(catIds=instances.getCatIds(catNms=["dog"]))) == 5
    captions = tools.COCO(str(tmp_path / "captions.json"))
    assert len(captions.loadAnns(captions.getAnnIds(imgIds=[5]))) == 1


# ---------------------------------------------------------------- hf


def test_load_dataset_loads_the_folder(tmp_path: Path) -> None:
    import datasets

    some = [sample("one"), sample("two", described=False)]
    assert hf.write(iter(some), str(tmp_path / "films"), unheard) == 2
    for where in ((str(tmp_path / "films"),), ("parquet", None, None, str(tmp_path / "films" / "data" / "*.parquet"))):
        found = datasets.load_dataset(*where, cache_dir=str(tmp_path / "cache"), split="train")
        assert isinstance(found.features["picture"], datasets.Image)
        assert found.num_rows == 6
        assert found[3]["picture"].size == (64, 48)
        assert found[0]["dense_caption"] == some[0].frames[0].description.dense_caption  # type: ignore[union-attr]


def test_the_card_tells_what_is_in_the_folder(tmp_path: Path) -> None:
    hf.write(iter([sample("one"), sample("two", described=False)]), str(tmp_path / 'my "films": 1'), unheard)
    _, head, text = (tmp_path / 'my "films": 1' / "README.md").read_text().split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["pretty_name"] == 'my "films": 1'
    assert (about["language"], about["size_categories"]) == (["en"], ["n<1K"])
    assert about["configs"] == [{"config_name": "default", "data_files": [{"split": "train", "path": "data/*.parquet"}]}]
    assert "6 keyframes of 2 videos (0.0 hours), 3 of them described by openai:gpt-5-mini." in text
    assert all(f"| `{name}` |" in text for name in COLUMNS)


@pytest.mark.parametrize(("language", "code"), [("Danish", ["da"]), ("Klingon", None), ("a: b\n---", None)])
def test_the_card_has_codes_of_languages_that_are_known(language: str, code: list[str] | None, tmp_path: Path) -> None:
    one = sample(count=1)
    row = one.frames[0].description
    assert row
    frame = dataclasses.replace(one.frames[0], description=row.model_copy(update={"language": language}))
    hf.write(iter([VideoSample(one.video, (frame,))]), str(tmp_path), unheard)
    assert yaml.safe_load((tmp_path / "README.md").read_text().split("---\n")[1]).get("language") == code


@pytest.mark.parametrize(("count", "size"), [(5, "n<6"), (6, "6<n<10"), (9, "6<n<10"), (10, "many")])
def test_the_card_names_the_size_of_the_data_set(count: int, size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf, "SIZES", ((6, "n<6"), (10, "6<n<10")))
    monkeypatch.setattr(hf, "SIZES_ABOVE", "many")
    hf.write(iter([sample(count=count, duration_s=5400.0)]), str(tmp_path), unheard)
    text = (tmp_path / "README.md").read_text()
    assert f'size_categories: ["{size}"]' in text
    assert f"{count} keyframes of 1 video (1.5 hours)" in text


# ---------------------------------------------------------------- text of strangers


@pytest.mark.parametrize("format_", [jsonl, coco])
def test_no_file_of_json_does_anything_to_a_terminal(format_: Any, tmp_path: Path) -> None:
    strange = "a \x9b2J\x85\u202e\u2066 b"
    format_.write(iter([said(sample(count=1), strange)]), str(tmp_path), unheard)
    text = "".join(path.read_text() for path in tmp_path.glob("*.json*"))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]", text)
    assert json.dumps(strange)[1:-1] in text
