"""Tables of pages: merged cells, headers in several rows, tables in cells."""

import pytest

from cragside.adapters.documents import html
from cragside.adapters.documents.reading import FileOrigin

INTRO = (
    "<p>The ferries leave from the north pier in all seasons, and those who want to take a bicycle have to say so on "
    "the day before, because there is room for only four of them.</p>"
)
FIGURES = (
    "<tr><td rowspan=2>North</td><td>11</td><td>12</td><td>13</td><td>14</td></tr>"
    "<tr><td colspan='2'>closed</td><td>23</td><td>24</td></tr>"
    "<tr><td>South</td><td>31</td><td rowspan='2'>32</td><td>33</td><td>34</td></tr>"
    "<tr><td>East</td><td>41</td><td>43</td><td>44</td></tr>"
)
NAMES = (
    "<tr><{0} rowspan=2>Pier</{0}><{0} colspan=2>2024</{0}><{0} colspan=2>2025</{0}></tr>"
    "<tr><{0}>Q1</{0}><{0}>Q2</{0}><{0}>Q1</{0}><{0}>Q2</{0}></tr>"
)
WRITTEN = [
    ["Pier", "2024 Q1", "2024 Q2", "2025 Q1", "2025 Q2"],
    ["North", "11", "12", "13", "14"],
    ["North", "closed", "closed", "23", "24"],
    ["South", "31", "32", "33", "34"],
    ["East", "41", "32", "43", "44"],
]


def read(body):
    page = f"<!doctype html><html><head><title>Ferries</title></head><body>{body}</body></html>"
    return html.read(page.encode(), FileOrigin("ferries.html", "html")).text


def cells_of(text):
    rows = [line.strip(" |").split("|") for line in text.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in row] for row in rows]


@pytest.mark.parametrize("around", ["{}", "<main>{}</main>", f"{INTRO}{{}}{INTRO}"])
@pytest.mark.parametrize(
    "table",
    [
        f"<thead>{NAMES.format('th')}</thead><tbody>{FIGURES}</tbody>",
        f"<thead>{NAMES.format('td')}</thead><tbody>{FIGURES}</tbody>",
        NAMES.format("th") + FIGURES,
        NAMES.format("td") + FIGURES,
        "<tr><th rowspan=2>Pier</th><th colspan=2>2024</th><th colspan=2>2025</th></tr>"
        f"<tr><td>Q1</td><td>Q2</td><td>Q1</td><td>Q2</td></tr>{FIGURES}",
    ],
)
def test_each_value_stands_below_the_names_of_its_column(table, around):
    assert cells_of(read(around.format(f"<table>{table}</table>"))) == WRITTEN


def test_a_book_and_a_mail_have_the_same_rows():
    page = f"<body><table>{NAMES.format('th')}{FIGURES}</table></body>".encode()
    lines = html.whole(html.tree_of(page, None)).text.strip().splitlines()
    assert [[cell.strip() for cell in line.split("|")] for line in lines] == WRITTEN


def test_a_title_over_all_columns_and_a_long_remark_stand_once():
    remark = "The pier is closed in storms. " * 10
    text = read(
        f"<main>{INTRO}<table><tr><th colspan=3>Fares of 2025</th></tr>"
        f"<tr><th>Pier</th><th>Adult</th><th>Child</th></tr>"
        f"<tr><td>North</td><td>12</td><td>6</td></tr><tr><td>South</td><td colspan=2>{remark}</td></tr></table></main>"
    )
    assert text.count("Fares of 2025") == 1
    assert text.count("closed in storms") == 10
    assert ["Pier", "Adult", "Child"] in cells_of(text)


def test_a_row_of_words_below_one_row_of_names_is_no_second_header():
    table = (
        "<tr><th>Office</th><th colspan=2>Contact</th></tr><tr><td>Harbour</td><td>Ann</td><td>upstairs</td></tr>"
        "<tr><td>Ferry</td><td>Bert</td><td>downstairs</td></tr>"
    )
    assert cells_of(read(f"<main><table>{table}</table></main>"))[:2] == [
        ["Office", "Contact", "Contact"],
        ["Harbour", "Ann", "upstairs"],
    ]


def test_a_merged_cell_ends_with_its_part_of_the_table():
    table = (
        "<thead><tr><th rowspan=9>Pier</th><th>Adult</th></tr></thead><tbody><tr><td>North</td><td>12</td></tr>"
        "<tr><td rowspan=0>South</td><td>13</td></tr><tr><td>14</td></tr></tbody>"
    )
    rows = [["Pier", "Adult"], ["North", "12"], ["South", "13"], ["South", "14"]]
    assert cells_of(read(f"<main><table>{table}</table></main>")) == rows


INNER = "<table><tr><th>Deck</th><th>Seats</th></tr><tr><td>Upper</td><td>640</td></tr></table>"


@pytest.mark.parametrize("around", ["{}", "<main>{}</main>", f"{INTRO}{{}}{INTRO}", "<div><h2>Fleet</h2>{}</div>"])
@pytest.mark.parametrize(
    "outer",
    [
        f"<table><tr><th>Ship</th><th>About</th></tr><tr><td>Kestrel</td><td>Built 1911 {INNER} in Leith</td></tr>"
        "<tr><td>Osprey</td><td>laid up</td></tr></table>",
        f"<table><tr><td>Ship</td><td>About</td></tr><tr><td>Kestrel</td><td>Built 1911<div>{INNER}</div>in Leith</td>"
        "</tr><tr><td>Osprey</td><td>laid up</td></tr></table>",
        f"<table><tr><td><h3>Ship</h3>About</td></tr><tr><td>Kestrel</td></tr><tr><td>Built 1911 {INNER} in Leith</td>"
        "</tr><tr><td>Osprey</td></tr><tr><td>laid up</td></tr></table>",
        f"<table><tr><td>Ship<table><tr><td>About</td><td>Kestrel</td></tr><tr><td>Built 1911</td><td>{INNER}</td></tr>"
        "</table></td><td>in Leith</td><td>Osprey</td><td>laid up</td></tr></table>",
    ],
)
def test_each_text_of_a_table_in_a_cell_stands_once(outer, around):
    text = read(around.format(outer))
    said = ("Ship", "About", "Kestrel", "Built 1911", "Leith", "Deck", "Seats", "Upper", "640", "Osprey", "laid up")
    assert {each: text.count(each) for each in said} == dict.fromkeys(said, 1)
    assert ["Deck", "Seats"] in cells_of(text)
    assert ["Upper", "640"] in cells_of(text)


def test_a_table_in_a_cell_follows_the_row_of_the_cell():
    ships = "".join(
        f"<tr><td>{ship}</td><td>{INNER.replace('640', seats)}</td></tr>"
        for ship, seats in (("Gull", "1"), ("Tern", "2"))
    )
    text = read(f"<main>{INTRO}<table>{ships}</table></main>")
    places = [text.find(each) for each in ("Gull", "| 1 |", "Tern", "| 2 |")]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.attack("hostile files")
@pytest.mark.parametrize(
    "cells",
    [
        "<td colspan=1000 rowspan=65534>a",
        "<tr><td colspan=1000 rowspan=65534>a",
        "<tr><td rowspan=65534>a<td>b",
        "<tr><td rowspan=0 colspan=99999999999999999999>a<td colspan=-5 rowspan=x>b",
    ],
)
def test_huge_spans_add_no_more_than_a_table_has(cells):
    tree = html.tree_of(f"<table><tr>{cells * 2000}</table>".encode(), None)
    assert sum(1 for _ in tree.iter("td", "th")) < 40_000
    assert not [cell for cell in tree.iter("td") if cell.get("rowspan") or cell.get("colspan")]


@pytest.mark.attack("hostile files")
def test_tables_nested_as_deep_as_a_page_may_be_are_read():
    deep = f"<main>{'<table><tr><td>a<td>b<td>' * 60}" + "<table><tr><td rowspan=65534>a<td>b" * 20
    assert read(deep).count("a") >= 60
