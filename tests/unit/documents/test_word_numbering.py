"""Numbers that Word computes for headings and list items."""

import pytest

from cragside.adapters.documents import word
from cragside.adapters.documents.number_formats import written
from cragside.adapters.documents.reading import FileOrigin
from tests.unit.documents.archives import paragraph, word_of


def read(content):
    return word.read(content, FileOrigin("a.docx", "docx"))


def lines(*paragraphs, **parts):
    return read(word_of("".join(paragraphs), **parts)).text.split("\n\n")[:-1]


def level(at, text, form="decimal", start=1, more=""):
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/>'
        f'<w:lvlText w:val="{text}"/>{more}</w:lvl>'
    )


def numbering(*levels, lists=1, more=""):
    """One list of these levels that several numbered lists have in common."""
    nums = "".join(f'<w:num w:numId="{n}"><w:abstractNumId w:val="0"/></w:num>' for n in range(1, lists + 1))
    return f'<w:abstractNum w:abstractNumId="0">{"".join(levels)}</w:abstractNum>{nums}{more}'


LEGAL = numbering(level(0, "%1."), level(1, "%1.%2"), level(2, "(%3)", "lowerLetter"))


def item(text, at=0, items=1, **more):
    return paragraph(text, level=at, items=items, **more)


def test_clauses_have_the_numbers_that_word_shows():
    reading = read(
        word_of(
            item("Parties", style="Heading1")
            + item("Rent", style="Heading1")
            + item("Amount", 1, style="Heading2")
            + item("Late payment", 1, style="Heading2")
            + paragraph("Interest runs.")
            + item("Use", style="Heading1")
            + item("Duties", 1, style="Heading2")
            + item("weed;", 2)
            + item("doors;", 2),
            numbering=LEGAL,
        )
    )
    assert reading.text.split("\n\n")[3:9] == [
        "2.2 Late payment", "Interest runs.", "3. Use", "3.1 Duties", "(a) weed;", "(b) doors;",
    ]  # fmt: skip
    assert [mark.section for mark in reading.marks][3] == "2. Rent > 2.2 Late payment"
    assert reading.title == "Parties", "the title of a document is no clause"


def test_a_level_goes_on_in_text_between_its_items_and_restarts_behind_a_higher_one():
    found = lines(
        item("a"), item("b", 1), paragraph("text"), item("c", 1), item("d"), item("e", 1), numbering=LEGAL
    )  # fmt: skip
    assert found == ["1. a", "1.1 b", "text", "1.2 c", "2. d", "2.1 e"]


def test_a_level_may_restart_never_or_only_behind_a_certain_level():
    rest = [level(0, "%1"), level(1, "%1.%2"), level(2, "%3)", more='<w:lvlRestart w:val="0"/>')]
    paragraphs = [item("a"), item("b", 1), item("c", 2), item("d", 1), item("e", 2), item("f"), item("g", 2)]
    assert [each.split()[0] for each in lines(*paragraphs, numbering=numbering(*rest))] == [
        "1", "1.1", "1)", "1.2", "2)", "2", "3)",
    ]  # fmt: skip
    rest[2] = level(2, "%3)", more='<w:lvlRestart w:val="1"/>')
    assert [each.split()[0] for each in lines(*paragraphs, numbering=numbering(*rest))] == [
        "1", "1.1", "1)", "1.2", "2)", "2", "1)",
    ]  # fmt: skip


def test_lists_with_common_levels_go_on_counting_unless_one_starts_anew():
    override = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    third = f'<w:num w:numId="3"><w:abstractNumId w:val="0"/>{override}</w:num>'
    found = lines(
        item("a"), item("b", items=2), item("c", items=3), item("d", items=3), item("e"),
        numbering=numbering(level(0, "%1."), lists=2, more=third),
    )  # fmt: skip
    assert found == ["1. a", "2. b", "5. c", "6. d", "7. e"]


def test_a_list_may_replace_levels():
    replaced = f'<w:lvlOverride w:ilvl="0">{level(0, "Article %1:", "upperRoman")}</w:lvlOverride>'
    more = f'<w:num w:numId="9"><w:abstractNumId w:val="0"/>{replaced}</w:num>'
    assert lines(item("a", items=9), item("b", items=9), numbering=numbering(level(0, "%1."), more=more)) == [
        "Article I: a", "Article II: b",
    ]  # fmt: skip


def test_styles_give_lists_and_levels_and_inherit_them():
    def style(name, number, based=""):
        return (
            f'<w:style w:type="paragraph" w:styleId="{name}"><w:name w:val="{name}"/><w:basedOn w:val="{based}"/>'
            f"<w:pPr>{number}</w:pPr></w:style>"
        )

    styles = (
        style("Part", '<w:numPr><w:numId w:val="1"/></w:numPr>')
        + style("Clause", '<w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr>')
        + style("Linked", '<w:numPr><w:numId w:val="1"/></w:numPr>')
        + style("Heir", "", "Linked")
        + style("Loop", "", "Loop")
    )
    levels = numbering(level(0, "%1"), level(1, "%1.%2"), level(2, "(%3)", more='<w:pStyle w:val="Linked"/>'))
    found = lines(
        paragraph("a", style="Part"),
        paragraph("b", style="Clause"),
        paragraph("c", style="Heir"),
        paragraph("d", style="Linked"),
        paragraph("e", style="Clause", items=0),
        paragraph("f", style="Loop"),
        paragraph("g", style="Clause"),
        styles=styles,
        numbering=levels,
    )
    assert found == ["1 a", "1.1 b", "(1) c", "(2) d", "e", "f", "1.2 g"]


def test_a_list_may_have_the_levels_of_the_list_that_a_style_names():
    styles = (
        '<w:style w:type="numbering" w:styleId="Legal"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    )
    linked = '<w:abstractNum w:abstractNumId="7"><w:numStyleLink w:val="Legal"/></w:abstractNum>'
    more = '<w:num w:numId="7"><w:abstractNumId w:val="7"/></w:num>'
    assert lines(
        item("a"), item("b", items=7), styles=styles, numbering=linked + numbering(level(0, "§ %1"), more=more)
    ) == ["§ 1 a", "§ 2 b"]  # fmt: skip


def test_bullets_and_hidden_numbers_are_no_text():
    levels = numbering(
        level(0, "\uf0b7", "bullet"), level(1, "%2.", more="<w:rPr><w:vanish/></w:rPr>"), level(2, "%2-%3", "none")
    )
    assert lines(item("a"), item("b", 1), item("c", 2), numbering=levels) == ["a", "b", "1- c"]


def test_items_that_are_hidden_deleted_or_empty_are_no_text_and_only_empty_ones_count():
    gone = [item("", more=f"<w:rPr><w:{mark}/></w:rPr>") for mark in ("vanish", "del")]
    assert lines(item("a"), *gone, item(""), item("b"), numbering=LEGAL) == ["1. a", "3. b"]


def test_items_in_tables_are_counted_where_they_stand():
    table = f"<w:tbl><w:tr><w:tc>{item('b')}</w:tc><w:tc>{item('c')}</w:tc></w:tr></w:tbl>"
    assert lines(item("a"), table, item("d"), numbering=LEGAL) == ["1. a", "2. b | 3. c", "4. d"]


def test_a_level_in_legal_form_and_one_whose_parent_is_not_there():
    levels = numbering(
        level(0, "%1", "upperRoman", start=4), level(1, "%1.%2", more="<w:isLgl/>"), level(2, "%1.%3", "decimalZero")
    )
    assert lines(item("a", 1), item("b"), item("c", 1), item("d", 2), numbering=levels) == [
        "4.1 a", "IV b", "4.1 c", "IV.01 d",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "number", "shown"),
    [
        ("decimal", 12, "12"), ("decimalZero", 7, "07"), ("decimalZero", 12, "12"), ("upperRoman", 1994, "MCMXCIV"),
        ("lowerRoman", 4, "iv"), ("lowerLetter", 26, "z"), ("upperLetter", 28, "BB"), ("ordinal", 2, "2nd"),
        ("ordinal", 11, "11th"), ("ordinalText", 3, "Third"), ("cardinalText", 12, "Twelve"), ("none", 3, ""),
        ("numberInDash", 3, "- 3 -"), ("russianLower", 3, "в"), ("japaneseCounting", 23, "二十三"),
        ("chineseCounting", 10, "十"), ("decimalFullWidth", 10, "１０"), ("decimalEnclosedCircle", 3, "③"),
        ("somethingNew", 5, "5"), ("upperRoman", 0, "0"), ("upperRoman", 99_999_999, "99999999"),
        ("lowerLetter", 99_999_999, "99999999"), ("lowerLetter", 0, "0"), ("cardinalText", 99, "99"),
    ],
)  # fmt: skip
def test_a_number_is_written_in_its_format(form, number, shown):
    assert written(number, form) == shown


def test_a_format_of_its_own_keeps_its_zeros():
    chosen = (
        '<w:start w:val="7"/><mc:AlternateContent xmlns:mc="urn:x"><mc:Choice><w:numFmt w:val="custom" '
        'w:format="001, 002, 003, ..."/></mc:Choice><mc:Fallback><w:numFmt w:val="decimal"/></mc:Fallback>'
        '</mc:AlternateContent><w:lvlText w:val="No. %1"/>'
    )
    assert lines(item("a"), numbering=numbering(f'<w:lvl w:ilvl="0">{chosen}</w:lvl>')) == ["No. 007 a"]


@pytest.mark.attack("hostile files")
def test_a_level_with_a_long_text_and_one_out_of_range_fill_no_document():
    levels = numbering(level(0, "x" * 100_000), level(999, "%9"), level(1, "%1", start="9" * 99))
    found = lines(*[item("a")] * 50, item("b", 999), item("c", "x"), item("d", -1), numbering=levels)
    assert sum(map(len, found)) < 10_000
    assert len(found) == 53
