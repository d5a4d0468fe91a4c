"""`vip doctor`: what works here, what auto would pick and why, and no secrets."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.cli.terminal import SECRET, Done, end, start_command, vip
from vip.cli.doctor import DoctorRow, _try, doctor_command
from vip.llm.cache import AnswerCache


def doctor(folder: Path, *arguments: str, **variables: str) -> Done:
    done = vip(folder, "doctor", *arguments, COLUMNS="200", **variables)
    assert done.code == 0, done.err
    assert done.err == ""
    return done


def test_what_people_read_keeps_its_brackets_and_obeys_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    row = DoctorRow("extra", "clip[x]", False, "open_clip missing: pip install 'vip-keyframes[clip]' [red]\x1b[31m")
    monkeypatch.setattr("vip.cli.doctor._program", lambda: [row])
    for name in ("_decoders", "_backends", "_engines"):
        monkeypatch.setattr(f"vip.cli.doctor.{name}", list)
    monkeypatch.setattr("vip.cli.doctor._automatic_choices", lambda: {"embedder": "classic [built in]"})
    monkeypatch.setenv("COLUMNS", "200")
    doctor_command()
    told = capsys.readouterr().out
    assert "clip[x]  open_clip missing: pip install 'vip-keyframes[clip]' [red]" in told
    assert "auto embedder: classic [built in]" in told
    assert "\x1b" not in told


def test_what_another_package_raises_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> object:
        raise RuntimeError("no\nluck")

    row = DoctorRow("sampler", "mine", False, "it does not work (RuntimeError: no luck)")
    assert _try("sampler", "mine", broken) == row


def test_every_kind_of_thing_is_told(tmp_path: Path) -> None:
    (report,) = doctor(tmp_path, "--json").rows
    rows = report["rows"]
    assert {row["group"] for row in rows} == {
        "vip",
        "device",
        "video",
        "sampler",
        "pruner",
        "embedder",
        "detector",
        "model",
        "extra",
        "engine",
        "answers",
        "videos",
    }
    assert {(row["group"], row["name"]) for row in rows if row["works"]} >= {
        *(("sampler", "sync"), ("embedder", "classic"), ("detector", "opencv"), ("engine", "offline"), ("video", "PyAV"), ("device", "cpu"))
    }
    decoders = next(row for row in rows if row["name"] == "decoders")
    assert decoders["works"]
    assert decoders["detail"] == "av1, gif, h264, hevc, mjpeg, mpeg2, mpeg4, prores, vp8, vp9"
    assert all(row["detail"] for row in rows)
    assert list(tmp_path.iterdir()) == []


def test_people_read_the_same_as_programs(tmp_path: Path) -> None:
    shown = doctor(tmp_path).out
    (report,) = doctor(tmp_path, "--json").rows
    assert all(row["name"] in shown for row in report["rows"])
    assert all(f"auto {what}: {pick}" in shown for what, pick in report["auto"].items())


@pytest.mark.parametrize(
    ("variables", "works", "pick"),
    [
        ({}, False, "offline; no key is set (OPENAI_API_KEY, or --base-url URL for a server of your own)"),
        ({"OPENAI_API_KEY": SECRET}, True, "openai; OPENAI_API_KEY is set"),
        ({"OPENAI_BASE_URL": "http://box:8000/v1"}, True, "openai; OPENAI_BASE_URL is set to box:8000"),
    ],
)
def test_what_auto_would_pick_is_told_with_its_reason(variables: dict[str, str], works: bool, pick: str, tmp_path: Path) -> None:
    (report,) = doctor(tmp_path, "--json", **variables).rows
    assert next(row["works"] for row in report["rows"] if row["name"] == "openai") is works
    assert report["auto"]["engine"] == pick
    assert report["auto"]["embedder"].startswith("classic; ")


@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        ("http://anna:hunter22@box:8000/v1", ["anna", "hunter22"]),
        ("anna:hunter22@box/v1", ["hunter22"]),
        ("http://box/v1?api-key=hunter22", ["hunter22"]),
        ("http://[anna:hunter22@box", ["hunter22"]),
        ("http://anna:hunter22@box:99999/v1", ["hunter22"]),
    ],
)
def test_keys_and_passwords_are_masked(address: str, secrets: list[str], tmp_path: Path) -> None:
    out = doctor(tmp_path, OPENAI_API_KEY=SECRET, OPENAI_BASE_URL=address).out
    assert [secret for secret in (SECRET, *secrets) if secret in out] == []
    assert f"key …{SECRET[-4:]}" in out


def test_a_short_key_is_not_shown_at_all(tmp_path: Path) -> None:
    out = doctor(tmp_path, OPENAI_API_KEY="sk-12345").out
    assert "key set" in out
    assert "2345" not in out


def test_where_answers_are_kept_is_told_and_the_file_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "vip" / "answers.sqlite"

    def told() -> tuple[bool, str]:
        (report,) = doctor(tmp_path, "--json", XDG_CACHE_HOME=str(tmp_path / "cache")).rows
        (row,) = [row for row in report["rows"] if row["group"] == "answers"]
        return row["works"], row["detail"]

    assert told() == (True, f"{path}, not made yet")
    assert not path.exists()
    AnswerCache(path).close()
    works, detail = told()
    assert works
    assert detail.startswith(f"{path}: 0 answers, ")
    path.write_bytes(b"no database, but long enough to be taken for one" * 100)
    works, detail = told()
    assert not works
    assert f"{path} holds no answers of vip" in detail
    assert "--cache" in detail


def test_nobody_is_asked_anything(tmp_path: Path) -> None:
    with ApiServer() as server:
        doctor(tmp_path, OPENAI_BASE_URL=server.base_url)
        assert server.requests == []


def test_backends_of_other_packages_are_listed_and_a_broken_one_breaks_nothing(tmp_path: Path) -> None:
    info = tmp_path / "package" / "vip_extra-1.dist-info"
    info.mkdir(parents=True)
    (tmp_path / "package" / "vip_extra.py").write_text(
        "from vip.protocols import DetectorCapabilities\n"
        "class Deaf:\n    capabilities = DetectorCapabilities()\n    def __init__(self, detail, **settings): pass\n"
        "class Mine(Deaf):\n    def detect(self, images, where=()): return [[]]\n"
    )
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vip-extra\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[vip.detectors]\nmine = vip_extra:Mine\ndeaf = vip_extra:Deaf\nbroken = not_installed:Mine\n")
    variables = {"PYTHONPATH": str(tmp_path / "package")}
    (report,) = doctor(tmp_path, "--json", **variables).rows
    works = {row["name"]: row["works"] for row in report["rows"] if row["group"] == "detector"}
    assert works == {"opencv": True, "mine": True, "deaf": False, "broken": False}
    assert "not_installed" in doctor(tmp_path, **variables).out


def test_a_pyav_that_cannot_open_a_file_is_found_out(tmp_path: Path) -> None:
    program = """
import av
def refuse(*arguments, **options):
    raise av.error.InvalidDataError(1094995529, "Invalid data")
av.open = refuse
import vip.cli; vip.cli.main()
"""
    done = end(start_command(tmp_path, sys.executable, "-c", program, "doctor", "--json"))
    decoders = next(row for row in done.rows[0]["rows"] if row["name"] == "decoders")
    assert not decoders["works"]
    assert "not read: av1 (" in decoders["detail"]
    assert "Traceback" not in done.err


def test_every_extra_is_told_with_what_it_brings_or_lacks(tmp_path: Path) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (report,) = doctor(tmp_path, "--json").rows
    extras = {row["name"]: row for row in report["rows"] if row["group"] == "extra"}
    assert set(extras) == set(project["optional-dependencies"]) - {"bench", "dev", "docs", "mutants", "test"}
    assert "yt-dlp " in extras["batch"]["detail"]
    for name, row in extras.items():
        assert row["works"] or f"missing: pip install 'vip-keyframes[{name}]'" in row["detail"]


def test_engines_of_other_packages_are_told(tmp_path: Path) -> None:
    package = tmp_path / "packages" / "other-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[vip.engines]\nmine = vip.models.fake:FakeEngine\nbroken = nowhere:Nothing\n")
    (report,) = doctor(tmp_path, "--json", PYTHONPATH=os.pathsep.join([str(package.parent), *filter(None, sys.path)])).rows
    engines = {row["name"]: row for row in report["rows"] if row["group"] == "engine"}
    assert engines["mine"]["works"]
    assert not engines["broken"]["works"]
    assert "nowhere" in engines["broken"]["detail"]
