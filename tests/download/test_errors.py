"""The sentences are those that YouTube and yt-dlp's extractors give, raised by an extractor through the real YoutubeDL."""

from __future__ import annotations

import errno
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yt_dlp.extractor.common import InfoExtractor
from yt_dlp.networking.common import Response
from yt_dlp.networking.exceptions import HTTPError, TransportError
from yt_dlp.utils import ContentTooShortError, ExtractorError, GeoRestrictedError, UnsupportedError, UserNotLive

from vip.config import BatchSettings
from vip.dataset.items import ListItem
from vip.download.errors import LONGEST, causes, item_error, kind_of_sentence
from vip.download.fetch import fetch
from vip.download.ytdlp import downloader_for
from vip.errors import FailureKind, ItemError

COOKIES = (
    "Use --cookies-from-browser or --cookies for the authentication. See  https://github.com/yt-dlp/yt-dlp/wiki/FAQ"
    "#how-do-i-pass-cookies-to-yt-dlp  for how to manually pass cookies. Also see  https://github.com/yt-dlp/yt-dlp/wiki/Extractors"
    "#exporting-youtube-cookies  for tips on effectively exporting YouTube cookies"
)

SAID: list[tuple[FailureKind, str]] = [
    ("deleted", "Video unavailable"),
    ("deleted", "Video unavailable. This video is not available"),
    ("deleted", "Video unavailable. This video has been removed by the uploader"),
    (
        "deleted",
        "This video is no longer available because the YouTube account associated with this video has been terminated.",
    ),
    ("deleted", "Video unavailable. This video is no longer available due to a copyright claim by SME"),
    ("deleted", "This video has been removed for violating YouTube's Terms of Service"),
    ("deleted", "This video isn't available anymore. This video does not exist"),
    ("private", f"Private video. Sign in if you've been granted access to this video. {COOKIES}"),
    ("private", "This video is private. If the owner of this video has granted you access, please sign in."),
    ("private", "Join this channel to get access to members-only content like this video, and other exclusive perks."),
    ("private", "This video is available to this channel's members on level: Bonus! (or any higher level)."),
    ("private", "This video requires payment to watch"),
    ("private", "This video is only available to Music Premium members"),
    ("private", f"This video is only available for registered users. {COOKIES}"),
    ("private", "Video unavailable. Playback on other websites has been disabled by the video owner"),
    ("age", f"Sign in to confirm your age. This video may be inappropriate for some users. {COOKIES}"),
    ("age", "This video is age-restricted and only available on YouTube"),
    ("geo", "Video unavailable. This video contains content from SME, who has blocked it in your country on copyright grounds"),
    ("geo", "This video is not available in your country"),
    ("bot_check", f"Sign in to confirm you’re not a bot. {COOKIES}"),
    ("bot_check", f"Sign in to confirm you're not a bot. This helps protect our community. Learn more. {COOKIES}"),
    ("bot_check", f"Please sign in. {COOKIES}"),
    ("bot_check", "All player responses are invalid. Your IP is likely being blocked by Youtube"),
    ("bot_check", "Video unavailable. YouTube is requiring a captcha challenge before playback"),
    (
        "rate_limit",
        "Video unavailable. This content isn't available, try again later. The current session has been rate-limited by YouTube for up to"
        " an hour. It is recommended to use `-t sleep` to add a delay between video requests to avoid exceeding the rate limit. For more"
        " information, refer to  https://github.com/yt-dlp/yt-dlp/wiki/Extractors#this-content-isnt-available-try-again-later",
    ),
    ("rate_limit", "Video unavailable. This content isn’t available."),
    ("no_video", "This live event will begin in 3 days."),
    ("no_video", "Premieres in 5 hours"),
    ("no_video", "This live stream recording is not available."),
    ("no_video", "This video is DRM protected"),
    ("no_video", "Requested format is not available. Use --list-formats for a list of available formats"),
    ("other", "We're processing this video. Check back later."),
    ("other", "The page needs to be reloaded."),
    ("other", "Failed to extract any player response"),
]


class Sayer(InfoExtractor):
    """Raises what it is told to."""

    IE_NAME = "youtube"
    _VALID_URL = r"https?://says\.invalid/(?P<id>.+)"
    error: Exception
    warning: str | None = None

    def _real_extract(self, url: str) -> Any:
        if self.warning:
            self.report_warning(self.warning)
        raise self.error


def failure(error: Exception, folder: Path, warning: str | None = None) -> ItemError:
    settings = BatchSettings(sleep=0, ytdlp_opts=f"--add-headers X-Test:{error!r:.20}".replace("'", "").replace('"', "").split()[:2])
    downloader = downloader_for(settings)
    sayer = Sayer()
    sayer.error, sayer.warning = error, warning
    sayer.set_downloader(downloader._yt)
    downloader._yt._ies = {"Sayer": sayer, **downloader._yt._ies}
    downloader._yt._ies_instances["Sayer"] = sayer
    with pytest.raises(ItemError) as caught:
        fetch(ListItem("KEY", "address", "https://says.invalid/abcdefghijk", ""), settings, folder, room_bytes=1)
    assert not list(folder.iterdir())
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "sentence"), SAID)
def test_what_youtube_says(tmp_path: Path, kind: FailureKind, sentence: str) -> None:
    said = failure(ExtractorError(sentence, expected=True), tmp_path)
    assert said.kind == kind
    assert str(said).startswith(sentence.split(". ")[0].rstrip("."))
    assert "ERROR" not in str(said)
    assert "[youtube]" not in str(said)
    assert "https://" not in str(said)


@pytest.mark.slow
def test_what_is_known_by_its_class(tmp_path: Path) -> None:
    geo = failure(GeoRestrictedError("The uploader has not made this video available", countries=["DE"]), tmp_path)
    assert (geo.kind, "--proxy" in str(geo)) == ("geo", True)
    assert failure(UserNotLive(video_id="x"), tmp_path).kind == "no_video"


@pytest.mark.slow
def test_a_fault_of_yt_dlp_is_told_without_its_address_for_reports(tmp_path: Path) -> None:
    said = failure(ExtractorError("Unable to extract player version"), tmp_path)
    assert (said.kind, str(said)) == ("other", "Unable to extract player version.")


@pytest.mark.slow
def test_an_extractor_that_breaks_costs_its_video_only(tmp_path: Path) -> None:
    assert failure(TypeError("'NoneType' object is not subscriptable"), tmp_path).kind == "other"


@pytest.mark.slow
def test_what_a_warning_said_before_counts_where_the_error_says_nothing(tmp_path: Path) -> None:
    error = ExtractorError("Failed to extract any player response")
    assert failure(error, tmp_path, "Unable to download API page: HTTP Error 429: Too Many Requests").kind == "rate_limit"
    assert failure(error, tmp_path, "Unable to download API page: The read operation timed out").kind == "network"


@pytest.mark.parametrize(
    ("cause", "sentence", "kind"),
    [
        (GeoRestrictedError("not here"), "This video is private", "geo"),
        (UserNotLive(video_id="x"), "no", "no_video"),
        (UnsupportedError("https://h/a"), "no", "no_video"),
        (OSError(errno.ENOSPC, "No space left on device"), "no", "disk"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "connection lost", "disk"),
        (OSError(errno.EACCES, "Permission denied"), "no", "other"),
        (TransportError("broken off"), "no", "network"),
        (TransportError("broken off"), "This video is private", "private"),
        (ContentTooShortError(1, 2), "no", "network"),
        (HTTPError(Response(BytesIO(), "https://h/a", {}, status=403)), "no", "private"),
        (HTTPError(Response(BytesIO(), "https://h/a", {}, status=403)), "unable to download video data: HTTP Error 403", "other"),
        (HTTPError(Response(BytesIO(), "https://h/a", {}, status=404)), "unable to download video data: HTTP Error 404", "missing"),
        (HTTPError(Response(BytesIO(), "https://h/a", {}, status=404)), "HTTP Error 404: too many requests", "rate_limit"),
        (RuntimeError("no"), "HTTP Error 404: Not Found", "missing"),
        (RuntimeError("no"), "HTTP Error 451: Unavailable", "geo"),
        (RuntimeError("no"), "The read operation timed out", "network"),
    ],
)
def test_the_class_of_an_error_counts_and_words_that_say_more_than_a_number(cause: Exception, sentence: str, kind: FailureKind) -> None:
    error = RuntimeError(sentence)
    error.__cause__ = cause
    assert item_error(error).kind == kind


def test_colours_passwords_and_long_pages_are_left_out() -> None:
    said = str(item_error(RuntimeError("\x1b[31mERROR:\x1b[0m [x] no https://me:secret@host/v\nat all " + "x" * 10_000)))
    assert said.startswith("no https://host/v at all x")
    assert "secret" not in said
    assert len(said) <= LONGEST + 2


WAITS = {"120": 120.0, "Wed, 21 Oct 2015 07:28:00 GMT": 0.0, "soon": None, "": None, "²": None, "9" * 400: 86400.0, None: None}


@pytest.mark.parametrize(("value", "seconds"), WAITS.items())
def test_how_long_a_server_asks_to_wait(value: str | None, seconds: float | None) -> None:
    from vip.download.errors import _retry_after_s

    assert _retry_after_s(value) == seconds


@pytest.mark.parametrize(
    ("status", "wait", "kind"),
    [
        *[(503, "7", "rate_limit"), (503, None, "network"), (503, "soon", "network"), (408, "7", "rate_limit"), (408, None, "network")],
        *[(429, None, "rate_limit"), (429, "7", "rate_limit"), (404, "7", "missing"), (410, None, "deleted"), (451, None, "geo")],
        *[(401, None, "private"), (302, None, "no_video"), (418, None, "other"), (500, None, "network")],
    ],
)
def test_an_answer_of_a_server_is_known_by_its_number_and_the_time_that_it_states(status: int, wait: str | None, kind: FailureKind) -> None:
    response = Response(BytesIO(), "https://h/a", {"Retry-After": wait} if wait else {}, status=status)
    error = RuntimeError("no")
    error.__cause__ = HTTPError(response)
    found = item_error(error)
    assert (found.kind, found.retry_after_s) == (kind, 7.0 if wait == "7" else None)
    assert str(found).startswith("The connection failed: ") == (kind == "network")


@given(st.text(st.characters()))
def test_any_sentence_has_a_kind_and_a_message(text: str) -> None:
    assert kind_of_sentence(text)
    assert not any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in str(item_error(RuntimeError(text))))


def test_a_date_to_wait_for_is_reckoned_from_now_and_a_day_at_most() -> None:
    from vip.download.errors import _retry_after_s

    soon, late = (datetime.now(UTC) + timedelta(**length) for length in ({"minutes": 10}, {"days": 9}))
    assert _retry_after_s(format_datetime(soon, usegmt=True)) == pytest.approx(600, abs=5)
    assert _retry_after_s(f"{soon:%a, %d %b %Y %H:%M:%S} -0000") == pytest.approx(600, abs=5)  # says no time zone
    assert _retry_after_s(format_datetime(soon.astimezone(timezone(timedelta(hours=2))))) == pytest.approx(600, abs=5)
    assert _retry_after_s(format_datetime(late)) == 86400.0


def test_the_last_warning_that_says_something_counts() -> None:
    log = ["HTTP Error 429: Too Many Requests", "The read operation timed out", "Some formats may be missing"]
    assert item_error(RuntimeError("No."), log).kind == "network"
    assert item_error(RuntimeError("No."), log[:1]).kind == "rate_limit"
    assert item_error(RuntimeError("This video is private"), log).kind == "private"


def test_errors_that_lead_to_each_other_in_a_circle_are_told_once() -> None:
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__context__, other.__context__ = other, one
    assert list(causes(one)) == [one, other]


def test_all_that_led_to_an_error_is_told_wherever_yt_dlp_and_python_keep_it() -> None:
    by_info, by_attribute, by_cause, by_context, by_list, deeper = (RuntimeError(str(number)) for number in range(6))
    by_info.__cause__ = deeper
    error: Any = RuntimeError("all")
    error.exc_info, error.cause, error.unexpected_errors = (RuntimeError, by_info, None), by_attribute, [by_list]
    error.__context__, error.__cause__ = by_context, by_cause
    assert list(causes(error)) == [error, by_info, by_attribute, by_cause, by_context, by_list, deeper]
    assert list(causes(None)) == []


@pytest.mark.parametrize("apostrophe", ["'", "’"])
@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("This content isn't available, try again later", "rate_limit"),
        ("This clip doesn't exist", "deleted"),
        ("Only for this channel's members", "private"),
    ],
)
def test_an_apostrophe_may_be_straight_or_curved(sentence: str, kind: FailureKind, apostrophe: str) -> None:
    assert kind_of_sentence(sentence.replace("'", apostrophe)) == kind
