"""Completes follow-up questions by rules: with the last topic in place of a pronoun, or with what was left out."""

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override

from cragside.adapters.embedded import follow_up_words as listed
from cragside.adapters.embedded.follow_up_times import moved
from cragside.adapters.embedded.grammar import INTERROGATIVES, PREPOSITIONS
from cragside.adapters.embedded.stopwords import OTHER, SCAFFOLDING, STOPWORDS
from cragside.domain.prompt import ChatTurn
from cragside.ports.models import FollowUpReader

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
        named = [i for i in content if i and (written[i][0].isupper() or any(c.isdigit() for c in written[i]))]
        if named and 0 in content and named[0] == 1 and lower[0] not in listed.GENERIC:
            named = [0, *named]
        return cls(written, lower, named, content)

    def topic(self) -> list[str]:
        telling = [i for i in self.content if self.lower[i] not in listed.GENERIC]
        chosen = telling
        if self.names:  # and what follows a name: "Kepler space telescope"
            chosen = []
            for i in sorted({*self.names, *telling}):
                if i in self.names or (chosen and chosen[-1] == i - 1) or self._has_a_name(i):
                    chosen.append(i)
        return [self.written[i][:_LONGEST_WORD] for i in chosen[:_MOST_TOPIC_WORDS]]

    def _has_a_name(self, place: int) -> bool:
        """Tell if a name says which one it is: "the ferry to Hiddensee"."""
        lower = self.lower[: place + 4]
        if not place or lower[place - 1] not in listed.DETERMINERS or len(lower) < place + 3:
            return False
        name = place + 3 if lower[place + 2] in listed.DETERMINERS else place + 2
        return lower[place + 1] in PREPOSITIONS and name in self.names


def completed(question: str, turns: Sequence[ChatTurn]) -> str:
    """The question with what it leaves out; unchanged if it stands alone or the turns have no topic."""
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
        rest = [earlier[-1].written[i][:_LONGEST_WORD] for i in earlier[-1].content]
        topic = [*(word for word in rest if word not in last), *meant.split()]
    elif earlier and _asks_for_another(asked):
        topic = [earlier[-1].written[i][:_LONGEST_WORD] for i in earlier[-1].content if i not in earlier[-1].names]
    elif earlier and _leaves_out(asked) and not _points_back(asked):
        topic = _rest_of_the_question(asked, earlier, topic)
    present = set(asked.lower)
    topic = [word for word in dict.fromkeys(topic) if word.lower() not in present]
    return _joined(question, asked, topic) if topic else question


def _last_topic(earlier: Sequence[_Question]) -> list[str]:
    """The topic of the last question that has one of its own."""
    for asked in reversed(earlier):
        topic = asked.topic()
        if topic and (asked.names or not (_points_back(asked) or _leaves_out(asked))):
            return topic
    return []


def _asks_for_another(asked: _Question) -> bool:
    """Tell if it asks the same about another thing than the last question did: "and the other one?"."""
    return not asked.names and not listed.ANOTHER.isdisjoint(asked.lower)


def _rest_of_the_question(asked: _Question, earlier: Sequence[_Question], topic: list[str]) -> list[str]:
    """Give what an ellipsis takes over from the last question: all but the names or numbers that it replaces."""
    last = earlier[-1]
    words = [i for i in last.content if i not in last.names] if asked.names else list(last.content)
    if asked.names:
        replaced = any(c.isdigit() for i in asked.names for c in asked.written[i])
        if replaced:
            kept = [i for i in last.names if not any(c.isdigit() for c in last.written[i])]
            words = sorted([*words, *kept])
            return [*_without_numbers(topic), *(last.written[i][:_LONGEST_WORD] for i in words)][:_MOST_TOPIC_WORDS]
        return [last.written[i][:_LONGEST_WORD] for i in words][:_MOST_TOPIC_WORDS]
    rest = [last.written[i][:_LONGEST_WORD] for i in words]
    return [*topic, *rest][:_MOST_TOPIC_WORDS]


def _without_numbers(topic: Sequence[str]) -> list[str]:
    """The words of a topic that contain no digit."""
    return [word for word in topic if not any(c.isdigit() for c in word)]


def _points_back(asked: _Question) -> bool:
    """Tell if a pronoun or a demonstrative refers to the turns before."""
    lower = asked.lower
    french = any(word in listed.FRENCH for word in lower)
    for i, word in enumerate(lower):
        if _refers(asked, i, french=french) and not _explained(asked, i):
            return True
        if word.rpartition("-")[2] in ("il", "elle", "ils", "elles") and "-" in word and french:
            return not _explained(asked, i)
    return bool(lower) and len(lower) > 1 and lower[-1] in listed.LAST_WORDS and not asked.names


def _refers(asked: _Question, i: int, *, french: bool) -> bool:
    word, lower = asked.lower[i], asked.lower
    following = lower[i + 1] if i + 1 < len(lower) else ""
    before = lower[i - 1] if i else ""
    if word in ("il", "elle", "ils", "elles", "lui") and not french:
        return False
    if word in ("er", "ihre", "ihr", "ihren") and asked.written[i][0].isupper() and i:
        return False  # the polite form
    if word in listed.PRONOUNS:
        third = lower[i + 2] if i + 2 < len(lower) else ""
        # "How long does it take to get there?", but not "how long does it take?"
        is_followed = bool(third) or following in listed.WEATHER
        expletive = {following, before} & listed.EXPLETIVE_NEIGHBOURS or (
            following in listed.AFTER_EXPLETIVE and is_followed
        )
        return not (expletive or (word == "it" and (third == "to" or before == "time" or "time" in lower[:i])))
    if word in listed.POSSESSIVES or word in listed.WITHIN:
        return True
    if word in listed.FRENCH_POSSESSIVES:
        return french
    if word == "sie":
        return i > 0 and asked.written[i].islower()
    if word == "es":
        return i > 0 and not {following, before} & listed.EXPLETIVE_NEIGHBOURS
    if word in ("sein", "ihr") and i + 1 < len(lower):
        return lower[0] not in listed.FRENCH
    if word in listed.DEMONSTRATIVES:
        return following not in listed.NOW and (word != "that" or i == 0 or before in PREPOSITIONS)
    return False


def _explained(asked: _Question, i: int) -> bool:
    """Tell if the question itself says what the word at `i` refers to."""
    possessive = asked.lower[i] in listed.POSSESSIVES | listed.FRENCH_POSSESSIVES | {"sein", "ihr"}
    if possessive and len(asked.content) >= _TELLING:
        return True
    named = [j for j in asked.names if j < i]
    nouns = [
        j for j in asked.content
        if j < i and (j in named or any(word in listed.DETERMINERS for word in asked.lower[max(0, j - 3) : j]))
    ]  # fmt: skip
    if not nouns:
        return False
    between = asked.lower[nouns[-1] + 1 : i]
    return possessive or any(word in listed.CLAUSES for word in between)


def _leaves_out(asked: _Question) -> bool:
    """Tell if it is the rest of a question: "and the blue one?", "what about 2019?", "in Scotland?", "why?"."""
    lower = asked.lower
    if not lower:
        return False
    text = " ".join(lower) + " "
    if any(text.startswith(f"{phrase} ") for phrase in listed.OPENING_PHRASES):
        return True
    opened = lower[0] in listed.OPENERS and len(lower) > 1
    rest = lower[1:] if opened else lower
    telling = [i for i in asked.content if lower[i] not in listed.GENERIC]
    if opened:
        return not asked.names or not any(word in INTERROGATIVES for word in rest)
    if rest[0] in PREPOSITIONS and len(rest) <= 4:
        return not any(word in INTERROGATIVES for word in rest)
    return not telling and len(rest) <= 3 and any(word in INTERROGATIVES for word in rest)


def _asks_for_the_person(asked: _Question, last: _Question) -> bool:
    """Tell if "he" may be the answer to the last question, "who ...?"."""
    return bool(listed.PERSONAL & set(asked.lower)) and any(word in listed.WHO for word in last.lower[:3])


def _first_names(answer: str, *, besides: Sequence[str]) -> list[str]:
    """The first capitalised words of the answer, which is not to be trusted: at most four."""
    known = {word.lower() for word in besides}
    run: list[str] = []
    for word in answer.split():
        bare = word.strip(_MARKS)
        if bare and bare[0].isupper() and _has_content(bare.lower()) and bare.lower() not in known:
            run.append(bare[:_LONGEST_WORD])
        elif run:
            break
    return run[:4]


def _has_content(word: str) -> bool:
    return word not in _EMPTY and any(c.isalnum() for c in word)


def _joined(question: str, asked: _Question, topic: Sequence[str]) -> str:
    """The question with the topic in place of the first pronoun, else behind it."""
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
