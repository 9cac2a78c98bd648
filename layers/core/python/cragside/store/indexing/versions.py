"""Digests that tell one version of a text from another."""

import hashlib
import json
from collections.abc import Sequence

from cragside.domain.document import SourceText
from cragside.store.ledger.entries import Piece


def digest_of(source: SourceText) -> str:
    """Equal for texts that make the same passages, pages and sections, in files that say the same of themselves."""
    marks = [[mark.start, mark.page, mark.section, *([True] if mark.apart else [])] for mark in source.marks]
    facts = source.text.strip() + (json.dumps(marks) if marks else "")
    if source.properties:
        facts += json.dumps(dict(source.properties), sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()


def cut_of(digest: str, pieces: Sequence[Piece], part_passages: int) -> str:
    """Says which text was cut into which passages and parts: other ones have other keys."""
    facts = hashlib.sha256(f"{digest} {part_passages}".encode())
    for piece in pieces:
        facts.update(f" {len(piece.text)} {piece.text}".encode())
    return facts.hexdigest()[:12]
