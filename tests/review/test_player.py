"""The player of the page: which part of the video it asks for, and what the server sends of it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import av
from starlette.requests import Request
from starlette.responses import Response

from tests.clips import scene
from tests.report.runs import make_run
from tests.review.browser import CHROMIUM, Browser
from tests.review.corpora import open_state
from tests.review.serving import Served, serve
from vip import store
from vip.review.report import report_page
from vip.review.server import ReviewServer

SECONDS, RATE = 10, 5
TIMES = {"k0": 0.0, "k3": 3.0, "k7": 7.0}
"""The keyframes of the run."""


class NotingServer(ReviewServer):
    """Keeps the ranges that are asked for."""

    ranges: ClassVar[list[str | None]] = []

    async def video(self, request: Request) -> Response:
        self.ranges.append(request.headers.get("range"))
        return await super().video(request)


def film(path: Path) -> bytes:
    """A video that every browser plays, with another picture each second."""
    with av.open(str(path), "w") as output:
        stream: Any = output.add_stream("libvpx", rate=RATE, options={"g": str(RATE), "crf": "10", "b": "1M"})
        stream.width, stream.height, stream.pix_fmt = 160, 90, "yuv420p"
        for tick in range(SECONDS * RATE):
            frame = av.VideoFrame.from_ndarray(scene(tick // RATE), format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = tick, Fraction(1, RATE)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path.read_bytes()


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    return film(tmp_path / "film.webm")


@pytest.fixture
def served(tmp_path: Path, data: bytes) -> Iterator[Served]:
    run = make_run(tmp_path / "film.vip")
    assert run.manifest is not None
    assert [(frame.id, frame.time_s) for frame in run.keyframes] == list(TIMES.items())
    video = run.manifest.video.model_copy(update={"path": str(tmp_path / "film.webm"), "size_bytes": len(data)})
    store.write_json(run.folder / store.MANIFEST, run.manifest.model_copy(update={"video": video}))
    NotingServer.ranges.clear()
    state = open_state(run.folder)
    with serve(state, NotingServer, report=lambda state: report_page(state, title="a", token="t")) as running:
        yield running


@pytest.mark.parametrize(
    ("asked", "first", "last"), [("bytes=0-", 0, None), ("bytes=100-199", 100, 199), ("bytes=-50", -50, None), ("bytes=500-", 500, None)]
)
def test_the_server_sends_the_range_that_is_asked_for(asked: str, first: int, last: int | None, served: Served, data: bytes) -> None:
    answer = served.ask("/video/1", headers={"Range": asked})
    wanted = data[first:] if last is None else data[first : last + 1]
    assert (answer.status, answer.body) == (206, wanted)
    start = first % len(data)
    assert answer.headers["content-range"] == f"bytes {start}-{start + len(wanted) - 1}/{len(data)}"
    assert answer.headers["content-type"] == "video/webm"


def test_without_a_range_all_of_it_comes_and_beyond_its_end_nothing(served: Served, data: bytes) -> None:
    whole = served.ask("/video/1")
    assert (whole.status, whole.body, whole.headers["accept-ranges"]) == (200, data, "bytes")
    assert served.ask("/video/1", headers={"Range": f"bytes={len(data)}-"}).status == 416


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
class TestInABrowser:
    def begin(self, tab: Browser, served: Served) -> None:
        tab.complaints.clear()
        tab.open(served.address)
        tab.wait("document.getElementById('name-box').open")
        tab.type("Ann")
        tab.press("Enter")
        self.shows(tab, 1)

    @staticmethod
    def shows(tab: Browser, number: int) -> None:
        tab.wait(f"document.getElementById('count').textContent.startsWith('{number} of') && !document.getElementById('item').hidden")
        tab.wait(f"document.getElementById('by').textContent.includes('{list(TIMES)[number - 1]}')")

    def test_each_keyframe_plays_from_two_seconds_before_it(self, chromium: Browser, served: Served) -> None:
        self.begin(chromium, served)
        for number, start_s in enumerate((0.0, 1.0, 5.0), 1):
            assert chromium.run("document.getElementById('player').hidden")
            assert not chromium.run("document.getElementById('player').hasAttribute('src')"), "nothing is asked for before it is played"
            chromium.press("p")
            chromium.wait("document.getElementById('player').played.length > 0")
            source = str(chromium.run("document.getElementById('player').src"))
            assert f"/video/{number - 1}?" in source
            assert source.endswith(f"#t={start_s:.2f}")
            assert chromium.run("document.getElementById('player').played.start(0)") == pytest.approx(start_s, abs=0.05)
            chromium.press("p")
            chromium.wait("document.getElementById('player').paused")
            if number < len(TIMES):
                chromium.press("ArrowRight")
                self.shows(chromium, number + 1)
        assert chromium.complaints == []

    def test_it_asks_for_ranges(self, chromium: Browser, served: Served) -> None:
        self.begin(chromium, served)
        assert NotingServer.ranges == []
        chromium.press("p")
        chromium.wait("document.getElementById('player').played.length > 0")
        assert NotingServer.ranges[0] == "bytes=0-"
        assert None not in NotingServer.ranges

    def test_without_its_video_there_is_nothing_to_play(self, chromium: Browser, served: Served, tmp_path: Path) -> None:
        (tmp_path / "film.webm").unlink()
        self.begin(chromium, served)
        assert chromium.run("document.getElementById('play').hidden")
        chromium.press("p")
        assert chromium.run("document.getElementById('player').hidden")
        assert NotingServer.ranges == []
