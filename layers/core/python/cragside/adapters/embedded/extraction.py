"""Extracts entities and relations by rules, in place of a language model."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from cragside.adapters.embedded.mentions import LONGEST_NAME, Mention, Sentence, is_word, mentions, sentences
from cragside.adapters.embedded.stopwords import STOPWORDS

MOST_ENTITIES = 12
MOST_RELATIONS = 12
_LONGEST_DESCRIPTION = 400
_MOST_LINKED = 5
_BONUS = {"heading": 3.0, "definition": 2.0, "name": 1.0, "acronym": 1.0, "code": 0.5, "opening": 0.0, "frequent": 0.0}

_BY_LAST_WORD = {
    "Organization": """
        inc corp corporation ltd gmbh ag company university institute agency association department ministry bank
        council foundation party committee commission society club school college museum orchestra navy army
        church authority
    """,
    "Location": """
        river lake mount mountain city county island islands ocean sea street road avenue valley bridge park state
        states kingdom republic desert bay coast district village forest fluss stadt straße insel
    """,
    "Event": """
        war battle revolution festival olympics conference treaty election summit crisis championship cup massacre prize
    """,
    "Content": """
        act constitution bible song album film novel book series report magazine newspaper journal opera symphony
    """,
    "Method": "algorithm method protocol technique process procedure framework analysis theorem",
    "Creature": "bird fish cat dog bee",
}
_TYPE_OF_WORD = {word: kind for kind, words in _BY_LAST_WORD.items() for word in words.split()}
_HONORIFIC = frozenset({
    "dr", "mr", "mrs", "ms", "prof", "professor", "sir", "lady", "king", "queen", "president", "pope", "saint", "st",
    "herr",
})  # fmt: skip
_PERSON_CUE = re.compile(
    r"\b(?:born|wrote|said|invented|founded|discovered|married|died|composed|painted|directed|sang|he|she|his|her|who"
    r"|geboren|schrieb|erfand|gründete|starb)\b",
    re.IGNORECASE,
)
_PLACE_CUE = frozenset({"in", "near", "from", "at"})


@dataclass(slots=True)
class ExtractedEntity:
    """An entity of the text, with a description taken from the text."""

    name: str
    kind: str
    description: str


@dataclass(frozen=True, slots=True)
class Relation:
    """Two entities of one sentence, which is the description."""

    source: str
    target: str
    keywords: str
    description: str


@dataclass(slots=True)
class _Candidate:
    spellings: Counter[str] = field(default_factory=Counter)
    kinds: set[str] = field(default_factory=set)
    places: list[int] = field(default_factory=list)


Key = tuple[str, ...]


def extract(text: str, types: Collection[str] = ()) -> tuple[list[ExtractedEntity], list[Relation]]:
    """At most 12 entities and 12 relations between them, most relevant first. Equal texts give equal results.

    `types` are the allowed entity types; entities of other types are `Other`.
    """
    read = sentences(text)
    candidates = _candidates(read)
    places = _places(read, candidates)
    chosen = _chosen(candidates, places)
    names = {key: _display(key, candidates[key]) for key in chosen}
    allowed = {kind.lower(): kind for kind in types}
    entities = [
        ExtractedEntity(names[key], _kind(names[key], candidates[key], read, allowed), _description(read, places[key]))
        for key in chosen
    ]
    return entities, _relations(read, names)


def _candidates(read: Sequence[Sentence]) -> dict[Key, _Candidate]:
    lower = Counter(token for sentence in read for token in sentence.tokens if token.islower())
    found: dict[Key, _Candidate] = {}
    for position, sentence in enumerate(read):
        for mention in mentions(sentence):
            key = _key(mention.words)
            if not any(len(part) > 1 for part in key) or all(part in STOPWORDS for part in key):
                continue
            _note(found, key, _spelling(mention, lower), mention.kind, position)
    if len(found) < 4:
        for word, count in lower.most_common(40):
            if count > 1 and len(word) > 3 and word not in STOPWORDS:
                _note(found, _key((word,)), _capitalised(_singular(word)), "frequent", 0)
    openings = [key for key, candidate in found.items() if candidate.kinds == {"opening"}]
    for key in openings:
        if any(token in lower for token in key) or len(found[key].places) < 2:
            del found[key]
    return found


def _note(found: dict[Key, _Candidate], key: Key, spelling: str, kind: str, position: int) -> None:
    candidate = found.setdefault(key, _Candidate())
    candidate.spellings[spelling] += 1
    candidate.kinds.add(kind)
    candidate.places.append(position)


def _key(words: Sequence[str]) -> Key:
    cleaned = [_cleaned(word) for word in words]
    return (*cleaned[:-1], _singular(cleaned[-1])) if cleaned else ()


def _cleaned(word: str) -> str:
    return word.replace("’", "'").removesuffix("'s").rstrip("'.").lower()


def _spelling(mention: Mention, lower: Counter[str]) -> str:
    """The name to compare: without possessive, and singular if the text shows that it is a common noun."""
    words = [word.replace("’", "'").removesuffix("'s").rstrip("'.") for word in mention.words]
    if mention.kind == "code":
        return words[0]
    last = words[-1]
    common = last.islower() or last.lower() in lower or _singular(last.lower()) in lower
    plural_acronym = len(last) > 2 and last[:-1].isupper() and last.endswith("s")
    if common or plural_acronym:
        words[-1] = _singular(last)
    shouted = len(words) > 1 and all(word.isupper() for word in words)
    return " ".join(_capitalised(word.lower() if shouted else word) for word in words)


def _capitalised(word: str) -> str:
    return word[:1].upper() + word[1:] if word.islower() and word not in STOPWORDS else word


def _singular(word: str) -> str:
    """The singular of a regular English plural. Other words stay as written."""
    if (
        len(word) < 4
        or not word.endswith("s")
        or word.endswith(("ss", "us", "is", "os", "as", "news", "series", "ics"))
    ):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    return word[:-1]


def _display(key: Key, candidate: _Candidate) -> str:
    return min(candidate.spellings, key=lambda spelling: (-candidate.spellings[spelling], len(spelling), spelling))[
        :120
    ]


def _places(read: Sequence[Sentence], candidates: Collection[Key]) -> dict[Key, list[int]]:
    """The sentences that mention each candidate, in any case or number."""
    places: dict[Key, list[int]] = {key: [] for key in candidates}
    for position, sentence in enumerate(read):
        for key, _ in _spans(sentence, candidates):
            places[key].append(position)
    return {key: found or [0] for key, found in places.items()}


def _spans(sentence: Sentence, wanted: Collection[Key]) -> list[tuple[Key, int]]:
    """The wanted names in order, each with the index of its first token. At each place the longest name wins."""
    spans = []
    words = [_cleaned(token.strip("`")) for token in sentence.tokens]
    endings = [_singular(word) for word in words]
    beginnings = {key[0] for key in wanted}
    start = 0
    while start < len(words):
        if words[start] in beginnings or endings[start] in beginnings:
            for size in range(min(LONGEST_NAME, len(words) - start), 0, -1):
                key = (*words[start : start + size - 1], endings[start + size - 1])
                if key in wanted:
                    spans.append((key, start))
                    start += size - 1
                    break
        start += 1
    return spans


def _chosen(candidates: dict[Key, _Candidate], places: dict[Key, list[int]]) -> list[Key]:
    def weight(key: Key) -> tuple[float, int, Key]:
        bonus = max(_BONUS[kind] for kind in candidates[key].kinds)
        return -(len(places[key]) + bonus + 0.5 * (len(key) > 1)), places[key][0], key

    return sorted(candidates, key=weight)[:MOST_ENTITIES]


def _description(read: Sequence[Sentence], places: Sequence[int]) -> str:
    """The first sentences that mention it; a heading only if no sentence does."""
    chosen = [position for position in dict.fromkeys(places) if not read[position].heading] or [places[0]]
    text = ""
    for position in chosen[:3]:
        longer = f"{text} {read[position].text}".strip()
        if text and len(longer) > _LONGEST_DESCRIPTION:
            break
        text = longer
    return text[:_LONGEST_DESCRIPTION]


def _kind(name: str, candidate: _Candidate, read: Sequence[Sentence], allowed: dict[str, str]) -> str:
    guess = _guess(name, candidate, read)
    return allowed.get(guess.lower(), "Other") if allowed else guess


def _guess(name: str, candidate: _Candidate, read: Sequence[Sentence]) -> str:
    words = name.lower().replace(".", "").split()
    if words[0] in _HONORIFIC and len(words) > 1:
        return "Person"
    if len(words) > 1 and (words[-1] in _TYPE_OF_WORD or words[0] in ("mount", "lake")):
        return _TYPE_OF_WORD.get(words[-1], "Location")
    if "university" in words or "institute" in words:
        return "Organization"
    if "code" in candidate.kinds or any(c.isdigit() for c in name):
        return "Artifact"
    if candidate.kinds & {"heading", "definition", "frequent"} and "name" not in candidate.kinds:
        return "Concept"
    first = read[candidate.places[0]]
    if 2 <= len(words) <= 3 and name.replace(" ", "").replace("-", "").isalpha() and _PERSON_CUE.search(first.text):
        return "Person"
    before = {a.lower() for a, b in pairwise(first.tokens) if b == name.split()[0]}
    if before & _PLACE_CUE:
        return "Location"
    return "Other" if "name" in candidate.kinds else "Concept"


def _relations(read: Sequence[Sentence], names: dict[Key, str]) -> list[Relation]:
    counts: Counter[frozenset[str]] = Counter()
    first: dict[frozenset[str], Relation] = {}
    for sentence in read:
        spans = _distinct(_spans(sentence, names))[:_MOST_LINKED]
        links = [*pairwise(spans), *((spans[0], other) for other in spans[2:])]
        for (source, start), (target, end) in links:
            pair = frozenset({names[source], names[target]})
            if len(pair) < 2:
                continue
            counts[pair] += 1
            if pair not in first:
                keywords = _between(sentence, min(start, end), max(start, end), {*source, *target})
                text = sentence.text[:_LONGEST_DESCRIPTION]
                first[pair] = Relation(names[source], names[target], keywords, text)
    order = sorted(first, key=lambda pair: -counts[pair])
    return [first[pair] for pair in order[:MOST_RELATIONS]]


def _distinct(spans: list[tuple[Key, int]]) -> list[tuple[Key, int]]:
    return list({key: (key, start) for key, start in reversed(spans)}.values())[::-1]


def _between(sentence: Sentence, start: int, end: int, names: set[str]) -> str:
    """The content words between two names: mostly the verb and its object."""
    telling = [
        token.lower()
        for token in sentence.tokens[start + 1 : end]
        if is_word(token) and len(token) > 1 and token.lower() not in STOPWORDS and _key((token,))[0] not in names
    ]
    return ", ".join(dict.fromkeys(telling[:4])) or "mentioned together"
