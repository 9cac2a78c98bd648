"""Extracts names, terms and relations from a text by rules, in place of a language model."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

from cragside.adapters.embedded.words import ARTICLES, STOPWORDS

LONGEST_NAME = 5
_LONGEST_SENTENCE = 600
_MOST_SENTENCES = 400
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]{0,2}\s+|(?<=[。！？])|\n+")
# Runs of katakana and Han are tokens: Japanese writes names and terms like this.
_TOKEN = re.compile(
    r"`[^`\n]{1,60}`|[\u30a0-\u30ff]{2,20}|[\u3400-\u9fff]{2,8}"
    r"|[^\W_\u3040-\u30ff\u3400-\u9fff](?:[^\W\u3040-\u30ff\u3400-\u9fff]|[.+#&'’/-](?=[^\W\u3040-\u30ff\u3400-\u9fff]))*(?:\+\+|#)?"
    r"|[^\s]"
)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.{1,120})")
_DECORATION = re.compile(r"^[\s>*_+-]++|(?<![\s*_])[\s*_]++$|[*_]{2,3}")
_CONNECTORS = frozenset({"of", "de", "del", "der", "di", "da", "du", "la", "van", "von"})
_COPULA = frozenset({"is", "are", "was", "were", "means", "refers", "describes", "ist", "sind", "war", "bezeichnet"})
_NOT_NAMES = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december date user assistant skill note example section chapter figure table page today yesterday
    yes okay ok first second third finally moreover furthermore nevertheless therefore later many several
    """.split()  # noqa: SIM905 - a paragraph of words reads better than a list of strings
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The text and the tokens of a sentence or a heading."""

    text: str
    tokens: tuple[str, ...]
    heading: bool = False


@dataclass(frozen=True, slots=True)
class Mention:
    """A candidate for an entity: its words as written, and how it was found."""

    words: tuple[str, ...]
    kind: str  # name, acronym, code, heading, definition, opening


def sentences(text: str) -> list[Sentence]:
    """Return the sentences and headings of a text, at most 400 of at most 600 characters each."""
    found: list[Sentence] = []
    for line in text.splitlines():
        heading = _HEADING.match(line)
        cleaned = _DECORATION.sub("", heading.group(1) if heading else line).strip()
        for part in [cleaned] if heading else _SENTENCE_END.split(cleaned):
            cut = " ".join(part[:_LONGEST_SENTENCE].split())
            tokens = tuple(_TOKEN.findall(cut))
            if any(is_word(token) for token in tokens):
                found.append(Sentence(cut, tokens, heading is not None))
            if len(found) == _MOST_SENTENCES:
                return found
    return found


def is_word(token: str) -> bool:
    """Tell if a token is a word or code, not punctuation."""
    return token[0].isalnum() or (token[0] == "`" and len(token) > 2)


def mentions(sentence: Sentence) -> Iterator[Mention]:
    """Names, acronyms, code, defined terms and headings of a sentence."""
    if sentence.heading:
        named = tuple(token for token in sentence.tokens if is_word(token))
        yield Mention(_without_article(named)[:LONGEST_NAME], "heading")
    yield from _defined(sentence)
    run: list[str] = []
    for position, token in enumerate(sentence.tokens):
        if token[0] == "`":
            yield Mention((token.strip("`"),), "code")
        elif _is_caseless_name(token):
            yield Mention((token,), "name")
        if _is_name_word(token) or (run and token.isdigit() and len(token) <= 4):
            run.append(token)
            continue
        follows = sentence.tokens[position + 1] if position + 1 < len(sentence.tokens) else ""
        if run and token in _CONNECTORS and follows and _is_name_word(follows):
            run.append(token)
            continue
        yield from _named(run, first=position == len(run))
        run = []
    yield from _named(run, first=len(run) == len(sentence.tokens))


def _named(run: list[str], *, first: bool) -> Iterator[Mention]:
    words = _without_article(tuple(run))
    while words and words[0].lower() in STOPWORDS and not words[0].isupper():
        words = words[1:]
    if not words or words[0].lower() in _NOT_NAMES:
        return
    # A capital at the start of a sentence proves nothing. Such an "opening" needs support from other sentences.
    if len(words) == 1 and first and not words[0].isupper():
        yield Mention(words, "opening")
    elif len(words) == 1 and words[0].isupper() and len(words[0]) < 2:
        return
    else:
        acronym = len(words) == 1 and sum(c.isupper() for c in words[0]) > 1
        yield Mention(words[:LONGEST_NAME], "acronym" if acronym else "name")


def _defined(sentence: Sentence) -> Iterator[Mention]:
    """X in "An X is ...", if X has at most four words."""
    subject: list[str] = []
    for token in sentence.tokens[:6]:
        if token.lower() in _COPULA:
            words = _without_article(tuple(subject))
            if words and not any(word.lower() in STOPWORDS | _NOT_NAMES for word in words):
                yield Mention(words, "definition")
            return
        if not is_word(token) or token[0] == "`":
            return
        subject.append(token)


def _without_article(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[1:] if len(words) > 1 and words[0].lower() in ARTICLES else words


def _is_name_word(token: str) -> bool:
    return token[0].isupper() and (len(token) > 1 or token.isupper())


def _is_caseless_name(token: str) -> bool:
    return "\u30a0" <= token[0] <= "\u30ff" or "\u3400" <= token[0] <= "\u9fff"


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


@dataclass(frozen=True, slots=True)
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
    entities, relations = _extracted(text)
    allowed = {kind.lower(): kind for kind in types}
    return [replace(each, kind=_kind(each.kind, allowed)) for each in entities], list(relations)


def names_in(text: str) -> list[str]:
    """Return the names of the entities that `extract` finds."""
    candidates, _, chosen = _found(sentences(text))
    return [_display(key, candidates[key]) for key in chosen]


# A passage is read for its annotation and for the graph: by then, those of all tasks in hand may have been read.
@lru_cache(maxsize=512)
def _extracted(text: str) -> tuple[tuple[ExtractedEntity, ...], tuple[Relation, ...]]:
    read = sentences(text)
    candidates, places, chosen = _found(read)
    names = {key: _display(key, candidates[key]) for key in chosen}
    entities = tuple(
        ExtractedEntity(names[key], _guess(names[key], candidates[key], read), _description(read, places[key]))
        for key in chosen
    )
    return entities, tuple(_relations(read, names))


def _found(read: Sequence[Sentence]) -> tuple[dict[Key, _Candidate], dict[Key, list[int]], list[Key]]:
    """Return the candidates, the sentences that mention each, and the keys of the chosen ones."""
    candidates = _candidates(read)
    places = _places(read, candidates)
    return candidates, places, _chosen(candidates, places)


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
    """Return the name to compare: without possessive, and singular if the text shows that it is a common noun."""
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
    """Return the singular of a regular English plural. Other words stay as written."""
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
    """Return the sentences that mention each candidate, in any case or number."""
    places: dict[Key, list[int]] = {key: [] for key in candidates}
    beginnings = {key[0] for key in candidates}
    for position, sentence in enumerate(read):
        for key, _ in _spans(sentence, candidates, beginnings):
            places[key].append(position)
    return {key: found or [0] for key, found in places.items()}


@lru_cache(maxsize=4096)
def _forms(token: str) -> tuple[str, str]:
    """Return a token as a word of a name, and as the last word of one."""
    word = _cleaned(token.strip("`"))
    return word, _singular(word)


def _spans(sentence: Sentence, wanted: Collection[Key], beginnings: Collection[str]) -> list[tuple[Key, int]]:
    """Return the wanted names in order, each with the index of its first token. At each place the longest name wins.

    `beginnings` are their first words.
    """
    spans = []
    forms = [_forms(token) for token in sentence.tokens]
    words, endings = [word for word, _ in forms], [ending for _, ending in forms]
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
    """Return the first sentences that mention it; a heading only if no sentence does."""
    chosen = [position for position in dict.fromkeys(places) if not read[position].heading] or [places[0]]
    text = ""
    for position in chosen[:3]:
        longer = f"{text} {read[position].text}".strip()
        if text and len(longer) > _LONGEST_DESCRIPTION:
            break
        text = longer
    return text[:_LONGEST_DESCRIPTION]


def _kind(guess: str, allowed: dict[str, str]) -> str:
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
    beginnings = {key[0] for key in names}
    for sentence in read:
        spans = _distinct(_spans(sentence, names, beginnings))[:_MOST_LINKED]
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
    """Return the content words between two names: mostly the verb and its object."""
    telling = [
        token.lower()
        for token in sentence.tokens[start + 1 : end]
        if is_word(token) and len(token) > 1 and token.lower() not in STOPWORDS and _key((token,))[0] not in names
    ]
    return ", ".join(dict.fromkeys(telling[:4])) or "mentioned together"
