"""Names the elements of pages that are not seen, that stand within a line, and that are cells or headings."""

import re

UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "math", "head", "iframe", "object", "select"})
INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd"}
    | {"label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var"}
    | {"wbr"}
)
CELLS = frozenset({"td", "th"})
# What neither begins nor ends a line.
WITHIN_LINES = INLINE | CELLS
HEADING = re.compile(r"h([1-6])$")
