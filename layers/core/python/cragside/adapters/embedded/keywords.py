"""Extracts the keywords of a question, and its query for a web search engine, by rules."""

import re

from cragside.adapters.embedded.numbers import asked_dates
from cragside.adapters.embedded.words import INTERROGATIVES, SCAFFOLDING, function_words, is_filler, stem, terms, words
from cragside.domain.query import Keywords

_MOST = 12
_LONGEST_READ = 4000
_QUOTED = re.compile(r'"([^"\n]{2,80})"|“([^”\n]{2,80})”|„([^“”\n]{2,80})[“”]|`([^`\n]{2,80})`')
_TOKEN = re.compile(r"[^\s,;:!?()\[\]{}\"“”„`<>|]+|[,;:!?()\[\]{}|]")
_EDGES = ".'’‘*_~-–—/\\"


def keywords_of(question: str) -> Keywords:
    """Return the keywords of a question in any language, at most 12 a list, most relevant first."""
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
        return Keywords([rest], [rest]) if rest else Keywords([], [])
    return Keywords(low, high)


def searched_words(text: str) -> str:
    """Return the words by which full-text search finds a text."""
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
    """Return the capitalised parts of a run."""
    names: list[list[str]] = [[]]
    for word in run:
        if word[0].isupper() or any(c.isdigit() for c in word):
            names[-1].append(word)
        elif names[-1]:
            names.append([])
    return [" ".join(name) for name in names if name]


def _distinct(candidates: list[str]) -> list[str]:
    return list({candidate.lower(): candidate for candidate in reversed(candidates)}.values())[::-1][:_MOST]


_MOST_TERMS = 12
_MOST_CHARACTERS = 200
_LONGEST_REWRITTEN = 32_000
# They tell a search engine what is sought: a person, a time, a place. "What" tells nothing.
_TELLING = INTERROGATIVES - {"what", "was", "que", "quoi"}
_TERM = re.compile(r'"[^"\n]{2,80}"|“[^”\n]{2,80}”|„[^“”\n]{2,80}[“”]|\S+')
_QUOTES = '"“”„'
_LEADING = "!:-–—+~*_'’‘`´()[]{}<>|,;?/\\&=^%$§·•…"
_TRAILING = "!?:;,.-–—~*_'’‘`´([{<>|/\\&=^§·•…"
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


def search_query(question: str) -> str:
    """At most 12 terms and 200 characters. Names, numbers, identifiers and quoted phrases stay; filler words go.

    Operators of search engines (`!bang`, `-term`, `:language`) lose their mark. The query is empty only for a question
    of blanks and NULs.
    """
    text = " ".join(question[:_LONGEST_REWRITTEN].split("\0"))
    dropped = (function_words(words(text)) - _TELLING) | SCAFFOLDING
    everything = _terms(text)
    kept = _distinct_terms([term for term in everything if not is_filler(term, dropped)])
    if not [term for term in kept if term.lower() not in _TELLING]:
        kept = everything
    if len(kept) > _MOST_TERMS:
        kept = _most_telling(kept, asked=_asked(text))
    return _within(kept) or text.strip()[:_MOST_CHARACTERS]


def _terms(text: str) -> list[str]:
    terms: list[str] = []
    for token in _TERM.findall(text):
        if token[0] in _QUOTES and len(token) > 1:
            phrase = " ".join(token.strip(_QUOTES).split())
            terms.append(f'"{phrase}"' if " " in phrase else phrase)
            continue
        term = token.strip(_QUOTES).lstrip(_LEADING).rstrip(_TRAILING)
        if term.endswith(")") and "(" not in term:
            term = term.rstrip(")")
        if any(c.isalnum() for c in term):
            terms.append(term)
    return terms


def _asked(text: str) -> frozenset[str]:
    """Words of sentences that end with a question mark. In a long prompt they matter more than the preamble."""
    sentences = [s for s in _SENTENCE.findall(text) if s.rstrip().endswith("?")]
    return frozenset(term.lower() for sentence in sentences for term in _terms(sentence))


def _most_telling(kept: list[str], *, asked: frozenset[str]) -> list[str]:
    def weight(position: int) -> tuple[float, int]:
        term = kept[position]
        score = 2.0 * (term.lower() in asked)
        score += 3.0 * term.startswith('"')
        score += 1.5 * ((position > 0 and term[0].isupper()) or any(c.isdigit() for c in term))
        score += 1.0 * any(c in "._:/#+" for c in term)
        score += min(len(term), 12) / 12
        return -score, position

    return [kept[position] for position in sorted(sorted(range(len(kept)), key=weight)[:_MOST_TERMS])]


def _within(terms: list[str]) -> str:
    query = ""
    for term in terms:
        longer = f"{query} {term}".strip()
        if len(longer) > _MOST_CHARACTERS:
            break
        query = longer
    return query or "".join(terms[:1])[:_MOST_CHARACTERS]


def _distinct_terms(terms: list[str]) -> list[str]:
    seen: dict[str, str] = {}
    for term in terms:
        seen.setdefault(term.lower(), term)
    return list(seen.values())
