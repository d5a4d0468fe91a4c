"""`vip trust`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vip import trust
from vip.cli import options
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.errors import UsageError
from vip.wording import counted

EXAMPLES = """[bold]Examples[/bold]
vip trust                     vip.toml here, as it is now
vip trust clips/vip.toml      that of another folder
vip trust video.vip/          a run of another machine: its video, its batches
vip trust corpus/             a batch of another machine, to continue it
vip trust samples.jsonl       samples of another machine: the runs they show
vip trust --revoke            take it back
"""

SAMPLES_SUFFIX = ".jsonl"
What = Annotated[
    Path, typer.Argument(help="A vip.toml, a run folder, a data set of vip batch, or a file of samples.", show_default="vip.toml")
]
Revoke = Annotated[bool, options.switch("--revoke", help="Trust it no longer.")]


def trust_command(what: What = Path("vip.toml"), revoke: Revoke = False, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Allow a vip.toml, a run or samples of somebody else to name servers, keys, files and addresses.

    A vip.toml in the current folder may set numbers and choices. The rest counts once you trust the file, until the file changes. Of a
    run from another machine, vip then opens the video and collects the batches; a batch continues with its list and its settings. Of
    samples from another machine (NAME.jsonl), vip then opens the run folders that they name, until the file changes.
    """
    from vip import store

    console = Console(quiet=quiet, as_json=as_json)
    if store.is_folder(what):
        allowed = _trust_folder(what, revoke)
    else:
        allowed = (_trust_samples if what.suffix == SAMPLES_SUFFIX else _trust_settings)(what, revoke)
    if as_json:
        print_json({"path": str(what), "trusted": not revoke, "allowed": allowed})
        return
    for line in allowed:
        console.write_line(f"  {line}")
    console.write_line(f"{what} is {'no longer ' if revoke else ''}trusted{'' if revoke else ' as it is now'}.")


def _trust_settings(path: Path, revoke: bool) -> list[str]:
    """Trust a file of settings, and return what it may set now."""
    from vip.config import read_settings, tables_in

    content = read_settings(path)
    if content is None:
        raise UsageError(f"{path} does not exist. Give a vip.toml, a run folder, a data set or samples.")
    tables = tables_in(path, content)
    if revoke:
        trust.distrust(path, content)
    else:
        trust.trust(path, content)
    said = ((command, *item) for command, table in tables.items() for item in table.items())
    return [f"[{command}] {name} = {value!r}" for command, name, value in said if trust.asks_for_trust(name, value)]


def _trust_samples(path: Path, revoke: bool) -> list[str]:
    """Trust a file of samples, and return the folders that it may show now."""
    from vip.tasks.files import distrust, read_samples, trust
    from vip.tasks.sample_pictures import pictures_of

    sources = dict.fromkeys(picture.source for sample in read_samples(path) for picture in pictures_of(sample))
    (distrust if revoke else trust)(path)
    return [f"pictures of {source}" for source in sources]


def _trust_folder(folder: Path, revoke: bool) -> list[str]:
    from vip.corpus.state import NAME
    from vip.corpus.state_dir import home_of

    return _trust_data_set(folder, revoke) if (home_of(str(folder)) / NAME).is_file() else _trust_run(folder, revoke)


def _trust_data_set(folder: Path, revoke: bool) -> list[str]:
    """Trust the state of a batch, and return what it uses."""
    from contextlib import closing

    from vip.corpus.state import StateDatabase
    from vip.corpus.state_dir import allow, disallow, home_of
    from vip.corpus.stored_settings import tables_of

    with closing(StateDatabase(home_of(str(folder)))) as state:
        (disallow if revoke else allow)(state)
        counts, tables = state.state_counts(), tables_of(state)
    said = ((command, *item) for command, table in tables.items() for item in table.items())
    used = [f"[{command}] {name} = {value!r}" for command, name, value in said if value and _is_worth_naming(command, name, value)]
    return [f"{counted(sum(counts.values()), 'video')} of its list", *used]


def _is_worth_naming(command: str, name: str, value: object) -> bool:
    from vip.config import COMMANDS

    field = COMMANDS[command].model_fields.get(name) if command in COMMANDS else None
    return trust.asks_for_trust(name, value) and (field is None or value != field.default)


def _trust_run(folder: Path, revoke: bool) -> list[str]:
    """Trust a run folder, and return what may be opened now."""
    from vip import registry, store, user_state
    from vip.captioning.in_batches import jobs_in
    from vip.errors import InputError

    home = store.home_of(folder)
    manifest = store.Run(home).manifest
    jobs = [job for job in jobs_in(home) if job.job]
    if manifest is None and not jobs:
        raise InputError(f"{folder} is no run and no data set of vip. Give a vip.toml, a run folder, a data set or samples.")
    change = user_state.forget if revoke else user_state.remember
    if manifest is not None:
        change("runs", manifest.origin)
    for job in jobs:
        change("jobs", job.mark(str(job.job)))
    batches = [f"batch {job.job}" for job in jobs]
    video = [f"video {manifest.video.path}"] if manifest else []
    embedder = manifest.backends.get("embedder") if manifest else None
    weights = [f"embedder {embedder}"] if embedder and not registry.is_published(embedder) else []
    return [*video, *weights, *batches]
