"""A WordNet of a few synsets, written as wndb(5WN) says; and the whole of it beside this checkout, where it is."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tests.metrics.golden import golden

LICENCE = "  1 This software and database is being provided to you, the LICENSEE\n  2 WordNet 3.0 Copyright 2006 by Princeton University.\n"
FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}

# part of speech -> id -> (words, hypernyms as (kind, id), letter); ids are replaced by offsets
SYNSETS: Mapping[str, Mapping[str, tuple[Sequence[str], Sequence[tuple[str, str]], str]]] = {
    "n": {
        "entity": (["entity"], [], "n"),
        "animal": (["animal"], [("@", "entity")], "n"),
        "pet": (["pet"], [("@", "animal")], "n"),
        "dog": (["dog", "Hound"], [("@", "pet"), ("@", "animal")], "n"),
        "cat": (["cat"], [("@", "pet")], "n"),
        "rex": (["Rex"], [("@i", "dog")], "n"),
        "pup": (["pup"], [("@", "dog")], "n"),
        "runt": (["runt"], [("@", "pup")], "n"),
        "foot": (["foot"], [("@", "entity")], "n"),
        "focus": (["focus"], [("@", "entity")], "n"),
    },
    "v": {
        "move": (["move"], [], "v"),
        "run": (["run"], [("@", "move")], "v"),
        "walk": (["walk"], [("@", "move")], "v"),
        "dog_v": (["dog"], [("@", "move")], "v"),
        "focus_v": (["focus"], [], "v"),
        "eat": (["eat"], [], "v"),
    },
    "a": {"happy": (["happy(p)"], [], "a"), "glad": (["glad"], [], "s")},
    "r": {"up": (["up"], [], "r")},
}
EXCEPTIONS = {"n": "feet foot\n", "v": "ran run\n", "a": "", "r": ""}


def write_wordnet(folder: Path, *, version: str = "3.0") -> Path:
    """Write the tiny WordNet and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    licence = LICENCE.replace("3.0", version)
    for part, ending in FILES.items():
        offsets, lines, index = _place(part, len(licence))
        (folder / f"data.{ending}").write_text(licence + "".join(lines))
        rows = [
            f"{lemma} {part} {len(places)} 0 {len(places)} 0 {' '.join(f'{at:08}' for at in places)}\n" for lemma, places in index.items()
        ]
        (folder / f"index.{ending}").write_text(licence + "".join(sorted(rows)))
        (folder / f"{ending}.exc").write_text(EXCEPTIONS[part])
        assert len(offsets) == len(SYNSETS[part])
    return folder


def _place(part: str, start: int) -> tuple[dict[str, int], list[str], dict[str, list[int]]]:
    """Return the offset of each synset, the lines of the data file, and the offsets of each lemma."""
    offsets = dict.fromkeys(SYNSETS[part], 0)
    for _ in range(2):  # the lines are as long with zeros as with the offsets
        lines, at = [], start
        for name, (words, above, letter) in SYNSETS[part].items():
            offsets[name] = at
            pointers = [f"{kind} {offsets[other]:08} {part} 0000" for kind, other in above] + [f"+ 00000000 {part} 0101"]
            texts = " ".join(f"{word} 0" for word in words)
            lines.append(f"{at:08} 03 {letter} {len(words):02x} {texts} {len(pointers):03} {' '.join(pointers)} | a gloss with | in it  \n")
            at += len(lines[-1])
    index: dict[str, list[int]] = {}
    for name, (words, _, _) in SYNSETS[part].items():
        for word in words:
            index.setdefault(word.partition("(")[0].lower(), []).append(offsets[name])
    return offsets, lines, index


@cache
def whole_wordnet() -> Path:
    """The folder of WordNet 3.0, unpacked once; the test is skipped where it is not beside this checkout."""
    archive = golden("wordnet/wordnet-3.0.tar.xz")
    folder = Path(mkdtemp(prefix="vip-tests-wordnet-"))
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / "wordnet-3.0"
