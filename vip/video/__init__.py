"""Video input: `open_video` opens what the user named, indexes it, and decodes just the frames that are asked for."""

from vip.video.open import Reader, open_video
from vip.video.reader import GLANCE_SIDE_PX, SHORT_FRAMES, Video
from vip.video.source import VIDEO_SUFFIXES, AddressSource, DownloadedSource, FileSource, PicturesSource, Source, source_of

__all__ = [
    "GLANCE_SIDE_PX",
    "SHORT_FRAMES",
    "VIDEO_SUFFIXES",
    "AddressSource",
    "DownloadedSource",
    "FileSource",
    "PicturesSource",
    "Reader",
    "Source",
    "Video",
    "open_video",
    "source_of",
]
