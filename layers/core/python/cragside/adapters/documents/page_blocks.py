"""The blocks of a page's content, as Markdown: paragraphs, headings, items of lists, rows of tables.

The content is the `main` element or the only article, else the body. Navigation and the like is left out.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cragside.adapters.documents.page_elements import CELLS, HEADING, INLINE, UNSEEN, WITHIN_LINES
from cragside.adapters.documents.page_links import address_of

_BESIDE = frozenset({"nav", "aside", "footer", "form", "button", "menu"})
_BESIDE_ROLES = frozenset({"navigation", "banner", "contentinfo", "complementary", "search", "menu", "dialog"})
_BESIDE_NAMES = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|breadcrumbs?|sidebar|footer|cookies?|consent|share|sharing|social|related"
    r"|recommended|comments?|advert|ads?|banner|promo|newsletter|subscribe|pagination|pager|toc|skip|masthead|popup"
    r"|modal|metadata|meta|byline|tags|copyright|login|search)(?:$|[\s_-])",
    re.IGNORECASE,
)
_MOST_LINKED = 0.7


@dataclass(frozen=True, slots=True)
class Block:
    """A block as Markdown, which begins with `prefix`. `linked` is the share of its characters that are links.

    A row of a table that has only names of columns has so many `names`. The first row of a table `begins` it. The first
    block of a heading has its level and its whole text as `heading`.
    """

    text: str
    prefix: str = ""
    linked: float = 0.0
    names: int = 0
    begins: bool = False
    heading: tuple[int, str] | None = None

    @property
    def markdown(self) -> str:
        """The block as it is written. A line separates the names of columns from the rows."""
        return self.prefix + self.text + ("\n|" + "---|" * self.names if self.names else "")

    @property
    def is_row(self) -> bool:
        """Tell if it is a row of a table."""
        return self.prefix == "| "

    @property
    def ends_alone(self) -> bool:
        """Tell if a blank line follows. None does between items of a list and rows of a table."""
        return self.prefix not in ("- ", "| ")


def blocks_of(tree: Any) -> list[Block]:
    """The blocks of a page's content in their order, without blocks that are mostly links."""
    region, whole = _region(tree)
    return [block for block in _blocks(region, _is_beside) if not whole or block.linked <= _MOST_LINKED]


def all_blocks(tree: Any) -> Iterator[Block]:
    """The blocks of a page with the addresses behind links, also those beside its content."""
    return _blocks(tree, lambda _: False, address_of)


def has_content_element(tree: Any) -> bool:
    """Tell if a page says where its content stands, by a `main` element or its only article."""
    return not _region(tree)[1]


def joined(blocks: list[Block]) -> str:
    """The blocks as one text."""
    pieces = list[str]()
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        alike = after is not None and block.prefix == after.prefix and not after.begins
        together = alike and not block.ends_alone
        pieces += (block.markdown, "\n" if together else "\n\n")
    return "".join(pieces).rstrip("\n")


def _region(tree: Any) -> tuple[Any, bool]:
    """The element with the content, and whether it is the whole body."""
    for path in (".//main", ".//*[@role='main']", ".//article"):
        found = tree.findall(path)
        if len(found) == 1:
            return found[0], False
    body = tree.find("body")
    return (tree if body is None else body), True


def _is_beside(element: Any) -> bool:
    if element.tag in _BESIDE or (element.get("role") or "").strip().lower() in _BESIDE_ROLES:
        return True
    names = f"{element.get('class') or ''} {element.get('id') or ''}"[:300]
    return element.tag not in ("body", "article", "main") and _BESIDE_NAMES.search(names) is not None


class _Line:
    """The line under way: its pieces, how much of them is links, and how it begins."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.linked = 0
        self.prefix = ""
        self.cells = {"th": 0, "td": 0}
        self.begins = False
        self.heading: tuple[int, str] | None = None

    def add(self, text: str, *, linked: bool) -> None:
        self.pieces.append(text)
        self.linked += len(text) if linked else 0

    def taken(self) -> Block | None:
        """The line as a block, None if it is blank. The next line is a paragraph."""
        whole = "".join(self.pieces)
        text = " ".join(whole.split())
        if self.prefix == "| ":
            text = text.strip("| ") and text
        names = 0 if self.cells["td"] else self.cells["th"]
        linked = self.linked / max(len(whole), 1)
        block = Block(text, self.prefix, linked, names, self.begins, self.heading) if text else None
        self.pieces, self.linked, self.prefix, self.cells = [], 0, "", {"th": 0, "td": 0}
        self.begins, self.heading = self.begins and block is None, self.heading if block is None else None
        return block


def _blocks(
    region: Any, is_left_out: Callable[[Any], bool], address: Callable[[Any], str] = lambda _: ""
) -> Iterator[Block]:
    line, links, cells = _Line(), 0, 0
    # The walk is not recursive, because pages may be nested deeply.
    stack: list[tuple[Any, bool]] = [(region, True)]
    while stack:
        element, entering = stack.pop()
        tag = element.tag if isinstance(element.tag, str) else ""
        if entering and element is not region and (not tag or tag in UNSEEN or is_left_out(element)):
            tail = element.tail or ""
            if tag not in INLINE and not cells and (block := line.taken()):
                yield block
            line.add(tail, linked=links > 0)
            continue
        breaks = tag not in WITHIN_LINES
        # A cell may hold paragraphs, but a row is one block.
        if breaks and cells:
            line.add(" ", linked=False)
        elif breaks and (block := line.taken()):
            yield block
        if entering:
            links, cells = links + (tag == "a"), cells + (tag in CELLS)
            if breaks and not cells:
                line.prefix = _prefix(tag)
                line.begins = line.begins or tag == "table"
            if level := HEADING.match(tag):
                line.heading = int(level[1]), " ".join(element.itertext())
            line.add(element.text or "", linked=links > 0)
            stack.append((element, False))
            stack.extend((child, True) for child in reversed(element))
            continue
        if tag == "a":
            line.add(address(element), linked=True)
        links, cells = links - (tag == "a"), cells - (tag in CELLS)
        if tag in CELLS:
            line.add(" | ", linked=False)
            line.cells[tag] += 1
        if element is not region:
            line.add(element.tail or "", linked=links > 0)
    if block := line.taken():
        yield block


def _prefix(tag: str) -> str:
    if heading := HEADING.match(tag):
        return "#" * int(heading[1]) + " "
    return {"li": "- ", "dd": "- ", "tr": "| "}.get(tag, "")
