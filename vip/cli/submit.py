"""`vip submit`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vip.cli import options
from vip.cli.completion import choices
from vip.cli.console import AsJson, Console, Quiet, print_json
from vip.wording import counted

EXAMPLES = """[bold]Examples[/bold]
vip submit predictions/ --suite value -o submission/
vip submit predictions/ --annotations reference_data/ -o submission.zip
vip submit submission/ --annotations reference_data/ -o checked/
"""

Sources = Annotated[
    list[Path],
    typer.Argument(help="Files of vip predict, folders of them; or folders and zips in the form of the server.", show_default=False),
]
Suite = Annotated[str, options.option("--suite", help="The benchmark: value.", metavar="NAME", default="value")]
Annotations = Annotated[
    Path | None,
    options.option("--annotations", help="Folder with the published files of all tasks; needed for retrieval.", metavar="DIR"),
]
Split = Annotated[
    str | None,
    options.option(
        "--split",
        help="Split of vip's files: val or test.",
        metavar="NAME",
        default="val where samples have answers",
        complete=choices("val", "test"),
    ),
]
Out = Annotated[Path | None, options.option("--out", "-o", help="Folder to write, or NAME.zip.", metavar="PATH", default="submission")]
Overwrite = Annotated[bool, options.switch("--overwrite", help="Replace files that are there.")]


def submit_command(
    sources: Sources,
    suite: Suite = "value",
    annotations: Annotations = None,
    split: Split = None,
    out: Out = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write predictions as a benchmark's server takes them, and check them: names, forms, every id once."""
    from vip.errors import UsageError, did_you_mean
    from vip.store import unlinked
    from vip.tasks.value.archive import named_by_zip
    from vip.tasks.value.submit import make_submission, missing_files
    from vip.tasks.value.suite import SUITE

    console = Console(quiet=quiet, as_json=as_json)
    if suite != SUITE:
        raise UsageError(f'There is no suite "{suite}" with a server.{did_you_mean(suite, [SUITE])}')
    out = out or unlinked(Path("submission"))
    with named_by_zip():
        written = make_submission(sources, out, annotations=annotations, split=split, overwrite=overwrite)
    missing = missing_files(written)
    if as_json:
        print_json({"suite": suite, "path": str(out), "files": [asdict(one) for one in written], "missing": missing})
        return
    for one in written:
        console.write_line(f"{one.name}  {counted(one.answers, 'answer')}")
    console.write_line(f"{counted(len(written), 'file')} in {out}, read again without a fault.")
    if missing:
        lacking = f"{counted(len(missing), 'file')} are missing, such as {missing[0]}"
        console.note(f"Partial: the server takes val and test of every task, and {lacking}.")
