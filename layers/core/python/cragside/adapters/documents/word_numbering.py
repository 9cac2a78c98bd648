"""Counts the headings and list items of a Word document, and gives each its number as Word shows it."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from cragside.adapters.documents.number_formats import stated_number, written

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PLACE = re.compile(r"%([1-9])")
# Signs of the fonts Symbol and Wingdings.
_SIGNS = re.compile("[\ue000-\uf8ff]")
_LONGEST = 100
_MOST_LEVELS = 9
_DEEPEST_STYLE = 20


@dataclass(frozen=True, slots=True)
class _Level:
    """A level of a list. `after` is the number of levels whose use restarts it; `style` is the style that has it."""

    start: int = 1
    form: str = "decimal"
    pattern: str = ""
    text: str = ""
    after: int = 0
    decimal: bool = False
    shown: bool = True
    style: str = ""


@dataclass(frozen=True, slots=True)
class _List:
    """The levels of a list. Lists with the same `counted` go on counting each other, except for levels in `starts`."""

    counted: str
    levels: dict[int, _Level]
    starts: dict[int, int]

    def start(self, level: int) -> int:
        """The first number of a level."""
        return self.starts.get(level, self.levels.get(level, _Level()).start)


@dataclass(slots=True)
class _Styles:
    """The list and level that each style states, the style that it is based on, and the style of other paragraphs."""

    stated: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    based: dict[str, str] = field(default_factory=dict)
    default: str = ""

    def chain(self, style: str) -> list[str]:
        """A style and those that it inherits from."""
        names = [style or self.default]
        while len(names) < _DEEPEST_STYLE and (parent := self.based.get(names[-1])):
            names.append(parent)
        return names


class Numbering:
    """Numbers the paragraphs of a document, which have to come in their order.

    `numbering` and `styles` are the roots of these parts, None if the document has none.
    """

    def __init__(self, numbering: Any, styles: Any) -> None:
        self._styles = _styles(styles) if styles is not None else _Styles()
        self._lists = _lists(numbering, self._styles) if numbering is not None else {}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._begun: set[tuple[str, int]] = set()

    def number(self, paragraph: Any) -> str:
        """The number of a paragraph, such as "2.2" or "(b)"; "" without one. A bullet is none."""
        name, level = self._place(paragraph)
        items = self._lists.get(name)
        if items is None or _unseen(paragraph):
            return ""
        counts = self._counts[items.counted]
        begins = level not in counts or (level in items.starts and (name, level) not in self._begun)
        counts[level] = items.start(level) if begins else counts[level] + 1
        self._begun.add((name, level))
        for deeper in [each for each in counts if each > level]:
            if level < items.levels.get(deeper, _Level(after=deeper)).after:
                del counts[deeper]
        return _shown(items, level, counts)

    def _place(self, paragraph: Any) -> tuple[str, int]:
        """The list and the level of a paragraph: its own, or those of its style."""
        style = paragraph.find(f"{W}pPr/{W}pStyle")
        chain = self._styles.chain(_value(style))
        own, level = _stated(paragraph)
        stated = [self._styles.stated[each] for each in chain if each in self._styles.stated]
        name = own or next((name for name, _ in stated if name), "")
        if level is None and not own and name in self._lists:
            levels = self._lists[name].levels.items()
            linked = (number for each in chain for number, details in levels if details.style == each)
            level = next(linked, None)
        if level is None:
            level = next((each for _, each in stated if each is not None), 0) if not own else 0
        return name, level


def _shown(items: _List, level: int, counts: dict[int, int]) -> str:
    details = items.levels.get(level)
    if details is None or not details.shown or details.form == "bullet":
        return ""

    def value(place: re.Match[str]) -> str:
        at = int(place[1]) - 1
        of = items.levels.get(at, _Level())
        form = "decimal" if details.decimal and of.form != "decimalZero" else of.form
        return written(counts.get(at, items.start(at)), form, of.pattern)

    return " ".join(_SIGNS.sub("", _PLACE.sub(value, details.text)).split())


def _unseen(paragraph: Any) -> bool:
    """Tell if the mark that ends a paragraph is hidden or deleted, so that it is not counted."""
    marked = paragraph.find(f"{W}pPr/{W}rPr")
    return marked is not None and any(is_on(marked, name) for name in ("vanish", "del", "moveFrom"))


def is_on(properties: Any, name: str) -> bool:
    """Tell if a property that may be switched off is there and on."""
    found = properties.find(f"{W}{name}")
    return found is not None and found.get(f"{W}val", "true") not in ("0", "false", "off")


def _stated(holder: Any) -> tuple[str, int | None]:
    """The list and the level that a paragraph or a style states, "" and None for what it does not."""
    stated = holder.find(f"{W}pPr/{W}numPr")
    if stated is None:
        return "", None
    level = _value(stated.find(f"{W}ilvl"))
    return _value(stated.find(f"{W}numId")), min(stated_number(level, 0), _MOST_LEVELS) if level else None


def _styles(root: Any) -> _Styles:
    styles = _Styles()
    for style in root.iter(f"{W}style"):
        identity = style.get(f"{W}styleId", "")
        styles.stated[identity] = _stated(style)
        styles.based[identity] = _value(style.find(f"{W}basedOn"))
        if style.get(f"{W}type") == "paragraph" and style.get(f"{W}default") in ("1", "true", "on"):
            styles.default = identity
    return styles


def _lists(root: Any, styles: _Styles) -> dict[str, _List]:
    """The lists by their ids. One may borrow its levels from a list that a style names."""
    abstract = {each.get(f"{W}abstractNumId", ""): each for each in root.iterchildren(f"{W}abstractNum")}
    nums = {each.get(f"{W}numId", ""): each for each in root.iterchildren(f"{W}num")}
    levels = {name: _levels(each) for name, each in abstract.items()}

    def counted(num: Any) -> str:
        name = _value(num.find(f"{W}abstractNumId"))
        link = abstract[name].find(f"{W}numStyleLink") if name in abstract else None
        borrowed = nums.get(styles.stated.get(_value(link), ("", None))[0]) if link is not None else None
        return _value(borrowed.find(f"{W}abstractNumId")) if borrowed is not None else name

    found = dict[str, _List]()
    for name, num in nums.items():
        own, starts, source = dict[int, _Level](), dict[int, int](), counted(num)
        for override in num.iterchildren(f"{W}lvlOverride"):
            at = stated_number(override.get(f"{W}ilvl", ""), 0)
            if (start := override.find(f"{W}startOverride")) is not None:
                starts[at] = stated_number(_value(start), 1)
            own |= _levels(override)
        found[name] = _List(source, levels.get(source, {}) | own, starts)
    return found


def _levels(holder: Any) -> dict[int, _Level]:
    found = dict[int, _Level]()
    for level in holder.iterchildren(f"{W}lvl"):
        at = stated_number(level.get(f"{W}ilvl", ""), 0)
        # Formats of later versions stand in front of one that earlier ones know.
        form = next(level.iter(f"{W}numFmt"), None)
        after, look = level.find(f"{W}lvlRestart"), level.find(f"{W}rPr")
        found[min(at, _MOST_LEVELS)] = _Level(
            start=stated_number(_value(level.find(f"{W}start")), 0),
            form=_value(form) or "decimal",
            pattern=form.get(f"{W}format", "") if form is not None else "",
            text=_value(level.find(f"{W}lvlText"))[:_LONGEST],
            after=at if after is None else stated_number(_value(after), at),
            decimal=is_on(level, "isLgl"),
            shown=look is None or not is_on(look, "vanish"),
            style=_value(level.find(f"{W}pStyle")),
        )
    return found


def _value(element: Any) -> str:
    return element.get(f"{W}val", "") if element is not None else ""
