"""The header and the delimiter of a table are found where they are."""

import io

import pytest
from openpyxl import Workbook

from cragside.adapters.documents import opendocument, spreadsheets, structured
from cragside.adapters.documents.reading import FileOrigin
from cragside.domain.tables import header_of
from tests.unit.documents.archives import opendocument_of


def csv(text):
    return structured.read_delimited(text.encode(), FileOrigin("a.csv", "csv")).text.strip().split("\n\n")


def xlsx(rows, *merged):
    book, file = Workbook(), io.BytesIO()
    sheet = book.active
    for row in rows:
        sheet.append(row)
    for each in merged:
        sheet.merge_cells(each)
    book.save(file)
    return spreadsheets.read(file.getvalue(), FileOrigin("a.xlsx", "xlsx")).text.strip().split("\n\n")


def names_of(text):
    """The names of the columns of rows such as `a|b`, one a line."""
    lines = enumerate(text.strip("\n").split("\n"), 1)
    return header_of([(number, line.split("|")) for number, line in lines if line.strip("|")]).names


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ("#|Vessel|Litres\n1|Heron|410\n2|Bittern|385", ["#", "Vessel", "Litres"]),
        ("Crew|%|°C\nAlder|12|8\nRowan|9|7", ["Crew", "%", "°C"]),
        ("Street|01/2024|02/2024\nMill Bank|22|17\nSalt Alley|3|8", ["Street", "01/2024", "02/2024"]),
        ("Street|2024-01|2024-02\nMill Bank|22|17", ["Street", "2024-01", "2024-02"]),
        ("Street|2024-01-01|2024-02-01\nMill Bank|22|17", ["Street", "2024-01-01", "2024-02-01"]),
        ("Meal|01.03.2025|02.03.2025\nLunch|soup|stew", ["Meal", "01.03.2025", "02.03.2025"]),
        ("Parish|0-10|11–20|21+\nFell|4|9|2", ["Parish", "0-10", "11–20", "21+"]),
        ("Weight|<5 kg|5-10 kg|>10 kg\nFee|4.50|9|12.75", ["Weight", "<5 kg", "5-10 kg", ">10 kg"]),
        ("Goods|5%|10%\nRope|9.50|9.00", ["Goods", "5%", "10%"]),
        ("|2023|2024\nNorth|12|15\nSouth|8|9", ["", "2023", "2024"]),
        ("2022|2023|2024\n12|15|7\n8|9|3", ["2022", "2023", "2024"]),
        ("Region|2023|2024\nNorth|1950|2011\nSouth|812|930", ["Region", "2023", "2024"]),
        ("Season|2023/24|2024/25\nWins|4|9", ["Season", "2023/24", "2024/25"]),
        ("Boots|36|37|38\nLow|4|2|0\nHigh|1|0|3", ["Boots", "36", "37", "38"]),
        ("|31|44|47\nMon|120|80|60\nTue|90|85|20", ["", "31", "44", "47"]),
        ("Hour|08:00|09:00\nFerry|12|40", ["Hour", "08:00", "09:00"]),
    ],
)
def test_names_may_be_signs_dates_ranges_and_numbers(rows, names):
    assert names_of(rows) == names


@pytest.mark.parametrize(
    "rows",
    [
        "1|2\n3|4", "1990|1985\n1991|1986", "Anna|2024-03-01\nBen|2024-04-02\nCarl|2024-05-09", "x|1|2|3\ny|4|5|6",
        "|5|6\n|7|8", "|5|6\nx|7|8\n|9|1",
        "Wharf crane|40 t\nQuay crane|12.5 t\nDeck crane|3 t", "Anna|0-10\nBen|11-20", "Ivo|-\nAda|4\nUte|2",
        "=A1|=B1\n1|2", "Account:|4711\nAs of:|2025-03-31", "one\ntwo\nthree", "",
    ],
)  # fmt: skip
def test_rows_of_values_are_no_header(rows):
    assert names_of(rows) == []


@pytest.mark.parametrize(
    "preamble",
    [
        "Account:|Farrow 4471\nPeriod:|2025-03-01 - 2025-03-31\nBalance of 2025-03-31:|2,114.08 EUR\n\n",
        "Account|4471\nBalance|2,114.08 EUR\n\n", "Account|4471\nOwner|Farrow\n", "Statement of March\n\nFarrow\n",
        "Account:|4471||\nOwner:|Farrow||\n", "Owner|Farrow\nBank|Vell\n" * 5, "\n\n", "Statement\n",
        "\n".join(f"Line {number} of a long preamble" for number in range(20)) + "\n",
    ],
)  # fmt: skip
def test_the_header_is_found_behind_a_preamble(preamble):
    rows = "Day|Payee|Amount\n2025-03-04|Ottesen|-186.40\n2025-03-11|Vell|320.00\n2025-03-19|Dunmore|-745.00"
    assert names_of(preamble + rows) == ["Day", "Payee", "Amount"]


def test_a_preamble_as_wide_as_the_table_ends_at_an_empty_row():
    table = "Month|Amount\nJanuary|100\nFebruary|120"
    assert names_of(f"Account|4711\nOwner|Farrow\n\n{table}") == ["Month", "Amount"]
    assert names_of(f"Account:|Farrow\n{table}") == ["Month", "Amount"]


def test_words_are_a_header_above_words():
    assert names_of("Monday|Tuesday\nIvo|Petra\nPetra|Petra") == ["Monday", "Tuesday"]
    assert names_of("Verein|Kiel\n\nName|Amt|Ort\nAnna|Kasse|Laboe\nBen|Wart|Kiel") == ["Name", "Amt", "Ort"]
    assert names_of("Name|Score\nAnna|absent\nBen|3") == ["Name", "Score"]


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ("Region|2024|2024|2025\n|Q1|Q2|Q1\nNorth|1|2|3", ["Region", "2024 Q1", "2024 Q2", "2025 Q1"]),
        ("|2024||2025|\nRegion|Q1|Q2|Q1|Q2\nNorth|1|2|3|4", ["Region", "2024 Q1", "2024 Q2", "2025 Q1", "2025 Q2"]),
        ("Region|2024||2025|\n|Q1|Q2|Q1|Q2\nNorth|1|2|3|4", ["Region", "2024 Q1", "2024 Q2", "2025 Q1", "2025 Q2"]),
        ("Name|At||Phone\n|Street|City|\nAnna|Mill Bank|Vell|555", ["Name", "At Street", "At City", "Phone"]),
        ("Sold|Sold|Left|Left\n2024|2025|2024|2025\n9|8|7|6", ["Sold 2024", "Sold 2025", "Left 2024", "Left 2025"]),
        ("Half|2025|2025|2024\n\n|Sold|Left|Sold\nLenses|81|40|79", ["Half", "2025 Sold", "2025 Left", "2024 Sold"]),
        (
            "|2024|2024|2024|2025\n|H1|H1|H2|H1\nRegion|Q1|Q2|Q3|Q1\nNorth|1|2|3|4\nSouth|5|6|7|8",
            ["Region", "2024 H1 Q1", "2024 H1 Q2", "2024 H2 Q3", "2025 H1 Q1"],
        ),
        ("Vessel|Length|Fuel\n|m|[l]\nHeron|12.5|410\nCurlew|9|385", ["Vessel", "Length m", "Fuel [l]"]),
    ],
)  # fmt: skip
def test_a_header_has_up_to_three_rows(rows, names):
    assert names_of(rows) == names


def test_merged_headers_of_three_rows_and_a_merged_title_in_a_workbook():
    rows = xlsx(
        [
            ["Figures of the glassworks"], [None, 2025, None, 2024, None], [None, "Sales", "Staff", "Sales", "Staff"],
            [None, "k€", "%", "k€", "%"], ["Plant one"], ["Bottles", 8120, 140, 7905, 143], ["Lenses", 61, 61, 61, 61],
        ],
        "A1:E1", "B2:C2", "D2:E2", "A5:E5",
    )  # fmt: skip
    assert rows == [
        "Figures of the glassworks",
        "Columns: 2025 Sales k€; 2025 Staff %; 2024 Sales k€; 2024 Staff %",
        "Plant one",
        "Bottles; 2025 Sales k€: 8120; 2025 Staff %: 140; 2024 Sales k€: 7905; 2024 Staff %: 143",
        "Lenses; 2025 Sales k€: 61; 2025 Staff %: 61; 2024 Sales k€: 61; 2024 Staff %: 61",
    ]


def test_merged_cells_of_an_opendocument_sheet_count_in_each_of_their_rows():
    def cell(text, columns=1, rows=1):
        span = f'table:number-columns-spanned="{columns}" table:number-rows-spanned="{rows}"'
        covered = "<table:covered-table-cell/>" * (columns - 1)
        return f"<table:table-cell {span}><text:p>{text}</text:p></table:table-cell>{covered}"

    covered = "<table:covered-table-cell/>"
    rows = [
        cell("Harvest", 5),
        cell("Region", rows=2) + cell("2024", 2) + cell("2025", 2),
        covered + "".join(map(cell, ["Q1", "Q2", "Q1", "Q2"])),
        cell("North", rows=2) + "".join(map(cell, "1234")),
        covered + "".join(map(cell, "5678")),
    ]
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    reading = opendocument.read(
        opendocument_of("spreadsheet", f"<table:table>{table}</table:table>"), FileOrigin("a.ods", "ods")
    )
    assert reading.text.strip().split("\n\n") == [
        "Harvest",
        "Columns: Region; 2024 Q1; 2024 Q2; 2025 Q1; 2025 Q2",
        "Region: North; 2024 Q1: 1; 2024 Q2: 2; 2025 Q1: 3; 2025 Q2: 4",
        "Region: North; 2024 Q1: 5; 2024 Q2: 6; 2025 Q1: 7; 2025 Q2: 8",
    ]


def test_equal_values_keep_their_columns():
    assert csv("Opening,Sold,Closing\n40,12,28\n0,0,0\n28,28,28") == [
        "Columns: Opening; Sold; Closing", "Opening: 40; Sold: 12; Closing: 28", "Opening: 0; Sold: 0; Closing: 0",
        "Opening: 28; Sold: 28; Closing: 28",
    ]  # fmt: skip
    assert csv("Monday,Tuesday\nPetra,Petra\nIvo,Ivo")[1:] == [
        "Monday: Petra; Tuesday: Petra",
        "Monday: Ivo; Tuesday: Ivo",
    ]
    assert csv("1,2\n3,3") == ["1; 2", "3; 3"]
    assert xlsx([["a", "b"], ["x", "x"], [0, 0], [None, 0]])[1:] == ["a: x; b: x", "a: 0; b: 0", "b: 0"]
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    rows = [cell.format("", "a") + cell.format("", "b"), cell.format(' table:number-columns-repeated="2"', 0)]
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    content = opendocument_of("spreadsheet", f"<table:table>{table}</table:table>")
    assert "a: 0; b: 0" in opendocument.read(content, FileOrigin("a.ods", "ods")).text


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_the_delimiter_is_found_behind_a_preamble_with_decimal_commas(sign, quote):
    rows = [
        ["Konto:", "Treuhand Farrow"], ["Anfang:", "1.000,50 EUR"], ["Ende:", "2.114,08 EUR"], [],
        ["Tag", "Wer", "Wofür", "Betrag"], ["04.03.2025", "Ottesen", "Tau, 24 m", "-186,40"],
        ["11.03.2025", "Vell", "Liegegeld", "320,00"], ["19.03.2025", "Dunmore", "Slip, Reparatur", "-745,00"],
    ]  # fmt: skip
    quote = '"' if sign == "," else quote
    text = "\n".join(sign.join(f"{quote}{cell}{quote}" for cell in row) for row in rows)
    found = csv(text)
    assert found[:3] == ["Konto: Treuhand Farrow", "Anfang: 1.000,50 EUR", "Ende: 2.114,08 EUR"]
    assert found[-1] == "Tag: 19.03.2025; Wer: Dunmore; Wofür: Slip, Reparatur; Betrag: -745,00"


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("1,5;2,5\n3,5;4,5", "3,5; 4,5"),
        ("Name;Of\nSoup;salt, pepper, leek\nStew;beef, onion, bay", "Name: Stew; Of: beef, onion, bay"),
        ("Name;Sizes\nBoot;36,37,38\nShoe;40,41,42", "Name: Shoe; Sizes: 40,41,42"),
        ("id,tags\n1,a;b\n2,c;d\n3,e;f", "id: 3; tags: e;f"),
        ("at|level\n2025-01-01 10:00, Monday|low; calm\n2025-01-02 10:00, Tuesday|high; storm", "high; storm"),
        ("Made today, late\nby Farrow\nfor Vell\nand others\n\na;b\n1,5;2\n2,5;3\n3,5;4", "a: 3,5; b: 4"),
    ],
)  # fmt: skip
def test_a_delimiter_does_not_cut_values(text, last):
    assert csv(text)[-1].endswith(last)


def test_a_wide_header_has_all_of_its_names():
    names = [f"c{number}" for number in range(16_384)]
    assert header_of([(1, names), *((number, ["1"] * len(names)) for number in range(2, 30))]).names == names
