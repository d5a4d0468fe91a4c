"""Submissions to VALUE's server: predictions of vip or of others are checked, named as the server wants, and read again.

In: files that `vip predict` wrote, each with its samples beside it, and folders in the form of the server. Out: a folder with a folder a
task and nothing around it, or a zip of that. What is written is read again in the way of `vip score` before it is put in its place.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

from vip import store
from vip.errors import InputError, UsageError
from vip.tasks.files import read_predictions, read_samples, unlinked_file
from vip.tasks.pairs import is_ours
from vip.tasks.records import Prediction, Sample
from vip.tasks.value.annotations import read_samples as read_annotations
from vip.tasks.value.annotations import read_video_index
from vip.tasks.value.archive import unpacked_submission
from vip.tasks.value.datasets import BY_KEY, DATASETS, PREFIX, Dataset
from vip.tasks.value.submissions import read_submission, write_submission
from vip.tasks.value.suite import find_annotations, find_submission
from vip.untrusted import one_line
from vip.wording import option

SPLITS = ("val", "test")
SAMPLES = "samples.jsonl"


@dataclass(frozen=True, slots=True)
class SubmittedFile:
    """One file of a submission."""

    task: str
    split: str
    """`val` or `test`; the file has the task's own name of it."""
    name: str
    """Below the submission's folder: `vlep/vlep_dev_predictions.json`."""
    answers: int


@dataclass(frozen=True, slots=True)
class _Source:
    """A file of predictions, and what they answer."""

    path: Path
    dataset: Dataset
    split: str
    samples: Sequence[Sample]
    names: dict[int, str]
    """Of videos by number; empty but for retrieval."""

    @property
    def name(self) -> str:
        return self.dataset.submission_name(self.dataset.split_name(self.split))

    def predictions(self) -> Iterator[Prediction]:
        return read_predictions(self.path) if is_ours(self.path) else read_submission(self.path, self.dataset, self.samples, self.names)


def make_submission(
    sources: Sequence[Path], out: Path, *, annotations: Path | None = None, split: str | None = None, overwrite: bool = False
) -> list[SubmittedFile]:
    """Write a submission and return its files, in the order of the tasks.

    Args:
        sources: files of `vip predict`, folders of them, folders or zips in the form of the server.
        out: a folder, or NAME.zip.
        annotations: the published annotations of all tasks; needed for retrieval, whose videos go by number, and for files of others.
        split: `val` or `test` of vip's files; None: `val` where the samples have answers, since those of the test splits are hidden.

    Raises:
        UsageError: something is there already, or an option is missing.
        InputError: there is nothing to submit, or a file does not answer exactly the samples of its split.
    """
    if split not in (None, *SPLITS):
        raise UsageError(f'A submission has the splits val and test, not "{one_line(split)}".')
    if store.exists(out) and not overwrite:
        raise UsageError(f"{out} exists already. Add {option('overwrite')} to replace it, or name another place with {option('out')}.")
    with TemporaryDirectory(prefix="vip-submission-") as place:
        folder = Path(place)
        written: dict[str, SubmittedFile] = {}
        for source in _find_sources(sources, annotations, split):
            if source.name in written:
                raise InputError(f"{source.path} is a second file of predictions for {source.name}. Give one of each task and split.")
            written[source.name] = _write(source, folder / source.name)
        _put_in_place(folder, sorted(written), out)
    order = {dataset.name: place for place, dataset in enumerate(DATASETS)}
    return sorted(written.values(), key=lambda one: (order[one.task], one.split == "test"))


def missing_files(files: Sequence[SubmittedFile]) -> list[str]:
    """Return the names of the files that the server wants and that are not there: it takes both splits of every task that it ranks."""
    found = {one.name for one in files}
    names = [dataset.submission_name(dataset.split_name(split)) for split in SPLITS for dataset in DATASETS]
    return [name for name in names if name not in found]


def _write(source: _Source, path: Path) -> SubmittedFile:
    """Write one file and read it again."""
    numbers = {name: number for number, name in source.names.items()}
    found = {prediction.sample_id: prediction for prediction in source.predictions()}
    missing = [sample.id for sample in source.samples if sample.id not in found]
    extra = found.keys() - {sample.id for sample in source.samples}
    if missing or extra:
        ids, what = (missing, "lacks") if missing else (sorted(extra), "has too many:")
        raise InputError(
            f'{source.path} {what} {len(ids):,} of {len(source.samples):,} ids, such as "{one_line(ids[0])[:80]}". Predict it again.'
        )
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as binary, io.TextIOWrapper(binary, encoding="utf-8", newline="\n") as file:
        write_submission(file, source.dataset, ((sample, found[sample.id]) for sample in source.samples), numbers)
    answers = sum(1 for _ in read_submission(path, source.dataset, source.samples, source.names))
    return SubmittedFile(source.dataset.name, source.split, source.name, answers)


def _put_in_place(folder: Path, names: Sequence[str], out: Path) -> None:
    if out.suffix == ".zip":
        store.make_folder(out.parent)
        with store.replacing(out) as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
            for name in names:
                archive.write(folder / name, name)
        return
    for name in names:
        store.make_folder(out)
        store.make_folder((out / name).parent, inside=out)
        with store.replacing(out / name, inside=out) as file, (folder / name).open("rb") as written:
            shutil.copyfileobj(written, file)


# ---------------------------------------------------------------- what there is


def _find_sources(sources: Sequence[Path], annotations: Path | None, split: str | None) -> Iterator[_Source]:
    count = 0
    for path in sources:
        if not store.exists(path):
            raise InputError(f"{path} does not exist. Give a file of `vip predict`, or a folder of such files.")
        if path.is_file() and path.suffix != ".zip":
            if not is_ours(path):
                raise InputError(
                    f"{path} is no file of `vip predict`. Those of others are read from a folder with the names of the server."
                )
            found = [path]
        else:
            found = _own_files(path) if path.is_dir() else []
        for one in found:
            count += 1
            yield _own_source(one, annotations, split)
        if not found:
            with unpacked_submission(path) as folder:
                for one_source in _published_sources(folder, annotations):
                    count += 1
                    yield one_source
    if not count:
        raise InputError(f"{sources[0]} holds no predictions of a task of VALUE. Give the folder of the files that `vip predict` wrote.")


def _own_files(folder: Path) -> list[Path]:
    """Return the files of `vip predict` in a folder and the folders in it."""
    folders = [folder, *sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())]
    return [path for one in folders for path in sorted(one.glob("*.jsonl")) if is_ours(unlinked_file(path))]


def _own_source(path: Path, annotations: Path | None, split: str | None) -> _Source:
    beside = [path.with_name(f"{path.stem}.samples.jsonl"), path.with_name(SAMPLES)]
    samples_path = next((one for one in beside if one.is_file()), None)
    if samples_path is None:
        raise InputError(f"There is no {beside[0].name} beside {path}, which says what was predicted. Put the samples there.")
    samples = list(read_samples(unlinked_file(samples_path)))
    task = samples[0].task if samples else ""
    dataset = BY_KEY.get(task.removeprefix(PREFIX).replace("-", "_"))
    if dataset is None or not task.startswith(PREFIX):
        raise InputError(f"{samples_path} has samples of {one_line(task)[:80] or 'no task'}, which is none of VALUE. Leave the file out.")
    chosen = split or ("val" if all(sample.reference is not None for sample in samples) else "test")
    if annotations is None:
        if dataset.category == "retrieval":
            raise UsageError(
                f"{dataset.name} names videos by number. Name the folder of the published files with {option('annotations', 'DIR')}."
            )
        return _Source(path, dataset, chosen, samples, {})
    return _published_source(path, dataset, chosen, annotations)


def _published_sources(folder: Path, annotations: Path | None) -> Iterator[_Source]:
    for dataset in DATASETS:
        for split in SPLITS:
            path = find_submission(folder, dataset, dataset.split_name(split))
            if path is not None:
                if annotations is None:
                    raise UsageError(f"{path.name} is checked against annotations. Name their folder with {option('annotations', 'DIR')}.")
                yield _published_source(path, dataset, split, annotations)


def _published_source(path: Path, dataset: Dataset, split: str, annotations: Path) -> _Source:
    published, index = find_annotations(annotations, dataset, dataset.split_name(split))
    if dataset.category == "retrieval" and index is None:
        raise InputError(f"{annotations} has no {dataset.key}_video2dur_idx.json, which numbers the videos of {dataset.name}.")
    return _Source(path, dataset, split, list(read_annotations(published, dataset)), read_video_index(index) if index else {})
