"""Reads web pages: the main article, or all of the text if no article is found."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.inline_text import CELLS, HEADING, INLINE, UNSEEN, WITHIN_LINES, PageLinks, address_of
from cragside.adapters.documents.reading import (
    EMPTY,
    Composer,
    FileOrigin,
    Headings,
    Reading,
    Unreadable,
    label,
    present,
)

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
    """A block of a page as Markdown, such as a paragraph. `linked` is the share of its characters that are links.

    The `prefix` is what Markdown begins it with. `names` counts the columns that a table's row names, and is 0 for
    other blocks. `begins` says that a row is its table's first. `heading` is the level and the whole text of a heading.
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
    """Return the blocks of a page's content in their order, without blocks that are mostly links."""
    region, whole = _region(tree)
    return [block for block in _blocks(region, _is_beside) if not whole or block.linked <= _MOST_LINKED]


def all_blocks(tree: Any) -> Iterator[Block]:
    """Return the blocks of a page with the addresses behind links, also those beside its content."""
    return _blocks(tree, lambda _: False, address_of)


def has_content_element(tree: Any) -> bool:
    """Tell if a page says where its content stands, by a `main` element or its only article."""
    return not _region(tree)[1]


def joined(blocks: list[Block]) -> str:
    """Return the blocks as one text."""
    pieces = list[str]()
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        alike = after is not None and block.prefix == after.prefix and not after.begins
        together = alike and not block.ends_alone
        pieces += (block.markdown, "\n" if together else "\n\n")
    return "".join(pieces).rstrip("\n")


def _region(tree: Any) -> tuple[Any, bool]:
    """Return the element with the content, and whether it is the whole body."""
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
    """The line that is being read: its pieces, how much of it is links, and how it begins."""

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
        """Return the line as a block, None if it is blank. The next line is a paragraph."""
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


# Pages of programs have scripts and styles before it.
_WITHIN = 1024 * 1024
_CHARSET = re.compile(rb"""<meta[^>]{0,300}?charset\s{0,5}=\s{0,5}["']?([\w:.-]{1,40})""", re.IGNORECASE)
BINARY = "holds binary data, or text in an encoding that is not recognised: if it is a page, save it as UTF-8"
_MOST_ATTRIBUTES = 1000
# Finding the article takes a second for 10,000 elements. Of larger pages all blocks of the content are taken.
_MOST_ELEMENTS = 40_000
_MOST_CHARACTERS = 2_000_000
_VALUE = re.compile(r"""=\s*+(?:"[^"]*+"|'[^']*+')""")
_TAG = re.compile(r"<[a-zA-Z][^>]*+")


def read(content: bytes, origin: FileOrigin, linked: Callable[[str], bytes] | None = None) -> Reading:
    """Return the text of an article as Markdown, with its headings as sections. `linked` is that of `tree_of`."""
    from lxml import etree

    from cragside.adapters.documents.markdown_syntax import sections
    from cragside.adapters.documents.page_tables import drop_tables

    tree = tree_of(content, origin.charset, linked)
    # Markdown has no form for them, so an article would keep their tags.
    etree.strip_tags(tree, "sub", "sup", "u")
    address = origin.name if re.match(r"https?://", origin.name) else None
    page, stated = whole(tree), _title(tree)
    links = PageLinks(tree)
    blocks, stated_content = blocks_of(tree), has_content_element(tree)
    large = len(page.text) > _MOST_CHARACTERS or sum(1 for _ in tree.iter()) > _MOST_ELEMENTS
    # The search for the article writes a table in several ways, or twice.
    drop_tables(tree)
    article = _stated(tree, address) if large else _article(tree, address)
    text = (article.text or "").strip() if article else ""
    title = label(links.without(article.title)) if article else ""
    title = title or stated
    fields = {
        "title": title,
        "author": links.without(article.author) if article else None,
        "publishDate": article.date if article else None,
        "url": address or (article.url if article else None),
    }
    # Where no article is found, its text is one paragraph of all lines of the page.
    has_content = stated_content or any(block.is_row for block in blocks)
    if large or (has_content and "\n\n" not in text):
        text = joined(blocks)
    elif text:
        text = with_dropped(text, blocks, title)
    if text:
        text = links.shown(text)
        return Reading(text, "article", title, sections(text), present(fields))
    if not page.text.strip():
        raise Unreadable("is a page without text; pages that scripts fill have to be saved from a browser")
    return Reading(page.text, "article", title, page.marks, present(fields))


# htmldate's extensive search finds dates anywhere in the text. A page states its own date in its head.
_DATES = {"extensive_search": False, "original_date": True}


def _article(tree: Any, address: str | None) -> Any:
    from trafilatura import bare_extraction

    return bare_extraction(
        tree,
        url=address,
        with_metadata=True,
        include_comments=False,
        include_formatting=True,
        date_extraction_params=_DATES,
    )


def _stated(tree: Any, address: str | None) -> Any:
    """Read what a page says of itself in its head."""
    from trafilatura.metadata import extract_metadata

    body = tree.find("body")
    if body is not None:
        body.clear()
    return extract_metadata(tree, default_url=address, date_config=_DATES)


def tree_of(content: bytes, charset: str | None, linked: Callable[[str], bytes] | None = None) -> Any:
    """Return the elements of a page, without text that a reader cannot see.

    `linked` returns the style sheet at an address that the page links to. Without it, these sheets do not count.
    Raises `Unreadable` for binary data, for a page without elements, and if the parser stops early.
    """
    from lxml import etree
    from lxml import html as lxml_html

    from cragside.adapters.documents.hidden_text import drop_unseen
    from cragside.adapters.documents.inline_text import level_page
    from cragside.adapters.documents.page_tables import settle_tables

    declared = _CHARSET.search(content[:_WITHIN])
    text = decode(content, charset or (declared[1].decode("ascii") if declared else None))
    if text is None:
        raise Unreadable(BINARY)
    if not text.strip():
        raise Unreadable(EMPTY)
    # lxml refuses an XML declaration with an encoding in decoded text.
    text = re.sub(r"\A\s*+<\?xml[^>]{0,300}+>", "", text)
    if _most_attributes(text) > _MOST_ATTRIBUTES:
        raise Unreadable(f"has an element with more than {_MOST_ATTRIBUTES:,} attributes, which is the limit")
    parser = lxml_html.HTMLParser(remove_comments=True, remove_pis=True, no_network=True, huge_tree=False)
    try:
        tree = lxml_html.document_fromstring(text, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        # libxml2 does not say whether it ran out of memory or found no element.
        raise Unreadable("cannot be read as a page, or needs more memory than a file may take") from None
    # At these limits libxml2 stops without an error, and the rest of the page is missing.
    for limit in parser.error_log.filter_types(etree.ErrorTypes.ERR_RESOURCE_LIMIT):
        if "depth" in limit.message:
            raise Unreadable("is nested more than 256 elements deep, which is the limit")
        raise Unreadable("holds a text without tags, or an attribute, of more than 10,000,000 characters")
    drop_unseen(tree, linked)
    level_page(tree)
    settle_tables(tree)
    return tree


def _most_attributes(text: str) -> int:
    """Return an estimate of the most attributes of one element. libxml2 compares each attribute with all others."""
    return max((tag.count("=") + len(tag.split()) for tag in _TAG.findall(_VALUE.sub("= ", text))), default=0) // 2


def whole(tree: Any) -> Composer:
    """Compose all of the visible text, with headings as sections."""
    composer, headings = Composer(), Headings()
    for block in all_blocks(tree):
        if block.heading:
            composer.mark(section=headings.enter(*block.heading))
        # A bar at the beginning stands for an empty cell, as in the corner of a table.
        if words := block.text.rstrip(" |"):
            composer.add(words, end="\n")
    return composer


def _title(tree: Any) -> str:
    found = tree.find(".//title")
    return label(found.text or "") if found is not None else ""


_WORD = re.compile(r"[^\W_]+")
# A block of fewer words counts as found only near the block before it, because it may stand anywhere by chance.
_SHORT = 4
_NEAR = 60
_RUN = 12  # characters
_TRIED = 20  # places, of those where the first characters of a block stand
_MOST_FOUND = 0.5


def with_dropped(article: str, blocks: list[Block], title: str) -> str:
    """Return the article with the blocks that it lacks, each behind the block that stands before it in the page.

    It lacks all rows of tables.
    """
    ends = [word.end() for word in _WORD.finditer(article)]
    article_words = _Words(_words(article))
    title_words = _words(title)
    lost: dict[int, list[Block]] = defaultdict(list)
    position = 0
    for block in blocks:
        said = _words(block.text)
        if not said or (block.prefix.startswith("#") and said == title_words):
            continue
        found = None if block.is_row else article_words.end_of(said, position)
        if found is not None:
            position = found
        elif block.is_row or not article_words.has_most(said):
            end = ends[position - 1] if position else 0
            lost[_line_end(article, end) if position else 0].append(block)
    pieces, start = list[str](), 0
    for end, dropped in sorted(lost.items()):
        pieces += (article[start:end].strip("\n"), joined(dropped))
        start = end
    pieces.append(article[start:].strip("\n"))
    return "\n\n".join(piece for piece in pieces if piece)


class _Words:
    """The words of a text, in which blocks are looked for.

    Words are compared without gaps, because half a word in bold or a soft hyphen splits it in the article or in the
    block.
    """

    def __init__(self, words: list[str]) -> None:
        self._text = "".join(words)
        self._starts = [0, *accumulate(map(len, words))]
        self._places: dict[str, list[int]] = defaultdict(list)
        for start in self._starts[:-1]:
            self._places[self._text[start : start + _RUN]].append(start)

    def end_of(self, said: list[str], position: int) -> int | None:
        """Find the end of a block that begins at a position or later, or else anywhere; None if the text lacks it."""
        block = "".join(said)
        if len(said) < _SHORT or len(block) < _RUN:
            places = self._starts[position : position + _NEAR]
        else:
            known = self._places.get(block[:_RUN], [])
            later = bisect_left(known, self._starts[position])
            places = known[later : later + _TRIED] + known[:_TRIED]
        for place in places:
            if self._text.startswith(block, place):
                end = bisect_left(self._starts, place + len(block))
                if self._starts[end] == place + len(block):
                    return end
        return None

    def has_most(self, said: list[str]) -> bool:
        """Tell if the text has most of a long block's runs of characters: it was cut or joined otherwise."""
        block = "".join(said)
        starts = accumulate(map(len, said[:-1]), initial=0)
        runs = [block[start : start + _RUN] for start in starts if start + _RUN <= len(block)]
        return len(said) > _SHORT and sum(run in self._places for run in runs) > _MOST_FOUND * len(runs)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end
