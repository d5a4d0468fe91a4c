"""Published files as HERO is trained on them: examples, and the channels of videos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tasks.value.made import query, write_lines
from vip.errors import InputError, UsageError
from vip.tasks.value.datasets import BY_KEY

pytest.importorskip("torch")
from vip.tasks.value.training_data import ChannelReader, example_of, read_train  # needs torch


def train(folder: Path, key: str, *rows: dict[str, Any], split: str = "train") -> list[Any]:
    write_lines(folder / f"{key}_{split}_release.jsonl", rows)
    return read_train(folder, BY_KEY[key])


def test_a_query_has_its_video_and_its_moment(tmp_path: Path) -> None:
    (one,) = train(tmp_path, "tvr", query(1))
    assert (one.id, one.kind, one.video, one.texts, one.span_s) == ("1", "retrieval", "park", (("a dog runs",),), (10.0, 20.0))
    (one,) = train(tmp_path, "yc2r", {"desc_id": 1, "desc": "cut it", "vid_name": "ab_1", "duration": 9})
    assert (one.video, one.span_s) == ("ab_1", None)


@pytest.mark.parametrize(("ts", "span"), [([1.5, 3.0], (1.5, 3.0)), ("NaN-NaN", None), ([3.0, 1.0], None), (None, None)])
def test_a_question_knows_when_its_answer_is_shown(tmp_path: Path, ts: Any, span: tuple[float, float] | None) -> None:
    row = {"qid": 7, "q": "who?", **{f"a{place}": f"person {place}" for place in range(5)}, "answer_idx": 2, "vid_name": "park", "ts": ts}
    (one,) = train(tmp_path, "tvqa", row)
    assert one.texts[2] == ("who?", "person 2")
    assert (one.answer, one.span_s, len(one.texts)) == (2, span, 5)


def test_statements_and_events_stand_alone(tmp_path: Path) -> None:
    (one,) = train(tmp_path, "violin", {"example_id": "a", "statement": "it rains", "answer": 1, "vid_name": "park"})
    assert (one.texts, one.answer) == ((("it rains",),), 1)
    (one,) = train(tmp_path, "vlep", {"example_id": 3, "events": ["he goes", "he stays"], "answer": 0, "vid_name": "park", "ts": [1, 2]})
    assert (one.texts, one.answer) == ((("he goes",), ("he stays",)), 0)


def test_a_clip_is_one_example_a_caption_and_only_tvc_has_moments(tmp_path: Path) -> None:
    row = {"clip_id": 5, "vid_name": "park", "ts": [3.0, 6.0], "descs": [{"desc": "one"}, {"desc": "two"}]}
    assert [(one.texts, one.span_s) for one in train(tmp_path, "tvc", row)] == [((("one",),), (3.0, 6.0)), ((("two",),), (3.0, 6.0))]
    assert [one.span_s for one in train(tmp_path, "vatex_en_c", row)] == [None, None]


def test_captions_without_a_file_learn_from_queries(tmp_path: Path) -> None:
    for split in ("train", "val"):
        row = {"desc_id": split, "desc": f"a {split}", "vid_name": split, "duration": 9}
        write_lines(tmp_path / f"vatex_en_r_{split}_release.jsonl", [row])
    found = read_train(tmp_path, BY_KEY["vatex_en_c"])
    assert [(one.kind, one.video, one.texts) for one in found] == [
        ("captioning", "train", (("a train",),)),
        ("captioning", "val", (("a val",),)),
    ]


def test_hidden_answers_and_missing_files_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no annotations of value-tvqa \(tvqa_train"):
        read_train(tmp_path, BY_KEY["tvqa"])
    with pytest.raises(InputError, match=r'"a" has no answer, and the model learns from it'):
        train(tmp_path, "violin", {"example_id": "a", "statement": "it rains", "vid_name": "park"})


def test_a_sample_of_another_task_is_refused(tmp_path: Path) -> None:
    from vip.tasks.value.annotations import read_samples

    path = write_lines(tmp_path / "x.jsonl", [{"clip_id": 5, "vid_name": "park", "ts": [3.0, 6.0]}])
    (sample,) = read_samples(path, BY_KEY["tvc"])
    with pytest.raises(InputError, match='"5" is no sample of value-tvqa'):
        example_of(sample, BY_KEY["tvqa"])


# ---------------------------------------------------------------- channels


def write_npz(path: Path, *shape: int, value: float = 1.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, features=np.full(shape, value, np.float16))


def test_features_stand_side_by_side_and_sentences_have_their_frames(tmp_path: Path) -> None:
    write_npz(tmp_path / "2d/tv/park.npz", 5, 2, value=1.0)
    write_npz(tmp_path / "3d/park.npz", 4, 3, value=2.0)
    write_lines(tmp_path / "tv_subtitles.jsonl", [{"vid_name": "park", "sub": [{"text": "hi", "start": 2.9, "end": 3.1}]}])
    reader = ChannelReader([tmp_path / "2d", tmp_path / "3d"], tmp_path)
    reader.check(["park"], "tv")
    found = reader.of_source("tv")("park")
    assert found.features.tolist() == [[1.0, 1.0, 2.0, 2.0, 2.0]] * 4
    assert found.frames == (range(1, 3),)
    assert reader.width("park", "tv") == 5


def test_hdf5_is_read_by_the_name_of_the_video(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.create_dataset("ids", data=["street", "park"], dtype=h5py.string_dtype())
        file["feat"] = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    reader = ChannelReader([tmp_path / "f.h5"], None)
    reader.check(["park"], "tv")
    assert reader.read("park", "tv").features.tolist() == [[6.0, 7.0], [8.0, 9.0], [10.0, 11.0]]
    with pytest.raises(InputError, match=r"f\.h5 has no features of 1 of 2 videos, such as lake"):
        reader.check(["lake", "park"], "tv")
    with pytest.raises(InputError, match=r"f\.h5 has no features of the video lake"):
        reader.read("lake", "tv")


def test_each_fault_of_the_inputs_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"HERO sees the videos\. Give their features: --features DIR"):
        ChannelReader([], None)
    with pytest.raises(InputError, match=r"nowhere is no folder with NAME\.npz"):
        ChannelReader([tmp_path / "nowhere"], None)
    write_npz(tmp_path / "park.npz", 4, 3)
    with pytest.raises(InputError, match=r"has no features of 2 of 3 videos, such as \.\./park"):
        ChannelReader([tmp_path], None).check(["park", "../park", "street"], "tv")
    with pytest.raises(InputError, match=r'"\.\./park" is no name of a video'):
        ChannelReader([tmp_path], None).read("../park", "tv")
    with pytest.raises(InputError, match=r"has no tv_subtitles\.jsonl"):
        ChannelReader([tmp_path], tmp_path).read("park", "tv")


@pytest.mark.parametrize(
    ("written", "span"),
    [
        ("36.58-58.52", (36.58, 58.52)),
        ([1, 2.5], (1.0, 2.5)),
        ("NaN-NaN", None),
        ("5-2", None),
        ("x", None),
        (None, None),
        ([0, 0], (0.0, 0.0)),
        ([2, 2], (2.0, 2.0)),
        ("3-3", (3.0, 3.0)),
        ([-1, 2], None),
        ([1, 2, 3], None),
        ([True, 2], None),
        ([1, float("inf")], None),
        (" 1-2 ", (1.0, 2.0)),
        ("1-2x", None),
    ],
)
def test_an_interval_is_a_pair_or_a_text_as_published(written: object, span: tuple[float, float] | None) -> None:
    from vip.tasks.value.training_data import _shown_at

    assert _shown_at({"ts": written}) == span


def test_a_clip_without_captions_teaches_nothing(tmp_path: Path) -> None:
    told = {"clip_id": 1, "vid_name": "park", "ts": [3.0, 6.0], "descs": [{"desc": "one"}]}
    with pytest.raises(InputError, match=r'"2" has no answer, and the model learns from it'):
        train(tmp_path, "tvc", told, {"clip_id": 2, "vid_name": "park", "ts": [3.0, 6.0]})
    with pytest.raises(InputError, match=r'"2" has no answer, and the model learns from it'):
        train(tmp_path, "tvr", query(1), {"desc_id": 2, "desc": "a dog"})


def test_an_answer_of_index_0_is_one(tmp_path: Path) -> None:
    rows = [{"example_id": str(answer), "statement": "it rains", "answer": answer, "vid_name": "park"} for answer in (0, 1)]
    assert [one.answer for one in train(tmp_path, "violin", *rows)] == [0, 1]


def test_clips_of_a_video_are_read_by_their_own_names(tmp_path: Path) -> None:
    row = {"clip_id": 5, "vid_name": "ab_c_3", "ts": [3.0, 6.0], "descs": [{"desc": "cut"}]}
    (one,) = train(tmp_path, "yc2c", row)
    assert (one.video, one.span_s) == ("ab_c_3", None)


def test_a_file_of_its_own_comes_before_that_of_the_queries(tmp_path: Path) -> None:
    write_lines(tmp_path / "yc2r_train_release.jsonl", [{"desc_id": 1, "desc": "a query", "vid_name": "ab_1", "duration": 9}])
    assert [one.texts for one in read_train(tmp_path, BY_KEY["yc2c"])] == [(("a query",),)]
    (one,) = train(tmp_path, "yc2c", {"clip_id": 5, "vid_name": "ab_3", "ts": [3.0, 6.0], "descs": [{"desc": "a caption"}]})
    assert one.texts == (("a caption",),)
    write_lines(tmp_path / "tvr_train_release.jsonl", [query(1)])
    with pytest.raises(InputError, match="no annotations of value-tvc"):
        read_train(tmp_path, BY_KEY["tvc"])


def test_a_moment_of_a_query_that_became_a_caption_is_none() -> None:
    from vip.baselines.value.data import Example
    from vip.tasks.value.training_data import _as_caption

    moment = Example("1", "retrieval", "v", (("a dog",),), span_s=(1.0, 2.0))
    assert (_as_caption(moment).kind, _as_caption(moment).span_s) == ("captioning", None)
    caption = Example("1", "captioning", "v", (("a dog",),), span_s=(1.0, 2.0))
    assert _as_caption(caption) is caption


def test_channels_have_the_frames_that_all_columns_have(tmp_path: Path) -> None:
    for name, count in (("a", 3), ("b", 5), ("c", 4)):
        write_npz(tmp_path / name / "park.npz", count, 1, value=float(count))
    columns = [tmp_path / name for name in ("b", "a", "c")]
    assert ChannelReader(columns, None).read("park", "tv").features.tolist() == [[5.0, 3.0, 4.0]] * 3


def test_the_folder_of_a_source_comes_first_and_each_column_is_checked(tmp_path: Path) -> None:
    write_npz(tmp_path / "a/park.npz", 2, 1, value=1.0)
    write_npz(tmp_path / "a/tv/park.npz", 2, 1, value=2.0)
    write_npz(tmp_path / "b/park.npz", 2, 1, value=3.0)
    write_npz(tmp_path / "a/street.npz", 2, 1, value=4.0)
    reader = ChannelReader([tmp_path / "a", tmp_path / "b"], None)
    assert reader.read("park", "tv").features.tolist() == [[2.0, 3.0]] * 2
    assert reader.of_source("how2")("park").features.tolist() == [[1.0, 3.0]] * 2
    reader.check(["park"], "tv")
    with pytest.raises(InputError, match=r"/b has no features of 1 of 2 videos, such as street"):
        reader.check(["street", "park", "street"], "tv")


def test_videos_of_a_file_of_subtitles_are_those_with_all_their_features(tmp_path: Path) -> None:
    for name in ("a/street", "a/park", "a/field", "b/park", "b/street", "b/hill"):
        write_npz(tmp_path / f"{name}.npz", 2, 1)
    path = write_lines(tmp_path / "s.jsonl", [{"vid_name": name, "sub": []} for name in ("street", "park", "field", "hill")])
    assert ChannelReader([tmp_path / "a", tmp_path / "b"], path).videos() == ["park", "street"]
    assert ChannelReader([tmp_path / "a"], path).videos() == ["field", "park", "street"]


def test_subtitles_are_those_of_the_source(tmp_path: Path) -> None:
    write_npz(tmp_path / "park.npz", 4, 1)
    for source in ("tv", "how2"):
        said = [{"text": f"in {source}", "start": 0, "end": 1}]
        write_lines(tmp_path / f"{source}_subtitles.jsonl", [{"vid_name": "park", "sub": said}])
    reader = ChannelReader([tmp_path], tmp_path)
    assert [reader.read("park", source).sentences[0].text for source in ("tv", "how2", "tv")] == ["in tv", "in how2", "in tv"]
    assert reader.read("park", "tv").frames == (range(1),)


def test_feature_maps_in_hdf5_are_means_over_their_places(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.create_dataset("ids", data=["park"], dtype=h5py.string_dtype())
        file["feat"] = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 2, 2)
    found = ChannelReader([tmp_path / "f.h5"], None).read("park", "tv").features
    assert found.tolist() == [[1.5, 5.5, 9.5], [13.5, 17.5, 21.5]]


OUT_OF_FOLDER = "leads out of .*/named by a link, and vip follows none of those"


@pytest.mark.parametrize("linked", ["park.npz", "tv", "tv/park.npz"])
def test_no_features_are_read_behind_a_link_that_leads_out_of_their_folder(linked: str, tmp_path: Path) -> None:
    folder, target = tmp_path / "named", tmp_path / "elsewhere" / "park.npz"
    write_npz(target, 4, 3)
    (folder / linked).parent.mkdir(parents=True)
    (folder / linked).symlink_to(target if linked.endswith("npz") else target.parent)
    reader = ChannelReader([folder], None)
    for read in (lambda: reader.check(["park"], "tv"), lambda: reader.read("park", "tv")):
        with pytest.raises(InputError, match=OUT_OF_FOLDER):
            read()


@pytest.mark.parametrize("video", ["x" * 300, "nul\0"])
@pytest.mark.parametrize("has_source", [True, False])
def test_a_video_that_no_file_can_be_called_by_is_one_sentence(video: str, has_source: bool, tmp_path: Path) -> None:
    write_npz(tmp_path / ("tv" if has_source else ".") / "park.npz", 4, 3)
    reader = ChannelReader([tmp_path], None)
    for read in (lambda: reader.check([video], "tv"), lambda: reader.read(video, "tv")):
        with pytest.raises(InputError, match="No file can be called"):
            read()


def test_links_to_files_of_the_same_folder_are_followed_and_so_is_one_that_is_named(tmp_path: Path) -> None:
    write_npz(tmp_path / "named" / "park.npz", 4, 3)
    (tmp_path / "named" / "street.npz").symlink_to("park.npz")
    (tmp_path / "named" / "tv").symlink_to(".")
    (tmp_path / "link").symlink_to("named")
    for folder in ("named", "link"):
        reader = ChannelReader([tmp_path / folder], None)
        reader.check(["park", "street"], "tv")
        assert reader.read("street", "tv").features.shape == (4, 3)


def test_no_subtitles_and_no_annotations_are_read_behind_a_link_that_leads_out_of_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "named"
    write_npz(folder / "park.npz", 4, 3)
    (folder / "tv_subtitles.jsonl").symlink_to(write_lines(tmp_path / "s.jsonl", [{"vid_name": "park", "sub": []}]))
    with pytest.raises(InputError, match=OUT_OF_FOLDER):
        ChannelReader([folder], folder).read("park", "tv")
    row = {"clip_id": 1, "vid_name": "park", "descs": [{"desc": "a park"}]}
    (folder / "vatex_en_c_train_release.jsonl").symlink_to(write_lines(tmp_path / "a.jsonl", [row]))
    write_lines(folder / "vatex_en_r_train_release.jsonl", [])
    with pytest.raises(InputError, match=OUT_OF_FOLDER):
        read_train(folder, BY_KEY["vatex_en_c"])
