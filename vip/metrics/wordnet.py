"""WordNet 3.0 read from its own files, with the morphy and the Wu-Palmer similarity that the papers' figures were computed with.

In: the folder of the data files (`data.noun`, `index.noun`, `noun.exc`, …), as NLTK and Debian bring it. Out: base forms of a word, its
synsets, and how near two synsets are. Both functions are written here, after NLTK 3.3, because NLTK changed them (3.6 the similarity,
3.9 morphy): a figure must not depend on the NLTK that is installed.

Sources: wndb(5WN), morphy(7WN); Wu and Palmer 1994, "Verb semantics and lexical selection".
"""

from __future__ import annotations

import os
import re
import zipfile
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from vip.errors import BackendError
from vip.files import ZIP_DAMAGE

PartOfSpeech = Literal["n", "v", "a", "r"]
PARTS_OF_SPEECH: dict[PartOfSpeech, str] = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
"""In the order in which the synsets of a word come, with the ending of the file."""
FILES = tuple(name.format(part) for part in PARTS_OF_SPEECH.values() for name in ("data.{}", "index.{}", "{}.exc"))
MOST_BYTES = 64 * 2**20  # of one file; data.noun has 15 MB
VERSION = "3.0"
ROOT = "*ROOT*"
"""Above all verbs, which have many roots of their own."""

DETACHMENTS: dict[PartOfSpeech, tuple[tuple[str, str], ...]] = {
    "n": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "v": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}
"""Endings that morphy detaches, and what it puts in their place."""


@dataclass(frozen=True, slots=True)
class Synset:
    """A set of synonyms. Two are the same where their names are."""

    name: str
    """`dog.n.01`: its first word, its part of speech (`s` for a satellite adjective) and the number of that word's sense."""
    part: PartOfSpeech = field(compare=False)
    hypernyms: tuple[tuple[PartOfSpeech, int], ...] = field(compare=False, repr=False)
    """Part of speech and offset of the synsets right above it, of both kinds: hypernyms, then instance hypernyms."""


class WordNet:
    """WordNet 3.0 in a folder.

    Args:
        folder: holds `data.noun`; or a folder of NLTK data, with `corpora/wordnet` or `corpora/wordnet.zip` in it.

    Raises:
        BackendError: files are missing or of another version.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = _read_files(folder)
        self.version = _read_version(self._files["data.noun"], folder)
        self._synsets: dict[tuple[PartOfSpeech, int], Synset] = {}
        self._first: dict[str, Synset | None] = {}
        self._paths: dict[tuple[str, bool], dict[str, int]] = {}
        self._depths: dict[str, tuple[int, int]] = {ROOT: (0, 0)}
        self._by_name: dict[str, Synset] = {}

    # ---------------------------------------------------------------- words

    def base_forms(self, word: str, part: PartOfSpeech) -> list[str]:
        """Return the forms of a word that WordNet knows as this part of speech, by morphy: `feet` has `foot`."""
        if (exceptions := self._exceptions[part].get(word)) is not None:
            return self._known([word, *exceptions], part)
        forms = _detach([word], part)
        if known := self._known([word, *forms], part):
            return known
        while forms:  # morphy as published stops here; NLTK before 3.9 does not: focussed, focuss, focus
            forms = _detach(forms, part)
            if known := self._known(forms, part):
                return known
        return []

    def first_synset(self, word: str) -> Synset | None:
        """Return the first synset of a word in any part of speech, n before v, a and r; None where it has none."""
        if word not in self._first:
            self._first[word] = self._find_first(word.lower())
        return self._first[word]

    def _find_first(self, word: str) -> Synset | None:
        for part in PARTS_OF_SPEECH:
            for form in self.base_forms(word, part):
                return self._synset(part, self._offsets(form, part)[0])
        return None

    def _known(self, forms: Iterable[str], part: PartOfSpeech) -> list[str]:
        index = self._index[part]
        return [form for form in dict.fromkeys(forms) if form.encode("utf-8", "replace") in index]

    def _offsets(self, lemma: str, part: PartOfSpeech) -> list[int]:
        """Return the places of the synsets of a lemma, most frequent first."""
        columns = self._index[part][lemma.encode()].split()
        return [int(offset) for offset in columns[-int(columns[1]) :]]

    # ---------------------------------------------------------------- similarity

    def wup(self, first: Synset, second: Synset) -> float:
        """Return the Wu-Palmer similarity of two synsets as NLTK 3.3 has it, 0 where they have nothing above them in common.

        Not symmetric: a root above all is assumed only where the first is a verb.
        """
        with_root = first.part == "v"
        above_first, above_second = self._distances(first, with_root), self._distances(second, with_root)
        common = above_first.keys() & above_second.keys()
        if not common:
            return 0.0
        deepest = max(self._depth(name)[0] for name in common)
        lowest = sorted(name for name in common if self._depth(name)[0] == deepest)
        subsumer = first.name if first.name in lowest else lowest[0]
        above_subsumer = {ROOT: 0} if subsumer == ROOT else self._distances(self._by_name[subsumer], with_root)
        depth = self._depth(subsumer)[1] + 1
        steps = _shortest_path(above_first, above_subsumer) + _shortest_path(above_second, above_subsumer)
        return 2.0 * depth / (steps + 2 * depth)

    def _distances(self, synset: Synset, with_root: bool) -> dict[str, int]:
        """Return the steps to the synset itself and to each one above it, by name."""
        key = synset.name, with_root
        if key not in self._paths:
            steps: dict[str, int] = {}
            queue = deque([(synset, 0)])
            while queue:
                current, distance = queue.popleft()
                if current.name not in steps:
                    steps[current.name] = distance
                    queue.extend((self._synset(*place), distance + 1) for place in current.hypernyms)
            if with_root:
                steps[ROOT] = max(steps.values()) + 1
            self._paths[key] = steps
        return self._paths[key]

    def _depth(self, name: str) -> tuple[int, int]:
        """Return the steps on the shortest and on the longest way up to a synset without hypernyms."""
        if name not in self._depths:
            above = [self._depth(self._synset(*place).name) for place in self._by_name[name].hypernyms]
            self._depths[name] = (1 + min(low for low, _ in above), 1 + max(high for _, high in above)) if above else (0, 0)
        return self._depths[name]

    # ---------------------------------------------------------------- files

    @cached_property
    def _index(self) -> dict[PartOfSpeech, dict[bytes, bytes]]:
        """Lemma -> the rest of its line, by part of speech."""
        return {part: _read_index(self._files[f"index.{ending}"]) for part, ending in PARTS_OF_SPEECH.items()}

    @cached_property
    def _exceptions(self) -> dict[PartOfSpeech, dict[str, list[str]]]:
        tables: dict[PartOfSpeech, dict[str, list[str]]] = {}
        for part, ending in PARTS_OF_SPEECH.items():
            rows = (line.split() for line in self._files[f"{ending}.exc"].decode().splitlines())
            tables[part] = {row[0]: row[1:] for row in rows if row}
        return tables

    def _synset(self, part: PartOfSpeech, offset: int) -> Synset:
        place = part, offset
        if place not in self._synsets:
            data = self._files[f"data.{PARTS_OF_SPEECH[part]}"]
            line = data[offset : data.find(b"\n", offset)].partition(b"|")[0]
            try:
                self._synsets[place] = synset = self._parse_synset(line.decode().split(), part, offset)
            except (ValueError, IndexError, KeyError) as exc:
                raise BackendError(f"WordNet in {self.folder} is damaged at byte {offset} of its {PARTS_OF_SPEECH[part]} data.") from exc
            self._by_name[synset.name] = synset
        return self._synsets[place]

    def _parse_synset(self, columns: Sequence[str], part: PartOfSpeech, offset: int) -> Synset:
        if int(columns[0]) != offset:
            raise ValueError(columns[0])
        word = re.sub(r"\((?:a|p|ip)\)$", "", columns[4]).lower()  # adjectives say in which position they stand
        sense = self._offsets(word, part).index(offset) + 1
        words = int(columns[3], 16)
        start = 5 + 2 * words
        pointers = [columns[place : place + 4] for place in range(start, start + 4 * int(columns[start - 1]), 4)]
        whole = [row for row in pointers if row[3] == "0000"]  # the others are between words of the synsets
        above = [(row[2], int(row[1])) for kind in ("@", "@i") for row in whole if row[0] == kind]
        return Synset(f"{word}.{columns[2]}.{sense:02}", part, tuple((_part(letter), target) for letter, target in above))


def find_wordnet(folder: Path | None = None) -> Path:
    """Return the folder of WordNet 3.0: the given one, or the first of NLTK's folders or Debian's that has it.

    Raises:
        BackendError: there is none.
    """
    if folder is not None:
        return folder.expanduser()
    for place in data_folders():
        if any((place / name).exists() for name in ("corpora/wordnet/data.noun", "corpora/wordnet.zip", "data.noun")):
            return place
    raise BackendError(
        "WUPS needs WordNet 3.0, which is not here. Run `python -m nltk.downloader wordnet`, or set NLTK_DATA to its folder."
    )


def data_folders() -> list[Path]:
    """Return where data of NLTK may lie: the folders of NLTK_DATA, in the home folder, of the system; then Debian's of WordNet."""
    named = [Path(name) for name in os.environ.get("NLTK_DATA", "").split(os.pathsep) if name]
    system = [Path(top) / "nltk_data" for top in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")]
    return [*named, Path("~/nltk_data").expanduser(), *system, Path("/usr/share/wordnet")]


def read_data_file(folder: Path, inner: str, name: str, most_bytes: int = MOST_BYTES) -> bytes | None:
    """Return a file that lies in a folder, in `inner` below it, or in the archive `inner`.zip, as NLTK leaves it; None where it is missing.

    Raises:
        OSError, and the others of `ZIP_DAMAGE`: it cannot be read, or is larger than `most_bytes`.
    """
    for path in (folder / name, folder / inner / name):
        if path.is_file():
            with path.open("rb") as file:
                return _bounded(file.read(most_bytes + 1), most_bytes)
    archive = folder / f"{inner}.zip"
    if not archive.is_file():
        return None
    with zipfile.ZipFile(archive) as members:
        member = f"{Path(inner).name}/{name}"
        if member not in members.namelist():
            return None
        with members.open(member) as file:
            return _bounded(file.read(most_bytes + 1), most_bytes)


def _bounded(data: bytes, most_bytes: int) -> bytes:
    if len(data) > most_bytes:
        raise OSError(f"more than {most_bytes:,} bytes")
    return data


def _read_files(folder: Path) -> dict[str, bytes]:
    files = {}
    for name in FILES:
        try:
            data = read_data_file(folder, "corpora/wordnet", name)
        except ZIP_DAMAGE as exc:
            raise BackendError(f"WordNet's {name} in {folder} cannot be read ({exc}). Bring the folder again.") from exc
        if data is None:
            raise BackendError(f"The folder {folder} has no {name} of WordNet. Name one with data.noun in it, or of NLTK's data.")
        files[name] = data
    return files


def _read_version(data: bytes, folder: Path) -> str:
    """Return the version that the licence at the start of a data file names; only 3.0 has the synsets of the published figures."""
    found = re.search(rb"WordNet (\d+\.\d+) Copyright", data[:4000])
    version = found[1].decode() if found else "an unknown version"
    if version != VERSION:
        raise BackendError(f"WUPS is defined on WordNet {VERSION}, and {folder} holds {version}. Run `python -m nltk.downloader wordnet`.")
    return version


def _read_index(data: bytes) -> dict[bytes, bytes]:
    """Return the rest of each line by its lemma; the lines of the licence begin with spaces."""
    return {lemma: rest for lemma, _, rest in (line.partition(b" ") for line in data.splitlines()) if lemma}


def _detach(forms: Iterable[str], part: PartOfSpeech) -> list[str]:
    """Return each form with each ending detached that it has, without doubles, which would become ever more."""
    endings = DETACHMENTS[part]
    return list(dict.fromkeys(form[: -len(old)] + new for form in forms for old, new in endings if form.endswith(old)))


def _shortest_path(first: dict[str, int], second: dict[str, int]) -> int:
    """Return the steps between two synsets over the best one above both."""
    return min(steps + second[name] for name, steps in first.items() if name in second)


def _part(letter: str) -> PartOfSpeech:
    """Return the part of speech of a letter of the data files; satellites `s` are adjectives."""
    parts: dict[str, PartOfSpeech] = {"n": "n", "v": "v", "a": "a", "s": "a", "r": "r"}
    return parts[letter]
