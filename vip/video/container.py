"""Opening a file: its container, its video stream, its decoder; and one sentence for each way in which that fails."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import cast

import av
import av.error
from av.container import InputContainer
from av.stream import Discard, Disposition
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from vip.errors import InputError
from vip.video.watch import inside_ffmpeg

VIDEO_SUFFIXES = frozenset(
    {".3gp", ".avi", ".divx", ".f4v", ".flv", ".gif", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts"}
    | {".mxf", ".ogm", ".ogv", ".ts", ".vob", ".webm", ".wmv"}
)
NOT_VIDEO = frozenset({"tty", "ass", "srt", "webvtt"})  # containers in which FFmpeg would draw or carry text
PLAYLISTS = frozenset({"hls", "applehttp", "concat", "dash", "imf", "sdp", "sap", "rtp", "rtsp", "vobsub", "ism"})  # they open other files
PLAYLIST_STARTS = (b"#EXTM3U", b"ffconcat")
NOTHING_DECODES = "{}: not one frame can be decoded. The file is damaged, or its codec is unknown here (`vip doctor`)."
ALPHA_DECODERS = {"vp8": "libvpx", "vp9": "libvpx-vp9"}  # FFmpeg's own VP8 and VP9 decoders drop the alpha channel
SILENT_DECODERS = frozenset({"vp8"})  # they never say that a frame is damaged


def open_container(path: Path) -> tuple[InputContainer, VideoStream]:
    """Open a local file and find its video stream; other streams are not read.

    Raises:
        InputError: one sentence for each way in which a file can be no video.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a video.")
        if not path.exists():
            raise InputError(f"{path} does not exist. Check the path.")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty (0 bytes). Copy or download it again.")
        with path.open("rb") as file:
            if file.read(16).startswith(PLAYLIST_STARTS):
                raise InputError(f"{path} is a playlist: it holds no pictures and only names other files. Give one of those.")
        with inside_ffmpeg:
            container = av.open(f"file:{path.absolute()}", options=_one_file_only(), metadata_errors="replace")
    except PermissionError as exc:
        raise InputError(f"{path} may not be read (permission denied).") from exc
    except (av.error.FFmpegError, OSError) as exc:
        raise InputError(f"{path} is not a video that FFmpeg can read ({exc.strerror}). Is it damaged or incomplete?") from exc
    streams = [stream for stream in container.streams.video if not stream.disposition & Disposition.attached_pic]
    if streams and not any(stream.codec_context for stream in streams):
        container.close()
        raise InputError(f"{path}: the codec of its pictures is unknown here (`vip doctor`).")
    streams = [stream for stream in streams if stream.codec_context]
    if not streams or not NOT_VIDEO.isdisjoint(container.format.name.split(",")):
        kinds = "text" if streams else _kinds_of(container)
        container.close()
        raise InputError(f"{path} holds no video stream, only {kinds}. Give a file with pictures.")
    for stream in container.streams:
        if stream is not streams[0]:
            stream.discard = Discard.all
    return container, streams[0]


def _kinds_of(container: InputContainer) -> str:
    """What a file without moving pictures holds, in words; pictures that are left are the cover of its sound."""
    return " and ".join(sorted({"a cover picture" if stream.type == "video" else stream.type for stream in container.streams})) or "nothing"


def _one_file_only() -> dict[str, str]:
    """Options that keep FFmpeg from opening anything but the file itself, whatever the file says."""
    formats = [name for name in sorted(av.formats_available) if PLAYLISTS.isdisjoint(name.split(","))]
    return {"protocol_whitelist": "file", "format_whitelist": ",".join(formats), "pattern_type": "none"}


def decoder_of(stream: VideoStream, threads: int) -> VideoCodecContext:
    context = stream.codec_context
    tags = {name.lower(): value for name, value in stream.metadata.items()}  # as a tag of its own it is ALPHA_MODE
    if tags.get("alpha_mode") == "1" and context.name in ALPHA_DECODERS:
        context = cast(VideoCodecContext, av.CodecContext.create(ALPHA_DECODERS[context.name], "r"))
    if context.name in SILENT_DECODERS:
        threads = 1
    context.thread_type = "NONE" if threads == 1 else "AUTO"
    context.thread_count = threads
    if threads != 1:
        context.options = {"err_detect": "explode"}  # say what is damaged: threads cannot be trusted with it
    return context


def sha256_of(path: Path) -> str:
    """Hex digest of the whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
