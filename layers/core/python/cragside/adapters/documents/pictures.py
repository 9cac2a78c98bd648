"""Reads pictures of text: PNG, JPEG, TIFF, WebP and BMP, by OCR. Runs in a child process."""

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cragside.adapters.documents.ocr import MAX_PIXELS, Recogniser, recogniser
from cragside.adapters.documents.reading import (
    NEEDS_OCR,
    NO_TEXT,
    Composer,
    FileOrigin,
    Reading,
    Unreadable,
    present,
)

MAX_PAGES = 1000
# More than an A3 page at 600 dots an inch.
LARGEST_PICTURE = 80_000_000
_MIME_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "TIFF": "image/tiff", "WEBP": "image/webp", "BMP": "image/bmp"}
# Tesseract reads small letters badly. A screen has about 96 dots an inch; doubled, a quarter of its errors remain.
_SMALL = 2_000_000
_DAMAGED = "is damaged, or no picture"
_BROKEN = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, struct.error)


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The recognised text; of a TIFF, that of each page. Raises `Unreadable`, also if there is none."""
    with recogniser(origin.ocr) as ocr, _opened(content) as picture:
        composer = Composer()
        kind = "JPEG" if picture.format == "MPO" else picture.format
        several = kind == "TIFF" and bool(getattr(picture, "is_animated", False))
        found, number = False, 0
        for number, page in enumerate(_pages(picture) if several else [picture], 1):
            text = _text(page, ocr)
            if several:
                composer.mark(page=number)
            composer.add(text)
            found = found or bool(text)
    if not found:
        raise Unreadable(NO_TEXT)
    tier1 = present({"mimeType": _MIME_TYPES.get(kind), "pageCount": number if several else None})
    return Reading(composer.text, "image", "", composer.marks, tier1)


@contextmanager
def _opened(content: bytes) -> Iterator[Any]:
    """Open a picture of a known format. What is wrong with it becomes `Unreadable`."""
    import io
    import warnings

    try:
        from PIL import Image
    except ImportError:
        raise Unreadable(NEEDS_OCR) from None
    Image.MAX_IMAGE_PIXELS = LARGEST_PICTURE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content), formats=tuple(_MIME_TYPES)) as picture:
                yield picture
    except Image.DecompressionBombError:
        raise Unreadable(f"has more than {LARGEST_PICTURE:,} pixels, which is the limit") from None
    except _BROKEN:
        raise Unreadable(_DAMAGED) from None


def _pages(picture: Any) -> Iterator[Any]:
    number = 0
    while True:
        try:
            picture.seek(number)
        except EOFError:
            return
        if number == MAX_PAGES:
            raise Unreadable(f"has more than {MAX_PAGES:,} pages, which is the limit: split it")
        yield picture
        number += 1


def _text(picture: Any, ocr: Recogniser) -> str:
    # Pillow itself refuses only twice its limit.
    if picture.width * picture.height > LARGEST_PICTURE:
        raise Unreadable(f"has {picture.width:,} x {picture.height:,} pixels, the limit is {LARGEST_PICTURE:,}")
    grey = _grey(picture)
    return ocr.text(grey.tobytes(), grey.width, grey.height)


def _grey(picture: Any) -> Any:
    """The picture upright, in shades of grey on white, in a size that suits recognition."""
    from PIL import Image, ImageOps

    if picture.format in ("JPEG", "MPO"):
        picture.draft("L", None)
    if picture.has_transparency_data:
        # Reduced first: each copy of a large picture takes much memory.
        picture = _smaller(picture if picture.mode in ("RGBA", "LA") else picture.convert("RGBA"))
        grey, opacity = picture.convert("LA").split()
        grey = Image.composite(grey, Image.new("L", grey.size, 255), opacity)
    else:
        grey = _smaller(picture if picture.mode == "L" else picture.convert("L"))
    pixels = grey.width * grey.height
    if pixels < _SMALL:
        grey = grey.resize((grey.width * 2, grey.height * 2), Image.Resampling.LANCZOS)
    return ImageOps.exif_transpose(grey)


def _smaller(picture: Any) -> Any:
    pixels = picture.width * picture.height
    return picture if pixels <= MAX_PIXELS else picture.reduce(math.ceil(math.sqrt(pixels / MAX_PIXELS)))
