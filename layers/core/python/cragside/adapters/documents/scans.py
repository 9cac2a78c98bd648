"""Reads PDF with pages that are pictures of text: as `pdf`, with OCR for these pages. Runs in a child process."""

import math
from typing import Any

from cragside.adapters.documents.ocr import MAX_PIXELS, Recogniser, recogniser
from cragside.adapters.documents.pdf import read_with
from cragside.adapters.documents.reading import NO_TEXT, FileOrigin, Reading, Unreadable

# A PDF's unit is 1/72 inch, and Tesseract reads best at 300 dots an inch.
_SCALE = 300 / 72


def read_scan(content: bytes, origin: FileOrigin) -> Reading:
    """As `read`. Pages without a text layer have the text that was recognised."""
    with recogniser(origin.ocr) as ocr:
        reading = read_with(content, lambda page: _recognised(page, ocr))
    if not reading.text.strip():
        raise Unreadable(NO_TEXT)
    return reading


def _recognised(page: Any, ocr: Recogniser) -> str:
    width, height = page.get_size()
    if not (width > 0 and height > 0):
        return ""
    scale = min(_SCALE, math.sqrt(MAX_PIXELS / (width * height)))
    if min(width, height) * scale < 1:
        return ""
    bitmap = page.render(scale=scale, grayscale=True)
    try:
        return ocr.text(bitmap.to_numpy().tobytes(), bitmap.width, bitmap.height)
    finally:
        bitmap.close()
