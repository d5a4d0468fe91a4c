"""`vip extract`, and the loop over several videos that `vip run` uses too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, Verbose, print_error, print_json
from vip.cli.inputs import find_videos, is_from_folder, run_folders
from vip.errors import SomeFailedError, UsageError, VipError
from vip.timecode import timecode
from vip.wording import counted

if TYPE_CHECKING:
    from vip.store import Run
    from vip.video import Source

EXAMPLES = """[bold]Examples[/bold]
vip extract video.mp4                        12 keyframes into video.vip/
vip extract video.mp4 -n 32 -o frames/       32 of them into frames/
vip extract video.mp4 -n auto                as many as the video needs
vip extract clips/ -r -o runs/               all videos below a folder
vip extract https://example.org/video.mp4    read in parts from a server
vip extract https://youtu.be/YE7VzlLtp-4     a page of a video site
vip extract 'frames/%04d.png'                pictures in a row
vip extract video.mp4 --start 1m --end 90    half a minute of it
vip extract video.mp4 --sampler shots        a choice of every shot
vip extract --from video.vip -n 6            6 of the same candidates
vip extract video.mp4 --embedder clip        compared by what they mean
vip extract video.mp4 --query "a dog jumps"  what fits the sentence
vip extract video.mp4 --detector transformers:PekingU/rtdetr_r50vd
vip extract video.mp4 --json | jq .keyframes
"""

From = Annotated[
    Path | None,
    options.option("--from", help="Choose again from this run instead of a video; -o is then NAME-nN.vip.", metavar="RUN"),
]
Video = Annotated[
    str | None,
    options.option("--video", help="With --from: where its video is now, for pictures the run lacks.", metavar="VIDEO"),
]


def extract_command(
    context: typer.Context,
    videos: options.VideosOrRun = None,
    out: options.Out = None,
    from_run: From = None,
    video: Video = None,
    recursive: options.Recursive = False,
    overwrite: options.Overwrite = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Choose the keyframes of a video and write them with the log of every decision."""
    from vip.config import ExtractSettings

    console, given = Console(quiet=quiet, verbose=verbose, as_json=as_json), options.given(context, ExtractSettings)
    if from_run is not None:
        _choose_again(from_run, videos, video, out, given, overwrite, console)
    elif video is not None:
        raise UsageError(f"--video {video} goes with --from RUN. Leave --video out to extract from it.")
    elif videos:
        _extract_all(videos, out, given, overwrite, recursive, console)
    else:
        raise UsageError("Give a VIDEO, or a run to choose from again with --from RUN. See `vip extract --help`.")


def _extract_all(
    videos: Sequence[str], out: Path | None, given: dict[str, Any], overwrite: bool, recursive: bool, console: Console
) -> None:
    from vip import registry
    from vip.config import ExtractSettings, resolve
    from vip.extraction.backends import load
    from vip.pipeline import extract

    settings = resolve(ExtractSettings, given, note=console.note)
    registry.check(sampler=settings.sampler, pruner=settings.pruner, embedder=settings.embedder, detector=settings.detector)

    def work(video: Source, folder: Path) -> None:
        run = extract(video, out=folder, overwrite=overwrite, settings=settings, observer=console, isolated=True)
        show(run, video.name, str(video), console)

    process_each(videos, out, work, console, recursive=recursive, prepare=partial(load, settings))


def _choose_again(
    run: Path,
    videos: Sequence[str] | None,
    video: str | None,
    out: Path | None,
    given: dict[str, Any],
    overwrite: bool,
    console: Console,
) -> None:
    """Choose again from a run. Only what the command line says is changed: neither vip.toml nor the environment counts."""
    from vip.pipeline import reselect

    if videos:
        raise UsageError(f"--from {run} names the run to choose from, and {videos[0]} a video. Write --video {videos[0]}, or leave it out.")
    changes = {name: value for name, value in given.items() if value is not None}
    new = reselect(run, out=out, video=video, overwrite=overwrite, observer=console, **changes)
    path = new.manifest.video.path if new.manifest else str(run)
    show(new, PurePath(path).name, path, console)


def process_each(
    given: Sequence[str],
    out: Path | None,
    work: Callable[[Source, Path], None],
    console: Console,
    *,
    recursive: bool,
    prepare: Callable[[], object],
) -> None:
    """Call `work` for each video; one bad file does not stop the rest.

    Args:
        prepare: called once before several videos. It loads the models that the process of each video shares, and fails once if they
            cannot be loaded.

    Raises:
        VipError: the only video failed.
        SomeFailedError: some of several failed; failures.jsonl in `out` says which and why.
    """
    videos, beside, links = find_videos(given, recursive=recursive)
    if beside:
        console.note(f"Passed over {counted(beside, 'picture')} that {'lies' if beside == 1 else 'lie'} beside videos.")
    if links:
        leads = "leads out of its folder. Name it" if links == 1 else "lead out of their folder. Name them"
        console.note(f"Passed over {counted(links, 'link')} that {leads} on the command line to use {'it' if links == 1 else 'them'}.")
    several = recursive or len(videos) > 1 or is_from_folder(videos[0], given)
    folders = run_folders(videos, out, several=several)
    if not several:
        work(videos[0], folders[videos[0]])
        return
    from vip import store
    from vip.records import Failure
    from vip.video import FileSource

    prepare()
    log = (out or Path()) / store.FAILURES
    failures: list[Failure] = []
    for video in videos:
        try:
            work(video, folders[video])
        except VipError as exc:
            print_error(str(exc))
            kind = "missing" if isinstance(video, FileSource) and not store.exists(video.path) else exc.failure_kind
            failures.append(Failure(item=str(video), kind=kind, message=str(exc), exit_code=exc.exit_code))
            if console.as_json:
                print_json({"video": str(video), "error": str(exc), "exit_code": exc.exit_code})
    if failures:
        store.make_folder(log.parent)
        store.write_rows(log, failures)
    elif out is not None:
        log.unlink(missing_ok=True)
    if out is not None:
        show_index(out, console)
    if failures:
        raise SomeFailedError(
            f"{len(failures)} of {counted(len(videos), 'video')} failed; {log} says why. Run the command again to retry only those."
        )


def show_index(folder: Path, console: Console) -> None:
    """Write the index page of a folder of runs, and print where it is."""
    from vip.report.index import run_folders_in, write_index

    if run_folders_in(folder):
        console.write_line(f"Open {write_index(folder)}")


def show(run: Run, name: str, video: str, console: Console) -> None:
    """Print the result of an extraction, for people or as JSON."""
    if console.as_json:
        print_json(summary(run, video))
        return
    console.write_line(
        f"{name}: {counted(len(run.keyframes), 'keyframe')} of {counted(len(run.candidates), 'candidate')} in {run.folder}/keyframes/"
    )
    for keyframe in run.keyframes:
        if keyframe.time_s is not None:
            console.write_item(timecode(keyframe.time_s), keyframe.path.name)
    if run.manifest:
        console.detail(f"Seconds: {', '.join(f'{stage} {seconds:.2f}' for stage, seconds in run.manifest.seconds.items())}.")


def summary(run: Run, video: str) -> dict[str, Any]:
    """Return what --json prints of a run."""
    manifest = run.manifest
    return {
        "video": video,
        "run": str(run.folder),
        "counts": manifest.counts.model_dump() if manifest and manifest.counts else None,
        "notes": list(run.notes),
        "keyframes": [keyframe.record.model_dump(mode="json") for keyframe in run.keyframes],
    }
