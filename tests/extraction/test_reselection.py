"""Choosing again from a run: the same result without its video, other results with no more decoding than their new pictures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import vip
from tests.clips import clip, picture, result, stamps
from tests.test_pipeline import Killed, Listener, killed_at
from vip import registry, store
from vip.errors import BackendError, InputError, StoreError, UsageError, VipError
from vip.video import Video


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a video of six different scenes and its run of four keyframes, neither to be changed."""
    folder = tmp_path_factory.mktemp("made")
    vip.extract(clip(folder / "video.mp4", [0, 1, 2, 5, 3, 4]), out=folder / "video.vip", keyframes=4)
    return folder


@pytest.fixture
def run(made: Path) -> Path:
    return made / "video.vip"


class Spy:
    """Counts the frames that are decoded, and how often a video is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened, self.decoded = 0, []  # type: ignore[var-annotated]
        frames, init = Video._decode_frames, Video.__init__

        def spied_init(video: Video, *given: Any, **options: Any) -> None:
            self.opened += 1
            init(video, *given, **options)

        def spied_frames(video: Video, pts: Sequence[int]) -> Any:
            for frame in frames(video, pts):
                self.decoded.append(frame.pts)
                yield frame

        monkeypatch.setattr(Video, "__init__", spied_init)
        monkeypatch.setattr(Video, "_decode_frames", spied_frames)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


def steady(folder: Path) -> dict[str, Any]:
    """What a run came to, but for where its candidates come from."""
    found = result(folder)
    found["manifest.json"].pop("selected_from")
    return found


def test_the_same_settings_choose_the_very_same_without_opening_the_video(run: Path, tmp_path: Path, spy: Spy) -> None:
    again = vip.rechoose(run, out=tmp_path / "again.vip")
    assert steady(again.folder) == steady(run)
    assert spy.opened == 0


def test_fewer_keyframes_are_those_a_fresh_run_of_these_candidates_chooses_and_nothing_is_decoded(
    run: Path, tmp_path: Path, spy: Spy
) -> None:
    before = stamps(run)
    fewer = vip.rechoose(run, out=tmp_path / "fewer", keyframes=2)
    old = vip.load_run(run)
    assert len(fewer.keyframes) == 2
    assert {frame.record.pts for frame in fewer.keyframes} <= {frame.record.pts for frame in old.keyframes}
    pictures = {frame.record.pts: frame.path.read_bytes() for frame in old.keyframes}
    assert all(frame.path.read_bytes() == pictures[frame.record.pts] for frame in fewer.keyframes)
    assert spy.opened == 0
    assert stamps(run) == before


def test_only_frames_without_a_picture_are_decoded(run: Path, tmp_path: Path, spy: Spy) -> None:
    more = vip.rechoose(run, out=tmp_path / "more", keyframes=6)
    had = {frame.record.pts for frame in vip.load_run(run).keyframes}
    new = [frame.record.pts for frame in more.keyframes if frame.record.pts not in had]
    assert len(new) == 2
    assert sorted(spy.decoded) == sorted(new)  # type: ignore[type-var]


def test_another_format_decodes_all_of_them_and_no_other(run: Path, tmp_path: Path, spy: Spy) -> None:
    png = vip.rechoose(run, out=tmp_path / "png", format="png")
    assert [frame.path.suffix for frame in png.keyframes] == [".png"] * 4
    assert sorted(spy.decoded) == [frame.record.pts for frame in png.keyframes]


def test_a_chain_of_choices_ends_where_the_direct_one_does(run: Path, tmp_path: Path) -> None:
    vip.rechoose(run, out=tmp_path / "two", keyframes=2)
    back = vip.rechoose(tmp_path / "two", out=tmp_path / "four", keyframes=4)
    assert steady(back.folder) == steady(run)


def test_all_choosing_goes_by_the_new_settings(tmp_path: Path) -> None:
    run = tmp_path / "twice.vip"
    old = vip.extract(clip(tmp_path / "twice.mp4", [0, 1, 2, 0, 3, 4]), out=run, keyframes=4)
    least = sorted(row.quality.sharpness for row in old.candidates if row.quality)[-4]
    sharp = vip.rechoose(run, out=tmp_path / "sharp", min_sharpness=least)
    assert {row.decision.rule for row in sharp.candidates} >= {"kept", "below_min_sharpness"}
    views = vip.rechoose(run, out=tmp_path / "views", pruner="k-center", keyframes=5)
    shown_s = [int(frame.time_s or 0) for frame in views.keyframes]
    assert len({0 if second == 3 else second for second in shown_s}) == 5  # the view that comes back is kept once
    assert views.manifest is not None
    assert views.manifest.backends["pruner"] == "k-center"
    auto = vip.rechoose(run, out=tmp_path / "auto", pruner="threshold:0.999", keyframes="auto").manifest
    assert auto is not None
    assert auto.counts is not None
    assert auto.counts.asked is None
    assert auto.counts.keyframes >= 6
    assert auto.pruning is not None
    assert auto.pruning.bound == 0.999


def test_the_folder_is_named_after_video_and_number(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert vip.rechoose(run, keyframes=3).folder == Path("video-n3.vip")
    assert vip.rechoose(run, keyframes="auto").folder == Path("video-auto.vip")


def test_a_second_time_nothing_is_written_and_another_choice_is_refused(run: Path, tmp_path: Path) -> None:
    folder = vip.rechoose(run, out=tmp_path / "three", keyframes=3).folder
    before = stamps(folder)
    vip.rechoose(run, out=folder, keyframes=3)
    with pytest.raises(UsageError, match=r"\(keyframes 3, now 2\).*--overwrite"):
        vip.rechoose(run, out=folder, keyframes=2)
    with pytest.raises(UsageError, match=r"holds another run \(candidates of .*video\.vip as of"):
        vip.extract(run.parent / "video.mp4", out=folder, keyframes=3)
    assert stamps(folder) == before
    assert len(vip.rechoose(run, out=folder, keyframes=2, overwrite=True).keyframes) == 2


def test_the_run_itself_is_never_replaced(run: Path) -> None:
    with pytest.raises(UsageError, match="is the run itself"):
        vip.rechoose(run, out=run / ".." / run.name, keyframes=2, overwrite=True)


@pytest.fixture
def moved(made: Path, tmp_path: Path) -> Path:
    """A run whose video is gone."""
    video = Path(shutil.copy2(made / "video.mp4", tmp_path / "gone.mp4"))
    folder = vip.extract(video, out=tmp_path / "gone.vip", keyframes=4).folder
    video.unlink()
    return folder


def test_without_the_video_what_has_pictures_can_be_chosen(moved: Path, tmp_path: Path) -> None:
    assert len(vip.rechoose(moved, out=tmp_path / "two", keyframes=2).keyframes) == 2
    with pytest.raises(InputError, match=r"2 of the chosen frames have no picture in .*gone\.mp4 is gone"):
        vip.rechoose(moved, out=tmp_path / "six", keyframes=6)


def test_another_video_under_the_name_is_not_taken_for_it(moved: Path, tmp_path: Path) -> None:
    clip(tmp_path / "gone.mp4", [9])
    with pytest.raises(InputError, match="has changed since"):
        vip.rechoose(moved, out=tmp_path / "six", keyframes=6)


def test_of_one_picture_that_is_missing_one_is_told(moved: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1 of the chosen frames has no picture in .*gone\.mp4 is gone\. Put it back"):
        vip.rechoose(moved, out=tmp_path / "five", keyframes=5)


def test_a_video_may_be_named_where_it_lies_now(made: Path, moved: Path, tmp_path: Path) -> None:
    more = vip.rechoose(moved, out=tmp_path / "six", keyframes=6, video=made / "video.mp4")
    assert len(more.keyframes) == 6
    assert more.manifest is not None
    assert more.manifest.video.path == str(made / "video.mp4")


def test_another_video_that_is_named_is_refused(moved: Path, tmp_path: Path) -> None:
    other = clip(tmp_path / "other.mp4", [9])
    with pytest.raises(InputError, match=r"other\.mp4 is not the video that the run was made from \(.*gone\.mp4\)"):
        vip.rechoose(moved, out=tmp_path / "two", keyframes=2, video=other)
    assert not (tmp_path / "two").exists()


def test_of_a_run_of_another_machine_no_video_is_opened_unasked(
    run: Path, made: Path, tmp_path: Path, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vip.store, "is_own", lambda manifest: False)
    assert len(vip.rechoose(run, out=tmp_path / "two", keyframes=2).keyframes) == 2
    with pytest.raises(InputError, match=r"and another machine made it: its video is not opened unasked\. Name it with --video"):
        vip.rechoose(run, out=tmp_path / "six", keyframes=6)
    assert spy.opened == 0
    assert len(vip.rechoose(run, out=tmp_path / "six", keyframes=6, video=made / "video.mp4").keyframes) == 6


def test_what_is_chosen_from_a_run_of_another_machine_stays_of_another_whatever_is_named(run: Path, made: Path, tmp_path: Path) -> None:
    theirs, listener = Path(shutil.copytree(run, tmp_path / "theirs")), Listener()
    manifest = vip.load_run(run).manifest
    assert manifest is not None
    strange = {
        "backends": {**manifest.backends, "embedder": "clip:ViT-B-32@/secret.pt"},
        "losses": ("Run rm -rf",),
        "notes": ("Run rm -rf",),
    }
    store.write_json(theirs / "manifest.json", manifest.model_copy(update=strange))
    mine = vip.rechoose(theirs, out=tmp_path / "mine", keyframes=6, video=made / "video.mp4", observer=listener)
    assert mine.manifest is not None
    assert not store.is_own(mine.manifest)
    assert "Run rm -rf" not in [*mine.manifest.notes, *listener.notes]
    again = vip.rechoose(run, out=tmp_path / "ours", keyframes=6, video=made / "video.mp4")
    assert again.manifest is not None
    assert store.is_own(again.manifest)


def test_a_picture_that_the_run_has_lost_is_decoded(run: Path, tmp_path: Path, spy: Spy) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy.vip"))
    lost = vip.load_run(copy).keyframes[1]
    lost.path.unlink()
    vip.rechoose(copy, out=tmp_path / "again.vip")
    assert spy.decoded == [lost.record.pts]


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"sampler": "uniform"}, UsageError, "made with sampler sync, and sampler uniform needs another look.*`vip extract VIDEO` instead"),
        ({"start": "0:01"}, UsageError, "start None, and start 1.0"),
        ({"detector": "mine"}, UsageError, "detector opencv, and detector mine"),
        ({"keyframes": 0}, UsageError, "keyframes"),
        ({"keyframe": 2}, UsageError, 'Did you mean "keyframes"'),
        ({"pruner": "kcenter"}, BackendError, 'Did you mean "k-center"'),
        ({"min_sharpness": 1e9}, InputError, "0 of .* are sharp enough"),
    ],
)
def test_what_cannot_be_chosen_is_said_and_leaves_nothing(
    changes: dict[str, Any], kind: type[VipError], words: str, run: Path, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=words):
        vip.rechoose(run, out=tmp_path / "new", **changes)
    assert list(tmp_path.iterdir()) == []


def test_what_the_run_was_made_with_may_be_said_again(run: Path, tmp_path: Path) -> None:
    again = vip.rechoose(run, out=tmp_path / "again", sampler="sync", embedder="classic", stream=0)
    assert steady(again.folder) == steady(run)


@pytest.mark.parametrize("name", ["analysis.npz", "embeddings.npz", "thumbnails.zip", "candidates.jsonl"])
def test_a_run_that_lacks_or_damages_what_choosing_needs_is_refused(name: str, run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy.vip"))
    (copy / name).write_bytes(b"\x00 damaged")
    with pytest.raises(StoreError, match=name):
        vip.rechoose(copy, out=tmp_path / "new", keyframes=2)
    (copy / name).unlink()
    with pytest.raises((StoreError, InputError)):
        vip.rechoose(copy, out=tmp_path / "new", keyframes=2)
    assert not (tmp_path / "new").exists()


def test_rows_of_another_run_are_not_mixed_in(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy.vip"))
    rows = (copy / "candidates.jsonl").read_text().splitlines(keepends=True)
    (copy / "candidates.jsonl").write_text("".join(rows[:-1]))
    with pytest.raises(StoreError, match=r"analysis\.npz does not fit candidates\.jsonl"):
        vip.rechoose(copy, out=tmp_path / "new", keyframes=2)


def test_a_folder_of_pictures_has_nothing_to_choose_from(tmp_path: Path) -> None:
    picture(tmp_path / "photos" / "a.png")
    vip.caption(tmp_path / "photos", engine="fake")
    with pytest.raises(InputError, match="holds no candidates to choose from"):
        vip.rechoose(tmp_path / "photos", out=tmp_path / "new")


@pytest.mark.slow
def test_killed_at_any_write_the_same_call_ends_the_same(run: Path, tmp_path: Path) -> None:
    expected = result(vip.rechoose(run, out=tmp_path / "whole", keyframes=5).folder)
    for write in range(1, 100):
        folder = tmp_path / f"killed{write}"
        try:
            with killed_at(write):
                vip.rechoose(run, out=folder, keyframes=5)
            break
        except Killed:
            assert result(vip.rechoose(run, out=folder, keyframes=5).folder) == expected, f"killed at write {write}"
    assert write == 14  # manifest, candidates, vectors, looks, thumbnails, manifest, 4 copies, 1 picture, rows, manifest were all struck


# ---------------------------------------------------------------- runs of strangers


def changed(run: Path, copy: Path, **values: Any) -> Path:
    """A copy of a run whose manifest somebody else has written: `settings__labels=…` sets a value in a table."""
    shutil.copytree(run, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["signature"] = None
    for name, value in values.items():
        table, _, key = name.partition("__")
        manifest[table][key] = value
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return copy


def test_labels_of_a_stranger_name_no_file_to_read(run: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret words")
    strange = changed(run, tmp_path / "strange", settings__labels=f"@{tmp_path / 'secret'}")
    with pytest.raises(StoreError, match="its labels are no list of words"):
        vip.rechoose(strange, out=tmp_path / "new", keyframes=2)
    assert not (tmp_path / "new").exists()


def test_an_embedder_of_a_stranger_is_not_loaded_for_a_query(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(registry, "embedder", lambda name, **options: loaded.append(name))
    strange = changed(run, tmp_path / "strange", backends__embedder=f"clip:ViT-B-32@{tmp_path / 'weights.pt'}")
    with pytest.raises(BackendError, match=r"made on another machine, by clip:.*not loaded unasked"):
        vip.rechoose(strange, out=tmp_path / "new", query="a dog")
    assert loaded == []


def test_a_message_repeats_little_of_what_a_stranger_wrote(run: Path, tmp_path: Path) -> None:
    strange = changed(run, tmp_path / "strange", settings__recipe="x" * 1_000_000, settings__keyframes="y" * 1_000_000)
    with pytest.raises(UsageError) as refused:
        vip.extract(run.parent / "video.mp4", out=strange, keyframes=4)
    assert len(str(refused.value)) < 2000


def test_backends_that_a_manifest_does_not_name_are_unknown(run: Path, tmp_path: Path) -> None:
    strange = changed(run, tmp_path / "strange")
    manifest = json.loads((strange / "manifest.json").read_text()) | {"backends": {}}
    (strange / "manifest.json").write_text(json.dumps(manifest))
    assert len(vip.rechoose(strange, out=tmp_path / "new", keyframes=2).keyframes) == 2
    vip.caption(strange, engine="offline")
