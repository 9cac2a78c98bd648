"""CSS lengths, and the shapes that clip an element."""

from collections.abc import Iterator, Sequence
from math import hypot, inf
from typing import Any, TypeVar

Value = Sequence[Any]
T = TypeVar("T")

# Rough sizes in pixels, enough to distinguish a line from a screen.
_PIXELS = {"px": 1.0, "pt": 1.33, "pc": 16.0, "in": 96.0, "cm": 38.0, "mm": 3.8, "q": 0.94, "em": 16.0, "rem": 16.0}
_PIXELS |= {"ex": 8.0, "ch": 8.0, "vw": 10.0, "vh": 8.0, "vmin": 8.0, "vmax": 10.0}
OFF_SCREEN = -450.0
# Visible boxes are narrower, and places off the screen to the right are farther.
FAR = 5_000.0
# A shape's share of 100 per cent is FAR, so a length counts as a whole box only if it exceeds every box.
_SHARE = FAR / 100
_SLIVER = 0.02 * FAR


def in_pixels(tokens: Value, share: float) -> Iterator[float]:
    """The numbers and lengths in a value in pixels, also in calculations. One per cent is `share` pixels."""
    for token in tokens:
        if token.type == "number":
            yield float(token.value)
        elif token.type == "percentage" and share:
            yield float(token.value) * share
        elif token.type == "dimension" and token.lower_unit in _PIXELS:
            yield float(token.value) * _PIXELS[token.lower_unit]
        elif token.type == "function" and token.lower_name in ("calc", "min", "max", "clamp"):
            # An estimate: the largest part, negative if any part is.
            numbers = list(in_pixels(token.arguments, share)) or [1000.0]
            yield max(map(abs, numbers)) * (-1 if min(numbers) < 0 else 1)


def sides(values: Sequence[T]) -> list[T]:
    """Top, right, bottom and left, from one to four values as in CSS."""
    return [values[place if place < len(values) else min(max(0, place - 2), len(values) - 1)] for place in range(4)]


def covers(function: Any) -> bool:
    """Whether a shape or a filter hides everything."""
    tokens = [token for token in function.arguments if token.type not in ("whitespace", "comment")]
    match function.lower_name:
        case "inset":
            return _inset(list(in_pixels(_until(tokens, "round"), _SHARE)))
        case "rect":
            return _rect([token for token in _until(tokens, "round") if token.type != "literal"])
        case "xywh":
            return min(list(in_pixels(_until(tokens, "round"), _SHARE))[2:4], default=inf) <= 1
        case "circle" | "ellipse":
            return _round(tokens)
        case "polygon":
            return _polygon(list(in_pixels(tokens, _SHARE)))
        case "opacity":
            return any(number <= 0.05 for number in in_pixels(tokens, 0.01))
    return False


def _until(tokens: Value, word: str) -> Value:
    words = [token.lower_value if token.type == "ident" else "" for token in tokens]
    return tokens[: words.index(word)] if word in words else tokens


def _inset(numbers: list[float]) -> bool:
    if not 1 <= len(numbers) <= 4:
        return False
    top, right, bottom, left = sides(numbers)
    return max(top + bottom, left + right) >= FAR - _SLIVER


def _rect(tokens: Value) -> bool:
    if len(tokens) != 4:
        return False
    stated = [next(in_pixels([token], _SHARE), None) for token in tokens]
    top, right, bottom, left = (
        number if number is not None else other for number, other in zip(stated, (0.0, inf, inf, 0.0), strict=True)
    )
    return right - left <= 1 or bottom - top <= 1 or min(right, bottom) <= 0


def _round(tokens: Value) -> bool:
    before = _until(tokens, "at")
    radii = list(in_pixels(before, _SHARE))
    if not radii:
        return False
    centre = list(in_pixels(tokens[len(before) :], _SHARE))
    return min(radii) <= 1 or any(place + max(radii) <= 0 or place - max(radii) >= FAR for place in centre)


def _polygon(numbers: list[float]) -> bool:
    """Whether all points are on one line, or outside of the box on one side."""
    xs, ys = numbers[::2], numbers[1::2]
    if not xs or len(xs) != len(ys):
        return False
    if any(max(line) <= 1 or min(line) >= FAR or max(line) - min(line) <= 1 for line in (xs, ys)):
        return True
    ways = [(x - xs[0], y - ys[0]) for x, y in zip(xs, ys, strict=True)]
    longest = max(ways, key=lambda way: hypot(*way))
    return all(abs(x * longest[1] - y * longest[0]) <= hypot(*longest) for x, y in ways)
