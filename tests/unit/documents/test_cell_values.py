"""Values of cells: numbers, dates, times and durations are those that people see in the sheet."""

import datetime
import io
import math
import zipfile

import pytest
from openpyxl import Workbook

from cragside.adapters.documents import opendocument, spreadsheets
from cragside.adapters.documents.number_formats import moment_shown, number_shown
from cragside.adapters.documents.reading import FileOrigin
from tests.unit.documents.archives import opendocument_of


def in_excel(value, written):
    """The text of a cell with this value and this format."""
    book, file = Workbook(), io.BytesIO()
    book.active.append([value])
    book.active["A1"].number_format = written
    book.save(file)
    return spreadsheets.read(file.getvalue(), FileOrigin("a.xlsx", "xlsx")).text.strip()


def in_opendocument(attributes, text=""):
    cell = f"<table:table-cell {attributes}>{f'<text:p>{text}</text:p>' if text else ''}</table:table-cell>"
    content = opendocument_of("spreadsheet", f"<table:table><table:table-row>{cell}</table:table-row></table:table>")
    return opendocument.read(content, FileOrigin("a.ods", "ods")).text.strip()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("General", "-1234.5"), ("0", "-1235"), ("$#,##0.00", "-$1234.50"), ("[$€-407] 0.0", "-€ 1234.5"),
        ('_-* #,##0.00 "kg"_-;-* #,##0.00', "-1234.50"), ("[Red]0.0;[Blue]0.0", "-1234.5"), ("0.00E+00", "-1234.5"),
        ("# ?/?", "-1234.5"), ("#,##0,", "-1234.5"), ('"', "-1234.5"), ("@", "-1234.5"), ("0.##", "-1234.5"),
        ("# ##0.00", "-1234.50"), ("#\\ ##0", "-1235"), ("#'##0.0", "-1234.5"), ("000000.0", "-001234.5"),
        ('#,##0.00\\ [$CHF-807]', "-1234.50 CHF"), ("#,##0.00_);(#,##0.00)", "-1234.50"), ("0.0%", "-123450.0%"),
    ],
)  # fmt: skip
def test_a_number_has_the_decimals_and_the_unit_of_its_format(written, shown):
    assert number_shown(-1234.5, written) == shown


@pytest.mark.parametrize(
    ("value", "written", "shown"),
    [
        (4006381333931.0, "General", "4006381333931"), (4006381333931, "General", "4006381333931"),
        (491512345678.0, "@", "491512345678"), (7622210449283.0, "0.00E+00", "7622210449283"),
        (4006381333931.0, "0", "4006381333931"), (123456789012345678.0, "General", "123456789012346000"),
        (250000000000.75, "General", "250000000000.75"), (0.1 + 0.2, "General", "0.3"), (1e-7, "General", "1e-07"),
        (2.5, "0", "3"), (2.675, "0.00", "2.68"), (0.285, "0%", "29%"), (1e300, "General", "1e+300"),
        (123456789, "000-00-0000", "123-45-6789"), (5551234567, "[<=9999999]###-####;(###) ###-####", "(555) 123-4567"),
        (4006381333931, "0 000000 000000", "4 006381 333931"), (7, "00000", "00007"),
        (1e300, "0.00", "1e+300"), (float("inf"), "0.0%", "inf%"), (0.5, f"0.{'0' * 60}", f"0.5{'0' * 59}"),
        (12.5, "0.0\\%", "12.5%"), (12.5, '0.0" %"', "12.5 %"), (0.125, "0.0 %", "12.5 %"),
        (12.5, 'General" kg"', "12.5 kg"), (-5, '"T "General', "-T 5"),
    ],
)  # fmt: skip
def test_a_number_keeps_all_of_its_digits(value, written, shown):
    assert number_shown(value, written) == shown
    assert math.isinf(value) or in_excel(value, written) == shown


@pytest.mark.parametrize(
    ("value", "written", "shown"),
    [
        (3, '0". Liga"', "3. Liga"), (3, '0\\. "Liga"', "3. Liga"), (12, '"#"0', "#12"), (5, '"a;b" 0', "a;b 5"),
        (5, '0 "E+"', "5 E+"), (5, '"Nr. "000', "Nr. 005"), (130, '0" h "00" min"', "1 h 30 min"),
        (17, '"["0"]"', "[17]"),
        (5, "[$kr.-406] 0.0", "kr. 5.0"), (0.25, '0.0" %"', "0.3 %"), (5, '0.00" €/m²"', "5.00 €/m²"),
        (5, '"none"', "none"),
    ],
)  # fmt: skip
def test_literal_parts_of_a_format_stand_as_they_are(value, written, shown):
    assert number_shown(value, written) == shown
    assert in_excel(value, written) == shown


EURO = '_-* #,##0.00 "€"_-;-* #,##0.00 "€"_-;_-* "-"?? "€"_-;_-@_-'


@pytest.mark.parametrize(
    ("value", "written", "shown"),
    [
        (5, '0;-0;"keine"', "5"), (-5, '0;-0;"keine"', "-5"), (0, '0;-0;"keine"', "keine"), (0, "0.0%;-0.0%;–", "–"),
        (1, '"ja";;"nein"', "ja"), (0, '"ja";;"nein"', "nein"), (0, '[=1]"ja";[=0]"nein";0', "nein"),
        (7, '[=1]"ja";[=0]"nein";0', "7"), (1500, '[>=1000]0.0" k";0', "1500.0 k"),
        (-12, '[<0]-0" kg";0" kg"', "-12 kg"),
        (1234.5, EURO, "1234.50 €"), (-1234.5, EURO, "-1234.50 €"), (0, EURO, "- €"), (-5, "0;[Red]-0", "-5"),
        (-5, "0;[Red](0)", "-5"), (-5, "0.0;[Red]0.0", "-5.0"), (-3, '"up" 0;"down" 0', "down 3"), (-5, "0;", "-5"),
        (-5, "+0;-0;0", "-5"), (5, "+0;-0;0", "+5"),
    ],
)  # fmt: skip
def test_a_number_has_the_section_of_its_sign_or_of_its_condition(value, written, shown):
    assert number_shown(value, written) == shown
    assert in_excel(value, written) == shown


def test_a_number_that_its_format_hides_is_not_there():
    assert [number_shown(value, ";;;") for value in (-1, 0, 1)] == ["", "", ""]
    assert (number_shown(0, "0;-0;"), number_shown(0, "#,###")) == ("", "")


@pytest.mark.parametrize(
    ("value", "written", "shown"),
    [
        (datetime.time(0, 7, 41), "h:mm:ss", "0:07:41"), (datetime.time(0, 37, 45), "mm:ss", "37:45"),
        (datetime.time(14, 30), "h:mm", "14:30"), (datetime.time(14, 30), "h:mm:ss", "14:30:00"),
        (datetime.time(9, 5), "hh:mm", "09:05"), (datetime.time(14, 5), "h:mm AM/PM", "2:05 PM"),
        (datetime.time(0, 5, 9), "[$-409]h:mm:ss AM/PM;@", "12:05:09 AM"),
        (datetime.time(0, 1, 9, 560000), "mm:ss.0", "01:09.6"),
        (datetime.time(0, 1, 9, 560000), "mmss.0", "01:09.6"), (datetime.time(0, 1, 9, 40000), "m:ss.00", "1:09.04"),
        (datetime.time(7, 41), '[hh]"h "mm"min"', "07h 41min"), (datetime.time(7, 41, 30), "General", "07:41:30"),
        (datetime.timedelta(hours=37, minutes=45), "[h]:mm", "37:45"),
        (datetime.timedelta(hours=37, minutes=45, seconds=8), "[hh]:mm:ss", "37:45:08"),
        (datetime.timedelta(minutes=75, seconds=3), "[mm]:ss", "75:03"), (datetime.timedelta(seconds=90), "[s]", "90"),
        (datetime.timedelta(minutes=-90), "[h]:mm", "-1:30"),
    ],
)  # fmt: skip
def test_a_time_and_a_duration_have_the_units_of_their_format(value, written, shown):
    assert moment_shown(value, written) == shown


@pytest.mark.parametrize(
    ("value", "written", "shown"),
    [
        (datetime.datetime(2025, 6, 14, 10, 12, 33), "yyyy-mm-dd hh:mm:ss", "2025-06-14 10:12:33"),
        (datetime.datetime(2025, 6, 14, 10, 12, 33), "dd.mm.yyyy hh:mm", "2025-06-14 10:12"),
        (datetime.datetime(2025, 6, 14, 10, 12), "yyyy-mm-dd hh:mm:ss", "2025-06-14 10:12:00"),
        (datetime.datetime(2025, 6, 14), "yyyy-mm-dd hh:mm:ss", "2025-06-14"),
        (datetime.datetime(2025, 6, 14, 10, 12), "m/d/yy", "2025-06-14 10:12"),
        (datetime.date(2025, 6, 14), "mmm yyyy", "2025-06-14"),
        (datetime.datetime(2025, 6, 14, 15, 12), "m/d/yy h:mm AM/PM", "2025-06-14 3:12 PM"),
        (datetime.datetime(2025, 6, 14, 15, 12), "h:d:ss", "2025-06-14 15::00"),
        (datetime.time(0, 7, 41), "h:mm:ss", "0:07:41"), (datetime.timedelta(hours=37, minutes=45), "[h]:mm", "37:45"),
        (1.25, "h:mm:ss", "6:00:00"), (True, "General", "TRUE"), (0.125, "0.0%", "12.5%"),
    ],
)  # fmt: skip
def test_a_workbook_shows_seconds_where_its_format_does(value, written, shown):
    assert in_excel(value, written) == shown


def test_dates_of_east_asian_formats_are_dates():
    book, written, changed = Workbook(), io.BytesIO(), io.BytesIO()
    book.active.append([45822, 45822.5, 1e9])
    for cell in book.active[1]:
        cell.number_format = "0.000"
    book.save(written)
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'<xf numFmtId="164"', b'<xf numFmtId="31"'))
    shown = spreadsheets.read(changed.getvalue(), FileOrigin("a.xlsx", "xlsx")).text
    assert shown.strip() == "2025-06-14; 2025-06-14 12:00; 1000000000"


@pytest.mark.parametrize(
    ("attributes", "text", "shown"),
    [
        ('office:value-type="float" office:value="4006381333931"', "4.00638133393E+12", "4006381333931"),
        ('office:value-type="float" office:value="4006381333931.0"', "4006381333931.0", "4006381333931"),
        ('office:value-type="float" office:value="4006381333931"', "###", "4006381333931"),
        ('office:value-type="float" office:value="4006381333931"', "", "4006381333931"),
        ('office:value-type="float" office:value="1200.5"', "1.200,50", "1.200,50"),
        ('office:value-type="percentage" office:value="0.256"', "26 %", "26 %"),
        ('office:value-type="percentage" office:value="0.256"', "", "25.6%"),
        ('office:value-type="currency" office:value="5"', "5,00 €", "5,00 €"),
        ('office:value-type="float" office:value="odd"', "odd", "odd"),
        ('office:value-type="time" office:time-value="PT00H07M41S"', "00:07:41", "00:07:41"),
        ('office:value-type="time" office:time-value="PT37H45M00S"', "", "37:45:00"),
        ('office:value-type="date" office:date-value="2025-06-14T10:12:33"', "14.6.25 10:12:33", "2025-06-14 10:12:33"),
        ('office:value-type="date" office:date-value="2025-06-14T10:12:33"', "14.6.25 10:12", "2025-06-14 10:12"),
        ('office:value-type="date" office:date-value="2025-06-14"', "06/14/25", "2025-06-14"),
        ('office:value-type="date" office:date-value="soon"', "soon", "soon"),
    ],
)  # fmt: skip
def test_an_opendocument_sheet_shows_the_same(attributes, text, shown):
    assert in_opendocument(attributes, text) == shown
