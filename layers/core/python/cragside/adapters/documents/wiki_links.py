"""Resolves wiki links in Markdown: `[[Page]]`, `[[Page|shown]]`, `[[Page#Heading]]`, `![[embedded]]`."""

import re

from cragside.adapters.documents.markdown_code import outside_code
from cragside.adapters.documents.reading import MAX_LISTED, label

_LINK = re.compile(r"!?\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{0,300}))?\]\]")
_SIZE = re.compile(r"\d{1,5}(?:x\d{1,5})?")


def resolved(text: str) -> tuple[str, list[str]]:
    """The text with what a reader sees of each link, and the pages that it links to. Code is left alone."""
    if "[[" not in text:
        return text, []
    pages: dict[str, None] = {}

    def shown(link: re.Match[str]) -> str:
        page, _, heading = (part.strip() for part in link[1].rstrip("\\").partition("#"))
        name = (link[2] or "").strip()
        if not (page or heading):
            return link[0]
        if page and len(pages) < MAX_LISTED:
            pages[label(page)] = None
        if name and not (link[0][0] == "!" and _SIZE.fullmatch(name)):
            return name
        # `#^` leads to a paragraph, whose name nobody sees.
        return " > ".join(filter(None, (page, "" if heading.startswith("^") else heading.replace("#", " > "))))

    return outside_code(text, lambda piece: _LINK.sub(shown, piece)), list(pages)
