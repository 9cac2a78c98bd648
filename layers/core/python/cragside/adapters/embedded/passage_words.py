"""The words of a passage, as the grader compares them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from cragside.adapters.embedded.dates import AskedDate, PassageDates
from cragside.adapters.embedded.foreign import ForeignText, tongue_of, unelided
from cragside.adapters.embedded.lexicon import Lexicon, Rows
from cragside.adapters.embedded.numbers import plain
from cragside.adapters.embedded.stopwords import STOPWORDS
from cragside.adapters.embedded.words import Language, function_words, stems, words
from cragside.domain.dates import Period
from cragside.ports.embedder import Vectors

# The direction of a longer text says little, so it has one for each of these windows.
_LONGEST_TEXT, _WINDOW, _STRIDE = 300, 240, 160
_BLOCK = 20
# The title is read with each segment, so a long one would cost much.
_LONGEST_TITLE = 500
_PARENTHESIS = re.compile(r"\([^()]*\)")
_FILE_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")


@dataclass(frozen=True, slots=True)
class PassageWords:
    """The analysis of a passage, which depends on no question.

    It has parts: the title, then each block of 20 words. `rows` has each word once; `places` says which of them the
    parts have, one part after the other, from each of `starts`. `stems` has each stem of a part once, between blanks,
    in one string: it takes a tenth of a set's memory. `size` counts the distinct stems. `dates` are those of each part.
    `directions` are those of windows with the title, shape (windows, dimensions).
    """

    language: Language
    title: tuple[str, ...]
    rows: Rows
    places: Rows
    starts: Rows
    stems: tuple[str, ...]
    size: int
    directions: Vectors
    foreign: tuple[ForeignText, ...]
    dates: tuple[tuple[Period, ...], ...]

    def may_move_any(self, dates: Sequence[AskedDate]) -> bool:
        """Tell if the passage moves something from one of these dates to another one."""
        return any(date.may_be_moved(stated) for date in dates for stated in self.dates)

    def states_any(self, dates: Sequence[AskedDate]) -> bool:
        """Tell if the passage, its title or its place states one of these dates in full."""
        return any(date.in_full(stated) for date in dates for stated in self.dates)

    def has_stem(self, sought: str) -> bool:
        """Tell if the passage or its title has a stem."""
        spaced = f" {sought} "
        return any(spaced in known for known in self.stems)


def read_passage(title: str, text: str, lexicon: Lexicon, *, place: str = "") -> PassageWords:
    """Analyse a passage.

    `place` names its document and section, as far as the title does not: dates in the passage are in their years.
    """
    body = words(text)
    title = title[:_LONGEST_TITLE]
    language = tongue_of(body)
    heading = words(title)
    named = words(_PARENTHESIS.sub(" ", _FILE_SUFFIX.sub("", title))) or heading
    if language == "french":
        body, heading, named = map(unelided, (body, heading, named))
    parts = [heading, *(body[start : start + _BLOCK] for start in range(0, len(body), _BLOCK))]
    rows = [lexicon.rows(_telling(part)) for part in parts]
    distinct, places = np.unique(np.concatenate(rows), return_inverse=True)
    foreign = tuple(ForeignText.of(part, language) for part in parts) if language != "english" else ()
    if foreign:
        known = [each.stems for each in foreign]
    else:
        stop = function_words([*heading, *body])
        known = [frozenset(map(plain, stems(part, language, stop))) for part in parts]
    dates = PassageDates.of(text, f"{title}\n{place[:_LONGEST_TITLE]}")
    return PassageWords(
        language,
        tuple(named),
        distinct,
        places.astype(np.int32),
        np.array(list(accumulate(map(len, rows[:-1]), initial=0)), dtype=np.int32),
        tuple(" ".join(["", *each, ""]) for each in known),
        len(frozenset[str]().union(*known)),
        np.stack([lexicon.direction([*heading, *window]) for window in _windows(body)]),
        foreign,
        (dates.above, *(dates.among(start, start + _BLOCK) for start in range(0, len(body), _BLOCK))),
    )


def _windows(body: list[str]) -> Sequence[list[str]]:
    if len(body) <= _LONGEST_TEXT:
        return [body]
    return [body[start : start + _WINDOW] for start in range(0, len(body) - _WINDOW + _STRIDE, _STRIDE)]


def _telling(part: list[str]) -> list[str]:
    """The distinct words of a part that say something; all if none does, and never no word."""
    return [word for word in dict.fromkeys(part) if word not in STOPWORDS] or part or [""]
