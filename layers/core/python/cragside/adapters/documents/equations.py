"""Writes the equations of Office documents in a line: Q = 1.84·b·h^(3/2)."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_GONE = frozenset({f"{_W}del", f"{_W}moveFrom", f"{_W}rPr"})
# What needs no brackets as part of a fraction or a power: a number or a word. Marks over letters belong to them.
_SINGLE = re.compile("[\\w.,'′∞°%\u0300-\u036f]{0,200}")
_BRACKETS = {"(": ")", "[": "]", "{": "}", "|": "|"}
# Whatever a letter or a figure behind them would join.
_INDEXED = frozenset(
    f"{M}{name}" for name in ("f", "sSup", "sSub", "sSubSup", "sPre", "rad", "limLow", "limUpp", "nary")
)
_RELATION = re.compile(r"\s{0,9}([=≈≡≠≤≥<>≔]{1,3})\s{0,9}")
# Letters in italics and the like, which readers see as these letters.
_STYLED = re.compile("[\U0001d400-\U0001d7ff\u210a-\u2131]")


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of an element by their names, such as the base and the power of `sSup`, written once."""

    element: Any
    texts: list[tuple[str, str]]

    def __getitem__(self, name: str) -> str:
        return next((text for each, text in self.texts if each == name), "")

    def stated(self, setting: str) -> str | None:
        """A setting of the element, such as the sign of a sum; None if it is not stated."""
        found = self.element.find(f"{self.element.tag}Pr/{M}{setting}")
        return found.get(f"{M}val", "") if found is not None else None


def linear(equation: Any, hidden: Callable[[Any], bool]) -> str:
    """An equation in a line. `hidden` tells whether a run is hidden."""
    text = _inner(equation, hidden)
    text = _STYLED.sub(lambda letter: unicodedata.normalize("NFKC", letter[0]), text)
    return " ".join(_RELATION.sub(r" \1 ", text).split())


def _inner(element: Any, hidden: Callable[[Any], bool]) -> str:
    pieces, before = list[str](), ""
    for child in element:
        text = _written(child, hidden)
        if before in _INDEXED and text[:1].isalnum():
            pieces.append(" ")
        pieces.append(text)
        before = child.tag if text else before
    return "".join(pieces)


def _written(element: Any, hidden: Callable[[Any], bool]) -> str:
    tag = element.tag
    if tag in _GONE or (tag in (f"{M}r", f"{_W}r") and hidden(element)):
        return ""
    if tag in (f"{M}t", f"{_W}t"):
        return element.text or ""
    name = tag.removeprefix(M)
    if name.endswith("Pr"):
        return ""
    if (write := _FORMS.get(name)) is None:
        return _inner(element, hidden)

    shown = [child for child in element if not child.tag.endswith("Pr")]
    texts = [(child.tag.removeprefix(M), _part(child, hidden)) for child in shown]
    return write(_Parts(element, texts))


def _part(part: Any, hidden: Callable[[Any], bool]) -> str:
    """A part of an element. The row of a matrix has commas between its cells."""
    if part.tag == f"{M}mr":
        return ", ".join(_inner(cell, hidden).strip() for cell in part)
    return _inner(part, hidden).strip()


def _fraction(parts: _Parts) -> str:
    above, below = _one(parts["num"]), _one(parts["den"])
    return f"({above} over {below})" if parts.stated("type") == "noBar" else f"{above}/{below}"


def _scripts(parts: _Parts) -> str:
    return f"{_one(parts['e'])}{_indices(parts)}"


def _indices(parts: _Parts) -> str:
    below, above = parts["sub"], parts["sup"]
    return (f"_{_one(below)}" if below else "") + (f"^{_one(above)}" if above else "")


def _root(parts: _Parts) -> str:
    of, degree = parts["e"], parts["deg"]
    return f"{_one(of)}^(1/{_one(degree)})" if degree else f"√{of if of.startswith('(') else f'({of})'}"


def _sum(parts: _Parts) -> str:
    return f"{parts.stated('chr') or '∫'}{_indices(parts)} {parts['e']}"


def _brackets(parts: _Parts) -> str:
    begin, end, between = (parts.stated(name) for name in ("begChr", "endChr", "sepChr"))
    inside = (between or "|").join(text for _, text in parts.texts)
    return f"{'(' if begin is None else begin}{inside}{')' if end is None else end}"


def _function(parts: _Parts) -> str:
    return f"{parts['fName']} {parts['e']}" if not parts["e"].startswith("(") else f"{parts['fName']}{parts['e']}"


def _limit(parts: _Parts) -> str:
    return f"{parts['e']}{'_' if parts.element.tag == f'{M}limLow' else '^'}{_one(parts['lim'])}"


def _accent(parts: _Parts) -> str:
    mark = parts.stated("chr") or "\u0302" if parts.element.tag == f"{M}acc" else "\u0305"
    of = parts["e"]
    return f"{of}{mark}" if len(of) == 1 else of


def _matrix(parts: _Parts) -> str:
    return "; ".join(text for _, text in parts.texts)


def _phantom(parts: _Parts) -> str:
    return "" if parts.stated("show") in ("0", "off", "false") else parts["e"]


_FORMS: dict[str, Callable[[_Parts], str]] = {
    "f": _fraction,
    "sSup": _scripts,
    "sSub": _scripts,
    "sSubSup": _scripts,
    "sPre": lambda parts: f"{_indices(parts)}{_one(parts['e'])}",
    "rad": _root,
    "nary": _sum,
    "d": _brackets,
    "func": _function,
    "limLow": _limit,
    "limUpp": _limit,
    "acc": _accent,
    "bar": _accent,
    "m": _matrix,
    "eqArr": _matrix,
    "phant": _phantom,
}


def _one(text: str) -> str:
    """The text with brackets around it where it is more than one thing."""
    return text if _SINGLE.fullmatch(text) or _is_in_brackets(text) else f"({text})"


def _is_in_brackets(text: str) -> bool:
    """Tell if the first bracket ends with the text."""
    begin, end = text[0], _BRACKETS.get(text[0])
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == begin) - (sign == end) if begin != end else sign == begin
        if place and sign == end and depth == (0 if begin != end else 2):
            return place == len(text) - 1
    return False
