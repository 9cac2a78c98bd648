"""Documents that are zip archives, made of their XML."""

import io
import re
import zipfile

A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OASIS = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in {
        "office": "office", "text": "text", "table": "table", "draw": "drawing", "presentation": "presentation",
        "meta": "meta",
    }.items()
)  # fmt: skip


def packed(entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, content) in enumerate(entries.items()):
            archive.writestr(name, content, zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED)
    return file.getvalue()


def relations(*targets):
    """The relations to these (kind, path), with the ids r1, r2 and so on."""
    each = "".join(
        f'<Relationship Id="r{number}" Type="{R}/{kind}" Target="{path}"/>'
        for number, (kind, path) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{RELATIONS}">{each}</Relationships>'


def _linked(addresses):
    return "".join(
        f'<Relationship Id="a{number}" Type="{R}/hyperlink" Target="{address}" TargetMode="External"/>'
        for number, address in enumerate(addresses, 1)
    )


def shape(*lines, place="body"):
    paragraphs = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    return f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{place}"/></p:nvPr></p:nvSpPr><p:txBody>{paragraphs}</p:txBody></p:sp>'


def pptx_of(*slides, notes="", hidden=(), charts=(), addresses=()):
    """A presentation whose slides have these shapes. The first one has `notes`, the `charts` r2, r3 and so
    on, and the `addresses` a1, a2 and so on.
    """
    space = f'xmlns:a="{A}" xmlns:p="{P}" xmlns:r="{R}"'
    ids = "".join(f'<p:sldId r:id="r{number}"/>' for number in range(1, len(slides) + 1))
    entries = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {space}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        # The names of slides say nothing about their order.
        "ppt/_rels/presentation.xml.rels": relations(
            *(("slide", f"slides/slide{len(slides) - number}.xml") for number in range(len(slides)))
        ),
        f"ppt/slides/_rels/slide{len(slides)}.xml.rels": relations(
            ("notesSlide", "../notesSlides/notes1.xml"),
            *(("chart", f"../charts/chart{number}.xml") for number in range(len(charts))),
        ).replace("</Relationships>", f"{_linked(addresses)}</Relationships>"),
        **{f"ppt/charts/chart{number}.xml": chart for number, chart in enumerate(charts)},
        "ppt/notesSlides/notes1.xml": f"<p:notes {space}>{shape('9', place='sldNum')}{shape(notes)}</p:notes>",
    }
    for number, shapes in enumerate(slides):
        show = ' show="0"' if number in hidden else ""
        entries[f"ppt/slides/slide{len(slides) - number}.xml"] = (
            f"<p:sld {space}{show}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
    return packed(entries)


def epub_of(*chapters, more=None, head="", links=""):
    """A book of these XHTML bodies, with `links` in their heads.

    The manifest lists them in reverse; the spine has their order.
    """
    items = "".join(
        f'<item id="c{number}" href="text/c%20{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in reversed(range(len(chapters)))
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    entries = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
        ),
        "OEBPS/book.opf": (
            '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            "<dc:title>The Keeper</dc:title><dc:creator>Ada Keeper</dc:creator></metadata><manifest>"
            f'<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>{items}</manifest>'
            f'<spine><itemref idref="nav"/>{spine}</spine></package>'
        ),
        "OEBPS/nav.xhtml": "<html><body>Contents</body></html>",
    }
    for number, body in enumerate(chapters):
        entries[f"OEBPS/text/c {number}.xhtml"] = (
            f'{head}<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Part {number}</title>{links}</head>'
            f"<body>{body}</body></html>"
        )
    return packed({**entries, **(more or {})})


def opendocument_of(kind, body, *, styles="", more=None):
    """An OpenDocument file: `kind` is text, spreadsheet or presentation. `styles` stand before the body."""
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": (
                f"<office:document-content {OASIS}>{styles}<office:body><office:{kind}>{body}</office:{kind}>"
                "</office:body></office:document-content>"
            ),
            **(more or {}),
        }
    )


def strict(content):
    """An Office document as "Strict Open XML"."""
    strict_space = re.compile(rb'"http://schemas\.openxmlformats\.org/((?!package)\w+)/2006/')
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    return packed(
        {name: strict_space.sub(rb'"http://purl.oclc.org/ooxml/\1/', entry) for name, entry in entries.items()}
    )


def pdf_of(*objects, trailer=""):
    """A PDF of these objects, numbered from 1; the first is the catalog."""
    parts, offsets = [b"%PDF-1.7\n"], []
    for number, content in enumerate(objects, 1):
        offsets.append(sum(map(len, parts)))
        content = content.encode() if isinstance(content, str) else content
        parts.append(b"%d 0 obj\n%b\nendobj\n" % (number, content))
    start = sum(map(len, parts))
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    parts.append(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode())
    parts.append(f"trailer\n<</Root 1 0 R/Size {len(objects) + 1}{trailer}>>\nstartxref\n{start}\n%%EOF".encode())
    return b"".join(parts)


W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
WORD_SPACE = f'xmlns:w="{W}" xmlns:r="{R}" xmlns:m="{M}" xmlns:a="{A}"'
HEADINGS = "".join(
    f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/></w:style>'
    for level in (1, 2, 3)
)
MAIN_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"


def word_of(body, *, addresses=(), chunks=(), charts=(), main_type=MAIN_TYPE, more=None, **parts):
    """A Word document of this XML. `parts` are the contents of its `styles`, `numbering`, `footnotes` and `endnotes`.

    `addresses` have the ids a1, a2 and so on, the `chunks` (name and content) c1, c2 and so on, the
    `charts` h0, h1 and so on.
    """
    parts = {"styles": HEADINGS, **parts}
    related = "".join(f'<Relationship Id="{name}" Type="{R}/{name}" Target="{name}.xml"/>' for name in parts)
    related += _linked(addresses)
    related += "".join(
        f'<Relationship Id="c{number}" Type="{R}/aFChunk" Target="/word/{name}"/>'
        for number, (name, _) in enumerate(chunks, 1)
    )
    related += "".join(
        f'<Relationship Id="h{number}" Type="{R}/chart" Target="charts/{number}.xml"/>' for number in range(len(charts))
    )
    return packed(
        {
            "[Content_Types].xml": (
                '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
                '<Default Extension="xml" ContentType="application/xml"/>'
                f'<Override PartName="/word/document.xml" ContentType="{main_type}"/></Types>'
            ),
            "_rels/.rels": relations(("officeDocument", "word/document.xml")),
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{RELATIONS}">{related}</Relationships>',
            "word/document.xml": f"<w:document {WORD_SPACE}><w:body>{body}</w:body></w:document>",
            **{f"word/{name}.xml": f"<w:{name} {WORD_SPACE}>{content}</w:{name}>" for name, content in parts.items()},
            **{f"word/{name}": content for name, content in chunks},
            **{f"word/charts/{number}.xml": content for number, content in enumerate(charts)},
            **(more or {}),
        }
    )


def paragraph(text, *, style="", level=None, items=None, more=""):
    """A paragraph of a Word document, in a style or in a list at a level."""
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    at = f'<w:ilvl w:val="{level}"/>' if level is not None else ""
    listed = f'<w:numPr>{at}<w:numId w:val="{items}"/></w:numPr>' if items is not None else ""
    return f"<w:p><w:pPr>{styled}{listed}{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
