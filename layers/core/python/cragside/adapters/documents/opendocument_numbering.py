"""Counts the headings and list items of an OpenDocument text, and gives each its number."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from cragside.adapters.documents.number_formats import stated_number, written
from cragside.adapters.documents.opendocument_text import OFFICE, STYLE, TEXT

_ID = "{http://www.w3.org/XML/1998/namespace}id"
_EXTENDED = "{urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0}"
_BLOCKS = frozenset({f"{TEXT}p", f"{TEXT}h"})
_GONE = frozenset({f"{OFFICE}annotation", f"{TEXT}tracked-changes", f"{TEXT}note"})
_FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_PLACE = re.compile(r"%(\d{1,2})%")
_OUTLINE = "\n"  # no list has this name
_MOST_LEVELS = 10
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class _Level:
    """A level of a list. `shown` is the number of levels whose numbers it shows; `pattern` is such as "%1%.%2%."."""

    form: str = ""
    before: str = ""
    after: str = ""
    shown: int = 1
    start: int = 1
    pattern: str = ""


_Levels = Mapping[int, _Level]


@dataclass(slots=True)
class _Count:
    """The numbers of the levels of a list so far, None for a level that was left out."""

    numbers: list[int | None] = field(default_factory=list)

    def next(self, level: int, levels: _Levels, own: int) -> str:
        """Count an item of a level, which may begin at a number of its `own`. Return its number."""
        self.numbers += [None] * (level - len(self.numbers))
        last = self.numbers[level - 1]
        self.numbers[level - 1] = own if own >= 0 else levels[level].start if last is None else last + 1
        del self.numbers[level:]
        details = levels[level]
        if not details.form:
            return ""
        values = [_shown(number, levels.get(at, _Level())) for at, number in enumerate(self.numbers, 1)]
        if details.pattern:
            number = _PLACE.sub(lambda place: "".join(values[int(place[1]) - 1 : int(place[1])]), details.pattern)
        else:
            number = f"{details.before}{'.'.join(filter(None, values[-details.shown :]))}{details.after}"
        return " ".join(number[:_LONGEST].split())


@dataclass(frozen=True, slots=True)
class _Place:
    """The list that elements stand in: the name of its style, its depth and its count. `item` has no number yet."""

    name: str
    depth: int
    count: _Count
    item: list[Any]


def numbers_of(body: Any, styles: Iterable[Any]) -> dict[Any, str]:
    """The numbers of headings and first paragraphs of list items that have one."""
    styles = list(styles)
    levels, unnumbered = _all_levels(styles), _unnumbered(styles)
    outline, last, known = _Count(), dict[str, _Count](), dict[str, _Count]()
    found = dict[Any, str]()
    stack: list[tuple[Any, _Place | None]] = [(body, None)]
    while stack:
        element, place = stack.pop()
        if element.tag in _GONE:
            continue
        if element.tag == f"{TEXT}list":
            place = _entered(element, place, last, known)
        elif element.tag == f"{TEXT}list-item" and place is not None:
            place = _Place(place.name, place.depth, place.count, [element])
        elif element.tag == f"{TEXT}list-header" and place is not None:
            place = _Place(place.name, place.depth, place.count, [])
        elif element.tag in _BLOCKS and place is not None:
            if place.item and place.depth in levels.get(place.name, {}):
                own = stated_number(place.item.pop().get(f"{TEXT}start-value", ""), -1)
                found[element] = place.count.next(place.depth, levels[place.name], own)
        elif element.tag == f"{TEXT}h" and element.get(f"{TEXT}is-list-header") != "true":
            level = stated_number(element.get(f"{TEXT}outline-level", ""), 1)
            if level in levels[_OUTLINE] and element.get(f"{TEXT}style-name") not in unnumbered:
                own = stated_number(element.get(f"{TEXT}start-value", ""), -1)
                found[element] = outline.next(level, levels[_OUTLINE], own)
        stack.extend((child, place) for child in reversed(element))
    return found


def _entered(element: Any, around: _Place | None, last: dict[str, _Count], known: dict[str, _Count]) -> _Place:
    """The place in a list that begins here."""
    name = element.get(f"{TEXT}style-name") or (around.name if around is not None else "")
    if around is not None:
        # Behind a paragraph of its item, a list begins. Without one, it is only there to reach its depth.
        if not around.item:
            del around.count.numbers[around.depth :]
        return _Place(name, around.depth + 1, around.count, [])
    count = known.get(element.get(f"{TEXT}continue-list", ""))
    if count is None and element.get(f"{TEXT}continue-numbering") == "true":
        count = last.get(name)
    count = count or _Count()
    last[name] = known[element.get(_ID, "")] = count
    return _Place(name, 1, count, [])


def _shown(number: int | None, level: _Level) -> str:
    return written(level.start if number is None else number, level.form) if level.form else ""


def _all_levels(styles: list[Any]) -> dict[str, dict[int, _Level]]:
    """The levels of each style of lists by their numbers from 1, and those of headings."""
    found: dict[str, dict[int, _Level]] = {_OUTLINE: {}}
    for style in chain.from_iterable(each.iter(f"{TEXT}list-style", f"{TEXT}outline-style") for each in styles):
        name = _OUTLINE if style.tag == f"{TEXT}outline-style" else style.get(f"{STYLE}name", "")
        levels = found.setdefault(name, {})
        for level in style:
            at = stated_number(level.get(f"{TEXT}level", ""), 0)
            if 0 < at <= _MOST_LEVELS:
                levels[at] = _Level(
                    form=_FORMS.get(level.get(f"{STYLE}num-format", ""), ""),
                    before=level.get(f"{STYLE}num-prefix", ""),
                    after=level.get(f"{STYLE}num-suffix", ""),
                    shown=max(stated_number(level.get(f"{TEXT}display-levels", ""), 1), 1),
                    start=stated_number(level.get(f"{TEXT}start-value", ""), 1),
                    pattern=level.get(f"{STYLE}num-list-format") or level.get(f"{_EXTENDED}num-list-format", ""),
                )
    return found


def _unnumbered(styles: list[Any]) -> set[str]:
    """The styles of paragraphs that are in no list, not even in that of headings."""
    each = chain.from_iterable(root.iter(f"{STYLE}style") for root in styles)
    return {style.get(f"{STYLE}name", "") for style in each if style.get(f"{STYLE}list-style-name") == ""}
