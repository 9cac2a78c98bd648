"""Adds to the article of a page what its extraction has dropped: short lists, headings; and the rows of its tables."""

import re
from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate

from cragside.adapters.documents.page_blocks import Block, joined

_WORD = re.compile(r"[^\W_]+")
# A block of fewer words counts as found only near the block before it, because it may stand anywhere by chance.
_SHORT = 4
_NEAR = 60
_RUN = 12  # characters
_TRIED = 20  # places, of those where the first characters of a block stand
_MOST_FOUND = 0.5


def with_dropped(article: str, blocks: list[Block], title: str) -> str:
    """The article with the blocks that it lacks, each behind the block that stands before it in the page.

    It lacks all rows of tables.
    """
    ends = [word.end() for word in _WORD.finditer(article)]
    article_words = _Words(_words(article))
    title_words = _words(title)
    lost: dict[int, list[Block]] = defaultdict(list)
    position = 0
    for block in blocks:
        said = _words(block.text)
        if not said or (block.prefix.startswith("#") and said == title_words):
            continue
        found = None if block.is_row else article_words.end_of(said, position)
        if found is not None:
            position = found
        elif block.is_row or not article_words.has_most(said):
            end = ends[position - 1] if position else 0
            lost[_line_end(article, end) if position else 0].append(block)
    pieces, start = list[str](), 0
    for end, dropped in sorted(lost.items()):
        pieces += (article[start:end].strip("\n"), joined(dropped))
        start = end
    pieces.append(article[start:].strip("\n"))
    return "\n\n".join(piece for piece in pieces if piece)


class _Words:
    """The words of a text, to find blocks in.

    They are compared without gaps. Half a word in bold or a soft hyphen parts a word in the article or in the block.
    """

    def __init__(self, words: list[str]) -> None:
        self._text = "".join(words)
        self._starts = [0, *accumulate(map(len, words))]
        self._places: dict[str, list[int]] = defaultdict(list)
        for start in self._starts[:-1]:
            self._places[self._text[start : start + _RUN]].append(start)

    def end_of(self, said: list[str], position: int) -> int | None:
        """Where a block ends that begins at a position or later, or else anywhere; None if the text lacks it."""
        block = "".join(said)
        if len(said) < _SHORT or len(block) < _RUN:
            places = self._starts[position : position + _NEAR]
        else:
            known = self._places.get(block[:_RUN], [])
            later = bisect_left(known, self._starts[position])
            places = known[later : later + _TRIED] + known[:_TRIED]
        for place in places:
            if self._text.startswith(block, place):
                end = bisect_left(self._starts, place + len(block))
                if self._starts[end] == place + len(block):
                    return end
        return None

    def has_most(self, said: list[str]) -> bool:
        """Tell if the text has most of a long block's runs of characters: it was cut or joined otherwise."""
        block = "".join(said)
        starts = accumulate(map(len, said[:-1]), initial=0)
        runs = [block[start : start + _RUN] for start in starts if start + _RUN <= len(block)]
        return len(said) > _SHORT and sum(run in self._places for run in runs) > _MOST_FOUND * len(runs)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end
