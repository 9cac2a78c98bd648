"""Extracts the keywords of a question by rules, in place of LightRAG's language model."""

import re
from dataclasses import dataclass

from cragside.adapters.embedded.dates import asked_dates
from cragside.adapters.embedded.stopwords import SCAFFOLDING
from cragside.adapters.embedded.words import function_words, is_filler, stem, terms, words

_MOST = 12
_LONGEST_READ = 4000
_QUOTED = re.compile(r'"([^"\n]{2,80})"|“([^”\n]{2,80})”|„([^“”\n]{2,80})[“”]|`([^`\n]{2,80})`')
_TOKEN = re.compile(r"[^\s,;:!?()\[\]{}\"“”„`<>|]+|[,;:!?()\[\]{}|]")
_EDGES = ".'’‘*_~-–—/\\"


@dataclass(frozen=True, slots=True)
class QueryKeywords:
    """LightRAG matches `low` (names, things, numbers) with entities, and `high` (themes) with relations.

    Both have keywords unless the question has no words.
    """

    low: list[str]
    high: list[str]


def keywords_of(question: str) -> QueryKeywords:
    """The keywords of a question in any language, at most 12 a list, most relevant first."""
    text = question[:_LONGEST_READ]
    stop = function_words(words(text)) | SCAFFOLDING
    quoted = ["".join(groups).strip() for groups in _QUOTED.findall(text)]
    names: list[str] = []
    nouns: list[str] = []
    phrases: list[str] = []
    for run in runs(text, stop):
        phrase = " ".join(run)
        (phrases if len(run) > 1 else nouns).append(phrase)
        names.extend(_names(run))
        if len(run) > 1:
            nouns.extend(run)
    low = _distinct([*quoted, *names, *nouns])
    high = _distinct([*phrases, *quoted, *nouns])
    if not low:
        rest = " ".join(text.split()).strip(" ?!.")[:200]
        return QueryKeywords([rest], [rest]) if rest else QueryKeywords([], [])
    return QueryKeywords(low, high)


def searched_words(text: str) -> str:
    """The words by which full-text search finds a text."""
    return " ".join(terms(text))


def asked_words(question: str) -> str:
    """The words by which full-text search finds what a question asks for: its own, and other forms of its dates."""
    own = terms(question)
    forms = words(" ".join(form for date in asked_dates(question) for form in date.forms()))
    known = dict.fromkeys(stem(form, language) for form in forms for language in ("english", "german"))
    return " ".join([*own, *(form for form in known if form not in own)])


def runs(text: str, stop: frozenset[str]) -> list[list[str]]:
    """Runs of at most four content words, cut at function words and punctuation."""
    runs: list[list[str]] = [[]]
    for token in _TOKEN.findall(text):
        word = token.strip(_EDGES)
        if not any(c.isalnum() for c in word) or is_filler(word, stop):
            runs.append([])
        elif len(runs[-1]) == 4:
            runs.append([word])
        else:
            runs[-1].append(word)
        if token.endswith("."):
            runs.append([])
    return [run for run in runs if run]


def _names(run: list[str]) -> list[str]:
    """The capitalised parts of a run."""
    names: list[list[str]] = [[]]
    for word in run:
        if word[0].isupper() or any(c.isdigit() for c in word):
            names[-1].append(word)
        elif names[-1]:
            names.append([])
    return [" ".join(name) for name in names if name]


def _distinct(candidates: list[str]) -> list[str]:
    return list({candidate.lower(): candidate for candidate in reversed(candidates)}.values())[::-1][:_MOST]
