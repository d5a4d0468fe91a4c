"""Subtitles as FFmpeg gives them: which streams there are, and the words without what only says how they look."""

from __future__ import annotations

import time
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import av.error
import pytest
from av.stream import Disposition

from vip.errors import InputError
from vip.video.subtitles import TimedText, _cues, _describe, _plain, _text_of


def packet(*texts: str, type_: bytes = b"ass", **times: Any) -> Any:
    rects = [SimpleNamespace(type=type_, dialogue=text.encode()) for text in texts]
    plain = {"pts": 1000, "duration": 500, "size": 9, "time_base": Fraction(1, 1000)}
    return SimpleNamespace(decode=lambda: rects, **{**plain, **times})


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["Fish"], "Fish"),
        (["Fish", "and chips"], "Fish and chips"),
        ([], ""),
        (["a\n b"], "a b"),
        (["{\\an8}<i>Fish</i>\\Nand\\nchips\\hfor {\\b1}two"], "Fish and chips for two"),
        (["1 < 2 > 0 {no override}"], "1 < 2 > 0 {no override}"),
        (["{\\p1}m 0 0 l 100 0", "Fish"], "Fish"),
        (["{\\pos(1,2)}Fish"], "Fish"),
        (["<font color='red'>Fish</font>"], "Fish"),
    ],
)
def test_words_are_what_a_viewer_reads(texts: list[str], words: str) -> None:
    assert _text_of(packet(*texts), has_entities=False) == words


@pytest.mark.parametrize(("has_entities", "words"), [(True, "Fish & <chips>"), (False, "Fish &amp; &lt;chips&gt;")])
def test_entities_are_resolved_where_the_format_has_them(has_entities: bool, words: str) -> None:
    assert _text_of(packet("Fish &amp; &lt;chips&gt;"), has_entities=has_entities) == words


def test_pictures_and_what_cannot_be_decoded_have_no_words() -> None:
    assert _text_of(packet("Fish", type_=b"bitmap"), has_entities=False) == ""
    for error in (ValueError("?"), av.error.InvalidDataError(1, "?")):

        def damaged(error: Exception = error) -> Any:
            raise error

        broken = SimpleNamespace(decode=damaged)
        assert _text_of(broken, has_entities=False) == ""


@pytest.mark.parametrize("text", ["{\\p1}m 0 0", "{\\an5\\p4}m 0 0"])
def test_a_drawing_is_no_text(text: str) -> None:
    assert _plain(text) == ""


@pytest.mark.parametrize("part", ["\\p1", "{\\p1", "<a", "{\\", "</", "\\N"])
def test_a_long_cue_takes_no_longer_than_its_letters(part: str) -> None:
    start = time.process_time()
    assert len(_plain("{" + part * 200_000)) <= 1 + 200_000 * len(part)
    assert time.process_time() - start < 3


class Container:
    def __init__(self, *packets: Any) -> None:
        self.packets = packets

    def demux(self, _: object) -> Any:
        for one in self.packets:
            if isinstance(one, Exception):
                raise one
            yield one


def cues(*packets: Any, codec: str = "subrip") -> list[TimedText]:
    stream = SimpleNamespace(codec_context=SimpleNamespace(name=codec))
    return list(_cues(Container(*packets), stream, "a.srt"))  # type: ignore[arg-type]


def test_a_cue_has_the_times_of_its_packet() -> None:
    assert cues(packet("a"), packet("b", pts=0, duration=None), packet("c", pts=3, duration=2, time_base=Fraction(1, 2))) == [
        TimedText(1.0, 1.5, "a"),
        TimedText(0.0, 0.0, "b"),
        TimedText(1.5, 2.5, "c"),
    ]


@pytest.mark.parametrize("nothing", [packet("a", size=0), packet("a", pts=None), packet("a", time_base=None), packet("{\\an8}"), packet()])
def test_a_packet_without_words_or_times_is_no_cue(nothing: Any) -> None:
    assert [one.text for one in cues(packet("before"), nothing, packet("behind"))] == ["before", "behind"]


@pytest.mark.parametrize(("codec", "words"), [("subrip", "&"), ("srt", "&"), ("ass", "&amp;"), ("webvtt", "&amp;"), ("mov_text", "&amp;")])
def test_only_subrip_has_entities_that_ffmpeg_leaves(codec: str, words: str) -> None:
    assert [one.text for one in cues(packet("&amp;"), codec=codec)] == [words]


def test_a_file_that_breaks_off_is_said() -> None:
    with pytest.raises(InputError, match=r"a\.srt: its subtitles cannot be read to their end"):
        cues(packet("a"), av.error.InvalidDataError(1, "Invalid data"))


@pytest.mark.parametrize(
    ("codec", "is_text"),
    [
        ("subrip", True),
        ("ass", True),
        ("mov_text", True),
        ("webvtt", True),
        ("hdmv_pgs_subtitle", False),
        ("dvd_subtitle", False),
        (None, False),
    ],
)
@pytest.mark.parametrize("flags", [Disposition(0), Disposition.forced, Disposition.default, Disposition.forced | Disposition.default])
def test_a_stream_says_what_it_is(codec: str | None, is_text: bool, flags: Disposition) -> None:
    context = SimpleNamespace(name=codec) if codec else None
    found = _describe(SimpleNamespace(codec_context=context, index=3, metadata={"language": "deu"}, disposition=flags))
    assert (found.number, found.codec, found.language, found.is_text) == (3, codec or "unknown", "deu", is_text)
    assert (found.is_forced, found.is_default) == (bool(flags & Disposition.forced), bool(flags & Disposition.default))


@pytest.mark.parametrize(("metadata", "language"), [({}, "und"), ({"language": " "}, "und"), ({"language": "x" * 40}, "x" * 20)])
def test_a_language_that_is_not_said_is_undetermined(metadata: dict[str, str], language: str) -> None:
    stream = SimpleNamespace(codec_context=None, index=0, metadata=metadata, disposition=Disposition(0))
    assert _describe(stream).language == language
