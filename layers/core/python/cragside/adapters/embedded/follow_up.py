"""Completes follow-up questions by rules: with the last topic in place of a pronoun, or with what was left out.

A date that is given by its distance ("and two weeks later?") is worked out.
"""

import calendar
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from typing_extensions import override

from cragside.adapters.embedded.words import (
    AND,
    ARTICLES,
    BUT,
    FRENCH_ARTICLES,
    FRENCH_INTERROGATIVES,
    INTERROGATIVES,
    OR,
    OTHER,
    PREPOSITIONS,
    SCAFFOLDING,
    STOPWORDS,
    listed,
    word_list,
)
from cragside.domain.dates import CARDINALS, Period, dates_in, month_and_day
from cragside.domain.prompt import ChatTurn
from cragside.ports.models import FollowUpReader

# They stand for a thing or a person of the turns before.
_PRONOUNS = word_list("pronouns")
_POSSESSIVES = word_list("possessives")
# French words that mean something else in English or German.
_FRENCH_POSSESSIVES = listed("son sa ses leur leurs")
_FRENCH = FRENCH_INTERROGATIVES | listed("est-ce est et à c'est qu'est-ce")
# They point back when they precede a noun, or stand alone.
_DEMONSTRATIVES = listed("""
this that these those dieser diese dieses diesem diesen jener jene jenes ce cet cette ces
""")
# They point back wherever they stand.
_WITHIN = listed("""
latter former same dort davon damit dafür daran darin darauf darüber dazu dabei letztere letzterer erstere erster
""")
# Alone at the end they point back: "how do I get there?", "und wie hoch ist der?"
_LAST_WORDS = listed("""
there one ones that this those these such so otherwise instead too der die das den dem denn sonst là ça autre y
""")
_ANOTHER = listed("other others andere anderen anderer anderes autre autres")
# "This year" needs no conversation.
_NOW = word_list("now")
_OPENERS = AND | OR | BUT | listed("also then so auch dann alors")
_OPENING_PHRASES = (
    "what about", "how about", "and what about", "and how about", "same for", "the same for", "was ist mit",
    "und was ist mit", "wie sieht es mit", "wie sieht es bei", "wie steht es mit", "wie ist es mit", "wie ist es bei",
    "et pour", "et que dire de", "qu'en est-il de", "qu'en est-il du",
)  # fmt: skip
# It stands for nothing: "is it possible to ...", "wie viele Arten gibt es".
_AFTER_EXPLETIVE = word_list("after expletive")
_WEATHER = listed("rain rains snow")
_EXPLETIVE_NEIGHBOURS = listed("gibt gab geht ging regnet schneit y faut faudrait fait possible heißt")
# "The first bridge and its rotor": what follows a clause can refer to what precedes it.
_SUBORDINATE = word_list("subordinate")
_CLAUSES = AND | OR | BUT | _SUBORDINATE
_DETERMINERS = ARTICLES | FRENCH_ARTICLES | listed("some every each all")
_PERSONAL = listed("he him his she her they them er ihn ihm seine ihre il elle lui")
_WHO = listed("who wer qui whom")
# Without a topic of their own in a question.
_GENERIC = word_list("generic")


_UNITS = {
    word: unit
    for unit, words in {
        "day": "day days tag tage tagen jour jours",
        "week": "week weeks woche wochen semaine semaines",
        "month": "month months monat monate monaten mois",
        "year": "year years jahr jahre jahren an ans année années",
    }.items()
    for word in words.split()
}
_UNIT = "|".join(_UNITS)
_LATER = r"later|after|afterwards|später|danach|darauf|plus tard|après"
_EARLIER = r"before|earlier|prior|davor|zuvor|vorher|früher|plus tôt|avant|auparavant"
_NEXT = r"next|following|folgenden?|nächsten?"
_LAST = r"previous|vorigen?|vorherigen?"
_DISTANCE = re.compile(
    rf"\b(?:(?P<number>[0-9]{{1,2}}|{'|'.join(CARDINALS)}) )?(?P<unit>{_UNIT}) (?:(?P<later>{_LATER})|(?:{_EARLIER}))\b"
    rf"|\b(?:(?P<next>{_NEXT})|(?:{_LAST})) (?P<beside>{_UNIT})\b"
    rf"|\b(?P<named>{_UNIT}) (?:(?P<suivant>suivante?)|précédente?)\b"
    r"|\bim (?:(?P<folgejahr>folgejahr)|vorjahr)\b"
)
_YEAR = re.compile(r"(?<![0-9.,])(?:19|20)[0-9]{2}(?![0-9])")
# Any year with 365 days does for a date without one.
_NO_LEAP_YEAR = 2001


def moved(question: str, last: str) -> tuple[str, str] | None:
    """The date that a question means by its distance from the date of the last question, and that one as it stands.

    Both are texts: a day, a month or a year. None if the question names no distance or a date of its own, or the last
    question no date that the distance applies to.
    """
    asked = question.lower()
    found = _DISTANCE.search(asked)
    if found is None or _YEAR.search(asked) or dates_in(asked):
        return None
    unit = _UNITS[found["unit"] or found["beside"] or found["named"] or "jahr"]
    number = int(found["number"]) if (found["number"] or "").isdigit() else CARDINALS.get(found["number"] or "", 1)
    forwards = found["later"] or found["next"] or found["suivant"] or found["folgejahr"]
    distance = number if forwards else -number
    if dates := dates_in(last.lower()):
        start, end, (period, *_) = dates[0]
        text = _day(period, unit, distance) if period.is_day else _month(period, unit, distance)
        return (text, last[start:end]) if text else None
    if unit == "year" and (year := _YEAR.search(last)):
        return str(int(year[0]) + distance), year[0]
    return None


def _day(period: Period, unit: str, distance: int) -> str:
    year, (month, day) = period.year or _NO_LEAP_YEAR, month_and_day(period.first)
    if unit in ("day", "week"):
        there = date(year, month, min(day, calendar.monthrange(year, month)[1]))
        there += timedelta(days=distance * (7 if unit == "week" else 1))
        year, month, day = there.year, there.month, there.day
    else:
        year, month = _shifted(year, month, unit, distance)
        day = min(day, calendar.monthrange(year, month)[1])
    return f"{day} {_written(period, year, month)}"


def _month(period: Period, unit: str, distance: int) -> str | None:
    if not period.is_month or unit not in ("month", "year"):
        return None
    month, _ = month_and_day(period.first)
    return _written(period, *_shifted(period.year or _NO_LEAP_YEAR, month, unit, distance))


def _shifted(year: int, month: int, unit: str, distance: int) -> tuple[int, int]:
    months = year * 12 + month - 1 + distance * (12 if unit == "year" else 1)
    return months // 12, months % 12 + 1


def _written(period: Period, year: int, month: int) -> str:
    name = calendar.month_name[month]
    return name if period.year is None else f"{name} {year}"


# A longer question says what it is about.
_LONGEST_FOLLOW_UP = 300
_MOST_TOPIC_WORDS = 8
# With so many words of content, a question says itself whose "its" is: "which planet turns three times on its ...?"
_TELLING = 7
_LONGEST_WORD = 40
_MARKS = "?!.,;:()[]{}<>\"'“”„«»‘’`*_#|/\\=-–—…"
_EMPTY = STOPWORDS | OTHER | SCAFFOLDING


class EmbeddedFollowUps(FollowUpReader):
    """Finds the topic in the user's last questions, and only then in the assistant's answer.

    It adds nothing but words of the conversation, at most eight, and takes time linear in the length of the turns.
    """

    @override
    async def standalone(self, question: str, turns: Sequence[ChatTurn], *, model: str | None) -> str:
        return completed(question, turns)


@dataclass(frozen=True, slots=True)
class _Question:
    """A question's words as written and in lower case. `names` are those that say what it is about."""

    written: list[str]
    lower: list[str]
    names: list[int]
    content: list[int]

    @classmethod
    def read(cls, text: str) -> "_Question":
        written = [bare for word in text.split() if (bare := word.strip(_MARKS))]
        lower = [word.lower().replace("’", "'") for word in written]
        content = [i for i, word in enumerate(lower) if _has_content(word)]
        named = [i for i in content if i and (written[i][0].isupper() or _has_digit(written[i]))]
        if named and 0 in content and named[0] == 1 and lower[0] not in _GENERIC:
            named = [0, *named]
        return cls(written, lower, named, content)

    def topic(self) -> list[str]:
        telling = [i for i in self.content if self.lower[i] not in _GENERIC]
        chosen = telling
        if self.names:  # and what follows a name: "Kepler space telescope"
            chosen = []
            for i in sorted({*self.names, *telling}):
                if i in self.names or (chosen and chosen[-1] == i - 1) or self._has_a_name(i):
                    chosen.append(i)
        return self.words(chosen[:_MOST_TOPIC_WORDS])

    def words(self, places: Iterable[int]) -> list[str]:
        return [self.written[i][:_LONGEST_WORD] for i in places]

    def _has_a_name(self, place: int) -> bool:
        """Tell if a thing has a name behind it: "the ferry to Hiddensee"."""
        lower = self.lower[: place + 4]
        if not place or lower[place - 1] not in _DETERMINERS or len(lower) < place + 3:
            return False
        name = place + 3 if lower[place + 2] in _DETERMINERS else place + 2
        return lower[place + 1] in PREPOSITIONS and name in self.names


def completed(question: str, turns: Sequence[ChatTurn]) -> str:
    """Return the question with what it leaves out; unchanged if it stands alone or the turns have no topic."""
    if len(question) > _LONGEST_FOLLOW_UP or not turns:
        return question
    asked = _Question.read(question)
    then = moved(question, next((turn.text for turn in reversed(turns) if turn.role == "user"), ""))
    if then is None and not (_points_back(asked) or _leaves_out(asked)):
        return question
    earlier = [_Question.read(turn.text) for turn in turns if turn.role == "user"]
    topic = _last_topic(earlier)
    answer = next((turn.text for turn in reversed(turns) if turn.role == "assistant"), "")
    if not topic or (earlier and _asks_for_the_person(asked, earlier[-1])):
        topic = [*topic, *_first_names(answer, besides=topic)]
    if then is not None:
        meant, last = then
        topic = [*(word for word in earlier[-1].words(earlier[-1].content) if word not in last), *meant.split()]
    elif earlier and _asks_for_another(asked):
        topic = earlier[-1].words(i for i in earlier[-1].content if i not in earlier[-1].names)
    elif earlier and _leaves_out(asked) and not _points_back(asked):
        topic = _rest_of_the_question(asked, earlier, topic)
    present = set(asked.lower)
    topic = [word for word in dict.fromkeys(topic) if word.lower() not in present]
    return _joined(question, asked, topic) if topic else question


def _last_topic(earlier: Sequence[_Question]) -> list[str]:
    """Return the topic of the last question that has one of its own."""
    for asked in reversed(earlier):
        topic = asked.topic()
        if topic and (asked.names or not (_points_back(asked) or _leaves_out(asked))):
            return topic
    return []


def _asks_for_another(asked: _Question) -> bool:
    """Tell if it asks the same about another thing than the last question did: "and the other one?"."""
    return not asked.names and not _ANOTHER.isdisjoint(asked.lower)


def _rest_of_the_question(asked: _Question, earlier: Sequence[_Question], topic: list[str]) -> list[str]:
    """Give what an ellipsis takes over from the last question: all but the names or numbers that it replaces."""
    last = earlier[-1]
    if not asked.names:
        return [*topic, *last.words(last.content)][:_MOST_TOPIC_WORDS]
    kept = [i for i in last.content if i not in last.names]
    if not any(_has_digit(asked.written[i]) for i in asked.names):
        return last.words(kept)[:_MOST_TOPIC_WORDS]
    kept = sorted([*kept, *(i for i in last.names if not _has_digit(last.written[i]))])
    return [*(word for word in topic if not _has_digit(word)), *last.words(kept)][:_MOST_TOPIC_WORDS]


def _points_back(asked: _Question) -> bool:
    """Tell if a pronoun or a demonstrative refers to the turns before."""
    lower = asked.lower
    french = any(word in _FRENCH for word in lower)
    for i, word in enumerate(lower):
        if _refers(asked, i, french=french) and not _explained(asked, i):
            return True
        if word.rpartition("-")[2] in ("il", "elle", "ils", "elles") and "-" in word and french:
            return not _explained(asked, i)
    return bool(lower) and len(lower) > 1 and lower[-1] in _LAST_WORDS and not asked.names


def _refers(asked: _Question, i: int, *, french: bool) -> bool:
    word, lower = asked.lower[i], asked.lower
    following = lower[i + 1] if i + 1 < len(lower) else ""
    before = lower[i - 1] if i else ""
    if word in ("il", "elle", "ils", "elles", "lui") and not french:
        return False
    if word in ("er", "ihre", "ihr", "ihren") and asked.written[i][0].isupper() and i:
        return False  # the polite form
    if word in _PRONOUNS:
        third = lower[i + 2] if i + 2 < len(lower) else ""
        # "How long does it take to get there?", but not "how long does it take?"
        is_followed = bool(third) or following in _WEATHER
        expletive = {following, before} & _EXPLETIVE_NEIGHBOURS or (following in _AFTER_EXPLETIVE and is_followed)
        return not (expletive or (word == "it" and (third == "to" or before == "time" or "time" in lower[:i])))
    if word in _POSSESSIVES or word in _WITHIN:
        return True
    if word in _FRENCH_POSSESSIVES:
        return french
    if word == "sie":
        return i > 0 and asked.written[i].islower()
    if word == "es":
        return i > 0 and not {following, before} & _EXPLETIVE_NEIGHBOURS
    if word in ("sein", "ihr") and i + 1 < len(lower):
        return lower[0] not in _FRENCH
    if word in _DEMONSTRATIVES:
        return following not in _NOW and (word != "that" or i == 0 or before in PREPOSITIONS)
    return False


def _explained(asked: _Question, i: int) -> bool:
    """Tell if the question itself has what the word at `i` refers to."""
    possessive = asked.lower[i] in _POSSESSIVES | _FRENCH_POSSESSIVES | {"sein", "ihr"}
    if possessive and len(asked.content) >= _TELLING:
        return True
    named = [j for j in asked.names if j < i]
    nouns = [
        j for j in asked.content
        if j < i and (j in named or any(word in _DETERMINERS for word in asked.lower[max(0, j - 3) : j]))
    ]  # fmt: skip
    if not nouns:
        return False
    between = asked.lower[nouns[-1] + 1 : i]
    return possessive or any(word in _CLAUSES for word in between)


def _leaves_out(asked: _Question) -> bool:
    """Tell if it is the rest of a question: "and the blue one?", "what about 2019?", "in Scotland?", "why?"."""
    lower = asked.lower
    if not lower:
        return False
    text = " ".join(lower) + " "
    if any(text.startswith(f"{phrase} ") for phrase in _OPENING_PHRASES):
        return True
    opened = lower[0] in _OPENERS and len(lower) > 1
    rest = lower[1:] if opened else lower
    telling = [i for i in asked.content if lower[i] not in _GENERIC]
    if opened:
        return not asked.names or not any(word in INTERROGATIVES for word in rest)
    if rest[0] in PREPOSITIONS and len(rest) <= 4:
        return not any(word in INTERROGATIVES for word in rest)
    return not telling and len(rest) <= 3 and any(word in INTERROGATIVES for word in rest)


def _asks_for_the_person(asked: _Question, last: _Question) -> bool:
    """Tell if "he" may be the answer to the last question, "who ...?"."""
    return bool(_PERSONAL & set(asked.lower)) and any(word in _WHO for word in last.lower[:3])


def _first_names(answer: str, *, besides: Sequence[str]) -> list[str]:
    """Return the first capitalised words of the answer, which is not to be trusted: at most four."""
    known = {word.lower() for word in besides}
    run: list[str] = []
    for word in answer.split():
        bare = word.strip(_MARKS)
        if bare and bare[0].isupper() and _has_content(bare.lower()) and bare.lower() not in known:
            run.append(bare[:_LONGEST_WORD])
        elif run:
            break
    return run[:4]


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _has_content(word: str) -> bool:
    return word not in _EMPTY and any(c.isalnum() for c in word)


def _joined(question: str, asked: _Question, topic: Sequence[str]) -> str:
    """Return the question with the topic in place of the first pronoun, else behind it."""
    phrase = " ".join(topic)
    replaceable = [i for i, word in enumerate(asked.lower) if word in ("it", "its", "he", "she", "they", "them", "him")]
    if len(replaceable) == 1 and _refers(asked, replaceable[0], french=False):
        pronoun = asked.written[replaceable[0]]
        words = question.split()
        at = next((n for n, word in enumerate(words) if word.strip(_MARKS) == pronoun), None)
        if at is not None:
            owner = "'s" if pronoun.lower() == "its" else ""
            words[at] = words[at].replace(pronoun, phrase + owner, 1)
            return " ".join(words)
    return f"{question.rstrip(' ?')} ({phrase})?"
