"""Annotates texts (tiers 2 and 3) by rules: summary, key terms, decisions, action items, all quoted from the text."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from typing_extensions import override

from cragside.adapters.embedded.extraction import Sentence, extract, names_in, sentences
from cragside.adapters.embedded.keywords import runs
from cragside.adapters.embedded.languages import iso_639_1
from cragside.adapters.embedded.words import SCAFFOLDING, Language, function_words, language_of, stem, stems, words
from cragside.application.attempts import DESCRIBED_CHARACTERS, Annotator
from cragside.domain.document import DocType

MOST_KEYWORDS = 10
_SUMMARY_SENTENCES = 3
_SHORTEST_SENTENCE = 6  # tokens
_SUMMARY_CHARACTERS = 600
_MOST_LINES = 10
_LONGEST_LINE = 300

# A decision, a request to do something, and what says that it is urgent, in English and German.
DECISION = re.compile(
    r"\b(?:decisions?\s*:|beschlüsse?\s*:|beschlossen\b|entschieden\b|einigten? (?:uns|sich)\b"
    r"|(?:we|they|it was|the (?:team|group|board|committee)) (?:have |has )?(?:decided|agreed|resolved)"
    r"|(?:decided|agreed) (?:to|that|on)\b)",
    re.IGNORECASE,
)
ACTION = re.compile(
    r"(?:^\s*(?:[-*]\s+)?\[ \]\s*|\b(?:action(?: item)?s?|to-?dos?|next steps?|aufgaben?)\s*:"
    r"|\bplease\s+[a-z]+|\bbitte\b|\b(?:can|could) you\b|\bkönn(?:en sie|test du|ten sie)\b)",
    re.IGNORECASE,
)
URGENT = re.compile(
    r"^(?:x-priority:\s*[12]\b|(?:importance|priority):\s*(?:high|urgent))|\b(?:urgent(?:ly)?|asap|as soon as possible"
    r"|immediately|dringend|so schnell wie möglich|umgehend)\b",
    re.IGNORECASE | re.MULTILINE,
)
# Headings, list items, quotes, tables and speakers begin a new line.
_OWN_LINE = re.compile(r"\s*(?:#|[-*+>|]\s|\d{1,3}[.)]\s|\[|[A-Z][\w .-]{0,30}:\s)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.{1,120})$", re.MULTILINE)


def key_terms(text: str) -> list[str]:
    """At most 10 runs of content words, ranked by the frequency of their words."""
    found = words(text)
    language = language_of(found)
    counts = Counter(stems(found, language))
    stop = function_words(found) | SCAFFOLDING
    spelt: dict[tuple[str, ...], str] = {}
    times: Counter[tuple[str, ...]] = Counter()
    for run in (run for line in _unwrapped(text) for run in runs(line, stop)):
        for part in dict.fromkeys((tuple(run), *((word,) for word in run))):
            key = _stemmed(" ".join(part), language)
            if key and (len(key) > 1 or len(key[0]) > 2) and not all(word.isdigit() for word in key):
                spelt.setdefault(key, " ".join(part))
                times[key] += 1
    ranked = sorted(
        spelt, key=lambda key: -sum(counts[word] for word in key) / len(key) * times[key] * (1 + (len(key) > 1))
    )
    chosen: list[tuple[str, ...]] = []
    for key in ranked:
        if len(chosen) == MOST_KEYWORDS:
            break
        if not any(_within(key, other) or _within(other, key) for other in chosen):
            chosen.append(key)
    return [spelt[key] for key in chosen]


@lru_cache(maxsize=4096)
def _stemmed(part: str, language: Language) -> tuple[str, ...]:
    return tuple(stem(word, language) for word in words(part))


def summary_of(text: str) -> str:
    """Return the first sentence, and the two with most of the text's repeated words; "" if there are none."""
    whole = sentences("\n".join(_unwrapped(text)))
    read = [sentence for sentence in whole if not sentence.heading and len(sentence.tokens) >= _SHORTEST_SENTENCE]
    if not read:
        return ""
    stemmed = [_stems_of(sentence) for sentence in read]
    counts = Counter(word for found in stemmed for word in set(found))

    def weight(position: int) -> float:
        repeated = sum(counts[word] for word in set(stemmed[position]) if counts[word] > 1)
        return repeated / (len(stemmed[position]) + 4)

    # The first sentence most often states the subject of a text.
    others = sorted(range(1, len(read)), key=lambda position: (-weight(position), position))
    chosen = sorted([0, *others[: _SUMMARY_SENTENCES - 1]])
    return _shortened(" ".join(read[position].text for position in chosen), _SUMMARY_CHARACTERS)


def headings_of(text: str) -> list[str]:
    """Return the text's Markdown headings."""
    return _distinct(_HEADING.findall(text))


def sentences_with(pattern: re.Pattern[str], text: str) -> list[str]:
    """Return the sentences and lines that fit a pattern, such as `DECISION`."""
    parts = (part for line in text.splitlines() for part in re.split(r"(?<=[.!?])\s+", line[: _LONGEST_LINE * 4]))
    return _distinct([part for part in parts if pattern.search(part)])


def _distinct(found: Sequence[str]) -> list[str]:
    cleaned = (_shortened(" ".join(part.split()).strip("-*> "), _LONGEST_LINE) for part in found)
    return list(dict.fromkeys(filter(None, cleaned)))[:_MOST_LINES]


def _unwrapped(text: str) -> list[str]:
    """Return the lines, with those of a wrapped paragraph joined."""
    lines: list[str] = []
    wrapped = False
    for line in text.splitlines():
        prose = bool(line.strip()) and not _OWN_LINE.match(line)
        if prose and wrapped:
            lines[-1] += f" {line.strip()}"
        elif line.strip():
            lines.append(line)
        wrapped = prose
    return lines


def _stems_of(sentence: Sentence) -> list[str]:
    found = words(sentence.text)
    return stems(found, language_of(found))


def _within(key: tuple[str, ...], other: tuple[str, ...]) -> bool:
    size = len(key)
    return any(other[start : start + size] == key for start in range(len(other) - size + 1))


def _shortened(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[:characters].rsplit(None, 1)[0] + " …"


_BY = "embedded"
_DOCSTRING = re.compile(
    r'"""(.{10,2000}?)"""|\'\'\'(.{10,2000}?)\'\'\'|/\*\*?((?:[^*/]|\*(?!/)|/(?!\*)){10,2000}+)\*/', re.DOTALL
)
_COMMENTS = re.compile(r"\A(?:#!.*\n)?((?:[ \t]*(?:#|//|--)(?!!).*\n){1,20})")
_COMMENT_MARK = re.compile(r"^[ \t]*(?:#+|//+|--|\*)[ \t]?", re.MULTILINE)
_MAIL_HEADER = re.compile(r"\A(?:[A-Za-z-]{2,40}+:[^\n]*+\n(?:[ \t][^\n]*+\n)*+)++")

Field = Callable[[str], Any]


class EmbeddedAnnotator(Annotator):
    """Annotates by rules, in time linear in the length of the text. Equal texts get equal annotations.

    Tier 3 has the fields that rules can fill; `by` is `embedded`. It lacks fields that need understanding, such as
    intent, sentiment or purpose.
    """

    @override
    def tier2(self, text: str) -> dict[str, Any]:
        entities, _ = extract(text)
        return {
            "entities": [{"text": entity.name, "label": entity.kind} for entity in entities],
            "keywords": key_terms(text),
            "language": iso_639_1(text),
        }

    @override
    async def tier3(self, doc_type: DocType, text: str) -> dict[str, Any]:
        read = text[:DESCRIBED_CHARACTERS]
        found = {name: field(read) for name, field in _FIELDS[doc_type].items()}
        return {**{name: value for name, value in found.items() if value}, "by": _BY}


def _comment(code: str) -> str:
    """Return the first paragraph of the code's comment or docstring."""
    opening = _COMMENTS.match(code)
    quoted = _DOCSTRING.search(code)
    if opening:
        comment = _COMMENT_MARK.sub("", opening.group(1))
    elif quoted:
        comment = _COMMENT_MARK.sub("", next(filter(None, quoted.groups())))
    else:
        return ""
    return " ".join(comment.strip().partition("\n\n")[0].split())[:600]


def _mail_body(mail: str) -> str:
    return _MAIL_HEADER.sub("", mail, count=1)


_DECISIONS, _ACTIONS = partial(sentences_with, DECISION), partial(sentences_with, ACTION)
_FIELDS: Mapping[DocType, Mapping[str, Field]] = {
    "code": {"summary": _comment},
    "email": {
        "urgency": lambda mail: "high" if URGENT.search(mail) else None,
        "action_items": lambda mail: sentences_with(ACTION, _mail_body(mail)),
        "summary": lambda mail: summary_of(_mail_body(mail)),
    },
    "meeting": {"decisions": _DECISIONS, "action_items": _ACTIONS, "topic_segments": headings_of},
    "slack": {"summary": summary_of, "decisions": _DECISIONS, "action_items": _ACTIONS},
    "article": {"summary": summary_of, "tags": key_terms},
    "pdf": {"summary": summary_of, "key_entities": names_in, "sections": headings_of},
    "image": {},
    "text": {"summary": summary_of, "key_entities": names_in},
}
