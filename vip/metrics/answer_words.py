"""Words of an open-ended answer as the score of NExT-QA compares them (Xiao et al. 2021, appendix B.1): lemmas without stop words.

In: an answer in English. Out: its tokens. The authors took NLTK 3.3 and pywsd 1.2.4; their rules are here, so that the figures do not
change with the version of NLTK, of which only the Treebank tokenizer and the Porter stemmer are used.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from vip.metrics.perceptron_tagger import PerceptronTagger
from vip.metrics.wordnet import PartOfSpeech, WordNet

_STOP_WORDS = """
a about again ain all am an and any are aren aren't as at be because been being but can couldn couldn't d did didn didn't do does doesn
doesn't doing don don't during each for from further had hadn hadn't has hasn hasn't have haven haven't having he her here hers herself
him himself his how i if into is isn isn't it it's its itself just ll m ma me mightn mightn't most mustn mustn't my myself needn needn't
now o of only or other our ours ourselves own re s shan shan't she she's should should've shouldn shouldn't so some such t than that
that'll the their theirs them themselves then there these they this those through to too until ve very was wasn wasn't we were weren
weren't what when where which while who whom why will with won won't wouldn wouldn't y you you'd you'll you're you've your yours yourself
yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""The authors' list (MIT, © 2021 Junbin Xiao): NLTK's English stop words but for 23 that answers are made of, such as no, up, before."""

_PARTS: dict[str, PartOfSpeech] = {"NN": "n", "JJ": "a", "VB": "v", "RB": "r"}
"""Part of speech by the first two letters of a tag of the Penn Treebank."""


class AnswerNormalizer:
    """Turns answers into tokens. The same answer is looked at once.

    Args:
        tagger: gives the parts of speech, over the whole answer as it is written.
    """

    def __init__(self, wordnet: WordNet, tagger: PerceptronTagger) -> None:
        self.wordnet = wordnet
        self.tagger = tagger
        self._answers: dict[str, tuple[str, ...]] = {}
        self._lemmas: dict[tuple[str, PartOfSpeech], str] = {}

    def __call__(self, answer: str) -> tuple[str, ...]:
        """Return the lemmas of an answer, lower case, without stop words."""
        if answer not in self._answers:
            tagged = self.tagger.tag(self._tokenize(answer))
            lemmas = [self._lemma(word.lower(), tag) for word, tag in tagged]
            self._answers[answer] = tuple(self._tokenize(" ".join(lemma for lemma in lemmas if lemma not in STOP_WORDS)))
        return self._answers[answer]

    def _lemma(self, word: str, tag: str) -> str:
        part = _PARTS.get(tag[:2]) or _PARTS.get(self.tagger.tag([word])[0][1][:2], "n")
        if (word, part) not in self._lemmas:
            self._lemmas[word, part] = self._find_lemma(word, part)
        return self._lemmas[word, part]

    def _find_lemma(self, word: str, part: PartOfSpeech) -> str:
        """Return the shortest base form; where WordNet knows none as anything, the Porter stem if it knows that, else the word."""
        lemma = min(self.wordnet.base_forms(word, part), key=len, default=word)
        if self.wordnet.first_synset(lemma) is not None:
            return lemma
        stem: str = self._stemmer.stem(word)
        return stem if self.wordnet.first_synset(stem) is not None else word

    def _tokenize(self, text: str) -> list[str]:
        tokens: list[str] = self._tokenizer.tokenize(text)
        return tokens

    @cached_property
    def _tokenizer(self) -> Any:
        from nltk.tokenize.treebank import TreebankWordTokenizer

        return TreebankWordTokenizer()

    @cached_property
    def _stemmer(self) -> Any:
        from nltk.stem.porter import PorterStemmer

        return PorterStemmer()
