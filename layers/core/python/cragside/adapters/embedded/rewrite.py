"""Turns a question into a query for a web search engine, by rules."""

import re

from cragside.adapters.embedded.grammar import INTERROGATIVES
from cragside.adapters.embedded.stopwords import SCAFFOLDING
from cragside.adapters.embedded.words import function_words, is_filler, words

_MOST_TERMS = 12
_MOST_CHARACTERS = 200
_LONGEST_READ = 32_000
# They tell a search engine what is sought: a person, a time, a place. "What" tells nothing.
_TELLING = INTERROGATIVES - {"what", "was", "que", "quoi"}
_TOKEN = re.compile(r'"[^"\n]{2,80}"|“[^”\n]{2,80}”|„[^“”\n]{2,80}[“”]|\S+')
_QUOTES = '"“”„'
_LEADING = "!:-–—+~*_'’‘`´()[]{}<>|,;?/\\&=^%$§·•…"
_TRAILING = "!?:;,.-–—~*_'’‘`´([{<>|/\\&=^§·•…"
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


def search_query(question: str) -> str:
    """At most 12 terms and 200 characters. Names, numbers, identifiers and quoted phrases stay; filler words go.

    Operators of search engines (`!bang`, `-term`, `:language`) lose their mark. The query is empty only for a question
    of blanks and NULs.
    """
    text = " ".join(question[:_LONGEST_READ].split("\0"))
    dropped = (function_words(words(text)) - _TELLING) | SCAFFOLDING
    everything = _terms(text)
    kept = _distinct([term for term in everything if not is_filler(term, dropped)])
    if not [term for term in kept if term.lower() not in _TELLING]:
        kept = everything
    if len(kept) > _MOST_TERMS:
        kept = _most_telling(kept, asked=_asked(text))
    return _within(kept) or text.strip()[:_MOST_CHARACTERS]


def _terms(text: str) -> list[str]:
    terms: list[str] = []
    for token in _TOKEN.findall(text):
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


def _distinct(terms: list[str]) -> list[str]:
    seen: dict[str, str] = {}
    for term in terms:
        seen.setdefault(term.lower(), term)
    return list(seen.values())
