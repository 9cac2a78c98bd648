"""Tells one version of a text from another by digests."""

import hashlib
import json
from collections.abc import Sequence

from cragside.domain.document import SourceText
from cragside.store.ledger.entries import Piece


def digest_of(source: SourceText) -> str:
    """Return one digest for texts with the same passages, pages and sections, in files with the same properties."""
    marks = [[mark.start, mark.page, mark.section, *([True] if mark.apart else [])] for mark in source.marks]
    facts = source.text.strip() + (json.dumps(marks) if marks else "")
    if source.properties:
        facts += json.dumps(dict(source.properties), sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()


def cut_of(digest: str, pieces: Sequence[Piece], part_passages: int) -> str:
    """Return the key of a text and how it was cut into passages and parts: other cuts have other keys."""
    facts = hashlib.sha256(f"{digest} {part_passages}".encode())
    for piece in pieces:
        facts.update(f" {len(piece.text)} {piece.text}".encode())
    return facts.hexdigest()[:12]
