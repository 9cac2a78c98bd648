"""Formulas: their values are read where they were computed, else the formula itself, which says so."""

import io
import re
import zipfile

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.formula import ArrayFormula

from cragside.adapters.documents import opendocument, spreadsheets
from cragside.adapters.documents.reading import FileOrigin
from tests.unit.documents.archives import opendocument_of


def workbook(fill, change=lambda sheet: sheet, *, computed_on_load=False):
    """A workbook that openpyxl writes without values. `change` changes the XML of its sheet."""
    book, file, changed = Workbook(), io.BytesIO(), io.BytesIO()
    fill(book.active)
    book.calculation.fullCalcOnLoad = computed_on_load
    book.save(file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, change(content.decode()).encode() if name.startswith("xl/worksheets/") else content)
    return changed.getvalue()


def rows(content):
    return spreadsheets.read(content, FileOrigin("a.xlsx", "xlsx")).text.strip().split("\n\n")


def takings(sheet):
    for row in (
        ["Stall", "Saturday", "Sunday", "Both days"],
        ["Cider", 203, 187, "=B2+C2"],
        ["Honey", 118, 96, "=B3+C3"],
    ):
        sheet.append(row)


def valued(value, kind=""):
    """Write a value behind each formula."""
    return lambda sheet: re.sub(r"<c ([^>]*)(>)<f>(.*?)</f><v ?/?>(?:</v>)?", rf"<c \1{kind}><f>\3</f>{value}", sheet)


@pytest.mark.parametrize("value", ["", "<v/>", "<v></v>", "<v />"])
def test_a_formula_without_a_value_is_kept_and_said_to_be_not_computed(value):
    assert rows(workbook(takings, valued(value))) == [
        "Columns: Stall; Saturday; Sunday; Both days",
        "Stall: Cider; Saturday: 203; Sunday: 187; Both days: =B2+C2 (not computed)",
        "Stall: Honey; Saturday: 118; Sunday: 96; Both days: =B3+C3 (not computed)",
    ]


def test_the_value_that_was_computed_last_is_read():
    assert rows(workbook(takings, valued("<v>390</v>")))[1].endswith("Both days: 390")
    assert rows(workbook(takings, valued("<v>0</v>")))[1].endswith("Both days: 0")
    assert rows(workbook(takings, valued("<v></v>", ' t="str"')))[1].endswith("Sunday: 187"), "a text may be empty"
    assert rows(workbook(takings, valued("<v>390</v>"), computed_on_load=True))[1].endswith("Both days: 390")


def test_zero_is_no_value_in_a_workbook_that_is_computed_when_it_is_opened():
    content = workbook(takings, valued("<v>0</v>"), computed_on_load=True)
    assert rows(content)[1].endswith("Both days: =B2+C2 (not computed)")
    plain = workbook(lambda sheet: sheet.append(["Cider", 0]), computed_on_load=True)
    assert rows(plain) == ["Cider; 0"]


def test_formulas_of_arrays_shared_formulas_and_new_functions_are_kept():
    def fill(sheet):
        sheet.append([1, 2, "=_xlfn.XLOOKUP(A1,A:A,B:B)"])
        sheet["D1"] = ArrayFormula("D1:D1", "=SUM(A1:B1*2)")
        sheet.append([3, 4, "=A2+B2"])
        sheet.append([5, 6, "=0"])

    def share(sheet):
        sheet = re.sub(r"<f>A2\+B2</f>", '<f t="shared" ref="C2:C3" si="0">A2+B2</f>', sheet)
        return re.sub(r"<f>0</f>", '<f t="shared" si="0"/>', sheet)

    assert rows(workbook(fill, share)) == [
        "1; 2; =XLOOKUP(A1,A:A,B:B) (not computed); =SUM(A1:B1*2) (not computed)",
        "3; 4; =A2+B2 (not computed)",
        "5; 6; =A3+B3 (not computed)",
    ]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ('table:formula="of:=[.B2]+[.C2]"/>', "=B2+C2 (not computed)"),
        ('table:formula="of:=SUM([.B2:.B4])" office:value-type="float"/>', "=SUM(B2:B4) (not computed)"),
        ('table:formula="of:=[$Costs.A1]*2"/>', "=$Costs.A1*2 (not computed)"),
        ('table:formula="of:=[.B2]" office:value-type="float" office:value="7"/>', "7"),
        ('table:formula="of:=T(1)" office:value-type="string" office:string-value=""/>', ""),
    ],
)  # fmt: skip
def test_an_opendocument_sheet_keeps_them_too(cell, shown):
    first = "<table:table-cell><text:p>sum</text:p></table:table-cell>"
    table = f"<table:table><table:table-row>{first}<table:table-cell {cell}</table:table-row></table:table>"
    reading = opendocument.read(opendocument_of("spreadsheet", table), FileOrigin("a.ods", "ods"))
    assert reading.text.strip() == "; ".join(filter(None, ("sum", shown)))
