"""Penn Treebank tokens of English captions as COCO's scores count them: those of Stanford's PTBTokenizer 3.4.1, without Java.

In: the captions of a corpus, in order. Out: their tokens in lower case, without punctuation. Three habits of that program matter:

- `*`, `/`, runs such as `!!` and the names of brackets (`-lrb-`) are no punctuation and stay;
- an abbreviation keeps its full stop (`st.`), and so does a single letter (`f.`) unless a sentence begins behind it;
- what begins behind the last word of a caption is the next caption, since all of them are read as one text.

The rules here were written from what the program answers, and are held against it: see the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

VERSION = "ptb corenlp-3.4.1"
BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
DROPPED = frozenset(("''", "'", '"', "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"))
"""Punctuation. The names of brackets are on the list of COCO's code too, but in capitals, so that none of them is ever left out."""
ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "'", "&apos;": "'", "&nbsp;": ""}

_ABBREVIATIONS = """
    adj adm adv al ala alex apr assn aug ave bhd blvd brig bros calif capt cf cie co col conn corp cos cpl ct dak dec dept det dr drs ens
    esq est etc ext feb fla fri ft ga gen gov hon inc ind jan jos jr jul jun kan ky lt ltd maj mar md messrs mme mo mon mont mr mrs ms mt
    neb nev nov oct penn pfc ph plc pres prof pvt rd rep reps rev rt sen sens sep sept seq sfc sgt spc sq sr st ste sys tel thu tue tues
    univ va vs vt wed wis wm wyo"""
_WORDS_IN_LOWER_CASE = "ark az del ill la mass miss ore pa tex wash"
_WORDS_IN_CAPITALS = "mfg mtg pte pty"
_BEFORE_NUMBERS = "art ca fig no nos op pp prop"
_SENTENCE_BEGINS = """
    A About According Additionally After An As At But Earlier He Her Here However If In It Last Many More Mr. Now Once One Other Our She
    Since So Some Such That The Their Then There These They This We What When While Yet You"""


def _forms(words: str, *, lower: bool = True, upper: bool = True) -> str:
    """Return the alternatives of words with a capital, in lower case and in capitals."""
    return "|".join(form for word in words.split() for form in (word.title(), word if lower else "", word.upper() if upper else "") if form)


_SHORT = f"{_forms(_ABBREVIATIONS)}|{_forms(_WORDS_IN_LOWER_CASE, lower=False)}|{_forms(_WORDS_IN_CAPITALS, upper=False)}"
_SENTENCE = "|".join(re.escape(form) for word in _SENTENCE_BEGINS.split() for form in (word, word.upper()))
_ACRONYM = r"[A-Za-z](?:\.[A-Za-z])+\."
_RED = r"'(?:[sSdDmM]|[lL][lL]|[rR][eE]|[vV][eE])"  # reduced is, had, am, will, are, have; and the genitive
_WORD = r"[A-Za-z0-9]+"
_PART = rf"{_WORD}(?:-[A-Za-z]+){{0,2}}"

_RULES = tuple(
    re.compile(rule)
    for rule in (
        # The longest match counts, of equally long ones the first. A second group is read ahead: it counts for the length only.
        r"(</?[A-Za-z][A-Za-z0-9_]*(?:\s[^<>]*)?/?>|<[!?][^<>]*>)",
        r"(&(?:amp|lt|gt|quot|apos|nbsp);)",
        r"((?i:can))((?i:not))",
        r"((?i:gon|wan))((?i:na))",
        r"((?i:got))((?i:ta))",
        r"((?i:lem|gim))((?i:me))",
        r"('[tT])((?i:is|was))",
        r"([yY]')([aA]ll)",
        r"([A-Za-z]{0,200}[A-MO-Za-mo-z])([nN]'[tT])",
        rf"({_WORD})({_RED})(?![A-Za-z])",
        rf"({_WORD})",
        r"([nN]'[tT])",
        rf"({_RED})(?![A-Za-z])",
        r"([dDlLoOnN]'[A-Za-z]+|[A-HJ-XZ]'[A-Za-z]{2,})",  # o'clock, d'oh
        rf"({_WORD}(?:[-.!?]{_WORD}){{0,50}}\.)([,;:])",
        r"([A-Za-z]+[aeiouyAEIOUY]'[aeiouA-Z][A-Za-z]*)",  # ma'am, Hawai'i
        r"((?i:c'mon|s'mores?|cap'n|dunkin'|somethin'|ol')|[dDjJlL]')",
        r"('(?i:n'|n(?![A-Za-z])|em|till?|cause)|'[0-9][0-9](?=\s)|'[2-9]0s)",
        rf"({_PART}(?:/{_PART}){{1,2}})",  # his/her
        rf"([A-Za-z0-9][A-Za-z0-9.,]{{0,200}}(?:-(?:{_ACRONYM}|{_WORD}))+)",  # t-shirt, 1.5-inch, U.S.-based
        r"([A-Za-z0-9]+(?:_[A-Za-z0-9]+)+)",
        r"([A-Za-z][A-Za-z0-9]*(?:[.!?][A-Za-z][A-Za-z0-9]*)+)",  # foo.mp4, and sentences without a space between them
        r"([A-Z]+(?:[&+][A-Z]+)+)",
        r"([cC]\+\+|[cCfF]#|(?i:pro|anti)-|[A-Z]+\$)",
        r"([0-9]{1,4}[ -][0-9]{1,4}/[0-9]{1,4})",
        r"([-+]?[0-9]*(?:[.:,][0-9]+)+|[-+]?[0-9]+)",
        r"((?:\([0-9]{2,3}\) ?|(?:\+\+?)?(?:[0-9]{2,4}[- ])?[0-9]{2,4}[- ])[0-9]{3,4}[- ]?[0-9]{3,5})",  # telephone
        r"([A-Za-z])(\.\s+(?:" + _SENTENCE + r")\s)",
        rf"({_ACRONYM}|[A-Za-z]\.|[pP][hH]\.[dD]\.|(?:{_SHORT})\.)",
        rf"((?:{_forms(_BEFORE_NUMBERS)})\.)(\s*[0-9])",
        r"((?:https?|ftp)://[^\s<>\"`(){}']*[^\s<>\"`(){}'.,;:!?&])",
        r"((?:[A-Za-z0-9-]{1,200}\.){1,20}(?:com|net|org|edu)/[^\s<>\"`(){}']+[^\s<>\"`(){}'.,;:!?&])",
        r"([A-Za-z0-9][\w.+-]{0,200}@[A-Za-z0-9][\w-]*(?:\.[\w-]+)*|@[A-Za-z_]\w*|#[A-Za-z]\w*)",
        r"([<>]?[:;=][-o*']?[()@\[\]{|\\DdPpO](?![A-Za-z0-9])|\^_\^|-_-)",
        r"([?!]+|\*+|\\\*|#+|_+|@+|''|-{2,}|\.{3,5}|<<|>>)",
        r"(\S)",
    )
)

_NOT_ASCII = re.compile(r"[^\x21-\x7e]+")
_STANDS_ALONE = re.compile(rf"(?!(?:.*[^A-Za-z0-9])?(?:[A-Za-z]|{_forms(_BEFORE_NUMBERS)})\.)[A-Za-z'\",!?;:./-]+")
"""Words whose tokens do not depend on what stands around them: no digits, no brackets, no letter or `no.` at the end."""

MOST_CHUNKS, LONGEST_CHUNK = 200_000, 40
_CHUNKS: dict[str, tuple[str, ...]] = {"": ()}
"""The tokens of such words, kept."""


def tokenize_captions(captions: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the tokens of each caption in lower case, without punctuation.

    Letters outside ASCII count as spaces, as in the code of VALUE. The next caption decides whether a sentence begins behind a single
    letter at the end of this one; for a caption alone, none does.
    """
    waiting: str | None = None
    for caption in captions:
        text = _clean(caption)
        if waiting is not None:
            yield _tokenize(waiting, text[:40])
        waiting = text
    if waiting is not None:
        yield _tokenize(waiting, "")


def _clean(caption: str) -> str:
    return " ".join(_NOT_ASCII.sub(" ", caption).split())


def _tokenize(text: str, following: str) -> tuple[str, ...]:
    chunks = list(map(_CHUNKS.get, text.split(" ")))
    if None not in chunks:
        return tuple(chain.from_iterable(chunks))  # type: ignore[arg-type]  # there is no None
    tokens: list[str] = []
    whole, start = f"{text}\n{following} ", 0
    while start < len(text):
        space = text.find(" ", start, start + LONGEST_CHUNK + 1)
        chunk = text[start : space if space >= 0 else start + LONGEST_CHUNK + 1]
        if len(chunk) <= LONGEST_CHUNK and _STANDS_ALONE.fullmatch(chunk):
            if chunk not in _CHUNKS and len(_CHUNKS) < MOST_CHUNKS:
                _CHUNKS[chunk] = _tokenize_chunk(chunk)
            tokens += _CHUNKS.get(chunk) or _tokenize_chunk(chunk)
            start += len(chunk) + 1
            continue
        end = _next_end(whole, start)
        tokens += _spell(whole[start:end])
        start = end + (whole[end] == " ")
    return tuple(tokens)


def _tokenize_chunk(chunk: str) -> tuple[str, ...]:
    """Return the tokens of a text without a space, around which nothing matters."""
    tokens: list[str] = []
    start = 0
    while start < len(chunk):
        end = _next_end(f"{chunk} ", start)
        tokens += _spell(chunk[start:end])
        start = end
    return tuple(tokens)


def _next_end(text: str, start: int) -> int:
    """Return where the token that begins at `start` ends."""
    longest, end = 0, start + 1
    for rule in _RULES:
        match = rule.match(text, start)
        if match is not None and match.end() - start > longest:
            longest, end = match.end() - start, match.end(1)
    return end


def _spell(token: str) -> list[str]:
    """Return the token as the program prints it, in lower case: in parts where it holds a space, without any where it is punctuation."""
    token = ENTITIES.get(token, token)
    if token in BRACKETS or token[:1] == "(" or token[-1:] in {"(", ")"}:  # telephone numbers and emoticons too
        token = "".join(BRACKETS.get(letter, letter) for letter in token)
    return [part for part in token.lower().split() if part not in DROPPED and part.strip("-.")]
