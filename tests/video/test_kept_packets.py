"""Decoding from packets that were kept while the file was indexed gives the very pictures that reading it again gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.media import Clips
from vip.video import Video


@pytest.mark.parametrize("name", ["h264.mp4", "hevc.mp4", "vp9.webm", "h264.mkv"])
@pytest.mark.parametrize("kept", ["all", "sync only", "none"])
def test_a_gop_that_is_kept_in_part_is_decoded_whole(clips: Clips, name: str, kept: str) -> None:
    with Video(clips(name).path) as video:
        expected = {frame.pts: frame.image for frame in video.frames(video.index.shown_pts.tolist())}
    with Video(clips(name).path) as video:
        for position in range(len(video.index)):
            if kept == "none" or (kept == "sync only" and not video.index.is_sync[position]):
                video._cached._things.pop(position, None)
        backwards = video.index.shown_pts.tolist()[::-3]
        for pts in backwards:
            (frame,) = video.frames([pts])
            assert np.array_equal(frame.image, expected[pts])
        assert not video.losses
