"""The pictures of a sample, read and encoded for an engine.

A file of samples names the run folders that its pictures lie in. One of somebody else may name any of this machine, so only those are
opened that lie beside it or that the command names, until its user trusts the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path

from vip import files
from vip.captioning.encoded_pictures import encode_keyframe
from vip.errors import InputError
from vip.protocols import Picture
from vip.store import KeyframePicture, Run, load_run
from vip.tasks.files import is_trusted
from vip.tasks.records import KeyframeDescription, Sample, SamplePicture
from vip.untrusted import one_line

RUNS_OPEN = 64
MOST_LETTERS = 200  # of a path of others in a message


@dataclass(frozen=True)
class PictureSources:
    """The run folders that the pictures of a file of samples are read from.

    Args:
        samples: the file. What lies in its folder may be opened; of a file that this machine made, or that its user trusts, everything.
        named: folders that the command names; what lies in them may be opened too.
    """

    samples: Path
    named: tuple[Path, ...] = ()

    def allows(self, source: str) -> bool:
        """Return whether a run folder may be opened."""
        return any(files.lies_in(Path(source), folder) for folder in (self.samples.parent, *self.named)) or self._is_trusted

    def check(self, sample: str, source: str) -> None:
        """Refuse a source that only the file names.

        Raises:
            InputError: it may not be opened.
        """
        if not self.allows(source):
            raise InputError(
                f"{one_line(sample)[:MOST_LETTERS]} shows pictures of {one_line(source)[:MOST_LETTERS]}, and another machine made"
                f" {self.samples}: what lies elsewhere is not opened unasked. Look at the file, then run `vip trust {self.samples}`."
            )

    def check_all(self, samples: Iterable[Sample]) -> None:
        """Check every picture of the samples, each source once; errors as of `check`."""
        known: set[str] = set()
        for sample in samples:
            for picture in pictures_of(sample):
                if picture.source not in known:
                    self.check(sample.id, picture.source)
                    known.add(picture.source)

    @cached_property
    def _is_trusted(self) -> bool:
        return is_trusted(self.samples)


def pictures_of(sample: Sample) -> Iterator[SamplePicture]:
    """Yield the pictures that a sample shows, in order."""
    for piece in sample.context:
        if isinstance(piece, SamplePicture):
            yield piece
        elif isinstance(piece, KeyframeDescription) and piece.picture is not None:
            yield piece.picture


def load_pictures(sample: Sample, longest_side_px: int, sources: PictureSources) -> tuple[Picture, ...]:
    """Return the pictures of a sample as JPEG.

    Raises:
        InputError: one is missing, damaged, another than when the sample was made, or may not be opened.
    """
    return tuple(load_picture(picture, sample.id, longest_side_px, sources) for picture in pictures_of(sample))


def load_picture(picture: SamplePicture, sample: str, longest_side_px: int, sources: PictureSources) -> Picture:
    """Return one picture of a sample as JPEG; errors as of `load_pictures`."""
    sources.check(sample, picture.source)
    keyframes = _keyframes(picture.source)
    if picture.keyframe_id not in keyframes:
        raise InputError(f"{sample}: {picture.source} has no keyframe {picture.keyframe_id} any more. Make the samples again.")
    keyframe = keyframes[picture.keyframe_id]
    if picture.sha256 not in {None, sha256(keyframe.data).hexdigest()}:
        raise InputError(f"{sample}: {keyframe.path} has changed since the samples were made. Make them again.")
    return encode_keyframe(keyframe, longest_side_px)


@lru_cache(maxsize=RUNS_OPEN)
def _keyframes(folder: str) -> dict[str, KeyframePicture]:
    run: Run = load_run(folder)
    return {keyframe.id: keyframe for keyframe in run.keyframes}
