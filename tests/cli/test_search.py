"""`vip search`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.search.asked import run_with_words
from vip.cli.app import run


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    run_with_words(tmp_path / "runs" / "talk.vip", 6, [(2.6, 3.4, "The pump \x1b[31m has failed.\u202e"), (7.0, 7.9, "Lunch.")])
    run_with_words(tmp_path / "runs" / "cook.vip", 6, [(1.0, 2.0, "Milk.")])


def test_moments_are_listed_with_their_time_picture_and_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "pump fails", "runs/"]) == 0
    out = capsys.readouterr().out
    assert "0:03.00 (0:02.25 to 0:03.75)" in out
    assert str(Path("runs/talk.vip/keyframes/0002.jpg")) in out
    assert "words  The pump" in out
    assert out.rstrip().endswith("1 moment of 12 keyframes, by words")
    assert "\x1b[31m" not in out
    assert "\u202e" not in out


def test_json_has_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "pump", "runs/", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["keyframes"] == 12
    (moment,) = found["moments"]
    assert moment["time_s"] == 3.0
    assert moment["words"]["fields"] == ["words"]


def test_nothing_fits_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "zebra", "runs/"]) == 0
    assert "Nothing fits: 12 keyframes, by words." in capsys.readouterr().out


def test_a_page_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "pump", "runs/", "--page", "pump.html"]) == 0
    assert "data:image/jpeg" in Path("pump.html").read_text()
    assert "page: pump.html" in capsys.readouterr().err


def test_an_index_has_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "pump", "runs/", "--index", "idx"]) == 0
    assert Path("idx/index.sqlite").is_file()
    capsys.readouterr()


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["pump"], 2, 'vip search "pump" FOLDER'),
        (["?", "runs/"], 2, "no words"),
        (["pump", "nowhere/"], 3, "nowhere"),
        (["pump", "runs/", "--field", "colour"], 2, 'no field "colour"'),
        (["pump", "runs/", "--start", "soon"], 2, "--start"),
        (["pump", "runs/", "--end", "soon"], 2, "--end: "),
        (["pump", "runs/", "--moments", "0"], 2, "--moments"),
        (["--like", "missing.png", "runs/"], 3, "missing.png"),
    ],
)
def test_mistakes_are_one_sentence(capsys: pytest.CaptureFixture[str], given: list[str], code: int, said: str) -> None:
    assert run(["search", *given]) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
