"""The parameters of yt-dlp: vip's own, those of the settings, and those that the user passes on with `--ytdlp-opts`.

yt-dlp's own parser reads the options of the user. Only those in `PASSED_ON` are allowed: the others write elsewhere, start programs,
fetch more than one video, or have an option of vip.
"""

from __future__ import annotations

import io
import optparse
import shutil
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from vip.config import BatchSettings
from vip.errors import BackendError, UsageError
from vip.wording import option

_SAME = (
    *("format", "format_sort", "format_sort_force", "check_formats", "prefer_free_formats", "dynamic_mpd", "hls_use_mpegts"),
    *("allowed_extractors", "extractor_args", "js_runtimes", "remote_components", "cachedir", "writeautomaticsub"),
    *("socket_timeout", "source_address", "impersonate", "prefer_insecure", "http_chunk_size", "concurrent_fragment_downloads"),
    *("retries", "fragment_retries", "extractor_retries", "file_access_retries", "skip_unavailable_fragments", "throttledratelimit"),
    *("sleep_interval", "max_sleep_interval", "sleep_interval_requests", "sleep_interval_subtitles", "buffersize", "noresizebuffer"),
    *("username", "password", "twofactor", "videopassword", "usenetrc", "netrc_location", "ap_mso", "ap_username", "ap_password"),
    *("cookiesfrombrowser", "client_certificate", "client_certificate_key", "client_certificate_password"),
)
PASSED_ON = {
    **{name: name for name in _SAME},
    "headers": "http_headers",
    "retry_sleep": "retry_sleep_functions",
    "legacy_server_connect": "legacyserverconnect",
    "no_check_certificate": "nocheckcertificate",
}
"""Name in the parser of yt-dlp -> name of the parameter."""

VIP_OPTIONS = {"ratelimit": "--rate-limit", "proxy": "--proxy", "cookiefile": "--cookies", "max_filesize": "--disk-budget"}
RUNTIMES = ("deno", "node", "quickjs")
"""JavaScript runtimes that run the code of a site in a sandbox; Bun does not."""

# A file without sound is smaller, and needs no ffmpeg to be merged. H.264 is the quickest to decode.
WITHOUT_SOUND = {"format": "bv*", "format_sort": ["res:720", "fps:30", "hdr:sdr", "vcodec:h264", "+hasaud", "ext:mp4", "proto"]}
WITH_SOUND = {"format": "bv*+ba/b/bv*", "format_sort": ["res:720", "fps:30", "hdr:sdr", "vcodec:h264", "ext:mp4", "proto"]}
WITH_SOUND_UNMERGED = {**WITH_SOUND, "format": "b/bv*"}

NOT_INSTALLED = "Fetching videos needs yt-dlp. Install it with pip install 'vip-keyframes[batch]'."


def parameters(settings: BatchSettings) -> dict[str, Any]:
    """Return the parameters of `yt_dlp.YoutubeDL`.

    Raises:
        UsageError: a bad option in `--ytdlp-opts`, or cookies that cannot be read.
        BackendError: yt-dlp is not installed.
    """
    quality = WITHOUT_SOUND if not settings.audio else WITH_SOUND if shutil.which("ffmpeg") else WITH_SOUND_UNMERGED
    return {
        **{"retries": 2, "fragment_retries": 3, "extractor_retries": 1, "file_access_retries": 1, "socket_timeout": 20.0},
        **{"sleep_interval": settings.sleep, "sleep_interval_requests": settings.sleep, "sleep_interval_subtitles": settings.sleep},
        **{"js_runtimes": {name: {} for name in RUNTIMES}, "skip_unavailable_fragments": False, **quality},
        **parse_ytdlp_options(settings.ytdlp_opts),
        **{"quiet": True, "noprogress": True, "color": "never", "noplaylist": True, "playlist_items": "0", "outtmpl": "video.%(ext)s"},
        **{"overwrites": True, "updatetime": False, "fixup": "never", "merge_output_format": "mp4/mkv"},
        **{"external_downloader": {"default": "native"}, "cookiefile": cookies(settings.cookies), "proxy": settings.proxy},
        **{"ratelimit": settings.rate_limit, "enable_file_urls": False, "default_search": "error"},
    }


def parse_ytdlp_options(options: Sequence[str]) -> dict[str, Any]:
    """Return the parameters that these words of yt-dlp's command line set, and no others.

    Raises:
        UsageError: an option that yt-dlp does not know, or that vip does not pass on.
    """
    if not options:
        return {}
    try:
        from yt_dlp import parse_options
        from yt_dlp.options import create_parser
    except ImportError as exc:
        raise BackendError(NOT_INSTALLED) from exc
    parser = create_parser()
    values = _Values(parser.defaults)
    _, addresses = _call_quietly(lambda: parser.parse_args(list(options), values))
    if addresses:
        raise UsageError(f"--ytdlp-opts {addresses[0]!r}: this is no option. Name videos in the list.")
    for login, secret in (("username", "password"), ("ap_username", "ap_password")):
        if login in values.given and secret not in values.given:  # yt-dlp would ask for it on the terminal, for each video
            raise UsageError(f"--ytdlp-opts --{login.replace('_', '-')} goes with --{secret.replace('_', '-')}. Give both, or --netrc.")
    for name in sorted(values.given - PASSED_ON.keys()):
        spelling = next((option.get_opt_string() for option in _options_of(parser) if option.dest == name), name)
        instead = f"Use vip's own {VIP_OPTIONS[name]}." if name in VIP_OPTIONS else "Leave it out; it would change what vip relies on."
        raise UsageError(f"--ytdlp-opts {spelling}: vip does not pass this on to yt-dlp. {instead}")
    parsed = _call_quietly(lambda: parse_options(list(options))).ydl_opts
    return {PASSED_ON[name]: parsed[PASSED_ON[name]] for name in values.given}


def cookies(path: Path | None) -> io.StringIO | None:
    """Return the text of the file, since yt-dlp writes into a file that it is given, and many processes share it.

    Raises:
        UsageError: it cannot be read, or is not in Netscape's format.
    """
    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is no text"
        raise UsageError(
            f"{option('cookies', path)} cannot be read: {why}. Export the cookies of your browser in Netscape's format."
        ) from exc
    lines = [line.removeprefix("#HttpOnly_") for line in text.splitlines()]
    rows = [line for line in lines if line.strip() and not line.startswith("#")]
    if not all(len(row.split("\t")) == 7 for row in rows):
        raise UsageError(
            f"{option('cookies', path)} is not in Netscape's format: 7 columns with tabs between them. Export it as cookies.txt."
        )
    return io.StringIO(text)


class _Values(optparse.Values):
    """Values that remember which of them were given, also where these equal the default."""

    def __init__(self, defaults: dict[str, Any]) -> None:
        self.__dict__["given"] = set()
        super().__init__(defaults)
        self.given.clear()

    given: set[str]

    def __setattr__(self, name: str, value: Any) -> None:
        self.given.add(name)
        super().__setattr__(name, value)


def _options_of(parser: Any) -> list[optparse.Option]:
    return [option for group in (parser, *parser.option_groups) for option in group.option_list]


def _call_quietly(parse: Callable[[], Any]) -> Any:
    """Call yt-dlp's parser, which would print and end the program."""
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return parse()
    except optparse.OptParseError as exc:
        why = str(exc).strip().splitlines()[-1].rpartition("error: ")[2]
        raise UsageError(f"--ytdlp-opts: {why}. Options are written as for yt-dlp, such as --ytdlp-opts '--retries 5'.") from exc
    except SystemExit as exc:
        raise UsageError("--ytdlp-opts: --help and --version are no options for a download. Leave them out.") from exc
