"""Features of videos for models that are trained on them, in the form of NExT-QA (Xiao et al. 2021, section 4: 16 clips of 16 frames).

In: videos, a model for the appearance of a clip, and one for its motion. Out: one HDF5 file with `ids` (V names) and `feat`, float32
(V, N, D), the appearance before the motion; or feature maps (V, N, C, h, w). Frames come from vip's reader, those of one clip at a time.
Each video's features lie beside the file until all are there: the same command goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import BadZipFile

import numpy as np

from vip import __version__, files, registry, store
from vip.errors import BackendError, InputError, StoreError, UsageError, VipError
from vip.protocols import ClipFeatures, Extractor, Observer, SilentObserver
from vip.records import Failure, Image
from vip.untrusted import DAMAGE, one_line
from vip.video import FileSource, Source, open_video
from vip.wording import counted, option

LONGEST_SIDE_PX = 640
"""Of decoded frames: models shrink them to about 224 px."""
REQUEST = "request.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRequest:
    """What is extracted."""

    model: str
    """The extractor of the appearance; of one for videos, the motion alone is extracted."""
    motion: str | None = None
    """The extractor of the motion."""
    clips: int = 16
    frames: int = 16
    """Of each clip, one after the other."""
    maps: bool = False
    """Feature maps instead of vectors."""
    device: str = "auto"
    precision: str = "fp32"

    def __post_init__(self) -> None:
        if self.clips < 1 or self.frames < 1:
            raise UsageError(f"{self.clips} clips of {self.frames} frames: both are at least 1.")

    @property
    def content(self) -> dict[str, Any]:
        """What the features depend on; devices differ in the last digits alone."""
        files = {name: _file_state(name) for name in filter(None, (self.model, self.motion))}
        return {**{name: value for name, value in asdict(self).items() if name != "device"}, "checkpoints": files}


def _file_state(model: str) -> str:
    """Return size and time of files of one's own, which may change under the same name; empty for weights of a library."""
    path = Path(model.partition("@")[2] or model.partition(":")[2])
    own = sorted(path.glob("open_clip_*")) if ":" in model and path.is_dir() else [path] if "@" in model and path.is_file() else []
    return ", ".join(f"{state.st_size} bytes of {state.st_mtime_ns}" for state in (one.stat() for one in own))


@dataclass(frozen=True, slots=True)
class FeatureSummary:
    """What was written."""

    path: Path
    shape: tuple[int, ...]
    """Of `feat`; empty where no video could be read."""
    appearance: int
    """So many of the D numbers are appearance."""
    known: int
    """Videos that an earlier call had extracted."""
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class Extractors:
    """The models of a request; one of them may be missing."""

    appearance: Extractor | None
    motion: Extractor | None

    def extract(self, clips: Sequence[Sequence[Image]], maps: bool) -> tuple[ClipFeatures, int]:
        """Return the features, appearance first, and how wide that is."""
        found = [one.extract(clips, maps=maps) for one in (self.appearance, self.motion) if one is not None]
        if maps and len({one.shape[2:] for one in found}) > 1:
            raise UsageError(f"Maps of {' and '.join(str(one.shape[2:]) for one in found)} do not go together. Leave one model out.")
        return np.concatenate(found, axis=1), found[0].shape[1] if self.appearance else 0


def extract_features(
    videos: Sequence[Source], out: Path, request: FeatureRequest, *, overwrite: bool = False, observer: Observer | None = None
) -> FeatureSummary:
    """Write the features of videos; one that cannot be read does not stop the others.

    Raises:
        UsageError: the file is there already, or was begun with other settings.
        InputError: two videos have one id.
        BackendError: a library, weights or the device are missing.
        StoreError: not writable.
    """
    check_h5py()
    observer = observer or SilentObserver()
    videos_by_id = by_id(videos)
    parts = out.with_name(f"{out.name}.parts")
    extractors = open_extractors(request)
    _prepare(out, parts, request, overwrite=overwrite)
    failures: list[Failure] = []
    known = 0
    done: dict[str, Path] = {}
    with observer.track("Extracting features", len(videos_by_id), lambda: f"{len(failures)} failed" if failures else "") as advance:
        for video_id, video in videos_by_id.items():
            part = parts / f"{_part_name(video_id, video)}.npz"
            try:
                if part.is_file():
                    known += 1
                else:
                    features, appearance = extractors.extract(list(clips_of(video, request)), request.maps)
                    if not np.isfinite(features).all():
                        raise InputError(f"{video}: {request.model} gives numbers that are not finite. Try a higher {option('precision')}.")
                    _write_part(part, features, appearance, inside=out.parent)
                done[video_id] = part
            except (InputError, OSError) as exc:
                failures.append(failure_of(video, exc))
                observer.note(str(exc))
            advance()
    shape, appearance = _write_hdf5(out, done, request) if done else ((), 0)
    store.write_failures(out.parent / store.FAILURES, failures)
    if not failures:
        files.remove_folder(parts)
    return FeatureSummary(out, shape, appearance, known, tuple(failures))


def check_h5py() -> None:
    try:
        import h5py  # noqa: F401
    except ImportError as exc:
        raise BackendError("Features are written with h5py, which is not installed. Run: pip install 'vip-keyframes[train]'.") from exc


def by_id(videos: Sequence[Source]) -> dict[str, Source]:
    """Return the videos by their id: the name of the file without its suffix."""
    found: dict[str, Source] = {}
    for video in videos:
        if (other := found.setdefault(video.stem, video)) is not video:
            raise InputError(f"{other} and {video} have one id, {one_line(video.stem)[:60]}. Rename one of them.")
    return found


def _part_name(video_id: str, video: Source) -> str:
    state = video.state()
    return blake2b(f"{video_id} {video.identity} {state}".encode(errors="surrogateescape"), digest_size=12).hexdigest()


def failure_of(video: Source, exc: VipError | OSError) -> Failure:
    if isinstance(video, FileSource) and not store.exists(video.path):
        return Failure(item=str(video), kind="missing", message=str(exc), exit_code=InputError.exit_code)
    kind = exc.failure_kind if isinstance(exc, VipError) else "unreadable"
    return Failure(item=str(video), kind=kind, message=str(exc), exit_code=InputError.exit_code)


def _prepare(out: Path, parts: Path, request: FeatureRequest, *, overwrite: bool) -> None:
    """Make the folder of the parts, or take the one of an earlier call with the same settings."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder. Name a file in it with {option('out')}.")
    if overwrite:
        files.remove_folder(parts)
        out.unlink(missing_ok=True)
    text = json.dumps(request.content, sort_keys=True)
    before = None
    with suppress(OSError):
        before = files.read_bytes(parts / REQUEST, inside=out.parent).decode(errors="replace")
    if before is None and out.exists():
        raise UsageError(f"{out} exists already. Add {option('overwrite')} to replace it, or name another file with {option('out')}.")
    if before is not None and before != text:
        raise UsageError(f"{out} was begun with other settings. Add {option('overwrite')} to begin again, or name another file.")
    store.make_folder(out.parent)
    store.make_folder(parts, inside=out.parent)
    with store.replacing(parts / REQUEST, inside=out.parent) as file:
        file.write(text.encode())


def open_extractors(request: FeatureRequest) -> Extractors:
    """Load the models.

    Raises:
        UsageError: the model of the motion is none of videos, or one gives no maps.
    """
    first, second = (
        registry.extractor(name, device=request.device, precision=request.precision) if name else None
        for name in (request.model, request.motion)
    )
    assert first is not None
    if second is not None and (first.capabilities.is_motion or not second.capabilities.is_motion):
        raise UsageError(
            f"{option('model')} is for the appearance, {option('motion')} for the motion: give a model of pictures, such as"
            " torchvision:resnet101, and one of videos, such as torchvision:r3d_18."
        )
    for one in (first, second):
        if request.maps and one is not None and not one.capabilities.has_maps:
            raise UsageError(f"{one.name} gives no feature maps. Leave {option('maps')} out, or take another model.")
    return Extractors(None, first) if first.capabilities.is_motion else Extractors(first, second)


# ---------------------------------------------------------------- frames


def clip_places(total: int, clips: int, frames: int) -> list[list[int]]:
    """Return the numbers of the frames of each clip, of a video of `total` frames.

    The middles of the clips cut the video into equal parts; a clip that would reach beyond an end repeats the frame there.
    """
    return places_around([total * number // (clips + 1) for number in range(1, clips + 1)], total, frames)


def places_around(middles: Sequence[int], total: int, frames: int) -> list[list[int]]:
    """Return the numbers of `frames` frames around each of these, of a video of `total`."""
    return [[min(max(middle - frames // 2 + step, 0), total - 1) for step in range(frames)] for middle in middles]


def clips_of(video: Source, request: FeatureRequest) -> Iterator[list[Image]]:
    """Yield the frames of each clip, with a longest side of 640 px. A frame that cannot be decoded is its neighbour.

    Raises:
        InputError: the video cannot be read, or no frame of a clip can be decoded.
    """
    with open_video(video) as reader:
        stamps = reader.index.shown_pts
        for number, places in enumerate(clip_places(len(stamps), request.clips, request.frames), 1):
            wanted = [int(stamps[place]) for place in places]
            found = {frame.pts: frame.image for frame in reader.frames(sorted(set(wanted)), longest_side_px=LONGEST_SIDE_PX)}
            if not found:
                raise InputError(f"{video}: no frame of clip {number} of {request.clips} can be decoded.")
            yield [found[min(found, key=distance_to(pts))] for pts in wanted]


def distance_to(pts: int) -> Callable[[int], int]:
    return lambda other: abs(other - pts)


# ---------------------------------------------------------------- files


def _write_part(path: Path, features: ClipFeatures, appearance: int, *, inside: Path) -> None:
    """Write the features of one video."""
    buffer = BytesIO()
    np.savez(buffer, feat=features, appearance=appearance)
    with store.replacing(path, inside=inside) as file:
        file.write(buffer.getvalue())


def _write_hdf5(path: Path, parts: dict[str, Path], request: FeatureRequest) -> tuple[tuple[int, ...], int]:
    """Write the file, one video at a time, and return the shape of `feat` and the width of the appearance."""
    import h5py

    first, appearance = _read_part(next(iter(parts.values())), inside=path.parent)
    shape = first.shape
    try:
        with TemporaryDirectory(dir=next(iter(parts.values())).parent) as private:  # HDF5 would open a link in the place of its file
            partial = Path(private) / "features.h5"
            with h5py.File(partial, "w") as file:
                file.create_dataset("ids", data=list(parts), dtype=h5py.string_dtype())
                feat = file.create_dataset("feat", shape=(len(parts), *shape), dtype="float32")
                for row, part in enumerate(parts.values()):
                    feat[row] = _read_part(part, inside=path.parent)[0]
                feat.attrs["appearance"] = appearance or shape[1]
                feat.attrs["is_motion"] = appearance == 0
                file.attrs.update({"vip": __version__, **{name: str(value) for name, value in request.content.items()}})
            partial.replace(path)
    except OSError as exc:
        raise StoreError(f"{path} cannot be written: {exc.strerror or exc}. Choose another folder with {option('out')}.") from exc
    return (len(parts), *shape), appearance


def _read_part(path: Path, *, inside: Path) -> tuple[ClipFeatures, int]:
    try:
        with files.open_zip(path, inside=inside) as archive:
            return store.array_of(archive.read("feat.npy")), int(store.array_of(archive.read("appearance.npy")))
    except (OSError, BadZipFile, *DAMAGE) as exc:
        raise StoreError(f"{path} is damaged ({exc}). Delete it and run the command again.") from exc


def summary_line(done: FeatureSummary) -> str:
    """Return what was written in one sentence."""
    sizes = " × ".join(map(str, done.shape[1:]))
    known = f", {done.known:,} of them known" if done.known else ""
    return f"{counted(done.shape[0], 'video')}{known}, features of {sizes} each, in {done.path}"
