"""Short lists, headings and tables of an article that its extraction drops."""

import pytest

from cragside.adapters.documents import html
from cragside.adapters.documents.html import blocks_of, joined, with_dropped
from cragside.adapters.documents.reading import FileOrigin

LONG = (
    "<p>The standpipes are open from April to October and every plot holder may use them in turn, as long as the hose "
    "is not left running while nobody is there.</p>"
)
BODY = (
    f"<h1>Allotment rules</h1><h2>Watering</h2>{LONG}<ul><li>Plots 1 to 20: mornings</li>"
    "<li>Plots 21 to 44: evenings</li></ul><h2>Bonfires</h2>"
    "<ul><li>Only on the first <b>Friday</b> of the month</li></ul>"
    "<h3>Fees</h3><table><tr><th>Plot</th><th>Fee</th></tr><tr><td><p>Half plot</p></td><td>31 crowns</td></tr></table>"
)


def read(body):
    page = f"<!doctype html><html><head><title>Allotment rules</title></head><body>{body}</body></html>"
    return html.read(page.encode(), FileOrigin("rules.html", "html"))


def test_short_lists_and_headings_of_an_article_are_kept_in_place():
    text = read(BODY).text
    parts = [
        "standpipes",
        "- Plots 1 to 20: mornings\n- Plots 21 to 44: evenings",
        "## Bonfires",
        "Friday",
        "### Fees",
        "Half plot",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert all(text.count(part) == 1 for part in parts)


def test_elements_within_a_line_end_it_neither_in_the_article_nor_in_the_whole_page():
    page = b"<p>It costs <data value='5'>five</data> <kbd>crowns</kbd>.</p><table><tr><td>a</td><td>b</td></tr></table>"
    assert joined(blocks_of(html.tree_of(page, None))).split("\n")[0] == "It costs five crowns."
    assert html.whole(html.tree_of(page, None)).text.split("\n")[:2] == ["It costs five crowns.", "a | b"]


def test_a_section_is_named_by_a_heading_that_was_dropped():
    reading = read(BODY)
    named = {reading.text[mark.start :].split("\n")[0]: mark.section for mark in reading.marks}
    assert named["## Bonfires"] == "Allotment rules > Bonfires"


@pytest.mark.parametrize(
    "beside",
    [
        "<nav><ul><li>Buy now</li></ul></nav>",
        "<footer>Buy now</footer>",
        "<aside><p>Buy now</p></aside>",
        '<div class="site-menu"><span>Buy now</span></div>',
        '<div id="cookie-consent">Buy now</div>',
        '<div role="navigation">Buy now</div>',
        '<ul><li><a href="/">Buy now</a></li></ul>',
        "<script>Buy now</script>",
        '<p style="display:none">Buy now</p>',
    ],
)
def test_navigation_and_what_nobody_sees_is_not_added(beside):
    assert "Buy now" not in read(beside + BODY + beside).text


def test_only_the_main_element_is_compared():
    text = read(f"<div>Buy now</div><main>{BODY}</main><div>Imprint</div>").text
    assert "Plots 21 to 44: evenings" in text
    assert "Buy now" not in text
    assert "Imprint" not in text


@pytest.mark.parametrize(
    ("block", "seen"),
    [
        ("<p>Water is H<sub>2</sub>O and 5 m<sup>2</sup> of it are here.</p>", "Water is H2O and 5 m2 of it are here."),
        ("<p>The hall is dry<sup><a href='#f1'>1</a></sup> since May.</p>", "The hall is dry1 since May."),
        ("<p>The door&shy;lock is new and shines.</p>", "The doorlock is new and shines."),
        ("<p>The door&#8203;lock is new.</p>", "The doorlock is new."),
        ("<p>The cafe&#769; is open.</p>", "The cafe\u0301 is open."),
        ("<p>The number is <b>47</b>11 and no other.</p>", "The number is **47**11 and no other."),
        ("<p>The word is <em>ita</em>lic here.</p>", "The word is *ita*lic here."),
        ("<p>It is a <del>very</del>long <u>wo</u>rd, <code>x=</code>1.</p>", "It is a ~~very~~long word, `x=`1."),
        ("<p>H<sub>2</sub>O</p>", "H2O"),
        ("<ul><li>5 m<sup>2</sup></li><li>Roof</li></ul>", "- 5 m2\n- Roof"),
        ("<table><tr><td>Hall</td><td>7 m<sup>2</sup></td></tr></table>", "| Hall | 7 m2 |"),
        ("<table><tr><td>Hall</td><td><b>47</b>11</td></tr></table>", "| Hall | 4711 |"),
    ],
)
def test_a_block_with_a_word_that_is_marked_in_part_stands_once(block, seen):
    assert read(f"<main>{LONG}{block}</main>").text.split("there.\n\n")[1] == seen


def test_the_names_of_columns_stand_above_a_table_that_was_dropped():
    tree = html.tree_of(BODY.encode(), None)
    assert "| Plot | Fee |\n|---|---|\n| Half plot | 31 crowns |" in joined(blocks_of(tree))


def test_a_short_block_counts_as_found_only_near_the_block_before_it():
    tree = html.tree_of(
        f"<p>One long paragraph of words.</p><h2>Fees</h2>{LONG * 3}<p>All about Fees</p>".encode(), None
    )
    article = "\n\n".join(block.text for block in blocks_of(tree) if block.prefix == "")
    assert "words.\n\n## Fees\n\nThe standpipes" in with_dropped(article, blocks_of(tree), "")


def test_of_a_page_with_very_many_elements_all_blocks_are_taken(monkeypatch):
    monkeypatch.setattr(html, "_MOST_ELEMENTS", 20)
    reading = read(BODY + "<nav>Buy now</nav>" + "<p>More of it.</p>" * 20)
    assert reading.title == "Allotment rules"
    assert reading.text.startswith("# Allotment rules\n\n## Watering\n\nThe standpipes")
    assert reading.text.count("More of it.") == 20
    assert "Buy now" not in reading.text


@pytest.mark.parametrize("content", ["main", "article"])
def test_of_a_short_page_without_a_found_article_the_stated_content_is_taken(content):
    text = read(
        f"<nav><a href='/'>Start</a></nav><{content}><h1>Hut</h1><h2>Hours</h2><ul><li>Mon 9-12</li></ul><table><tr>"
        f"<th>Room</th><th>Beds</th></tr><tr><td>A</td><td>4</td></tr></table></{content}><footer>Imprint</footer>"
    ).text
    assert text == "# Hut\n\n## Hours\n\n- Mon 9-12\n\n| Room | Beds |\n|---|---|\n| A | 4 |"
