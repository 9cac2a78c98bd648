"""Reads web pages: the main article, or all of the text if no article is found."""

import re
from collections.abc import Callable
from typing import Any

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.page_blocks import all_blocks, blocks_of, has_content_element, joined
from cragside.adapters.documents.page_links import PageLinks
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
    """The text of an article as Markdown, with its headings as sections. `linked` is that of `tree_of`."""
    from lxml import etree

    from cragside.adapters.documents.headings import sections
    from cragside.adapters.documents.page_recall import with_dropped
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
    """The elements of a page, without text that a reader cannot see.

    `linked` returns the style sheet at an address that the page links to. Without it, these sheets do not count.
    Raises `Unreadable` for binary data, for a page without elements, and if the parser stops early.
    """
    from lxml import etree
    from lxml import html as lxml_html

    from cragside.adapters.documents.hidden_text import drop_unseen
    from cragside.adapters.documents.page_tables import settle_tables
    from cragside.adapters.documents.raised import level_page

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
    """An estimate of the most attributes of one element. libxml2 compares each attribute with all others."""
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
