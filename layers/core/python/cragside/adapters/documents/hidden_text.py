"""Takes out of a page what its own styles and attributes hide from readers.

Inline styles and `style` elements with simple selectors (an element's name, classes and id) count. So do the style
sheets of a book or a saved page. Nothing is fetched, and no script runs.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from math import hypot
from typing import Any

import tinycss2
from tinycss2.color4 import Color, parse_color

Value = Sequence[Any]
# The tokens of each property, and if they are important.
Declared = dict[str, tuple[Value, bool]]
_Rule = tuple[frozenset[str], int, Declared]
_Colour = tuple[int, int, int]

# Elements that readers do not see. Extraction leaves out scripts and styles itself.
_NEVER_SHOWN = frozenset(
    {"template", "noscript", "datalist", "iframe", "object", "audio", "video", "canvas", "noframes", "noembed"}
)
_CONTENT = ("main", "article", "h1")
_WHITE = (255, 255, 255)
_LONGEST_SHEET = 500_000
_LONGEST_INLINE = 5_000
_MOST_RULES = 5_000
_DEEPEST = 4
# The most comparisons of rules with elements. After these, only inline styles count.
_MOST_CHECKS = 2_000_000
# tinycss2 fails at an integer of thousands of digits.
_LONG_NUMBER = re.compile(r"([0-9]{300})[0-9]++")
# These cannot stand in a tree.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# Rough sizes in pixels, enough to tell a line from a screen.
_PIXELS = {"px": 1.0, "pt": 1.33, "pc": 16.0, "in": 96.0, "cm": 38.0, "mm": 3.8, "q": 0.94, "em": 16.0, "rem": 16.0}
_PIXELS |= {"ex": 8.0, "ch": 8.0, "vw": 10.0, "vh": 8.0, "vmin": 8.0, "vmax": 10.0}
_OFF_SCREEN = -450.0
# Visible boxes are narrower, and places off the screen to the right are farther.
_FAR = 5_000.0
_SMALLEST_FONT = 1.5
_SMALLEST = 0.05
# A shape's share of 100 per cent is `_FAR`, so a length counts as a whole box only if it exceeds every box.
_WHOLE_BOX = 0.98 * _FAR
_SIDES = ("top", "right", "bottom", "left")
_PLACED = ("absolute", "fixed", "relative", "sticky")
_RELEVANT = frozenset(
    {"display", "visibility", "content-visibility", "opacity", "filter", "font-size", "font", "zoom", "text-indent"}
    | {"position", *_SIDES, "margin-left", "margin-top", "transform", "translate", "scale", "clip", "clip-path"}
    | {"height", "width", "max-height", "max-width", "overflow", "overflow-x", "overflow-y", "color"}
    | {"background", "background-color", "background-image", "-webkit-text-fill-color"}
)
# For pages that are written from left to right and from top to bottom.
_LOGICAL = {"inline-start": "left", "inline-end": "right", "block-start": "top", "block-end": "bottom"}
_LOGICAL |= {"block-size": "height", "inline-size": "width", "overflow-block": "overflow-y"}
_LOGICAL |= {"overflow-inline": "overflow-x"}
_LOGICAL_NAME = re.compile(f"(?:inset-)?({'|'.join(_LOGICAL)})$")
_SHORTHANDS = {"inset": _SIDES, "inset-block": ("top", "bottom"), "inset-inline": ("left", "right")}


def drop_unseen(tree: Any, sheet_at: Callable[[str], bytes] | None = None) -> None:
    """Remove from the body of a page, in place, what a reader cannot see. Text after a hidden element stays.

    `sheet_at` returns the linked style sheet at an address.
    """
    body = tree.find("body")
    if body is None:
        return
    # With linked style sheets, the colour of the page is unknown: they are not fetched, or are read in part.
    linked = any("stylesheet" in (link.get("rel") or "").lower() for link in tree.iter("link"))
    if sheet_at is not None:
        _embed_sheets(tree, sheet_at)
    styles = _Styles(tree)
    look = Look(behind=None if linked else _WHITE).within(styles.of(tree))
    stack: list[tuple[Any, Look]] = [(body, look)]
    while stack:
        element, look = stack.pop()
        declared = styles.of(element)
        # A hidden body is kept: scripts fade whole pages in.
        if element is not body and (_is_never_shown(element) or _hides(declared)):
            element.clear(keep_tail=True)
            continue
        look = look.within(declared)
        if look.unseen:
            element.text = None
            for child in element:
                child.tail = None
        stack.extend((child, look) for child in element if isinstance(child.tag, str))


def hides_itself(element: Any) -> bool:
    """Tell if an element without a page around it, or its text, is not seen."""
    declared = _Styles(None).of(element)
    return _is_never_shown(element) or _hides(declared) or Look(behind=_WHITE).within(declared).unseen


def declarations(style: str) -> Declared:
    """Read the declarations of a `style` attribute that can hide text."""
    return _declared(_bounded(style[:_LONGEST_INLINE]))


@dataclass(frozen=True, slots=True)
class Look:
    """The inherited look of text: `behind` is the background's colour, `colour` the text's. None means unknown."""

    behind: _Colour | None = None
    colour: _Colour | None = None
    transparent: bool = False
    tiny: bool = False
    invisible: bool = False

    @property
    def unseen(self) -> bool:
        """Tell if text with this look is invisible."""
        alike = self.colour is not None and self.colour == self.behind
        return self.tiny or self.invisible or self.transparent or alike

    def within(self, declared: Declared) -> "Look":
        """Return the look of a child element with these declarations."""
        look = self
        for name in ("background-image", "background", "background-color"):
            if name in declared:
                look = replace(look, behind=_colour(declared[name][0]))
        for name in ("color", "-webkit-text-fill-color"):
            for token in _value(declared, name):
                if isinstance(stated := parse_color(token), Color):
                    look = replace(look, colour=_colour([token]), transparent=stated.alpha <= _SMALLEST)
        if visibility := _word(declared, "visibility"):
            look = replace(look, invisible=visibility in ("hidden", "collapse"))
        if size := _font_size(declared):
            pixels = next(_in_pixels(size, 0.16), 16.0)
            look = replace(look, tiny=pixels <= _SMALLEST_FONT or (self.tiny and any(map(_is_relative, size))))
        return look


def _hides(declared: Declared) -> bool:
    """Tell if these declarations hide an element with all its content."""
    return bool(declared) and (
        _word(declared, "display") == "none"
        or _word(declared, "content-visibility") == "hidden"
        or any(next(_numbers(declared, name, 0.01), 1.0) <= _SMALLEST for name in ("opacity", "zoom"))
        or _is_off_screen(declared)
        or _is_clipped(declared)
        or any(map(_leaves_nothing, _functions(declared, "transform", "clip", "clip-path", "filter")))
    )


def _is_off_screen(declared: Declared) -> bool:
    position = _word(declared, "position")
    # Columns and centred boxes use percentages in margins and shifts.
    for name, share in (*((side, 4.5) for side in _SIDES), ("text-indent", 4.5), ("margin-left", 0), ("margin-top", 0)):
        if name in _SIDES and position not in _PLACED:
            continue
        # A reader can scroll down to text far below, unless its position is fixed.
        ends = name in ("left", "right", "bottom") or (name == "top" and position == "fixed")
        if any(number <= _OFF_SCREEN or (ends and number >= _FAR) for number in _numbers(declared, name, share)):
            return True
    shift = list(_numbers(declared, "translate", 0.1))
    return _is_shifted(shift) or any(abs(number) <= _SMALLEST for number in _numbers(declared, "scale", 0.01))


def _is_shifted(shift: Sequence[float]) -> bool:
    """Tell if a shift moves an element off the screen. A reader can scroll down, so downwards does not count."""
    return bool(shift) and (min(shift) <= _OFF_SCREEN or shift[0] >= _FAR)


def _is_clipped(declared: Declared) -> bool:
    overflow = [token for name in ("overflow", "overflow-x", "overflow-y") for token in _value(declared, name)]
    sizes = ("height", "width", "max-height", "max-width")
    return any(token.type == "ident" and token.lower_value in ("hidden", "clip") for token in overflow) and any(
        number <= 1.0 for name in sizes for number in _numbers(declared, name, 10.0)
    )


def _leaves_nothing(function: Any) -> bool:
    """Tell if a transformation, a clip or a filter hides all of an element."""
    tokens = [token for token in function.arguments if token.type not in ("whitespace", "comment", "literal")]
    words = [token.lower_value if token.type == "ident" else "" for token in tokens]
    # Behind these words come round corners and the centre of a circle.
    sizes = tokens[: next((place for place, word in enumerate(words) if word in ("round", "at")), None)]
    name, shares = str(function.lower_name), list(_in_pixels(tokens, 0.01))
    if name in ("matrix", "matrix3d") and len(shares) in (6, 16):
        a, b, c, d, *shift = shares if len(shares) == 6 else [shares[place] for place in (0, 1, 4, 5, 12, 13)]
        return abs(a * d - b * c) <= _SMALLEST**2 or _is_shifted(shift)
    if name.startswith("translate"):
        shift = list(_in_pixels(tokens, 0.1))
        return _is_shifted([0.0, *shift] if name == "translatey" else shift)
    if name.startswith("scale") or name == "opacity":
        return any(abs(number) <= _SMALLEST for number in shares)
    match name, list(_in_pixels(sizes, _FAR / 100)):
        case "inset", [_, *_] as numbers:
            top, right, bottom, left = _four(numbers)
            return bool(max(top + bottom, left + right) >= _WHOLE_BOX)
        case "rect", _ if len(sizes) == 4:
            defaults = zip(sizes, (0, _FAR, _FAR, 0), strict=True)
            top, right, bottom, left = (next(_in_pixels([token], _FAR / 100), default) for token, default in defaults)
            return min(right - left, bottom - top) <= 1 or min(right, bottom) <= 0
        case "xywh", [_, _, width, height]:
            return min(width, height) <= 1
        case (("circle" | "ellipse"), [_, *_] as radii):
            return min(radii) <= 1 or min(shares) <= _OFF_SCREEN
        case "polygon", [_, _, *_] as numbers:
            return _is_flat(list(zip(numbers[::2], numbers[1::2], strict=False)))
    return False


def _is_flat(points: Sequence[tuple[float, float]]) -> bool:
    """Tell if all points are on one line, or outside of the element on one side."""
    ways = [(x - points[0][0], y - points[0][1]) for x, y in points]
    far = max(ways, key=lambda way: hypot(*way))
    on_one_line = all(abs(x * far[1] - y * far[0]) <= hypot(*far) for x, y in ways)
    return on_one_line or any(max(line) <= 1 or min(line) >= _FAR for line in zip(*points, strict=True))


def _colour(value: Value) -> _Colour | None:
    """Return the colour in a value; None if it has none, or a transparent or computed one."""
    for token in value:
        colour = parse_color(token)
        if isinstance(colour, Color) and colour.alpha > _SMALLEST:
            try:
                red, green, blue = (round(part * 255) for part in colour.to("srgb").coordinates)
            except (NotImplementedError, OverflowError, ValueError):
                return None  # wide colour spaces and infinite numbers
            return red, green, blue
    return None


def _value(declared: Declared, name: str) -> Value:
    return declared.get(name, ((), False))[0]


def _word(declared: Declared, name: str) -> str:
    value = _value(declared, name)
    return value[0].lower_value if value and value[0].type == "ident" else ""


def _functions(declared: Declared, *names: str) -> Iterator[Any]:
    return (token for name in names for token in _value(declared, name) if token.type == "function")


def _numbers(declared: Declared, name: str, share: float) -> Iterator[float]:
    return _in_pixels(_value(declared, name), share)


def _in_pixels(tokens: Value, share: float) -> Iterator[float]:
    """Yield the lengths and numbers in a value as pixels, also within calculations. One per cent is `share` pixels."""
    for token in tokens:
        if token.type == "number":
            yield float(token.value)
        elif token.type == "percentage" and share:
            yield float(token.value) * share
        elif token.type == "dimension" and token.lower_unit in _PIXELS:
            yield float(token.value) * _PIXELS[token.lower_unit]
        elif token.type == "function" and token.lower_name in ("calc", "min", "max", "clamp"):
            # An estimate: the largest part, negative if any part is.
            numbers = list(_in_pixels(token.arguments, share)) or [1000.0]
            yield max(map(abs, numbers)) * (-1 if min(numbers) < 0 else 1)


def _font_size(declared: Declared) -> Value:
    if size := _value(declared, "font-size"):
        return size
    # In the shorthand, the first length is the size. In `font: 0/0 a` it is the zero; other numbers are weights.
    shorthand = _value(declared, "font")
    lengths = [token for token in shorthand if token.type in ("dimension", "percentage")]
    return lengths[:1] or [token for token in shorthand if token.type == "number" and not token.value][:1]


def _is_relative(token: Any) -> bool:
    """Tell if a font size depends on that of the element around it."""
    return (
        token.type in ("percentage", "function")
        or (token.type == "dimension" and token.lower_unit in ("em", "ex", "ch"))
        or (token.type == "ident" and token.lower_value in ("inherit", "unset", "smaller", "larger"))
    )


def _four(values: Sequence[Any]) -> list[Any]:
    """Return top, right, bottom and left, from one to four values as in CSS."""
    return [values[place if place < len(values) else min(max(0, place - 2), len(values) - 1)] for place in range(4)]


@dataclass
class _Styles:
    """The rules of a page's style sheets, each by one id, class or tag that it needs, and what they declare."""

    tree: Any
    rules: dict[str, list[tuple[frozenset[str], tuple[int, int], Declared]]] = field(default_factory=dict)
    known: dict[tuple[str, str, str], Declared] = field(default_factory=dict)
    checks: int = 0

    def __post_init__(self) -> None:
        order = count()
        for style in self.tree.iter("style") if self.tree is not None else ():
            if (style.get("media") or "all").strip().lower() in ("all", "screen"):
                for needed, specificity, declared in _rules(style.text or ""):
                    # An id or a class is more selective than a name.
                    mark = min(needed, key=lambda each: (each[0] not in "#.", each))
                    self.rules.setdefault(mark, []).append((needed, (specificity, next(order)), declared))

    def of(self, element: Any) -> Declared:
        """Merge the declarations of an element's attributes, of the rules for it, and of its own style."""
        kind = (element.tag, element.get("class") or "", element.get("id") or "")
        if kind not in self.known:
            marks = {"*", kind[0], f"#{kind[2]}", *(f".{name}" for name in kind[1].split())}
            tried = [rule for mark in marks for rule in self.rules.get(mark, ())] if self.checks <= _MOST_CHECKS else []
            self.checks += len(tried)
            found = sorted((rank, declared) for needed, rank, declared in tried if needed <= marks)
            self.known[kind] = _merged(*(declared for _, declared in found))
        stated = f"background-color: {element.get('bgcolor') or ''}"
        if element.tag == "font":
            stated += f"; color: {element.get('color') or ''}"
        attributes = declarations(stated) if element.tag == "font" or element.get("bgcolor") else {}
        inline = element.get("style")
        return _merged(attributes, self.known[kind], declarations(inline) if inline else {})


def _merged(*declared: Declared) -> Declared:
    """Merge declarations. Later ones replace earlier ones, and important ones take precedence."""
    result: Declared = {}
    for each in declared:
        for name, (value, important) in each.items():
            if important or not result.get(name, ((), False))[1]:
                result[name] = (value, important)
    return result


def _embed_sheets(tree: Any, sheet_at: Callable[[str], bytes]) -> None:
    """Replace links to style sheets by the sheets. Alternate sheets apply only when a reader chooses them."""
    for link in list(tree.iter("link")):
        relations = (link.get("rel") or "").lower().split()
        if "stylesheet" in relations and "alternate" not in relations:
            sheet = sheet_at(link.get("href") or "")[:_LONGEST_SHEET].decode("utf-8-sig", "replace")
            link.tag, link.text = "style", _CONTROL.sub(" ", sheet)


def _is_never_shown(element: Any) -> bool:
    return (
        element.tag in _NEVER_SHOWN
        or "hidden" in element.attrib
        or "popover" in element.attrib
        # While a dialog is open, all of a page behind it is inert.
        or ("inert" in element.attrib and next(element.iter(*_CONTENT), None) is None)
        or (element.tag == "dialog" and "open" not in element.attrib)
        or (element.tag == "input" and (element.get("type") or "").strip().lower() == "hidden")
    )


@lru_cache(maxsize=8)
def _rules(sheet: str) -> tuple[_Rule, ...]:
    """Return the rules of a style sheet that apply on every screen and may hide text, one for each simple selector.

    A selector is the set of what an element needs (`name`, `.class`, `#id`, `*`), and its specificity. The chapters of
    a book share their sheets.
    """
    parsed = tinycss2.parse_stylesheet(_bounded(sheet[:_LONGEST_SHEET]), skip_comments=True, skip_whitespace=True)
    rules = list[_Rule]()
    for rule, _ in zip(_flat(parsed, _DEEPEST), range(_MOST_RULES), strict=False):
        if declared := _declared(rule.content):
            rules += [(*selector, declared) for selector in _selectors(rule.prelude)]
    return tuple(rules)


def _bounded(written: str) -> str:
    return _LONG_NUMBER.sub(r"\1", written)


def _declared(content: Any) -> Declared:
    found: Declared = {}
    for each in tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True):
        if each.type != "declaration":
            continue
        value = [token for token in each.value if token.type not in ("whitespace", "comment")]
        sides = _SHORTHANDS.get(each.lower_name, ())
        physical = _LOGICAL_NAME.sub(lambda name: _LOGICAL[name[1]], each.lower_name)
        longhands = zip(sides, _four(value), strict=False) if 0 < len(value) <= len(sides) else ()
        for name, tokens in [(side, [token]) for side, token in longhands] or [(physical, value)]:
            if tokens and name in _RELEVANT and (each.important or not found.get(name, ((), False))[1]):
                found[name] = (tokens, each.important)
    return found


def _flat(parsed: Sequence[Any], depth: int) -> Iterator[Any]:
    for rule in parsed:
        if rule.type == "qualified-rule":
            yield rule
        elif rule.type == "at-rule" and rule.content is not None and depth:
            condition = tinycss2.serialize(rule.prelude).strip().lower()
            if rule.lower_at_keyword == "layer" or (
                rule.lower_at_keyword == "media" and condition in ("screen", "all")
            ):
                inner = tinycss2.parse_stylesheet(rule.content, skip_comments=True, skip_whitespace=True)
                yield from _flat(inner, depth - 1)


def _selectors(prelude: Sequence[Any]) -> Iterator[tuple[frozenset[str], int]]:
    """Yield the simple selectors of a list, without those with combinators, attributes or pseudo-classes."""
    one: list[Any] = []
    for token in [*prelude, None]:
        if token is not None and not (token.type == "literal" and token.value == ","):
            one.append(token)
            continue
        if selector := _selector(one):
            yield selector
        one = []


def _selector(tokens: list[Any]) -> tuple[frozenset[str], int] | None:
    while tokens and tokens[0].type in ("whitespace", "comment"):
        tokens = tokens[1:]
    while tokens and tokens[-1].type in ("whitespace", "comment"):
        tokens = tokens[:-1]
    needed, specificity, dot = set[str](), 0, False
    for token in tokens:
        if token.type == "ident":
            needed.add(f".{token.value}" if dot else token.lower_value)
            specificity += 100 if dot else 1
            dot = False
        elif token.type == "hash" and not dot:
            needed.add(f"#{token.value}")
            specificity += 10_000
        elif token.type == "literal" and token.value == "*" and not dot:
            needed.add("*")
        elif token.type == "literal" and token.value == "." and not dot:
            dot = True
        else:
            return None
    return (frozenset(needed), specificity) if needed and not dot else None
