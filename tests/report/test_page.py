from __future__ import annotations

import base64
import hashlib
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.pages import Page, read
from tests.report.runs import RULES, description, make_pictures, make_run, picture
from vip import store
from vip.errors import StoreError
from vip.records import Embeddings, Failure
from vip.report import page as page_module
from vip.report import pictures
from vip.report.page import Report, page, write_report
from vip.store import Run, load_run

HOSTILE = [
    "<script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    "</title></script><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'y\' `',
    "&lt;b&gt; &amp;amp; &#x3c;b&#x3e;",
    "<!-- --><!doctype x>]]>",
    "line\u2028separator\u2029\u0085end",
    "\u202egnp.exe\u2066 backwards",
    "nul\x00 bell\x07 \ufdd0\uffff",
    "{{7*7}} ${x} %s {0}",
    "javascript:alert(1)",
    "https://example.com/tracker.png //example.com/x",
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return read(write_report(make_run(tmp_path_factory.mktemp("plain") / "run", text=" x")))


def test_each_keyframe_has_a_card_with_time_caption_famous_sharpness_and_engine(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    html = write_report(run).read_text(encoding="utf-8")
    cards = re.findall(r"<article.*?</article>", html, re.S)
    assert len(cards) == len(run.keyframes) == 3
    for card, frame, code in zip(cards, run.keyframes, ("0:00.0", "0:03.0", "0:07.0"), strict=True):
        text = Page(card).text
        for expected in (
            code,
            f"The caption of {frame.time_s}",
            "a dancer",
            "leaps",
            "rope",
            "ball",
            "a hall",
            f"{frame.record.quality.sharpness:.0f}",
            "openai:gpt-5-mini · gpt-5-mini-2025-08-07",
            "a person at the left",
            "0.75",
        ):
            assert expected in text, expected
        assert card.count("data:image/jpeg;base64,") == 1


def test_detections_are_drawn_over_the_picture_and_stay_within_it(tmp_path: Path) -> None:
    html = write_report(make_run(tmp_path)).read_text(encoding="utf-8")
    drawing = Page(html[html.index('<svg class="boxes"') : html.index("</svg>", html.index('<svg class="boxes"')) + 6])
    (box,) = drawing.of("rect")
    assert (box["x"], box["y"], box["width"], box["height"]) == ("10%", "20%", "40%", "80%")  # the box ends 20 % below the picture
    assert drawing.text == "person 0.75"
    assert Page(html).of("input", id="show-boxes")


def described_by(run: Run, engine: str, *said: dict[str, str | tuple[str, ...]]) -> Page:
    """The page of a run whose descriptions are those of the engine, with these fields of FAMOuS in turn."""
    rows = [description(frame.record, engine=engine) for frame in run.keyframes]
    changed = [row.model_copy(update={"famous": row.famous.model_copy(update=one)}) for row, one in zip(rows, said, strict=True)]
    store.write_rows(run.folder / store.DESCRIPTIONS, changed)
    return read(write_report(load_run(run.folder)))


NOTHING = {"focus": "not determined", "action": "not determined", "mood": "not determined", "objects": (), "setting": "not determined"}


def test_what_no_description_determines_is_said_once_and_not_on_each_card(tmp_path: Path) -> None:
    report = read(write_report(make_run(tmp_path)))
    assert "Not determined in any of them: mood." in report.text
    assert report.text.lower().count("not determined") == 1
    assert "Mood" not in report.text
    assert "offline" not in report.text


def test_a_page_of_offline_captions_has_no_row_of_famous_and_says_what_would_fill_them(tmp_path: Path) -> None:
    report = described_by(make_run(tmp_path), "offline", NOTHING, NOTHING, NOTHING)
    assert "Not determined in any of them: focus, action, mood, objects, setting." in report.text
    assert report.text.lower().count("not determined") == 1
    assert report.of("dl", class_="famous") == []
    assert "vip caption DIR --engine openai:MODEL" in report.text
    assert "--overwrite" not in report.text  # what is measured gives way without it


def test_a_card_names_in_one_line_what_only_others_determine(tmp_path: Path) -> None:
    report = described_by(make_run(tmp_path), "openai:gpt-5-mini", NOTHING, {}, {"focus": "Not determined."})
    assert "Not determined in any of them: mood." in report.text
    assert [text for path, text in report.texts if path[-1:] == ("p",) and text.startswith("Not determined: ")] == [
        "Not determined: focus, action, objects, setting",
        "Not determined: focus",
    ]
    assert len(report.of("dl", class_="famous")) == 2


def test_cards_of_offline_captions_say_nothing_of_what_was_not_found(tmp_path: Path) -> None:
    """The caption says it: no face was found."""
    report = described_by(make_run(tmp_path), "offline", NOTHING, {}, {"focus": "not determined"})
    assert "Not determined in any of them: mood." in report.text
    assert report.text.lower().count("not determined") == 1


def test_an_engine_that_sees_is_not_told_to_be_blind(tmp_path: Path) -> None:
    report = described_by(make_run(tmp_path), "openai:gpt-5-mini", NOTHING, NOTHING, NOTHING)
    assert "Not determined in any of them" in report.text
    assert "does not see" not in report.text


def test_each_dropped_candidate_is_shown_with_time_rule_and_reason(tmp_path: Path) -> None:
    html = write_report(make_run(tmp_path)).read_text(encoding="utf-8")
    strip = html[html.index('<ul class="strip">') :]
    tiles = re.findall(r"<li.*?</li>", strip[: strip.index("</ul>")], re.S)
    dropped = [(i, rule) for i, rule in enumerate(RULES) if rule != "kept"]
    assert len(tiles) == len(dropped)
    for tile, (i, rule) in zip(tiles, dropped, strict=True):
        text = Page(tile).text
        assert f"0:{i:02}.0" in text
        assert f"reason {i}" in text
        assert ("no thumbnail" in text) == (rule == "unreadable")


def test_the_timeline_links_to_each_card_at_its_true_place(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    report = read(write_report(run))
    marks = report.of("rect", class_="mark")
    # The last of the eleven frames begins at 10 s and lasts 1/25 s.
    places = [float(str(mark["x"]).removesuffix("%")) for mark in marks]
    assert places == pytest.approx([0, 100 * 3 / 10.04, 100 * 7 / 10.04], abs=0.001)
    assert len(report.of("rect", class_="tick")) + len(report.of("rect", class_="tick bad")) == len(RULES) - 3


def test_links_lead_to_ids_that_exist_once(plain: Page) -> None:
    ids = [attributes["id"] for _, attributes in plain.elements if "id" in attributes]
    links = {str(attributes["href"]) for tag, attributes in plain.elements if tag == "a"}
    assert len(set(ids)) == len(ids)
    assert links
    assert links <= {f"#{name}" for name in ids}


def test_the_header_says_what_video_it_was_and_how_it_went(plain: Page) -> None:
    for expected in (
        "holiday x.mp4",
        "0:10.0",
        "64 × 48, 25 fps",
        "h264 x, 2.5 MB",
        "3 of 11 candidates (4 asked)",
        "5 March 2025, 14:03 UTC",
    ):
        assert expected in plain.text
    assert "fewer keyframes than asked x" in plain.text


def test_how_it_was_made_names_settings_versions_seconds_and_calls(plain: Page) -> None:
    for expected in ("min_sharpness", "0.50 s", "0.75 s", "0.1 x", "abab", "not reported", "2,400", "describe x 1 (cdcdcdcdcdcd)"):
        assert expected in plain.text


@pytest.mark.parametrize(("least", "is_drawn"), [(90, True), (10**400, False), (-1, False), ("90", False), ([90], False)])
def test_a_least_sharpness_that_cannot_be_drawn_is_left_out(least: object, is_drawn: bool, tmp_path: Path) -> None:
    run = make_run(tmp_path / "a.vip")
    assert run.manifest
    changed = run.manifest.model_copy(update={"settings": {**run.manifest.settings, "min_sharpness": least}})
    store.write_json(run.folder / store.MANIFEST, changed)
    assert ("least asked for" in read(write_report(load_run(run.folder))).text) == is_drawn


# ---------------------------------------------------------------- self-contained, safe


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    report = read(write_report(make_run(tmp_path, text=" https://example.com/x.png //example.com")))
    for tag, attributes in report.elements:
        for name in ("src", "href", "srcset", "poster", "action", "data", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, name, value)
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
    assert not {tag for tag, _ in report.elements} & {"iframe", "object", "embed", "base", "form", "audio", "video", "use", "foreignobject"}
    code = "".join(report.inside("style") + report.inside("script"))
    assert not re.search(r"url\(|@import|https?:|fetch|XMLHttp|innerHTML|eval", code)


def test_the_policy_allows_the_page_s_own_style_and_script_and_nothing_else(plain: Page) -> None:
    (policy,) = (str(meta["content"]) for meta in plain.of("meta", **{"http-equiv": "Content-Security-Policy"}))
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for element in ("style", "script"):
        assert len(plain.of(element)) == 1
        digest = base64.b64encode(hashlib.sha256(plain.inside(element)[0].encode()).digest()).decode()
        assert rules[f"{element}-src"] == f"'sha256-{digest}'"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_everywhere_changes_no_element_and_no_attribute(text: str, plain: Page, tmp_path: Path) -> None:
    report = read(write_report(make_run(tmp_path / "run", text=f" x{text}")))
    assert report.skeleton == plain.skeleton
    assert report.inside("style") == plain.inside("style")
    assert report.inside("script") == plain.inside("script")


def test_hostile_text_is_shown_as_it_is(tmp_path: Path) -> None:
    text = """<script>alert("1 & 2")</script>'"""
    report = read(write_report(make_run(tmp_path, text=text)))
    for expected in ("The caption of 3.0", "a dancer", "reason 2", "fewer keyframes than asked", "person", "a person at the left", "rope"):
        assert f"{expected}{text}" in report.text


def test_text_cannot_run_backwards_over_the_rest_nor_hold_controls(tmp_path: Path) -> None:
    html = write_report(make_run(tmp_path, text="\u202e\u2066\x00\x1b\x9f")).read_text(encoding="utf-8")
    assert not set(html) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x00\x1b\x9f")
    assert "\ufffd" * 5 in html


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("<>&\"'/=!-`\u2028"), max_size=60))
def test_no_caption_changes_the_page_s_elements(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    def captioned(caption: str) -> Page:
        run = load_run(folder)
        row = description(run.keyframes[0].record).model_copy(update={"dense_caption": caption})
        store.write_rows(folder / store.DESCRIPTIONS, [row])
        found = Page("".join(page(Report(run))))
        assert any(path[-1:] == ("p",) and shown(text) == shown(caption) for path, text in found.texts) or not caption
        return found

    def shown(text: str) -> str:
        """As a parser has it: without the difference between kinds of line ends and the signs that are never shown."""
        return "".join(sign for sign in text if sign.isprintable() and sign != "\ufffd")

    folder = tmp_path_factory.getbasetemp() / "captions"
    if not folder.exists():
        make_run(folder)
    assert captioned(text).skeleton == captioned("harmless").skeleton


# ---------------------------------------------------------------- incomplete runs


def test_a_run_without_captions_says_so_and_shows_the_rest(tmp_path: Path) -> None:
    report = read(write_report(make_run(tmp_path, described=False)))
    assert "none yet" in report.text
    assert "Described by" not in report.text
    assert len(report.of("article")) == 3
    assert "reason 1" in report.text


def test_failures_are_listed_and_stand_on_their_cards(tmp_path: Path) -> None:
    html = write_report(make_run(tmp_path, failed=1)).read_text(encoding="utf-8")
    report = Page(html)
    assert "1 item failed" in report.text
    assert "2 of 3" in report.text
    assert report.text.count("refused k7") == 2
    assert "Not described." in Page(html[html.index('id="k3"') - 9 : html.index("</article>", html.index('id="k3"')) + 10]).text


def test_a_failure_that_belongs_to_no_keyframe_is_listed_too(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    store.write_rows(tmp_path / store.FAILURES, [Failure(item="elsewhere", kind="InputError", message="gone", exit_code=3)] * 300)
    text = read(write_report(load_run(run.folder))).text
    assert "300 items failed" in text
    assert text.count("elsewhere") == page_module.MAX_FAILURES
    assert "100 more are in failures.jsonl" in text


def test_a_folder_of_pictures_has_names_instead_of_times_and_no_timeline(tmp_path: Path) -> None:
    report = read(write_report(make_pictures(tmp_path / "my <b>pictures")))
    assert "my <b>pictures" in report.text
    assert all(f"holiday {i}.png" in report.text for i in range(3))
    for absent in ("Timeline", "Curves", "Dropped", "Duration", "0:0"):
        assert absent not in report.text


def test_keyframes_with_times_have_a_timeline_without_manifest_and_candidates(tmp_path: Path) -> None:
    make_run(tmp_path)
    for name in (store.MANIFEST, store.CANDIDATES, store.EMBEDDINGS, store.THUMBNAILS):
        (tmp_path / name).unlink()
    report = read(write_report(load_run(tmp_path)))
    assert "Timeline" in report.text
    assert "Sharpness" in report.text
    assert "Dropped" not in report.text


@pytest.mark.parametrize("damage", ["absent", "empty zip", "no zip", "no pictures inside"])
def test_missing_thumbnails_leave_placeholders(damage: str, tmp_path: Path) -> None:
    run = make_run(tmp_path)
    path = tmp_path / store.THUMBNAILS
    whole = path.read_bytes()
    path.unlink()
    if damage == "empty zip":
        path.write_bytes(b"PK\x05\x06" + bytes(18))
    elif damage == "no zip":
        path.write_bytes(b"not a zip")
    elif damage == "no pictures inside":
        path.write_bytes(whole.replace(b"\xff\xd8\xff", b"<sv"))
    report = read(write_report(run))
    assert report.text.count("no thumbnail") == len(RULES) - 3
    assert "reason 2" in report.text


def test_a_missing_keyframe_picture_leaves_a_placeholder(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.keyframes[1].path.unlink()
    report = read(write_report(run))
    assert report.text.count("picture missing") == 1
    assert len(report.of("article")) == 3


def test_embeddings_of_other_candidates_make_no_curve(tmp_path: Path) -> None:
    make_run(tmp_path)
    vectors = np.eye(2, dtype=np.float32)
    store.write_embeddings(tmp_path / store.EMBEDDINGS, Embeddings(vectors, vectors, "classic"))
    text = read(write_report(load_run(tmp_path))).text
    assert "No similarity curve" in text
    assert "expected 10 vectors, one a decoded candidate, got 2" in text


def test_one_keyframe_at_one_instant(tmp_path: Path) -> None:
    report = read(write_report(make_run(tmp_path, rules=("kept",))))
    assert "1 of 1 candidate" in report.text
    assert "Curves" not in report.text


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    before = write_report(run).read_bytes()
    (tmp_path / store.CANDIDATES).write_text("{broken\n")
    with pytest.raises(StoreError):
        write_report(load_run(tmp_path))
    assert (tmp_path / store.REPORT).read_bytes() == before
    assert not list(tmp_path.glob(f"*{store.PARTIAL_SUFFIX}"))


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert write_report(run).read_bytes() == write_report(load_run(tmp_path)).read_bytes()


# ---------------------------------------------------------------- size


def test_the_page_stays_small_however_many_keyframes_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "PICTURES_BYTES", 200_000)
    monkeypatch.setattr(pictures, "THUMBNAIL_BYTES", 8_000)
    monkeypatch.setattr(page_module, "MAX_CARDS", 10)
    run = make_run(tmp_path, rules=("kept",) * 30, described=False)
    store.write_picture(run.keyframes[0].path, picture(0, width_px=640, height_px=480))  # noise: the most bytes a picture can have
    for frame in run.keyframes[1:]:
        frame.path.write_bytes(run.keyframes[0].path.read_bytes())
    report = read(path := write_report(run))
    assert len(report.of("article")) == 10
    assert "10 of 30 are shown, evenly chosen; all are in keyframes.jsonl" in report.text
    sizes = [len(str(img["src"])) * 3 / 4 for img in report.of("img") if "width" in img]
    assert len(sizes) == 10
    assert sum(sizes) < 205_000
    assert path.stat().st_size < 500_000


@pytest.mark.slow
def test_every_keyframe_up_to_hundreds_is_on_the_page(tmp_path: Path) -> None:
    rules = tuple(itertools.islice(itertools.cycle(("kept", "pruned")), 400))
    path = write_report(make_run(tmp_path, rules=rules))
    assert len(read(path).of("article")) == 200
    assert path.stat().st_size < 12_000_000
