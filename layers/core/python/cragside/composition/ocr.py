"""How text in pictures is recognised, by the settings and by what is installed."""

from typing import TYPE_CHECKING

from cragside.adapters.documents.ocr import available
from cragside.adapters.documents.reading import Ocr

if TYPE_CHECKING:
    from cragside.settings import Settings


def ocr_of(settings: "Settings") -> Ocr | None:
    """The settings of OCR; None if the extra `ocr` is not installed."""
    if not available():
        return None
    data = str(settings.ocr_data.expanduser().absolute()) if settings.ocr_data else ""
    return Ocr(settings.ocr_languages, data, settings.ocr_seconds)
