"""The pictures of a sample, read and encoded for an engine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from vip.captioning.encoded_pictures import encode_jpeg, encode_keyframe
from vip.errors import InputError
from vip.protocols import Picture
from vip.records import Image
from vip.store import KeyframePicture, Run, load_run
from vip.tasks.records import KeyframeDescription, Sample, SamplePicture
from vip.video import FileSource, open_video

RUNS_OPEN = 64


def pictures_of(sample: Sample) -> Iterator[SamplePicture]:
    """Yield the pictures that a sample shows, in order."""
    for piece in sample.context:
        if isinstance(piece, SamplePicture):
            yield piece
        elif isinstance(piece, KeyframeDescription) and piece.picture is not None:
            yield piece.picture


def load_pictures(sample: Sample, longest_side_px: int) -> tuple[Picture, ...]:
    """Return the pictures of a sample as JPEG.

    Raises:
        InputError: one is missing, damaged, or another than when the sample was made.
    """
    return tuple(load_picture(picture, sample.id, longest_side_px) for picture in pictures_of(sample))


def load_picture(picture: SamplePicture, sample: str, longest_side_px: int) -> Picture:
    """Return one picture of a sample as JPEG; errors as of `load_pictures`."""
    if picture.keyframe_id is None:
        return encode_jpeg(_frame(picture), longest_side_px)
    keyframes = _keyframes(picture.source)
    if picture.keyframe_id not in keyframes:
        raise InputError(f"{sample}: {picture.source} has no keyframe {picture.keyframe_id} any more. Make the samples again.")
    keyframe = keyframes[picture.keyframe_id]
    if picture.sha256 not in {None, sha256(keyframe.data).hexdigest()}:
        raise InputError(f"{sample}: {keyframe.path} has changed since the samples were made. Make them again.")
    return encode_keyframe(keyframe, longest_side_px)


def _frame(picture: SamplePicture) -> Image:
    with open_video(FileSource(Path(picture.source))) as video:
        wanted = [pts for pts in video.index.shown_pts.tolist() if pts == picture.pts]
        for frame in video.frames(wanted):
            return frame.image
    raise InputError(f"{picture.source} shows no frame with PTS {picture.pts}. Make the samples again.")


@lru_cache(maxsize=RUNS_OPEN)
def _keyframes(folder: str) -> dict[str, KeyframePicture]:
    run: Run = load_run(folder)
    return {keyframe.id: keyframe for keyframe in run.keyframes}
