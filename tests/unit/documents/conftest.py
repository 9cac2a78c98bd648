"""DOCX files from their XML."""

import io
import zipfile

import pytest

TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
    '<Override PartName="/word/styles.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>'
)
RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" Target="{target}"/>'
    "</Relationships>"
)
SPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
STYLES = (
    f'<w:styles {SPACE}><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    "</w:styles>"
)


@pytest.fixture
def docx_of():
    """A DOCX whose body is this XML; `head` stands before the root element, `more` are further entries."""

    def make(body, *, head="", more=(), compression=zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", compression) as archive:
            archive.writestr("[Content_Types].xml", TYPES)
            archive.writestr("_rels/.rels", RELATIONS.format(kind="officeDocument", target="word/document.xml"))
            archive.writestr("word/_rels/document.xml.rels", RELATIONS.format(kind="styles", target="styles.xml"))
            archive.writestr("word/styles.xml", STYLES)
            archive.writestr("word/document.xml", f"{head}<w:document {SPACE}><w:body>{body}</w:body></w:document>")
            for name, content in more:
                archive.writestr(name, content)
        return file.getvalue()

    return make
