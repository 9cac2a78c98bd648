"""The declarations and rules of CSS that may hide text, parsed by tinycss2."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import tinycss2

from cragside.adapters.documents.shapes import Value, sides

Declared = dict[str, tuple[Value, bool]]
StyleRule = tuple[frozenset[str], int, Declared]

_LONGEST_SHEET = 500_000
_LONGEST_INLINE = 5_000
_MOST_RULES = 5_000
_DEEPEST = 4
# tinycss2 fails at an integer of thousands of digits.
_LONG_NUMBER = re.compile(r"([0-9]{300})[0-9]++")

_RELEVANT = frozenset(
    {"display", "visibility", "content-visibility", "opacity", "filter", "font-size", "font", "zoom", "text-indent"}
    | {"position", "left", "top", "right", "bottom", "margin-left", "margin-top", "transform", "scale", "clip"}
    | {"clip-path", "height", "width", "max-height", "max-width", "overflow", "overflow-x", "overflow-y", "color"}
    | {"translate"}
    | {"background", "background-color", "background-image", "-webkit-text-fill-color"}
)
# For pages that are written from left to right and from top to bottom.
_LOGICAL = {
    "inset-inline-start": "left",
    "inset-inline-end": "right",
    "inset-block-start": "top",
    "inset-block-end": "bottom",
    "margin-inline-start": "margin-left",
    "margin-block-start": "margin-top",
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


def declarations(style: str) -> Declared:
    """The declarations in a `style` attribute or the body of a rule that can hide text."""
    return _declared(
        tinycss2.parse_blocks_contents(_bounded(style[:_LONGEST_INLINE]), skip_comments=True, skip_whitespace=True)
    )


def rules(sheet: str) -> Iterator[StyleRule]:
    """The rules of a style sheet that apply on every screen and may hide text, one for each simple selector.

    A selector is the set of what an element needs (`name`, `.class`, `#id`, `*`), and its specificity.
    """
    parsed = tinycss2.parse_stylesheet(_bounded(sheet[:_LONGEST_SHEET]), skip_comments=True, skip_whitespace=True)
    for number, rule in enumerate(_flat(parsed, _DEEPEST)):
        if number >= _MOST_RULES:
            return
        content = tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True)
        if declared := _declared(content):
            for needed, specificity in _selectors(rule.prelude):
                yield needed, specificity, declared


def _bounded(written: str) -> str:
    return _LONG_NUMBER.sub(r"\1", written)


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
    """The simple selectors of a list, without those with combinators, attributes or pseudo-classes."""
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
