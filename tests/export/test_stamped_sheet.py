"""Contact sheets for a model, from a real run: cells where sheets.json says, stamps in them, nothing of a stranger followed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

import vip
from tests.clips import clip
from vip.cli.app import run as main
from vip.cli.completion import picture_models
from vip.cli.sheet import DEFAULT_MODEL
from vip.errors import UsageError
from vip.export.stamped_sheet import ContactSheets, write_sheets
from vip.llm.prices import load_prices
from vip.llm.tokens import picture_tokens
from vip.store import load_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sheets")
    vip.extract(clip(folder / "video.mp4", [0, 1, 2, 5, 3, 4]), out=folder / "video.vip", keyframes=6)
    return folder / "video.vip"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "video.vip"))


def sheets(run: Path, tokens: int = 4000, model: str = DEFAULT_MODEL) -> tuple[ContactSheets, list[str]]:
    notes: list[str] = []
    return write_sheets(load_run(run), model=model, tokens=tokens, prices=load_prices(), note=notes.append), notes


def test_each_keyframe_is_in_its_cell_with_its_time(run: Path) -> None:
    done, notes = sheets(run)
    keyframes = load_run(run).keyframes
    cells = [(sheet, cell) for sheet in done.sheets for cell in sheet.cells]
    assert [(cell.keyframe_id, cell.time_s) for _, cell in cells] == [(frame.id, frame.time_s) for frame in keyframes]
    assert [cell.stamp for _, cell in cells][:2] == ["0:00.00", "0:01.00"]
    for (sheet, cell), frame in zip(cells, keyframes, strict=True):
        picture = cv2.imread(str(run / "sheets" / sheet.path))[:, :, ::-1].astype(float)
        assert picture.shape[:2] == (sheet.height_px, sheet.width_px)
        left, top, right, bottom = cell.box_xyxy
        upper = picture[top : (top + bottom) // 2, left:right]  # the stamp lies below
        whole = cv2.resize(frame.image, (right - left, bottom - top), interpolation=cv2.INTER_CUBIC)[: (bottom - top) // 2]
        assert np.abs(upper - whole).mean() < 12
    assert notes == []


def test_rows_and_columns_say_where_the_box_of_a_cell_lies(run: Path) -> None:
    done, _ = sheets(run)
    (sheet,) = done.sheets
    lefts, tops = ([*dict.fromkeys(cell.box_xyxy[side] for cell in sheet.cells)] for side in (0, 1))
    assert len(lefts) != len(tops)  # so that one cannot stand for the other
    assert [(cell.column, cell.row) for cell in sheet.cells] == [
        (lefts.index(cell.box_xyxy[0]), tops.index(cell.box_xyxy[1])) for cell in sheet.cells
    ]
    assert [(cell.row, cell.column) for cell in sheet.cells] == sorted((cell.row, cell.column) for cell in sheet.cells)


def test_a_stamp_is_white_on_black_and_high_enough_to_read(run: Path) -> None:
    done, _ = sheets(run)
    cell = done.sheets[0].cells[0]
    left, _, right, bottom = cell.box_xyxy
    picture = cv2.imread(str(run / "sheets" / "1.jpg"), cv2.IMREAD_GRAYSCALE)
    height = max(16, (right - left) // 14)
    stamp = picture[bottom - height : bottom - 1, left + 1 : left + 2 * height]
    assert stamp.min() < 40
    assert stamp.max() > 220


def test_the_sheets_cost_what_the_provider_counts(run: Path) -> None:
    for model in ("gpt-5.4-mini", "gpt-4o", "claude-sonnet-5", "gemini-2.5-flash"):
        done, _ = sheets(run, 1500, model)
        rule = next(price.picture for price in load_prices().built_in if price.model == model)
        assert rule is not None
        counted = [picture_tokens(rule, sheet.width_px, sheet.height_px, "high") for sheet in done.sheets]
        assert counted == [sheet.tokens for sheet in done.sheets]
        assert sum(counted) == done.tokens <= 1500


def test_what_does_not_fit_is_said_and_the_rest_is_spread(run: Path) -> None:
    done, notes = sheets(run, 100)
    ids = [cell.keyframe_id for sheet in done.sheets for cell in sheet.cells]
    keyframes = [frame.id for frame in load_run(run).keyframes]
    assert 1 < len(ids) < 6 == done.keyframes
    assert (ids[0], ids[-1]) == (keyframes[0], keyframes[-1])
    assert notes == [f"{len(ids)} of 6 keyframes fit into 100 tokens, evenly chosen. Give more with --tokens."]


def test_sheets_of_an_earlier_call_are_deleted_and_nothing_else(run: Path) -> None:
    sheets(run)
    for name in ("2.jpg", "17.jpg", "mine.jpg", "0.jpg"):
        (run / "sheets" / name).write_bytes(b"x")
    sheets(run)
    assert sorted(path.name for path in (run / "sheets").iterdir()) == ["0.jpg", "1.jpg", "mine.jpg", "sheets.json"]


def test_a_link_in_the_place_of_the_folder_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (run / "sheets").symlink_to(elsewhere)
    assert main(["sheet", str(run)]) == 7
    assert list(elsewhere.iterdir()) == []
    assert "Traceback" not in capsys.readouterr().err


def test_a_picture_that_cannot_be_read_leaves_a_field_and_a_note(run: Path) -> None:
    first = load_run(run).keyframes[0]
    first.path.write_bytes(b"no picture")
    done, notes = sheets(run)
    assert len(notes) == 1
    left, top, right, bottom = done.sheets[0].cells[0].box_xyxy
    picture = cv2.imread(str(run / "sheets" / "1.jpg"))
    middle = picture[(top + bottom) // 2, (left + right) // 2]
    assert np.abs(middle.astype(int) - (0xDF, 0xE5, 0xE9)).max() < 12


def tell_lies(run: Path, *lies: dict[str, object]) -> None:
    """Change the first keyframes of a run, as a stranger could."""
    rows = [json.loads(line) for line in (run / "keyframes.jsonl").read_text().splitlines()]
    (run / "keyframes.jsonl").write_text("\n".join(json.dumps(row | lie) for row, lie in zip(rows, lies, strict=False)) + "\n")


@pytest.mark.parametrize("lie", [{"width_px": 0}, {"height_px": 10**18}, {"width_px": -5}, {"time_s": -1e300}])
def test_sizes_and_times_that_no_video_has_are_refused(lie: dict[str, object], run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell_lies(run, lie)
    assert main(["sheet", str(run)]) == 7
    assert "keyframes.jsonl, line 1: damaged" in capsys.readouterr().err


def test_sizes_and_times_that_are_lies_do_no_harm(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lies = (
        {"width_px": 1, "height_px": 1},
        {"width_px": 5, "height_px": 2**31},
        {"time_s": -1e30},
        {"id": "\x1b[31m\u202e", "time_s": None},
    )
    tell_lies(run, *lies)
    assert main(["sheet", str(run)]) == 0
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    stamp = json.loads((run / "sheets" / "sheets.json").read_text())["sheets"][0]["cells"][3]["stamp"]
    assert stamp.isprintable()


def test_an_unknown_model_is_named_with_those_like_it(run: Path) -> None:
    with pytest.raises(UsageError, match=r"how claude-sonet-5 counts pictures\. Did you mean \"claude-sonnet-5\"\?"):
        sheets(run, model="claude-sonet-5")
    for tokens, budget in ((5, "5 tokens"), (1, "1 token")):
        with pytest.raises(UsageError, match=rf"at most {budget}\."):
            sheets(run, tokens)
    assert not (run / "sheets").exists()


def test_the_command_prints_where_and_how_much(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sheet", str(run), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    kept = json.loads((run / "sheets" / "sheets.json").read_text())
    assert shown == {"folder": str(run / "sheets"), **kept}
    assert main(["sheet", str(run)]) == 0
    assert f"6 keyframes on 1 picture: {kept['tokens']:,} tokens of {DEFAULT_MODEL}." in capsys.readouterr().out


def test_the_model_is_the_one_that_captions_use_and_is_offered_to_the_shell() -> None:
    from vip.models.openai.engine import DEFAULT_MODEL as ENGINE_MODEL

    assert ENGINE_MODEL.startswith(DEFAULT_MODEL)
    assert DEFAULT_MODEL in list(picture_models("gpt-5.4"))
