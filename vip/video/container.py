"""Opening of a file: its container, its video stream, its decoder; and one sentence for each way in which that fails."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import av
import av.error
from av.container import InputContainer
from av.stream import Discard, Disposition
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from vip.errors import InputError
from vip.video.local import Local, LocalFile
from vip.video.size import MOST_PIXELS, check_size
from vip.video.source import AddressSource, FileSource
from vip.video.stall_guard import inside_ffmpeg
from vip.wording import option

if TYPE_CHECKING:
    from vip.video.remote import Remote, RemoteFile

NOT_VIDEO = frozenset({"tty", "ass", "srt", "webvtt"})  # containers in which FFmpeg would draw or carry text
PLAYLISTS = frozenset({"hls", "applehttp", "concat", "dash", "imf", "sdp", "sap", "rtp", "rtsp", "vobsub", "ism"})  # they open other files
PLAYLIST_STARTS = (b"#EXTM3U", b"ffconcat")
NOTHING_DECODES = "{}: not one frame can be decoded. The file is damaged, or its codec is unknown here (`vip doctor`)."
ALPHA_DECODERS = {"vp8": "libvpx", "vp9": "libvpx-vp9"}  # FFmpeg's own VP8 and VP9 decoders drop the alpha channel
MOST_STRETCHED = 16  # pixel aspect ratios beyond this are no video's
BUFFER_BYTES = 2**16  # read at once from a Python file: half the calls of the usual 32 KiB, and little too much after a seek
ANY_METADATA: dict[str, Any] = {"metadata_errors": "replace"} if int(av.__version__.partition(".")[0]) < 19 else {}
"""Tags that are not valid UTF-8 are no reason not to open a file: PyAV 18 needs an option for it, PyAV 19 no longer takes the option."""
SILENT_DECODERS = frozenset({"vp8", "apng"})  # they never say that a frame is damaged


def open_container(held: Local | Remote, *, which: int = 0) -> tuple[InputContainer, VideoStream, LocalFile | RemoteFile]:
    """Open a file and choose one of its video streams; the other streams are not read.

    FFmpeg gets the bytes from Python and opens nothing itself. Close the file behind the container.

    Args:
        which: of the video streams, counted from 0 without cover pictures.

    Raises:
        InputError: one sentence for each way in which a file can be no video.
    """
    source = held.source
    file: LocalFile | RemoteFile | None = None
    container: InputContainer | None = None
    try:
        file = held.open()
        _check_start(source, file)
        with inside_ffmpeg:
            container = av.open(cast(Any, file), options=single_file_options(), buffer_size=BUFFER_BYTES, **ANY_METADATA)
        stream = _choose_stream(container, source, which)
        file.mark_opened()
        return container, stream, file
    except BaseException as exc:
        for opened in (container, file):
            if opened is not None:
                opened.close()
        if isinstance(exc, PermissionError):
            raise InputError(f"{source} may not be read (permission denied).") from exc
        if isinstance(exc, av.error.FFmpegError):
            raise InputError(f"{source} is not a video that FFmpeg can read ({exc.strerror}). Is it damaged or incomplete?") from exc
        if isinstance(exc, OSError):
            raise InputError(f"{source} cannot be read: {exc.strerror}.") from exc
        raise


def _check_start(source: FileSource | AddressSource, file: LocalFile | RemoteFile) -> None:
    start = file.read(16)
    file.seek(0)
    if start.startswith(PLAYLIST_STARTS):
        raise InputError(f"{source} is a playlist: it holds no pictures and only names other files. Give one of those.")


def _choose_stream(container: InputContainer, source: FileSource | AddressSource, which: int) -> VideoStream:
    moving = [stream for stream in container.streams.video if not stream.disposition & Disposition.attached_pic]
    streams = [stream for stream in moving if stream.codec_context]
    if moving and not streams:
        raise InputError(f"{source}: the codec of its pictures is unknown here (`vip doctor`).")
    if not streams or not NOT_VIDEO.isdisjoint(container.format.name.split(",")):
        kinds = "text" if streams else _kinds_of(container)
        raise InputError(f"{source} holds no video stream, only {kinds}. Give a file with pictures.")
    if which >= len(streams):
        listed = "; ".join(f"{number}: {_describe_stream(stream)}" for number, stream in enumerate(streams))
        raise InputError(f"{source} has no video stream {which}. Choose with {option('stream')} among: {listed}.")
    chosen = streams[which]
    check_size(str(source), chosen.width, chosen.height, pixel_aspect_of(chosen))
    for stream in container.streams:
        if stream is not chosen:
            stream.discard = Discard.all
    return chosen


def pixel_aspect_of(stream: VideoStream) -> Fraction:
    """Return the width of a stored pixel in units of its height; 1 where the file says nothing, or what only damage can say."""
    stated = stream.sample_aspect_ratio or Fraction(1)
    return stated if 1 / MOST_STRETCHED <= stated <= MOST_STRETCHED else Fraction(1)


def _describe_stream(stream: VideoStream) -> str:
    language = stream.metadata.get("language", "und")
    return f"{stream.codec_context.codec.canonical_name} {stream.width}x{stream.height}" + (f" ({language})" if language != "und" else "")


def _kinds_of(container: InputContainer) -> str:
    """Return what a file without moving pictures holds, in words; pictures that are left are the cover of its sound."""
    return " and ".join(sorted({"a cover picture" if stream.type == "video" else stream.type for stream in container.streams})) or "nothing"


def single_file_options() -> dict[str, str]:
    """Return options that keep FFmpeg from opening anything but the file itself, whatever the file says."""
    formats = [name for name in sorted(av.formats_available) if PLAYLISTS.isdisjoint(name.split(","))]
    whole = {"protocol_whitelist": "file", "format_whitelist": ",".join(formats), "pattern_type": "none"}
    return {**whole, "max_pixels": str(MOST_PIXELS)}  # the decoder that FFmpeg uses while opening obeys it too


def decoder_of(stream: VideoStream, threads: int) -> VideoCodecContext:
    """Return a decoder that refuses pictures of absurd size, also where the size changes in the middle of the stream."""
    context = stream.codec_context
    tags = {name.lower(): value for name, value in stream.metadata.items()}  # as a tag of its own it is ALPHA_MODE
    if tags.get("alpha_mode") == "1" and context.name in ALPHA_DECODERS:
        context = cast(VideoCodecContext, av.CodecContext.create(ALPHA_DECODERS[context.name], "r"))
    if context.name in SILENT_DECODERS:
        threads = 1
    context.thread_type = "NONE" if threads == 1 else "AUTO"
    context.thread_count = threads
    context.options = {"max_pixels": str(MOST_PIXELS)}
    if threads != 1:
        context.options |= {"err_detect": "explode"}  # say what is damaged: threads cannot be trusted with it
    return context
