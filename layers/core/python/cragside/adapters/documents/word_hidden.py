"""Finds the styles of a Word document that hide text, and hides what has them."""

from collections.abc import Iterable
from typing import Any

from cragside.adapters.documents.word_numbering import W, is_on

_MOST_ANCESTORS = 20


def hidden_styles(styles: Any) -> frozenset[str]:
    """The ids of the styles whose text is hidden. A style inherits from the one that it is based on."""
    hidden, based = dict[str, bool](), dict[str, str]()
    for style in styles.iter(f"{W}style"):
        identity, parent, properties = style.get(f"{W}styleId", ""), style.find(f"{W}basedOn"), style.find(f"{W}rPr")
        if parent is not None:
            based[identity] = parent.get(f"{W}val", "")
        if properties is not None and properties.find(f"{W}vanish") is not None:
            hidden[identity] = is_on(properties, "vanish")
    return frozenset(each for each in {*hidden, *based} if _is_hidden(each, hidden, based))


def hide(root: Any, styles: frozenset[str]) -> None:
    """Hide the runs that have one of these styles, or whose paragraph has, unless they say otherwise."""
    if not styles:
        return
    for run in root.iter(f"{W}r"):
        properties = run.find(f"{W}rPr")
        own = properties.find(f"{W}rStyle") if properties is not None else None
        paragraph = next(run.iterancestors(f"{W}p"), None)
        around = paragraph.find(f"{W}pPr/{W}pStyle") if paragraph is not None else None
        if not any(style is not None and style.get(f"{W}val", "") in styles for style in (own, around)):
            continue
        if properties is None:
            properties = run.makeelement(f"{W}rPr")
            run.insert(0, properties)
        if properties.find(f"{W}vanish") is None:
            properties.append(properties.makeelement(f"{W}vanish"))


def _is_hidden(style: str, hidden: dict[str, bool], based: dict[str, str]) -> bool:
    for ancestor in _ancestors(style, based):
        if ancestor in hidden:
            return hidden[ancestor]
    return False


def _ancestors(style: str, based: dict[str, str]) -> Iterable[str]:
    for _ in range(_MOST_ANCESTORS):
        yield style
        if style not in based:
            return
        style = based[style]
