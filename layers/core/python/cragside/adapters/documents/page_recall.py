"""Adds to the article of a page what its extraction has dropped: short lists, headings, rows of tables."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from cragside.adapters.documents.page_blocks import Block, joined

_WORD = re.compile(r"[^\W_]+")
# A block of fewer words counts as found only near the block before it, because it may stand anywhere by chance.
_SHORT = 4
_NEAR = 60
_RUN = 3  # words
_TRIED = 20  # places, of those where the first words of a block stand
_MOST_FOUND = 0.5


def with_dropped(article: str, blocks: list[Block], title: str) -> str:
    """The article with the blocks that it lacks, each behind the block that stands before it in the page."""
    words = [(word[0].lower(), word.end()) for word in _WORD.finditer(article)]
    article_words = _Words([word for word, _ in words])
    lost: dict[int, list[Block]] = defaultdict(list)
    position = 0
    for block in blocks:
        said = [word.lower() for word in _WORD.findall(block.text)]
        if not said or (block.prefix.startswith("#") and said == [word.lower() for word in _WORD.findall(title)]):
            continue
        found = article_words.end_of(said, position)
        if found is not None:
            position = found
        elif not article_words.has_most(said):
            end = words[position - 1][1] if position else 0
            lost[_line_end(article, end) if position else 0].append(block)
    pieces, start = list[str](), 0
    for end, dropped in sorted(lost.items()):
        pieces += (article[start:end].strip("\n"), joined(dropped))
        start = end
    pieces.append(article[start:].strip("\n"))
    return "\n\n".join(piece for piece in pieces if piece)


class _Words:
    """The words of a text, to find runs of words in."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._places: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place in range(len(words) - _RUN + 1):
            self._places[tuple(words[place : place + _RUN])].append(place)

    def end_of(self, said: list[str], position: int) -> int | None:
        """Where a block ends that begins at a position or later, or else anywhere; None if the text lacks it."""
        if len(said) < _SHORT:
            places: Sequence[int] = range(position, min(position + _NEAR, len(self._words)))
        else:
            known = self._places.get(tuple(said[:_RUN]), [])
            later = bisect_left(known, position)
            places = known[later : later + _TRIED] + known[:_TRIED]
        found = (place for place in places if self._words[place : place + len(said)] == said)
        place = next(found, None)
        return None if place is None else place + len(said)

    def has_most(self, said: list[str]) -> bool:
        """Tell if the text has most of a long block's runs of words: it was cut or joined otherwise."""
        runs = [tuple(said[place : place + _RUN]) for place in range(len(said) - _RUN + 1)]
        return len(said) > _SHORT and sum(run in self._places for run in runs) > _MOST_FOUND * len(runs)


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end
