"""`vip extract`, and the loop over several videos that `vip run` uses too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, Verbose, err, print_json
from vip.cli.console import keyframes as count_of
from vip.cli.inputs import find_videos, run_folders
from vip.clock import clock
from vip.errors import SomeFailedError, VipError

if TYPE_CHECKING:
    from vip.store import Run

EXAMPLES = """[bold]Examples[/bold]
vip extract video.mp4                        12 keyframes into video.vip/
vip extract video.mp4 -n 32 -o frames/       32 of them into frames/
vip extract clips/ -o runs/                  a run folder for each video of a folder
vip extract video.mp4 --json | jq .keyframes
"""


def extract_command(
    videos: options.Videos,
    keyframes: options.Keyframes = None,
    out: options.Out = None,
    sampler: options.Sampler = None,
    pruner: options.Pruner = None,
    embedder: options.Embedder = None,
    detector: options.Detector = None,
    min_sharpness: options.MinSharpness = None,
    format: options.Format = None,  # noqa: A002 - the option's name
    start: options.Start = None,
    end: options.End = None,
    stream: options.Stream = None,
    timeout: options.Timeout = None,
    overwrite: options.Overwrite = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Choose the keyframes of a video and write them with the log of every decision."""
    from vip import registry
    from vip.config import ExtractSettings, resolve
    from vip.pipeline import extract

    console = Console(quiet=quiet, verbose=verbose, as_json=as_json)
    settings = resolve(
        ExtractSettings,
        {
            "keyframes": keyframes,
            "sampler": sampler,
            "pruner": pruner,
            "embedder": embedder,
            "detector": detector,
            "min_sharpness": min_sharpness,
            "format": format,
            "start": start,
            "end": end,
            "stream": stream,
            "timeout": timeout,
        },
    )

    registry.check(sampler=settings.sampler, embedder=settings.embedder, detector=settings.detector)

    def work(video: Path, folder: Path) -> None:
        run = extract(video, out=folder, overwrite=overwrite, settings=settings, observer=console, isolated=True)
        show(run, video, console)

    each(videos, out, work, console)


def each(given: Sequence[Path], out: Path | None, work: Callable[[Path, Path], None], console: Console) -> None:
    """Do the work for each video; one bad file does not stop the rest.

    Raises:
        VipError: of the only video.
        SomeFailedError: some of several failed; failures.jsonl in `out` says which and why.
    """
    videos = find_videos(given)
    several = len(videos) > 1 or videos[0] not in given  # but from a folder
    folders = run_folders(videos, out, several=several)
    if not several:
        work(videos[0], folders[videos[0]])
        return
    from vip import store
    from vip.records import Failure

    log = (out or Path()) / store.FAILURES
    failures: list[Failure] = []
    for video in videos:
        try:
            work(video, folders[video])
        except VipError as exc:
            err(str(exc))
            failure = Failure(item=str(video), kind=type(exc).__name__, message=str(exc), exit_code=exc.exit_code)
            failures.append(failure)
            if console.as_json:
                print_json({"video": str(video), "error": str(exc), "exit_code": exc.exit_code})
    if failures:
        store.make_folder(log.parent)
        store.write_rows(log, failures)
        raise SomeFailedError(f"{len(failures)} of {len(videos)} videos failed; {log} says why. Run the command again to retry only those.")
    if out is not None:
        log.unlink(missing_ok=True)


def show(run: Run, video: Path, console: Console) -> None:
    """The result of an extraction for people, or as JSON."""
    if console.as_json:
        print_json(summary(run, video))
        return
    console.say(f"{video.name}: {count_of(len(run.keyframes))} of {len(run.candidates)} candidates in {run.folder}/keyframes/")
    for keyframe in run.keyframes:
        if keyframe.time_s is not None:
            console.item(clock(keyframe.time_s), keyframe.path.name)
    if run.manifest:
        console.detail(f"Seconds: {', '.join(f'{stage} {seconds:.2f}' for stage, seconds in run.manifest.seconds.items())}.")


def summary(run: Run, video: Path) -> dict[str, Any]:
    """What --json prints of a run."""
    manifest = run.manifest
    return {
        "video": str(video),
        "run": str(run.folder),
        "counts": manifest.counts.model_dump() if manifest and manifest.counts else None,
        "notes": list(run.notes),
        "keyframes": [keyframe.record.model_dump(mode="json") for keyframe in run.keyframes],
    }
