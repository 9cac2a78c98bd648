"""Tells the language of a text, and compares German and French words: elision, inflection, verbs and compounds.

The index has its own stems (`words.terms`), which are part of a store's format. The grader compares more closely.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from cragside.adapters.embedded.numbers import plain
from cragside.adapters.embedded.words import (
    ENGLISH,
    FRENCH,
    FRENCH_ASKING,
    GERMAN,
    GERMAN_ASKING,
    NEIGHBOURS,
    Language,
    language_of,
    stem,
    word_list,
    word_lists,
    words,
)
from cragside.domain.characters import encodable

if TYPE_CHECKING:
    from gcld3 import NNetLanguageIdentifier


# Frequent content words: their absence says less than that of others.
GERMAN_COMMON = word_list("german common")
FRENCH_COMMON = word_list("french common")

# The stems of German strong verbs, that of the infinitive first; a comma ends each verb.
STRONG_VERBS = {form: verb.split()[0] for verb in word_lists()["strong verbs"].split(",") for form in verb.split()}


# How much of a question's word a text has that lacks the word itself. Chosen on the development half of
# `evals/languages.jsonl`, which changes little for values 0.2 apart.
_RELATED = 0.8
_IN_A_COMPOUND, _AT_ITS_START = 0.9, 0.8
_LAST_PART, _FIRST_PART = 0.7, 0.6
# Frequent words count less than others, and the nouns of German, which have a capital, count more.
_COMMON_SHARE, _NOUN_SHARE = 0.35, 1.5


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# No longer text in another language has a larger share of words that are English function words too.
_FEW_WORDS, _ENGLISH_SHARE = 30, 0.3
# Formulas and tables have fewer function words of their language, and some by accident.
_LEAST_SHARE = 0.05
_SHORTEST_ROOT, _SHORTEST_PART = 3, 4
# Longer words, which are mostly no words, are compared as they are.
_LONGEST_WORD = 40
_ELIDED = re.compile(r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['’](?=.)")
_NOUN = re.compile(r"(?<=[\w,-][ -])[A-ZÄÖÜ][\wäöüß]+")
# A sentence may have these apart from their verb: `fängt ... an`. If one begins with another, it comes first.
_SEPARABLE = _listed("""
zuruck zusammen herunter hinunter herauf hinauf heraus hinaus herein hinein durch nach fest her hin los vor weg auf aus
bei ein mit ab an um zu
""")
_INSEPARABLE = ("ver", "ent", "zer", "be", "er")
_PARTICIPLE = ("ge", "zu")
# As they are at the end of stems.
# The stemmer leaves the -s behind a vowel: Annas, Autos.
_GERMAN_ENDINGS = _listed("schaft isch keit heit lich losig chen lein ung end ern nis bar los er ig in st te el t d s")
_FRENCH_ENDINGS = _listed("""
issement ation ition aison issant atric eress ement teur tric ment anc enc ant ent eur eux eus ag iqu ier ien ion iss
oir ur ir al el if iv it is er re ct e i u r s t v
""")
# What may stand between the parts of a compound.
_LINKS = ("", "s", "es", "n", "en", "er", "e")

_TOPICLESS = {"english": ENGLISH, "german": GERMAN | GERMAN_ASKING, "french": FRENCH | FRENCH_ASKING}
_COMMON: dict[Language, frozenset[str]] = {"german": GERMAN_COMMON, "french": FRENCH_COMMON, "english": frozenset()}


def tongue_of(found: Sequence[str]) -> Language:
    """German or French if most function words of a text, given as its `words`, are; else English, as for the rest."""
    if len(found) > _FEW_WORDS and sum(map(ENGLISH.__contains__, found)) > len(found) * _ENGLISH_SHARE:
        return "english"
    # Single letters are mostly variables and abbreviations.
    longer = [word for word in found if len(word) > 1]
    english, german, rest = (sum(map(listed.__contains__, longer)) for listed in (ENGLISH, GERMAN, NEIGHBOURS))
    french = french_words(longer)
    if max(german, french) < len(found) * _LEAST_SHARE:
        return "english"
    if french > max(english, german) and french >= rest:
        return "french"
    return "german" if german >= rest and language_of(found) == "german" else "english"


def french_words(found: Sequence[str]) -> int:
    """Count the words that are French function words, or begin with an elided one."""
    return sum(1 for word in found if word in FRENCH or _ELIDED.match(word))


def unelided(found: Sequence[str]) -> list[str]:
    """French words without the article or pronoun before an apostrophe: `aqueduc` for `l'aqueduc`."""
    return [_ELIDED.sub("", word) for word in found]


def topicless(tongue: Language) -> frozenset[str]:
    """Return the words of a text in this language that say nothing about its subject."""
    return _TOPICLESS[tongue]


def word_weights(content: Sequence[str], text: str, tongue: Language) -> list[float]:
    """Return the weight of each content word of a question, beside the length of its vector."""
    nouns = frozenset(words(" ".join(_NOUN.findall(text)))) if tongue == "german" else frozenset()
    common = _COMMON[tongue]
    return [_COMMON_SHARE if word in common else _NOUN_SHARE if word in nouns else 1.0 for word in content]


@dataclass(frozen=True, slots=True)
class ForeignText:
    """The content words of a text, in which a question's words are sought."""

    tongue: Language
    stems: frozenset[str]
    roots: frozenset[str]
    # All stems, each between spaces, so that one search finds the compounds with a word.
    joined: str

    @classmethod
    def of(cls, found: Sequence[str], tongue: Language) -> "ForeignText":
        """From words without elision."""
        content = [word for word in dict.fromkeys(found) if word not in _TOPICLESS[tongue]]
        known = frozenset(plain(stem(word, tongue)) for word in content)
        related = frozenset[str]().union(*(roots(word, tongue) for word in content)) - known
        return cls(tongue, known, related, " ".join(["", *known, ""]) if tongue == "german" else "")

    def has(self, word: str) -> float:
        """Tell how much (0..1) of a word the text has: all, a related word, or a part of a compound."""
        base = plain(stem(word, self.tongue))
        if base in self.stems:
            return 1.0
        sought = roots(word, self.tongue)
        if not (self.roots.isdisjoint(sought) and self.stems.isdisjoint(sought)):
            return _RELATED
        is_compared = self.tongue == "german" and len(base) <= _LONGEST_WORD and base.isalpha()
        return self._compounded(base) if is_compared else 0.0

    def _compounded(self, base: str) -> float:
        """Tell how much the text has of a word in a longer one, or of its parts."""
        best = 0.0
        if len(base) >= _SHORTEST_PART:
            best = _IN_A_COMPOUND if f"{base} " in self.joined else _AT_ITS_START if f" {base}" in self.joined else 0.0
        parts, splits = _splits(base)
        for last, firsts in () if self.stems.isdisjoint(parts) else splits:
            has_first = not self.stems.isdisjoint(firsts)
            if last in self.stems:
                best = max(best, 1.0 if has_first else _LAST_PART)
            elif has_first:
                best = max(best, _FIRST_PART)
        return best


@lru_cache(maxsize=1 << 14)
def roots(word: str, tongue: Language) -> frozenset[str]:
    """Return the stem of a word, and what prefixes and endings leave of it. Related words share a root."""
    base = stem(word, tongue)
    if len(base) > _LONGEST_WORD or not base.isalpha():
        return frozenset({base})
    return frozenset(_german_roots(base) if tongue == "german" else _french_roots(base.replace("œ", "oe")))


def _german_roots(base: str) -> Iterator[str]:
    for verb in _without_prefixes(base):
        for root in (verb, *_shortened(verb, _GERMAN_ENDINGS)):
            yield root
            for prefix in ("", *_INSEPARABLE):
                if root.startswith(prefix) and (infinitive := STRONG_VERBS.get(root.removeprefix(prefix))):
                    yield prefix + infinitive


def _without_prefixes(base: str) -> Iterator[str]:
    yield base
    for prefix in (*_PARTICIPLE, *_SEPARABLE):
        rest = base.removeprefix(prefix)
        if rest == base or len(rest) < _SHORTEST_ROOT:
            continue
        yield rest
        if prefix not in _PARTICIPLE:
            yield from (rest.removeprefix(infix) for infix in _PARTICIPLE if len(rest) >= _SHORTEST_ROOT + len(infix))
            return


def _french_roots(base: str) -> Iterator[str]:
    yield base
    yield from _shortened(base, _FRENCH_ENDINGS)


def _shortened(base: str, endings: tuple[str, ...]) -> Iterator[str]:
    for ending in endings:
        shortest = _SHORTEST_PART if len(ending) == 1 else _SHORTEST_ROOT
        if base.endswith(ending) and len(base) - len(ending) >= shortest:
            yield base[: -len(ending)]


@lru_cache(maxsize=1 << 10)
def _splits(base: str) -> tuple[frozenset[str], tuple[tuple[str, frozenset[str]], ...]]:
    """Return how a stem may be read as a compound: its last part, and the forms that its first part may have alone.

    All these parts come first, so that one look at a text tells if it has any.
    """
    cuts = range(_SHORTEST_PART, len(base) - _SHORTEST_PART + 1)
    splits = tuple((base[cut:], frozenset(_alone(base[:cut]))) for cut in cuts)
    return frozenset[str]().union(*({last, *firsts} for last, firsts in splits)), splits


def _alone(first: str) -> Iterator[str]:
    for link in _LINKS:
        if first.endswith(link) and len(first) - len(link) >= _SHORTEST_ROOT:
            yield first.removesuffix(link)


# Shorter texts give random results: "OK" would be Dutch.
_FEWEST_LETTERS = 12
_LONGEST_READ = 1000
# With less, a short English sentence may be Dutch: "A comet was seen over Durham." is to 0.81.
_LEAST_PROBABILITY = 0.9
# Codes of the detector that ISO 639-1 has replaced.
_REPLACED = {"iw": "he"}


def iso_639_1(text: str) -> str | None:
    """Return the code of a text's language, such as `de`; None if the text is too short or too mixed."""
    read = text[:_LONGEST_READ]
    if sum(map(str.isalpha, read)) < _FEWEST_LETTERS:
        return None
    found = _identifier().FindLanguage(encodable(read))
    code = found.language.partition("-")[0]  # `zh-Latn` is Chinese in Latin letters
    return _REPLACED.get(code, code) if found.probability >= _LEAST_PROBABILITY and len(code) == 2 else None


@cache
def _identifier() -> "NNetLanguageIdentifier":
    from gcld3 import NNetLanguageIdentifier

    return NNetLanguageIdentifier(min_num_bytes=0, max_num_bytes=4 * _LONGEST_READ)


# Two words are a name as often as a question.
_FEWEST_WORDS = 3
# So many function words more than any other language has suffice without the detector.
_CLEAR_LEAD = 2
_LONGEST_QUESTION = 400
_LISTED = frozenset({"en", "de", "fr"})
_NEIGHBOURS = frozenset({"es", "it", "nl", "pt"})


def question_language(text: str) -> str | None:
    """Return the code (ISO 639-1) of a question's language; None for names, keywords and whatever else leaves a doubt.

    The function words of the question and the detector have to agree, unless the words are clear by themselves.
    """
    read = text[:_LONGEST_QUESTION]
    found = words(read)
    if len(found) < _FEWEST_WORDS:
        return None
    detected = iso_639_1(read)
    if not any(letter.isascii() for letter in read if letter.isalpha()):
        return detected  # the script leaves few languages to choose from
    longer = [word for word in found if len(word) > 1]
    counts = {
        "en": sum(map(ENGLISH.__contains__, longer)),
        "de": sum(map(GERMAN.__contains__, longer)),
        "fr": french_words(longer),
    }
    neighbours = sum(map(NEIGHBOURS.__contains__, longer))
    if detected in _NEIGHBOURS:
        return detected if neighbours >= _CLEAR_LEAD and neighbours > max(counts.values()) else None
    second, first = sorted(counts.values())[-2:]
    leading = max(counts, key=counts.__getitem__)
    if leading == detected:
        return leading if first > second else None
    clear = first - second >= _CLEAR_LEAD and first >= neighbours
    return leading if clear and (detected is None or leading != "fr") else None
