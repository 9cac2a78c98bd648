"""Numbers that LibreOffice computes for headings and list items."""

import pytest

from cragside.adapters.documents import opendocument
from cragside.adapters.documents.reading import FileOrigin
from tests.unit.documents.archives import OASIS, opendocument_of

SPACE = f'{OASIS} xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'


def level(at, form="1", *, kind="list-level-style-number", **more):
    named = {"prefix": "style:num-prefix", "suffix": "style:num-suffix", "pattern": "style:num-list-format"}
    named |= {"shown": "text:display-levels", "start": "text:start-value"}
    rest = " ".join(f'{named[name]}="{value}"' for name, value in more.items())
    return f'<text:{kind} text:level="{at}" style:num-format="{form}" {rest}/>'


def heading_level(at, form="1", **more):
    return level(at, form, kind="outline-level-style", **more)


def read(body, *levels, outline=(), more=""):
    styles = (
        f"<office:document-styles {SPACE}><office:styles>{more}<text:outline-style>{''.join(outline)}"
        f'</text:outline-style><text:list-style style:name="L">{"".join(levels)}</text:list-style></office:styles>'
        "</office:document-styles>"
    )
    return opendocument.read(opendocument_of("text", body, more={"styles.xml": styles}), FileOrigin("a.odt", "odt"))


def lines(body, *levels, **more):
    return read(body, *levels, **more).text.split("\n\n")[:-1]


def items(*content, more='text:style-name="L"'):
    return f"<text:list {more}>{''.join(content)}</text:list>"


def item(*content, more=""):
    return f"<text:list-item {more}>{''.join(content)}</text:list-item>"


def p(text):
    return f"<text:p>{text}</text:p>"


def h(text, at, more=""):
    return f'<text:h text:outline-level="{at}" {more}>{text}</text:h>'


def test_headings_have_their_numbers_in_text_and_sections():
    outline = [heading_level(1), heading_level(2, shown=2), heading_level(3, "")]
    body = h("Rent", 1) + h("Amount", 2) + h("Late", 2) + p("text") + h("Deep", 3) + h("Use", 1) + h("Boats", 2)
    reading = read(body, outline=outline)
    assert reading.text.split("\n\n")[:-1] == [
        "1 Rent", "1.1 Amount", "1.2 Late", "text", "Deep", "2 Use", "2.1 Boats",
    ]  # fmt: skip
    assert reading.marks[2].section == "1 Rent > 1.2 Late"
    assert reading.title == "Rent"


def test_headings_may_have_no_number_or_one_of_their_own():
    plain = '<style:style style:name="Plain" style:family="paragraph" style:list-style-name=""/>'
    body = h("a", 1) + h("b", 1, 'text:style-name="Plain"') + h("c", 1, 'text:is-list-header="true"')
    body += h("d", 1, 'text:restart-numbering="true" text:start-value="7"') + h("e", 1)
    assert lines(body, outline=[heading_level(1, "I", suffix=".")], more=plain) == [
        "I. a",
        "b",
        "c",
        "VII. d",
        "VIII. e",
    ]


def test_items_count_in_their_levels_and_only_their_first_paragraphs_have_numbers():
    inner = items(item(p("b")), item(p("c"), p("more")), more="")
    body = items(item(p("a"), inner), item(p("d"), items(item(p("e")), more="")))
    assert lines(body, level(1, suffix="."), level(2, "a", prefix="(", suffix=")")) == [
        "1. a", "(a) b", "(b) c", "more", "2. d", "(a) e",
    ]  # fmt: skip


def test_lists_begin_anew_unless_they_continue_another():
    first = items(item(p("a")), item(p("b")), more='text:style-name="L" xml:id="one"')
    again = items(item(p("c")))
    on = items(item(p("d")), more='text:style-name="L" text:continue-numbering="true"')
    back = items(item(p("e")), more='text:style-name="L" text:continue-list="one"')
    assert lines(first + again + on + back, level(1)) == ["1 a", "2 b", "1 c", "2 d", "3 e"]


def test_lists_that_only_reach_a_depth_go_on_counting_there():
    whole = items(item(p("a"), items(item(p("b")), more="")))
    on = items(item(items(item(p("c")), more="")), more='text:style-name="L" text:continue-numbering="true"')
    assert lines(whole + p("text") + on, level(1), level(2, pattern="%1%.%2%")) == ["1 a", "1.1 b", "text", "1.2 c"]


def test_items_may_have_a_number_of_their_own_and_headers_have_none():
    header = f"<text:list-header>{p('h')}</text:list-header>"
    body = items(header, item(p("a"), more='text:start-value="5"'), item(p("b")))
    assert lines(body, level(1, start=3)) == ["h", "5 a", "6 b"]


def test_bullets_are_no_text():
    bullet = '<text:list-level-style-bullet text:level="1" text:bullet-char="•"/>'
    assert lines(items(item(p("a"))), bullet) == ["a"]


@pytest.mark.attack("hidden text")
def test_hidden_items_are_not_read():
    unseen = '<style:text-properties text:display="none"/>'
    hidden = f'<style:style style:name="X" style:family="paragraph">{unseen}</style:style>'
    body = items(item('<text:p text:style-name="X">A</text:p>'), item(p("b")))
    assert lines(body, level(1), more=hidden) == ["2 b"]


@pytest.mark.attack("hostile files")
def test_a_long_pattern_and_a_deep_level_fill_no_document():
    deep = p("x")
    for _ in range(60):
        deep = items(item(deep))
    found = lines(deep + items(item(p("y"))), level(1, pattern="%1%" * 9000), level(99), level(0))
    assert found[0] == "x"
    assert len(found[1]) < 200
