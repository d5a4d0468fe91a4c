"""Files from strangers at the command line: no key, no picture and no file goes anywhere that the command did not name."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.cli.terminal import SECRET, vip
from tests.clips import SAMPLE
from tests.tasks.described import described_folder
from tests.tasks.test_keyframe_task import samples
from vip.store import load_run, write_rows
from vip.tasks.infilling import VideoInfilling

COMMANDS = (
    ["caption", "sample.vip"],
    ["caption", "sample.vip", "--dry-run"],
    ["run", SAMPLE, "-n", "4"],
)


def with_settings(folder: Path, text: str) -> None:
    (folder / "vip.toml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("setting", ['base_url = "{}"', 'engine = "openai:tiny-vlm@{}"', 'describe_engine = "openai:tiny-vlm@{}"'])
def test_a_server_of_a_strangers_settings_is_never_asked(command: list[str], setting: str, extracted: Path, tmp_path: Path) -> None:
    with ApiServer() as stranger:
        with_settings(tmp_path, f"[caption]\n{setting.format(stranger.base_url)}\n")
        done = vip(tmp_path, *command, "--base-url", "http://127.0.0.1:9/v1", "--engine", "openai:x", OPENAI_API_KEY=SECRET)
        assert stranger.requests == []
    assert "which does not count: the file only lies in this folder" in done.err
    assert "Traceback" not in done.err
    assert extracted.exists()


def test_after_vip_trust_the_settings_count_and_the_key_still_goes_nowhere(extracted: Path, tmp_path: Path) -> None:
    with ApiServer() as server:
        with_settings(tmp_path, f'[caption]\nbase_url = "{server.base_url}"\nengine = "openai:tiny-vlm"\n')
        trusted = vip(tmp_path, "trust")
        assert trusted.out == f"  [caption] base_url = '{server.base_url}'\nvip.toml is trusted as it is now.\n"
        done = vip(tmp_path, "caption", "sample.vip", OPENAI_API_KEY=SECRET)
        assert done.code == 0, done.err
        assert len(server.chats) == 4
        assert [asked for asked in server.requests if SECRET in str(asked.headers)] == []
        vip(tmp_path, "trust", "--revoke")
        with_settings(tmp_path, (tmp_path / "vip.toml").read_text() + "\n")
    assert len(load_run(extracted).descriptions) == 4
    assert "which does not count" in vip(tmp_path, "caption", "sample.vip").err


def test_a_key_file_of_a_stranger_is_not_read(extracted: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET)
    (tmp_path / "token").chmod(0o600)
    with ApiServer() as server:
        with_settings(tmp_path, '[caption]\nkey_file = "token"\n')
        done = vip(tmp_path, "caption", "sample.vip", "--base-url", server.base_url)
        assert [asked for asked in server.requests if SECRET in str(asked.headers)] == []
    assert "vip.toml sets key_file, which does not count" in done.err
    assert extracted.exists()


def test_trust_of_what_is_not_there_or_is_nothing(tmp_path: Path) -> None:
    missing = vip(tmp_path, "trust")
    assert (missing.code, missing.sentence) == (2, "vip.toml does not exist. Give a vip.toml, a run folder, a data set or samples.")
    (tmp_path / "empty").mkdir()
    nothing = vip(tmp_path, "trust", "empty")
    assert (nothing.code, nothing.sentence) == (
        3,
        "empty is no run and no data set of vip. Give a vip.toml, a run folder, a data set or samples.",
    )
    (tmp_path / "vip.toml").write_text("[caption\n")
    assert vip(tmp_path, "trust").code == 2
    rows = vip(tmp_path, "trust", "sample.vip", "--json")
    assert rows.code in (2, 3)


# ---------------------------------------------------------------- runs


def of_a_stranger(folder: Path, **changed: object) -> None:
    """The manifest as another machine writes it."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest |= {"signature": None}
    for name, value in changed.items():
        if name == "video_path":
            manifest["video"]["path"] = value
        else:
            manifest[name] = value
    path.write_text(json.dumps(manifest))


def test_the_video_of_a_strangers_run_is_opened_only_where_it_is_named_or_trusted(described: Path, tmp_path: Path) -> None:
    shutil.copyfile(SAMPLE, tmp_path / "here.mp4")
    of_a_stranger(described, video_path=str(tmp_path / "here.mp4"))
    refused = vip(tmp_path, "extract", "--from", "sample.vip", "-n", "2", "--format", "png")
    assert refused.code == 3
    assert "another machine made it: its video is not opened unasked. Name it with --video VIDEO, or run `vip trust" in refused.sentence
    named = vip(tmp_path, "extract", "--from", "sample.vip", "--video", "here.mp4", "-n", "2", "--format", "png", "-o", "a.vip")
    assert named.code == 0, named.err
    trusted = vip(tmp_path, "trust", "sample.vip", "--json")
    assert trusted.rows == [{"path": "sample.vip", "trusted": True, "allowed": [f"video {tmp_path / 'here.mp4'}"]}]
    assert vip(tmp_path, "extract", "--from", "sample.vip", "-n", "2", "--format", "png", "-o", "b.vip").code == 0
    vip(tmp_path, "trust", "sample.vip", "--revoke")
    assert vip(tmp_path, "extract", "--from", "sample.vip", "-n", "2", "--format", "png", "-o", "c.vip").code == 3
    weights = "clip:ViT-B-32@/secret.pt"
    of_a_stranger(described, backends={"embedder": weights, "sampler": "sync"})
    assert vip(tmp_path, "trust", "sample.vip", "--json").rows[0]["allowed"][1:] == [f"embedder {weights}"]


def test_an_address_of_a_strangers_run_is_not_fetched(described: Path, tmp_path: Path) -> None:
    with ApiServer() as server:  # any server that notes who asks
        of_a_stranger(described, video_path=f"{server.base_url}/video.mp4")
        for command in (
            ["extract", "--from", "sample.vip", "-n", "2", "--format", "png"],
            ["report", "sample.vip"],
            ["caption", "sample.vip"],
        ):
            vip(tmp_path, *command, OPENAI_API_KEY="")
        assert server.requests == []


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "..", ""])
def test_a_run_whose_name_leads_elsewhere_is_damaged(name: str, described: Path, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    of_a_stranger(described, video_id=name)
    before = {path.name for path in tmp_path.iterdir()}
    done = vip(tmp_path / "deep", "extract", "--from", "../sample.vip", "-n", "2")
    assert done.code == 7
    assert "is not the plain name of a file" in done.sentence
    assert {path.name for path in tmp_path.iterdir()} == before
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.parametrize("command", [["report"], ["caption", "--engine", "offline"], ["export", "--to", "jsonl"]])
@pytest.mark.parametrize("place", ["{mine}", "../mine.jpg", "keyframes/../../mine.jpg", "keyframes/link.jpg"])
def test_a_picture_outside_of_the_run_is_not_read(command: list[str], place: str, described: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.jpg"
    shutil.copyfile(next((described / "keyframes").iterdir()), mine)
    (described / "keyframes" / "link.jpg").symlink_to(mine)
    path = described / "keyframes.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1]["image_path"] = place.format(mine=mine)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (described / "descriptions.jsonl").unlink()
    before = (described / "report.html").read_text().count("data:image")
    done = vip(tmp_path, command[0], "sample.vip", *command[1:])
    assert "Traceback" not in done.err
    if done.code == 0:  # a page shows a gap
        assert command == ["report"]
        assert (described / "report.html").read_text().count("data:image") < before
    else:
        assert done.code in (3, 7, 8), done.err
        failures = described / "failures.jsonl"
        told = done.err + (failures.read_text() if failures.exists() else "")
        assert any(words in told for words in ("leads out of the folder", "it is a link"))


# ---------------------------------------------------------------- links, FIFOs


NAMES = ("manifest.json", "keyframes.jsonl", "descriptions.jsonl", "candidates.jsonl", "failures.jsonl", "report.html")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", [["report"], ["caption", "--engine", "offline", "--overwrite"], ["export", "--to", "csv"]])
def test_a_link_in_the_place_of_a_file_is_never_written_through(name: str, command: list[str], described: Path, tmp_path: Path) -> None:
    mine = tmp_path / "bashrc"
    mine.write_text("mine\n")
    (described / name).unlink(missing_ok=True)
    (described / name).symlink_to(mine)
    done = vip(tmp_path, command[0], "sample.vip", *command[1:])
    assert "Traceback" not in done.err
    assert mine.read_text() == "mine\n"


@pytest.mark.parametrize("name", NAMES[:4])
def test_a_fifo_in_the_place_of_a_file_holds_nothing_up(name: str, described: Path, tmp_path: Path) -> None:
    (described / name).unlink()
    os.mkfifo(described / name)
    for command in (["report", "sample.vip"], ["caption", "sample.vip", "--engine", "offline"], ["export", "sample.vip", "--to", "csv"]):
        done = vip(tmp_path, *command)
        assert "Traceback" not in done.err
        assert done.code in (0, 3, 7, 8)


def test_a_fifo_in_the_place_of_the_settings_holds_nothing_up(described: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "vip.toml")
    done = vip(tmp_path, "caption", "sample.vip", "--engine", "offline")
    assert done.code == 2
    assert done.sentence.endswith("vip.toml cannot be read: it is no regular file.")
    assert described.exists()


@pytest.mark.parametrize("name", ["keyframes", "decoded.vip-part"])
def test_overwriting_neither_deletes_nor_writes_behind_a_link(name: str, described: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "0001_00h00m00.000s.jpg").write_bytes(b"mine")
    shutil.rmtree(described / name, ignore_errors=True)
    (described / name).symlink_to(mine)
    done = vip(tmp_path, "extract", SAMPLE, "-n", "3", "--overwrite")
    assert "Traceback" not in done.err
    assert {path.name: path.read_bytes() for path in mine.iterdir()} == {"0001_00h00m00.000s.jpg": b"mine"}


@pytest.mark.parametrize(
    "command",
    [
        ["report", "runs"],
        ["caption", "runs", "--engine", "offline", "--overwrite"],
    ],
)
def test_a_link_in_a_folder_of_runs_is_not_followed(command: list[str], described: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    shutil.copytree(described, tmp_path / "runs" / "a.vip")
    (tmp_path / "runs" / "latest").symlink_to("a.vip")
    before = {path: path.stat().st_mtime_ns for path in described.iterdir()}
    (tmp_path / "runs" / "mine").symlink_to(described)
    refused = vip(tmp_path, *command)
    assert refused.code == 3
    assert refused.sentence.startswith("runs/mine is a link, and vip follows none inside a folder.")
    assert {path: path.stat().st_mtime_ns for path in described.iterdir()} == before
    (tmp_path / "runs" / "mine").unlink()
    if command[0] == "report":
        assert vip(tmp_path, *command).code == 0, "a link to another run in the folder does no harm"


# ---------------------------------------------------------------- samples


def test_a_strangers_samples_send_no_picture_of_this_machine_until_their_folder_is_named_or_the_file_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "downloads").mkdir()
    file = "downloads/strange.jsonl"
    made = samples(VideoInfilling(), *(described_folder(tmp_path / "mine" / name, 5, first_word=ord(name)) for name in "ab"), pictures=True)
    write_rows(tmp_path / file, made)
    with ApiServer() as server:
        engine = ("--base-url", server.base_url, "--engine", "openai:tiny-vlm", "--shots", "0")
        for command in (["predict", file, *engine], ["predict", file, *engine, "--dry-run"], ["review", file, "--no-open"]):
            refused = vip(tmp_path, *command)
            assert refused.code == 3
            assert refused.sentence.endswith(f"Look at the file, then run `vip trust {file}`.")
        assert server.requests == []
        named = vip(tmp_path, "predict", file, *engine, "--videos", "mine", "-o", "named.jsonl")
        assert (named.code, len(server.chats)) == (0, 2), named.err
        trusted = vip(tmp_path, "trust", file)
        assert trusted.out == "".join(f"  pictures of {tmp_path / 'mine' / name}\n" for name in "ab") + f"{file} is trusted as it is now.\n"
        assert vip(tmp_path, "predict", file, *engine, "-o", "trusted.jsonl").code == 0
        vip(tmp_path, "trust", file, "--revoke")
        assert vip(tmp_path, "predict", file, *engine, "-o", "revoked.jsonl").code == 3
