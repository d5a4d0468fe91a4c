"""Reading video: `Video` opens a file, indexes its packets, and decodes just the frames that are asked for."""

from vip.video.container import VIDEO_SUFFIXES, sha256_of
from vip.video.reader import Video

__all__ = ["VIDEO_SUFFIXES", "Video", "sha256_of"]
