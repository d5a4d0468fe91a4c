from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.pages import Page, read
from tests.report.runs import make_run
from tests.report.test_page import HOSTILE
from vip import store
from vip.config import ExtractSettings
from vip.records import Failure, Rule
from vip.report import compare_page
from vip.report.combinations import Combination, ComparedRun, Comparison
from vip.report.compare_page import write_comparison
from vip.report.measures import measure_all
from vip.store import load_run

RULES: dict[str, tuple[Rule, ...]] = {
    "sync": ("kept", "pruned", "black", "kept", "pruned"),
    "every:2s": ("kept", "kept", "black", "pruned", "kept"),
}


def comparison(folder: Path, *, text: str = "", rules: dict[str, tuple[Rule, ...]] = RULES, reused: bool = False) -> Comparison:
    """Two combinations that are done, and one that failed; `text` is appended to every text."""
    names = [Combination(f"{sampler}{text}", f"algorithm1{text}") for sampler in rules]
    runs = [make_run(folder / f"{i}", rules=some, text=text, described=False) for i, some in enumerate(rules.values())]
    choices = tuple(ComparedRun(name, run, reused, measures) for name, run, measures in zip(names, runs, measure_all(runs), strict=True))
    failure = Failure(item=f"shots+algorithm1{text}", kind="BackendError", message=f"shots is not installed{text}", exit_code=4)
    return Comparison(folder, ExtractSettings(sampler=f"sync{text}", pruner=f"algorithm1{text}"), choices, (failure,))


def test_each_combination_shows_its_keyframes_and_its_figures(tmp_path: Path) -> None:
    html = write_comparison(comparison(tmp_path)).read_text(encoding="utf-8")
    sections = re.findall(r'<section id="c\d.*?</section>', html, re.S)
    for section, times in zip(sections, (("0:00.0", "0:03.0"), ("0:00.0", "0:01.0", "0:04.0")), strict=True):
        shown = Page(section)
        assert len(shown.of("li", class_="card")) == len(times)
        assert all(time in shown.text for time in times)
    rows = [Page(row).text for row in re.findall(r"<tr>.*?</tr>", html, re.S)[1:]]
    assert ["2 of 5" in rows[0], "3 of 5" in rows[1]] == [True, True]
    assert ["sync+ algorithm1" in rows[0], "every:2s+ algorithm1" in rows[1]] == [True, True]


def test_the_evenly_spaced_frames_are_named(tmp_path: Path) -> None:
    found = comparison(tmp_path)
    even = replace(found.choices[1], combination=Combination("uniform", "none"))
    html = write_comparison(replace(found, choices=(found.choices[0], even))).read_text(encoding="utf-8")
    assert "uniform+none is evenly spaced frames, good or bad." in html
    assert re.findall(r"<h2>.*?</h2>", html, re.S)[-1].endswith("<small>evenly spaced</small></h2>")
    assert "evenly spaced" not in write_comparison(found).read_text(encoding="utf-8")


def test_the_best_figures_are_marked(tmp_path: Path) -> None:
    html = write_comparison(comparison(tmp_path)).read_text(encoding="utf-8")
    first, second = re.findall(r"<tr>.*?</tr>", html, re.S)[1:]
    # The second run has a keyframe more: it is more redundant, and less sharp in the middle. All else looks the same.
    assert re.findall(r'class="best"[^>]*>([^<]*)<', first) == ["0.96", "0.96", "102"]
    assert re.findall(r'class="best"[^>]*>([^<]*)<', second) == []


def test_the_keyframes_of_all_lie_on_one_time_axis_and_lead_to_their_pictures(tmp_path: Path) -> None:
    found = read(write_comparison(comparison(tmp_path)))
    places = [float(str(mark["x"]).removesuffix("%")) for mark in found.of("rect", class_="mark")]
    assert places == pytest.approx([0, 75, 0, 25, 100])
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    links = {str(attributes["href"]) for tag, attributes in found.elements if tag == "a"}
    assert len(set(ids)) == len(ids)
    assert {"#c1", "#c2", "#c1k2", "#c2k3"} <= links <= {f"#{name}" for name in ids}


def test_the_moment_that_each_covers_least_is_shown(tmp_path: Path) -> None:
    html = write_comparison(comparison(tmp_path)).read_text(encoding="utf-8")
    missed = [Page(found) for found in re.findall(r'<div class="missed">.*?</div>', html, re.S)]
    # Vectors turn by 0.1 a second: of frames at 0, 1, 3, 4 s those farthest from a keyframe.
    assert [page.text.split(" ", 1)[0] for page in missed] == ["0:01.0", "0:03.0"]
    assert all(len(page.of("img")) == 1 for page in missed)


def test_a_moment_whose_thumbnail_one_run_lacks_is_shown_by_another(tmp_path: Path) -> None:
    compared = comparison(tmp_path)
    (compared.choices[0].run.folder / store.THUMBNAILS).unlink()
    html = write_comparison(compared).read_text(encoding="utf-8")
    missed = [Page(found) for found in re.findall(r'<div class="missed">.*?</div>', html, re.S)]
    assert [len(page.of("img")) for page in missed] == [1, 1]


def test_the_page_says_how_to_have_each_choice_again_and_which_is_the_default(tmp_path: Path) -> None:
    found = read(write_comparison(comparison(tmp_path)))
    assert "--sampler every:2s --pruner algorithm1" in found.text
    assert str(tmp_path / "1") in found.text
    assert found.text.count("what vip extract does") == 1
    assert "1 of 3 are frames of sync+algorithm1 too." in found.text
    same = read(write_comparison(comparison(tmp_path / "same", rules={"sync": RULES["sync"], "shots": RULES["sync"]})))
    assert "The very frames of sync+algorithm1." in same.text


def test_seconds_of_an_earlier_command_are_told_apart(tmp_path: Path) -> None:
    fresh, reused = (read(write_comparison(comparison(tmp_path / str(flag), reused=flag))) for flag in (False, True))
    assert "earlier command" in reused.text
    assert "earlier command" not in fresh.text
    assert len(reused.of("i", class_="star")) == 2


def test_what_failed_is_listed_with_its_reason(tmp_path: Path) -> None:
    text = read(write_comparison(comparison(tmp_path))).text
    assert "1 way of choosing failed" in text
    assert "shots is not installed" in text


def test_notes_of_a_run_stand_beside_its_pictures(tmp_path: Path) -> None:
    assert read(write_comparison(comparison(tmp_path))).text.count("fewer keyframes than asked") == 2


# ---------------------------------------------------------------- hostile or incomplete


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_everywhere_changes_no_element_and_no_attribute(text: str, tmp_path: Path) -> None:
    plain, hostile = (read(write_comparison(comparison(tmp_path / name, text=more))) for name, more in (("a", " x"), ("b", f" x{text}")))
    assert hostile.skeleton == plain.skeleton
    assert hostile.inside("style") == plain.inside("style")
    assert hostile.inside("script") == plain.inside("script")


def test_the_policy_allows_the_page_s_own_style_and_script_and_nothing_else(tmp_path: Path) -> None:
    found = read(write_comparison(comparison(tmp_path)))
    (policy,) = (str(meta["content"]) for meta in found.of("meta", **{"http-equiv": "Content-Security-Policy"}))
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert (rules["default-src"], rules["img-src"]) == ("'none'", "data:")
    for element in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(found.inside(element)[0].encode()).digest()).decode()
        assert rules[f"{element}-src"] == f"'sha256-{digest}'"
    assert not any("style" in attributes or "onclick" in attributes for _, attributes in found.elements)
    assert all(str(img["src"]).startswith("data:") for img in found.of("img"))


def test_missing_pictures_and_thumbnails_leave_placeholders(tmp_path: Path) -> None:
    compared = comparison(tmp_path)
    compared.choices[0].run.keyframes[1].path.unlink()
    for choice in compared.choices:
        (choice.run.folder / store.THUMBNAILS).unlink()
    text = read(write_comparison(compared)).text
    assert text.count("picture missing") == 1
    assert text.count("no thumbnail") == 2


def test_the_page_stays_small_however_many_keyframes_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_page, "MAX_PICTURES", 8)
    found = read(write_comparison(comparison(tmp_path, rules={"sync": ("kept",) * 9, "shots": ("kept",) * 3})))
    assert len(found.of("li", class_="card")) == 4 + 3
    assert "4 of 9 are shown, evenly chosen; all are in keyframes.jsonl." in found.text


def test_the_same_comparison_gives_the_same_page(tmp_path: Path) -> None:
    compared = comparison(tmp_path)
    before = write_comparison(compared).read_bytes()
    again = [ComparedRun(c.combination, load_run(c.run.folder), c.reused, c.measures) for c in compared.choices]
    assert write_comparison(Comparison(tmp_path, compared.settings, tuple(again), compared.failures)).read_bytes() == before
