"""Follows the styles of a Word document: headings, hidden text, and the numbers of headings and list items."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cragside.adapters.documents.number_formats import stated_number, written

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PLACE = re.compile(r"%([1-9])")
# Signs of the fonts Symbol and Wingdings.
_SIGNS = re.compile("[\ue000-\uf8ff]")
_LONGEST = 100
_MOST_LEVELS = 9
_DEEPEST_STYLE = 20
_HEADING = re.compile(r"heading (\d)$", re.IGNORECASE)


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
        """Return the first number of a level."""
        return self.starts.get(level, self.levels.get(level, _Level()).start)


@dataclass(frozen=True, slots=True)
class Style:
    """A style and those that it inherits from: their ids, and the lists and levels that each states."""

    ids: Sequence[str] = ()
    stated: Sequence[tuple[str, int | None]] = ()
    level: int | None = None
    is_title: bool = False
    is_hidden: bool = False


class Styles:
    """The styles of a document. `root` is None for a document without styles."""

    def __init__(self, root: Any) -> None:
        styles = list(root.iter(f"{W}style")) if root is not None else []
        self._elements = {style.get(f"{W}styleId", ""): style for style in styles}
        self._known = {name: self._inherited(name) for name in self._elements}
        paragraphs = (style for style in styles if style.get(f"{W}type") == "paragraph")
        default = [style for style in paragraphs if style.get(f"{W}default") in ("1", "true", "on")]
        self.default = default[-1].get(f"{W}styleId", "") if default else ""

    def of(self, name: str) -> Style:
        """Return the style with an id. One that the document lacks says nothing."""
        return self._known.get(name, _NO_STYLE)

    def hide_text(self, root: Any) -> None:
        """Hide the runs that have a style with hidden text, or whose paragraph has, unless they say otherwise."""
        hidden = {name for name, style in self._known.items() if style.is_hidden}
        for run in root.iter(f"{W}r") if hidden else ():
            paragraph = next(run.iterancestors(f"{W}p"), None)
            around = value_of(paragraph, "pPr", "pStyle") if paragraph is not None else ""
            if hidden.isdisjoint((value_of(run, "rPr", "rStyle"), around)):
                continue
            if (properties := run.find(f"{W}rPr")) is None:
                properties = run.makeelement(f"{W}rPr")
                run.insert(0, properties)
            if properties.find(f"{W}vanish") is None:
                properties.append(properties.makeelement(f"{W}vanish"))

    def _inherited(self, name: str) -> Style:
        ids = [name]
        while len(ids) < _DEEPEST_STYLE and (parent := value_of(self._elements[ids[-1]], "basedOn")) in self._elements:
            ids.append(parent)
        chain = [self._elements[each] for each in ids]
        names = [value_of(style, "name") for style in chain]
        levels = (
            int(heading[1]) if heading else 0 if called.lower() == "title" else outline_level(style)
            for style, called in zip(chain, names, strict=True)
            for heading in [_HEADING.match(called)]
        )
        hidden = (
            is_on(style.find(f"{W}rPr"), "vanish") for style in chain if _found(style, "rPr", "vanish") is not None
        )
        return Style(
            ids,
            [_stated(style) for style in chain],
            # A style that is based on that of titles is one of paragraphs.
            next((level for level in levels if level is not None), 0) or None,
            names[0].lower() == "title",
            next(hidden, False),
        )


_NO_STYLE = Style()


class Numbering:
    """Numbers the paragraphs of a document, which have to come in their order.

    `numbering` is the root of this part, None if the document has none.
    """

    def __init__(self, numbering: Any, styles: Styles) -> None:
        self._styles = styles
        self._lists = _lists(numbering, styles) if numbering is not None else {}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._begun: set[tuple[str, int]] = set()

    def number(self, paragraph: Any) -> str:
        """Return the number of a paragraph, such as "2.2" or "(b)"; "" without one, and for a bullet."""
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
        """Return the list and the level of a paragraph: its own, or those of its style."""
        style = self._styles.of(value_of(paragraph, "pPr", "pStyle") or self._styles.default)
        own, level = _stated(paragraph)
        name = own or next((name for name, _ in style.stated if name), "")
        if level is None and not own and name in self._lists:
            levels = self._lists[name].levels.items()
            level = next((number for each in style.ids for number, details in levels if details.style == each), None)
        if level is None:
            level = next((each for _, each in style.stated if each is not None), 0) if not own else 0
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


def value_of(element: Any, *path: str) -> str:
    """Return the value of a property of an element, such as `pPr`, `pStyle`; "" for none."""
    found = _found(element, *path)
    return found.get(f"{W}val", "") if found is not None else ""


def _found(element: Any, *path: str) -> Any:
    """Return the first element at a path. Going step by step takes a third of the time of a search."""
    for name in path:
        element = element.find(f"{W}{name}")
        if element is None:
            return None
    return element


def outline_level(holder: Any) -> int | None:
    """Return the outline level from 1 that a paragraph or a style states. LibreOffice writes headings so."""
    written = value_of(holder, "pPr", "outlineLvl")
    return int(written) + 1 if written in tuple("012345678") else None


def _stated(holder: Any) -> tuple[str, int | None]:
    """Return the list and the level that a paragraph or a style states, "" and None for what it does not."""
    if (stated := _found(holder, "pPr", "numPr")) is None:
        return "", None
    level = value_of(stated, "ilvl")
    return value_of(stated, "numId"), min(stated_number(level, 0), _MOST_LEVELS) if level else None


def _lists(root: Any, styles: Styles) -> dict[str, _List]:
    """Return the lists by their ids. One may borrow its levels from a list that a style names."""
    abstract = {each.get(f"{W}abstractNumId", ""): each for each in root.iterchildren(f"{W}abstractNum")}
    nums = {each.get(f"{W}numId", ""): each for each in root.iterchildren(f"{W}num")}
    levels = {name: _levels(each) for name, each in abstract.items()}

    def counted(num: Any) -> str:
        name = value_of(num, "abstractNumId")
        link = value_of(abstract[name], "numStyleLink") if name in abstract else ""
        borrowed = nums.get(next((name for name, _ in styles.of(link).stated[:1]), "")) if link else None
        return value_of(borrowed, "abstractNumId") if borrowed is not None else name

    found = dict[str, _List]()
    for name, num in nums.items():
        own, starts, source = dict[int, _Level](), dict[int, int](), counted(num)
        for override in num.iterchildren(f"{W}lvlOverride"):
            at = stated_number(override.get(f"{W}ilvl", ""), 0)
            if _found(override, "startOverride") is not None:
                starts[at] = stated_number(value_of(override, "startOverride"), 1)
            own |= _levels(override)
        found[name] = _List(source, levels.get(source, {}) | own, starts)
    return found


def _levels(holder: Any) -> dict[int, _Level]:
    found = dict[int, _Level]()
    for level in holder.iterchildren(f"{W}lvl"):
        at = stated_number(level.get(f"{W}ilvl", ""), 0)
        # Formats of later versions stand in front of one that earlier ones know.
        form = next(level.iter(f"{W}numFmt"), None)
        look = level.find(f"{W}rPr")
        found[min(at, _MOST_LEVELS)] = _Level(
            start=stated_number(value_of(level, "start"), 0),
            form=(form.get(f"{W}val") if form is not None else "") or "decimal",
            pattern=form.get(f"{W}format", "") if form is not None else "",
            text=value_of(level, "lvlText")[:_LONGEST],
            after=stated_number(value_of(level, "lvlRestart"), at),
            decimal=is_on(level, "isLgl"),
            shown=look is None or not is_on(look, "vanish"),
            style=value_of(level, "pStyle"),
        )
    return found
