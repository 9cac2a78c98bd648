"""Reads Obsidian's canvases: their cards, and what their arrows say."""

import re
from collections.abc import Mapping
from typing import Any

from cragside.adapters.documents.markdown_code import without_tags
from cragside.adapters.documents.markdown_unseen import seen
from cragside.adapters.documents.reading import MAX_LISTED, Composer, Reading
from cragside.adapters.documents.wiki_links import resolved

_ADDRESS = re.compile(r"\s{0,9}(?:https?|ftp|mailto|tel):", re.IGNORECASE)
_SHOWN = {"text": "text", "file": "file", "link": "url", "group": "label"}


def canvas_export(value: Any) -> Reading | None:
    """The cards from top to bottom and the labelled arrows; None if the value is no canvas."""
    nodes = value.get("nodes") if isinstance(value, Mapping) else None
    if not isinstance(nodes, list) or not all(
        isinstance(node, Mapping) and node.get("type") in _SHOWN for node in nodes
    ):
        return None
    composer, links, names = Composer(), list[str](), dict[str, str]()
    for node in sorted(nodes, key=lambda each: (_number(each.get("y")), _number(each.get("x")))):
        written = node.get(_SHOWN[node["type"]])
        if not isinstance(written, str) or not written.strip():
            continue
        if node["type"] == "link" and not _ADDRESS.match(written):
            continue
        text, linked = resolved(f"[[{written}]]" if node["type"] == "file" else without_tags(seen(written)))
        if not text.strip():
            continue
        links += linked
        names[str(node.get("id"))] = text.strip().split("\n")[0][:120]
        composer.add(text.strip())
    edges = value.get("edges")
    for edge in edges if isinstance(edges, list) else []:
        if isinstance(edge, Mapping) and isinstance(edge.get("label"), str):
            ends = (names.get(str(edge.get(end)), "") for end in ("fromNode", "toNode"))
            composer.add(f"{' → '.join(ends)}: {seen(edge['label'])}", end="\n")
    named = list(dict.fromkeys(links))[:MAX_LISTED]
    return Reading(composer.text, properties={"links": named} if named else {})


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
