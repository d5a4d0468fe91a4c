"""`vip features`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vip.cli import options
from vip.cli.completion import backends
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.wording import counted

if TYPE_CHECKING:
    from vip.records import Failure
    from vip.tasks.video_features import FeatureRequest
    from vip.video import Source

EXAMPLES = """[bold]Examples[/bold]
vip features clips/ -r --model torchvision:resnet101 -o app.h5
vip features clips/ --model torchvision:resnet18 --motion torchvision:r3d_18
vip features clips/ --model open_clip:ViT-B-32/laion2b_s34b_b79k -o clip.h5
vip features clips/ --model torchvision:resnet101@mine.pt --clips 8 -o a.h5
vip features clips/ --model torchvision:resnet101 --maps -o maps.h5
vip features clips/ --model open_clip:ViT-B-32/openai --every 1.5 -o tv/
"""

Model = Annotated[
    str,
    options.option(
        "--model", help="Model of the appearance: torchvision:NAME, open_clip:NAME.", metavar="NAME", complete=backends("extractor")
    ),
]
Motion = Annotated[
    str | None,
    options.option(
        "--motion", help="Model of the motion, behind it: torchvision:r3d_18, …", metavar="NAME", complete=backends("extractor")
    ),
]
Out = Annotated[
    Path | None,
    options.option("--out", "-o", help="The HDF5 file; with --every a folder.", metavar="FILE", default="features.h5, features"),
]
Every = Annotated[
    float | None,
    options.option("--every", help="A feature each so many seconds, NAME.npz a video, for VALUE: 1.5.", metavar="SECONDS"),
]
Clips = Annotated[int, options.option("--clips", help="Clips of each video, at even distances.", metavar="N", default="16")]
Frames = Annotated[int, options.option("--frames", help="Frames of each clip, one after the other.", metavar="N", default="16")]
Maps = Annotated[bool, options.switch("--maps", help="Feature maps before the last pooling, for stvqa, instead of vectors.")]
Device = Annotated[str, options.option("--device", help="Where models run: auto, cpu, cuda, cuda:1, mps.", metavar="NAME", default="auto")]
Precision = Annotated[str, options.option("--precision", help="Of models: fp32, bf16, fp16 or auto.", metavar="NAME", default="fp32")]
Overwrite = Annotated[bool, options.switch("--overwrite", help="Replace the file, and begin again.")]


def features_command(
    videos: options.Videos,
    model: Model,
    motion: Motion = None,
    out: Out = None,
    every: Every = None,
    clips: Clips = 16,
    frames: Frames = 16,
    maps: Maps = False,
    recursive: options.Recursive = False,
    device: Device = "auto",
    precision: Precision = "fp32",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Extract features of videos for models that are trained on them: HDF5 in the form of NExT-QA, or files in that of VALUE."""
    from vip import registry, store
    from vip.cli.inputs import find_videos
    from vip.tasks.video_features import FeatureRequest, extract_features, summary_line

    console = Console(quiet=quiet, as_json=as_json)
    out = out or (store.unlinked(Path("features")) if every else Path("features.h5"))
    for name in filter(None, (model, motion)):
        registry.check(extractor=name)
    request = FeatureRequest(model=model, motion=motion, clips=clips, frames=frames, maps=maps, device=device, precision=precision)
    found = find_videos(videos, recursive=recursive)
    store.make_folder(out.parent)
    if every is not None:
        _extract_timed(found.videos, out, request, every, overwrite=overwrite, console=console)
        return
    done = extract_features(found.videos, out, request, overwrite=overwrite, observer=console)
    if as_json:
        shape = {"shape": list(done.shape), "appearance": done.appearance, "known": done.known}
        print_json({"path": str(out), **shape, "failed": len(done.failures)})
    elif done.shape:
        console.write_line(summary_line(done))
    _fail_where_some_did(done.failures, found.videos, out)


def _extract_timed(
    videos: Sequence[Source], out: Path, request: FeatureRequest, every: float, *, overwrite: bool, console: Console
) -> None:
    """Write a file a video, and say how many features there are."""
    from vip.tasks.timed_features import extract_timed_features

    done = extract_timed_features(videos, out, request, every, overwrite=overwrite, observer=console)
    if console.as_json:
        print_json({"path": str(out), "videos": done.videos, "features": done.features, "known": done.known, "failed": len(done.failures)})
    else:
        console.write_line(done.sentence)
    _fail_where_some_did(done.failures, videos, out)


def _fail_where_some_did(failures: Sequence[Failure], videos: Sequence[Source], out: Path) -> None:
    from vip import store
    from vip.errors import SomeFailedError

    if failures:
        raise SomeFailedError(
            f"{len(failures):,} of {counted(len(videos), 'video')} failed; {out.parent / store.FAILURES} says why."
            " The same command tries them again."
        )
