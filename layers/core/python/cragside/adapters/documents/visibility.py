"""Decides whether styles hide text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tinycss2.color4 import Color, parse_color

from cragside.adapters.documents.shapes import FAR, OFF_SCREEN, Value, covers, in_pixels
from cragside.adapters.documents.styles import Declared

Colour = tuple[int, int, int]

_SMALLEST_FONT = 1.5
_SMALLEST = 0.05


def hides(declared: Declared) -> bool:
    """Whether these declarations hide an element with all its content."""
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
    """The inherited look of text. `behind` is the background, `colour` that of the text; None means unknown."""

    behind: Colour | None = None
    colour: Colour | None = None
    transparent: bool = False
    tiny: bool = False
    invisible: bool = False

    @property
    def unseen(self) -> bool:
        """Whether text with this look is invisible."""
        alike = self.colour is not None and self.colour == self.behind
        return self.tiny or self.invisible or self.transparent or alike

    def within(self, declared: Declared) -> "Look":
        """The look of a child element with these declarations."""
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
    """The colour in a value; None if it has none, or a transparent or computed one."""
    for token in value:
        colour = parse_color(token)
        if isinstance(colour, Color) and colour.alpha > _SMALLEST:
            return _rgb(colour)
    return None


def _rgb(colour: Any) -> Colour | None:
    try:
        red, green, blue = (round(part * 255) for part in colour.to("srgb").coordinates)
    except (NotImplementedError, OverflowError, ValueError):
        # Wide colour spaces and infinite numbers.
        return None
    return red, green, blue


def _word(declared: Declared, name: str) -> str:
    value = declared.get(name, ((), False))[0]
    return value[0].lower_value if value and value[0].type == "ident" else ""


def _numbers(declared: Declared, name: str, share: float) -> list[float]:
    """The numbers and lengths of a property in pixels, also in calculations. One per cent is `share` pixels."""
    return list(in_pixels(declared.get(name, ((), False))[0], share))


def _amount(declared: Declared, name: str) -> bool:
    numbers = _numbers(declared, name, 0.01)
    return bool(numbers) and numbers[0] <= _SMALLEST


def _font_size(declared: Declared) -> tuple[float, bool] | None:
    """The size of text, and whether it is relative to the parent's size."""
    value = declared.get("font-size", ((), False))[0]
    if not value:
        # In the shorthand, the first length is the size. In `font: 0/0 a` it is the zero; other numbers are weights.
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
    # Columns and centred boxes use percentages in margins and shifts.
    for name, share in (*places, ("text-indent", 4.5), ("margin-left", 0.0), ("margin-top", 0.0)):
        numbers = _numbers(declared, name, share)
        if min(numbers, default=0.0) <= OFF_SCREEN:
            return True
        # A reader can scroll down to text far below, unless its position is fixed.
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
    """Whether a shift moves an element off the screen. A reader can scroll down, so downwards does not count."""
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
