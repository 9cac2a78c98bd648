"""Pictures of text, and PDF that consist of them."""

import io
from functools import cache

import pypdfium2
from PIL import Image

from tests.unit.documents.archives import pdf_of

SHED = ("The boat shed is rented by the rowing club.", "Größe der Hütte: 12 Meter, täglich geöffnet", "Invoice K200")


def text_pdf(*pages):
    """A PDF with a text layer: each page has these lines."""
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    kids = []
    for lines in pages:
        content = ("BT /F 14 Tf 30 180 Td 30 TL " + " ".join(f"({line}) '" for line in lines) + " ET").encode("cp1252")
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        fonts = "/Resources<</Font<</F 3 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 420 200]/Contents {number + 1} 0 R{fonts}>>")
        objects.append(b"<</Length %d>>\nstream\n%b\nendstream" % (len(content), content))
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    return pdf_of(*objects)


@cache
def picture_of_text(*lines):
    """A picture of these lines at 200 dots an inch, in shades of grey."""
    with pypdfium2.PdfDocument(text_pdf(lines)) as document:
        return document[0].render(scale=200 / 72, grayscale=True).to_pil().copy()


def saved(picture, form, **options):
    """The bytes of a file with this picture."""
    file = io.BytesIO()
    picture.copy().save(file, form, **options)  # Pillow keeps the options in what it saves
    return file.getvalue()


def scan_of(*pages):
    """A PDF without a text layer: a scanner's. A page is a picture, or lines."""
    first, *others = [each if isinstance(each, Image.Image) else picture_of_text(*each) for each in pages]
    return saved(first, "PDF", save_all=True, append_images=others, resolution=200)


def joined(*documents):
    """One PDF with the pages of all."""
    whole = pypdfium2.PdfDocument.new()
    for document in documents:
        with pypdfium2.PdfDocument(document) as part:
            whole.import_pages(part)
    file = io.BytesIO()
    whole.save(file)
    return file.getvalue()
