"""WordNet 3.0 is read from its files; morphy and the similarity are those of the published figures."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.metrics.golden import golden
from tests.metrics.tiny_wordnet import whole_wordnet, write_wordnet
from vip.errors import BackendError
from vip.metrics.wordnet import FILES, PartOfSpeech, WordNet, find_wordnet


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> WordNet:
    return WordNet(write_wordnet(tmp_path_factory.mktemp("wordnet")))


def similarity(wordnet: WordNet, first: str, second: str) -> float:
    synsets = wordnet.first_synset(first), wordnet.first_synset(second)
    return wordnet.wup(synsets[0], synsets[1]) if synsets[0] and synsets[1] else 0.0


@pytest.mark.slow
def test_the_similarities_of_the_published_program_come_out_of_all_pairs() -> None:
    wordnet = WordNet(whole_wordnet())
    with golden("nextqa/wup_pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = []
    for row in rows:
        first, second = wordnet.first_synset(row["word_a"]), wordnet.first_synset(row["word_b"])
        value = wordnet.wup(first, second) if first and second else 0.0
        found.append((first.name if first else "", second.name if second else "", f"{value:.6f}"))
    assert len(rows) == 1726
    assert found == [(row["first_synset_a"], row["first_synset_b"], row["wup"]) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "part", "forms"),
    [
        ("children", "n", ["child"]),  # exceptions
        ("men", "n", ["men", "man"]),
        ("focussed", "v", ["focus"]),  # an exception too
        ("glasses", "n", ["glasses", "glass"]),
        ("boxes", "n", ["box"]),
        ("playing", "v", ["play"]),
        ("quickly", "r", ["quickly"]),
        ("nearest", "a", ["near"]),
        ("qwertys", "n", []),
    ],
)
def test_base_forms_in_the_whole_wordnet(word: str, part: PartOfSpeech, forms: list[str]) -> None:
    assert WordNet(whole_wordnet()).base_forms(word, part) == forms


@pytest.mark.parametrize(
    ("word", "part", "forms"),
    [
        ("dogs", "n", ["dog"]),
        ("dog", "n", ["dog"]),
        ("feet", "n", ["foot"]),  # an exception that is no lemma itself
        ("ran", "v", ["run"]),
        ("runs", "v", ["run"]),
        ("dogss", "n", ["dog"]),  # detached again, since nothing was known after one step
        ("focusseds", "v", ["focus"]),  # focussed, focusse and focuss, focus
        ("happier", "a", []),
        ("up", "r", ["up"]),
        ("", "n", []),
    ],
)
def test_base_forms_counted_by_hand(tiny: WordNet, word: str, part: PartOfSpeech, forms: list[str]) -> None:
    assert tiny.base_forms(word, part) == forms


def test_the_first_synset_is_that_of_nouns_before_verbs_and_named_after_its_first_word(tiny: WordNet) -> None:
    names = {word: synset.name for word in ("dog", "hounds", "REX", "walks", "happy", "glad", "up") if (synset := tiny.first_synset(word))}
    assert names == {
        "dog": "dog.n.01",
        "hounds": "dog.n.01",
        "REX": "rex.n.01",
        "walks": "walk.v.01",
        "happy": "happy.a.01",
        "glad": "glad.s.01",
        "up": "up.r.01",
    }
    assert tiny.first_synset("qwerty") is None


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("cat", "cat", 1.0),
        ("cat", "pet", 2 * 3 / (1 + 0 + 6)),  # pet: two steps below entity, so that it has depth 3
        ("dog", "cat", 2 * 3 / (1 + 1 + 6)),
        ("rex", "dog", 2 * 4 / (1 + 0 + 8)),  # an instance; dog is three steps below on the longest way
        ("runt", "pup", 2 * 5 / (1 + 0 + 10)),  # and pup four
        ("cat", "run", 0.0),  # nothing above both
        ("run", "cat", 2 * 1 / (2 + 4 + 2)),  # a verb first: the root, two above run and four above cat
        ("run", "walk", 2 * 1 / (2 + 2 + 2)),  # move has no depth, as the root, and the root's name comes first
        ("run", "move", 2 * 1 / (2 + 1 + 2)),
        ("move", "run", 2 * 1 / (0 + 1 + 2)),  # but not where the first is among the lowest above both
        ("up", "happy", 0.0),
        ("eat", "eat", 1.0),
    ],
)
def test_similarities_counted_by_hand(tiny: WordNet, first: str, second: str, expected: float) -> None:
    assert similarity(tiny, first, second) == pytest.approx(expected, abs=1e-12)


def test_words_that_are_endings_over_and_over_are_looked_up_quickly(tiny: WordNet) -> None:
    assert tiny.first_synset("es" * 150) is None
    assert tiny.first_synset("ies" * 100 + "ed" * 100) is None


@pytest.mark.slow
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(word=st.text(max_size=12))
def test_any_word_is_looked_up(tiny: WordNet, word: str) -> None:
    synset = tiny.first_synset(word)
    assert synset is None or tiny.wup(synset, synset) == 1.0


@pytest.mark.parametrize("packed", [False, True])
def test_it_is_found_among_the_data_of_nltk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    folder = write_wordnet(tmp_path / "data" / "corpora" / "wordnet")
    if packed:
        with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
            for name in FILES:
                archive.write(folder / name, f"wordnet/{name}")
                (folder / name).unlink()
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "data"))
    assert find_wordnet() == tmp_path / "data"
    assert similarity(WordNet(find_wordnet()), "dog", "cat") == 0.75


def test_a_folder_without_it_and_another_version_are_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendError, match=r"has no data\.noun of WordNet\. Name one with data\.noun in it, or of NLTK's data\."):
        WordNet(tmp_path)
    with pytest.raises(
        BackendError, match=r"WUPS is defined on WordNet 3\.0, and .* holds 3\.1\. Run `python -m nltk\.downloader wordnet`\."
    ):
        WordNet(write_wordnet(tmp_path / "new", version="3.1"))
    with pytest.raises(BackendError, match=r"holds an unknown version\."):
        WordNet(write_wordnet(tmp_path / "none", version="three"))
    monkeypatch.setattr("vip.metrics.wordnet.data_folders", lambda: [tmp_path / "nowhere"])
    with pytest.raises(BackendError, match=r"WUPS needs WordNet 3\.0, which is not here\. Run `python -m nltk\.downloader wordnet`"):
        find_wordnet()


def test_damaged_data_is_said(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path)
    path = folder / "data.noun"
    path.write_text(path.read_text().replace(" 03 n ", " 03 x ")[:-200] + "\n")
    with pytest.raises(BackendError, match=r"is damaged at byte \d+ of its noun data"):
        WordNet(folder).first_synset("focus")
    (folder / "data.noun").unlink()
    (folder / "corpora").mkdir()
    (folder / "corpora" / "wordnet.zip").write_bytes(b"no archive")
    with pytest.raises(BackendError, match=r"data\.noun in .* cannot be read \(File is not a zip file\)"):
        WordNet(folder)
    with zipfile.ZipFile(folder / "corpora" / "wordnet.zip", "w") as archive:
        archive.writestr("wordnet/data.noun", b"noun")
    packed = bytearray((folder / "corpora" / "wordnet.zip").read_bytes())
    packed[6] |= 1
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    (folder / "corpora" / "wordnet.zip").write_bytes(packed)
    with pytest.raises(BackendError, match=r"data\.noun in .* cannot be read \(.*encrypted"):
        WordNet(folder)
