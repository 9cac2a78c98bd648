"""Makes survey.pdf and weir.docx with LibreOffice: python tests/data/make_documents.py (needs `soffice`)."""

import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
SPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "office": "office",
        "text": "text",
        "style": "style",
        "table": "table",
        "fo": "xsl-fo-compatible",
        "meta": "meta",
    }.items()
)
WORDS = ("otter", "kelp", "urchin", "turbine", "weir", "lantern", "granite", "heather", "falcon", "barley", "copper")
WORDS += ("harbour", "meadow", "quarry", "saffron")
    "otter",
    "kelp",
    "urchin",
    "turbine",
    "weir",
    "lantern",
    "granite",
    "heather",
    "falcon",
    "barley",
    "copper",
    "harbour",
    "meadow",
    "quarry",
    "saffron",
]
STYLES = "".join(
    f'<style:style style:name="Heading_20_{level}" style:display-name="Heading {level}" style:family="paragraph" '
    f'style:default-outline-level="{level}" style:class="text"/>'
    for level in (1, 2)
)
# A page begins with each heading.
BREAKS = "".join(
    f'<style:style style:name="Page{level}" style:family="paragraph" style:parent-style-name="Heading_20_{level}">'
    '<style:paragraph-properties fo:break-before="page"/></style:style>'
    for level in (1, 2)
)


def document(title: str, body: str) -> str:
    """A flat OpenDocument text."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {SPACES} '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.2" '
        'office:mimetype="application/vnd.oasis.opendocument.text"><office:meta>'
        f"<dc:title>{title}</dc:title><meta:initial-creator>Ada Keeper</meta:initial-creator>"
        "<meta:creation-date>2026-03-01T09:30:00</meta:creation-date></office:meta>"
        f"<office:styles>{STYLES}</office:styles><office:automatic-styles>{BREAKS}</office:automatic-styles>"
        f"<office:body><office:text>{body}</office:text></office:body></office:document>"
    )


def heading(level: int, words: str, style: str = "Heading_20_") -> str:
    return f'<text:h text:style-name="{style}{level}" text:outline-level="{level}">{words}</text:h>'


def page(number: int) -> str:
    """A page of the survey; no other page says the same."""
    first, second = WORDS[number % 15], WORDS[(number * 7 + 3) % 15]
    top = (
        heading(1, f"Part {number // 20 + 1}", "Page") if number % 20 == 1 else heading(2, f"Station {number}", "Page")
    )
    return (
        f"{top}<text:p>Station {number} recorded {number * 37 + 11} {first} sightings and {number * 13 + 5} litres of "
        f"{second} water; its keeper signed log {number * 7919 % 100_003:05}.</text:p>"
        f"<text:p>Grüße vom Hüttenwart: auf Seite {number} steht die Prüfzahl {number * 104_729 % 1_000_003}.</text:p>"
    )


def row(*cells: str) -> str:
    filled = "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in cells)
    return f"<table:table-row>{filled}</table:table-row>"


WEIR = (
    heading(1, "The weir")
    + "<text:p>The weir holds back four metres of water for the turbine house.</text:p>"
    + heading(2, "Gates")
    + "<text:p>Each gate opens within ninety seconds; the keys hang in the mill.</text:p>"
    + '<table:table table:name="Gates"><table:table-column table:number-columns-repeated="3"/>'
    + row("Gate", "Width", "Keeper")
    + row("North", "3.20 m", "Jürgen")
    + row("South", "2.85 m", "Ines")
    + "</table:table><text:p>The table lists both gates.</text:p>"
    + heading(1, "The turbine")
    + "<text:p>The turbine makes 90 kW at full flow.</text:p>"
)


def main() -> None:
    made = {
        "survey": ("pdf", document("The Station Survey", "".join(map(page, range(1, 201))))),
        "weir": ("docx", document("Handbook of the Weir", WEIR)),
    }
    with tempfile.TemporaryDirectory() as scratch:
        for name, (ending, content) in made.items():
            Path(scratch, f"{name}.fodt").write_text(content, "utf-8")
            command = ["soffice", "--headless", "--convert-to", ending, "--outdir", str(FOLDER), f"{name}.fodt"]
            subprocess.run(command, cwd=scratch, check=True)


if __name__ == "__main__":
    main()
