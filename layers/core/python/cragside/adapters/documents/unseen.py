"""Removes from a page what a reader cannot see: hidden elements, and text that styles hide.

Only the page's own styles count: inline ones, and those in `style` elements whose selectors are simple (an element's
name, classes and id). The style sheets of a book or a saved page count like `style` elements. Nothing is fetched, and
no script runs.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cragside.adapters.documents.styles import Declared, StyleRule, declarations, rules
from cragside.adapters.documents.visibility import Look, hides

# Scripts and styles are missing here, because extraction leaves them out itself.
_NEVER_SHOWN = frozenset(
    {"template", "noscript", "datalist", "iframe", "object", "audio", "video", "canvas", "noframes", "noembed"}
)
_CONTENT = ("main", "article", "h1")
# The most comparisons of rules with elements. After these, only inline styles count.
_MOST_CHECKS = 2_000_000
_LONGEST_SHEET = 500_000
# These cannot stand in a tree.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_WHITE = (255, 255, 255)


@dataclass
class _Sheet:
    """The page's rules by an id, class or name that they need, and the declarations of each kind of element."""

    by_key: dict[str, list[tuple[frozenset[str], tuple[int, int], Declared]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    known: dict[tuple[str, str, str], Declared] = field(default_factory=dict)
    checks: int = 0

    def declared(self, element: Any) -> Declared:
        """The declarations of the rules for an element; stronger rules take precedence."""
        kind = (element.tag, element.get("class") or "", element.get("id") or "")
        if kind not in self.known:
            marks = {"*", kind[0], f"#{kind[2]}", *(f".{name}" for name in kind[1].split())}
            found = []
            for mark in marks:
                rules_of = self.by_key.get(mark, ())
                self.checks += len(rules_of)
                if self.checks > _MOST_CHECKS:
                    break
                found += [(rank, declared) for needed, rank, declared in rules_of if needed <= marks]
            found.sort(key=lambda each: each[0])
            self.known[kind] = merged(*(declared for _, declared in found))
        return self.known[kind]


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
    sheet = _sheet_of(tree)
    look = Look(behind=None if linked else _WHITE).within(_declared(tree, sheet))
    stack: list[tuple[Any, Look]] = [(body, look)]
    while stack:
        element, look = stack.pop()
        declared = _declared(element, sheet)
        # A hidden body is kept: scripts fade whole pages in.
        if element is not body and (_never_shown(element) or hides(declared)):
            element.clear(keep_tail=True)
            continue
        look = look.within(declared) if declared else look
        if look.unseen:
            element.text = None
            for child in element:
                child.tail = None
        stack.extend((child, look) for child in element if isinstance(child.tag, str))


def hides_itself(element: Any) -> bool:
    """Tell if an element without a style sheet around it is not seen, or its text is not."""
    declared = _declared(element, _Sheet())
    return _never_shown(element) or hides(declared) or Look(behind=_WHITE).within(declared).unseen


def merged(*declared: Declared) -> Declared:
    """Merge declarations. Later ones replace earlier ones, and important ones take precedence."""
    result: Declared = {}
    for each in declared:
        for name, (value, important) in each.items():
            if important or not result.get(name, ("", False))[1]:
                result[name] = (value, important)
    return result


def _embed_sheets(tree: Any, sheet_at: Callable[[str], bytes]) -> None:
    """Replace links to style sheets by the sheets. Alternate sheets apply only when a reader chooses them."""
    for link in list(tree.iter("link")):
        relations = (link.get("rel") or "").lower().split()
        if "stylesheet" in relations and "alternate" not in relations:
            sheet = sheet_at(link.get("href") or "")[:_LONGEST_SHEET].decode("utf-8-sig", "replace")
            link.tag, link.text = "style", _CONTROL.sub(" ", sheet)


@lru_cache(maxsize=8)
def _rules(sheet: str) -> tuple[StyleRule, ...]:
    """The rules of a style sheet. The chapters of a book share their sheets."""
    return tuple(rules(sheet))


def _sheet_of(tree: Any) -> _Sheet:
    sheet = _Sheet()
    order = 0
    for style in tree.iter("style"):
        if (style.get("media") or "all").strip().lower() not in ("all", "screen"):
            continue
        for needed, specificity, declared in _rules(style.text or ""):
            order += 1
            # An id or a class is more selective than a name.
            sheet.by_key[min(needed, key=lambda mark: (mark[0] not in "#.", mark))].append(
                (needed, (specificity, order), declared)
            )
    return sheet


def _declared(element: Any, sheet: _Sheet) -> Declared:
    inline = element.get("style")
    of_attributes = dict(_of_attributes(element))
    return merged(of_attributes, sheet.declared(element), declarations(inline) if inline else {})


def _of_attributes(element: Any) -> Iterator[tuple[str, tuple[Any, bool]]]:
    stated: Mapping[str, str] = {
        "background-color": element.get("bgcolor") or "",
        "color": (element.get("color") or "") if element.tag == "font" else "",
    }
    for name, value in stated.items():
        if value:
            yield name, declarations(f"{name}: {value}").get(name, ("", False))


def _never_shown(element: Any) -> bool:
    return (
        element.tag in _NEVER_SHOWN
        or "hidden" in element.attrib
        or "popover" in element.attrib
        # While a dialog is open, all of a page behind it is inert.
        or ("inert" in element.attrib and next(element.iter(*_CONTENT), None) is None)
        or (element.tag == "dialog" and "open" not in element.attrib)
        or (element.tag == "input" and (element.get("type") or "").strip().lower() == "hidden")
    )
