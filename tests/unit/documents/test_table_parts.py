"""Several tables in one sheet or file: below each other, and side by side."""

import io

import pytest
from openpyxl import Workbook

from cragside.adapters.documents import spreadsheets, structured
from cragside.adapters.documents.reading import FileOrigin

HARVEST = [["Plot", "Crop", "Kilos"], ["North", "Beans", 31], ["South", "Leeks", 28], ["East", "Peas", 9]]
STAFF = [["Name", "Role"], ["Ada", "keeper"], ["Bert", "baker"], ["Cleo", "clerk"]]
FEES = [["Member", "Since", "Fee"], ["Dora", 1998, 12], ["Emil", 2004, 15]]


def sheet(rows):
    book, file = Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(file)
    return spreadsheets.read(file.getvalue(), FileOrigin("a.xlsx", "xlsx")).text


def text(rows):
    lines = "\n".join(",".join("" if cell is None else str(cell) for cell in row) for row in rows)
    return structured.read_delimited(lines.encode(), FileOrigin("a.csv", "csv")).text


def passages(read, rows):
    return [piece for piece in read(rows).split("\n\n") if piece]


@pytest.mark.parametrize("read", [sheet, text])
@pytest.mark.parametrize("between", [[[]], [[], [], []], [[], ["Second table"]]])
def test_a_table_below_blank_rows_has_its_own_header(read, between):
    found = passages(read, [*HARVEST, *between, *FEES])
    assert "Plot: East; Crop: Peas; Kilos: 9" in found
    assert found[-3:] == ["Columns: Member; Since; Fee", "Member: Dora; Since: 1998; Fee: 12",
                          "Member: Emil; Since: 2004; Fee: 15"]  # fmt: skip


@pytest.mark.parametrize("read", [sheet, text])
def test_a_table_of_words_that_is_narrower_or_comes_first_has_its_own_header(read):
    found = passages(read, [*HARVEST, [], *STAFF])
    assert found[-3:] == ["Name: Ada; Role: keeper", "Name: Bert; Role: baker", "Name: Cleo; Role: clerk"]
    words = [["Plot", "Crop", "Keeper"], ["North", "Beans", "Ada"], ["South", "Leeks", "Bert"]]
    found = passages(read, [*words, [], *FEES])
    assert found[1] == "Plot: North; Crop: Beans; Keeper: Ada"
    assert found[-1] == "Member: Emil; Since: 2004; Fee: 15"


@pytest.mark.parametrize("read", [sheet, text])
def test_three_tables_below_each_other_have_three_headers(read):
    found = passages(read, [*FEES, [], *HARVEST, [], *FEES])
    assert [each for each in found if each.startswith("Columns")] == [
        "Columns: Member; Since; Fee", "Columns: Plot; Crop; Kilos", "Columns: Member; Since; Fee"
    ]  # fmt: skip


@pytest.mark.parametrize("read", [sheet, text])
def test_tables_side_by_side_have_rows_of_their_own(read):
    right = [[], *FEES]
    rows = [[*left, None, *other] for left, other in zip(HARVEST, [*right, []], strict=False)]
    found = passages(read, rows)
    assert "Plot: North; Crop: Beans; Kilos: 31" in found
    assert "Columns: Member; Since; Fee" in found
    assert "Member: Dora; Since: 1998; Fee: 12" in found
    assert "Member: Emil; Since: 2004; Fee: 15" in found


@pytest.mark.parametrize("read", [sheet, text])
@pytest.mark.parametrize(
    "more",
    [
        [["West", "Kale", 17], ["Yard", "Figs", 2]],
        [["Winter"], ["West", "Kale", 17]],
        [["West", "Kale", "none"], ["Yard", "Figs", "none"]],
        [["Total", None, 68]],
        [["Signed", "Ada"], ["Place", "Vell"]],
    ],
)
def test_rows_behind_a_blank_one_go_on_with_their_table(read, more):
    found = passages(read, [*HARVEST, [], *more])
    assert sum(each.startswith("Columns") for each in found) == 1
    assert found[-1].startswith("Plot: ")


@pytest.mark.parametrize("read", [sheet, text])
def test_a_preamble_and_a_blank_column_make_no_second_table(read):
    spaced = [[plot, None, crop, kilos] for plot, crop, kilos in HARVEST]
    found = passages(read, [["Account", "4711"], ["Period", "May"], [], *spaced])
    assert found[-1] == "Plot: East; Crop: Peas; Kilos: 9"
    assert sum(each.startswith("Columns") for each in found) == 1


@pytest.mark.attack("hostile files")
def test_very_many_blank_rows_are_looked_at_no_more_than_a_thousand_times():
    rows = [["a", "b", "c"], ["d", 1, 2], *([["e", "f", "g"], ["h", 1, 2], []] * 5000)]
    assert text(rows).count("Columns") < 1100
