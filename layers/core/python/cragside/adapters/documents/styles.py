"""The part of CSS that hides text, read by tinycss2."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tinycss2
from tinycss2.color4 import Color, parse_color

from cragside.adapters.documents.shapes import FAR, OFF_SCREEN, Value, covers, in_pixels, sides

Colour = tuple[int, int, int]
Declared = dict[str, tuple[Value, bool]]
StyleRule = tuple[frozenset[str], int, Declared]

_LONGEST_SHEET = 500_000
_LONGEST_INLINE = 5_000
_MOST_RULES = 5_000
_DEEPEST = 4

_RELEVANT = frozenset(
    {"display", "visibility", "content-visibility", "opacity", "filter", "font-size", "font", "zoom", "text-indent"}
    | {"position", "left", "top", "right", "bottom", "margin-left", "margin-top", "transform", "scale", "clip"}
    | {"clip-path", "height", "width", "max-height", "max-width", "overflow", "overflow-x", "overflow-y", "color"}
    | {"translate"}
    | {"background", "background-color", "background-image", "-webkit-text-fill-color"}
)
# As in a page that is written from left to right and from top to bottom.
_LOGICAL = {
    "inset-inline-start": "left",
    "inset-inline-end": "right",
    "inset-block-start": "top",
    "inset-block-end": "bottom",
    "block-size": "height",
    "inline-size": "width",
    "max-block-size": "max-height",
    "max-inline-size": "max-width",
    "overflow-block": "overflow-y",
    "overflow-inline": "overflow-x",
}
_SHORTHANDS = {
    "inset": ("top", "right", "bottom", "left"),
    "inset-block": ("top", "bottom"),
    "inset-inline": ("left", "right"),
}
_SMALLEST_FONT = 1.5
_SMALLEST = 0.05


def declarations(style: str) -> Declared:
    """What a `style` attribute or the body of a rule declares, of what can hide text."""
    return _declared(tinycss2.parse_blocks_contents(style[:_LONGEST_INLINE], skip_comments=True, skip_whitespace=True))


def rules(sheet: str) -> Iterator[StyleRule]:
    """The rules of a style sheet that hold on every screen and may hide text, each for one simple selector.

    A selector is the set of what an element needs (`name`, `.class`, `#id`, `*`), and its specificity.
    """
    parsed = tinycss2.parse_stylesheet(sheet[:_LONGEST_SHEET], skip_comments=True, skip_whitespace=True)
    for number, rule in enumerate(_flat(parsed, _DEEPEST)):
        if number >= _MOST_RULES:
            return
        content = tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True)
        if declared := _declared(content):
            for needed, specificity in _selectors(rule.prelude):
                yield needed, specificity, declared


def hides(declared: Declared) -> bool:
    """Whether an element with these declarations cannot be seen, with all that is in it."""
    return bool(declared) and (
        _word(declared, "display") == "none"
        or _word(declared, "content-visibility") == "hidden"
        or _amount(declared, "opacity")
        or _amount(declared, "zoom")
        or _away(declared)
        or _clipped(declared)
    )


@dataclass(frozen=True, slots=True)
class Look:
    """What an element's text inherits. `behind` is the colour behind it, `colour` its own; None where not known."""

    behind: Colour | None = None
    colour: Colour | None = None
    transparent: bool = False
    tiny: bool = False
    invisible: bool = False

    @property
    def unseen(self) -> bool:
        """Whether text that looks so cannot be seen."""
        alike = self.colour is not None and self.colour == self.behind
        return self.tiny or self.invisible or self.transparent or alike

    def within(self, declared: Declared) -> "Look":
        """The look of an element with these declarations inside this one."""
        look = self
        for name in ("background-image", "background", "background-color"):
            if name in declared:
                look = replace(look, behind=literal_colour(declared[name][0]))
        for name in ("color", "-webkit-text-fill-color"):
            for token in declared.get(name, ((), False))[0]:
                stated = parse_color(token)
                if isinstance(stated, Color):
                    clear = stated.alpha <= _SMALLEST
                    look = replace(look, colour=literal_colour([token]), transparent=clear)
        if visibility := _word(declared, "visibility"):
            look = replace(look, invisible=visibility in ("hidden", "collapse"))
        size = _font_size(declared)
        return look if size is None else replace(look, tiny=size[0] <= _SMALLEST_FONT or (self.tiny and size[1]))


def literal_colour(value: Value) -> Colour | None:
    """The colour that a value states, None for none, for a transparent one and for one that is computed."""
    for token in value:
        colour = parse_color(token)
        if isinstance(colour, Color) and colour.alpha > _SMALLEST:
            return _rgb(colour)
    return None


def _rgb(colour: Any) -> Colour | None:
    try:
        red, green, blue = (round(part * 255) for part in colour.to("srgb").coordinates)
    except (NotImplementedError, OverflowError, ValueError):
        # Wide colour spaces, and numbers without end.
        return None
    return red, green, blue


def _declared(content: Sequence[Any]) -> Declared:
    found: Declared = {}
    for each in content:
        if each.type != "declaration":
            continue
        tokens = [token for token in each.value if token.type not in ("whitespace", "comment")]
        for name, value in _longhands(each.lower_name, tokens):
            if value and name in _RELEVANT and (each.important or not found.get(name, ((), False))[1]):
                found[name] = (value, each.important)
    return found


def _longhands(name: str, value: Value) -> Iterator[tuple[str, Value]]:
    """The physical properties that a declaration sets."""
    if name in _SHORTHANDS and 0 < len(value) <= len(_SHORTHANDS[name]):
        for longhand, token in zip(_SHORTHANDS[name], sides(value), strict=False):
            yield longhand, [token]
    else:
        yield _LOGICAL.get(name, name), value


def _flat(parsed: Sequence[Any], depth: int) -> Iterator[Any]:
    for rule in parsed:
        if rule.type == "qualified-rule":
            yield rule
        elif rule.type == "at-rule" and rule.content is not None and depth:
            condition = tinycss2.serialize(rule.prelude).strip().lower()
            if rule.lower_at_keyword == "layer" or (rule.lower_at_keyword, condition) in (
                ("media", "screen"),
                ("media", "all"),
            ):
                inner = tinycss2.parse_stylesheet(rule.content, skip_comments=True, skip_whitespace=True)
                yield from _flat(inner, depth - 1)


def _selectors(prelude: Sequence[Any]) -> Iterator[tuple[frozenset[str], int]]:
    """The simple selectors of a list, those with combinators, attributes and pseudo-classes left out."""
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


def _word(declared: Declared, name: str) -> str:
    value = declared.get(name, ((), False))[0]
    return value[0].lower_value if value and value[0].type == "ident" else ""


def _numbers(declared: Declared, name: str, share: float) -> list[float]:
    """The numbers and lengths of a property, in pixels, those of a calculation too; one per cent is `share` pixels."""
    return list(in_pixels(declared.get(name, ((), False))[0], share))


def _amount(declared: Declared, name: str) -> bool:
    numbers = _numbers(declared, name, 0.01)
    return bool(numbers) and numbers[0] <= _SMALLEST


def _font_size(declared: Declared) -> tuple[float, bool] | None:
    """The size of text, and whether it is a share of the size around it."""
    value = declared.get("font-size", ((), False))[0]
    if not value:
        # In the shorthand, the first length is the size. `font: 0/0 a` has none; numbers may be weights.
        shorthand = declared.get("font", ((), False))[0]
        lengths = [token for token in shorthand if token.type in ("dimension", "percentage")]
        value = lengths[:1] or [token for token in shorthand if token.type == "number" and not token.value][:1]
    numbers = list(in_pixels(value, 0.16))
    if not numbers:
        return (16.0, _is_relative(value)) if value else None
    return numbers[0], _is_relative(value)


def _is_relative(value: Value) -> bool:
    return any(
        token.type == "percentage" or getattr(token, "lower_unit", "") in ("em", "ex", "ch") or token.type == "function"
        for token in value
    ) or any(
        token.type == "ident" and token.lower_value in ("inherit", "unset", "smaller", "larger") for token in value
    )


def _away(declared: Declared) -> bool:
    position = _word(declared, "position")
    placed = position in ("absolute", "fixed", "relative", "sticky")
    places = [(name, 4.5) for name in ("left", "top", "right", "bottom")] if placed else []
    # Shares of a margin or of a shift are those of columns and of centred boxes.
    for name, share in (*places, ("text-indent", 4.5), ("margin-left", 0.0), ("margin-top", 0.0)):
        numbers = _numbers(declared, name, share)
        if min(numbers, default=0.0) <= OFF_SCREEN:
            return True
        # A reader can scroll down to what stands far below, unless its place on the screen is fixed.
        ends = name in ("left", "right", "bottom") or (name == "top" and position == "fixed")
        if ends and max(numbers, default=0.0) >= FAR:
            return True
    return (
        _shifted(_numbers(declared, "translate", 0.1))
        or _shrunk(_numbers(declared, "scale", 0.01))
        or any(_transformed(function) for function in _functions(declared, "transform"))
    )


def _transformed(function: Any) -> bool:
    name = function.lower_name
    if name.startswith("translate"):
        numbers = list(in_pixels(function.arguments, 0.1))
        return _shifted(numbers if name in ("translate", "translatex", "translate3d") else [0.0, *numbers])
    if name.startswith("scale"):
        return _shrunk(in_pixels(function.arguments, 0.01))
    numbers = list(in_pixels(function.arguments, 0.0))
    if name == "matrix3d" and len(numbers) == 16:
        numbers = [numbers[place] for place in (0, 1, 4, 5, 12, 13)]
    elif name != "matrix" or len(numbers) != 6:
        return False
    a, b, c, d, *shift = numbers
    return abs(a * d - b * c) <= _SMALLEST**2 or _shifted(shift)


def _shifted(numbers: Sequence[float]) -> bool:
    """Whether a shift to the right and down leads off the screen. A reader can scroll down."""
    return min(numbers, default=0.0) <= OFF_SCREEN or (bool(numbers) and numbers[0] >= FAR)


def _shrunk(numbers: Iterable[float]) -> bool:
    return any(abs(number) <= _SMALLEST for number in numbers)


def _clipped(declared: Declared) -> bool:
    sizes = ("height", "width", "max-height", "max-width")
    overflow = {
        token.lower_value
        for name in ("overflow", "overflow-x", "overflow-y")
        for token in declared.get(name, ((), False))[0]
        if token.type == "ident"
    }
    if overflow & {"hidden", "clip"} and any(min(_numbers(declared, name, 10.0), default=9.0) <= 1.0 for name in sizes):
        return True
    return any(covers(function) for name in ("clip", "clip-path", "filter") for function in _functions(declared, name))


def _functions(declared: Declared, name: str) -> list[Any]:
    return [token for token in declared.get(name, ((), False))[0] if token.type == "function"]
